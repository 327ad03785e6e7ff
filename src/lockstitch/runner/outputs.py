"""What a tool gave back, as a model can be told it: a text, or content parts. Never too long."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from lockstitch.core.outcomes import MARK

Content: TypeAlias = list[dict[str, Any]]

LONGEST_OUTPUT_CHARACTERS = 200_000
"""About 50,000 tokens: one output must not fill the model's window, and stays far below what
providers take in one text (10 MiB)."""

LONGEST_MARK_CHARACTERS = 80
"""What is kept free for the words that say what was left out."""


class Unwritable(Exception):
    """A tool ended, and no output can be made of what it gave back. The message says what."""


def written(value: Any, dialect: str = "responses") -> tuple[str, Content | None]:
    """The text of an output, and its content where it is more than a text. Content parts that this
    API takes stay content; any other value becomes JSON. Raises `Unwritable`."""
    if isinstance(value, str):
        return shortened(value), None
    if isinstance(value, bytes | bytearray | memoryview):
        raise Unwritable(f"{type(value).__name__}, which is not text")
    try:
        # A copy: what the tool does later to its own list is its own affair.
        plain = _with_named_numbers(msgspec.to_builtins(value, str_keys=True, enc_hook=_plain))
        encoded = msgspec.json.encode(plain)
    except RecursionError:
        raise Unwritable("a value that is nested too deeply, or holds itself") from None
    except Exception as error:
        raise Unwritable(f"{type(value).__name__} ({error})") from None
    if isinstance(value, float) and isinstance(plain, str):
        return plain, None  # the name of a number that JSON does not have
    parts = _parts(plain)
    if parts and all(_fits(part, _PARTS.get(dialect, {})) for part in parts):
        texts = [part for part in parts if part["type"] in _TEXTS]
        for part in texts:
            part["text"] = shortened(part["text"])
        return "\n".join(part["text"] for part in texts), parts
    if parts and all(_fits(part, _TEXT) for part in parts):
        return shortened("\n".join(part["text"] for part in parts)), None
    return shortened(encoded.decode()), None


def _with_named_numbers(value: Any) -> Any:
    """JSON has no NaN and no infinity, and null would say that there is nothing."""
    if isinstance(value, dict):
        return {name: _with_named_numbers(inside) for name, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_with_named_numbers(inside) for inside in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _parts(plain: Any) -> Content:
    """A list of objects, or one of them, as content parts would be; none for any other value."""
    several = [plain] if isinstance(plain, dict) else plain
    if not isinstance(several, list) or not all(isinstance(part, dict) for part in several):
        return []
    # Models write fields that nobody has set as null.
    return [{name: said for name, said in part.items() if said is not None} for part in several]


_Form: TypeAlias = Callable[[dict[str, Any]], bool]


def _with_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def _with_one_of(*fields: str) -> _Form:
    """A part in which at least one of these fields says where its content is. Its other fields pass
    as they are: nothing else has a type such as `input_image`."""
    return lambda part: any(part.get(field) and isinstance(part[field], str) for field in fields)


def _block(*optional: str, **needed: type) -> _Form:
    """A part with these fields, not empty, and no others: a record of the tool's own may have the
    type `document` too."""
    known = {"type", "cache_control", *needed, *optional}

    def fits(part: dict[str, Any]) -> bool:
        given = [(part.get(name), kind) for name, kind in needed.items()]
        return part.keys() <= known and all(
            isinstance(value, kind) and bool(value.strip() if isinstance(value, str) else value)
            for value, kind in given
        )

    return fits


def _block_with_source(*optional: str) -> _Form:
    form = _block(*optional, source=dict)
    return lambda part: form(part) and part["source"].get("type") in _SOURCES


_SOURCES = ("base64", "content", "file", "text", "url")
_TEXT: Mapping[str, _Form] = {"input_text": _with_text}
_PARTS: Mapping[str, Mapping[str, _Form]] = {
    "responses": {
        **_TEXT,
        "input_image": _with_one_of("image_url", "file_id"),
        "input_file": _with_one_of("file_url", "file_id", "file_data"),
    },
    "messages": {
        "text": _block("citations", text=str),
        "image": _block_with_source("transformations"),
        "document": _block_with_source("citations", "context", "title"),
        "search_result": _block("citations", source=str, title=str, content=list),
    },
    "chat": {"text": lambda part: part.keys() == {"type", "text"} and _with_text(part)},
    "realtime": {},
}
"""The content parts of an output that each API takes. Where it takes no `_TEXT`, the texts of such
parts are joined."""
_TEXTS = ("input_text", "text")


def foreign_type(parts: Iterable[Any], dialect: str) -> str | None:
    """The type of a content part that only another API takes; types that none has here may pass."""
    own, others = _PARTS.get(dialect, {}), {kind for forms in _PARTS.values() for kind in forms}
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(kind, str) and kind in others and kind not in own:
            return kind
    return None


def _fits(part: dict[str, Any], forms: Mapping[str, _Form]) -> bool:
    kind = part.get("type")
    form = forms.get(kind) if isinstance(kind, str) else None
    return form is not None and form(part)


def _plain(value: Any) -> Any:
    """Pydantic's models come with both official clients; they know how to be plain."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, float):
        return float(value)  # such as NumPy's
    raise NotImplementedError(f"{type(value).__name__} cannot be written as JSON")


def error_text(error: BaseException) -> str:
    """``TypeName: message``. No traceback: that is for people."""
    try:
        said = str(error)
    except Exception:
        said = ""
    if isinstance(error, BaseExceptionGroup):
        said = f"{error.message}: {'; '.join(map(error_text, error.exceptions))}"
    name = type(error).__name__
    return shortened(f"{name}: {said}" if said else name)


def shortened(text: str, longest: int = LONGEST_OUTPUT_CHARACTERS) -> str:
    """A text that is not too long and has a form in UTF-8. Where its middle is left out, it says
    so there; beginning and end tell most."""
    if not text.isascii():
        # Names of files may hold half of a surrogate pair: no UTF-8 has that.
        text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) <= longest:
        return text
    kept = longest - LONGEST_MARK_CHARACTERS
    mark = f"\n{MARK} {len(text) - kept} characters are left out here.\n"
    return text[: kept - kept // 2] + mark + text[len(text) - kept // 2 :]
