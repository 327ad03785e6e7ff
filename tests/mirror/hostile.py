"""Server events with anything in any field: few ids, so that they are often about the same item."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.generated import anything
from tests.mirror.provider import call, message, output, speech

_ids = st.sampled_from(["a", "b", "c"])
_strange = st.one_of(anything, st.just({"type": []}), st.just([{"type": {}}, "x"]))
_whole = st.sampled_from(
    [
        message("a", "a"),
        call("b", "c1"),
        call("b", "c1", status="in_progress"),
        output("c", "c1"),
        speech("a"),
    ]
)
_names = st.sampled_from(["id", "type", "role", "status", "content", "call_id", "output", "name"])
_items = st.builds(
    lambda item, strange: item | strange, _whole, st.dictionaries(_names, _strange, max_size=2)
)
_responses = st.fixed_dictionaries(
    {"id": st.one_of(_ids, _strange)},
    optional={"output": st.one_of(_strange, st.lists(_items, max_size=2))},
)
_errors = st.fixed_dictionaries({}, optional={"code": _strange, "event_id": _strange})


def _field(meant):
    return st.one_of(meant, meant, _strange)


def hostile_events(types):
    """Events of these types, most of whose fields are what they should be."""
    return st.fixed_dictionaries(
        {"type": st.one_of(*[st.sampled_from(sorted(types))] * 4, _strange)},
        optional={
            "item": _field(_items),
            "item_id": _field(_ids),
            "previous_item_id": _field(_ids),
            "response": _field(_responses),
            "response_id": _field(_ids),
            "content_index": _field(st.just(0)),
            "transcript": _field(st.just("words")),
            "error": _field(_errors),
        },
    )
