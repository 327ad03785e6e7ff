"""A table of states, drawn as a diagram: the docs hold exactly this."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any


def drawn(table: Mapping[Any, Mapping[Any, Enum]]) -> str:
    """The table in Mermaid's words, row by row."""
    lines = ["stateDiagram-v2"]
    for state, moves in table.items():
        for move, to in moves.items():
            lines.append(f"    {state.value} --> {to.value}: {move.value}")
    return "\n".join(lines) + "\n"
