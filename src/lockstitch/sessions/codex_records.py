"""Records of a Codex rollout: what one line says. How lines hang together is in `codex`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from lockstitch.core.outcomes import Evidence, Outcome, stands_in
from lockstitch.dialects.base import as_json
from lockstitch.dialects.responses import Fields
from lockstitch.sessions.lines import decoded


class EventItem(msgspec.Struct, gc=False):
    """The item of an `item_completed` event, as far as pairing needs it."""

    type: Any = None
    id: Any = None


class Payload(Fields, gc=False):
    """The payload of any record: of a response item, of an event, of a header."""

    # Left as it is: outputs can be large.
    output: msgspec.Raw = msgspec.Raw()
    item: EventItem | None = None
    replacement_history: msgspec.Raw = msgspec.Raw()
    history_mode: Any = None


class Record(msgspec.Struct, gc=False):
    """One line."""

    type: Any = None
    ordinal: Any = None
    payload: Payload | None = None


decode_record: Final = msgspec.json.Decoder(Record).decode

RECORD_TYPES: Final = frozenset(
    {
        "session_meta",
        "response_item",
        "event_msg",
        "turn_context",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication",
    }
)

LEGACY_ENDS: Final = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end")
"""Events of older versions that tell how a call ended; they name it by `call_id`."""

SHORT_OUTPUT_BYTES = 600
"""Outputs up to here are read, to spot a client's "aborted"."""


def lenient_record(line: bytes) -> Record | None:
    """The record of a line whose fields are not of the types Codex writes; None if it is none."""
    try:
        found = decoded(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("payload"), dict):
        return None
    inner = found["payload"]
    fields = {name: inner.get(name) for name in Fields.__struct_fields__ if name != "output"}
    item = inner.get("item")
    payload = Payload(
        **fields,
        history_mode=inner.get("history_mode"),
        item=EventItem(item.get("type"), item.get("id")) if isinstance(item, dict) else None,
        output=_raw(inner, "output"),
        replacement_history=_raw(inner, "replacement_history"),
    )
    return Record(found.get("type"), found.get("ordinal"), payload)


def _raw(inner: dict[str, Any], name: str) -> msgspec.Raw:
    return msgspec.Raw(as_json(inner[name])) if name in inner else msgspec.Raw()


# --- evidence ----------------------------------------------------------------------------------


def read_evidence(line: bytes, at: int) -> Evidence | None:
    """How a call ended, from the event that says so, or from an output that is live no more."""
    try:
        record = decoded(line)
        payload = record["payload"]
        if record["type"] == "response_item":
            text = _text(payload.get("output"))
            if stands_in(text):
                return None
            return Evidence(Outcome.FINISHED, "finished", text, at)
        item = payload["item"] if payload["type"] == "item_completed" else payload
        return _evidence(item, payload["type"], at) if isinstance(item, dict) else None
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def _evidence(item: dict[str, Any], event: str, at: int) -> Evidence | None:
    status = item.get("status")
    if status == "declined":
        return Evidence(Outcome.NEVER_STARTED, "was declined", "It was declined.", at)
    if status in ("in_progress", "inProgress"):
        return None
    code = item.get("exit_code")
    failed = status == "failed" or item.get("success") is False or bool(item.get("error"))
    if isinstance(code, int):
        summary = f"finished with exit code {code}"
        failed = code != 0
    else:
        code = None
        summary = "failed" if failed else "finished"
    return Evidence(
        Outcome.FINISHED, summary, _output_text(item), at, failed=failed, exit_code=code
    )


def _text(output: Any) -> str:
    return output if isinstance(output, str) else as_json(output).decode()


def _output_text(item: dict[str, Any]) -> str:
    whole = item.get("aggregated_output")
    if isinstance(whole, str):
        return whole
    streams = [item.get("stdout"), item.get("stderr")]
    texts = [text for text in streams if isinstance(text, str) and text]
    if texts:
        return "\n".join(texts)
    for name in ("error", "result"):
        value = item.get(name)
        if isinstance(value, dict) and len(value) == 1:
            value = value.get("Ok", value.get("Err", value))  # the form of older versions
        if isinstance(value, dict) and isinstance(value.get("content"), list):
            parts = [part.get("text") for part in value["content"] if isinstance(part, dict)]
            return "\n".join(text for text in parts if isinstance(text, str))
        if isinstance(value, dict) and isinstance(value.get("message"), str):
            return str(value["message"])
        if isinstance(value, str):
            return value
    return ""
