"""Conversations through the gateway, with the official client: at an upstream, or its own."""

from __future__ import annotations

import asyncio

import openai
import pytest

from lockstitch.gateway.config.model import Upstream
from lockstitch.store.errors import CannotWrite
from lockstitch.store.memory import MemoryStore
from lockstitch.testing import EmulatorThread
from tests.gateway import building as gateways
from tests.gateway.doors.serving import at, nobody, refusal, run, serving


def message(text, role="user"):
    return {"type": "message", "role": role, "content": text}


def keepers(kind: str, emulator: EmulatorThread) -> list[Upstream]:
    return [] if kind == "gateway" else [at(emulator)]


either = pytest.mark.parametrize("kind", ["upstream", "gateway"])
"""What the official client sees is the same, whoever keeps it."""


@either
def test_the_life_of_a_conversation(kind, emulator):
    async def play():
        async with serving(*keepers(kind, emulator)) as served:
            client = served.client().conversations
            made = await client.create(
                items=[message("Hi."), message("Hello.", "assistant")], metadata={"a": "b"}
            )
            assert made.object == "conversation"
            assert made.id.startswith("conv_")
            assert made.metadata == {"a": "b"}
            assert await client.retrieve(made.id) == made
            changed = await client.update(made.id, metadata={"c": "d"})
            assert changed.metadata == {"c": "d"}
            assert (await client.retrieve(made.id)).metadata == {"c": "d"}
            added = await client.items.create(
                made.id,
                items=[
                    {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "call_1", "output": "1"},
                ],
            )
            assert [item.type for item in added.data] == ["function_call", "function_call_output"]
            assert [item.id.partition("_")[0] for item in added.data] == ["fc", "fco"]
            assert [added.first_id, added.last_id] == [item.id for item in added.data]
            listed = await client.items.list(made.id, order="asc")
            assert [item.type for item in listed.data] == [
                "message",
                "message",
                "function_call",
                "function_call_output",
            ]
            first, second = listed.data[:2]
            assert (first.role, first.content[0].type, first.content[0].text) == (
                "user",
                "input_text",
                "Hi.",
            )
            assert (second.role, second.content[0].type) == ("assistant", "output_text")
            assert {item.status for item in listed.data} == {"completed"}
            assert await client.items.retrieve(first.id, conversation_id=made.id) == first
            left = await client.items.delete(first.id, conversation_id=made.id)
            assert left.id == made.id
            assert left.object == "conversation"
            rest = await client.items.list(made.id)
            assert [item.id for item in rest.data] == [item.id for item in listed.data[:0:-1]]
            status, error = await refusal(client.items.retrieve(first.id, conversation_id=made.id))
            assert (status, error["param"]) == (404, "item_id")
            gone = await client.delete(made.id)
            assert (gone.id, gone.deleted, gone.object) == (made.id, True, "conversation.deleted")
            for work in (
                client.retrieve(made.id),
                client.update(made.id, metadata={}),
                client.delete(made.id),
                client.items.list(made.id),
                client.items.create(made.id, items=[message("Hi.")]),
                client.items.retrieve("msg_1", conversation_id=made.id),
                client.items.delete("msg_1", conversation_id=made.id),
            ):
                status, error = await refusal(work)
                assert status == 404
                assert error["message"] == f"Conversation with id '{made.id}' not found."

    run(play())
    asked = [entry.what for entry in emulator.entries()]
    assert bool(asked) == (kind == "upstream")


@either
def test_pages_of_items(kind, emulator):
    async def play():
        async with serving(*keepers(kind, emulator)) as served:
            client = served.client().conversations
            texts = [f"{n}" for n in range(45)]
            made = await client.create(items=[message(text) for text in texts[:20]])
            await client.items.create(made.id, items=[message(text) for text in texts[20:40]])
            await client.items.create(made.id, items=[message(text) for text in texts[40:]])
            first = await client.items.list(made.id)
            assert [item.content[0].text for item in first.data] == texts[:-21:-1]
            assert first.has_more
            every = [item.content[0].text async for item in client.items.list(made.id, limit=7)]
            assert every == texts[::-1]
            old = await client.items.list(made.id, order="asc", limit=100)
            assert [item.content[0].text for item in old.data] == texts
            assert (old.has_more, old.first_id, old.last_id) == (
                False,
                old.data[0].id,
                old.data[-1].id,
            )
            none = await client.items.list(made.id, order="asc", after=old.last_id)
            assert (none.data, none.has_more) == ([], False)

    run(play())


