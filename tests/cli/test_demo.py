"""`lockstitch demo`: what it shows really happens, on both sides."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

import lockstitch as library
from lockstitch.cli import app, demonstrating
from lockstitch.demo import address_reused, cases
from lockstitch.demo.playing import Line, Played, Side, Stage
from tests.cli.commands import lockstitch, program

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"

WHOLE = "No tool output found for function call"


@pytest.fixture(scope="module")
def played():
    """Every case, as a machine reads it."""
    ran = lockstitch("demo", "--output", "json")
    assert ran.code == 0, ran
    return {one["case"]: one for one in json.loads(ran.out)}


def said(side, who):
    return [line["text"] for line in side["lines"] if line["who"] == who]


def test_all_cases_are_played_if_none_is_named(played):
    assert list(played) == list(cases.CASES) == ["A", "B", "C", "D"]
    assert all(one["as_expected"] for one in played.values())


@pytest.mark.parametrize("letter", ["A", "D"])
def test_the_naive_loop_is_refused_in_the_words_of_the_provider(played, letter):
    side = played[letter]["naive"]
    assert side["error"].startswith(f"400 {WHOLE} call_")
    assert side["violations"] == {"call-without-output": 1}
    assert said(side, "provider") == [side["error"]]


@pytest.mark.parametrize("letter", ["A", "B", "C", "D"])
def test_lockstitch_meets_the_same_fault_and_its_conversation_is_whole(played, letter):
    side = played[letter]["lockstitch"]
    assert said(side, "fault")
    assert (side["error"], side["violations"]) == (None, {})
    assert library.check(side["history"]) == []
    calls = [item for item in side["history"] if item.get("type") == "function_call"]
    outputs = [item for item in side["history"] if item.get("type") == "function_call_output"]
    assert [call["call_id"] for call in calls] == [output["call_id"] for output in outputs]
    assert said(side, "model")[-1] == cases.CASES[letter].script[-1]


def test_in_case_a_a_result_reuses_a_freed_address(played):
    for side in (played["A"]["naive"], played["A"]["lockstitch"]):
        assert "Rome's result reuses the address of a freed one" in said(side, "fault")


def test_in_case_a_the_naive_loop_drops_an_output_for_its_address(played):
    (dropped,) = said(played["A"]["naive"], "loop")
    assert dropped.startswith("call_rome: ")
    assert all("call_rome" not in output for output in said(played["A"]["naive"], "output"))


def test_in_case_b_the_two_way_diff_deletes_what_its_agent_has_not_heard_of(played):
    side = played["B"]["naive"]
    assert side["error"] == "Tool call ID 'call_book' not found in conversation."
    assert side["violations"] == {"output-without-call": 1}
    done = said(side, "loop")
    assert "not in its own context: deletes call call_book" in done
    assert done[-1] == "previous_item_id not found: loses an item"


def test_in_case_b_the_session_keeps_the_call_and_what_the_user_said_meanwhile(played):
    side = played["B"]["lockstitch"]
    done = said(side, "loop")
    assert [one for one in done if "deletes" in one] == [
        "summarised: deletes a user message",
        "summarised: deletes a model message",
    ]
    assert "newer than the snapshot: keeps call call_book" in done
    words = [item["content"][0].get("transcript") for item in side["history"] if "role" in item]
    assert "And hurry, please." in words
    assert "Hello, this is Ada." not in words  # that was summarised, as asked
    types = [item["type"] for item in side["history"]]
    at = types.index("function_call")
    assert types[at + 1] == "function_call_output"
    assert side["effects"] == played["B"]["naive"]["effects"] == 1


def test_in_case_c_the_proxy_sends_an_output_without_its_call(played):
    side = played["C"]["naive"]
    assert side["error"].startswith("400 No tool call found for function call output")
    assert side["violations"] == {"output-without-call": 1}
    assert said(side, "proxy") == ["retries without previous_response_id"]


def test_in_case_d_the_first_process_is_killed_and_the_flight_is_booked_once(played):
    for side in (played["D"]["naive"], played["D"]["lockstitch"]):
        assert said(side, "process")[0].startswith("kill -9")
        assert said(side, "call") == ['call_book: book({"flight":"LS 740"})']
        assert side["effects"] == 1


def test_a_result_that_is_still_held_keeps_its_address(monkeypatch, tmp_path):
    monkeypatch.setattr(address_reused, "MOST_OBJECTS", 1_000)
    stage = Stage("http://127.0.0.1:9/v1", tmp_path)
    thermometer = address_reused.Thermometer(stage)
    results = [_run(thermometer.temperature(city)) for city in ("Oslo", "Rome")]
    assert id(results[0]) != id(results[1])
    assert stage.lines == []


def _run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as returned:
        return returned.value
    raise AssertionError("it waits")


def replaced(case, **changes):
    fields = {name: getattr(case, name) for name in case.__struct_fields__}
    return type(case)(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"naive": address_reused.runner},
            "Unexpected: this did not fail, so the case shows nothing.",
        ),
        ({"lockstitch": address_reused.naive}, "Unexpected: Lockstitch failed here."),
    ],
)
def test_the_exit_code_is_1_if_a_case_does_not_go_as_it_must(monkeypatch, changes, said):
    monkeypatch.setitem(cases.CASES, "A", replaced(address_reused.CASE, **changes))
    ran = lockstitch("demo", "a")
    assert ran.code == app.FINDINGS
    assert said in ran.out


def test_a_side_that_the_fault_never_struck_shows_nothing():
    case = address_reused.CASE
    answer = {"role": "assistant", "content": address_reused.ANSWER}
    struck = [Line("fault", "it broke")]

    def played(lines):
        common = {"lines": lines, "violations": {}, "effects": 0}
        naive = Side(error=f"400 {WHOLE} call_1.", history=[], **common)
        held = Side(error=None, history=[answer], **common)
        return Played(case=case, naive=naive, lockstitch=held)

    assert played(struck).as_expected
    assert not played([]).naive_failed
    assert not played([]).held


def test_without_a_terminal_the_sides_come_one_after_the_other():
    ran = lockstitch("demo", "A")
    assert ran.code == 0
    assert ran.out.startswith("Case A: A reused memory address\n")
    naive, runner = ran.out.split("  With Lockstitch: the Runner\n")
    assert f"    provider 400 {WHOLE} call_rome.\n" in naive
    assert "    model    Rome is the warmest, with 24 degrees.\n    OK: every call" in runner
    assert "\x1b" not in ran.out


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_on_a_terminal_the_sides_stand_side_by_side(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert app.run(["demo", "A"]) == 0
    (titles,) = [line for line in terminal.getvalue().splitlines() if "Without Lockstitch" in line]
    assert "With Lockstitch: the Runner" in titles
    assert WHOLE in terminal.getvalue()


def test_on_a_terminal_without_rich_the_output_is_plain_text(monkeypatch):
    terminal = Terminal()
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert demonstrating.run(["A"], "text") == 0
    assert "\n  With Lockstitch: the Runner\n    user     How warm" in terminal.getvalue()


def test_the_picture_in_the_docs_is_the_output_of_the_demo():
    drawing = runpy.run_path(str(PICTURES / "draw.py"))
    drawn = drawing["draw"]()
    assert drawn == drawing["FILE"].read_text(), "Run: make picture"
    assert drawing["FILE"] == PICTURES / "demo-d.svg"
    assert set(re.findall(r"https?://[^\"<) ]+", drawn)) == {"http://www.w3.org/2000/svg"}


def test_a_case_that_does_not_exist_is_told_with_those_that_do():
    ran = lockstitch("demo", "Z")
    assert ran.code == app.TROUBLE
    assert "There is no case 'Z'. Choose from: A, B, C, D." in ran.err


@pytest.mark.parametrize("library_name", ["openai", "aiohttp", "apsw"])
def test_without_its_parts_it_says_what_to_install(tmp_path, library_name):
    (tmp_path / f"{library_name}.py").write_text(
        f"raise ModuleNotFoundError(name={library_name!r})"
    )
    ran = program("demo", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert ran.returncode == app.TROUBLE
    assert f"demo needs {library_name}, which is not installed.".encode() in ran.stderr
    assert b"pip install 'lockstitch[demo]'" in ran.stderr
