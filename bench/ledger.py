"""The ledger and its continuation against openai-agents' server-conversation tracker.

Both are driven through the order of a runner, without the network: what to send, sent, answered,
the tool ran. The tracker is given its items in its delta form and as the full list. What the model
and the tools said is there before the clock starts: neither makes it."""

from __future__ import annotations

import itertools
import statistics
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Final

from agents import Agent
from agents.items import ModelResponse, RunItem, ToolCallItem, ToolCallOutputItem
from agents.run_internal.items import deduplicate_input_items_preferring_latest
from agents.run_internal.oai_conversation import OpenAIServerConversationTracker
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall

from bench.conversations import QUESTION, Turn, turns
from bench.harness import REPEATS, Result, compare, cpu
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

SENDS: Final = (Continue, Replay)

DELTA_TARGET = 1 / 20
FULL_TARGET = 1 / 1000
LATE_TARGET = 1.5
MEMORY_TARGET = 1.1
"""The outputs once, and what little a ledger needs beside them."""


def run() -> Iterator[Result]:
    said = [*turns(TURNS, OUTPUT_BYTES)]
    yield compare(
        f"{TURNS} turns, delta",
        ours=lambda: converse(said),
        peer=lambda: track(said, full=False),
        target=DELTA_TARGET,
        peer_is="openai-agents' tracker, delta form",
    )
    # Once: the tracker needs minutes for it.
    yield Result(
        f"{TURNS} turns, full list",
        ours=statistics.median(cpu(lambda: converse(said, follow=True)) for _ in range(3)),
        peer=cpu(lambda: track(said, full=True)),
        target=FULL_TARGET,
        peer_is="openai-agents' tracker, full list",
    )
    yield _late_turns()
    yield _memory()


def converse(
    said: Iterable[Turn],
    *,
    follow: bool = False,
    times: list[float] | None = None,
) -> Ledger:
    """The conversation, by a ledger; ``follow``: the outputs come as a client's full list.
    ``times`` gets the time after each turn."""
    ledger = Ledger()
    follower = Follower(ledger)
    history = [QUESTION]
    if not follow:
        ledger.append(item_added(QUESTION))
    for response, call, output in said:
        if follow:
            ledger.extend(follower.resent(history))
        plan = ledger.plan()
        assert isinstance(plan, SENDS)
        ledger.items(plan)
        (prepared,) = request_prepared(ledger, plan)
        request = ledger.append(prepared)
        ledger.append(RequestSent(request=request))
        ledger.append(ResponseOpened(request=request, id=response))
        entry = ledger.append(item_completed(request, call))
        ledger.append(ResponseEnded(request=request))
        ledger.append(CallStarted(call=entry))
        if follow:
            history += [call, output]
        else:
            ledger.append(call_settled(ledger, ledger.calls[entry, 0], output))
        if times is not None:
            times.append(time.process_time())
    return ledger


def track(said: Iterable[Turn], *, full: bool) -> tuple[object, list[RunItem]]:
    """The same conversation, by the tracker, in the order that its runner calls it."""
    agent = Agent(name="bench")
    tracker = OpenAIServerConversationTracker(auto_previous_response_id=True)
    everything: list[RunItem] = []
    items: list[RunItem] = []
    for response, call, output in said:
        given = tracker.prepare_input([QUESTION], everything if full else items)  # type: ignore[list-item]
        given = deduplicate_input_items_preferring_latest(given)
        tracker.validate_pending_input_filter(given)
        tracker.mark_input_as_sent(given)
        made = ResponseFunctionToolCall.model_validate(call)
        answer = ModelResponse(output=[made], usage=Usage(), response_id=response)
        tracker.mark_input_as_sent(given)
        tracker.mark_input_as_accepted(given)
        tracker.track_server_items(answer)
        tracker.track_server_items(answer)  # once by the model call, once by the turn
        items = [
            ToolCallItem(agent=agent, raw_item=made),
            ToolCallOutputItem(agent=agent, raw_item=output, output=output["output"]),
        ]
        everything += items
    return tracker, everything


def _late_turns() -> Result:
    """What the last turns cost, compared with the tenth and those around it."""
    said = [*turns(TURNS, OUTPUT_BYTES)]
    early: list[float] = []
    late: list[float] = []
    for _ in range(REPEATS):
        times: list[float] = []
        converse(said, times=times)
        costs = [after - before for before, after in itertools.pairwise(times)]
        early += costs[4:54]
        late += costs[-50:]
    return Result(
        "the last turn",
        ours=statistics.median(late) * 1000,
        peer=statistics.median(early) * 1000,
        target=LATE_TARGET,
        unit="ms",
        peer_is=f"the tenth turn (medians of 50 turns in {REPEATS} runs)",
    )


def _memory() -> Result:
    """What stays in memory when nobody but the ledger holds the outputs."""
    tracemalloc.start()
    ledger = converse(turns(LARGE_TURNS, LARGE_OUTPUT_BYTES))
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
