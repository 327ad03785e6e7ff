"""What a tool gave back, as a model can be told it: a text, or content parts. Never too long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from lockstitch.core.outcomes import MARK

Content: TypeAlias = list[dict[str, Any]]

LONGEST_OUTPUT_CHARACTERS = 200_000
"""About 50,000 tokens: one output must not fill the model's window, and stays far below what
providers take in one text (10 MiB)."""

LONGEST_MARK_CHARACTERS = 80
"""What is kept free for the words that say what was left out."""

_PARTS = ("input_text", "input_image", "input_file")
"""Compared one by one: what a tool gives back as a type may be anything, a list too."""


class Unwritable(Exception):
    """A tool ended, and no output can be made of what it gave back. The message says what."""


def written(value: Any) -> tuple[str, Content | None]:
    """The text of an output, and its content where it is more than a text. Raises `Unwritable`."""
    if isinstance(value, str):
        return shortened(value), None
    if isinstance(value, bytes | bytearray | memoryview):
        raise Unwritable(f"{type(value).__name__}, which is not text")
    content = _content(value)
    try:
        encoded = msgspec.json.encode(value if content is None else content, enc_hook=_plain)
    except RecursionError:
        raise Unwritable("a value that is nested too deeply, or holds itself") from None
    except Exception as error:
        raise Unwritable(f"{type(value).__name__} ({error})") from None
    if content is None:
        return shortened(encoded.decode()), None
    # A copy: what the tool does later to its own list is its own affair.
    parts: Content = msgspec.json.decode(encoded)
    texts = [part for part in parts if part["type"] == "input_text"]
    for part in texts:
        part["text"] = shortened(part["text"])
    return "\n".join(part["text"] for part in texts), parts


def _content(value: Any) -> Sequence[Any] | None:
    """Content parts of an output item, or one of them; anything else is a value."""
    parts = [value] if isinstance(value, Mapping) else value
    if not isinstance(parts, list | tuple) or not parts:
        return None
    return parts if all(_is_part(part) for part in parts) else None


def _is_part(part: Any) -> bool:
    if not isinstance(part, Mapping) or part.get("type") not in _PARTS:
        return False
    return part["type"] != "input_text" or isinstance(part.get("text"), str)


def _plain(value: Any) -> Any:
    """Pydantic's models come with both official clients; they know how to be plain."""
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
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
