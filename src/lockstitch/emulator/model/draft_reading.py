"""One item of a script into a draft: the table of the short forms.

A form is known by its first key (`text`, `call`, `shell`, …). What has no form of its own is
written under `item`, in the provider's words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lockstitch.emulator.model import replies
from lockstitch.emulator.model.plain_values import bad, kind
from lockstitch.emulator.model.replies import Draft
from lockstitch.emulator.model.script_fields import (
    Read,
    anything,
    check_keys,
    fields,
    list_of,
    mapping,
    one_of,
    one_or_list_of,
    text,
)


@dataclass(frozen=True, slots=True)
class Form:
    """A short form: what its first key holds, its other keys, and the draft they make."""

    head: Read
    also: Mapping[str, Read]
    make: Callable[..., Draft]
    needs: tuple[str, ...] = ()
    calls: bool = False


def _item(value: Any, place: str) -> Draft:
    item = mapping(value, place)
    if not isinstance(item.get("type"), str) or not item["type"]:
        raise bad(place, "an item needs a `type`, such as computer_call")
    return item


def _verbatim(item: Draft) -> Draft:
    return dict(item)


def _shell(commands: list[str], **more: Any) -> Draft:
    return replies.shell_call(*commands, **more)


def _local_shell(command: list[str], **more: Any) -> Draft:
    return replies.local_shell_call(*command, **more)


def _computer(actions: list[dict[str, Any]], **more: Any) -> Draft:
    return replies.computer_call(*actions, **more)


def _approval(name: str, *, server: str, **more: Any) -> Draft:
    return replies.approval_request(server, name, **more)


_ID: Mapping[str, Read] = {"id": text}
_IDS: Mapping[str, Read] = {"id": text, "call_id": text}
_PHASE = one_of("commentary", "final_answer")
_EXECUTION = one_of("client", "server")

FORMS: Final[Mapping[str, Form]] = {
    "text": Form(text, {"phase": _PHASE, **_ID}, replies.text),
    "refusal": Form(text, _ID, replies.refusal),
    "reasoning": Form(text, {"content": text, "encrypted_content": text, **_ID}, replies.reasoning),
    "call": Form(
        text, {"arguments": anything, "namespace": text, **_IDS}, replies.call, calls=True
    ),
    "custom": Form(
        text,
        {"input": text, "namespace": text, **_IDS},
        replies.custom_call,
        needs=("input",),
        calls=True,
    ),
    "shell": Form(one_or_list_of(text), _IDS, _shell, calls=True),
    "local_shell": Form(one_or_list_of(text), _IDS, _local_shell, calls=True),
    "apply_patch": Form(_item, _IDS, replies.apply_patch_call, calls=True),
    "computer": Form(one_or_list_of(_item), _IDS, _computer, calls=True),
    "tool_search": Form(
        anything, {"execution": _EXECUTION, **_IDS}, replies.tool_search_call, calls=True
    ),
    "program": Form(text, {"fingerprint": text, **_IDS}, replies.program, calls=True),
    "approval": Form(
        text,
        {"server": text, "arguments": anything, **_ID},
        _approval,
        needs=("server",),
        calls=True,
    ),
    "item": Form(_item, {}, _verbatim, calls=True),
}


def read_draft(data: Any, place: str) -> Draft:
    """An item of a list; a text alone is a message."""
    if isinstance(data, str):
        return replies.text(data)
    if not isinstance(data, dict):
        raise bad(place, f"it must be an item or a text, not {kind(data)}")
    head = head_of(data, place, FORMS)
    check_keys(data, place, (head, *FORMS[head].also))
    return made(head, data, place)


def read_call(data: Any, place: str) -> Draft:
    """An item under `calls`."""
    forms = {name: form for name, form in FORMS.items() if form.calls}
    head = head_of(mapping(data, place), place, forms)
    check_keys(data, place, (head, *forms[head].also))
    return made(head, data, place)


def made(head: str, data: dict[str, Any], place: str) -> Draft:
    """The draft of a form; keys that are not the form's are left to others."""
    form = FORMS[head]
    own = {name: value for name, value in data.items() if name == head or name in form.also}
    given = fields(own, place, {head: form.head, **form.also}, form.needs)
    return form.make(given.pop(head), **given)


def head_of(data: dict[str, Any], place: str, heads: Mapping[str, Any]) -> str:
    """The key that says which form this is: exactly one."""
    found = [name for name in heads if name in data]
    if len(found) == 1:
        return found[0]
    if found:
        both = " and ".join(f"`{name}`" for name in found)
        raise bad(place, f"it has {both}: put several items under `items`, each on its own")
    known = {name for form in FORMS.values() for name in form.also} | set(heads)
    check_keys(data, place, (*heads, *sorted(known - set(heads))))
    raise bad(place, f"it says nothing. Give one of: {', '.join(heads)}")


read_drafts = list_of(read_draft)
read_calls = list_of(read_call)
