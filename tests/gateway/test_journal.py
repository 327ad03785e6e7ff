"""Exchanges in a store: found by tenant and id, along chains, under the ids they were shown as."""

from __future__ import annotations

import json

import pytest

from lockstitch.core.facts import Ending, ItemCompleted
from lockstitch.core.records import Name, Naming
from lockstitch.gateway.keeping.chains import Chain, ChainUnknown
from lockstitch.gateway.keeping.conversations import Conversations
from lockstitch.gateway.keeping.exchanges import begun, ended
from lockstitch.gateway.keeping.journal import MOST_PLACES, Exchanges, name_of
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
    exchanges,
    id,
    items=(),
    said=(),
    *,
    tenant="t",
    ending="completed",
    upstream="up",
    began_as=None,
    **note,
):
    """Write one exchange as a recorder does."""
    beginning = begun(AskedNote(upstream=upstream, **note), [encoded(i) for i in items], id)
    facts = list(beginning.facts)
    facts += [ItemCompleted(request=beginning.request, item=encoded(item)) for item in said]
    if ending:
        facts += ended(beginning.request, Ending(ending), AnsweredNote(began_as=began_as))
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


def texts(found):
    return [json.loads(item)["output"] for item in found]


def test_an_output_is_found_behind_the_response_that_made_the_call():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c", name="weather")])
        await keep(exchanges, "resp_2", [output("c", "rain")], [message()], base="resp_1")
        anchor = await exchanges.exchange("t", "resp_1")
        assert texts(await exchanges.outputs_behind("t", anchor, ["c"])) == ["rain"]
        assert await exchanges.outputs_behind("other", anchor, ["c"]) == []
        assert await exchanges.outputs_behind("t", anchor, ["d"]) == []

    exchanges_do(work)


def test_an_output_is_found_by_everything_up_to_the_call_that_it_answers():
    async def work(exchanges, store):
        made = call("c", None, name="weather")
        await keep(exchanges, "resp_0", [user("a")], [message("b")])
        await keep(exchanges, "resp_1", [user()], [call("c", name="weather")], base="resp_0")
        await keep(exchanges, "resp_2", [output("c", "rain")], [message()], base="resp_1")
        proven = [user("a"), message("b", None), user(), made]
        assert texts(await exchanges.outputs_within("t", [*proven, user("b")], ["c"])) == ["rain"]
        assert await exchanges.outputs_within("other", proven, ["c"]) == []
        for other in (
            [],
            [made],
            proven[1:],
            proven[2:],
            [user("x"), *proven],
            [user("x"), *proven[1:]],
            [*proven[:3], user("x"), made],
            [*proven[:3], call("c", None, name="stocks")],
            [*proven[:3], call("c", "fc_other", name="weather")],
        ):
            assert await exchanges.outputs_within("t", other, ["c"]) == [], other

    exchanges_do(work)


def test_an_output_of_another_chain_is_no_evidence_however_alike_the_calls_are():
    async def work(exchanges, store):
        for chain in ("a", "b"):
            await keep(exchanges, f"{chain}_1", [user(chain)], [call("pay:0")])
        await keep(exchanges, "a_2", [output("pay:0", "a paid")], [message()], base="a_1")
        for chain, expected in (("a", ["a paid"]), ("b", [])):
            anchor = await exchanges.exchange("t", f"{chain}_1")
            assert texts(await exchanges.outputs_behind("t", anchor, ["pay:0"])) == expected
            history = [user(chain), call("pay:0"), user("so?")]
            assert texts(await exchanges.outputs_within("t", history, ["pay:0"])) == expected

    exchanges_do(work)


def test_an_output_of_an_earlier_call_with_the_same_id_is_no_evidence():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("pay:0")])
        await keep(exchanges, "resp_2", [output("pay:0", "one")], [call("pay:0")], base="resp_1")
        anchor = await exchanges.exchange("t", "resp_2")
        assert await exchanges.outputs_behind("t", anchor, ["pay:0"]) == []
        await keep(exchanges, "resp_3", [output("pay:0", "two")], [message()], base="resp_2")
        assert texts(await exchanges.outputs_behind("t", anchor, ["pay:0"])) == ["two"]

    exchanges_do(work)


