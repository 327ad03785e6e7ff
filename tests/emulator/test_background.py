"""Responses in the background: they run on, whoever listens, until they end or somebody ends them.

Where a clock stands still, a stall stands for a response that takes its time."""

import asyncio
import http.client
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lockstitch.emulator import VirtualClock, call
from lockstitch.emulator.responses.run import Run
from lockstitch.testing import EmulatorThread
from tests.emulator.wire import SECONDS, Answer, Wire, events_in

# The events of "One two." in the background.
NAMES = [
    "response.created",
    "response.queued",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


@pytest.fixture
def emulator() -> Iterator[EmulatorThread]:
    with EmulatorThread(clock=VirtualClock(flowing=False)) as running:
        yield running


@pytest.fixture
def wire(emulator: EmulatorThread) -> Wire:
    return Wire(emulator)


def begun(emulator: EmulatorThread, wire: Wire, *, after: int = 3, **body: Any) -> str:
    """The id of a response that waits after this event until the clock is moved by nine."""
    emulator.say("One two.", faults=(f"stall after={after} seconds=9",))
    return str(wire.create(background=True, **body).body["id"])


def until(seen: Callable[[], Any]) -> Any:
    """What is seen, once it is something."""
    ends = time.monotonic() + SECONDS
    while not (found := seen()):
        assert time.monotonic() < ends
    return found


def over(wire: Wire, response: str) -> dict[str, Any]:
    """The response when it is over; it needs no time for it, but its turn."""

    def seen() -> Any:
        body = wire.get(f"/responses/{response}").body
        return body if body["status"] not in {"queued", "in_progress"} else None

    body: dict[str, Any] = until(seen)
    return body


def names(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def replayed(wire: Wire, response: str) -> list[dict[str, Any]]:
    return events_in(wire.get(f"/responses/{response}", stream="true").raw)


def struck(emulator: EmulatorThread) -> dict[str, int]:
    return dict(emulator.emulator.record.struck)


def left_armed(emulator: EmulatorThread) -> list[str]:
    return [fault.text for fault in emulator.emulator.faults.all() if fault.left]


def tasks_in(emulator: EmulatorThread) -> int:
    """The tasks of background responses."""

    async def count() -> int:
        names = [getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks()]
        return sum(name.startswith("Background.") for name in names)

    return emulator._wait(count())


class Listening:
    """A request that is answered when it is; the answer, or the error, in the end."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask
        self._answer: Any = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer = self._ask()
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError) as error:
            self._answer = error

    def heard(self) -> Any:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self._answer

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()


def asked(ask: Any) -> Any:
    return Listening(ask).heard()


# Followed


@pytest.mark.parametrize("words", [1, 20, 21, 22, 23, 60, 100, 2000])
def test_a_stream_has_its_end_however_long_it_is(emulator, wire, words):
    emulator.say(" ".join("word" for _ in range(words)))
    events = wire.stream(background=True)
    assert [event["sequence_number"] for event in events] == list(range(words + 9))
    assert names(events)[-1] == "response.completed"
    assert replayed(wire, events[-1]["response"]["id"]) == events


def test_nobody_hears_an_event_before_its_time(emulator, wire):
    emulator.say("One two.", faults=("stall before=response.completed seconds=9",))
    response = wire.create(background=True).body["id"]
    follower = Listening(lambda: replayed(wire, response))
    until(lambda: wire.get(f"/responses/{response}").body["output"])
    seen = wire.get(f"/responses/{response}").body
    assert (seen["status"], seen["usage"], seen["completed_at"]) == ("in_progress", None, None)
    assert wire.create(previous_response_id=response).status == 400
    assert wire.post(f"/responses/{response}/cancel").body["status"] == "cancelled"
    assert names(follower.heard()) == NAMES[:-1]


# Ended by somebody


def deleted(emulator: EmulatorThread, wire: Wire, response: str) -> None:
    assert wire.delete(f"/responses/{response}").status == 200


def forgotten(emulator: EmulatorThread, wire: Wire, response: str) -> None:
    emulator.forget(response)


def all_forgotten(emulator: EmulatorThread, wire: Wire, response: str) -> None:
    emulator.forget()


def reset(emulator: EmulatorThread, wire: Wire, response: str) -> None:
    emulator.reset()


ENDINGS = (deleted, forgotten, all_forgotten, reset)


@pytest.mark.parametrize("ended", ENDINGS)
@pytest.mark.parametrize("after", [0, 3, 9])
def test_what_is_gone_does_not_come_back(emulator, wire, ended, after):
    response = begun(emulator, wire, after=after)
    follower = Listening(lambda: replayed(wire, response))
    ended(emulator, wire, response)
    answer = follower.heard()
    assert isinstance(answer, Exception) or "response.completed" not in names(answer)
    assert tasks_in(emulator) == 0
    emulator.advance(99)
    assert wire.get(f"/responses/{response}").status == 404
    assert wire.create(previous_response_id=response).status == 400
    assert emulator.emulator.responses.ids_stored() == []


@pytest.mark.parametrize("ended", [deleted, forgotten])
def test_a_conversation_is_free_when_its_response_is_gone(emulator, wire, ended):
    conversation = wire.post("/conversations").body["id"]
    response = begun(emulator, wire, conversation=conversation)
    assert wire.create(conversation=conversation).status == 400
    ended(emulator, wire, response)
    assert wire.create("again", conversation=conversation).status == 200
    emulator.advance(99)
    items = wire.get(f"/conversations/{conversation}/items").body["data"]
    assert [item["content"][0]["text"] for item in items] == ["You said: again", "again"]


def test_a_cancelled_response_leaves_no_task_and_no_lock(emulator, wire):
    conversation = wire.post("/conversations").body["id"]
    response = begun(emulator, wire, conversation=conversation)
    assert wire.post(f"/responses/{response}/cancel").body["status"] == "cancelled"
    assert tasks_in(emulator) == 0
    assert wire.create(conversation=conversation).status == 200
    assert wire.get(f"/responses/{response}").body["status"] == "cancelled"


@pytest.mark.parametrize("ended", [forgotten, all_forgotten, reset])
def test_a_response_that_is_forgotten_while_it_is_told_is_not_kept(emulator, wire, ended):
    conversation = wire.post("/conversations").body["id"]
    emulator.say("One two.", faults=("stall after=3 seconds=9",))
    listening = Listening(lambda: wire.stream(conversation=conversation))
    (response,) = (run.id for run in until(lambda: emulator.emulator.responses._running))
    ended(emulator, wire, response)
    until(lambda: emulator.advance(9) or not listening.waits)
    assert names(listening.heard())[-1] == "response.completed"
    assert wire.get(f"/responses/{response}").status == 404
    assert wire.create(previous_response_id=response).status == 400
    assert not emulator.emulator.responses._running
    items = wire.get(f"/conversations/{conversation}/items")
    assert items.status == 404 or items.body["data"] == []
    assert items.status == 404 or wire.create(conversation=conversation).status == 200


@pytest.mark.parametrize("place", [0, 5])
def test_a_response_that_crashes_has_failed(emulator, wire, monkeypatch, place):
    conversation = wire.post("/conversations").body["id"]
    events = Run.events

    def crashing(run: Run) -> Any:
        for event in events(run):
            if event.number == place:
                raise RuntimeError("a mistake in the emulator")
            yield event

    monkeypatch.setattr(Run, "events", crashing)
    told = wire.stream(background=True, conversation=conversation)
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    assert names(told)[-1] == "response.failed"
    monkeypatch.undo()
    response = told[-1]["response"]["id"]
    assert wire.get(f"/responses/{response}").body["status"] == "failed"
    assert wire.create(conversation=conversation).status == 200


# Faults of the create


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    ("fault", "status"), [("fail", "failed"), ("incomplete", "incomplete"), ("error", "failed")]
)
def test_a_fault_that_ends_the_response_ends_it_once(emulator, wire, fault, status, streams):
    emulator.fault(fault)
    emulator.say("One two.")
    answer = wire.create(background=True, stream=streams)
    response = (events_in(answer.raw)[0]["response"] if streams else answer.body)["id"]
    assert over(wire, response)["status"] == status
    events = replayed(wire, response)
    last = "error" if fault == "error" else f"response.{status}"
    assert names(events) == [*NAMES[:-1], last]
    assert not streams or events_in(answer.raw) == events
    assert struck(emulator) == {fault: 1}
    assert wire.create(background=True, stream=True).raw.count(b"event: response.completed") == 1


def heard(raw: bytes) -> list[str]:
    """The names of the events that came whole."""
    lines = raw.decode(errors="replace").split("\n\n")[:-1]
    return [line.split("\n")[0].removeprefix("event: ") for line in lines]


def partial_bytes(answer: Answer | Exception) -> bytes:
    if isinstance(answer, Answer):
        return answer.raw
    return answer.partial if isinstance(answer, http.client.IncompleteRead) else b""


HEARD = {
    "cut": [],
    "cut after=response.created": NAMES[:1],
    "cut after=response.created how=reset": None,
    "cut before=response.completed how=half-frame": None,
    "close code=1011 after=3": NAMES[:4],
    "duplicate": [NAMES[0], *NAMES],
    "late at=response.queued": [NAMES[0], NAMES[2], NAMES[1], *NAMES[3:]],
    "late at=response.created by=3": [*NAMES[1:4], NAMES[0], *NAMES[4:]],
}


@pytest.mark.parametrize("pace", [0, 0.001])
@pytest.mark.parametrize("fault", HEARD)
def test_other_faults_strike_what_the_client_hears(make_emulator, fault, pace):
    emulator = make_emulator()
    wire = Wire(emulator)
    emulator.fault(fault)
    emulator.say("One two.", pace=pace)
    came = heard(partial_bytes(asked(lambda: wire.create(background=True, stream=True))))
    assert HEARD[fault] is None or came == HEARD[fault]
    (response,) = emulator.emulator.responses.ids_stored()
    assert names(replayed(wire, response)) == NAMES
    assert struck(emulator) == {fault: 1}
    assert left_armed(emulator) == []


def test_a_drip_strikes_what_the_client_hears(make_emulator):
    emulator = make_emulator(clock=VirtualClock())
    emulator.fault("drip bytes=16 seconds=1")
    emulator.say("One two.")
    assert names(Wire(emulator).stream(background=True)) == NAMES
    assert struck(emulator) == {"drip bytes=16 seconds=1": 1}


@pytest.mark.parametrize("fault", ["cut", "cut how=reset", "close"])
def test_a_cut_of_the_answer_loses_the_answer_alone(emulator, wire, fault):
    emulator.fault(fault)
    assert isinstance(asked(lambda: wire.create(background=True)), Exception)
    assert struck(emulator) == {fault: 1}
    (response,) = emulator.emulator.responses.ids_stored()
    assert over(wire, response)["status"] == "completed"
    assert wire.create(background=True).status == 200


def test_a_stall_before_the_first_byte_holds_the_answer_alone(emulator, wire):
    emulator.fault("stall seconds=9")
    listening = Listening(lambda: wire.create(background=True))
    (response,) = until(emulator.emulator.responses.ids_stored)
    assert over(wire, response)["status"] == "completed"
    assert listening.waits
    emulator.advance(9)
    assert listening.heard().body["id"] == response


@pytest.mark.parametrize("fault", ["cut after=3", "duplicate", "late", "drip"])
def test_a_fault_that_no_body_can_be_struck_by_stays_armed(emulator, wire, fault):
    emulator.fault(fault)
    response = wire.create(background=True).body["id"]
    assert over(wire, response)["status"] == "completed"
    assert left_armed(emulator) == [fault]
    assert struck(emulator) == {}


def test_a_stall_at_an_event_strikes_the_response_and_is_on_record(emulator, wire):
    emulator.fault("stall after=response.created seconds=9")
    response = wire.create(background=True).body["id"]
    assert wire.get(f"/responses/{response}").body["status"] in {"queued", "in_progress"}
    assert struck(emulator) == {"stall after=response.created seconds=9": 1}
    emulator.advance(9)
    assert over(wire, response)["status"] == "completed"


# Faults of a stream that is read again


@pytest.mark.parametrize("fault", ["fail", "incomplete", "error"])
def test_a_stream_that_is_read_again_ends_as_it_ended(emulator, wire, fault):
    emulator.say("One two.", call("f"))
    told = wire.stream()
    response = told[-1]["response"]["id"]
    emulator.fault(fault)
    assert replayed(wire, response) == told
    assert left_armed(emulator) == [fault]


def test_a_stream_that_is_read_again_is_cut_or_told_twice(emulator, wire):
    told = wire.stream()
    path = f"/responses/{told[-1]['response']['id']}"
    emulator.fault("duplicate at=response.completed")
    assert events_in(wire.get(path, stream="true").raw) == [*told, told[-1]]
    emulator.fault("cut before=2")
    assert events_in(wire.get(path, stream="true").raw) == told[:2]


@pytest.mark.parametrize("query", [{}, {"stream": "false"}, {"stream": "0"}])
def test_a_response_that_is_read_whole_meets_faults_before_the_first_byte(emulator, wire, query):
    response = wire.create().body["id"]
    emulator.fault("cut")
    assert isinstance(asked(lambda: wire.get(f"/responses/{response}", **query)), Exception)
    assert struck(emulator) == {"cut": 1}
    assert wire.get(f"/responses/{response}", **query).body["status"] == "completed"


def test_a_stream_parameter_that_is_no_boolean_is_refused_and_recorded(emulator, wire):
    response = wire.create().body["id"]
    answer = wire.get(f"/responses/{response}", stream="maybe")
    assert answer.status == 400
    assert [entry.kind for entry in emulator.entries()][-2:] == ["request", "response"]
