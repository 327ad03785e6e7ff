"""A replay as it may be sent: to the upstream that lost its anchor, or to another one.

At home an item stays what it was. Abroad it loses what belongs to the old upstream, by the tables
below; what only that one can hold is named and nothing is sent (`CannotTravel`): context is never
lost without a word. Either way the result is proven whole before it is returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lockstitch.core import rules
from lockstitch.core.errors import LockstitchError
from lockstitch.core.findings import Finding
from lockstitch.core.items import Part
from lockstitch.dialects import by_name
from lockstitch.dialects.base import Wire, text_of, without
from lockstitch.dialects.examination import examine

Lookup: TypeAlias = Callable[[str], Mapping[str, Any] | None]
"""The item that an id names, where the journal has it."""

_RESPONSES: Final = by_name("responses")


class CannotTravel(LockstitchError):
    """Something in a conversation is only at the upstream that it began with."""

    def __init__(self, names: Sequence[str]) -> None:
        held = ", ".join(names)
        super().__init__(
            f"This conversation cannot continue on another upstream: {held}. Only the upstream "
            "it began on has that. Send the content itself, or wait until that upstream answers."
        )
        self.names = tuple(names)


class NotWhole(LockstitchError):
    """What would be replayed is not whole; nothing was sent."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        found = "; ".join(finding.message for finding in findings)
        super().__init__(
            f"The history to resend is not valid: {found}. Send each call with its output, "
            "without previous_response_id or conversation."
        )
        self.findings = tuple(findings)


# --- what belongs to one upstream, as tables ---------------------------------------------------

ID_STAYS: Final = frozenset(
    {
        # The id joins the call to its output.
        "mcp_approval_request",
        "local_shell_call",
        "local_shell_call_output",
        # A provider does not take these without one.
        "computer_call",
        "program",
        "program_output",
        "image_generation_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "mcp_list_tools",
    }
)

STATUS_STAYS: Final = frozenset(
    {
        # It says how the call ended, or a provider does not take them without one.
        "apply_patch_call",
        "apply_patch_call_output",
        "computer_call",
        "computer_call_output",
        "program_output",
        "local_shell_call",
        "image_generation_call",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_call",
        "tool_search_output",
    }
)

HOLDS: Final = {
    "image_generation_call": ("result",),
    "web_search_call": ("action",),
    "file_search_call": ("queries", "results"),
    "mcp_call": ("output", "error"),
    "mcp_list_tools": ("tools", "error"),
}
"""What calls that a server ran must hold, one of these at least, to be more than an id."""

POINTERS: Final = {
    "file_id": "file",
    "container_id": "container",
    "vector_store_id": "vector store",
}
"""Fields by which an item names what an upstream keeps. Lists of them end in `s`."""

CARRIERS: Final = ("file_data", "file_url", "image_url")
"""Fields of a content part that make its `file_id` needless."""

WRITTEN_BY_USERS: Final = frozenset(
    {"arguments", "parameters", "input_schema", "schema", "format", "metadata"}
)
"""Fields of the API with names of a user's own in them: what looks like a pointer there is none."""

MOST_LEVELS: Final = 12
"""How deep an item is looked into for pointers. The API nests four levels; what is deeper is
somebody's data."""


# --- at home -----------------------------------------------------------------------------------


def at_home(items: Iterable[Wire], *, lookup: Lookup | None = None) -> list[Wire]:
    """A replay for the upstream that has lost its anchor: everything as the ledger gives it, and
    references as the items they stand for, where those are known. Raises `NotWhole`."""
    sent = [_resolved(item, lookup) or item for item in items]
    # A call that broke off while it was made asks for no output, where its status says so.
    findings = [
        finding
        for finding in examine(_RESPONSES, sent).finish()
        if finding.rule not in rules.OPEN_CALL or not _broke_off(sent[finding.place.at])
    ]
    if findings:
        raise NotWhole(findings)
    return sent


# --- abroad ------------------------------------------------------------------------------------


def abroad(
    items: Iterable[Wire],
    *,
    lookup: Lookup | None = None,
    settings: Mapping[str, Any] | None = None,
) -> list[Wire]:
    """A replay for another upstream. ``settings`` are the other fields of the request, which may
    name things too. Raises `CannotTravel` with all that cannot, or `NotWhole`."""
    names: list[str] = list(_named_in_settings(settings or {}))
    sent: list[Wire] = []
    for item in items:
        resolved = _resolved(item, lookup)
        if resolved is None:
            names.append(f"item {item.get('id')}, which is only referred to")
            continue
        travelling = _travelling(resolved)
        if travelling is not None:
            names += _held(travelling)
            sent.append(travelling)
    if names:
        raise CannotTravel(list(dict.fromkeys(names)))
    sent = _without_halves(sent)
    findings = examine(_RESPONSES, sent).finish()
    if findings:
        raise NotWhole(findings)
    return sent


