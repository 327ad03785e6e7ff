"""What command declarations share: help with sections and examples, numbers, options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import click

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


class Group(click.Group):
    """A group of commands, listed in sections."""

    command_class = Command

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Sequence[str]] | None = None,
        examples: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.examples = tuple(examples)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands as they are declared, not by the alphabet."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = self.sections or {"Commands": self.list_commands(ctx)}
        width = max(map(len, self.commands))
        for title, names in sections.items():
            rows = [
                (name.ljust(width), self.commands[name].get_short_help_str(formatter.width))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Example" if len(examples) == 1 else "Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class _Bounded(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """A number with bounds. Not `click.IntRange`, which writes its bounds as "1<=x<=256", in errors
    and in the help of each option."""

    _read: Callable[[Any], Any]

    def __init__(self, *, min: float, max: float | None = None) -> None:
        self._min = min
        self._max = max

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            number = self._read(value)
        except ValueError:
            self.fail(f"{value!r} is not a {self.name}.", param, ctx)
        if number < self._min or (self._max is not None and number > self._max):
            self.fail(f"{value} is out of range: it must be {self._bounds()}.", param, ctx)
        return number

    def _bounds(self) -> str:
        if self._max is None:
            return f"at least {self._min}"
        return f"from {self._min} to {self._max}"


class Integer(_Bounded):
    """A whole number, shown as `N`."""

    name = "whole number"
    _read = int


class Number(_Bounded):
    """A number, shown as `N`."""

    name = "number"

    @staticmethod
    def _read(value: Any) -> float:
        number = float(value)
        if not math.isfinite(number):
            raise ValueError
        return number


def option(*names: str, **settings: Any) -> Callable[[_Function], _Function]:
    """`click.option`, with `N` for numbers in the help."""
    if isinstance(settings.get("type"), Integer | Number):
        settings.setdefault("metavar", "N")
    return click.option(*names, **settings)


FILE_OR_DASH: Final = click.Path(readable=False, allow_dash=True)
"""A path as text, or - for a standard stream. The command reports what cannot be read; the type is
for the shell, which completes file names."""

DIALECTS: Final = (
    "responses",
    "chat",
    "messages",
    "realtime",
    "gemini",
    "bedrock",
    "pydantic-ai",
    "langchain",
    "pi",
    "vercel",
    "vercel-ui",
    "opencode",
)
DIALECT: Final = option(
    "--dialect",
    type=click.Choice(DIALECTS),
    metavar="NAME",
    help=f"Item format to assume if the content does not show it: {', '.join(DIALECTS)}.",
)
ANCHORED: Final = option(
    "--anchored",
    is_flag=True,
    help="The items continue a previous_response_id or a conversation, so an output may come"
    " without its call.",
)
COLOR: Final = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    metavar="WHEN",
    help="Use colors: auto (default), always or never. NO_COLOR and FORCE_COLOR are respected.",
)
OUTPUT: Final = option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    metavar="FORMAT",
    help="Output format: text (default) or json.",
)
