"""What a session is told of itself."""

from __future__ import annotations

import pytest

from lockstitch.realtime.configuring import configuration, functions_of, transcribes
from lockstitch.runner import Tool, tool
from lockstitch.runner.schemas import NotATool


def look(where: str) -> str:
    """Look somewhere."""
    return where


def test_tools_of_ours_stand_before_those_of_the_caller():
    theirs = {"type": "function", "name": "theirs"}
    body = configuration({"voice": "ash", "tools": [theirs]}, [Tool.of(look)])
    assert body["type"] == "realtime"
    assert body["voice"] == "ash"
    ours, other = body["tools"]
    assert (ours["type"], ours["name"], ours["description"]) == (
        "function",
        "look",
        "Look somewhere.",
    )
    assert "strict" not in ours
    assert other == theirs


def test_where_there_is_nothing_to_say_nothing_is_sent():
    assert configuration(None, []) is None
    assert configuration({}, []) == {"type": "realtime"}


def test_a_custom_tool_is_refused_at_once():
    @tool(kind="custom")
    def patch(text: str) -> str:
        """Patch."""
        return text

    with pytest.raises(NotATool, match="realtime has none"):
        configuration(None, [patch])


def test_the_functions_of_a_caller_are_known_by_name():
    tools = [{"type": "function", "name": "a"}, {"type": "mcp", "server_label": "b"}]
    assert functions_of({"tools": tools}) == {"a"}
    assert functions_of(None) == frozenset()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, False),
        ({"audio": {"input": {"transcription": {"model": "whisper-1"}}}}, True),
        ({"audio": {"input": {"transcription": None}}}, False),
        ({"audio": None}, False),
    ],
)
def test_words_come_later_where_they_are_asked_for(given, expected):
    assert transcribes(given) is expected
