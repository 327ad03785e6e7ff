"""Pairs, order and ids, as the provider enforces them: on items alone, with no server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.admission import Made, admitted, announced, check_answered
from lockstitch.emulator.responses.context import Context
from lockstitch.emulator.responses.minting import Mint
from lockstitch.emulator.responses.pairs import CALLS, OUTPUTS

FAMILIES = [
    (call, name) for name, output in OUTPUTS.items() for call in output.answers if call in CALLS
]


def enter(context, *items):
    return admitted(context, list(items), Made(), Mint(0), sent=list(items))


def asked(*items):
    """The refusal of a request with these items; None if it is taken."""
    try:
        check_answered(enter(Context(), *items))
    except Refused as refused:
        return refused
    return None


def call(kind="function_call", key="call_1", **fields):
    return {"type": kind, CALLS[kind].key: key, **fields}


def output(kind="function_call_output", key="call_1", **fields):
    return {"type": kind, OUTPUTS[kind].key: key, "output": "x", **fields}


@pytest.mark.parametrize(("made", "answer"), FAMILIES)
def test_a_call_and_its_output_are_taken(made, answer):
    assert asked(call(made), output(answer)) is None


@pytest.mark.parametrize(("made", "answer"), FAMILIES)
def test_a_call_alone_is_refused_by_its_key(made, answer):
    refused = asked(call(made))
    assert refused is not None
    assert refused.rule == "call-without-output"
    assert "call_1" in refused.message
    assert refused.param == "input"


@pytest.mark.parametrize(("made", "answer"), FAMILIES)
def test_an_output_alone_before_its_call_or_twice_is_refused(made, answer):
    for items in (
        [output(answer)],
        [output(answer), call(made)],
        [call(made), output(answer), output(answer)],
    ):
        refused = asked(*items)
        assert refused is not None
        assert refused.rule == "output-without-call"


@pytest.mark.parametrize("made", CALLS)
@pytest.mark.parametrize("answer", OUTPUTS)
def test_only_an_output_of_the_same_family_answers(made, answer):
    taken = asked(call(made), output(answer)) is None
    assert taken == ((made, answer) in FAMILIES)


def test_the_words_are_those_of_the_provider():
    assert asked(call()).message == "No tool output found for function call call_1."
    assert asked(output()).message == (
        "No tool call found for function call output with call_id call_1."
    )


def test_an_event_from_outside_needs_no_call():
    assert asked({"type": "function_call_output", "name": "alarm", "output": "rang"}) is None


def test_a_search_that_the_server_ran_stands_alone():
    assert asked({"type": "tool_search_call", "execution": "server", "call_id": None}) is None
    assert asked({"type": "tool_search_output", "execution": "server", "call_id": None}) is None


def test_a_key_may_be_used_again_once_it_is_answered():
    assert asked(call(), output(), call(), output()) is None
    assert asked(call(), call(), output(), output()) is None
    assert asked(call(), call(), output()).rule == "call-without-output"


def test_a_call_that_broke_off_was_never_made():
    assert asked(call(status="incomplete")) is None
    assert asked(call(status="incomplete"), output()).rule == "output-without-call"


def test_a_program_whose_own_calls_are_answered_goes_on():
    child = call(key="call_2", caller={"type": "program", "caller_id": "call_1"})
    program = call("program")
    assert asked(program, child, output(key="call_2")) is None
    assert asked(program, child).message == "No tool output found for function call call_2."
    assert asked(program).rule == "call-without-output"


def test_an_id_that_is_there_twice_is_refused():
    twice = {"type": "message", "id": "msg_1"}
    assert asked(twice, dict(twice)).rule == "duplicate-item"
    context = enter(Context(), twice)
    with pytest.raises(Refused, match="Duplicate item found with id msg_1"):
        enter(context, dict(twice))


def test_reasoning_and_what_followed_it_stay_together():
    made, mint = Made(), Mint(0)
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    done = {"type": "function_call", "id": "fc_1", "call_id": "call_1"}
    made.remember([thought, done])

    def rule(*items):
        try:
            admitted(Context(), list(items), made, mint, sent=list(items))
        except Refused as refused:
            return refused.message
        return ""

    assert rule(thought, done) == ""
    assert rule(thought) == (
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    )
    assert rule(thought, output(), done).endswith("without its required following item.")
    assert rule(done) == (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' "
        "item: 'rs_1'."
    )
    without_id = {key: value for key, value in done.items() if key != "id"}
    assert rule(without_id) == ""


def test_content_that_another_provider_sealed_is_refused():
    follower = {"type": "message", "role": "assistant"}
    for seed, taken in ((0, True), (1, False)):
        sealed = Mint(seed).sealed("thought")
        items = [{"type": "reasoning", "id": "rs_1", "encrypted_content": sealed}, follower]
        refused = asked(*items)
        assert (refused is None) == taken
    assert refused.code == "invalid_encrypted_content"


def test_a_compaction_trigger_comes_last():
    trigger = {"type": "compaction_trigger"}
    assert asked({"type": "message"}, trigger) is None
    assert asked(trigger, {"type": "message"}).rule == "trigger-not-last"


def test_the_provider_takes_its_own_word():
    assert announced({}, [output("program_output"), call()]) == {("function_call", "call_1"): 1}


@st.composite
def whole_histories(draw):
    """Calls of any family, each with its output somewhere after it."""
    items = []
    for place in range(draw(st.integers(1, 6))):
        made, answer = draw(st.sampled_from(FAMILIES))
        # Half of them share a key: it is used again only after it was answered.
        key = f"call_{place}"
        items.insert(draw(st.integers(0, len(items))), call(made, key))
        at = next(i for i, item in enumerate(items) if key in item.values())
        items.insert(draw(st.integers(at + 1, len(items))), output(answer, key))
    return items


@given(whole_histories(), st.data())
def test_a_whole_history_is_taken_and_no_item_can_be_missing(items, data):
    assert asked(*items) is None
    gone = data.draw(st.integers(0, len(items) - 1))
    refused = asked(*(item for place, item in enumerate(items) if place != gone))
    assert refused is not None
    missing_output = items[gone]["type"] in OUTPUTS
    assert refused.rule == ("call-without-output" if missing_output else "output-without-call")
    keys = {str(value) for value in items[gone].values()}
    assert any(key in refused.message for key in keys if key.startswith("call_"))


@given(whole_histories(), st.data())
def test_a_history_may_come_in_any_number_of_turns(items, data):
    cut = data.draw(st.integers(0, len(items)))
    whole = enter(enter(Context(), *items[:cut]), *items[cut:])
    assert not whole.open
    assert list(whole) == items
