"""An output goes only to the call that it answered, over HTTP, whatever calls are named alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch.gateway.keeping.journal import MOST_PLACES
from tests.gateway.building import (
    Faulty,
    both,
    call,
    gateway,
    keys,
    message,
    output,
    provider,
    run,
    streaming,
    upstream,
    user,
)
from tests.generated import examples

KEY = "pay:0"
"""Some servers count their calls, so each of their chains begins with the same id."""
UNKNOWN = "[lockstitch] Outcome unknown."


def given_to(up) -> list[str]:
    """The outputs in the request that the upstream got last."""
    sent = up.asked[-1].json["input"]
    return [item["output"] for item in sent if item["type"] == "function_call_output"]


async def pays(up, gw, response, text, item_id="fc_1"):
    """A chain begins, and the model pays."""
    up.then(streaming(response, call(KEY, item_id)))
    await gw.ask(input=[user(text)])


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_the_output_of_an_unrelated_chain_is_never_used(anchored, alike):
    async def main():
        async with both() as (up, gw):
            await pays(up, gw, "resp_b", "Pay.")
            await pays(up, gw, "resp_a", "Pay." if alike else "Pay A.")
            await gw.ask(input=[output(KEY, "paid A")], previous_response_id="resp_a")
            if anchored:
                await gw.ask(input=[user("So?")], previous_response_id="resp_b")
            else:
                await gw.ask(input=[user("Pay."), call(KEY), user("So?")])
            (told,) = given_to(up)
            assert told.startswith(UNKNOWN)

    run(main())


def test_an_output_that_was_sent_in_full_by_a_chain_with_the_same_words_is_never_used():
    """The gateway takes it for a continuation of the newest chain with these words."""

    async def main():
        async with both() as (up, gw):
            await pays(up, gw, "resp_b", "Pay.")
            await pays(up, gw, "resp_a", "Pay.")
            await gw.ask(input=[user("Pay."), call(KEY), output(KEY, "paid B")])
            await gw.ask(input=[user("So?")], previous_response_id="resp_a")
            (told,) = given_to(up)
            assert told.startswith(UNKNOWN)

    run(main())


def test_the_output_of_an_earlier_call_in_the_same_chain_is_never_used():
    async def main():
        async with both() as (up, gw):
            await pays(up, gw, "resp_1", "Pay.")
            up.then(streaming("resp_2", call(KEY, "fc_2")))
            await gw.ask(input=[output(KEY, "paid once")], previous_response_id="resp_1")
            await gw.ask(input=[user("So?")], previous_response_id="resp_2")
            (told,) = given_to(up)
            assert told.startswith(UNKNOWN)

    run(main())


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("in_between", [[], [output(KEY, "aborted")]])
def test_the_output_of_a_branch_of_the_same_chain_is_used(anchored, in_between):
    """Also by another worker, and where a later branch said that the call did not run."""

    async def main():
        store = Faulty()
        async with provider() as up, gateway(upstream(up), store=store) as gw:
            await pays(up, gw, "resp_1", "Pay.")
            await gw.ask(input=[output(KEY, "paid")], previous_response_id="resp_1")
            if in_between:
                await gw.ask(input=in_between, previous_response_id="resp_1")
            async with gateway(upstream(up), store=store) as other:
                for one in (gw, other):
                    if anchored:
                        await one.ask(input=[user("So?")], previous_response_id="resp_1")
                    else:
                        await one.ask(input=[user("Pay."), call(KEY, None), user("So?")])
                    assert given_to(up) == ["paid"]

    run(main())


def test_a_client_that_sends_a_call_again_without_its_output_gets_it():
    async def main():
        async with both() as (up, gw):
            await pays(up, gw, "resp_1", "Pay.")
            await gw.ask(input=[output(KEY, "paid")], previous_response_id="resp_1")
            await gw.ask(input=[call(KEY), user("So?")], previous_response_id="resp_1")
            assert given_to(up) == ["paid"]

    run(main())


@pytest.mark.parametrize("anchored", [False, True])
def test_the_output_of_another_tenant_is_never_used_and_hides_none(anchored):
    async def main():
        async with both(keys=keys("a", "b")) as (up, gw):
            up.then(streaming("resp_1", call(KEY)))
            await gw.ask(input=[user("Pay.")], key="lsk_a")
            await gw.ask(input=[output(KEY, "paid")], previous_response_id="resp_1", key="lsk_a")
            for n in range(MOST_PLACES + 5):
                up.then(streaming(f"flood_{n}", call(KEY)))
                sent = [user("Pay."), call(KEY), output(KEY, "not yours")] if n % 2 else "Pay."
                await gw.ask(input=sent, key="lsk_b")
            for key, expected in (("lsk_a", "paid"), ("lsk_b", UNKNOWN)):
                if anchored and key == "lsk_a":
                    named = {"previous_response_id": "resp_1"}
                    await gw.ask(input=[user("So?")], **named, key=key)
                else:
                    await gw.ask(input=[user("Pay."), call(KEY), user("So?")], key=key)
                (told,) = given_to(up)
                assert told.startswith(expected)

    run(main())


# --- forests at random -------------------------------------------------------------------------


class Node(NamedTuple):
    """A response, as its client knows it."""

    id: str
    context: list[dict[str, Any]]
    makers: list[str]
    """The response that made each call of the context, in order."""
    open: bool
    """It ends with a call."""


class Step(NamedTuple):
    """One request of some client."""

    pick: int
    """Which response it continues; the first choice is to begin a new chain."""
    loses: bool
    """Does it leave the output out that it should bring?"""
    anchored: bool
    text: str
    calls: bool
    """Does the model make a call?"""
    worker: int


steps = st.lists(
    st.builds(
        Step,
        pick=st.integers(0, 8),
        loses=st.booleans(),
        anchored=st.booleans(),
        text=st.sampled_from(["a", "b"]),
        calls=st.sampled_from([True, True, False]),
        worker=st.integers(0, 1),
    ),
    min_size=3,
    max_size=12,
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps, st.sampled_from([None, "same", "own"]))
def test_in_any_forest_of_chains_an_output_goes_only_to_the_call_that_it_answered(todo, ids):
    async def main():
        store = Faulty()
        async with (
            provider() as up,
            gateway(upstream(up), store=store) as one,
            gateway(upstream(up), store=store) as other,
        ):
            nodes: list[Node] = []
            answered: set[str] = set()
            for step in todo:
                node = nodes[step.pick - 1] if 0 < step.pick <= len(nodes) else None
                made = await asked(up, (one, other)[step.worker], node, step, len(nodes), ids)
                nodes.append(made)
                anchored = node is not None and anchors(node, step)
                told = outputs_by_call(up, node, anchored)
                for maker, text in told.items():
                    assert text == f"of {maker}" or text.startswith(UNKNOWN), (maker, text)
                if node is None or not node.open or not anchored:
                    continue
                if node.id in answered or not step.loses:
                    assert told == {node.id: f"of {node.id}"}
                if not step.loses:
                    answered.add(node.id)

    run(main(), collect=False)


def anchors(node, step) -> bool:
    """Does the client name the response? In a full history an output goes to the oldest open call
    with its id, so a client that lost one and brings a later one has to."""
    brings = node.open and not step.loses
    waiting = 0
    for item in [*node.context, *([output(KEY)] if brings else [])]:
        if item["type"] == "function_call":
            waiting += 1
        elif item["type"] == "function_call_output":
            if waiting > 1:
                return True
            waiting -= 1
    return step.anchored


async def asked(up, gw, node, step, n, ids) -> Node:
    """A client's request, and what it knows after the answer."""
    new = [user(step.text)]
    if node is not None and node.open and not step.loses:
        new = [output(KEY, f"of {node.id}")]
    item_id = {None: None, "same": "fc_1", "own": f"fc_{n}"}[ids]
    said = call(KEY, item_id) if step.calls else message("fine", None)
    up.then(streaming(f"resp_{n}", said))
    before = node.context if node is not None else []
    if node is not None and anchors(node, step):
        told = await gw.ask(input=new, previous_response_id=node.id)
    else:
        told = await gw.ask(input=[*before, *new])
    assert told["http"] == 200, told
    makers = [*(node.makers if node is not None else ()), *([f"resp_{n}"] if step.calls else ())]
    return Node(f"resp_{n}", [*before, *new, said], makers, step.calls)


def outputs_by_call(up, node, anchored) -> dict[str, str]:
    """The output that each call got, by the response that made the call."""
    if node is None:
        return {}
    waiting: list[str] = []
    if anchored and node.open:
        waiting = [node.id]
    makers = iter(node.makers)
    told: dict[str, str] = {}
    for item in up.asked[-1].json["input"]:
        if item["type"] == "function_call":
            waiting.append(next(makers))
        elif item["type"] == "function_call_output":
            told[waiting.pop(0)] = item["output"]
    assert waiting == []
    return told
