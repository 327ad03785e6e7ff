"""Before the first try: what a request goes on from, and whether it is whole."""

from __future__ import annotations

import json

import pytest

from tests.gateway.building import (
    both,
    call,
    gateway,
    keys,
    message,
    output,
    provider,
    run,
    saying,
    streaming,
    told_by,
    upstream,
    user,
)


def served(work, **more):
    async def main():
        async with both(**more) as (up, gw):
            await work(up, gw)

    run(main())


BROKEN = [user("a"), call("call_1"), user("b")]


@pytest.mark.parametrize("guard", ["off", "report", "mend", "refuse"])
def test_a_history_that_is_not_whole_is_judged_as_the_guard_says(guard):
    async def work(up, gw):
        told = await gw.ask(input=BROKEN)
        if guard == "refuse":
            assert told["http"] == 400
            assert "call_1" in told["error"]["message"]
            assert up.asked == []
        elif guard == "mend":
            kinds = [item["type"] for item in up.asked[-1].json["input"]]
            assert kinds == ["message", "function_call", "function_call_output", "message"]
        else:
            assert up.asked[-1].json["input"] == BROKEN

    served(work, up_guard=guard)


def test_the_guard_of_a_key_counts_before_that_of_the_upstream():
    async def work(up, gw):
        assert (await gw.ask(input=BROKEN, key="lsk_a"))["http"] == 400
        assert up.asked == []

    served(work, up_guard="off", keys=keys("a", guard="refuse"))


def test_an_open_call_behind_the_anchor_is_known_to_be_open():
    async def work(up, gw):
        up.then(streaming("resp_1", call("call_1")))
        await gw.ask(input="x")
        told = await gw.ask(input=[user("b")], previous_response_id="resp_1")
        assert told["http"] == 400
        assert "call_1" in told["error"]["message"]
        assert (await gw.ask(input=[output()], previous_response_id="resp_1"))["http"] == 200

    served(work, up_guard="refuse")


def test_a_call_that_broke_off_behind_the_anchor_asks_for_nothing():
    async def work(up, gw):
        half = call("call_1", status="incomplete")
        up.then(streaming("resp_1", half, ending="incomplete"))
        await gw.ask(input="x")
        assert (await gw.ask(input="go on", previous_response_id="resp_1"))["http"] == 200
        assert up.asked[-1].json["input"] == "go on"

    served(work, up_guard="refuse")


def test_the_output_of_a_sibling_branch_is_found():
    async def work(up, gw):
        up.then(streaming("resp_1", call("call_1")))
        await gw.ask(input="x")
        await gw.ask(input=[output("call_1", "the truth")], previous_response_id="resp_1")
        await gw.ask(input=[user("b")], previous_response_id="resp_1")
        sent = up.asked[-1].json["input"]
        assert sent[0] == output("call_1", "the truth")

    served(work, up_guard="mend")


def test_a_delta_behind_an_unknown_anchor_is_never_changed():
    async def work(up, gw):
        await gw.ask(input=[output("call_9")], previous_response_id="resp_strange")
        assert up.asked[-1].json["input"] == [output("call_9")]

    served(work, up_guard="mend")


def test_what_is_not_in_the_journal_is_refused_where_that_is_wanted():
    async def work(up, gw):
        told = await gw.ask(input="x", previous_response_id="resp_strange")
        assert told["error"]["code"] == "previous_response_not_found"
        assert (await gw.ask(input="x", conversation="conv_strange"))["http"] in (400, 404)
        assert up.asked == []

    served(work, unknown_chains="refuse")


def test_a_model_that_nobody_serves_is_said_to_be_so():
    async def work(up, gw):
        assert (await gw.ask(input="x", model="other"))["http"] in (400, 404)
        assert up.asked == []

    served(work, up_models=("m-*",))


def test_a_key_uses_only_the_upstreams_that_it_may():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one"), upstream(two, "two"))
            async with gateway(*names, keys=keys("a", upstreams=("two",))) as gw:
                assert (await gw.ask(input="x", key="lsk_a"))["http"] == 200
                assert one.asked == []
                assert len(two.asked) == 1

    run(main())


def test_a_chain_goes_to_where_it_is():
    async def main():
        async with provider() as one, provider() as two:
            names = (upstream(one, "one", models=("a",)), upstream(two, "two"))
            async with gateway(*names) as gw:
                two.then(streaming("resp_2", message()))
                await gw.ask(input="x", model="b")
                await gw.ask(input="y", model="a", previous_response_id="resp_2")
                assert one.asked == []
                assert two.asked[-1].json["previous_response_id"] == "resp_2"

    run(main())