def referred(item: Wire) -> str | None:
    """The id of the item that this one only refers to. It needs no type for that."""
    if text_of(item.get("type")) not in (None, "item_reference"):
        return None
    return text_of(item.get("id")) if _is_reference(item) else None


def only_named(item: Wire) -> str | None:
    """The id of what a provider keeps, if the item is only a name for it."""
    if item.get("type") == "reasoning" and not item.get("encrypted_content"):
        return text_of(item.get("id"))
    return referred(item)


def _is_reference(item: Mapping[str, Any]) -> bool:
    return _RESPONSES.read(item)[0].part is Part.REFERENCE


def _resolved(item: Wire, lookup: Lookup | None) -> Wire | None:
    """The item itself, or the one that it refers to; None if nobody here has that."""
    if not _is_reference(item):
        return item
    named = text_of(item.get("id"))
    found = lookup(named) if lookup is not None and named is not None else None
    if found is None or _is_reference(found):
        return None
    return dict(found)


def _travelling(item: Wire) -> Wire | None:
    """The item without what belongs to the old upstream; None if it stays behind."""
    kind = text_of(item.get("type"))
    part = _RESPONSES.read(item)[0].part
    if part is Part.REASONING:
        # Encrypted for one upstream, or a mere name of what it keeps. Where it is readable, an
        # API still wants its id, which means nothing elsewhere. What it led to is all there.
        return None
    if part is Part.OTHER:
        return item  # a type that is not known: not even what its id means
    if kind not in ID_STAYS and "id" in item:
        item = without(item, "id")
    if kind not in STATUS_STAYS and "status" in item and not _broke_off(item):
        item = without(item, "status")
    for name in ("content", "output"):
        parts = item.get(name)
        if isinstance(parts, list):
            item = {**item, name: [_part_travelling(one) for one in parts]}
    return item


def _part_travelling(part: Any) -> Any:
    """A content part without citations of files, and without a file id that it does not need."""
    if not isinstance(part, dict):
        return part
    if any(part.get(name) for name in CARRIERS) and "file_id" in part:
        part = without(part, "file_id")
    cited = part.get("annotations")
    if isinstance(cited, list):
        kept = [one for one in cited if not any(True for _ in _pointers(one))]
        if len(kept) < len(cited):
            part = {**part, "annotations": kept}
    return part


def _broke_off(item: Wire) -> bool:
    return item.get("status") == "incomplete" and _RESPONSES.read(item)[0].part is Part.CALL


def _without_halves(items: list[Wire]) -> list[Wire]:
    """Calls that broke off while they were made, and that nobody answered, stay behind: another
    upstream would ask for an output. A call that was answered stays, and counts as whole."""
    if not any(_broke_off(item) for item in items):
        return items
    open_at = {finding.place.at for finding in examine(_RESPONSES, items).finish()}
    kept = [item for at, item in enumerate(items) if not (at in open_at and _broke_off(item))]
    return [_counted_whole(item) if _broke_off(item) else item for item in kept]


def _counted_whole(call: Wire) -> Wire:
    if call.get("type") in STATUS_STAYS:
        return {**call, "status": "completed"}
    return without(call, "status")


def _held(item: Wire) -> Iterator[str]:
    """What this item names that only its upstream has."""
    kind = text_of(item.get("type"))
    if item.get("encrypted_content"):
        what = "the summary" if kind == "compaction" else "the encrypted content"
        yield f"{what} in {kind or 'an item'} {item.get('id') or ''}".rstrip()
    if kind in HOLDS and all(item.get(name) is None for name in HOLDS[kind]):
        yield f"the result of {kind} {item.get('id') or ''}".rstrip()
    yield from _pointers(item)


def _pointers(value: Any, levels: int = MOST_LEVELS) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in WRITTEN_BY_USERS:
                continue
            what = POINTERS.get(name) or POINTERS.get(str(name).removesuffix("s"))
            if what is not None and inner:
                listed = inner if isinstance(inner, list) else [inner]
                yield from (f"{what} {one}" for one in listed if isinstance(one, str))
            elif levels:
                yield from _pointers(inner, levels - 1)
    elif isinstance(value, list) and levels:
        for inner in value:
            yield from _pointers(inner, levels - 1)


def _named_in_settings(settings: Mapping[str, Any]) -> Iterator[str]:
    """What the rest of a request names: a stored prompt, and what its tools look into."""
    prompt = settings.get("prompt")
    if isinstance(prompt, Mapping) and prompt.get("id"):
        yield f"prompt {prompt['id']}"
    tools = settings.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict):
            continue
        container = tool.get("container")
        if isinstance(container, str):
            yield f"container {container}"
        yield from _pointers(tool)
