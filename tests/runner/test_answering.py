"""One request and its answer, from a provider that says what none should.

The emulator is too honest for that, so what is heard is given here as it is."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import Ending, Mode
from lockstitch.runner import CallEnded, Retrying, Runner, backoff
from lockstitch.store.journal import kept_ledger
from lockstitch.store.memory import MemoryStore
from lockstitch.upstream.contract import Ended, Fate, ItemDone, Opened, UpstreamFailure
from tests.runner.stage import THREAD, of, played, text_of, within

CUT = UpstreamFailure("The stream ended.", fate=Fate.LOST)
END = Ended(Ending.COMPLETED)


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch):
    monkeypatch.setattr(backoff, "FIRST_DELAY_SECONDS", 0.001)


def item(**fields):
    return ItemDone(msgspec.json.encode(fields))


def thought(key="rs_1"):
    return item(type="reasoning", id=key, summary=[])


def working(key="fc_1"):
    return item(type="function_call", id=key, call_id="call_1", name="work", arguments="{}")


def message(*texts):
    content = [{"type": "output_text", "text": text} for text in texts]
    return item(type="message", role="assistant", id="msg_1", content=content)


class Provider:
    """Says these answers one after the other; an error among what it says is raised."""

    dialect = "responses"
    modes = frozenset(Mode)

    def __init__(self, *answers, kept=None):
        self._answers = list(answers)
        self._kept = kept
        self.asked = asyncio.Event()
        self.sent = []

    async def stream(self, request):
        self.sent.append(request)
        for heard in self._answers.pop(0):
            if isinstance(heard, Exception):
                raise heard
            yield heard

    async def retrieved(self, response):
        self.asked.set()
        if self._kept is Ellipsis:
            await asyncio.Event().wait()
        return self._kept

    async def new_conversation(self):
        return "conv_1"

    async def listed(self, conversation, after):
        return []

    async def close(self):
        pass


def runner(provider, store=None):
    def work() -> str:
        """Work."""
        return "done"

    return Runner(client=provider, model="any", store=store or MemoryStore(), tools=[work])


@pytest.mark.parametrize("said", [b"5", b"null", b"[]", b'{"x":1e999}', b'"text"'])
def test_what_is_no_item_breaks_the_answer_off_and_it_is_asked_for_again(said):
    async def run():
        odd = [Opened("resp_1"), ItemDone(said), END]
        provider = Provider(odd, [Opened("resp_2"), message("I see."), END])
        events = await played(runner(provider).turn(THREAD, "Go."))
        (retrying,) = of(Retrying, events)
        assert "no item" in retrying.reason
        assert text_of(events) == "I see."

    within(run)


def test_a_text_that_is_none_is_nothing_that_was_said():
    async def run():
        provider = Provider([Opened("resp_1"), message("I ", None, "see."), END])
        assert text_of(await played(runner(provider).turn(THREAD, "Go."))) == "I see."

    within(run)


# --- the rest of an answer, asked for by its id ------------------------------------------------


def test_what_was_kept_goes_on_from_what_was_heard():
    async def run():
        kept = [Opened("resp_1"), thought(), working(), END]
        broken = [Opened("resp_1"), thought(), CUT]
        provider = Provider(broken, [Opened("resp_2"), message("Done."), END], kept=kept)
        events = await played(runner(provider).turn(THREAD, "Go."))
        assert of(Retrying, events) == []
        assert [ended.output for ended in of(CallEnded, events)] == ["done"]
        assert text_of(events) == "Done."

    within(run)


@pytest.mark.parametrize(
    "kept",
    [
        [Opened("resp_1"), working(), END],
        [Opened("resp_1"), END],
        [Opened("resp_1"), thought("rs_2"), working(), END],
        [Opened("resp_1"), ItemDone(b"5"), working(), END],
        [],
    ],
    ids=["without the first", "nothing", "another", "no item", "not even an end"],
)
def test_what_was_kept_is_not_taken_if_it_is_not_what_was_heard(kept):
    async def run():
        broken = [Opened("resp_1"), thought(), CUT]
        again = [Opened("resp_2"), working(), END]
        provider = Provider(broken, again, [Opened("resp_3"), message("Done."), END], kept=kept)
        events = await played(runner(provider).turn(THREAD, "Go."))
        assert len(of(Retrying, events)) == 1
        assert [ended.output for ended in of(CallEnded, events)] == ["done"]
        assert text_of(events) == "Done."

    within(run)


def test_a_turn_that_is_stopped_while_it_asks_for_the_rest_says_that_the_answer_was_cut():
    async def run():
        store = MemoryStore()
        provider = Provider([Opened("resp_1"), thought(), CUT], kept=...)
        consumer = asyncio.create_task(played(runner(provider, store).turn(THREAD, "Go.")))
        await provider.asked.wait()
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        ledger = await kept_ledger(store, THREAD)
        (exchange,) = [link for link in ledger.links.values() if isinstance(link, Exchange)]
        assert exchange.standing is Standing.LOST

    within(run)
