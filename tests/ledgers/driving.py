"""Drives a ledger against the strict server, fact by fact, as a program that sends would.

It keeps a small model of its own beside the ledger: a tree of what was said, so that the tests
can tell what a context must hold without asking the ledger. It performs; the tests judge."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from lockstitch.core import records
from lockstitch.core.calls import Call, Life
from lockstitch.core.continuation import Continue, Plan, ReadBack, Replay
from lockstitch.facts import (
    AnchorAdopted,
    AnchorLost,
    AnyFact,
    By,
    CallStarted,
    Ending,
    ItemAdded,
    ItemCompleted,
    ItemsRemoved,
    Mode,
    Removal,
    RequestAccepted,
    RequestLost,
    RequestPrepared,
    RequestRejected,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    call_settled,
    call_settled_honestly,
    found,
    item_added,
    item_completed,
    request_prepared,
)
from lockstitch.ledgers import Follower, Ledger
from tests.ledgers.strict_server import (
    ANSWERS,
    Rejected,
    Reply,
    Stream,
    StrictServer,
    Wire,
    is_user_message,
    kind_of,
    stands_alone,
)

Key = tuple[int, int]
"""A call: its entry and its slot."""

WITHOUT_TEXT = ("computer_call", "mcp_approval_request", "tool_search_call")
"""Calls whose output is no text."""


class Fault(Enum):
    """What happens to a request before anything is heard of it."""

    LOST_BEFORE = "lost on the way there"
    LOST_AFTER = "lost on the way back: the server has it, and its whole answer"
    BUSY = "429"
    DIED_BEFORE_SENDING = "the process died between preparing and sending"


@dataclass
class Node:
    """One link, as the model sees it."""

    seq: int
    parent: int
    mark: str | None = None
    """The user's message that it is."""
    calls: list[Key] = field(default_factory=list)
    """The calls that somebody here must answer."""
    programs: list[Key] = field(default_factory=list)
    request: bool = False
    accepted: bool = False
    compacted_by_provider: bool = False
    cut_to: int | None = None
    adopted: bool = False


def mark_in(item: Wire) -> str | None:
    """What tells this item from every other, whatever its ids are."""
    marks = re.findall(r"<(?:user|out|mark|summary|inserted) \d+>", json.dumps(item))
    return marks[0] if marks else None


def kept(ledger: Ledger) -> list[records.Record]:
    """A ledger as a store keeps it."""
    return [
        records.encoded(seq, fact, ledger.parts.get(seq, ()))
        for seq, fact in enumerate(ledger.facts, start=1)
    ]


