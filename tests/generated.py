"""Hypothesis strategies: histories in every dialect, whole and broken.

Few keys and few ids, so that every kind of collision happens often."""

from __future__ import annotations

import os

from hypothesis import strategies as st

from lockstitch.core import families


def examples(count: int) -> int:
    """How many examples a property gets; THOROUGH=20 tries twenty times as many."""
    return count * int(os.environ.get("THOROUGH", "1"))


KEYS = ["call_a", "call_b", "call_c"]
IDS = ["item_1", "item_2", "item_3", "item_4"]

keys = st.sampled_from(KEYS)
ids = st.one_of(st.none(), st.sampled_from(IDS))
texts = st.sampled_from(["ok", "aborted", "it was 21 degrees", ""])


def _clean(wire: dict) -> dict:
    return {name: value for name, value in wire.items() if value is not None}


@st.composite
def responses_items(draw, of=families.RESPONSES_FAMILIES):
    family = draw(st.sampled_from(of))
    kind = draw(st.integers(0, 11))
    if kind <= 3:
        call = {"type": family.call_type, "call_id": draw(keys), "name": "t", "id": draw(ids)}
        if family is families.MCP_APPROVAL:
            call = {"type": family.call_type, "id": draw(keys), "name": "t"}
        if family is families.LOCAL_SHELL:
            call["id"] = draw(st.sampled_from([*KEYS, "lsh_1", None]))
        if family is families.TOOL_SEARCH:
            call["call_id"] = draw(st.one_of(st.none(), keys))
            call["execution"] = draw(st.sampled_from([None, "server", "client"]))
        return _clean(call)
    if kind <= 7:
        output = {
            "type": family.output_type,
            "call_id": draw(keys),
            "id": draw(ids),
            "output": draw(texts),
        }
        if family is families.MCP_APPROVAL:
            output = {"type": family.output_type, "approval_request_id": draw(keys)}
        if family is families.LOCAL_SHELL:
            output = {"type": family.output_type, "id": draw(keys), "output": draw(texts)}
        if family in (families.TOOL_SEARCH, families.FUNCTION):
            output["call_id"] = draw(st.one_of(st.none(), keys))
        return _clean(output)
    if kind == 8:
        return _clean({"type": "reasoning", "id": draw(ids), "summary": []})
    if kind == 9:
        return {"type": draw(st.sampled_from(["item_reference", "compaction", "a_new_type"]))}
    role = draw(st.sampled_from(["user", "assistant", "developer"]))
    return _clean({"type": "message", "role": role, "content": "hm", "id": draw(ids)})


@st.composite
def chat_messages(draw):
    kind = draw(st.integers(0, 5))
    if kind <= 1:
        made = draw(st.lists(keys, max_size=3))
        calls = [{"id": key, "type": "function", "function": {"name": "t"}} for key in made]
        return {"role": "assistant", "content": None, "tool_calls": calls}
    if kind <= 3:
        return {"role": "tool", "tool_call_id": draw(keys), "content": draw(texts)}
    return {"role": draw(st.sampled_from(["user", "system", "assistant"])), "content": "hm"}


@st.composite
def anthropic_messages(draw):
    role = draw(st.sampled_from(["user", "assistant"]))
    block = st.one_of(
        st.builds(lambda key: {"type": "tool_use", "id": key, "name": "t"}, keys),
        st.builds(lambda key: {"type": "server_tool_use", "id": key, "name": "web_search"}, keys),
        st.just({"type": "text", "text": "hm"}),
        st.just({"type": "thinking", "thinking": "…", "signature": "s"}),
    )
    if role == "user":
        block = st.one_of(
            st.builds(
                lambda key, text: {"type": "tool_result", "tool_use_id": key, "content": text},
                keys,
                texts,
            ),
            st.just({"type": "text", "text": "hm"}),
        )
    content = draw(st.one_of(st.just("hm"), st.lists(block, min_size=1, max_size=3)))
    return {"role": role, "content": content}


def _without(wire: dict, name: str) -> dict:
    return {key: value for key, value in wire.items() if key != name}


