"""What command declarations share: help with sections and examples, numbers, options."""

from __future__ import annotations

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


class Integer(click.IntRange):
    """A whole number with bounds, shown as `N` and explained in plain words."""

    name = "whole number"

    def _describe_range(self) -> str:  # click's own is "1<=x<=256", in the help of each option
        return ""


class Number(click.FloatRange):
    """A number with bounds, shown as `N`."""

    name = "number"

    def _describe_range(self) -> str:
        return ""


def option(*names: str, **settings: Any) -> Callable[[_Function], _Function]:
    """`click.option`, with `N` for numbers in the help."""
    if isinstance(settings.get("type"), Integer | Number):
        settings.setdefault("metavar", "N")
    return click.option(*names, **settings)


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
