"""LangChain messages: `model_dump()`, `messages_to_dict()` and `langchain_core.load.dumps`.

One message has its calls in up to four places: `tool_calls` and `invalid_tool_calls`, and again as
the provider wrote them in `additional_kwargs`, in blocks of the content and in the chunks of a
stream. The first two count; the others count where a call is in neither of them, and are kept in
step with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lockstitch.core import families
from lockstitch.core.families import Family
from lockstitch.core.items import Item, Part, note_of
from lockstitch.core.outcomes import Settlement
from lockstitch.core.pairing import Order
from lockstitch.dialects import signs
from lockstitch.dialects.base import OwnItems, Wire, as_json, marked, text_of, unread, without
from lockstitch.dialects.messages import Messages

_AI: Final = "ai"
_HUMAN: Final = "human"
_TOOL: Final = "tool"
_REMOVE: Final = "remove"
_FUNCTION: Final = "function"

_KINDS: Final = {
    "ai": _AI,
    "human": _HUMAN,
    "tool": _TOOL,
    "system": "system",
    "chat": "chat",
    "function": _FUNCTION,
    "remove": _REMOVE,
    "AIMessageChunk": _AI,
    "HumanMessageChunk": _HUMAN,
    "ToolMessageChunk": _TOOL,
    "SystemMessageChunk": "system",
    "ChatMessageChunk": "chat",
    "FunctionMessageChunk": _FUNCTION,
}
"""The `type` of a message, and which kind it is."""

_CLASSES: Final = {
    "AIMessage": _AI,
    "HumanMessage": _HUMAN,
    "ToolMessage": _TOOL,
    "SystemMessage": "system",
    "ChatMessage": "chat",
    "FunctionMessage": _FUNCTION,
    "RemoveMessage": _REMOVE,
    **{name: kind for name, kind in _KINDS.items() if name.endswith("Chunk")},
}
"""The class that `langchain_core.load.dumps` names."""

_CONSTRUCTOR: Final = "constructor"
_CONSTRUCTOR_FIELDS: Final = frozenset({"lc", "type", "id", "kwargs", "method", "name", "graph"})
_ENVELOPE_FIELDS: Final = frozenset({"type", "data"})
_FIELDS: Final = frozenset(
    {
        "content",
        "additional_kwargs",
        "response_metadata",
        "type",
        "name",
        "id",
        "example",
        "role",
        "tool_calls",
        "invalid_tool_calls",
        "tool_call_chunks",
        "usage_metadata",
        "chunk_position",
    }
)
"""Fields of a message that is not a tool's: they are read, or hold no call."""

_CALL_FIELDS: Final = ("tool_calls", "invalid_tool_calls")
_PLAIN_FIELDS: Final = _FIELDS - {"tool_calls", "invalid_tool_calls", "tool_call_chunks"}
_OWN_KWARGS: Final = frozenset({"tool_calls", "tool_outputs"})

_CALL_BLOCKS: Final = {
    "tool_call": "id",
    "tool_use": "id",
    "invalid_tool_call": "id",
    "tool_call_chunk": "id",
    "function_call": "call_id",
    "custom_tool_call": "call_id",
}
"""Blocks of an AI message that are calls, and the field with the call id."""

_SERVER_CALL_BLOCKS: Final = {
    "server_tool_call": families.LANGCHAIN_SERVER_TOOL,
    "server_tool_call_chunk": families.LANGCHAIN_SERVER_TOOL,
    "server_tool_use": families.SERVER_TOOL_USE,
    "mcp_tool_use": families.MCP_TOOL_USE,
}
_RESULT_BLOCKS: Final = {
    "server_tool_result": families.LANGCHAIN_SERVER_TOOL,
    "mcp_tool_result": families.MCP_TOOL_USE,
    "tool_result": families.LANGCHAIN_TOOL,
}
"""Other blocks whose type ends with `_tool_result` are Anthropic's own server tools'."""

_PLAIN_BLOCKS: Final = signs.PLAIN_PARTS | {
    "reasoning",
    "text-plain",
    "video",
    "input_json_delta",
    "image_file",
}

