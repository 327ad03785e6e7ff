"""A chain of exchanges, rebuilt: what a replay sends is what a strict provider held, or nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import families
from lockstitch.core.continuation import Replay, SettleFirst
from lockstitch.core.errors import IllegalFact, NotAnItem
from lockstitch.core.facts import AnyFact, Ending, ItemCompleted
from lockstitch.gateway.keeping.chains import Chain, ChainUnknown
from lockstitch.gateway.keeping.exchanges import begun, ended, kept, open_calls
from lockstitch.gateway.keeping.notes import AnsweredNote, AskedNote
from lockstitch.ledgers import Ledger
from tests.gateway.building import call, encoded, message, output, user
from tests.generated import examples


def facts_of(id, items, said, base=None, ending=Ending.COMPLETED, **note) -> list[AnyFact]:
    """The facts of one exchange as they are kept, proven by a ledger."""
    asked = AskedNote(upstream="up", base=base, **note)
    beginning = begun(asked, [encoded(item) for item in items], id)
    facts = list(beginning.facts)
    facts += [ItemCompleted(request=beginning.request, item=encoded(item)) for item in said]
    if ending is not None:
        facts += ended(beginning.request, ending, AnsweredNote())
    ledger = Ledger("responses")
    for fact in facts:
        ledger.append(fact)
    return [ledger.fact(seq) for seq in range(1, len(ledger) + 1)]


def exchange(*args, **more):
    return kept(facts_of(*args, **more))


# --- every family of pairs ---------------------------------------------------------------------

PAIRS = {
    "function": (
        lambda key: {"type": "function_call", "call_id": key, "name": "t", "arguments": "{}"},
        lambda key: {"type": "function_call_output", "call_id": key, "output": "ok"},
    ),
    "custom": (
        lambda key: {"type": "custom_tool_call", "call_id": key, "name": "t", "input": ""},
        lambda key: {"type": "custom_tool_call_output", "call_id": key, "output": "ok"},
    ),
    "shell": (
        lambda key: {"type": "shell_call", "call_id": key, "action": {"commands": ["ls"]}},
        lambda key: {"type": "shell_call_output", "call_id": key, "output": []},
    ),
    "local shell": (
        lambda key: {"type": "local_shell_call", "id": f"lsh_{key}", "call_id": key, "action": {}},
        lambda key: {"type": "local_shell_call_output", "id": key, "output": "ok"},
    ),
    "patch": (
        lambda key: {"type": "apply_patch_call", "call_id": key, "operation": {}},
        lambda key: {"type": "apply_patch_call_output", "call_id": key, "status": "completed"},
    ),
    "computer": (
        lambda key: {"type": "computer_call", "id": f"cu_{key}", "call_id": key, "action": {}},
        lambda key: {
            "type": "computer_call_output",
            "call_id": key,
            "output": {"type": "computer_screenshot", "image_url": "data:,"},
        },
    ),
    "approval": (
        lambda key: {"type": "mcp_approval_request", "id": key, "name": "t", "arguments": "{}"},
        lambda key: {
            "type": "mcp_approval_response",
            "approval_request_id": key,
            "approve": True,
        },
    ),
}


def test_the_pairs_are_pairs():
    known = {family.call_type for family in families.RESPONSES_FAMILIES}
    for make, answer in PAIRS.values():
        assert make("k")["type"] in known
        assert lockstitch.check([make("k"), answer("k")]) == []


class Model:
    """What a strict provider would hold for each response: written without any code of ours."""

    def __init__(self):
        self.contexts = {None: []}
        self.open = {None: []}
        self.exchanges = {}
        self.count = 0

    def say(self, parent, texts, made, ending, thinks):
        """One exchange behind ``parent``: outputs of what is open there, texts, and an answer."""
        self.count += 1
        name = f"resp_{self.count}"
        answers = [PAIRS[family][1](key) for family, key in self.open[parent]]
        items = [*answers, *(user(text) for text in texts)]
        calls = [(family, f"call_{self.count}_{n}") for n, family in enumerate(made)]
        said = [PAIRS[family][0](key) for family, key in calls]
        if not said:
            said = [message(f"said {self.count}", f"msg_{self.count}")]
        if thinks:
            thought = {"type": "reasoning", "id": f"rs_{self.count}", "summary": []}
            said.insert(0, {**thought, "encrypted_content": "e"})
        self.exchanges[name] = exchange(
            name, items, said, base=parent, ending=ending, anchored=parent is not None
        )
        self.contexts[name] = [*self.contexts[parent], *items, *said]
        self.open[name] = calls
        return name


exchanges = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.lists(st.sampled_from(["x", "y"]), max_size=2),
        st.lists(st.sampled_from(sorted(PAIRS)), max_size=3),
        st.sampled_from([Ending.COMPLETED] * 4 + [Ending.INCOMPLETE, Ending.FAILED, Ending.CUT]),
        st.booleans(),
    ),
    max_size=9,
)


def path_of(model, tip):
    path = []
    while tip is not None:
        path.append(model.exchanges[tip])
        tip = model.exchanges[tip].asked.base
    return path[::-1]


@settings(max_examples=examples(60))
@given(exchanges, st.data())
def test_a_replay_of_any_tip_of_any_tree_is_what_a_strict_provider_held(steps, data):
    model = Model()
    for at, texts, made, ending, thinks in steps:
        parents = [None, *model.exchanges]
        parent = parents[at % len(parents)]
        if parent is not None and not model.exchanges[parent].continues:
            parent = None
        asks = texts or ([] if model.open[parent] else ["hi"])
        model.say(parent, asks, made, ending, thinks)
    for tip, one in model.exchanges.items():
        if not one.continues:
            with pytest.raises(ChainUnknown):
                Chain.of(path_of(model, tip))
            continue
        chain = Chain.of(path_of(model, tip))
        assert chain.last == tip
        items = [PAIRS[family][1](key) for family, key in model.open[tip]]
        items.append(user("next"))
        chain.asked([encoded(item) for item in items])
        plan = chain.plan()
        assert isinstance(plan, Replay), plan
        sent = chain.items(plan)
        assert sent == [*model.contexts[tip], *items]
        assert lockstitch.check(sent) == []


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(sorted(PAIRS)), min_size=1, max_size=4), st.data())
def test_a_replay_without_the_outputs_of_open_calls_is_refused(made, data):
    model = Model()
    tip = model.say(None, ["x"], made, Ending.COMPLETED, thinks=False)
    outputs = [PAIRS[family][1](key) for family, key in model.open[tip]]
    given_ = data.draw(st.lists(st.sampled_from(outputs), unique_by=json.dumps))
    chain = Chain.of(path_of(model, tip))
    chain.asked([encoded(item) for item in [*given_, user("next")]])
    plan = chain.plan()
    if len(given_) == len(outputs):
        assert isinstance(plan, Replay)
    else:
        assert not isinstance(plan, Replay)


def test_an_output_of_a_call_that_is_nowhere_is_refused():
    chain = Chain.of([exchange("resp_1", [user()], [message()])])
    with_stranger = [encoded(output("call_nowhere"))]
    try:
        chain.asked(with_stranger)
        plan = chain.plan()
    except (IllegalFact, NotAnItem):
        return
    assert not isinstance(plan, Replay)


def test_an_output_given_twice_is_refused():
    chain = Chain.of([exchange("resp_1", [user()], [call()])])
    try:
        chain.asked([encoded(output()), encoded(output(text="again"))])
        plan = chain.plan()
    except (IllegalFact, NotAnItem):
        return
    assert not isinstance(plan, Replay)


def test_whoever_goes_on_without_a_word_sends_all_there_was():
    chain = Chain.of([exchange("resp_1", [user()], [message()])])
    chain.asked([])
    plan = chain.plan()
    assert isinstance(plan, Replay)
    assert chain.items(plan) == [user(), message()]


def test_whoever_goes_on_without_a_word_from_an_open_call_is_refused():
    chain = Chain.of([exchange("resp_1", [user()], [call()])])
    chain.asked([])
    assert isinstance(chain.plan(), SettleFirst)


def test_a_chain_whose_beginning_is_not_there_is_unknown():
    with pytest.raises(ChainUnknown, match="resp_0"):
        Chain.of([exchange("resp_1", [user()], [message()], base="resp_0")])


def test_exchanges_that_do_not_belong_together_are_no_chain():
    one = exchange("resp_1", [user()], [message()])
    other = exchange("resp_2", [user()], [message()], base="resp_9")
    with pytest.raises(ChainUnknown):
        Chain.of([one, other])


def test_what_was_said_in_a_conversation_is_not_rebuilt_without_it():
    one = exchange("resp_1", [user()], [message()], conversation="conv_1")
    with pytest.raises(ChainUnknown, match="conv_1"):
        Chain.of([one])


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CUT, None])
def test_nothing_goes_on_from_an_answer_that_did_not_end(ending):
    one = exchange("resp_1", [user()], [call()], ending=ending)
    assert not one.continues
    with pytest.raises(ChainUnknown):
        Chain.of([one])


def test_reasoning_that_is_only_a_name_stays_behind():
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    chain = Chain.of([exchange("resp_1", [user()], [bare, message()])])
    chain.asked([encoded(user("next"))])
    # And so does the id of what it led to, which would ask for it.
    sent = chain.items(chain.plan())
    assert sent == [user(), message(id=None), user("next")]


def test_a_call_that_broke_off_waits_for_nothing():
    """An answer that was cut short by its own limit: the half of a call asks for no output."""
    half = call("call_half", status="incomplete")
    one = exchange("resp_1", [user()], [half], ending=Ending.INCOMPLETE)
    assert open_calls(one.said) == []


def test_a_long_chain_is_rebuilt_in_time():
    path = []
    for n in range(1, 400):
        base = f"resp_{n - 1}" if n > 1 else None
        path.append(exchange(f"resp_{n}", [user(str(n))], [message(str(n), f"m{n}")], base=base))
    chain = Chain.of(path)
    chain.asked([encoded(user("on"))])
    assert len(chain.items(chain.plan())) == 399 * 2 + 1
