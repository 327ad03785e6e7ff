"""Exchanges in a store: found by tenant and id, along chains, under the ids they were shown as."""

from __future__ import annotations

import json

import pytest

from lockstitch.core.facts import Ending, ItemCompleted
from lockstitch.core.records import Name, Naming
from lockstitch.gateway.keeping.chains import Chain, ChainUnknown
from lockstitch.gateway.keeping.conversations import Conversations
from lockstitch.gateway.keeping.exchanges import begun, ended
from lockstitch.gateway.keeping.journal import Exchanges, name_of
from lockstitch.gateway.keeping.notes import AnsweredNote, AskedNote
from lockstitch.store.errors import StoreError
from tests.gateway.building import (
    Faulty,
    call,
    encoded,
    message,
    output,
    run,
    tried_again,
    user,
)


async def keep(
    exchanges, id, items=(), said=(), *, tenant="t", base=None, ending="completed", upstream="up"
):
    """Write one exchange as a recorder does."""
    beginning = begun(AskedNote(upstream=upstream, base=base), [encoded(i) for i in items], id)
    facts = list(beginning.facts)
    facts += [ItemCompleted(request=beginning.request, item=encoded(item)) for item in said]
    if ending:
        facts += ended(beginning.request, Ending(ending), AnsweredNote())
    await exchanges.begun(tenant, id, facts, last=True)


def exchanges_do(work):
    async def main():
        store = Faulty()
        exchanges = Exchanges(store)
        await work(exchanges, store)
        assert store.claimed == {}

    run(main())


def test_an_exchange_is_there_for_its_tenant_alone():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [message()])
        assert (await exchanges.exchange("t", "resp_1")).said == [encoded(message())]
        assert await exchanges.exchange("other", "resp_1") is None
        assert await exchanges.exchange("t", "resp_2") is None
        with pytest.raises(ChainUnknown):
            await exchanges.path("other", "resp_1")
        assert not await exchanges.forget("other", "resp_1")
        assert await exchanges.exchange("t", "resp_1") is not None

    exchanges_do(work)


@pytest.mark.parametrize("id", ["", "x" * 257, "a\nb", "\x00", "\u2028", "\ud800"])
def test_what_cannot_be_an_id_is_nobodys(id):
    async def work(exchanges, store):
        assert await exchanges.exchange("t", id) is None
        assert store.calls == []

    exchanges_do(work)


def test_a_path_is_told_from_its_beginning():
    async def work(exchanges, store):
        for n in range(1, 6):
            base = f"resp_{n - 1}" if n > 1 else None
            await keep(exchanges, f"resp_{n}", [user(str(n))], [message(id=f"m{n}")], base=base)
        await keep(exchanges, "fork", [user("f")], [message(id="mf")], base="resp_2")
        path = await exchanges.path("t", "resp_5")
        assert [one.id for one in path] == [f"resp_{n}" for n in range(1, 6)]
        assert [one.id for one in await exchanges.path("t", "fork")] == ["resp_1", "resp_2", "fork"]
        Chain.of(path)

    exchanges_do(work)


def test_a_path_through_ids_that_were_shown_only_is_one_chain():
    async def work(exchanges, store):
        await keep(exchanges, "real_1", [user("1")], [message(id="m1")])
        await tried_again(exchanges, "t", "shown_1", "real_1")
        await keep(exchanges, "real_2", [user("2")], [message(id="m2")], base="shown_1")
        await tried_again(exchanges, "t", "shown_2", "real_2")
        await keep(exchanges, "resp_3", [user("3")], [message(id="m3")], base="shown_2")
        for _ in range(2):  # from the store, and from memory
            assert len(Chain.of(await exchanges.path("t", "resp_3")).ledger.history()) == 6
        assert len(Chain.of(await exchanges.path("t", "shown_2")).ledger.history()) == 4

    exchanges_do(work)


def test_ids_that_lead_to_one_another_end_at_once():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [message()], base="resp_1")
        await keep(exchanges, "a", [user()], [message()], base="b")
        await keep(exchanges, "b", [user()], [message()], base="a")
        await tried_again(exchanges, "t", "x", "y")
        await tried_again(exchanges, "t", "y", "x")
        calls = len(store.calls)
        for name in ("resp_1", "a", "b"):
            with pytest.raises(ChainUnknown):
                Chain.of(await exchanges.path("t", name))
        assert await exchanges.exchange("t", "x") is None
        assert len(store.calls) - calls < 50

    exchanges_do(work)


def test_what_does_not_end_yet_is_read_again():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [], ending=None)
        assert (await exchanges.exchange("t", "resp_1")).ending is None
        other = Exchanges(store)
        async with await other.reopened("t", "resp_1") as journal:
            request = (await exchanges.exchange("t", "resp_1")).request
            await journal.append(*ended(request, Ending.COMPLETED, AnsweredNote()))
        assert (await exchanges.exchange("t", "resp_1")).continues

    exchanges_do(work)


def test_an_id_that_is_given_again_means_the_newer():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user("old")], [message()])
        await exchanges.exchange("t", "resp_1")
        await keep(exchanges, "resp_1", [user("new")], [])
        found = await exchanges.exchange("t", "resp_1")
        assert [json.loads(item) for item in found.items] == [user("new")]

    exchanges_do(work)


