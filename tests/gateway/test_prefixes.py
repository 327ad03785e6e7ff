"""A history that was sent in full is found to go on from a response, and never from a wrong one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.dialects.likeness import likeness
from lockstitch.gateway.keeping.prefixes import Prefixes, Running
from tests.gateway.building import call, message, output, user
from tests.generated import examples

# Few of them, so that equal items are common.
ITEMS = [
    user("a"),
    user("b"),
    message("fine", "msg_1"),
    message("fine", "msg_2"),
    message("well", "msg_3"),
    call("call_1"),
    call("call_1", arguments='{"x":1}'),
    output("call_1"),
    output("call_1", "other"),
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"},
    {"type": "reasoning", "id": "rs_2", "summary": []},
    {"type": "item_reference", "id": "msg_1"},
    {"type": "compaction", "encrypted_content": "c"},
]
items = st.lists(st.sampled_from(ITEMS), max_size=4)


def alike(history):
    return [likeness(item) for item in history if item.get("type") != "reasoning"]


@settings(max_examples=examples(50))
@given(st.data())
def test_what_the_base_holds_and_what_is_kept_are_what_the_client_sent(data):
    prefixes = Prefixes()
    contexts: dict[str, list] = {}
    for n in range(data.draw(st.integers(1, 7))):
        # A client goes on from something, as it was or edited, or begins anew.
        sent = list(data.draw(st.sampled_from([[], *contexts.values()])))
        for _ in range(data.draw(st.integers(0, 2))):
            if not sent:
                break
            at = data.draw(st.integers(0, len(sent) - 1))
            edit = data.draw(st.sampled_from(["drop", "change", "repeat", "swap"]))
            if edit == "drop":
                del sent[at]
            elif edit == "change":
                sent[at] = data.draw(st.sampled_from(ITEMS))
            elif edit == "repeat":
                sent.insert(at, sent[at])
            else:
                sent[at], sent[-1] = sent[-1], sent[at]
        sent += data.draw(items)
        base, at, state = prefixes.find("t", sent)
        behind = contexts[base] if base is not None else []
        assert alike([*behind, *sent[at:]]) == alike(sent)
        assert 0 <= at <= len(sent)
        # What another tenant sends goes on from nothing of it.
        assert prefixes.find("other", sent)[0] is None
        said = data.draw(items)
        if state:
            prefixes.remember("t", f"resp_{n}", Running(state).add_all(said))
            contexts[f"resp_{n}"] = [*behind, *sent[at:], *said]


@settings(max_examples=examples(50))
@given(items.filter(alike), items, items)
def test_a_history_that_goes_on_is_found_to_do_so(sent, said, more):
    prefixes = Prefixes()
    _, _, state = prefixes.find("t", sent)
    prefixes.remember("t", "resp_1", Running(state).add_all(said))
    found, at, _ = prefixes.find("t", [*sent, *said, *more])
    assert found == "resp_1"
    assert at >= len(sent) + len([item for item in said if item.get("type") != "reasoning"]) - 1


def test_a_client_that_drops_reasoning_and_ids_is_found_all_the_same():
    prefixes = Prefixes()
    _, _, state = prefixes.find("t", [user("a")])
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    prefixes.remember("t", "resp_1", Running(state).add_all([thought, message("x", "msg_1")]))
    assert prefixes.find("t", [user("a"), message("x", None), user("b")])[:2] == ("resp_1", 2)
    assert prefixes.find("t", [user("a"), thought, message("x", None)])[:2] == ("resp_1", 3)


def test_the_anchored_and_the_full_way_meet():
    """A client that named the response, and one that sends everything, leave the same digest."""
    prefixes = Prefixes()
    _, _, state = prefixes.find("t", [user("a")])
    prefixes.remember("t", "resp_1", Running(state).add_all([message()]))
    behind = Running(prefixes.state("t", "resp_1"))
    behind.add_all([user("b")])
    assert behind.state == prefixes.find("t", [user("a"), message(), user("b")])[2]


def test_what_was_forgotten_is_not_found():
    prefixes = Prefixes()
    _, _, state = prefixes.find("t", [user("a")])
    prefixes.remember("t", "resp_1", state)
    prefixes.forget("t", "resp_1")
    prefixes.forget("t", "resp_2")
    assert prefixes.find("t", [user("a"), user("b")])[0] is None
    assert prefixes.state("t", "resp_1") is None


def test_a_newer_response_with_the_same_context_stays_when_the_older_is_forgotten():
    prefixes = Prefixes()
    _, _, state = prefixes.find("t", [user("a")])
    prefixes.remember("t", "resp_1", state)
    prefixes.remember("t", "resp_2", state)
    prefixes.forget("t", "resp_1")
    assert prefixes.find("t", [user("a")])[0] == "resp_2"


def test_only_so_many_are_remembered():
    prefixes = Prefixes(most=3)
    for n in range(10):
        prefixes.remember("t", f"resp_{n}", bytes([n]))
    assert len(prefixes._of("t").responses) == len(prefixes._of("t").states) == 3
    assert prefixes.state("t", "resp_9") == bytes([9])
    assert prefixes.state("t", "resp_0") is None


def test_what_is_used_is_not_what_is_forgotten_first():
    """A conversation that goes on for long must not lose its base to those that ended."""
    prefixes = Prefixes(most=3)
    _, _, state = prefixes.find("t", [user("a")])
    prefixes.remember("t", "resp_1", state)
    for n in range(2, 8):
        assert prefixes.find("t", [user("a"), user("b")])[0] == "resp_1"
        prefixes.remember("t", f"resp_{n}", bytes([n]))


def test_what_one_tenant_does_pushes_nothing_of_anothers_out():
    prefixes = Prefixes(most=3)
    _, _, state = prefixes.find("quiet", [user("a")])
    prefixes.remember("quiet", "resp_1", state)
    for n in range(10):
        prefixes.remember("loud", f"resp_{n}", bytes([n]))
    assert prefixes.find("quiet", [user("a"), user("b")])[:2] == ("resp_1", 1)
    assert prefixes.state("quiet", "resp_1") == state
