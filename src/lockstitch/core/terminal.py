"""Makes text from outside safe to print: on a terminal, in a log and in a CI annotation.

File names, tool names, ids, labels and error messages of a provider can hold anything. A control
character can move the cursor or clear the screen, and a direction override (U+202E) can make one
name look like another. Both are shown as escapes. Everything that prints such text uses this."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` on one line, without control characters and invisible formatting."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def printable_lines(text: str) -> str:
    """``text`` without control characters and invisible formatting, except newlines and tabs."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _escape(c) for c in text)


def _escape(character: str) -> str:
    """As Python writes it in a string, without the names: `\\x1b`, `\\u202e`, `\\U000e0001`."""
    number = ord(character)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
