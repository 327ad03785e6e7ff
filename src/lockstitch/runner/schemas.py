"""From the type hints of a function: the schema that a model reads, and the arguments it gives.

Everything that cannot work is refused when the tool is defined, with the names of the function and
the parameter. What the model gets wrong is told to the model. msgspec does both translations."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from lockstitch.core.errors import LockstitchError
from lockstitch.runner.context import CallContext
from lockstitch.runner.signals import is_from_signal
from lockstitch.runner.strictness import Schema, subschemas


class NotATool(LockstitchError):
    """The caller passed what cannot be a tool; the message names the function and the parameter."""


class BadArguments(LockstitchError):
    """The model called a tool with arguments that do not fit. The message is for the model."""


class _Absent:
    """The model did not give this argument, so the function's own default holds."""


_ABSENT = _Absent()

_VARIADIC = {
    inspect.Parameter.VAR_POSITIONAL: "*{} takes any number of arguments",
    inspect.Parameter.VAR_KEYWORD: "**{} takes any number of arguments",
    inspect.Parameter.POSITIONAL_ONLY: "{} can be passed by position only",
}
_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class Signature(Struct, frozen=True, kw_only=True, eq=False):
    """The parameters of a tool, for both sides."""

    tool: str
    schema: Schema
    """One object schema that needs nothing outside of it."""
    context: Sequence[str] = ()
    """The parameters that get the `CallContext`; they are no part of the schema."""
    reader: type[Struct] | None = None
    """What arguments are read into; None takes any JSON object, as it is."""

    def read(self, arguments: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the function takes them. Raises `BadArguments`."""
        wanted: Any = self.reader or dict[str, Any]
        try:
            if isinstance(arguments, str | bytes):
                # Some servers send an empty text where there is nothing to send.
                given = msgspec.json.decode(arguments.strip() or b"{}", type=wanted)
            else:
                given = msgspec.convert(dict(arguments), wanted)
        except RecursionError:
            raise self._bad("they are nested too deeply") from None
        except (Exception, SystemExit) as error:  # also what checks of the caller's types raise
            if is_from_signal(error):
                raise
            raise self._bad(_said(error)) from None
        if self.reader is None:
            return dict(given)
        values = {name: getattr(given, name) for name in self.reader.__struct_fields__}
        return {name: value for name, value in values.items() if value is not _ABSENT}

    def _bad(self, what: str) -> BadArguments:
        properties = self.schema.get("properties") or {}
        required = self.schema.get("required", ())
        named = [name if name in required else f"{name} (optional)" for name in properties]
        takes = f"It takes: {', '.join(named)}." if named else "It takes no arguments."
        return BadArguments(
            f"The arguments of {self.tool} do not fit: {what}. It was not run. {takes}"
        )


def _said(error: BaseException) -> str:
    text = str(error).rstrip(".")
    if isinstance(error, msgspec.ValidationError):
        return text
    if isinstance(error, msgspec.DecodeError | UnicodeError):
        return f"they are not JSON ({text})"
    return f"{type(error).__name__}: {text}"


def signature_of(
    function: Callable[..., Any], *, tool: str, described: Mapping[str, str]
) -> Signature:
    """Read the parameters of a function; ``described`` are texts for them, by name."""
    context: list[str] = []
    hints: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    texts = dict(described)
    for parameter, hint in _parameters(function, tool):
        name = parameter.name
        if _is_context(hint):
            context.append(name)
            continue
        texts[name] = _description(hint) or texts.get(name, "")
        if parameter.default is not inspect.Parameter.empty:
            defaults[name] = parameter.default
        # `x: int = None` says int, and means that None will do.
        hints[name] = hint if parameter.default is not None else typing.Union[hint, None]  # noqa: UP007
        _check(hints[name], tool, name)
    schema = _schema(hints, defaults, texts, tool)
    fields = [
        (name, hint, msgspec.field(default_factory=lambda: _ABSENT)) if name in defaults
        else (name, hint)
        for name, hint in hints.items()
    ]  # fmt: skip
    reader = msgspec.defstruct(tool, fields, kw_only=True, forbid_unknown_fields=True)
    return Signature(tool=tool, schema=schema, context=tuple(context), reader=reader)


def text_parameter(function: Callable[..., Any], *, tool: str) -> tuple[str, tuple[str, ...]]:
    """The one parameter of a function that takes a raw text, and those that get the context."""
    found = [(parameter.name, hint) for parameter, hint in _parameters(function, tool)]
    context = tuple(name for name, hint in found if _is_context(hint))
    rest = [(name, hint) for name, hint in found if name not in context]
    if len(rest) != 1 or _plain(rest[0][1]) is not str:
        names = ", ".join(name for name, _ in rest) or "none"
        raise NotATool(
            f"{tool} is a custom tool, which takes one text. Give it one parameter with the type"
            f" hint str (and a CallContext, if it wants one); found: {names}."
        )
    return rest[0][0], context


def context_parameters(function: Callable[..., Any], *, tool: str) -> tuple[str, ...]:
    """The parameters that get the context, of a function whose others do not matter."""
    return tuple(
        parameter.name
        for parameter in _signature(function, tool)
        if parameter.kind not in _VARIADIC
        and parameter.annotation is not inspect.Parameter.empty
        and _is_context(_resolved(parameter, _scope(function), tool))
    )


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside partials, bound methods and callable objects."""
    while isinstance(function, partial):
        function = function.func
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    return getattr(function, "__func__", function)


def _parameters(function: Callable[..., Any], tool: str) -> list[tuple[inspect.Parameter, Any]]:
    """Each parameter with its type hint. Raises `NotATool` for what a model cannot pass."""
    found = []
    for parameter in _signature(function, tool):
        if parameter.kind in _VARIADIC:
            what = _VARIADIC[parameter.kind].format(parameter.name)
            raise NotATool(
                f"{tool}: {what}, and a model passes arguments by name. Name each parameter."
            )
        if parameter.annotation is inspect.Parameter.empty:
            raise NotATool(f"{tool}: the parameter {parameter.name} has no type hint. Add one.")
        found.append((parameter, _resolved(parameter, _scope(function), tool)))
    return found


def _signature(function: Callable[..., Any], tool: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError, NameError) as error:
        raise NotATool(f"The parameters of {tool} cannot be read: {error}.") from None


def _scope(function: Callable[..., Any]) -> dict[str, Any]:
    """Where the names in its hints are looked up. Behind a decorator that uses `functools.wraps`
    that is the module of the function inside."""
    return getattr(inspect.unwrap(plain_function(function)), "__globals__", {})


def _resolved(parameter: inspect.Parameter, scope: dict[str, Any], tool: str) -> Any:
    name, annotation = parameter.name, parameter.annotation
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, globalns=scope, include_extras=True)[name]
    except Exception as error:
        raise NotATool(
            f"{tool}: the type hint {annotation!r} of {name} cannot be resolved: {error}. Define or"
            " import its names at the level of the module, and not only for type checkers."
        ) from None


