"""What the emulated model says in a random conversation, and what its tools give back.

All nine families of calls, alone and side by side, with and without reasoning before them. The
model only knows which turn it is in and how many rounds of calls the turn still has."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from random import Random
from typing import Any

from lockstitch.emulator import Asked, Draft, Reply, call, custom_call, item, reasoning, reply, text

Wire = dict[str, Any]

MOST_ROUNDS = 3
"""Rounds of calls in one turn."""
MOST_PARALLEL_CALLS = 4
INSIDE = "inside_"
"""The name of a tool that a program calls begins so; the program's call id follows."""

_PATCH = {"type": "create_file", "path": "a.txt", "diff": "+hello\n"}

# Each gives the drafts of one call; the number makes every call another one.
FAMILIES: dict[str, Callable[[int], list[Draft]]] = {
    "function": lambda n: [call("look_up", {"n": n, "of": "a few words to be streamed"})],
    "custom": lambda n: [custom_call("write", f"words to write, number {n}")],
    "computer": lambda n: [item("computer_call", action={"type": "wait"})],
    "shell": lambda n: [item("shell_call", action={"commands": [f"echo {n}", "ls"]})],
    "local shell": lambda n: [
        item("local_shell_call", action={"type": "exec", "command": ["echo", str(n)], "env": {}})
    ],
    "apply patch": lambda n: [item("apply_patch_call", operation=_PATCH)],
    "tool search": lambda n: [item("tool_search_call", arguments={"query": f"tool {n}"})],
    "MCP approval": lambda n: [
        item("mcp_approval_request", name="send", server_label="mail", arguments="{}")
    ],
    "program": lambda n: [
        item("program", code=f"return {n}", call_id=f"prog_{n}"),
        item("program_output", call_id=f"prog_{n}", result=str(n)),
    ],
    # Run by the provider, and answered by it: nothing is asked of us.
    "server": lambda n: [
        item("tool_search_call", arguments={"query": str(n)}, execution="server"),
        item("tool_search_output", tools=[]),
        item("web_search_call", action={"type": "search", "query": str(n)}),
    ],
}


class Model:
    """Speaks for one conversation; `turn` is set by whoever drives it."""

    def __init__(self, rng: Random, answered: Container[str]) -> None:
        """``answered`` are programs that have their output from elsewhere."""
        self._rng = rng
        self._answered = answered
        self._calls = 0
        self._rounds = 0
        self.thinks = rng.random() < 0.6
        self.turn = 0

    def begin(self, turn: int) -> None:
        self.turn = turn
        self._rounds = self._rng.randint(0, MOST_ROUNDS)

    def final(self) -> str:
        """What the last message of the turn says."""
        return f"This is the end of turn {self.turn}."

    def decide(self, asked: Asked) -> Reply:
        drafts: list[Draft] = []
        key = asked.tool.removeprefix(INSIDE)
        if key != asked.tool and key not in self._answered:
            drafts.append(item("program_output", call_id=key, result="done"))
        if self._rounds == 0:
            return reply(*drafts, *self._thought(), text(self.final()))
        self._rounds -= 1
        drafts += self._thought()
        if self._rng.random() < 0.2:
            drafts += [text("Let me see.", phase="commentary"), *self._thought()]
        if self._rng.random() < 0.1:
            return reply(*drafts, *self._nested())
        for _ in range(self._rng.choice((1, 1, 1, 2, 3, MOST_PARALLEL_CALLS))):
            self._calls += 1
            drafts += FAMILIES[self._rng.choice(list(FAMILIES))](self._calls)
        return reply(*drafts)

    def _thought(self) -> list[Draft]:
        if not self.thinks or self._rng.random() < 0.3:
            return []
        return [reasoning("A thought about it.")]

    def _nested(self) -> list[Draft]:
        """A program that waits for a call of its own; it ends in a later answer."""
        self._calls += 1
        key = f"prog_{self._calls}"
        caller = {"type": "program", "caller_id": key}
        return [
            item("program", code="await tools.look_up()", call_id=key),
            call(f"{INSIDE}{key}", {"n": self._calls}, caller=caller),
        ]


def tool_output(made: Mapping[str, Any], word: str, rng: Random) -> Wire:
    """What the tool of this call gives back: an item of its family that says `word`."""
    kind, key = made["type"], made.get("call_id")
    match kind:
        case "computer_call":
            shot = {"type": "computer_screenshot", "image_url": f"https://example.com/{word}.png"}
            return {"type": "computer_call_output", "call_id": key, "output": shot}
        case "shell_call":
            done = {"type": "exit", "exit_code": 0}
            said = [{"stdout": word, "stderr": "", "outcome": done}]
            return {"type": "shell_call_output", "call_id": key, "output": said}
        case "local_shell_call":
            if rng.random() < 0.5:  # as Codex answers
                return {"type": "function_call_output", "call_id": key, "output": word}
            # Its `id` is "the unique ID of the local shell tool call": the `call_id`.
            return {"type": "local_shell_call_output", "id": key, "output": word}
        case "apply_patch_call":
            return {
                "type": "apply_patch_call_output",
                "call_id": key,
                "status": "completed",
                "output": word,
            }
        case "tool_search_call":
            tools = [{"type": "function", "name": word, "parameters": {}}]
            return {
                "type": "tool_search_output",
                "call_id": key,
                "execution": "client",
                "status": "completed",
                "tools": tools,
            }
        case "mcp_approval_request":
            asked = made["id"]
            return {
                "type": "mcp_approval_response",
                "approval_request_id": asked,
                "approve": rng.random() < 0.5,
                "reason": word,
            }
    output: Any = word
    if rng.random() < 0.2:
        output = [{"type": "input_text", "text": word}]
    wire = {"type": f"{kind}_output", "call_id": key, "output": output}
    return wire | ({"caller": made["caller"]} if "caller" in made else {})
