"""Log lines: what is in them, and what never is."""

from __future__ import annotations

import io
import json
import logging
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.gateway.config import LogSettings, Secret
from lockstitch.gateway.watching import logs
from lockstitch.gateway.watching.logs import RequestEnded


@pytest.fixture(autouse=True)
def afterwards():
    yield
    logs.configure(LogSettings())


def logged(work, settings=None, hide=()):
    stream = io.StringIO()
    logs.configure(settings or LogSettings(level="debug"), hide=hide, stream=stream)
    work()
    return stream.getvalue()


def logged_to_a_terminal(work, settings=None):
    reader, terminal = os.openpty()
    with open(reader, "rb", buffering=0) as screen, open(terminal, "w") as stream:
        logs.configure(settings or LogSettings(), stream=stream)
        work()
        return screen.read(LONGEST_LINE).decode()


def lines(work, **options):
    return [json.loads(line) for line in logged(work, **options).splitlines()]


LONGEST_LINE = 4096
"""More than any of these; a terminal keeps as much before it is read."""

ENDED = RequestEnded(
    request_id="req_1",
    method="POST",
    path="/v1/responses?key=sesame",
    status=200,
    milliseconds=12.345,
    key="anna",
    upstream="openai",
    events=3,
    notes=("replayed", "retried"),
)


def test_a_request_is_one_line_of_json():
    (line,) = lines(lambda: logs.request_ended(ENDED))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "event": "request",
        "request_id": "req_1",
        "method": "POST",
        "path": "/v1/responses",
        "status": 200,
        "milliseconds": 12.3,
        "key": "anna",
        "upstream": "openai",
        "events": 3,
        "notes": ["replayed", "retried"],
    }


def test_what_is_not_known_is_left_out_and_a_server_error_is_a_warning():
    ended = RequestEnded(request_id="r", method="GET", path="/", status=502, milliseconds=1)
    (line,) = lines(lambda: logs.request_ended(ended))
    assert line["level"] == "warning"
    assert not {"key", "upstream", "events", "notes"} & set(line)


def test_levels():
    def every():
        logs.detail("a")
        logs.happened("b")
        logs.careful("c")
        logs.went_wrong("d")

    assert [line["event"] for line in lines(every)] == ["a", "b", "c", "d"]
    some = lines(every, settings=LogSettings(level="warning"))
    assert [(line["event"], line["level"]) for line in some] == [("c", "warning"), ("d", "error")]


def test_text_for_people():
    said = logged(lambda: logs.request_ended(ENDED), LogSettings(format="text"))
    assert "info request  request_id=req_1 method=POST path=/v1/responses status=200" in said
    assert "notes=replayed,retried" in said


def test_on_a_terminal_lines_are_for_people_and_elsewhere_for_programs(tmp_path):
    said = logged_to_a_terminal(lambda: logs.happened("draining", seconds=30.0))
    assert said.endswith(" info draining  seconds=30.0\r\n")
    chosen = logged_to_a_terminal(lambda: logs.happened("x"), LogSettings(format="json"))
    assert json.loads(chosen)["event"] == "x"
    with (tmp_path / "log").open("w") as file:
        logs.configure(LogSettings(), stream=file)
        logs.happened("x")
    assert json.loads((tmp_path / "log").read_text())["event"] == "x"


def test_what_an_error_says_moves_no_cursor():
    said = logged_to_a_terminal(lambda: logs.went_wrong("oops", ValueError("a\x1b[2Jb\n2026 fake")))
    assert "\x1b" not in said
    assert "    ValueError: a\\x1b[2Jb\r\n    2026 fake\r\n" in said


def test_a_text_from_outside_does_not_look_like_a_line():
    for form in ("json", "text"):
        said = logged(
            lambda: logs.happened("x", path="/a\n2026 error fake\r\x1b[1m"),
            LogSettings(format=form),
        )
        assert said.count("\n") == 1
        assert "\x1b" not in said


def test_a_json_line_is_plain_on_a_terminal_and_means_the_same():
    path = "/a\x7f\x9b2J\u202egnp.exe\U000e0041é"
    said = logged(lambda: logs.happened("x", path=path), LogSettings(format="json"))
    assert said.rstrip("\n").isprintable()
    assert json.loads(said)["path"] == path


def test_an_error_has_its_trace_without_secrets():
    def work():
        try:
            raise ValueError("refused: Bearer abc.def")
        except ValueError as error:
            logs.went_wrong("oops", error)

    (line,) = lines(work)
    assert "ValueError: refused: [hidden]" in line["exception"]
    assert "Traceback" in line["exception"]


def test_what_cannot_be_written_does_not_stop_anything():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    logs.configure(LogSettings(), stream=Gone())
    logs.happened("x")
    said = lines(lambda: logs.happened("x", path="/\udcff", number=10**40, body=b"abc"))
    assert len(said) == 1
    assert "abc" not in str(said)


KEYS = st.from_regex(r"(sk-|lsk_)[A-Za-z0-9_-]{16,48}", fullmatch=True)
NESTED = st.recursive(
    st.text(max_size=10),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.text(max_size=5), below, max_size=3)
        | st.tuples(below, below)
    ),
    max_leaves=6,
)


def planted(fact, secret):
    """The same, with the secret in every text of it."""
    if isinstance(fact, str):
        return f"{fact}{secret}{fact}"
    if isinstance(fact, dict):
        return {f"{name}{secret}": planted(one, secret) for name, one in fact.items()}
    return type(fact)(planted(one, secret) for one in fact)


@given(NESTED, KEYS, st.sampled_from(["json", "text"]))
def test_no_secret_is_in_any_line(fact, secret, form):
    def work():
        logs.happened(f"event {secret}", fact=planted(fact, secret), error=ValueError(secret))
        logs.happened("x", **{f"name{secret}": Secret(secret), "authorization": f"Bearer {secret}"})

    assert secret not in logged(work, LogSettings(format=form))


@given(st.from_regex(r"[a-z0-9]{12,40}", fullmatch=True), NESTED)
def test_a_secret_of_the_configuration_is_in_no_line_whatever_it_looks_like(secret, fact):
    assert secret not in logged(
        lambda: logs.happened("x", fact=planted(fact, secret)), hide=[secret]
    )


def test_what_libraries_say_is_a_line_like_any_other_without_a_key():
    def work():
        try:
            raise ValueError("authorization: Bearer sk-0123456789abcdefgh")
        except ValueError:
            logging.getLogger("some.library").exception(
                "it broke\nin two lines: %s", "lsk_abcdefgh"
            )
        logging.getLogger("some.library").info("nobody wants to know")

    (line,) = lines(work)
    assert (line["level"], line["logger"]) == ("error", "some.library")
    assert line["event"].startswith("it broke\nin two lines")
    assert "ValueError" in line["exception"]
    assert "sk-0123" not in str(line)
    assert "lsk_abc" not in str(line)
