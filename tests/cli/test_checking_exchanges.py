"""`lockstitch check store:URL` of a gateway's journal: pairs are whole across exchanges."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.cli import checking_exchanges
from lockstitch.cli.checking_exchanges import GatewayChecks
from lockstitch.core import records
from lockstitch.core.facts import Ending, ItemCompleted
from lockstitch.gateway.keeping.conversations import Conversations
from lockstitch.gateway.keeping.exchanges import begun, ended
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import AnsweredNote, AskedNote
from lockstitch.store import open_store
from lockstitch.store.memory import MemoryStore
from tests.cli.commands import lockstitch
from tests.gateway.building import (
    both,
    call,
    encoded,
    message,
    output,
    run,
    streaming,
    tried_again,
    user,
)
from tests.generated import examples

URL = "sqlite:///journal.db"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


async def keep(store, id, items=(), said=(), *, base=None, conversation=None, ending="completed"):
    """Write one exchange as a recorder does."""
    note = AskedNote(upstream="up", base=base, conversation=conversation)
    beginning = begun(note, [encoded(item) for item in items], id)
    facts = list(beginning.facts)
    facts += [ItemCompleted(request=beginning.request, item=encoded(item)) for item in said]
    if ending:
        facts += ended(beginning.request, Ending(ending), AnsweredNote())
    await Exchanges(store).begun("t/1", id, facts, last=True)


async def found_in(store):
    """The rows for each conversation that has any, by the id of the response."""

    async def read(name):
        return [records.decoded(record) async for record in store.read(name)]

    checks = GatewayChecks(read)
    found = {}
    async for summary in store.conversations():
        name = summary.conversation
        rows = await checks.rows(name, await read(name), anchored=False)
        assert rows is not None
        if rows:
            found[name.rpartition("/")[2]] = [(row.code, row.sentence) for row in rows]
    return found


def found(*exchanges):
    async def work():
        store = MemoryStore()
        for one in exchanges:
            await one(store)
        return await found_in(store)

    return asyncio.run(work())


def exchange(id, items=(), said=(), **more):
    return partial(keep, id=id, items=items, said=said, **more)


def test_a_healthy_journal_is_clean_also_while_a_client_runs_a_call():
    async def work():
        async with open_store(URL) as store, both(store=store) as (provider, running):
            provider.then(
                streaming("resp_1", call()),
                streaming("resp_2", message()),
                streaming("resp_3", call("call_2", "fc_2")),
            )
            await running.ask(input=[user()])
            await running.ask(input=[output()], previous_response_id="resp_1")
            await running.ask(input=[user("and now?")], previous_response_id="resp_2")

    run(work())
    code, out, err = lockstitch("check", f"store:{URL}")
    assert (code, err) == (0, "")
    assert out.startswith("All clean: 3 conversations, ")


def test_a_conversation_that_the_gateway_keeps_is_clean_and_so_are_its_exchanges():
    async def work():
        async with (
            open_store(URL) as store,
            both(store=store, up_state="gateway") as (provider, running),
        ):
            provider.then(streaming("resp_1", call()), streaming("resp_2", message()))
            made = await running.ask(path="/conversations")
            await running.ask(input=[user()], conversation=made["id"])
            await running.ask(input=[output()], conversation=made["id"])

    run(work())
    code, out, err = lockstitch("check", f"store:{URL}")
    assert (code, err) == (0, "")
    assert out.startswith("All clean: 3 conversations, ")


def test_a_call_that_the_client_went_on_without_is_found_and_nothing_is_said_of_its_outcome():
    assert found(
        exchange("resp_1", [user()], [call()]),
        exchange("resp_2", [user("never mind")], [message()], base="resp_1"),
    ) == {"resp_2": [("LS001", "call_1 (look) has no output [an earlier response]")]}


def test_a_call_waits_through_an_exchange_that_says_nothing():
    assert (
        found(
            exchange("resp_1", [user()], [call()]),
            exchange("resp_2", base="resp_1"),
            exchange("resp_3", [output()], [message()], base="resp_2"),
        )
        == {}
    )


def test_an_output_that_no_exchange_before_it_asked_for_is_found():
    assert found(
        exchange("resp_1", [user()], [message()]),
        exchange("resp_2", [output()], [message("b", "msg_2")], base="resp_1"),
    ) == {"resp_2": [("LS002", "output for call_1 has no call [entry 4]")]}


def test_an_output_is_for_one_branch_and_another_may_have_its_own():
    assert (
        found(
            exchange("resp_1", [user()], [call()]),
            exchange("resp_2", [output()], [message()], base="resp_1"),
            exchange("resp_3", [output(text="other")], [message()], base="resp_1"),
        )
        == {}
    )


def test_the_same_output_twice_on_one_branch_is_found():
    assert found(
        exchange("resp_1", [user()], [call()]),
        exchange("resp_2", [output()], [message()], base="resp_1"),
        exchange("resp_3", [output()], [message("b", "msg_2")], base="resp_2"),
    ) == {"resp_3": [("LS002", "output for call_1 has no call [entry 4]")]}


@pytest.mark.parametrize(
    "before",
    [
        [],
        [exchange("resp_1", [user()], [call()], ending="cut")],
        [exchange("resp_1", [output("call_0")], [call()], conversation="conv_1")],
        [exchange("resp_1", [user()], [call()], base="resp_2")],
    ],
    ids=["not kept", "broken off", "in a conversation", "in a circle"],
)
def test_where_not_all_is_known_an_output_is_taken_to_have_its_call(before):
    assert found(*before, exchange("resp_2", [output()], [message()], base="resp_1")) == {}


def test_an_exchange_under_two_ids_is_one():
    async def shown(store):
        await tried_again(Exchanges(store), "t/1", "resp_shown", "resp_1")

    assert (
        found(
            exchange("resp_1", [user()], [call()]),
            shown,
            exchange("resp_2", [output()], [message()], base="resp_shown"),
        )
        == {}
    )


def test_a_history_that_a_client_sent_broken_is_found():
    assert found(exchange("resp_1", [user(), call(), user("hm")], [message()])) == {
        "resp_1": [("LS001", "call_1 (look) has no output [entry 4]")]
    }


def test_of_a_conversation_only_what_was_left_behind_is_found():
    async def work():
        store = MemoryStore()
        conversations = Conversations(store)
        waits, left = [user(), call()], [user(), call(), user("hm")]
        for name, items in {"conv_waits": waits, "conv_left": left}.items():
            given = [encoded(item) for item in items]
            await conversations.begin("t", name, created=0.0, items=given)
        return await found_in(store)

    assert asyncio.run(work()) == {
        "conv_left": [("LS001", "call_1 (look) has no output [entry 4]")]
    }


@st.composite
def chains(draw):
    """Exchanges of a client that brings every output; (items, said) of each."""
    made, waiting, count = [], [], 0
    for n in range(draw(st.integers(1, 6))):
        if made and draw(st.booleans()) and draw(st.booleans()):
            made.append(([], []))  # warmed up
        brought = [output(key) for key in draw(st.permutations(waiting))]
        waiting = []
        said = []
        for _ in range(draw(st.integers(0, 3))):
            count += 1
            if draw(st.booleans()):
                waiting.append(f"call_{count}")
                said.append(call(f"call_{count}", f"fc_{count}"))
            else:
                said.append(message("…", f"msg_{count}"))
        asked = [user(f"{n}")] if not brought or draw(st.booleans()) else []
        made.append((brought + asked, said))
    return made


@settings(max_examples=examples(40))
@given(chains(), st.integers(1, 3))
def test_no_chain_of_a_client_that_brings_every_output_has_a_finding(chain, remembered):
    ids = [f"resp_{n * 7 % 11}{n}" for n in range(len(chain))]  # not in the order of the chain
    exchanges = [
        exchange(name, items, said, base=base)
        for name, (items, said), base in zip(ids, chain, [None, *ids], strict=False)
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(checking_exchanges, "MOST_REMEMBERED_EXCHANGES", remembered)
        assert found(*exchanges) == {}
