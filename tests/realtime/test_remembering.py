"""What is written down of a context, and read again: the same, whatever happened to it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.facts import By, ItemAdded, Noted
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import call_settled, call_settled_honestly
from lockstitch.mirror import Create
from lockstitch.realtime.origins import Origins
from lockstitch.realtime.remembering import Memory
from tests.generated import examples
from tests.realtime.hearing import assistant, function_call, function_output, user


class Provider:
    """A context to which things happen, and a memory that is told of them."""

    def __init__(self):
        self.ledger = Ledger("realtime")
        self.memory = Memory(self.ledger)
        self.now = []
        self.spoken = set()
        self.origins = Origins()
        self._shown = set()
        self._made = 0

    def new(self):
        self._made += 1
        return f"i{self._made}"

    def tell(self):
        """The memory hears what is there now; what it has afterwards is the same."""
        ids = {wire["id"] for wire in self.now}
        gone, self._shown = self._shown - ids, ids
        facts = self.memory.news(self.now, self.origins, gone)
        self.origins.written(self.now)
        self.ledger.extend(facts)
        self.memory.catch_up()
        return facts

    def speak(self, id):
        """The model tells of this item."""
        self.spoken.add(id)
        self.origins.speaks(id)

    def create(self, id, *, copy=False):
        """The client creates this item."""
        how = {"previous_item_id": None, "copy_of": "another" if copy else None}
        self.origins.creates([Create(event_id=f"e_{id}", item={"id": id}, **how)])

    def settle(self, wire):
        """A tool of ours has run; its output stands behind its call."""
        call = self.ledger.calls[self._seq(wire), 0]
        self.ledger.append(call_settled(self.ledger, call, f"output of {wire['id']}"))
        self.now.insert(self.now.index(wire) + 1, self.memory.output_of(call))

    def _seq(self, wire):
        return self.ledger.entries_with_id(wire["id"])[0]

    def open_calls(self):
        unsettled = {call.seq for call in self.memory.unsettled()}
        known = [w for w in self.now if w["id"] in self.memory]
        return [w for w in known if w["id"] in self.spoken and self._seq(w) in unsettled]

    def expected(self):
        """What a new session is to be filled with."""
        return [
            wire
            for wire in self.now
            if wire.get("status") != "in_progress"
            and (wire["type"] != "function_call" or wire.get("status") != "incomplete")
        ]


STATUSES = ("completed", "in_progress", "incomplete")


@st.composite
def histories(draw):
    """Steps that happen to a context, each with where."""
    steps = ("say", "ask", "call", "create", "pair", "delete", "finish", "words", "settle", "move")
    one = st.tuples(st.sampled_from(steps), st.integers(0, 30), st.sampled_from(STATUSES))
    return draw(st.lists(one, max_size=25))


def happen(provider, step, number, status):
    now, at = provider.now, number % (len(provider.now) + 1)
    while 0 < at < len(now) and now[at]["type"] == "function_call_output":
        at += 1  # nothing comes between a call and its output here
    there = now[number % len(now)] if now else None
    new = provider.new()
    match step:
        case "say":
            now.insert(at, assistant(f"said {new}", new) | {"status": status})
            provider.speak(new)
        case "ask":
            speech = {"type": "input_audio", "transcript": None}
            now.insert(at, user("", new) | {"content": [speech], "status": "completed"})
        case "call":
            now.insert(at, function_call(new, f"c_{new}") | {"status": status})
            provider.speak(new)
        case "create":
            now.insert(at, user(f"created {new}", new))
            provider.create(new, copy=number % 2 == 0)
        case "pair":
            other = provider.new()
            now[at:at] = [function_call(new, f"c_{new}"), function_output(other, f"c_{new}")]
            provider.create(new, copy=True)
            provider.create(other, copy=True)
        case "settle":
            for wire in provider.open_calls()[:1]:
                provider.settle(wire)
        case _ if there is not None:
            change(provider, step, there, number)


def change(provider, step, there, number):
    now = provider.now
    match step:
        case "delete":
            key = there.get("call_id")
            now[:] = [w for w in now if w is not there and (key is None or w.get("call_id") != key)]
        case "finish" if there.get("status") == "in_progress":
            now[now.index(there)] = there | {"status": "completed"}
        case "words" if there.get("content", [{}])[0].get("type") == "input_audio":
            words = {"type": "input_audio", "transcript": f"words of {there['id']}"}
            now[now.index(there)] = there | {"content": [words]}
        case "move" if "call_id" not in there:
            now.remove(there)
            now.insert(0 if number % 2 else len(now), there)


DONE = "completed"


@given(histories(), st.booleans())
@settings(max_examples=examples(200), deadline=None)
# The last one moves to the head, and a new one stands behind it.
@example([*[("say", 0, DONE)] * 2, ("settle", 0, DONE), ("say", 0, DONE), ("move", 5, DONE)], False)
def test_what_is_read_again_is_what_was_there(steps, each):
    provider = Provider()
    for step in steps:
        happen(provider, *step)
        if each or step[0] == "settle":
            provider.tell()
    provider.tell()
    context = provider.memory.context()
    assert context == provider.expected()
    rebuilt = Memory(Ledger.rebuilt(provider.ledger.facts))
    assert rebuilt.context() == context
    assert [call.seq for call in rebuilt.unsettled()] == [
        call.seq for call in provider.memory.unsettled()
    ]
    assert provider.tell() == []


@given(histories())
@settings(max_examples=examples(100), deadline=None)
def test_a_context_is_whole_but_for_the_calls_that_wait(steps):
    provider = Provider()
    for step in steps:
        happen(provider, *step)
        provider.tell()
    for wire in provider.open_calls():
        provider.settle(wire)
    provider.tell()
    for call in provider.memory.forsaken():
        provider.ledger.append(call_settled_honestly(provider.ledger, call))
    assert lockstitch.check(provider.memory.context(), dialect="realtime") == []
    assert lockstitch.check(provider.memory.history(), dialect="realtime") == []


def test_what_comes_at_the_end_needs_no_note():
    provider = Provider()
    provider.now += [user("a", "a"), assistant("b", "b")]
    facts = provider.tell()
    assert [(type(fact), fact.by) for fact in facts] == [
        (ItemAdded, By.USER),
        (ItemAdded, By.MODEL),
    ]


def test_a_call_is_the_models_only_if_a_response_has_said_it():
    provider = Provider()
    provider.now.append(function_call("f", "c1"))
    assert provider.tell() == []
    provider.speak("f")
    provider.tell()
    assert [call.item.key for call in provider.memory.unsettled()] == ["c1"]


def test_the_copy_of_a_call_is_never_one_to_be_run():
    provider = Provider()
    provider.now.append(function_call("f", "c1"))
    provider.speak("f")
    provider.tell()
    provider.settle(provider.now[0])
    provider.tell()
    # Moved: made again under other ids, and the first ones deleted.
    provider.now[:] = [function_call("f2", "c1"), function_output("o2", "c1")]
    provider.create("f2", copy=True)
    provider.create("o2", copy=True)
    provider.tell()
    assert provider.memory.unsettled() == []
    assert [wire["id"] for wire in provider.memory.context()] == ["f2", "o2"]


def test_notes_of_others_are_left_alone():
    ledger = Ledger("realtime")
    ledger.append(Noted(kind="somebody's", note=b"not ours"))
    assert Memory(ledger).context() == []
