"""What a session is told of itself."""

from __future__ import annotations

import pytest

from lockstitch.realtime.configuring import Configuration
from lockstitch.runner import Tool, tool
from lockstitch.runner.schemas import NotATool


def look(where: str) -> str:
    """Look somewhere."""
    return where


THEIRS = {"type": "function", "name": "theirs"}


def test_tools_of_ours_stand_before_those_of_the_caller():
    configuration = Configuration({"voice": "ash", "tools": [THEIRS]}, [Tool.of(look)])
    assert configuration.body["type"] == "realtime"
    assert configuration.body["voice"] == "ash"
    ours, other = configuration.body["tools"]
    assert (ours["type"], ours["name"], ours["description"]) == (
        "function",
        "look",
        "Look somewhere.",
    )
    assert "strict" not in ours
    assert other == THEIRS


def test_where_there_is_nothing_to_say_nothing_is_sent():
    assert Configuration(None, []).body is None
    assert Configuration({}, []).body == {"type": "realtime"}


def test_a_custom_tool_is_refused_at_once():
    @tool(kind="custom")
    def patch(text: str) -> str:
        """Patch."""
        return text

    with pytest.raises(NotATool, match="realtime has none"):
        Configuration(None, [patch])


def test_an_update_changes_what_it_names_and_keeps_the_tools_of_the_session():
    configuration = Configuration(
        {"audio": {"input": {"transcription": {"model": "a"}}, "output": {"voice": "ash"}}},
        [Tool.of(look)],
    )
    update = configuration.update({"audio": {"output": {"speed": 1.5}}, "tools": [THEIRS]})
    configuration.take(update)
    assert configuration.body["audio"] == {
        "input": {"transcription": {"model": "a"}},
        "output": {"voice": "ash", "speed": 1.5},
    }
    assert [one["name"] for one in configuration.body["tools"]] == ["look", "theirs"]
    assert configuration.functions == {"look", "theirs"}
    configuration.take(configuration.update({"instructions": "Be brief."}))
    assert [one["name"] for one in configuration.body["tools"]] == ["look", "theirs"]


def test_an_update_of_turn_detection_takes_its_place():
    configuration = Configuration(
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 0.5}}}}, []
    )
    configuration.take(
        configuration.update({"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}})
    )
    assert configuration.body["audio"]["input"] == {"turn_detection": {"type": "semantic_vad"}}


def test_only_functions_are_functions():
    tools = [THEIRS, {"type": "mcp", "server_label": "b"}]
    assert Configuration({"tools": tools}, []).functions == {"theirs"}
    assert Configuration(None, []).functions == frozenset()


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
    assert Configuration(given, []).transcribes is expected
