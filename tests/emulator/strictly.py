"""Asserts that a JSON value is exactly what an SDK's type says: nothing missing, nothing wrong,
nothing more, at any depth. The SDKs' own parsing is lenient on all three."""

import functools
import inspect
import json
import types
import typing
from typing import Any

import pydantic

# The fields by which the SDKs' unions tell their members apart, the most telling first.
TELLING = ("type", "object", "role", "event")


def strictly(type_: Any, value: Any) -> None:
    """Fail, saying where and what, unless `value` validates strictly as `type_`."""
    problems = problems_of(type_, value)
    if problems:
        told = json.dumps(value, ensure_ascii=False)
        raise AssertionError("\n".join([*problems, f"in {told[:2000]}"]))


def problems_of(type_: Any, value: Any, path: str = "$") -> list[str]:
    type_ = _bare(type_)
    if type_ in {Any, object}:
        return []
    if _is_union(type_):
        return _of_union(type_, value, path)
    if inspect.isclass(type_) and issubclass(type_, pydantic.BaseModel):
        return _of_model(type_, value, path)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is list:
        return _of_list(arguments[0], value, path)
    if origin is dict:
        return _of_dict(arguments[1], value, path)
    return _of_leaf(type_, value, path)


def members_of(type_: Any) -> list[Any]:
    """The members of a union and of the unions inside it."""
    type_ = _bare(type_)
    if not _is_union(type_):
        return [type_]
    return [inner for member in typing.get_args(type_) for inner in members_of(member)]


@functools.cache
def fields_of(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """A model's fields by their names on the wire."""
    if not model.__pydantic_complete__:
        model.model_rebuild()
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _bare(type_: Any) -> Any:
    while True:
        if typing.get_origin(type_) is typing.Annotated:
            type_ = typing.get_args(type_)[0]
        elif hasattr(type_, "__value__"):
            type_ = type_.__value__
        elif type_ is None:
            return type(None)
        else:
            return type_


def _is_union(type_: Any) -> bool:
    return typing.get_origin(type_) in {typing.Union, types.UnionType}


def _of_model(model: type[pydantic.BaseModel], value: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: {model.__name__} wants an object, this is {_said(value)}"]
    fields = fields_of(model)
    problems = [
        f"{path}.{name}: unknown to {model.__name__}" for name in value if name not in fields
    ]
    for name, field in fields.items():
        if name in value:
            problems += problems_of(field.annotation, value[name], f"{path}.{name}")
        elif field.is_required():
            problems.append(f"{path}.{name}: {model.__name__} requires it, it is missing")
    return problems


def _of_list(inner: Any, value: Any, path: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{path}: wants an array, this is {_said(value)}"]
    return [
        problem
        for index, member in enumerate(value)
        for problem in problems_of(inner, member, f"{path}[{index}]")
    ]


def _of_dict(inner: Any, value: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path}: wants an object, this is {_said(value)}"]
    return [
        problem
        for name, member in value.items()
        for problem in problems_of(inner, member, f"{path}.{name}")
    ]


def _of_union(union: Any, value: Any, path: str) -> list[str]:
    members = members_of(union)
    if isinstance(value, dict):
        told = _told_by_tag(members, value)
        if isinstance(told, str):
            return [f"{path}: {told}"]
        members = told
    attempts = [problems_of(member, value, path) for member in members]
    if not all(attempts):
        return []
    if len(attempts) == 1:
        return attempts[0]
    if isinstance(value, dict):
        return min(attempts, key=len)
    names = ", ".join(sorted({_name(member) for member in members}))
    return [f"{path}: {_said(value)} is none of {names}"]


def _told_by_tag(members: list[Any], value: dict[str, Any]) -> list[Any] | str:
    """The members that an object can be by its telling fields, or why it can be none."""
    left = [member for member in members if _takes_objects(member)]
    for tag in TELLING:
        tags = [_literals(member, tag) for member in left]
        if not any(tags):
            continue
        fitting = [
            member
            for member, literals in zip(left, tags, strict=True)
            if not literals or value.get(tag) in literals
        ]
        if not fitting:
            known = sorted({str(literal) for literals in tags for literal in literals})
            return f"no member has {tag} {value.get(tag)!r}; known: {', '.join(known)}"
        left = fitting
    return left or "an object is none of the members"


def _takes_objects(member: Any) -> bool:
    if inspect.isclass(member) and issubclass(member, pydantic.BaseModel):
        return True
    return member in {Any, object} or typing.get_origin(member) is dict


def _literals(member: Any, tag: str) -> tuple[Any, ...]:
    """The values by which this member can be told, of a field that it requires."""
    if not (inspect.isclass(member) and issubclass(member, pydantic.BaseModel)):
        return ()
    field = fields_of(member).get(tag)
    if field is None:
        return ()
    inner = [one for one in members_of(field.annotation) if one is not type(None)]
    if any(typing.get_origin(one) is not typing.Literal for one in inner):
        return ()
    values = tuple(value for one in inner for value in typing.get_args(one))
    return values if field.is_required() else (*values, None)


def _of_leaf(type_: Any, value: Any, path: str) -> list[str]:
    try:
        _adapter(type_).validate_json(json.dumps(value), strict=True)
    except pydantic.ValidationError as refused:
        said = refused.errors()[0]["msg"]
        return [f"{path}: wants {_name(type_)}, this is {_said(value)} ({said})"]
    return []


@functools.cache
def _adapter(type_: Any) -> pydantic.TypeAdapter[Any]:
    return pydantic.TypeAdapter(type_)


def _name(type_: Any) -> str:
    if typing.get_origin(type_) is typing.Literal:
        return " or ".join(repr(value) for value in typing.get_args(type_))
    return getattr(type_, "__name__", str(type_))


def _said(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False)
    return told if len(told) <= 60 else f"{told[:60]}…"