@pytest.mark.parametrize("before", [None, "resp_strange"])
def test_two_chains_that_nobody_can_tell_apart_prove_nothing(before):
    """The second one may have begun with the same words, or with others that nobody has."""

    async def work(exchanges, store):
        history = [user(), call("pay:0"), user("so?")]
        await keep(exchanges, "a_1", [user()], [call("pay:0")])
        # The gateway found the base of this one: the client sent its history in full.
        await keep(exchanges, "a_2", [output("pay:0", "a paid")], [message()], base="a_1")
        anchor = await exchanges.exchange("t", "a_1")
        assert texts(await exchanges.outputs_within("t", history, ["pay:0"])) == ["a paid"]
        assert texts(await exchanges.outputs_behind("t", anchor, ["pay:0"])) == ["a paid"]
        await keep(exchanges, "b_1", [user()], [call("pay:0")], base=before)
        assert await exchanges.outputs_within("t", history, ["pay:0"]) == []
        assert await exchanges.outputs_behind("t", anchor, ["pay:0"]) == []
        await keep(
            exchanges, "a_3", [output("pay:0", "truth")], [message()], base="a_1", anchored=True
        )
        assert await exchanges.outputs_within("t", history, ["pay:0"]) == []
        assert texts(await exchanges.outputs_behind("t", anchor, ["pay:0"])) == ["truth"]

    exchanges_do(work)


def test_the_item_id_of_a_call_tells_two_equal_chains_apart():
    async def work(exchanges, store):
        for chain in ("a", "b"):
            await keep(exchanges, f"{chain}_1", [user()], [call("pay:0", f"fc_{chain}")])
            sent = [output("pay:0", f"{chain} paid")]
            await keep(exchanges, f"{chain}_2", sent, [message()], base=f"{chain}_1", anchored=True)
        for item_id, expected in (("fc_a", ["a paid"]), ("fc_b", ["b paid"]), (None, [])):
            history = [user(), call("pay:0", item_id), user("so?")]
            assert texts(await exchanges.outputs_within("t", history, ["pay:0"])) == expected

    exchanges_do(work)


def test_what_continued_an_older_response_of_the_same_id_is_no_evidence():
    """A server that counts its responses gives its ids again when it was started anew."""

    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c")], created=1.0)
        await keep(exchanges, "old", [output("c", "old")], [message()], base="resp_1", created=2.0)
        await keep(exchanges, "resp_1", [user("new")], [call("c")], created=3.0)
        anchor = await exchanges.exchange("t", "resp_1")
        assert await exchanges.outputs_behind("t", anchor, ["c"]) == []
        await keep(exchanges, "new", [output("c", "new")], [message()], base="resp_1", created=4.0)
        assert texts(await exchanges.outputs_behind("t", anchor, ["c"])) == ["new"]

    exchanges_do(work)


def test_outputs_are_found_behind_each_id_that_a_response_was_shown_under():
    async def work(exchanges, store):
        await keep(exchanges, "real", [user()], [call("c")], began_as="shown")
        await tried_again(exchanges, "t", "shown", "real")
        await keep(exchanges, "resp_2", [output("c", "one")], [message()], base="shown", created=1)
        await keep(exchanges, "resp_3", [output("c", "two")], [message()], base="real", created=2)
        anchor = await exchanges.exchange("t", "shown")
        assert texts(await exchanges.outputs_behind("t", anchor, ["c"])) == ["two", "one"]

    exchanges_do(work)


def test_an_output_behind_another_call_with_the_same_id_belongs_to_that_call():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c")])
        items = [user("x"), call("c"), output("c", "of the second")]
        await keep(exchanges, "resp_2", items, [message()], base="resp_1", anchored=True)
        anchor = await exchanges.exchange("t", "resp_1")
        assert await exchanges.outputs_behind("t", anchor, ["c"]) == []

    exchanges_do(work)


def test_a_call_id_that_another_tenant_uses_everywhere_is_found_all_the_same():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c")])
        await keep(exchanges, "resp_2", [output("c", "rain")], [message()], base="resp_1")
        for n in range(MOST_PLACES + 5):
            items = [user(), call("c"), output("c", f"{n}")]
            await keep(exchanges, f"flood_{n}", items, [], tenant="loud", base="resp_1")
        anchor = await exchanges.exchange("t", "resp_1")
        assert texts(await exchanges.outputs_behind("t", anchor, ["c"])) == ["rain"]
        history = [user(), call("c"), user("b")]
        assert texts(await exchanges.outputs_within("t", history, ["c"])) == ["rain"]

    exchanges_do(work)


def test_a_call_id_that_is_in_too_many_places_proves_nothing_without_an_anchor():
    async def work(exchanges, store):
        await keep(exchanges, "resp_1", [user()], [call("c")])
        await keep(exchanges, "resp_2", [output("c", "rain")], [message()], base="resp_1")
        for n in range(MOST_PLACES):
            await keep(exchanges, f"other_{n}", [user(f"{n}")], [call("c")])
        history = [user(), call("c"), user("b")]
        assert await exchanges.outputs_within("t", history, ["c"]) == []

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
        assert await exchanges.outputs_behind(one, anchor, ["k"]) == []
        assert await exchanges.outputs_within(one, [user(), call("k")], ["k"]) == []
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
