"""What went over the wire is recorded, without its secrets, up to a limit."""

import io
import json

import pytest

from lockstitch.emulator import record as recording
from lockstitch.emulator.events import Event
from lockstitch.emulator.record import Record, json_in, public


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


def test_secrets_are_recorded_by_name_alone():
    headers = {"Authorization": "Bearer sk-1", "X-Api-Key": "k", "Cookie": "c", "Accept": "*/*"}
    assert dict(public(headers)) == {
        "Authorization": "[secret]",
        "X-Api-Key": "[secret]",
        "Cookie": "[secret]",
        "Accept": "*/*",
    }


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


def test_whoever_watches_sees_each_entry_once(record):
    seen = []
    record.watch(seen.append)
    record.sent(1, "response", "200")
    record.events(1, "event", (Event("a", 0, b""), Event("b", 1, b"")), 10)
    assert seen == list(record.entries())


def test_what_is_no_json_is_shown_as_text():
    assert json_in(b'event: a\ndata: {"b": 1}\n\n') == {"b": 1}
    assert json_in(b"half \xc3") == "half \ufffd"


def test_a_reset_forgets_everything(record):
    record.refused(1, "duplicate-item", "response", "400", b"{}")
    record.reset()
    assert not list(record.entries())
    assert not record.broken