class Driver:
    def __init__(
        self, server: StrictServer, mode: Mode = Mode.CHAIN, *, store: bool = True
    ) -> None:
        self.server = server
        self.mode = mode
        self.store = store
        """Does the provider keep what is sent in full?"""
        self.conversation: str | None = None
        self.ledger = Ledger()
        self.follower = Follower(self.ledger)
        self.nodes = {0: Node(0, 0)}
        self.tip = 0
        self.stream: Stream | None = None
        self.request = 0
        self.effects: Counter[Key] = Counter()
        self.outputs: dict[str, str | None] = {}
        """For each call, by its mark: the mark of the output that its tool gave."""
        self.maybe: set[str] = set()
        """Messages that a filter touched: they may be missing."""
        self.excused = 0
        """How many rejections the tests themselves caused."""
        self.contexts: dict[int, list[Wire]] = {}
        """For each accepted request: the context at the server behind its answer."""

    # --- appending -----------------------------------------------------------------------------

    def append(self, *facts: AnyFact) -> int:
        seq = 0
        for fact in facts:
            seq = self.ledger.append(fact)
            self._learn(seq, fact)
        return seq

    def _learn(self, seq: int, fact: AnyFact) -> None:
        """The same fact, in the model."""
        if isinstance(fact, ItemAdded) and fact.by is not By.REWRITE:
            parent = self.tip if fact.after is None else fact.after
            wire = json.loads(fact.item)
            node = self._grow(seq, parent)
            if is_user_message(wire):
                node.mark = mark_in(wire)
            node.compacted_by_provider = kind_of(wire) == "compaction"  # from a client's history
            self._note_calls(node, seq, wire)
        elif isinstance(fact, ItemCompleted):
            node = self.nodes[fact.request]
            wire = json.loads(fact.item)
            node.compacted_by_provider |= kind_of(wire) == "compaction"
            self._note_calls(node, seq, wire)
        elif isinstance(fact, RequestPrepared):
            self._grow(seq, fact.covers).request = True
        elif isinstance(fact, RequestAccepted):
            self.nodes[fact.request].accepted = True
        elif isinstance(fact, ResponseEnded):
            if fact.ending in (Ending.COMPLETED, Ending.INCOMPLETE):
                self.nodes[fact.request].accepted = True
        elif isinstance(fact, ItemsRemoved):
            if fact.by is Removal.ROLLBACK:
                self.tip = fact.to
            else:
                self._grow(seq, self.tip).cut_to = fact.to
        elif isinstance(fact, AnchorAdopted):
            self._grow(seq, 0).adopted = True

    def _grow(self, seq: int, parent: int) -> Node:
        self.nodes[seq] = Node(seq, parent)
        self.tip = seq
        return self.nodes[seq]

    def _note_calls(self, node: Node, seq: int, wire: Wire) -> None:
        if kind_of(wire) == "program":
            node.programs.append((seq, 0))
        elif kind_of(wire) in ANSWERS and not stands_alone(wire):
            node.calls.append((seq, 0))

    # --- the model -----------------------------------------------------------------------------

    def path(self, tip: int | None = None) -> list[Node]:
        """The nodes of the conversation as it now is, oldest first."""
        nodes: list[Node] = []
        node = self.nodes[self.tip if tip is None else tip]
        stops: set[int] = set()
        while node.seq:
            if node.cut_to is not None:
                # Where it took only the summary of another away, that one says where to stop.
                stops.add(node.cut_to)
            elif node.seq in stops:
                break
            nodes.append(node)
            node = self.nodes[node.parent]
        return nodes[::-1]

    def tail(self, tip: int | None = None) -> list[Node]:
        """From the last accepted answer on; all of it, where a new chain begins."""
        path = self.path(tip)
        if any(node.cut_to is not None for node in path):
            fresh = max(at for at, node in enumerate(path) if node.cut_to is not None)
            since = [at for at, node in enumerate(path) if node.accepted and at > fresh]
            return path[since[-1] :] if since else path
        accepted = [at for at, node in enumerate(path) if node.accepted or node.adopted]
        return path[accepted[-1] :] if accepted else path

    def unanswered(self, tip: int | None = None) -> set[Key]:
        """The calls that the next request from there needs an output for, and has none."""
        return {
            key
            for node in self.tail(tip)
            if not node.request or node.accepted or self.counts(node)
            for key in node.calls
            if self.call(key).output is None
        }

    def counts(self, node: Node) -> bool:
        """Does a cut answer count? Where one of its calls was started or answered."""
        keys = [*node.calls, *node.programs]
        return any(self.call(key).life is not Life.ANNOUNCED for key in keys)

    def call(self, key: Key) -> Call:
        return self.ledger.calls[key]

    def startable(self) -> list[Key]:
        """The calls that a driver would start now: of the last answer, ended or not."""
        keys: list[Key] = []
        for node in reversed(self.path()):
            if not self._abandoned(node):
                keys += node.calls
            if node.request:
                break
        return [key for key in sorted(keys) if self.call(key).life is Life.ANNOUNCED]

    def _abandoned(self, node: Node) -> bool:
        """A cut answer, of which nothing was started, and another was accepted behind it."""
        if not node.request or node.accepted or self.counts(node):
            return False
        accepted = [other for other in self.nodes.values() if other.accepted]
        return any(node in self.lineage(other) for other in accepted)

    def lineage(self, node: Node) -> list[Node]:
        """A node and all before it, whatever was cut away."""
        nodes = [node]
        while node.seq:
            node = self.nodes[node.parent]
            nodes.append(node)
        return nodes

    def waiting(self) -> list[Key]:
        """The calls on the path that have no output."""
        keys = {*self.unanswered(), *self.startable()}
        return sorted(key for key in keys if self.call(key).output is None)

    def running(self) -> list[Key]:
        return [key for key, call in self.ledger.calls.items() if call.life is Life.STARTED]

    # --- items and tools -----------------------------------------------------------------------

    def say(self, after: int | None = None) -> str:
        mark = self.server.new("<user").replace("_", " ") + ">"
        content: Any = f"please {mark}"
        if self.server.count % 2:
            content = [{"type": "input_text", "text": content}]
        message = {"type": "message", "role": "user", "content": content}
        self.append(item_added(message, after=after))
        return mark

    def start(self, key: Key) -> None:
        self.append(CallStarted(call=key[0], slot=key[1]))
        self.effects[key] += 1

    def settle(self, key: Key, how: str) -> None:
        """A tool ended: as a wire item, as text, with an error; or nobody knows; or the client
        brings the output as an item."""
        call = self.call(key)
        wire = self.ledger.wire(key[0])
        mark = mark_in(wire)
        assert mark is not None
        if how == "honestly":
            self.outputs[mark] = None
            self.append(call_settled_honestly(self.ledger, call))
            return
        out = self.server.new("<out").replace("_", " ") + ">"
        output = self.output_of(wire, out)
        self.outputs[mark] = out
        if how == "item":
            self.append(item_added(output, "user"))
        elif how == "text" and kind_of(wire) not in WITHOUT_TEXT:
            self.append(call_settled(self.ledger, call, out, failed=self.server.count % 2 == 0))
        else:
            self.append(call_settled(self.ledger, call, output))

    def output_of(self, call: Wire, text: str) -> Wire:
        """An output of the family of this call, as a client writes it."""
        kind = kind_of(call)
        if kind == "mcp_approval_request":
            made = {"approval_request_id": call["id"], "approve": True, "reason": text}
            return {"type": "mcp_approval_response", **made}
        if kind == "local_shell_call":
            if self.server.count % 2:
                return {"type": "local_shell_call_output", "id": call["id"], "output": text}
            return {"type": "function_call_output", "call_id": call["call_id"], "output": text}
        made = {"type": ANSWERS[kind][0], "call_id": call["call_id"]}
        if kind == "computer_call":
            return {**made, "output": {"type": "computer_screenshot", "image_url": text}}
        if kind == "shell_call":
            outcome = {"type": "exit", "exit_code": 0}
            return {**made, "output": [{"stdout": text, "stderr": "", "outcome": outcome}]}
        if kind == "apply_patch_call":
            return {**made, "status": "completed", "output": text}
        if kind == "tool_search_call":
            return {**made, "execution": "client", "tools": [{"type": "function", "name": text}]}
        if kind == "program":
            return {**made, "id": self.server.new("po"), "result": text, "status": "completed"}
        return {**made, "output": text}

    # --- requests ------------------------------------------------------------------------------

    def plan(self, tip: int | None = None) -> Plan:
        """What to send next; what was lost in a conversation is read back before."""
        while True:
            plan = self.ledger.plan(self.mode, tip=tip, conversation=self.conversation)
            if not isinstance(plan, ReadBack):
                return plan
            self._read_back(plan)

    def _read_back(self, plan: ReadBack) -> None:
        try:
            listed = self.server.listed(plan.conversation, plan.after)
        except Rejected:
            lost = AnchorLost(anchor=plan.conversation)
            self.append(lost, RequestRejected(request=plan.request, reason="not found"))
            return
        # As the provider gives them: with a status and an id that nobody sent.
        self.append(*found(self.ledger, plan, [{"status": "completed", **i} for i in listed]))
        if self.nodes[plan.request].accepted:
            self.contexts[plan.request] = list(self.server.conversations[plan.conversation])

    def send(
        self,
        plan: Continue | Replay,
        reply: Reply,
        *,
        fault: Fault | None = None,
        rewrite: Callable[[list[Wire]], list[Wire]] | None = None,
    ) -> str:
        """Perform a plan, until the provider begins to answer: `hear` the rest."""
        conversation = fresh = None
        if self.mode is Mode.CONVERSATION:
            if plan.anchor is None:
                fresh = self.server.new_conversation()
            conversation = plan.anchor or fresh
        items = self.ledger.items(plan)
        if rewrite is None:
            facts = request_prepared(self.ledger, plan, conversation=fresh)
        else:
            items = rewrite(items)
            facts = request_prepared(self.ledger, plan, items=items, conversation=fresh)
        self.request = self.append(*facts)
        self.conversation = conversation or self.conversation
        if fault is Fault.DIED_BEFORE_SENDING:
            self.restart()
            self.append(RequestRejected(request=self.request, reason=fault.value))
            return "died"
        self.append(RequestSent(request=self.request))
        if fault is Fault.LOST_BEFORE:
            self.append(RequestLost(request=self.request, reason=fault.value))
            return "lost"
        if fault is Fault.BUSY:
            self.append(RequestRejected(request=self.request, reason=fault.value))
            return "rejected"
        anchor = plan.anchor if isinstance(plan, Continue) and self.mode is Mode.CHAIN else None
        try:
            stream = self.server.create(
                items,
                reply,
                previous_response_id=anchor,
                conversation=conversation,
                store=self.store or self.mode is not Mode.FULL,
            )
        except Rejected as refusal:
            self._refused(refusal, plan)
            return "rejected"
        if fault is Fault.LOST_AFTER:
            stream.cut(committed=True)
            self.append(RequestLost(request=self.request, reason=fault.value))
            return "lost"
        self.stream = stream
        self.append(ResponseOpened(request=self.request, id=stream.id))
        return "answering"

    def _refused(self, refusal: Rejected, plan: Continue | Replay) -> None:
        """Only what the tests made the server forget may be refused, and only once."""
        known = ("previous_response_not_found", "conversation_not_found")
        anchor = self.conversation if self.mode is Mode.CONVERSATION else plan.anchor
        if refusal.code not in known or anchor in self.ledger.lost_anchors:
            raise AssertionError(f"{refusal} (plan: {plan})") from refusal
        assert anchor is not None
        lost = AnchorLost(anchor=anchor)
        self.append(lost, RequestRejected(request=self.request, reason=str(refusal)))

    def hear(self, items: int | None = None) -> None:
        """Hear so many items of the answer, or all of it to its end."""
        assert self.stream is not None
        while items is None or items > 0:
            item = self.stream.next()
            if item is None:
                break
            self.append(item_completed(self.request, item))
            items = None if items is None else items - 1
        else:
            return
        self.append(ResponseEnded(request=self.request, ending=Ending(self.stream.ending)))
        if self.nodes[self.request].accepted:
            self._keep_context(self.stream)
        self.stream = None

    def _keep_context(self, stream: Stream) -> None:
        whole = [*stream.before, *stream.given, *stream.items]
        self.contexts[self.request] = whole

    def cut(self, *, committed: bool) -> None:
        """The stream broke; the server finishes the answer, or drops it."""
        assert self.stream is not None
        self.stream.cut(committed=committed)
        self.stream = None
        self.append(ResponseEnded(request=self.request, ending=Ending.CUT))

    def retrieve(self) -> bool:
        """GET the response that was cut, if the provider has it, and record the rest of it."""
        exchange = self.ledger.exchange(self.request)
        if exchange.id not in self.server.responses or exchange not in self.ledger.doubts():
            return False
        said = self.server.said[exchange.id]
        self.append(ResponseOpened(request=self.request, id=exchange.id))
        for item in said[len(exchange.said) :]:
            self.append(item_completed(self.request, item))
        self.append(ResponseEnded(request=self.request))
        self.contexts[self.request] = self.server.wholes[exchange.id]
        return True

    def restart(self, *, committed: bool = False) -> None:
        """The process died and another reads what was kept: as records, with no stream open."""
        before = self.ledger.state()
        self.ledger = Ledger.rebuilt(records.decoded(record) for record in kept(self.ledger))
        self.follower = Follower(self.ledger)
        assert self.ledger.state() == before
        if self.stream is not None:
            self.stream.cut(committed=committed)
            self.stream = None
        for exchange in self.ledger.doubts():
            if exchange.in_flight:
                self.append(RequestLost(request=exchange.seq, reason="the process died"))

    # --- whole turns ---------------------------------------------------------------------------

    def settle_all(self, how: str = "wire") -> None:
        for key in sorted(self.unanswered()):
            self.settle(key, how)

    def turn(self, reply: Reply) -> Plan:
        """Plan, send and hear one answer to its end."""
        plan = self.plan()
        assert isinstance(plan, Continue | Replay), plan
        if self.send(plan, reply) == "answering":
            self.hear()
        return plan

    def context(self) -> list[Wire]:
        """What the provider had when the last accepted answer on the path ended."""
        for node in reversed(self.path()):
            if node.seq in self.contexts:
                return self.contexts[node.seq]
        return []