_BY_SERVER: Final = frozenset(
    {families.LANGCHAIN_SERVER_TOOL, families.SERVER_TOOL_USE, families.MCP_TOOL_USE}
)

# Bound once: members of an enum are slow to look up, and `read` runs for every message.
_CALL, _OUTPUT = Part.CALL, Part.OUTPUT
_INPUT_ITEM: Final = Item(Part.INPUT)
_MODEL_ITEM: Final = Item(Part.MODEL)
_OTHER_ITEM: Final = Item(Part.OTHER)
_FLAT: Final = families.LANGCHAIN_TOOL
_IN_DATA: Final = families.LANGCHAIN_TOOL_IN_DATA
_CONSTRUCTED: Final = families.LANGCHAIN_TOOL_CONSTRUCTED

_ANTHROPIC: Final = Messages()


class LangChain(OwnItems):
    """The dialect of LangChain's messages.

    Slot n of an AI message is the n-th of its calls: those in `tool_calls`, then those in
    `invalid_tool_calls`, then calls and results that only a block of the content has. Slot n of
    another message is its n-th block with a result."""

    name = "langchain"
    order = Order.NEXT

    def claims(self, wire: Mapping[str, Any]) -> bool:
        kind, body, _ = _opened(wire)
        if kind is None:
            return False
        if body is not wire:
            return text_of(body.get("type")) in _KINDS or "content" in body or kind is _REMOVE
        if "role" in wire and wire.get("type") != "chat":
            return False
        if kind is _TOOL:
            return "tool_call_id" in wire
        if kind is _AI or kind is _HUMAN:
            return "content" in wire
        return "additional_kwargs" in wire and "content" in wire

    def read(self, wire: Mapping[str, Any]) -> Sequence[Item]:
        kind, body, family = _opened(wire)
        if kind is None:
            return (_read_other(wire),)
        if kind is _TOOL:
            return (
                Item(
                    _OUTPUT,
                    family,
                    _key_in(body, "tool_call_id"),
                    None,
                    None,
                    text_of(body.get("name")),
                    0,
                    False,
                    note_of(body.get("content")),
                ),
            )
        sign = None if body is wire else _sign_beside_body(wire)
        if kind is _AI:
            return _read_ai(body, family, sign)
        if kind is _REMOVE:
            return (unread("a RemoveMessage, which deletes another message when it is applied"),)
        if kind is _FUNCTION:
            return (unread("a FunctionMessage, which has no call id"),)
        plain = _MODEL_ITEM if body.get("role") == "assistant" else _INPUT_ITEM
        sign = sign or _sign_in_fields(body, _PLAIN_FIELDS)
        if type(content := body.get("content")) is not str:
            return _read_blocks(content, plain, family, sign)
        return (marked(plain, sign),)

    def leads(self, wire: Mapping[str, Any]) -> bool:
        return _opened(wire)[0] == "system"

    def output(
        self, family: Family, key: str | None, said: Settlement, name: str | None = None
    ) -> Wire:
        if family is families.LANGCHAIN_SERVER_TOOL:
            return _server_result(key, said)
        if family in _BY_SERVER:
            return _ANTHROPIC.output(family, key, said, name)
        status = "success" if said.well else "error"
        return _tool_message(family, said.text, key, status, name)

    def take(self, wire: Wire, slots: set[int]) -> tuple[Wire | None, list[Wire]]:
        kind, body, family = _opened(wire)
        if kind is _TOOL or kind is None:
            return None, [wire]
        found = _slots(body, kind)
        taken = [_piece(body, found[slot], family) for slot in sorted(slots)]
        left = _without_slots(body, found, slots)
        made = any(left.get(field) for field in _CALL_FIELDS) or _raw_calls(left)
        return (_with_body(wire, left) if made or left.get("content") else None), taken

    def beside(self, family: Family, after: Any) -> bool:
        return family.by_server  # the server's results are blocks of the model's own message

    def put(self, outputs: list[Wire]) -> list[Wire]:
        return [_as_message(output) for output in outputs]

    def put_beside(self, wire: Wire, slot: int, output: Wire) -> Wire:
        kind, body, _ = _opened(wire)
        call = _slots(body, kind)[slot]  # only a block has its result beside it
        if _opened(output)[0] is _TOOL:
            family = _SERVER_CALL_BLOCKS[call.entry["type"]]
            output = _result_block(_plain_block(output), family, text_of(call.entry.get("name")))
        blocks, at = body["content"], call.at + 1
        return _with_body(wire, {**body, "content": [*blocks[:at], output, *blocks[at:]]})

    def retype(self, wire: Wire, slot: int, family: Family, name: str | None = None) -> Wire:
        kind, body, shape = _opened(wire)
        if kind is not _TOOL:
            found = _slots(body, kind)[slot]
            block = _result_block(body["content"][found.at], family, name)
            return _with_block(wire, body, found.at, block)
        if family not in _BY_SERVER:
            return wire  # a message in another shape answers as well
        made = _result_block(_plain_block(wire), family, name)
        return _message(shape, _AI, {"content": [made], "type": _AI})

    def rekey(self, wire: Wire, slot: int, old: str, new: str) -> Wire:
        kind, body, _ = _opened(wire)
        if kind is _TOOL:
            return _with_body(wire, {**body, "tool_call_id": new})
        found = _slots(body, kind)
        return _with_body(wire, _rekeyed(body, found, slot, old, new))

    def reword(self, wire: Wire, slot: int, said: Settlement) -> Wire:
        kind, body, _ = _opened(wire)
        status = "success" if said.well else "error"
        if kind is _TOOL:
            return _with_body(wire, {**body, "content": said.text, "status": status})
        found = _slots(body, kind)[slot]
        block = body["content"][found.at]
        if block.get("type") == "server_tool_result":
            made = {**block, "output": said.text, "status": status}
        else:
            made = {**without(block, "is_error"), "content": said.text}
            if not said.well:
                made["is_error"] = True
        return _with_block(wire, body, found.at, made)

    def strip_id(self, wire: Wire, slot: int, nth: int = 2) -> Wire:
        return wire  # nothing is joined by the id of a message, and copies of it are accepted


