"""A strict Responses provider, in memory: the opposite side for the tests of the ledger.

Written from what is known of providers, and from nothing of ours. It refuses what a provider
refuses, keeps responses as a tree and conversations as lists, and can forget, cut and lose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Wire = dict[str, Any]

ANSWERS: dict[str, tuple[str, ...]] = {
    "function_call": ("function_call_output",),
    "custom_tool_call": ("custom_tool_call_output",),
    "computer_call": ("computer_call_output",),
    "shell_call": ("shell_call_output",),
    "local_shell_call": ("local_shell_call_output", "function_call_output"),
    "apply_patch_call": ("apply_patch_call_output",),
    "tool_search_call": ("tool_search_output",),
    "program": ("program_output",),
    "mcp_approval_request": ("mcp_approval_response",),
}
"""For each type of call: the types of output that may answer it."""

OUTPUTS = frozenset(output for outputs in ANSWERS.values() for output in outputs)

PREFIX = {
    "message": "msg",
    "reasoning": "rs",
    "compaction": "cmp",
    "web_search_call": "ws",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "computer_call": "cu",
    "shell_call": "sh",
    "local_shell_call": "lsh",
    "apply_patch_call": "apc",
    "tool_search_call": "tsc",
    "program": "prog",
    "mcp_approval_request": "mcpr",
}

WITH_ID = frozenset({"computer_call", "local_shell_call", "mcp_approval_request", "program"})
"""Types that are not taken without an id of their own."""


class Rejected(Exception):
    """HTTP 400, or another answer that says: this request changed nothing."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


def kind_of(item: Wire) -> str:
    return item.get("type") or "message"


def own_id(item: Wire) -> str | None:
    """The id that must be unique; that of a local shell's output names its call instead."""
    return None if kind_of(item) == "local_shell_call_output" else item.get("id")


def stands_alone(item: Wire) -> bool:
    """A call that broke off half-way has no output; a search that the server ran may have none."""
    kind = kind_of(item)
    if kind in ANSWERS and item.get("status") == "incomplete":
        return True
    searching = kind in ("tool_search_call", "tool_search_output")
    return searching and (item.get("call_id") is None or item.get("execution") == "server")


def names(call: Wire) -> set[str]:
    """What an output may call this call."""
    if kind_of(call) == "mcp_approval_request":
        return {call["id"]}
    if kind_of(call) == "local_shell_call":
        return {call["call_id"], call["id"]}
    return {call["call_id"]}


def named(output: Wire) -> str | None:
    """The call that an output names."""
    field = {"mcp_approval_response": "approval_request_id", "local_shell_call_output": "id"}
    return output.get(field.get(kind_of(output), "call_id"))


def is_user_message(item: Wire) -> bool:
    return kind_of(item) == "message" and item.get("role") != "assistant"


def said_by_model(item: Wire) -> bool:
    return not is_user_message(item) and kind_of(item) not in OUTPUTS


def paired(context: Sequence[Wire]) -> tuple[list[tuple[Wire, Wire]], list[Wire]]:
    """Calls with their outputs, one to one and in order, and the calls that have none."""
    pairs: list[tuple[Wire, Wire]] = []
    waiting: list[Wire] = []
    for item in context:
        kind = kind_of(item)
        if stands_alone(item):
            continue
        if kind in ANSWERS:
            waiting.append(item)
        elif kind in OUTPUTS and named(item) is not None:
            meant = [call for call in waiting if named(item) in names(call)]
            call = next((call for call in meant if kind in ANSWERS[kind_of(call)]), None)
            if call is None:
                raise Rejected(
                    f"No tool call found for {kind} with call_id {named(item)}."
                    + (f" There is one of type {kind_of(meant[0])}." if meant else "")
                )
            waiting = [other for other in waiting if other is not call]
            pairs.append((call, item))
    return pairs, waiting


@dataclass
class Shape:
    """What the model says next, before it has ids."""

    kind: str = "message"
    families: tuple[str, ...] = ()
    reasoning: str | None = None
    """None, "plain", or "encrypted"."""
    reuse: bool = False
    """With call ids that were used before."""


@dataclass
class Reply:
    shapes: tuple[Shape, ...] = (Shape(),)
    ending: str = "completed"


@dataclass
class Stream:
    """A response on its way."""

    server: StrictServer
    id: str
    before: list[Wire]
    given: list[Wire]
    items: list[Wire]
    ending: str
    conversation: str | None
    store: bool
    told: int = 0
    over: bool = False

    def next(self) -> Wire | None:
        """The next item of the answer; None when it ended, and then it is kept."""
        assert not self.over
        if self.told < len(self.items):
            self.told += 1
            return self.items[self.told - 1]
        self.cut(committed=self.ending != "failed")
        return None

    def cut(self, *, committed: bool) -> None:
        """The client hears no more of it; the server finishes it, or drops it."""
        self.over = True
        self.server.busy.discard(self.conversation)
        if committed:
            self.server._keep(self)


