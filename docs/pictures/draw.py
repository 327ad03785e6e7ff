"""Draw demo-d.svg: `lockstitch demo D`, without and with Lockstitch, from its real output.

Run it with `make picture`. The file is the same each time: the demo's lines have no times and no
random ids, and the picture needs no fonts or other files from the network."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from lockstitch.cli.demonstrating import side_by_side
from lockstitch.demo.cases import CASES
from lockstitch.demo.playing import play

FILE: Final = Path(__file__).parent / "demo-d.svg"

WIDTH_CHARACTERS: Final = 104
"""Two columns; at GitHub's width of about 900 pixels a letter is still 14 pixels high."""

# A dark terminal, which reads well on light and dark pages.
THEME: Final = TerminalTheme(
    background=(22, 27, 34),
    foreground=(230, 237, 243),
    normal=[
        (72, 79, 88),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (118, 227, 234),
        (230, 237, 243),
    ],
)

FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
    font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
    font-size: {char_height}px;
    line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw() -> str:
    """Run case D and return the picture of its output."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=WIDTH_CHARACTERS,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )
    console.print(side_by_side(asyncio.run(play(CASES["D"])), WIDTH_CHARACTERS))
    drawn = console.export_svg(
        title="lockstitch demo D", theme=THEME, code_format=FORMAT, unique_id="demo-d"
    )
    return re.sub(r"[ \t]+$", "", drawn, flags=re.MULTILINE)


if __name__ == "__main__":
    FILE.write_text(draw(), encoding="utf-8")
    print(f"Wrote {FILE}.")