# --- the shapes of a message -------------------------------------------------------------------


def _opened(wire: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any], Family]:
    """The kind of a message, its fields, and the family of its calls and results: one for each
    shape. The kind is None if this is not a message."""
    tag = wire.get("type")
    if type(tag) is not str:
        return None, wire, _FLAT
    kind = _KINDS.get(tag)
    if kind is not None:
        if "data" in wire and "content" not in wire and type(wire["data"]) is dict:
            return kind, wire["data"], _IN_DATA
        return kind, wire, _FLAT
    if tag == _CONSTRUCTOR:
        path, body = wire.get("id"), wire.get("kwargs")
        if type(path) is list and path and type(path[-1]) is str and type(body) is dict:
            kind = _CLASSES.get(path[-1]) or _KINDS.get(text_of(body.get("type")) or "")
            if kind is not None:
                return kind, body, _CONSTRUCTED
    return None, wire, _FLAT


def _with_body(wire: Wire, body: Wire) -> Wire:
    """The message with other fields, in its own shape."""
    family = _opened(wire)[2]
    if family is _IN_DATA:
        return {**wire, "data": body}
    return {**wire, "kwargs": body} if family is _CONSTRUCTED else body


def _message(family: Family, kind: str, body: Wire) -> Wire:
    """A new message in the shape that belongs to a family."""
    if family is _IN_DATA:
        return {"type": kind, "data": body}
    if family is _CONSTRUCTED:
        name = "AIMessage" if kind is _AI else "ToolMessage"
        path = ["langchain", "schema", "messages", name]
        return {"lc": 1, "type": _CONSTRUCTOR, "id": path, "kwargs": body}
    return body


def _tool_message(
    family: Family, content: Any, key: str | None, status: str, name: str | None = None
) -> Wire:
    body: Wire = {"content": content, "type": _TOOL, "tool_call_id": key, "status": status}
    if name is not None:
        body["name"] = name
    return _message(family, _TOOL, body)


