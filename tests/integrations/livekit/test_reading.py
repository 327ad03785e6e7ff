"""Items are read once, and what was changed in place is read again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from livekit.agents import llm

from lockstitch.integrations.livekit.contexts import says_nothing
from lockstitch.integrations.livekit.reading import Reader
from lockstitch.integrations.livekit.translating import said_by
from tests.generated import examples
from tests.integrations.livekit.scenes import talk


def item(number):
    name = f"i{number}"
    if number % 3 == 0:
        return llm.FunctionCall(id=name, call_id=f"c{number}", name="look", arguments="{}")
    if number % 3 == 1:
        return llm.FunctionCallOutput(id=name, call_id=f"c{number}", output="so", is_error=False)
    return llm.ChatMessage(id=name, role="user", content=["Hi."])


def change(one, words):
    """In place, in every way that a field can be changed."""
    if one.type == "function_call":
        one.arguments = words
    elif one.type == "function_call_output":
        one.output = words
    elif words and one.content:
        one.content[0] = words
    else:
        one.content = [words] if words else []


CHANGES = st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["", "a", "b"])), max_size=4)
CONTEXTS = st.lists(st.tuples(st.lists(st.integers(0, 150), unique=True), CHANGES), max_size=5)


@given(CONTEXTS)
@settings(max_examples=examples(100), deadline=None)
def test_a_reading_is_what_the_item_says_now(contexts):
    items = [item(number) for number in range(151)]
    reader = Reader()
    before = []
    for chosen, changes in contexts:
        context = [items[number] for number in chosen]
        for at, words in changes:
            change(items[at % len(items)], words)
        readings = reader.read(context)
        assert [one.item for one in readings] == context
        assert all(one.item is other for one, other in zip(readings, context, strict=True))
        assert [one.said for one in readings] == [said_by(one) for one in context]
        assert [one.silent for one in readings] == [says_nothing(one) for one in context]
        assert [one.name for one in readings] == [one.id for one in context]
        first, end = reader.ends_in_common(before, readings)
        assert before[:first] == readings[:first]
        assert before[len(before) - end :] == readings[len(readings) - end :]
        assert first + end <= min(len(before), len(readings))
        before = readings


def test_an_item_that_is_as_it_was_is_not_read_again():
    items = talk("Hi.", "Hi!", "So?").items
    reader = Reader()
    first, _, last = reader.read(items)
    assert reader.read([items[0], items[2]]) == [first, last]
    items[0].content[:] = ["Ho."]
    again, same = reader.read([items[0], items[2]])
    assert (again.said, same) == (("message", "user", "Ho."), last)


def test_another_object_of_the_same_words_has_a_reading_of_its_own():
    (one,) = talk("Hi.").items
    copy = one.model_copy(deep=True)
    reader = Reader()
    (before,) = reader.read([one])
    (after,) = reader.read([copy])
    assert before is not after
    assert after.item is copy
