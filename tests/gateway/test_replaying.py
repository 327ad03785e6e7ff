"""Everything in one request, rebuilt and proven, or the reason why not."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

import lockstitch
from lockstitch.gateway.deciding.asked import read
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.responding.replaying import CannotReplay, Replaying
from lockstitch.gateway.upstreams import Reached
from tests.gateway.building import QUICK, Faulty, call, encoded, message, output, run, user
from tests.gateway.test_journal import keep
from tests.gateway.test_upstreams import ONE, TWO


def replaying(work, *, state="upstream"):
    async def main():
        exchanges = Exchanges(Faulty())
        told = ONE if state == "upstream" else TWO
        to = Reached(replace(told, name="up", url="http://127.0.0.1:1"), QUICK, keyed=False)
        await work(exchanges, Replaying(exchanges, "t"), to)
        await to.close()

    run(main())


def asked(items, previous="resp_1", **more):
    body = {"model": "m", "input": items, "previous_response_id": previous, **more}
    return read(encoded(body)), [encoded(item) for item in items]


async def replayed(one, to, items, previous="resp_1", **more):
    return json.loads((await one.behind(*asked(items, previous, **more), to)).body)


def test_a_replay_has_everything_and_no_anchor():
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [call()])
        sent = await replayed(one, to, [output()], instructions="be good", tools=[{"x": 1}])
        assert sent["input"] == [user("a"), call(), output()]
        assert "previous_response_id" not in sent
        assert sent["instructions"] == "be good"
        assert "store" not in sent
        assert lockstitch.check(sent["input"]) == []

    replaying(work)


@pytest.mark.parametrize("said_by", ["up", "other"])
def test_a_replay_says_whether_anything_was_left_out_for_another_upstream(said_by):
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [message()], upstream=said_by)
        sent = await one.behind(*asked([user("b")]), to)
        assert sent.away == (said_by != to.name)
        ids = [item.get("id") for item in json.loads(sent.body)["input"]]
        assert ("msg_1" in ids) != sent.away
        assert (await one.whole(read(encoded({"model": "m"})), [user()], to, away=True)).away

    replaying(work)


def test_an_upstream_that_keeps_nothing_is_not_asked_to():
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [message()])
        sent = await replayed(one, to, [user("b")], store=True)
        assert sent["store"] is False

    replaying(work, state="gateway")


@pytest.mark.parametrize(
    "items",
    [[user("b")], [output("call_9")], [output(), output()], []],
    ids=["no output", "a stranger's output", "an output twice", "nothing"],
)
def test_what_would_not_be_whole_is_not_sent(items):
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [call()])
        with pytest.raises(CannotReplay) as error:
            await replayed(one, to, items)
        assert str(error.value)

    replaying(work)


def test_a_chain_whose_beginning_is_nowhere_is_not_replayed():
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [message()], base="resp_0")
        with pytest.raises(CannotReplay, match="resp_0"):
            await replayed(one, to, [user("b")])
        with pytest.raises(CannotReplay, match="resp_9"):
            await replayed(one, to, [user("b")], "resp_9")

    replaying(work)


@pytest.mark.parametrize("ending", ["failed", "cut", None])
def test_an_answer_that_did_not_end_is_not_replayed(ending):
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [call()], ending=ending)
        with pytest.raises(CannotReplay):
            await replayed(one, to, [output()])

    replaying(work)


@pytest.mark.parametrize("typed", [{"type": "item_reference"}, {"type": None}, {}])
def test_what_was_only_referred_to_is_put_in_its_place(typed):
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_1", [user("a")], [message("one", "msg_1")])
        reference = {**typed, "id": "msg_1"}
        await keep(exchanges, "resp_2", [reference, user("b")], [message("two", "msg_2")])
        sent = await replayed(one, to, [user("c")], "resp_2")
        assert sent["input"][0] == message("one", "msg_1")

    replaying(work)


def test_what_another_tenant_has_is_not_put_in_its_place():
    async def work(exchanges, one, to):
        await keep(exchanges, "resp_9", [user("a")], [message("secret", "msg_9")], tenant="u")
        reference = {"type": "item_reference", "id": "msg_9"}
        await keep(exchanges, "resp_1", [reference, user("b")], [message("two", "msg_2")])
        try:
            sent = await replayed(one, to, [user("c")])
        except CannotReplay:
            return
        assert "secret" not in json.dumps(sent)

    replaying(work)