def _server_result(key: str | None, said: Settlement) -> Wire:
    return {
        "type": "server_tool_result",
        "tool_call_id": key,
        "status": "success" if said.well else "error",
        "output": said.text,
    }


def _with_block(wire: Wire, body: Mapping[str, Any], index: int, block: Wire) -> Wire:
    blocks = list(body["content"])
    blocks[index] = block
    return _with_body(wire, {**body, "content": blocks})


def _key_in(holder: Mapping[str, Any], field: str) -> str | None:
    """A call id. LangChain makes texts of numbers."""
    key = holder.get(field)
    if type(key) is str:
        return key or None
    return str(key) if type(key) is int else text_of(key)


# --- reading -----------------------------------------------------------------------------------


def _read_other(wire: Mapping[str, Any]) -> Item:
    """What is no message in a shape of LangChain's. LangChain takes texts with a role, too."""
    role = wire.get("role")
    if isinstance(role, str):
        plain = _MODEL_ITEM if role == "assistant" else _INPUT_ITEM
        return marked(plain, signs.sign_in_text(wire, _FIELDS))
    return marked(_OTHER_ITEM, signs.sign_within(wire))


def _read_ai(body: Mapping[str, Any], family: Family, sign: str | None) -> Sequence[Item]:
    content = body.get("content")
    calls = body.get("tool_calls")
    if (
        sign is None
        and type(content) is str
        and type(calls) is list
        and not body.get("invalid_tool_calls")
        and not body.get("tool_call_chunks")
        and not body.get("additional_kwargs")
        and _FIELDS.issuperset(body)
    ):
        if not calls:
            return (_MODEL_ITEM,)
        if len(calls) == 1:
            return (_call_item(calls[0], 0, family, "a tool call without an id"),)
        return [
            _call_item(call, n, family, "a tool call without an id") for n, call in enumerate(calls)
        ]
    written = _streamed_arguments(body)
    items = [_item(slot, n, family, written) for n, slot in enumerate(_slots(body, _AI))]
    sign = sign or _sign_in_fields(body, _FIELDS) or _sign_in_calls(body)
    if sign is None and type(content) is not str:
        sign = _sign_in_blocks(content, _AI)
    if sign is not None or not items:
        items.append(_behind(items, _MODEL_ITEM, sign))
    return items


def _behind(items: Sequence[Item], plain: Item, sign: str | None) -> Item:
    """An item for the rest of a message, in a slot of its own."""
    return Item(plain.part, slot=len(items), unread=sign)


def _call_item(call: Any, slot: int, family: Family, problem: str) -> Item:
    """An entry of `tool_calls`. Its arguments are an object; only a text can be cut off."""
    if type(call) is not dict:
        return unread(problem, slot)
    key = call.get("id")
    if type(key) is not str or not key:
        key = _key_in(call, "id")
        if key is None:
            return unread(problem, slot)
    name = call.get("name")
    args = call.get("args")
    return Item(
        _CALL,
        family,
        key,
        None,
        None,
        name if type(name) is str else None,
        slot,
        False,
        None,
        None,
        False,
        False,
        None,
        False,
        args if type(args) is str else None,
    )


class _Slot(NamedTuple):
    """Where a call or a result of a message is."""

    field: str
    """`tool_calls`, `invalid_tool_calls`, `additional_kwargs` or `content`."""
    at: int
    entry: Any
    key: str | None


