"""Large sessions to measure with: a Codex rollout of a given size, made from a seed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

WORDS = ("the", "call", "returns", "a", "list", "of", "rows", "and", "waits", "for", "events")
OPEN_EVERY = 997
"""One call in so many has lost its output, as a killed process leaves it."""


def rollout(path: Path, size: int, *, seed: int = 1) -> Path:
    """A paginated rollout of about ``size`` bytes; made once, then kept."""
    if path.exists() and path.stat().st_size >= size:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    ordinal = 0
    written = 0

    with path.open("w") as out:

        def line(kind: str, payload: dict[str, Any]) -> None:
            nonlocal ordinal, written
            stamp = f"2026-11-15T19:{ordinal // 60 % 60:02}:{ordinal % 60:02}.{ordinal % 1000:03}Z"
            text = json.dumps(
                {"timestamp": stamp, "ordinal": ordinal, "type": kind, "payload": payload},
                separators=(",", ":"),
            )
            out.write(text + "\n")
            written += len(text) + 1
            ordinal += 1

        def prose(words: int) -> str:
            return " ".join(rng.choices(WORDS, k=words))

        def uid() -> str:
            return f"{rng.getrandbits(128):032x}"

        thread = uid()
        line("session_meta", {"id": thread, "cwd": "/project", "history_mode": "paginated"})
        turn = 0
        while written < size:
            turn += 1
            turn_id = uid()
            meta = {"turn_id": turn_id, "content_item_kinds": ["user.text"]}
            line("event_msg", {"type": "task_started", "turn_id": turn_id})
            line(
                "response_item",
                {
                    "type": "message",
                    "id": f"msg_{uid()}",
                    "role": "user",
                    "content": [{"type": "input_text", "text": prose(40)}],
                    "internal_chat_message_metadata_passthrough": meta,
                },
            )
            for step in range(6):
                call = f"call_{uid()[:24]}"
                line(
                    "response_item",
                    {
                        "type": "reasoning",
                        "id": f"rs_{uid()}",
                        "summary": [],
                        "encrypted_content": uid() * 30,
                    },
                )
                arguments = json.dumps({"cmd": f"rg -n {prose(4)!r} src | head -50"})
                line(
                    "response_item",
                    {
                        "type": "function_call",
                        "id": f"fc_{uid()}",
                        "name": "exec_command",
                        "arguments": arguments,
                        "call_id": call,
                    },
                )
                text = "\n".join(f"src/{prose(1)}.py:{n}: {prose(8)}" for n in range(20))
                line(
                    "event_msg",
                    {
                        "type": "item_completed",
                        "thread_id": thread,
                        "turn_id": turn_id,
                        "item": {
                            "type": "CommandExecution",
                            "id": call,
                            "command": ["/bin/bash", "-lc", arguments],
                            "status": "completed",
                            "aggregated_output": text,
                            "exit_code": 0,
                        },
                    },
                )
                if (turn * 6 + step) % OPEN_EVERY:
                    line(
                        "response_item",
                        {
                            "type": "function_call_output",
                            "id": f"fco_{uid()}",
                            "call_id": call,
                            "output": f"Process exited with code 0\nOutput:\n{text}",
                        },
                    )
                usage = {"input_tokens": 1200, "output_tokens": 300, "total_tokens": 1500}
                info = {"total_token_usage": usage, "last_token_usage": usage}
                line("event_msg", {"type": "token_count", "info": info})
            line(
                "response_item",
                {
                    "type": "message",
                    "id": f"msg_{uid()}",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": prose(80)}],
                },
            )
            line("event_msg", {"type": "task_complete", "turn_id": turn_id})
    return path