@pytest.mark.parametrize("keyed", [False, True])
def test_a_conversation_is_anothers_only_where_there_are_keys(keyed):
    """As a response is."""

    async def work(up, gw):
        await gw.world.conversations.begin("a", "conv_1", upstream="up", created=0.0)
        key = {"key": "lsk_b"} if keyed else {}
        told = await gw.ask(input="x", conversation="conv_1", **key)
        assert told["http"] == (404 if keyed else 200)
        assert len(up.asked) == (0 if keyed else 1)

    served(work, keys=keys("a", "b") if keyed else ())


@pytest.mark.parametrize("guard", ["off", "report", "mend"])
def test_a_call_that_is_sent_again_behind_its_answer_is_kept_once(guard):
    async def work(up, gw):
        up.then(streaming("resp_1", call("call_1")))
        await gw.ask(input="x")
        up.then(streaming("resp_2", message()))
        again = [call("call_1"), output("call_1")]
        await gw.ask(input=again, previous_response_id="resp_1")
        sent = [item["type"] for item in up.asked[-1].json["input"]]
        both = ["function_call", "function_call_output"]
        assert sent == (both[1:] if guard == "mend" else both)
        kept = await gw.world.exchanges.exchange("local", "resp_2")
        assert [json.loads(item)["type"] for item in kept.items] == ["function_call_output"]

    served(work, up_guard=guard)


def test_a_response_of_a_gateway_that_keeps_it_says_so_also_where_it_broke_off():
    async def work(up, gw):
        made = await gw.world.conversations.begin("local", created=0.0)
        up.then(saying(told_by("resp_1", message(), store=False)[:4], then="cut"))
        (*_, end) = await gw.stream(input="x", conversation=made.id)
        assert end["response"]["store"] is True
        async with gw.client.get(gw.url + "/responses/resp_1") as told:
            response = await told.json()
        assert response["status"] == "failed"
        assert response["store"] is True
        assert response["conversation"] == {"id": made.id}

    served(work, up_state="gateway", up_retries=0)


def test_a_conversation_is_read_once_and_where_it_is_before_that():
    async def work(up, gw):
        items = [json.dumps(user(f"{n}")).encode() for n in range(20)]
        made = await gw.world.conversations.begin("local", created=0.0, items=items)
        read = []
        from_store = gw.store.read

        async def reading(name, **which):
            async for record in from_store(name, **which):
                read.append((name, record.seq))
                yield record

        gw.store.read = reading
        await gw.ask(input="x", conversation=made.id)
        assert len(up.asked[-1].json["input"]) == 21
        of_it = [seq for name, seq in read if made.id in name]
        assert of_it == [1, 2, *range(1, 23)]

    served(work, up_state="gateway")


# --- a conversation that nobody here knows -----------------------------------------------------


def test_a_conversation_that_nobody_can_have_is_not_gone_on_with_without_it():
    """An upstream that keeps nothing would answer without a word of what was said before."""

    async def main():
        async with both(up_state="gateway") as (up, gw):
            told = await gw.ask(conversation="conv_gone", input="And now?")
            assert (told["http"], told["error"]["code"]) == (404, "conversation_not_found")
            assert up.asked == []

    run(main())


def test_a_conversation_that_nobody_here_knows_goes_to_an_upstream_that_may_have_it():
    async def main():
        async with provider() as none, provider() as some:
            kept_here = upstream(none, "none", state="gateway")
            async with gateway(kept_here, upstream(some, "some")) as gw:
                told = await gw.ask(conversation="conv_old", input="And now?")
                assert told["http"] == 200
                assert [len(none.asked), len(some.asked)] == [0, 1]

    run(main())


def test_a_request_goes_on_from_a_conversation_or_from_a_response_and_not_from_both():
    async def main():
        async with both(up_state="gateway") as (up, gw):
            made = await gw.ask(path="/conversations")
            first = await gw.ask(input="One.")
            named = {"conversation": made["id"], "previous_response_id": first["id"]}
            told = await gw.ask(**named, input="Two.")
            assert (told["http"], told["error"]["code"]) == (400, "mutually_exclusive_parameters")
            assert len(up.asked) == 1

    run(main())
