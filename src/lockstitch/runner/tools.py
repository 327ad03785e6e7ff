"""What a tool is: a function, what the model is told of it, and what running it may do.

Plain functions become tools by themselves (`Tool.of`); `tool` is for what a signature cannot say.
How arguments are read is in `schemas`, how a tool is run in `calling`."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, overload

from msgspec import Struct

from lockstitch.core.members import Member
from lockstitch.runner.context import CallContext
from lockstitch.runner.docstrings import described
from lockstitch.runner.effects import Effect
from lockstitch.runner.schemas import (
    BadArguments,
    NotATool,
    Signature,
    context_parameters,
    plain_function,
    signature_of,
    text_parameter,
)
from lockstitch.runner.signals import is_from_signal
from lockstitch.runner.strictness import Schema, strict_schema, why_not_strict

__all__ = ["Arguments", "CallContext", "Kind", "NeedsApproval", "Tool", "by_name", "tool"]

Arguments: TypeAlias = str | bytes | Mapping[str, Any]
"""What a model gives: JSON or raw text as it came, or an object that was read already."""

NeedsApproval: TypeAlias = bool | Callable[[Mapping[str, Any]], bool]
"""Whether somebody is asked before a call runs; or what decides that, from the arguments as the
function would get them, by name. It may be asked several times, and must not wait."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as the name of a tool; Anthropic's may be longer."""


class Kind(Member):
    """How a tool is called."""

    FUNCTION = "function"
    """With arguments, as a JSON object."""
    CUSTOM = "custom"
    """With one raw text."""
    EXTERNAL = "external"
    """As a function, and never by us: its output is given from outside."""


