"""The ledger and its continuation against openai-agents' server-conversation tracker.

Both are driven through the order of a runner, without the network: what to send, sent, answered,
the tool ran. The tracker is given its items in its delta form and as the full list."""

from __future__ import annotations

import itertools
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

from agents import Agent
from agents.items import ModelResponse, RunItem, ToolCallItem, ToolCallOutputItem
from agents.run_internal.oai_conversation import OpenAIServerConversationTracker
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall

from bench.conversations import QUESTION, call, output
from bench.harness import Result, compare, cpu
from lockstitch.facts import (
    CallStarted,
    Continue,
    Replay,
    RequestSent,
    ResponseEnded,
    ResponseOpened,
    call_settled,
    item_added,
    item_completed,
    request_prepared,
)
from lockstitch.ledgers import Follower, Ledger

TURNS = 3_000
OUTPUT_BYTES = 500
LARGE_TURNS = 300
LARGE_OUTPUT_BYTES = 100_000

DELTA_TARGET = 1 / 20
FULL_TARGET = 1 / 1000
LATE_TARGET = 1.5
MEMORY_TARGET = 1.1
"""The outputs once, and what little a ledger needs beside them."""


def run() -> Iterator[Result]:
    yield compare(
        f"{TURNS} turns, delta",
        ours=lambda: converse(TURNS),
        peer=lambda: track(TURNS, full=False),
        target=DELTA_TARGET,
        peer_is="openai-agents' tracker, delta form",
        repeats=3,
    )
    # Once: the tracker needs minutes for it.
    yield Result(
        f"{TURNS} turns, full list",
        ours=statistics.median(cpu(lambda: converse(TURNS, follow=True)) for _ in range(3)),
        peer=cpu(lambda: track(TURNS, full=True)),
        target=FULL_TARGET,
        peer_is="openai-agents' tracker, full list",
    )
    yield _late_turns()
    yield _memory()


def converse(
    turns: int,
    *,
    output_bytes: int = OUTPUT_BYTES,
    follow: bool = False,
    after_turn: Callable[[int], None] = lambda turn: None,
) -> Ledger:
    """The conversation, by a ledger; ``follow``: the outputs come as a client's full list."""
    ledger = Ledger()
    follower = Follower(ledger)
    history = [QUESTION]
    if not follow:
        ledger.append(item_added(QUESTION))
    for turn in range(turns):
        if follow:
            ledger.extend(follower.resent(history))
        plan = ledger.plan()
        assert isinstance(plan, Continue | Replay)
        ledger.items(plan)
        (prepared,) = request_prepared(ledger, plan)
        request = ledger.append(prepared)
        ledger.append(RequestSent(request=request))
        ledger.append(ResponseOpened(request=request, id=f"resp_{turn}"))
        said = ledger.append(item_completed(request, call(turn)))
        ledger.append(ResponseEnded(request=request))
        ledger.append(CallStarted(call=said))
        if follow:
            history += [call(turn), output(turn, output_bytes)]
        else:
            ledger.append(call_settled(ledger, ledger.calls[said, 0], output(turn, output_bytes)))
        after_turn(turn)
    return ledger


def track(turns: int, *, full: bool, output_bytes: int = OUTPUT_BYTES) -> list[RunItem]:
    """The same conversation, by the tracker, in the order that its runner calls it."""
    agent = Agent(name="bench")
    tracker = OpenAIServerConversationTracker(auto_previous_response_id=True)
    everything: list[RunItem] = []
    items: list[RunItem] = []
    for turn in range(turns):
        given = tracker.prepare_input([QUESTION], everything if full else items)  # type: ignore[list-item]
        tracker.validate_pending_input_filter(given)
        tracker.mark_input_as_sent(given)
        said = ResponseFunctionToolCall.model_validate(call(turn))
        response = ModelResponse(output=[said], usage=Usage(), response_id=f"resp_{turn}")
        tracker.mark_input_as_sent(given)
        tracker.mark_input_as_accepted(given)
        tracker.track_server_items(response)
        tracker.track_server_items(response)  # once by the model call, once by the turn
        text = output(turn, output_bytes)
        items = [
            ToolCallItem(agent=agent, raw_item=said),
            ToolCallOutputItem(agent=agent, raw_item=text, output=text["output"]),
        ]
        everything += items
    return everything


def _late_turns() -> Result:
    """What the last turns cost, compared with the tenth and those around it."""
    times: list[float] = []
    converse(TURNS, after_turn=lambda turn: times.append(time.perf_counter()))
    costs = [after - before for before, after in itertools.pairwise(times)]
    early, late = costs[4:54], costs[-50:]
    return Result(
        "the last turn",
        ours=statistics.median(late) * 1000,
        peer=statistics.median(early) * 1000,
        target=LATE_TARGET,
        unit="ms",
        peer_is="the tenth turn (medians of 50)",
    )


def _memory() -> Result:
    """What stays in memory when nobody but the ledger holds the outputs."""
    tracemalloc.start()
    ledger = converse(LARGE_TURNS, output_bytes=LARGE_OUTPUT_BYTES)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ledger.calls) == LARGE_TURNS
    return Result(
        "300 turns of 100 KB, held",
        ours=held / 1e6,
        peer=LARGE_TURNS * LARGE_OUTPUT_BYTES / 1e6,
        target=MEMORY_TARGET,
        unit="MB",
        peer_is="the outputs, once",
    )