def _slots(body: Mapping[str, Any], kind: str | None) -> list[_Slot]:
    """The calls and results of a message, each of them once."""
    found: list[_Slot] = []
    if kind is _AI:
        for field in _CALL_FIELDS:
            calls = body.get(field)
            if type(calls) is list:
                found += [_Slot(field, n, call, _id_of(call)) for n, call in enumerate(calls)]
        if not found:
            raw = _raw_calls(body)
            found = [
                _Slot("additional_kwargs", n, call, _id_of(call)) for n, call in enumerate(raw)
            ]
    content = body.get("content")
    if type(content) is list:
        named = {slot.key for slot in found}
        for n, block in enumerate(content):
            if type(block) is not dict or type(tag := block.get("type")) is not str:
                continue
            if _is_result(tag):
                found.append(_Slot("content", n, block, _result_key(block)))
            elif kind is not _AI:
                continue
            elif tag in _CALL_BLOCKS:
                key = _key_in(block, _CALL_BLOCKS[tag])
                if key is None or key not in named:
                    found.append(_Slot("content", n, block, key))
            elif tag in _SERVER_CALL_BLOCKS:
                found.append(_Slot("content", n, block, _key_in(block, "id")))
    return found


def _id_of(call: Any) -> str | None:
    return _key_in(call, "id") if isinstance(call, dict) else None


def _raw_calls(body: Mapping[str, Any]) -> list[Any]:
    """The calls as the provider wrote them, which `tool_calls` repeats."""
    kwargs = body.get("additional_kwargs")
    raw = kwargs.get("tool_calls") if isinstance(kwargs, dict) else None
    return raw if isinstance(raw, list) else []


def _is_result(tag: str) -> bool:
    return tag in _RESULT_BLOCKS or tag.endswith("_tool_result")


def _result_key(block: Mapping[str, Any]) -> str | None:
    return _key_in(block, _result_field(block))


def _result_field(block: Mapping[str, Any]) -> str:
    return "tool_call_id" if block.get("type") == "server_tool_result" else "tool_use_id"


def _item(slot: _Slot, n: int, family: Family, written: Mapping[str | None, str | None]) -> Item:
    """The core item of a slot of an AI message; ``written`` are streamed arguments by call id."""
    entry, key = slot.entry, slot.key
    if slot.field in _CALL_FIELDS:
        read = _call_item(entry, n, family, f"an entry of {slot.field} without an id")
        if slot.field == "tool_calls" and read.part is _CALL and read.arguments is None:
            text = written.get(key)
            if text is not None:
                return _call(family, key, read.name, n, text)
        return read
    if slot.field == "additional_kwargs":
        function = entry.get("function") if isinstance(entry, dict) else None
        function = function if isinstance(function, dict) else {}
        if key is None:
            return unread("an entry of additional_kwargs.tool_calls without an id", n)
        return _call(family, key, function.get("name"), n, function.get("arguments"))
    tag = entry["type"]
    if _is_result(tag):
        own = _result_family(tag, family)
        return Item(
            _OUTPUT, own, key, slot=n, note=_block_note(entry), misplaced=own not in _BY_SERVER
        )
    if key is None:
        return unread(f"a {tag} block without an id", n)
    server = _SERVER_CALL_BLOCKS.get(tag)
    text = _block_arguments(entry)
    partial = entry.get("status") == "incomplete"
    return _call(server or family, key, entry.get("name"), n, text, partial=partial)


def _call(
    family: Family, key: str | None, name: Any, slot: int, text: Any, *, partial: bool = False
) -> Item:
    return Item(
        _CALL,
        family,
        key,
        name=text_of(name),
        slot=slot,
        partial=partial,
        arguments=text if isinstance(text, str) else None,
    )


def _result_family(tag: str, shape: Family) -> Family:
    family = _RESULT_BLOCKS.get(tag, families.SERVER_TOOL_USE)
    return shape if family is families.LANGCHAIN_TOOL else family


def _block_note(block: Mapping[str, Any]) -> str | None:
    return note_of(block.get("output", block.get("content")))


def _block_arguments(block: Mapping[str, Any]) -> str | None:
    """The arguments of a call in a block, where the block has them as text."""
    for field in ("partial_json", "arguments", "args", "input"):
        if isinstance(text := block.get(field), str) and text:
            # The input of a custom tool is any text.
            return None if block.get("type") == "custom_tool_call" else text
    return None