class Tool(Struct, frozen=True, kw_only=True, eq=False):
    """A tool. It can be called as the function it was made from."""

    name: str
    signature: Signature
    description: str = ""
    effect: Effect = Effect.ONCE
    timeout: float | None = None
    """Seconds that a call may take; None waits as long as it takes."""
    needs_approval: NeedsApproval = False
    kind: Kind = Kind.FUNCTION
    strict: bool = False
    """Does the provider hold the model to the schema? Arguments are checked here in any case."""
    format: Mapping[str, Any] | None = None
    """The grammar of a custom tool's text, as the Responses API has it."""
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise NotATool(
                f"{self.name!r} is no name for a tool: 1 to 64 letters, digits, _ and - are."
                " Pass tool(name=…)."
            )
        if self.timeout is not None and not (0 < self.timeout < math.inf):
            raise NotATool(
                f"{self.name}: a time limit of {self.timeout} seconds. It must be more than 0;"
                " leave it out for none."
            )
        if inspect.iscoroutinefunction(self.needs_approval):
            raise NotATool(f"{self.name}: needs_approval is async. It must decide without waiting.")
        if self.format is not None and self.kind is not Kind.CUSTOM:
            raise NotATool(f"{self.name}: only custom tools have a format.")
        if (self.function is None) is not self.external:
            raise NotATool(f"{self.name}: a tool has a function, unless it is external.")
        if self.strict and (why := self._why_not_strict()):
            raise NotATool(f"{self.name} cannot be strict: {why}. Change that, or leave it out.")

    @classmethod
    def of(cls, function: Callable[..., Any] | Tool) -> Tool:
        """A tool as it is, or one from a plain function: everything is read from its signature and
        its docstring. Raises `NotATool`."""
        return function if isinstance(function, cls) else _made(function)

    @classmethod
    def answered_outside(cls, name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
        """A tool that has no function: who has the output gives it to the runner. ``parameters``
        is a JSON schema."""
        signature = Signature(tool=name, schema=dict(parameters))
        return cls(name=name, signature=signature, description=description, kind=Kind.EXTERNAL)

    @property
    def parameters(self) -> Schema:
        """The schema of its arguments."""
        return self.signature.schema

    @property
    def external(self) -> bool:
        return self.kind is Kind.EXTERNAL

    def read(self, arguments: Arguments) -> dict[str, Any]:
        """Arguments as the function takes them, by name. Raises `BadArguments`."""
        if self.kind is not Kind.CUSTOM:
            return self.signature.read(arguments)
        (parameter,) = self.parameters["properties"]
        if isinstance(arguments, bytes):
            arguments = arguments.decode("utf-8", "backslashreplace")
        if not isinstance(arguments, str):
            raise BadArguments(f"{self.name} takes one raw text, and no object. It was not run.")
        return {parameter: arguments}

    def asks_first(self, arguments: Arguments) -> bool:
        """Must somebody approve of this call before it runs?"""
        if not callable(self.needs_approval):
            return self.needs_approval
        try:
            values = self.read(arguments)
        except BadArguments:
            return False  # it will not run, and nobody is to be asked about it
        try:
            return bool(self.needs_approval(values))
        except (Exception, SystemExit) as error:
            if is_from_signal(error):
                raise
            return True  # nobody has said that it may run

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.function is None:
            raise NotATool(f"{self.name} is answered from outside: it has no function to call.")
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        kind = "" if self.kind is Kind.FUNCTION else f", {self.kind.value}"
        return f"<Tool {self.name}, {self.effect.value}{kind}>"

    # --- what providers are told ---------------------------------------------------------------

    def for_responses(self) -> dict[str, Any]:
        """As the Responses API has it. ``strict`` is always said: left out, it would be on."""
        if self.kind is Kind.CUSTOM:
            custom = {"type": "custom", "name": self.name, "description": self.description}
            return custom if self.format is None else {**custom, "format": dict(self.format)}
        return {"type": "function", **self._function(), "strict": self.strict}

    def for_chat(self) -> dict[str, Any]:
        """As Chat Completions has it. ``strict`` is off if left out, and some servers that speak
        this dialect do not know the word."""
        if self.kind is Kind.CUSTOM:
            custom: dict[str, Any] = {"name": self.name, "description": self.description}
            if self.format is not None:
                custom["format"] = _format_for_chat(self.format)
            return {"type": "custom", "custom": custom}
        function = self._function()
        return {
            "type": "function",
            "function": {**function, "strict": True} if self.strict else function,
        }

    def for_messages(self) -> dict[str, Any]:
        """As Anthropic's Messages API has it, which knows no raw text."""
        if self.kind is Kind.CUSTOM:
            raise NotATool(
                f"{self.name} is a custom tool, and the Messages API has none. Make it a function"
                " with one parameter of type str."
            )
        function = self._function()
        function["input_schema"] = function.pop("parameters")
        return {**function, "strict": True} if self.strict else function

    def _function(self) -> dict[str, Any]:
        schema = strict_schema(self.parameters) if self.strict else self.parameters
        return {"name": self.name, "description": self.description, "parameters": schema}

    def _why_not_strict(self) -> str | None:
        if self.kind is Kind.CUSTOM:
            return "a raw text has no schema"
        return why_not_strict(self.parameters)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    effect: Effect | str = Effect.ONCE,
    timeout: float | None = None,
    needs_approval: NeedsApproval = False,
    kind: Kind | str = Kind.FUNCTION,
    strict: bool = False,
    format: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None, /, **declared: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a function a tool, with more than its signature says: ``@tool(effect="read")``.

    ``parameters`` is a JSON schema that holds in place of the signature; arguments are then passed
    by name as the model gave them. With ``kind="external"`` the function is read, and never run.
    Raises `NotATool`."""
    if function is not None:
        return _made(function, **declared)
    return lambda function: _made(function, **declared)


def by_name(tools: Iterable[Tool | Callable[..., Any]]) -> dict[str, Tool]:
    """Tools by their names, in order. Raises `NotATool` if two have the same."""
    named: dict[str, Tool] = {}
    for made in map(Tool.of, tools):
        if made.name in named:
            raise NotATool(f"Two tools are named {made.name}. Rename one: tool(name=…).")
        named[made.name] = made
    return named


def _made(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    effect: Effect | str = Effect.ONCE,
    kind: Kind | str = Kind.FUNCTION,
    **declared: Any,
) -> Tool:
    if not callable(function) or isinstance(function, Tool):
        raise NotATool(f"{function!r} is no function, and so no tool can be made of it.")
    kind = _one_of(Kind, kind, "kind")
    inner = plain_function(function)
    named = _own_name(function) if name is None else name
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise NotATool(f"{named} yields. A tool gives one output: return it.")
    said = described(_docstring(function))
    if kind is Kind.CUSTOM:
        parameter, context = text_parameter(function, tool=named)
        schema = {"type": "object", "properties": {parameter: {"type": "string"}}}
        signature = Signature(tool=named, schema=schema, context=context)
    elif parameters is not None:
        context = context_parameters(function, tool=named)
        signature = Signature(tool=named, schema=dict(parameters), context=context)
    else:
        signature = signature_of(function, tool=named, described=said.parameters)
    return Tool(
        name=named,
        signature=signature,
        description=said.summary if description is None else description,
        effect=_one_of(Effect, effect, "effect"),
        kind=kind,
        function=None if kind is Kind.EXTERNAL else function,
        **declared,
    )


_Choice = TypeVar("_Choice", bound=Member)


def _one_of(choices: type[_Choice], given: object, what: str) -> _Choice:
    try:
        return choices(given)
    except ValueError:
        known = ", ".join(repr(choice.value) for choice in choices)
        raise NotATool(f"There is no {what} {given!r}. Choose one of: {known}.") from None


def _own_name(function: Callable[..., Any]) -> str:
    while not hasattr(function, "__name__") and hasattr(function, "func"):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _docstring(function: Callable[..., Any]) -> str | None:
    """Its own. A callable object that has none is described by its class; a partial, by what it
    calls."""
    inner = plain_function(function)
    if inner is type(function).__call__:
        return inner.__doc__ or type(function).__doc__
    return inner.__doc__


def _format_for_chat(given: Mapping[str, Any]) -> dict[str, Any]:
    """A grammar is one level deeper in this dialect."""
    if given.get("type") != "grammar" or "grammar" in given:
        return dict(given)
    grammar = {name: value for name, value in given.items() if name != "type"}
    return {"type": "grammar", "grammar": grammar}