@either
def test_what_the_provider_refuses(kind, emulator):
    async def play():
        async with serving(*keepers(kind, emulator)) as served:
            client = served.client().conversations
            made = await client.create()
            assert made.metadata == {}
            too_many = [message("Hi.")] * 21
            found = [
                await refusal(work)
                for work in (
                    client.create(items=too_many),
                    client.items.create(made.id, items=too_many),
                    client.create(metadata={f"{n}": "" for n in range(17)}),
                    client.create(metadata={"a" * 65: ""}),
                    client.create(metadata={"a": "b" * 513}),
                    client.update(made.id, metadata={"a": 1}),
                    client.update(made.id, metadata=None, extra_body={"metadata": "no"}),
                    client.create(items=[{"type": "item_reference", "id": "msg_1"}]),
                    client.items.list(made.id, limit=0),
                    client.items.list(made.id, limit=101),
                    client.items.list(made.id, order="up"),
                    client.items.list(made.id, after="msg_1"),
                    client.items.create(made.id, items=[], extra_body={"items": "no"}),
                )
            ]
            return [(status, error["param"], error["code"]) for status, error in found]

    assert run(play()) == [
        (400, "items", "array_above_max_length"),
        (400, "items", "array_above_max_length"),
        (400, "metadata", "invalid_value"),
        (400, "metadata", "string_above_max_length"),
        (400, "metadata.a", "string_above_max_length"),
        (400, "metadata.a", "invalid_type"),
        (400, "metadata", "invalid_type"),
        (400, "items[0].type", "invalid_value"),
        (400, "limit", "invalid_value"),
        (400, "limit", "invalid_value"),
        (400, "order", "invalid_value"),
        (404, "after", None),
        (400, "items", "invalid_type"),
    ]


def test_items_stay_as_they_came():
    async def play():
        async with serving() as served:
            client = served.client().conversations
            odd = {"type": "of_tomorrow", "id": "x_1", "deep": {"a": [1, None, "ü"]}}
            made = await client.create(items=[odd])
            kept = await served.world.conversations.read("anna", made.id)
            assert kept.items == [odd]
            status, body = await served.get(f"/conversations/{made.id}/items/x_1")
            assert (status, b'"deep"' in body) == (200, True)
            # Pairs are not judged: this output has no call.
            lone = {"type": "function_call_output", "call_id": "call_9", "output": "9"}
            await client.items.create(made.id, items=[lone])

    run(play())


def test_a_body_that_is_none():
    async def play():
        async with serving() as served:
            client = served.client()
            made = await client.conversations.create()
            found = []
            for path, body in (
                ("/conversations", b"[1]"),
                ("/conversations", b'{"items": [1]}'),
                ("/conversations", rb'{"items": [{"role": "user", "content": "\ud83d"}]}'),
                (f"/conversations/{made.id}", b"{}"),
                (f"/conversations/{made.id}/items", b"{}"),
            ):
                found.append(await refusal(client.post(path, content=body, cast_to=object)))
            return [(status, error["param"]) for status, error in found]

    wrong = [None, "items[0]", None, "metadata", "items"]
    assert run(play()) == [(400, param) for param in wrong]


# --- whose it is -------------------------------------------------------------------------------


@either
@pytest.mark.parametrize("unknown", ["pass", "refuse"])
def test_what_another_tenant_made_does_not_exist(kind, unknown, emulator):
    async def play():
        async with serving(*keepers(kind, emulator), unknown=unknown) as served:
            made = await served.client("anna").conversations.create(items=[message("Hi.")])
            asked = len(emulator.entries())
            other = served.client("bert").conversations
            for work in (
                other.retrieve(made.id),
                other.update(made.id, metadata={"a": "b"}),
                other.items.list(made.id),
                other.items.create(made.id, items=[message("Mine.")]),
                other.delete(made.id),
            ):
                status, error = await refusal(work)
                assert (status, error["code"]) == (404, "conversation_not_found")
            if kind == "upstream":
                assert len(emulator.entries()) == asked
            listed = await served.client("anna").conversations.items.list(made.id)
            assert len(listed.data) == 1

    run(play())


def test_an_unknown_conversation_is_passed_on_to_each_upstream_in_turn(make_emulator):
    first, second = make_emulator(), make_emulator()

    async def play():
        async with serving(at(first, "first"), at(second, "second")) as served:
            client = served.client().conversations
            async with serving(at(second, "second")) as elsewhere:
                made = await elsewhere.client().conversations.create(items=[message("Hi.")])
            assert (await client.retrieve(made.id)).id == made.id
            assert len((await client.items.list(made.id)).data) == 1
            assert served.callers[-1].upstream == "second"
            status, _ = await refusal(client.retrieve("conv_nobody"))
            assert status == 404
            first.stop()
            assert (await client.retrieve(made.id)).id == made.id
            status, error = await refusal(client.retrieve("conv_nobody"))
            assert (status, error["code"]) == (502, "upstream_unreachable")

    run(play())