def test_what_was_deleted_is_gone_under_every_id():
    async def work(exchanges, store):
        await keep(exchanges, "real", [user("secret")], [message()])
        await tried_again(exchanges, "t", "shown", "real")
        assert await exchanges.exchange("t", "shown") is not None
        assert await exchanges.forget("t", "shown")
        assert await exchanges.exchange("t", "shown") is None
        assert await exchanges.exchange("t", "real") is None

    exchanges_do(work)


def test_what_was_deleted_under_its_own_id_is_gone_under_the_one_that_was_shown():
    async def work(exchanges, store):
        await keep(exchanges, "real", [user("secret")], [message()])
        await tried_again(exchanges, "t", "shown", "real")
        await exchanges.exchange("t", "shown")
        assert await exchanges.forget("t", "real")
        assert await exchanges.exchange("t", "shown") is None

    exchanges_do(work)


def test_an_output_is_found_by_the_very_call_it_answers():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c", name="weather")])
        await keep(exchanges, "resp_2", [output("c", "rain")], [message()], base="resp_1")
        anchor = await exchanges.exchange("t", "resp_1")
        found = await exchanges.outputs("t", {"c": call("c", name="weather")}, anchor)
        assert [json.loads(item) for item in found.values()] == [output("c", "rain")]
        assert await exchanges.outputs("t", {"c": call("c", name="stocks")}, anchor) == {}
        assert await exchanges.outputs("other", {"c": call("c", name="weather")}, anchor) == {}
        assert await exchanges.outputs("t", {"d": call("d")}, anchor) == {}

    exchanges_do(work)


def test_an_output_of_another_chain_is_no_evidence_however_alike_the_calls_are():
    async def work(exchanges, store):
        for chain in ("a", "b"):
            await keep(exchanges, f"{chain}_1", [user(chain)], [call("pay:0")])
            await keep(exchanges, f"{chain}_2", [user("so?")], [message()], base=f"{chain}_1")
        await keep(exchanges, "a_3", [output("pay:0", "a paid")], [message()], base="a_1")
        sought = {"pay:0": call("pay:0")}
        for anchor, expected in (
            ("a_1", ["a paid"]),
            ("a_2", ["a paid"]),
            ("b_1", []),
            ("b_2", []),
        ):
            found = await exchanges.outputs("t", sought, await exchanges.exchange("t", anchor))
            assert [json.loads(item)["output"] for item in found.values()] == expected, anchor
        await keep(exchanges, "b_3", [output("pay:0", "b paid")], [message()], base="b_1")
        found = await exchanges.outputs("t", sought, await exchanges.exchange("t", "b_2"))
        assert [json.loads(item)["output"] for item in found.values()] == ["b paid"]

    exchanges_do(work)


def test_an_item_is_found_for_its_tenant_alone():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [message("mine", "msg_1")])
        await keep(exchanges, "resp_1", [user()], [message("theirs", "msg_1")], tenant="u")
        found = await exchanges.item("t", "msg_1")
        assert json.loads(found) == message("mine", "msg_1")
        assert await exchanges.item("v", "msg_1") is None

    exchanges_do(work)


@pytest.mark.parametrize("pair", [("a", "ab"), ("a", "a.b"), ("a%2F", "a/"), ("a_", "a%")])
def test_no_name_of_a_tenant_is_the_beginning_of_anothers(pair):
    async def work(exchanges, store):
        one, other = pair
        await keep(exchanges, "c", [user()], [call("k"), message("s", "msg_s")], tenant=other)
        await keep(exchanges, "d", [output("k", "s")], [message()], tenant=other, base="c")
        rest = other.removeprefix(one).lstrip("/")
        for name in ("c", f"{rest}/c", f"/{rest}/c", f"../{other}/c"):
            assert await exchanges.exchange(one, name) is None, name
        assert await exchanges.item(one, "msg_s") is None
        anchor = await exchanges.exchange(other, "c")
        assert await exchanges.outputs(one, {"k": call("k")}, anchor) == {}
        assert await exchanges.is_anothers(one, Name(Naming.ITEM, "msg_s"))

    exchanges_do(work)


def test_a_conversation_is_no_exchange():
    async def work(exchanges, store):
        made = await Conversations(store).begin("t", created=1.0, items=[encoded(user())])
        assert await exchanges.exchange("t", f"conversation/{made.id}") is None

    exchanges_do(work)


def test_names_tell_tenants_apart():
    assert name_of("a", "b") == "gateway/a/b"


@pytest.mark.parametrize("n", range(8))
def test_beginning_an_exchange_that_fails_keeps_no_claim(n):
    async def main():
        store = Faulty()
        exchanges = Exchanges(store)
        await keep(exchanges, "resp_1", [user()], [message()])
        begun_at = len(store.calls)
        store.fail_nth(n)
        try:
            journal = await exchanges.begun(
                "t", "resp_1", begun(AskedNote(upstream="up"), [], "resp_1").facts
            )
        except StoreError:
            # Only a release that failed leaves its claim, which ends by itself.
            assert store.claimed == {} or store.calls[begun_at + n] == "release"
        else:
            store.fails = lambda *_: False
            await journal.close()
            assert store.claimed == {}

    run(main())
