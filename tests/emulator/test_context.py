"""Contexts share their items and never change."""

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.responses.context import Context


def said(name):
    return {"type": "message", "id": name}


def test_a_context_that_was_extended_is_what_it_was():
    start = Context().extended([said("a")], {}, 1)
    longer = start.extended([said("b")], {}, 2)
    assert [item["id"] for item in start] == ["a"]
    assert [item["id"] for item in longer] == ["a", "b"]
    assert not start.has("b")
    assert longer.has("b")
    assert (start.tokens, longer.tokens) == (1, 3)


def test_two_who_extend_the_same_context_do_not_see_each_other():
    start = Context().extended([said("a")], {}, 0)
    left = start.extended([said("b")], {}, 0)
    right = start.extended([said("c")], {}, 0)
    assert [item["id"] for item in left] == ["a", "b"]
    assert [item["id"] for item in right] == ["a", "c"]
    assert not right.has("b")
    assert not left.has("c")


def test_a_borrowed_id_is_nobodys_own():
    context = Context().extended([{"type": "local_shell_call_output", "id": "call_1"}], {}, 0)
    assert not context.has("call_1")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=25))
def test_a_tree_of_contexts_is_a_tree_of_lists(steps):
    """Every node extends some earlier node; each must hold exactly the path to it."""
    contexts, paths = [Context()], [[]]
    for number, (parent, count) in enumerate(steps):
        parent = parent % len(contexts)  # noqa: PLW2901
        added = [said(f"{number}.{place}") for place in range(count)]
        contexts.append(contexts[parent].extended(added, {}, count))
        paths.append(paths[parent] + [item["id"] for item in added])
    for context, path in zip(contexts, paths, strict=True):
        assert [item["id"] for item in context] == path
        assert [item["id"] for item in context.backwards()] == path[::-1]
        assert [item["id"] for item in context.last(2)] == path[-2:]
        named = {name for other in paths for name in other}
        assert {name for name in named if context.has(name)} == set(path)