@dataclass
class StrictServer:
    responses: dict[str, list[Wire]] = field(default_factory=dict)
    """For each response: the whole context behind it."""
    conversations: dict[str, list[Wire]] = field(default_factory=dict)
    busy: set[str | None] = field(default_factory=set)
    kept_in: dict[str, set[str]] = field(default_factory=dict)
    """For each id of an item: the responses and conversations that keep it."""
    led_by: dict[str, str] = field(default_factory=dict)
    """For each id of an item: the reasoning that it was said with."""
    said: dict[str, list[Wire]] = field(default_factory=dict)
    """For each response: its own items."""
    wholes: dict[str, list[Wire]] = field(default_factory=dict)
    """For each response: what it was given and what it said, before anything was compacted."""
    count: int = 0

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count}"

    def new_conversation(self) -> str:
        made = self.new("conv")
        self.conversations[made] = []
        return made

    def forget(self, id: str) -> None:
        """A response or a conversation is gone, and what only it had kept."""
        self.responses.pop(id, None)
        self.conversations.pop(id, None)
        for keepers in self.kept_in.values():
            keepers.discard(id)

    def listed(self, conversation: str, after: str | None) -> list[Wire]:
        """The items of a conversation, oldest first, behind the one with this id."""
        items = self._conversation(conversation)
        if after is None:
            return list(items)
        ids = [item["id"] for item in items]
        if after not in ids:
            raise Rejected(f"Item with id '{after}' not found.")
        return items[ids.index(after) + 1 :]

    def create(
        self,
        given: Sequence[Wire],
        reply: Reply,
        *,
        previous_response_id: str | None = None,
        conversation: str | None = None,
        store: bool = True,
    ) -> Stream:
        """POST /v1/responses. Raises `Rejected`, and then nothing was changed."""
        before: list[Wire] = []
        if conversation is not None:
            assert previous_response_id is None, "they exclude each other"
            before = _since_compaction(self._conversation(conversation))
            if conversation in self.busy:
                raise Rejected(
                    "Another process is currently operating on this conversation. Please retry in "
                    "a few seconds.",
                    "conversation_locked",
                )
        elif previous_response_id is not None:
            if previous_response_id not in self.responses:
                raise Rejected(
                    f"Previous response with id '{previous_response_id}' not found.",
                    "previous_response_not_found",
                )
            before = self.responses[previous_response_id]
        if not given:
            raise Rejected("One of input, previous_response_id must hold something new.")
        self._check(before, given)
        given = [self._with_id(item) for item in given]
        items = self._say(_since_compaction([*before, *given]), reply)
        stream = Stream(
            server=self,
            id=self.new("resp"),
            before=before,
            given=given,
            items=items,
            ending=reply.ending,
            conversation=conversation,
            store=store,
        )
        if conversation is not None:
            self.busy.add(conversation)
        return stream

    # --- what is refused -----------------------------------------------------------------------

    def _conversation(self, id: str) -> list[Wire]:
        if id not in self.conversations:
            raise Rejected(f"Conversation with id '{id}' not found.", "conversation_not_found")
        return self.conversations[id]

    def _check(self, before: Sequence[Wire], given: Sequence[Wire]) -> None:
        whole = [*before, *given]
        _, waiting = paired(whole)
        for call in waiting:
            # A program that made calls goes on when they are answered: it may wait.
            if kind_of(call) != "program":
                [key] = sorted(names(call))[:1]
                raise Rejected(f"No tool output found for {kind_of(call)} {key}.")
        seen = {own_id(item) for item in before} - {None}
        for at, item in enumerate(given):
            self._check_item(item, given[at + 1] if at + 1 < len(given) else None, seen)

    def _check_item(self, item: Wire, follower: Wire | None, seen: set[str | None]) -> None:
        kind, own = kind_of(item), own_id(item)
        if own is None:
            if kind in WITH_ID:
                raise Rejected(f"Missing required parameter: 'id' of a {kind}.")
        else:
            if own in seen:
                raise Rejected(
                    f"Duplicate item found with id {own}. Remove duplicate items from your input "
                    "and try again."
                )
            seen.add(own)
            if kind in PREFIX and not own.startswith(PREFIX[kind]):
                raise Rejected(f"Invalid id: '{own}'. Expected an ID that begins with a prefix.")
            led_by = self.led_by.get(own)
            if led_by is not None and self._persists(own) and led_by not in seen:
                raise Rejected(
                    f"Item '{own}' of type '{kind}' was provided without its required 'reasoning' "
                    f"item: '{led_by}'."
                )
        if kind == "reasoning":
            if not item.get("encrypted_content") and not (own and self._persists(own)):
                raise Rejected(f"Item with id '{own}' not found. Items are not persisted.")
            if follower is None or not said_by_model(follower):
                raise Rejected(
                    f"Item '{own}' of type 'reasoning' was provided without its required following "
                    "item."
                )

    def _persists(self, id: str) -> bool:
        return bool(self.kept_in.get(id))

    # --- what is said --------------------------------------------------------------------------

    def _say(self, context: Sequence[Wire], reply: Reply) -> list[Wire]:
        said: list[Wire] = []
        _, waiting = paired(context)
        program = next((call for call in waiting if kind_of(call) == "program"), None)
        for shape in reply.shapes:
            if program is not None and shape.kind != "program":
                said.append(
                    {
                        "type": "program_output",
                        "id": self.new("po"),
                        "call_id": program["call_id"],
                        "result": "done",
                        "status": "completed",
                    }
                )
                program = None
            if shape.reasoning is not None:
                said.append({"type": "reasoning", "id": self.new("rs"), "summary": []})
                if shape.reasoning == "encrypted":
                    said[-1]["encrypted_content"] = f"sealed {self.count}"
            used = {name for item in said if kind_of(item) in ANSWERS for name in item_names(item)}
            if program is not None:
                used |= names(program)
            if shape.kind == "calls":
                said += [self._call(family, shape.reuse, used) for family in shape.families]
            elif shape.kind == "program":
                if program is None:
                    program = self._call("program", False, used)
                    said.append(program)
                for family in shape.families:
                    child = self._call(family, shape.reuse, used)
                    child["caller"] = {"type": "program", "caller_id": program["call_id"]}
                    said.append(child)
            elif shape.kind == "search":
                call_id = self.new("call") if shape.reuse else None
                ran = {"call_id": call_id, "execution": "server", "status": "completed"}
                said.append({"type": "tool_search_call", "id": self.new("tsc"), **ran})
                output = {"type": "tool_search_output", "id": self.new("tso"), "tools": []}
                said.append({**output, **ran})
            elif shape.kind == "message":
                said.append(self._message())
            elif shape.kind == "web search":
                searched = {"type": "web_search_call", "id": self.new("ws")}
                said.append({**searched, "status": "completed"})
            elif shape.kind == "compaction":
                sealed = f"all {self.count}"
                said.append(
                    {"type": "compaction", "id": self.new("cmp"), "encrypted_content": sealed}
                )
            elif shape.kind == "unheard of":
                said.append({"type": "unheard_of", "id": self.new("uo"), "holds": [1, {"a": None}]})
            elif shape.kind == "half a call":
                said.append({**self._call("function_call", False, used), "status": "incomplete"})
            else:
                assert shape.kind == "nothing", shape.kind
        return said

    def _message(self) -> Wire:
        own = self.new("msg")
        text = {"type": "output_text", "text": f"answer {own}", "annotations": []}
        return {
            "type": "message",
            "id": own,
            "role": "assistant",
            "status": "completed",
            "content": [text],
        }

    def _call(self, family: str, reuse: bool, used: set[str]) -> Wire:
        """A call of this type; `mark` tells it from every other, whatever its ids are."""
        own = self.new(PREFIX[family])
        free = [f"call_again_{n}" for n in range(9) if f"call_again_{n}" not in used]
        call_id = free[0] if reuse else self.new("call")
        used.add(call_id)
        call: Wire = {"type": family, "id": own, "call_id": call_id, "status": "completed"}
        mark = f"<mark {self.count}>"
        if family == "mcp_approval_request":
            asked = {"name": "tool", "server_label": "s", "arguments": mark}
            return {"type": family, "id": own, **asked}
        if family == "tool_search_call":
            return {**call, "execution": "client", "arguments": {"query": mark}}
        if family == "program":
            return {**call, "code": mark, "fingerprint": "f"}
        if family == "custom_tool_call":
            return {**call, "name": "tool", "input": mark}
        if family == "function_call":
            return {**call, "name": "tool", "arguments": mark}
        return {**call, "action": {"type": "exec", "command": [mark]}}

    # --- what is kept --------------------------------------------------------------------------

    def _with_id(self, item: Wire) -> Wire:
        if item.get("id"):
            return item
        return {**item, "id": self.new("in")}

    def _keep(self, stream: Stream) -> None:
        keepers = {stream.id} if stream.store else set()
        if stream.conversation in self.conversations:
            assert stream.conversation is not None
            keepers.add(stream.conversation)
            self.conversations[stream.conversation] += [*stream.given, *stream.items]
        if stream.store:
            whole = [*stream.before, *stream.given, *stream.items]
            self.said[stream.id] = stream.items
            self.wholes[stream.id] = whole
            self.responses[stream.id] = _since_compaction(whole)
        led_by = None
        for item in stream.items:
            if kind_of(item) == "reasoning":
                led_by = item["id"]
            elif led_by is not None and kind_of(item) in PREFIX:
                self.led_by[item["id"]] = led_by
        for item in [*stream.given, *stream.items]:
            self.kept_in.setdefault(item["id"], set()).update(keepers)


def item_names(call: Wire) -> set[str]:
    return set() if stands_alone(call) else names(call)


def _since_compaction(context: Sequence[Wire]) -> list[Wire]:
    """What the model still reads: from the last compaction on."""
    last = max((at for at, item in enumerate(context) if kind_of(item) == "compaction"), default=0)
    return list(context[last:])