def _streamed_arguments(body: Mapping[str, Any]) -> dict[str | None, str | None]:
    """What the model wrote as the arguments of calls, by call id, where the message still has it:
    LangChain parses what was cut off as if it were complete."""
    written: dict[str | None, str | None] = {}
    content, chunks = body.get("content"), body.get("tool_call_chunks")
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            written.setdefault(_key_in(block, "id"), text_of(block.get("partial_json")))
    in_chunks: dict[str | None, list[Any]] = {}
    for chunk in chunks if isinstance(chunks, list) else ():
        if (key := _id_of(chunk)) is not None:
            in_chunks.setdefault(key, []).append(chunk.get("args"))
    for key, texts in in_chunks.items():
        if len(texts) == 1 and isinstance(texts[0], str):
            written[key] = texts[0]
    return written


def _read_blocks(content: Any, plain: Item, family: Family, sign: str | None) -> Sequence[Item]:
    """A message from outside, which may hold results as blocks."""
    items: list[Item] = []
    rest = not isinstance(content, list) or not content
    for block in content if isinstance(content, list) else ():
        tag = block.get("type") if isinstance(block, dict) else None
        if isinstance(tag, str) and _is_result(tag):
            key, note, own = _result_key(block), _block_note(block), _result_family(tag, family)
            misplaced = own in _BY_SERVER
            items.append(Item(_OUTPUT, own, key, slot=len(items), note=note, misplaced=misplaced))
        else:
            rest = True
    sign = sign or _sign_in_blocks(content, _HUMAN)
    if rest or sign is not None:
        items.append(_behind(items, plain, sign))
    return items


# --- signs of calls that were not read ---------------------------------------------------------


def _sign_beside_body(wire: Mapping[str, Any]) -> str | None:
    """A sign around the fields of a message."""
    known = _CONSTRUCTOR_FIELDS if wire.get("type") == _CONSTRUCTOR else _ENVELOPE_FIELDS
    return _sign_in_rest(wire, known)


def _sign_in_fields(body: Mapping[str, Any], known: frozenset[str]) -> str | None:
    found = _sign_in_rest(body, known)
    kwargs = body.get("additional_kwargs")
    if found is None and kwargs:
        if not isinstance(kwargs, dict):
            return signs.sign_within(kwargs)
        own = _OWN_KWARGS if "tool_calls" in known else frozenset[str]()
        repeated = own and _repeated_name(kwargs) in {name for _, name in _named_calls(body)}
        found = _sign_in_rest(kwargs, own | {"function_call"} if repeated else own)
        outputs = kwargs.get("tool_outputs") if found is None else None
        if isinstance(outputs, list):
            # What OpenAI's own tools did; most of them hold their result.
            found = signs.sign_within([one for one in outputs if not _is_self_contained(one)])
    return found


def _repeated_name(kwargs: Mapping[str, Any]) -> str | None:
    """The tool in `function_call`: langchain-google-genai repeats the last call of a message
    there, without its id."""
    call = kwargs.get("function_call")
    return text_of(call.get("name")) if isinstance(call, dict) else None


def _named_calls(body: Mapping[str, Any]) -> list[tuple[tuple[str, int], str | None]]:
    """Where the entries of `tool_calls` and `invalid_tool_calls` are, and the tools they name."""
    return [
        ((field, n), text_of(call.get("name")))
        for field in _CALL_FIELDS
        if isinstance(calls := body.get(field), list)
        for n, call in enumerate(calls)
        if isinstance(call, dict)
    ]


def _sign_in_rest(holder: Mapping[str, Any], known: frozenset[str]) -> str | None:
    if known.issuperset(holder):
        return None
    return signs.sign_within({name: holder[name] for name in holder if name not in known})


def _sign_in_calls(body: Mapping[str, Any]) -> str | None:
    """A field of calls that is not a list."""
    for field in _CALL_FIELDS:
        calls = body.get(field)
        if calls and type(calls) is not list:
            return f"`{field}`"
    kwargs = body.get("additional_kwargs")
    raw = kwargs.get("tool_calls") if isinstance(kwargs, dict) else None
    return "`tool_calls`" if raw and not isinstance(raw, list) else None


