"""The Vercel AI SDK as a judge: one Node process that answers what the SDK says of histories."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SCRIPT = Path(__file__).parents[1] / "javascript" / "ai_sdk.mjs"
VERSIONS = ("ai-6", "ai-7")


class Verdict(NamedTuple):
    """What the SDK says of one history."""

    ok: bool
    error: str
    prompt: list[dict[str, Any]]
    """What a provider would be sent."""
    messages: list[dict[str, Any]]
    """UI messages as model messages."""
    executed: list[str]
    """Tools that the SDK ran because their approval was in the last message."""

    def parts(self, kind: str) -> list[dict[str, Any]]:
        """The parts of this type that a provider would be sent."""
        contents = [m["content"] for m in self.prompt if isinstance(m["content"], list)]
        return [part for content in contents for part in content if part["type"] == kind]

    @property
    def unpaired(self) -> list[str]:
        """The ids of calls that a provider would get without exactly one result, and of results
        without a call. A call that the provider runs may still be open."""
        calls = Counter(part["toolCallId"] for part in self.parts("tool-call"))
        by_provider = {
            part["toolCallId"] for part in self.parts("tool-call") if part.get("providerExecuted")
        }
        results = Counter(part["toolCallId"] for part in self.parts("tool-result"))
        return [
            key
            for key in calls | results
            if results[key] > calls[key] or (results[key] < calls[key] and key not in by_provider)
        ]


class Judge:
    """One version of the SDK, in a process of its own."""

    def __init__(self, node: str, packages: Path, version: str) -> None:
        self.version = version
        self._process = subprocess.Popen(
            [node, str(SCRIPT), str(packages), version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _ask(self, kind: str, messages: Any) -> Verdict:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"kind": kind, "messages": messages}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        return Verdict(
            ok=said["ok"],
            error=f"{said.get('error')}: {said.get('message')}"[:400],
            prompt=said.get("prompt") or [],
            messages=said.get("messages") or [],
            executed=said.get("executed") or [],
        )

    def model(self, messages: Any) -> Verdict:
        """Of model messages: the schema, and `generateText`."""
        return self._ask("model", messages)

    def ui(self, messages: Any) -> Verdict:
        """Of UI messages: `validateUIMessages`, `convertToModelMessages` and `generateText`."""
        return self._ask("ui", messages)

    def converted(self, messages: Any) -> list[dict[str, Any]]:
        """UI messages as model messages."""
        return self._ask("convert", messages).messages

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def judges(packages: Path, version: str) -> Iterator[Judge]:
    """A judge that ends with the test module."""
    node = shutil.which("node")
    assert node is not None
    judge = Judge(node, packages, version)
    yield judge
    judge.close()
