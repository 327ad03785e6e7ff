"""Rollouts to test with: records as Codex writes them."""

from __future__ import annotations

STAMP = "2026-11-15T19:21:20.951Z"


def record(kind, payload, ordinal=None):
    numbered = {} if ordinal is None else {"ordinal": ordinal}
    return {"timestamp": STAMP, **numbered, "type": kind, "payload": payload}


def header(**more):
    return record("session_meta", {"id": "01a1e0a8-2ecb-7ab0-830c-0dcd9983479e", **more})


def item(payload):
    return record("response_item", payload)


def event(payload):
    return record("event_msg", payload)


def call(key="call_a", name="exec_command", **more):
    return item({"type": "function_call", "call_id": key, "name": name, "arguments": "{}", **more})


def output(key="call_a", text="done", **more):
    return item({"type": "function_call_output", "call_id": key, "output": text, **more})


def user(text="go"):
    content = [{"type": "input_text", "text": text}]
    return item({"type": "message", "role": "user", "content": content})


def context():
    return user("<environment_context>\n  <cwd>/project</cwd>\n</environment_context>")


def assistant(text="ok"):
    content = [{"type": "output_text", "text": text}]
    return item({"type": "message", "role": "assistant", "content": content})


def ended(key="call_a", **more):
    body = {
        "type": "CommandExecution",
        "id": key,
        "status": "completed",
        "exit_code": 0,
        "aggregated_output": "hi\n",
        **more,
    }
    return event({"type": "item_completed", "item": body})


def compacted(items):
    return record("compacted", {"message": "summary", "replacement_history": items})


def rolled_back(turns=1):
    return event({"type": "thread_rolled_back", "num_turns": turns})


def paginated(records):
    """The same records with a paginated header and ordinals."""
    numbered = []
    for n, one in enumerate([header(history_mode="paginated"), *records]):
        if isinstance(one, bytes):
            numbered.append(one)
            continue
        numbered.append({"timestamp": one["timestamp"], "ordinal": n, **one})
    return numbered


def legacy(records):
    return [header(), *records]