def test_an_unknown_conversation_is_refused_where_that_is_configured(emulator):
    async def play():
        async with serving(at(emulator)) as elsewhere:
            made = await elsewhere.client().conversations.create()
        async with serving(at(emulator), unknown="refuse") as served:
            status, error = await refusal(served.client().conversations.retrieve(made.id))
            assert (status, error["code"]) == (404, "conversation_not_found")

    run(play())


# --- where it is -------------------------------------------------------------------------------


def test_a_conversation_stays_at_the_upstream_that_made_it(make_emulator):
    first, second = make_emulator(), make_emulator()

    async def play():
        store = MemoryStore()
        async with serving(at(first, "first"), store=store) as served:
            made = await served.client().conversations.create(items=[message("Hi.")])
        async with serving(at(second, "second"), at(first, "first"), store=store) as served:
            client = served.client().conversations
            assert len((await client.items.list(made.id)).data) == 1
            assert served.callers[-1].upstream == "first"
        async with serving(at(second, "second"), store=store) as served:
            # It is configured no more.
            status, _ = await refusal(served.client().conversations.retrieve(made.id))
            assert status == 404
        assert second.requests("GET") == []

    run(play())


def test_upstreams_that_keep_nothing_or_are_not_for_the_key_are_passed_over(make_emulator):
    stateless, forbidden = make_emulator(), make_emulator()

    async def play():
        upstreams = [at(stateless, "stateless", state="gateway"), at(forbidden, "forbidden")]
        async with serving(*upstreams, allowed=["stateless"]) as served:
            made = await served.client().conversations.create()
            found = await served.world.conversations.read("anna", made.id)
            assert found.upstream == ""
        assert stateless.entries() == forbidden.entries() == []

    run(play())


def test_a_new_conversation_goes_past_an_upstream_that_is_down(emulator):
    async def play():
        down = Upstream(name="down", url=nobody())
        async with serving(down, at(emulator)) as served:
            made = await served.client().conversations.create()
            found = await served.world.conversations.read("anna", made.id)
            assert found.upstream == "emulator"
        async with serving(down) as served:
            status, error = await refusal(served.client().conversations.create())
            assert (status, error["code"]) == (502, "upstream_unreachable")

    run(play())


def test_a_new_conversation_is_kept_here_where_the_upstream_that_is_up_keeps_none(make_emulator):
    up, later = make_emulator(), make_emulator()

    async def play():
        store = MemoryStore()
        upstreams = [Upstream(name="down", url=nobody()), at(up, "up", state="gateway")]
        async with serving(*upstreams, store=store) as served:
            client = served.client()
            made = await client.conversations.create(items=[message("Hi.")])
            assert (await served.world.conversations.read("anna", made.id)).upstream == ""
            assert any(note.startswith("down: No connection") for note in served.callers[-1].notes)
            answered = await client.responses.create(
                model="gpt-5.5", input="Where are we?", conversation=made.id
            )
            assert answered.status == "completed"
            assert len((await client.conversations.items.list(made.id)).data) == 3
        # Whoever is asked next gets all of it.
        async with serving(at(later, "down"), store=store) as served:
            client = served.client()
            await client.responses.create(model="gpt-5.5", input="And now?", conversation=made.id)
            assert len((await client.conversations.items.list(made.id)).data) == 5
        assert later.violations() == up.violations() == {}

    run(play())


def test_a_new_conversation_is_not_kept_here_for_an_upstream_of_another_api(emulator):
    async def play():
        down = Upstream(name="down", url=nobody())
        chat = at(emulator, "chat", state="gateway", apis=("chat",))
        async with serving(down, chat) as served:
            status, error = await refusal(served.client().conversations.create())
            assert (status, error["code"]) == (502, "upstream_unreachable")

    run(play())


def test_an_upstream_that_went_away_says_so_and_nothing_is_lost(make_emulator):
    emulator = make_emulator()

    async def play():
        async with serving(at(emulator)) as served:
            client = served.client().conversations
            made = await client.create()
            emulator.stop()
            for work in (client.retrieve(made.id), client.delete(made.id)):
                status, error = await refusal(work)
                assert (status, error["code"]) == (502, "upstream_unreachable")
            assert await served.world.conversations.read("anna", made.id) is not None

    run(play())


def test_what_the_upstream_forgot_is_gone(emulator):
    async def play():
        async with serving(at(emulator)) as served:
            client = served.client().conversations
            made = await client.create()
            emulator.forget()
            assert (await refusal(client.retrieve(made.id)))[0] == 404
            assert (await refusal(client.delete(made.id)))[0] == 404
            assert await served.world.conversations.read("anna", made.id) is None

    run(play())


