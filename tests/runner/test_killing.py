"""A turn that ends at every ledger write and at every edge of a tool, and is resumed by another
process: `kill -9`, SIGTERM, SIGINT. Every third point; THOROUGH=1 takes all of them."""

from __future__ import annotations

import itertools
import os
import signal
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lockstitch.testing import EmulatorThread
from tests.runner.killing_checks import NAMES, ONE_BY_ONE, WHOLE, Lives, ended_and_resumed, script
from tests.runner.killing_points import Point

MODES = ("previous_response_id", "conversation", "full")
STEP = 1 if os.environ.get("THOROUGH") else 3
ANSWERS = 3
LEAST_WRITES = 15
"""A turn has more; if fewer are found, the points are not where they should be."""

EDGES = [f"{side} {name}" for name in NAMES for side in ("before", "after")]
EVENTS = [
    Point(f"after {event}", nth, signal.SIGINT)
    for event in ("ItemSaid", "CallBegan", "CallEnded")
    for nth in (1, 2, 3)
]


@pytest.fixture(scope="module")
def lives():
    with Lives() as lives:
        yield lives


@pytest.fixture(scope="module", params=[WHOLE, ONE_BY_ONE], ids=["whole", "one by one"])
def provider(request):
    with EmulatorThread(script=script(request.param)) as emulator:
        yield emulator


@pytest.fixture
def folder(tmp_path):
    """In memory, where the system has a place for that. A kill loses nothing that was written,
    synced or not, and syncing is what takes most of the time."""
    in_memory = Path("/dev/shm")
    if not os.access(in_memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=in_memory) as there:
        yield Path(there)


def first_of(request):
    """Where to begin, so that tests which leave points out do not all leave out the same."""
    return zlib.crc32(request.node.name.encode()) % STEP


def resumed_at_every_write(lives, provider, folder, mode, side, by, request):
    for nth in itertools.count(1 + first_of(request), STEP):
        ends = Point(f"{side} append", nth, by)
        if not ended_and_resumed(lives, provider, folder / str(nth), mode, ends):
            break
    assert nth > LEAST_WRITES


def resumed_at(lives, provider, folder, mode, points):
    for point in points:
        assert ended_and_resumed(lives, provider, folder / str(point), mode, point)


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("mode", MODES)
def test_a_turn_that_is_killed_at_a_write_is_resumed(lives, provider, folder, mode, side, request):
    resumed_at_every_write(lives, provider, folder, mode, side, signal.SIGKILL, request)


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_that_is_killed_at_the_edge_of_a_tool_is_resumed(lives, provider, folder, mode):
    resumed_at(lives, provider, folder, mode, [Point(edge) for edge in EDGES])


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_that_nobody_heard_is_not_asked_for_twice_in_a_conversation(
    lives, provider, folder, mode
):
    lost = "lose path=/v1/responses"
    point = Point("before RequestLost")
    assert ended_and_resumed(lives, provider, folder / "lost", mode, point, faults=[lost])
    again = 0 if mode == "conversation" else 1
    assert len(provider.requests("POST /v1/responses")) == ANSWERS + again


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_that_is_terminated_is_resumed(lives, provider, folder, mode, request):
    points = [Point(edge, signal=signal.SIGTERM) for edge in EDGES][first_of(request) :: STEP]
    resumed_at(lives, provider, folder, mode, points)


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_that_is_interrupted_at_a_write_leaves_everything_in_order(
    lives, provider, folder, mode, request
):
    resumed_at_every_write(lives, provider, folder, mode, "before", signal.SIGINT, request)


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_is_interrupted_ends_in_its_grace_time(lives, provider, folder, mode, request):
    points = [Point(edge, signal=signal.SIGINT) for edge in EDGES][first_of(request) :: STEP]
    resumed_at(lives, provider, folder, mode, points)


@pytest.mark.parametrize("mode", MODES)
def test_whoever_watches_a_turn_may_be_interrupted(lives, provider, folder, mode, request):
    resumed_at(lives, provider, folder, mode, EVENTS[first_of(request) :: STEP])