def _sign_in_blocks(content: Any, kind: str) -> str | None:
    if not isinstance(content, list):
        return signs.sign_within(content)
    for block in content:
        if not isinstance(block, dict):
            continue
        tag = block.get("type")
        tag = tag if isinstance(tag, str) else ""
        if _is_result(tag) or tag in families.SELF_CONTAINED:
            continue
        if kind is _AI and (tag in _CALL_BLOCKS or tag in _SERVER_CALL_BLOCKS):
            continue
        if tag in _PLAIN_BLOCKS:
            if tag != "input_json_delta" and (found := signs.sign_of(block)) is not None:
                return found
        elif (found := signs.sign_within(block)) is not None:
            return found
    return None


def _is_self_contained(item: Any) -> bool:
    return isinstance(item, dict) and text_of(item.get("type")) in families.SELF_CONTAINED


# --- changing ----------------------------------------------------------------------------------


def _piece(body: Mapping[str, Any], slot: _Slot, family: Family) -> Wire:
    """What is taken out of a slot: a result as the message that it would be of its own, a result
    of the server as its block, a call as its entry."""
    entry = slot.entry
    if slot.field == "content" and entry.get("type") == "tool_result":
        status = "error" if entry.get("is_error") else "success"
        return _tool_message(family, entry.get("content"), slot.key, status)
    return entry if isinstance(entry, dict) else {"entry": entry}


def _owners(entries: Sequence[Any], found: Sequence[_Slot], fields: Mapping[str, str]) -> list[int]:
    """For each entry that repeats calls: the slot whose call it repeats, or -1."""
    of_key: dict[str, list[int]] = {}
    for n, slot in enumerate(found):
        if slot.key is not None and slot.field != "content":
            of_key.setdefault(slot.key, []).append(n)
    seen: dict[str, int] = {}
    owners: list[int] = []
    for entry in entries:
        tag = entry.get("type") if isinstance(entry, dict) else None
        field = fields.get(tag if isinstance(tag, str) else "", fields.get("", ""))
        key = _key_in(entry, field) if field and isinstance(entry, dict) else None
        if key is None or key not in of_key:
            owners.append(-1)
            continue
        nth = seen.get(key, 0)
        seen[key] = nth + 1
        slots = of_key[key]
        owners.append(slots[min(nth, len(slots) - 1)])
    return owners


_BY_ID: Final = {"": "id"}


def _without_slots(body: Mapping[str, Any], found: list[_Slot], slots: set[int]) -> Wire:
    """The fields of a message without these slots, and without what repeats them."""
    left = dict(body)
    gone = {(found[n].field, found[n].at) for n in slots}
    for field in _CALL_FIELDS:
        calls = body.get(field)
        if isinstance(calls, list) and any((field, n) in gone for n in range(len(calls))):
            left[field] = [call for n, call in enumerate(calls) if (field, n) not in gone]
    content = body.get("content")
    if isinstance(content, list):
        owners = _owners(content, found, _CALL_BLOCKS)
        blocks = [
            block
            for n, block in enumerate(content)
            if ("content", n) not in gone and owners[n] not in slots
        ]
        if len(blocks) != len(content):
            left["content"] = blocks
    chunks = body.get("tool_call_chunks")
    if isinstance(chunks, list):
        left["tool_call_chunks"] = _kept(chunks, found, slots)
    raw = _raw_calls(body)
    kwargs = body.get("additional_kwargs")
    if isinstance(kwargs, dict) and kwargs:
        keys = {found[n].key for n in slots} - {
            slot.key for n, slot in enumerate(found) if n not in slots
        }
        made = {name: _without_keys(value, keys) for name, value in kwargs.items()}
        if raw:
            made["tool_calls"] = _kept(raw, found, slots)
            if not made["tool_calls"]:
                del made["tool_calls"]
        taken = {name for place, name in _named_calls(body) if place in gone}
        if _repeated_name(kwargs) in taken:
            made.pop("function_call", None)
        left["additional_kwargs"] = made
    return left