def test_nobody_gets_the_id_of_a_conversation_whose_owner_was_not_kept(emulator):
    class Full(MemoryStore):
        async def begin(self, conversation, records, **how):
            raise CannotWrite("The disk is full.")

    async def play():
        async with serving(at(emulator), store=Full()) as served:
            status, error = await refusal(served.client().conversations.create())
            assert (status, error["code"]) == (503, "journal_unavailable")
            assert "not sent" not in error["message"]

    run(play())


# --- one at a time -----------------------------------------------------------------------------


def test_a_conversation_is_locked_while_a_response_is_at_work_on_it():
    async def play():
        async with serving() as served:
            client = served.client().conversations
            made = await client.create(items=[message("Hi.")])
            item = (await client.items.list(made.id)).data[0]
            async with served.world.conversations.held("anna", made.id):
                for work in (
                    client.items.create(made.id, items=[message("No.")]),
                    client.delete(made.id),
                    client.items.delete(item.id, conversation_id=made.id),
                ):
                    status, error = await refusal(work)
                    assert (status, error["type"], error["param"], error["code"]) == (
                        400,
                        "invalid_request_error",
                        "conversation",
                        "conversation_locked",
                    )
                assert len((await client.items.list(made.id)).data) == 1
            await client.items.create(made.id, items=[message("Yes.")])

    run(play())


def test_an_answer_has_one_end_also_where_its_conversation_is_not_let_go():
    async def play():
        async with gateways.both(up_state="gateway") as (up, gw):
            async with gw.client.post(gw.url + "/conversations", json={}) as made:
                conversation = (await made.json())["id"]
            gw.store.fails = lambda call, name: call == "release"
            up.then(gateways.streaming("resp_1", gateways.message()))
            events = await gw.stream(input="x", conversation=conversation)
            assert [event["type"] for event in events if "response" in event] == [
                "response.created",
                "response.in_progress",
                "response.completed",
            ]

    gateways.run(play())


def test_what_was_added_is_added_also_where_the_conversation_is_not_let_go():
    async def play():
        async with gateways.both(up_state="gateway") as (_, gw):
            async with gw.client.post(gw.url + "/conversations", json={}) as made:
                items = f"{gw.url}/conversations/{(await made.json())['id']}/items"
            gw.store.fails = lambda call, name: call == "release"
            async with gw.client.post(items, json={"items": [gateways.user()]}) as added:
                assert added.status == 200
            async with gw.client.get(items) as told:
                assert len((await told.json())["data"]) == 1

    gateways.run(play())


def test_edits_at_the_same_time_wait_for_one_another():
    async def play():
        async with serving() as served:
            client = served.client().conversations
            made = await client.create()
            await asyncio.gather(
                *(client.items.create(made.id, items=[message(f"{n}")]) for n in range(10))
            )
            listed = await client.items.list(made.id)
            assert sorted(item.content[0].text for item in listed.data) == sorted("0123456789")

    run(play())


def test_items_that_may_have_arrived_are_not_sent_again_by_the_official_client():
    async def play():
        async with gateways.both() as (up, gw):
            made = gateways.raw(b'{"id":"conv_1"}', kind="application/json")
            up.then(made)

            async def cut(asked):
                asked.request.transport.abort()

            async with openai.AsyncOpenAI(base_url=gw.url, api_key="any", max_retries=2) as client:
                client._sleep_for_retry = no_wait
                conversation = await client.conversations.create()
                up.then(*[cut] * 10)
                with pytest.raises(openai.InternalServerError, match="only if that does no harm"):
                    await client.conversations.items.create(conversation.id, items=[message("Hi.")])
            assert len(up.asked) == 2

    async def no_wait(**how):
        """Behind each try that failed."""

    gateways.run(play())


@pytest.mark.parametrize("path", ["/conversations", "/conversations/conv_1/items"])
def test_an_item_of_another_key_gets_into_no_conversation(path):
    async def play():
        async with gateways.both(keys=gateways.keys("a", "b")) as (up, gw):
            up.then(gateways.streaming("resp_1", gateways.message("secret", "msg_secret")))
            await gw.ask(input="x", key="lsk_a")
            up.then(gateways.raw(b'{"id":"conv_1"}', kind="application/json"))
            assert (await gw.ask(path="/conversations", key="lsk_b"))["http"] == 200
            named = {"type": "item_reference", "id": "msg_secret"}
            asked = len(up.asked)
            assert (await gw.ask(path=path, items=[named], key="lsk_b"))["http"] in (400, 404)
            assert len(up.asked) == asked
            for items in ([message("Hi.")], "x", [5], None):
                up.then(gateways.raw(b'{"id":"conv_2"}', kind="application/json"))
                assert (await gw.ask(path=path, items=items, key="lsk_b"))["http"] == 200

    gateways.run(play())
