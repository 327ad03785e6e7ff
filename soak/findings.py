"""What the soak counts, and what it finds to be wrong. Shared by everything that looks."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

MOST_TOLD = 10
"""Of one kind: the first ones say enough."""


@dataclass(slots=True)
class Findings:
    counts: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, list[str]] = field(default_factory=dict)
    wrong_counts: Counter[str] = field(default_factory=Counter)
    seen: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Every response that a client saw completed: whose it is, and the digest of its output."""
    tells: bool = False
    """Whether to say at once what is wrong."""
    kept_bytes: int = 0
    """Of items that clients sent and were given: what a store cannot do without."""

    def is_wrong(self, kind: str, what: str) -> None:
        self.wrong_counts[kind] += 1
        told = self.wrong.setdefault(kind, [])
        if len(told) < MOST_TOLD:
            told.append(f"{time.strftime('%H:%M:%S')} {what}")
            if self.tells:
                print(f"WRONG: {kind}: {told[-1]}", flush=True)

    def was_seen(self, tenant: str, response: Mapping[str, Any], sent: Sequence[Any]) -> None:
        output = response["output"]
        self.seen[response["id"]] = (tenant, digest(output))
        self.kept_bytes += len(json.dumps(output)) + len(json.dumps(sent))


def digest(output: Sequence[Any]) -> str:
    return sha256(json.dumps(output, sort_keys=True).encode()).hexdigest()