def _kept(entries: list[Any], found: list[_Slot], slots: set[int]) -> list[Any]:
    owners = _owners(entries, found, _BY_ID)
    return [entry for entry, owner in zip(entries, owners, strict=True) if owner not in slots]


def _without_keys(value: Any, keys: set[str | None]) -> Any:
    """A table by call id, such as the item ids or signatures of the calls, without these."""
    if isinstance(value, dict) and not keys.isdisjoint(value):
        return {name: inner for name, inner in value.items() if name not in keys}
    return value


def _rekeyed(body: Mapping[str, Any], found: list[_Slot], slot: int, old: str, new: str) -> Wire:
    """The fields of a message with one call id replaced, wherever the message repeats it."""
    made = dict(body)
    where = found[slot]
    if where.field in _CALL_FIELDS:
        calls = list(body[where.field])
        calls[where.at] = {**calls[where.at], "id": new}
        made[where.field] = calls
    content = body.get("content")
    if isinstance(content, list):
        owners = _owners(content, found, _CALL_BLOCKS)
        blocks = [
            _with_key(block, new)
            if owners[n] == slot or (where.field == "content" and where.at == n)
            else block
            for n, block in enumerate(content)
        ]
        made["content"] = blocks
    chunks = body.get("tool_call_chunks")
    if isinstance(chunks, list):
        made["tool_call_chunks"] = _entries_rekeyed(chunks, found, slot, new)
    kwargs = body.get("additional_kwargs")
    if isinstance(kwargs, dict) and kwargs:
        others = {one.key for n, one in enumerate(found) if n != slot}
        kept = {
            name: {new if key == old else key: inner for key, inner in value.items()}
            if isinstance(value, dict) and old in value and old not in others
            else value
            for name, value in kwargs.items()
        }
        if raw := _raw_calls(body):
            kept["tool_calls"] = _entries_rekeyed(raw, found, slot, new)
        made["additional_kwargs"] = kept
    return made


def _entries_rekeyed(entries: list[Any], found: list[_Slot], slot: int, new: str) -> list[Any]:
    owners = _owners(entries, found, _BY_ID)
    return [
        {**entry, "id": new} if owner == slot else entry
        for entry, owner in zip(entries, owners, strict=True)
    ]


def _with_key(block: Wire, new: str) -> Wire:
    tag = block["type"]
    if _is_result(tag):
        return {**block, _result_field(block): new}
    return {**block, _CALL_BLOCKS.get(tag, "id"): new}


def _plain_block(message: Wire) -> Wire:
    """The result in a tool message, as a block."""
    body = _opened(message)[1]
    return {
        "type": "server_tool_result",
        "tool_call_id": body.get("tool_call_id"),
        "status": "error" if body.get("status") == "error" else "success",
        "output": body.get("content"),
    }


def _as_message(output: Wire) -> Wire:
    """A result as a tool message, also if it was a block."""
    tag = output.get("type")
    if not isinstance(tag, str) or not _is_result(tag):
        return output
    block = _result_block(output, _FLAT, None)
    status = "error" if block.get("is_error") else "success"
    return _tool_message(_FLAT, block["content"], block["tool_use_id"], status)


def _result_block(block: Wire, family: Family, name: str | None) -> Wire:
    """A result as a block that answers calls of a family."""
    said = block.get("output", block.get("content"))
    key = _result_key(block)
    failed = block.get("status") == "error" or bool(block.get("is_error"))
    if family is families.LANGCHAIN_SERVER_TOOL:
        status = "error" if failed else "success"
        made: Wire = {"type": "server_tool_result", "tool_call_id": key, "status": status}
        return {**made, "output": said}
    if family is families.SERVER_TOOL_USE:
        made = _ANTHROPIC.retype({"content": [{"type": ""}]}, 0, family, name)
        return {"type": made["content"][0]["type"], "tool_use_id": key, "content": said}
    kind = "mcp_tool_result" if family is families.MCP_TOOL_USE else "tool_result"
    if not isinstance(said, str | list):
        said = as_json(said).decode()
    made = {"type": kind, "tool_use_id": key, "content": said}
    return {**made, "is_error": True} if failed else made
