"""What went over the wire is recorded, without its secrets, up to a limit."""

import io
import json

import pytest

from lockstitch.emulator import record as recording
from lockstitch.emulator.events import Event
from lockstitch.emulator.limits import LONGEST_RECORDED_LINE_CHARACTERS
from lockstitch.emulator.record import Record, json_in, public, public_query


@pytest.fixture
def record():
    return Record(lambda: 1.5)


def test_entries_are_numbered_in_the_order_they_happened(record):
    record.received(1, "request", "POST /v1/responses", b'{"a":1}')
    record.events(1, "event", (Event("a", 0, b"1"), Event("b", 1, b"2")), 10)
    record.sent(1, "response", "200")
    entries = list(record.entries())
    assert [entry.number for entry in entries] == [1, 2, 3, 4]
    assert [entry.what for entry in entries] == ["POST /v1/responses", "a", "b", "200"]
    assert [entry.sent for entry in entries] == [False, True, True, True]


def test_a_refusal_counts_by_its_rule_unless_a_fault_asked_for_it(record):
    record.refused(1, "duplicate-item", "response", "400", b"{}")
    record.refused(1, "fault", "response", "500", b"{}")
    assert dict(record.broken) == {"duplicate-item": 1}
    assert [entry.broke for entry in record.entries()] == ["duplicate-item", None]


def test_the_oldest_fall_out_and_are_counted(record, monkeypatch):
    monkeypatch.setattr(recording, "MOST_RECORDED_BYTES", 5_000)
    for number in range(30):
        record.sent(1, "response", str(number), b"x" * 100)
        record.events(1, "event", (Event("a", 0, b""), Event("b", 1, b"")), 200)
    entries = list(record.entries())
    assert record.dropped > 0
    assert entries[-1].number == 90
    assert entries[0].number == record.dropped + 1
    assert len(entries) == 90 - record.dropped


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "X-Goog-Api-Key",
        "OpenAI-Api-Key",
        "ApiKey",
        "X-Auth-Token",
        "X-Amz-Security-Token",
        "Client-Secret",
        "Cookie",
        "Set-Cookie",
        "Sec-WebSocket-Protocol",
    ],
)
def test_secrets_are_recorded_by_name_alone(name):
    assert public({name: "sk-1"}) == ((name, "[secret]"),)
    assert public_query(f"a=1&{name}=sk-1") == f"a=1&{name}=[secret]"


@pytest.mark.parametrize("name", ["Accept", "Idempotency-Key", "X-Stainless-Retry-Count"])
def test_what_is_no_secret_is_recorded(name):
    assert public({name: "1"}) == ((name, "1"),)
    assert public_query(f"{name}=1") == f"{name}=1"


def test_headers_count_towards_what_is_kept(record, monkeypatch):
    monkeypatch.setattr(recording, "MOST_RECORDED_BYTES", 5_000)
    for _ in range(30):
        record.received(1, "request", "GET /", headers=(("X-A", "a" * 1_000),))
    assert 0 < len(list(record.entries())) < 5


def test_lines_that_clients_make_up_are_counted_up_to_a_limit(record, monkeypatch):
    monkeypatch.setattr(recording, "MOST_COUNTED_LINES", 3)
    for number in range(10):
        record.received(1, "frame", f"frame {number}")
    record.received(1, "frame", "frame 0")
    assert dict(record.requests) == {"frame 0": 2, "frame 1": 1, "frame 2": 1, "(others)": 7}


def test_a_line_that_is_too_long_is_cut(record):
    record.received(1, "frame", "frame " + "x" * 100_000)
    (line,) = record.requests
    (entry,) = record.entries()
    assert entry.what == line
    assert len(line) < 2 * LONGEST_RECORDED_LINE_CHARACTERS


def test_text_that_is_no_utf8_can_be_written():
    file = io.StringIO()
    record = Record(lambda: 1.5, file)
    record.received(
        1, "request", "GET /\udcff", b"", public({"X\udcff": "\ud800"}), public_query("a=\udcff")
    )
    said = json.loads(file.getvalue())
    assert said["what"] == "GET /\\udcff"
    assert said["headers"] == [["X\\udcff", "\\ud800"]]


def test_a_body_that_is_nested_too_deep_is_shown_as_text():
    assert json_in(b"[" * 900 + b"]" * 900) == "[" * 900 + "]" * 900


def test_a_connection_keeps_its_number_for_ever(record):
    first = record.connection()
    record.reset()
    assert record.connection() == first + 1


def test_a_file_gets_a_line_of_json_for_each_entry():
    file = io.StringIO()
    record = Record(lambda: 1.5, file)
    record.received(1, "request", "POST /v1/responses", b'{"a":1}', (("Accept", "*/*"),))
    record.events(1, "event", (Event("a", 0, b'{"b":2}'), Event("c", 1, b"\xff")), 10)
    record.struck_by(1, "cut", "before=first-byte")
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["data"] == {"a": 1}
    assert lines[0]["direction"] == "in"
    assert lines[1]["data"] == {"b": 2}
    assert lines[3]["fault"] == "cut"


def test_a_file_that_takes_no_more_is_given_up_and_the_record_goes_on(caplog):
    with open("/dev/full", "w", encoding="utf-8", buffering=1) as file:
        record = Record(lambda: 1.5, file)
        for _ in range(3):
            record.received(1, "request", "POST /v1/responses")
            record.flush()
        assert record.unwritten == "No space left on device"
        assert len(list(record.entries())) == 3
        assert len(caplog.records) == 1
        with pytest.raises(OSError, match="No space"):
            file.close()


def test_whoever_watches_sees_each_entry_once(record):
    seen = []
    record.watch(seen.append)
    record.sent(1, "response", "200")
    record.events(1, "event", (Event("a", 0, b""), Event("b", 1, b"")), 10)
    assert seen == list(record.entries())


def test_what_is_no_json_is_shown_as_text():
    assert json_in(b'{"b": 1}') == {"b": 1}
    assert json_in(b"half \xc3") == "half \ufffd"


def test_a_reset_forgets_everything(record):
    record.refused(1, "duplicate-item", "response", "400", b"{}")
    record.reset()
    assert not list(record.entries())
    assert not record.broken