@st.composite
def vercel_messages(draw):
    key = draw(keys)
    role = draw(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]))
    text = st.just({"type": "text", "text": "hm"})
    said = {"type": "tool-result", "toolName": "t"}
    result = st.builds(
        lambda key, text: {**said, "toolCallId": key, "output": {"type": "text", "value": text}},
        keys,
        texts,
    )
    if role == "user":
        return {"role": role, "content": draw(st.one_of(st.just("hm"), st.lists(text)))}
    if role == "tool":
        old = st.builds(lambda key, text: {**said, "toolCallId": key, "result": text}, keys, texts)
        answer = st.builds(
            lambda key, yes: {"type": "tool-approval-response", "approvalId": key, "approved": yes},
            keys,
            st.booleans(),
        )
        return {"role": role, "content": draw(st.lists(result | old | answer, max_size=3))}
    call = {"type": "tool-call", "toolCallId": key, "toolName": "t", "input": {}}
    calls = [[call], [{**call, "providerExecuted": True}], [{**_without(call, "input"), "args": 1}]]
    calls.append([call, {"type": "tool-approval-request", "approvalId": draw(keys)}])
    calls[-1][1]["toolCallId"] = key
    parts = draw(st.lists(st.sampled_from(calls) | st.lists(result | text, max_size=1)))
    return {"role": role, "content": [part for some in parts for part in some]}


@st.composite
def vercel_ui_messages(draw):
    text = st.just({"type": "text", "text": "hm"})
    if draw(st.integers(0, 3)) == 0:
        return {"id": "m", "role": "user", "parts": [draw(text)]}
    approval = {"id": draw(keys), "approved": draw(st.booleans())}
    endings = [
        {"state": "input-available"},
        {"state": "output-available", "output": draw(texts)},
        {"state": "output-error", "errorText": draw(texts)},
        {"state": "approval-requested", "approval": {"id": draw(keys)}},
        {"state": "approval-responded", "approval": approval},
    ]
    part = st.builds(
        lambda key, ending, more: {
            "type": "tool-t",
            "toolCallId": key,
            "input": {},
            **ending,
            **more,
        },
        keys,
        st.sampled_from(endings),
        st.sampled_from([{}, {}, {"providerExecuted": True}]),
    )
    parts = st.one_of(part, part, text, st.just({"type": "step-start"}))
    return {
        "id": "m",
        "role": "assistant",
        "parts": draw(st.lists(parts, min_size=1, max_size=4)),
    }


def _begun(items):
    """A history that begins with the user: one of foreign items alone is refused, not judged."""
    return [{"type": "message", "role": "user", "content": "hm"}, *items] if items else []


HISTORIES = {
    "responses": st.lists(responses_items(), max_size=14).map(_begun),
    "realtime": st.lists(responses_items(families.REALTIME_FAMILIES), max_size=14).map(_begun),
    "chat": st.lists(chat_messages(), max_size=10),
    "messages": st.lists(anthropic_messages(), max_size=8),
    "vercel": st.lists(vercel_messages(), max_size=8),
    "vercel-ui": st.lists(vercel_ui_messages(), max_size=5),
}
dialects_and_histories = st.sampled_from(sorted(HISTORIES)).flatmap(
    lambda name: st.tuples(st.just(name), HISTORIES[name])
)

_scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.sampled_from(["", "x", "é"]))
anything = st.one_of(
    _scalars,
    st.lists(_scalars, max_size=2),
    st.dictionaries(st.sampled_from(["type", "id", "name", "text"]), _scalars, max_size=2),
    st.lists(
        st.dictionaries(
            st.sampled_from(["type", "id", "name", "tool_use_id", "function"]),
            st.one_of(_scalars, st.sampled_from(["tool_use", "tool_result"])),
            max_size=3,
        ),
        max_size=2,
    ),
)

hostile_items = st.dictionaries(
    st.sampled_from(
        ["type", "role", "id", "call_id", "content", "tool_calls", "output", "name", "object"]
    ),
    st.one_of(
        anything,
        st.sampled_from([family.call_type for family in families.ALL_FAMILIES]),
        st.sampled_from(["assistant", "tool", "user", "message", "reasoning"]),
    ),
    max_size=6,
)