def _is_context(hint: Any) -> bool:
    return CallContext in (hint, *_inside(hint))


def _check(hint: Any, tool: str, name: str) -> None:
    """Refuse a hint that has no schema or that nothing can be read into."""
    try:
        msgspec.json.schema(hint)
        msgspec.json.Decoder(hint)
    except Exception as error:
        # msgspec's advice on hooks, in front of the last line, is not for our callers.
        what = str(error).strip().splitlines()[-1] if str(error) else type(error).__name__
        raise NotATool(
            f"{tool}: the parameter {name} cannot be given as JSON: {what}. Use plain types,"
            " dataclasses, TypedDicts, enums or msgspec Structs."
        ) from None


def _schema(
    hints: Mapping[str, Any], defaults: Mapping[str, Any], texts: Mapping[str, str], tool: str
) -> Schema:
    try:
        parts, shared = msgspec.json.schema_components(
            hints.values(), ref_template="#/$defs/{name}"
        )
    except Exception as error:
        # Each was right on its own: two types have the same name.
        raise NotATool(f"{tool}: its types cannot be told apart: {error}.") from None
    properties = dict(zip(hints, parts, strict=True))
    for name, part in properties.items():
        if text := texts.get(name):
            part["description"] = text
        if name in defaults:
            part.update(_default(defaults[name], hints[name]))
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": [name for name in hints if name not in defaults],
        "additionalProperties": False,
    }
    if shared:
        schema["$defs"] = shared
    for _, inner in subschemas(schema):
        kinds = {_JSON_TYPES.get(type(value)) for value in inner.get("enum", ())}
        if len(kinds) == 1 and None not in kinds and "type" not in inner:
            inner["type"] = kinds.pop()  # many servers want it said
    return schema


def _default(value: Any, hint: Any) -> Schema:
    """A default that can be written as JSON and means the same when read; others stay unsaid."""
    try:
        plain = msgspec.json.encode(value)
        msgspec.json.decode(plain, type=hint)
    except Exception:
        return {}
    return {"default": msgspec.json.decode(plain)}


def _plain(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _inside(hint: Any) -> tuple[Any, ...]:
    """What a hint is made of, where it is annotated or a union."""
    if typing.get_origin(hint) in (typing.Annotated, typing.Union, types.UnionType):
        return typing.get_args(hint)
    return ()


def _description(hint: Any) -> str:
    """``Annotated[…, "text"]``, or the description of a `msgspec.Meta`; of an optional one, too."""
    if typing.get_origin(hint) is typing.Annotated:
        for said in hint.__metadata__:
            text = said.description if isinstance(said, msgspec.Meta) else said
            if isinstance(text, str):
                return text
    return next(filter(None, map(_description, _inside(hint))), "")
