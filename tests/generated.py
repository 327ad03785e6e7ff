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


tools = st.sampled_from(["f", "g"])
maybe_keys = st.one_of(st.none(), st.sampled_from(["call_a", "call_b", "f"]))


@st.composite
def gemini_parts(draw, kinds):
    kind = draw(st.sampled_from(kinds))
    if kind == "text":
        return {"text": "hm"}
    if kind == "thought":
        return {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}
    body = _clean({"id": draw(maybe_keys), "name": draw(tools)})
    if kind in ("functionCall", "function_call"):
        return {kind: {**body, "args": {}}}
    if kind in ("functionResponse", "function_response"):
        return {kind: {**body, "response": {"output": draw(texts)}}}
    body = _clean({"id": draw(maybe_keys), "toolType": "URL_CONTEXT"})
    return {kind: {**body, **({"args": {}} if kind == "toolCall" else {"response": {}})}}


@st.composite
def gemini_contents(draw):
    if draw(st.booleans()):
        kinds = ["functionCall"] * 3 + ["function_call", "toolCall", "toolResponse", "text"]
        parts = draw(st.lists(gemini_parts([*kinds, "thought"]), min_size=1, max_size=4))
        return {"role": "model", "parts": parts}
    kinds = ["functionResponse"] * 3 + ["function_response", "text", "toolResponse"]
    parts = draw(st.lists(gemini_parts(kinds), min_size=1, max_size=4))
    role = draw(st.sampled_from(["user", "user", "function", None]))
    return _clean({"role": role, "parts": parts})


@st.composite
def bedrock_messages(draw):
    role = draw(st.sampled_from(["user", "assistant"]))

    def call(key, kind):
        return {"toolUse": _clean({"toolUseId": key, "name": "t", "input": {}, "type": kind})}

    def result(key, text, status, kind):
        content = [{"text": text}]
        held = {"toolUseId": key, "content": content, "status": status, "type": kind}
        return {"toolResult": _clean(held)}

    results = st.builds(
        result,
        keys,
        texts,
        st.sampled_from([None, "success", "error"]),
        st.sampled_from([None, None, "grounding_result"]),
    )
    calls = st.builds(call, keys, st.sampled_from([None, None, "server_tool_use"]))
    plain = st.sampled_from(
        [{"text": "hm"}, {"cachePoint": {"type": "default"}}]
        if role == "user"
        else [{"text": "hm"}, {"reasoningContent": {"reasoningText": {"text": "…"}}}]
    )
    block = st.one_of(results, plain) if role == "user" else st.one_of(calls, calls, results, plain)
    return {"role": role, "content": draw(st.lists(block, min_size=1, max_size=3))}


@st.composite
def pi_messages(draw):
    kind = draw(st.integers(0, 6))
    if kind <= 2:
        parts = [{"type": "text", "text": "hm"}, {"type": "thinking", "thinking": "hm"}]
        parts = draw(st.lists(st.sampled_from(parts), max_size=2))
        for key in draw(st.lists(keys, max_size=3)):
            parts.append({"type": "toolCall", "id": key, "name": "t", "arguments": {}})
        stop = draw(st.sampled_from(["stop", "toolUse", "toolUse", "length", "aborted", "error"]))
        return {"role": "assistant", "content": parts, "stopReason": stop, "timestamp": 1}
    if kind <= 4:
        content = draw(st.sampled_from(["ok", "No result provided", "it was 21 degrees", ""]))
        return {
            "role": "toolResult",
            "toolCallId": draw(keys),
            "toolName": "t",
            "content": [{"type": "text", "text": content}],
            "isError": draw(st.booleans()),
        }
    if kind == 5:
        role = draw(st.sampled_from(["custom", "bashExecution", "branchSummary"]))
        hidden = draw(st.booleans())
        return {"role": role, "customType": "x", "content": "hm", "excludeFromContext": hidden}
    return {"role": "user", "content": "hm", "timestamp": 2}


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


@st.composite
def pydantic_ai_messages(draw):
    named = {"tool_name": st.just("t"), "tool_call_id": keys}
    if draw(st.booleans()):
        parts = st.one_of(
            st.fixed_dictionaries({"part_kind": st.just("tool-call"), **named}),
            st.fixed_dictionaries({"part_kind": st.just("builtin-tool-call"), **named}),
            st.fixed_dictionaries(
                {"part_kind": st.just("builtin-tool-return"), **named, "content": texts}
            ),
            st.just({"part_kind": "text", "content": "hm"}),
            st.just({"part_kind": "thinking", "content": "…", "signature": "s"}),
        )
        return {"kind": "response", "parts": draw(st.lists(parts, max_size=4))}
    parts = st.one_of(
        st.fixed_dictionaries({"part_kind": st.just("tool-return"), **named, "content": texts}),
        st.fixed_dictionaries({"part_kind": st.just("retry-prompt"), **named, "content": texts}),
        st.just({"part_kind": "user-prompt", "content": "hm"}),
        st.just({"part_kind": "model-settings-delta", "settings": {}}),
    )
    return {"kind": "request", "parts": draw(st.lists(parts, max_size=4))}


@st.composite
def langchain_messages(draw):
    """LangChain messages in each shape, with calls and results wherever a message may have them."""
    kind = draw(st.integers(0, 6))
    if kind <= 2:
        wire = draw(_langchain_ai())
    elif kind <= 4:
        wire = {"type": "tool", "content": draw(texts), "tool_call_id": draw(keys), "id": None}
    elif kind == 5:
        blocks = st.one_of(
            st.just({"type": "text", "text": "hm"}),
            st.builds(
                lambda key, text: {"type": "tool_result", "tool_use_id": key, "content": text},
                keys,
                texts,
            ),
        )
        wire = {"type": "human", "content": draw(st.lists(blocks, min_size=1, max_size=2))}
    else:
        wire = {"type": draw(st.sampled_from(["human", "system"])), "content": "hm"}
    shape = draw(st.integers(0, 2))
    if shape == 0:
        return wire
    if shape == 1:
        return {"type": wire["type"], "data": wire}
    names = {"ai": "AIMessage", "tool": "ToolMessage", "human": "HumanMessage"}
    path = ["langchain", "schema", "messages", names.get(wire["type"], "SystemMessage")]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": wire}


@st.composite
def _langchain_ai(draw):
    calls = [{"name": "t", "args": {}, "id": key} for key in draw(st.lists(keys, max_size=2))]
    invalid = [{"name": "t", "args": "}", "id": key} for key in draw(st.lists(keys, max_size=1))]
    block = st.one_of(
        st.just({"type": "text", "text": "hm"}),
        st.builds(lambda key: {"type": "tool_use", "id": key, "name": "t", "input": {}}, keys),
        st.builds(lambda key: {"type": "tool_call", "id": key, "name": "t", "args": {}}, keys),
        st.builds(
            lambda key: {"type": "server_tool_call", "id": key, "name": "web_search", "args": {}},
            keys,
        ),
        st.builds(
            lambda key, text: {"type": "server_tool_result", "tool_call_id": key, "output": text},
            keys,
            texts,
        ),
        st.builds(
            lambda key, text: {"type": "tool_result", "tool_use_id": key, "content": text},
            keys,
            texts,
        ),
    )
    content = draw(st.one_of(st.just("hm"), st.just(""), st.lists(block, max_size=3)))
    raw = [
        {"id": key, "type": "function", "function": {"name": "t", "arguments": "{}"}}
        for key in draw(st.lists(keys, max_size=2))
    ]
    return {
        "type": "ai",
        "content": content,
        "additional_kwargs": {"tool_calls": raw} if raw else {},
        "tool_calls": calls,
        "invalid_tool_calls": invalid,
    }


@st.composite
def opencode_messages(draw):
    status = st.sampled_from(["pending", "running", "completed", "error"])
    part = st.one_of(
        st.builds(
            lambda key, status, text: {
                "type": "tool",
                "tool": "t",
                "callID": key,
                "state": {
                    "status": status,
                    "raw": "{}",
                    "input": {},
                    "output": text,
                    "error": text,
                    "time": {"start": 1},
                },
            },
            keys,
            status,
            texts,
        ),
        st.just({"type": "step-start"}),
        st.just({"type": "text", "text": "hm"}),
    )
    if draw(st.booleans()):
        return {"info": {"role": "user"}, "parts": [{"type": "text", "text": "hm"}]}
    return {"info": {"role": "assistant"}, "parts": draw(st.lists(part, max_size=4))}


HISTORIES = {
    "responses": st.lists(responses_items(), max_size=14).map(_begun),
    "realtime": st.lists(responses_items(families.REALTIME_FAMILIES), max_size=14).map(_begun),
    "chat": st.lists(chat_messages(), max_size=10),
    "messages": st.lists(anthropic_messages(), max_size=8),
    "pydantic-ai": st.lists(pydantic_ai_messages(), max_size=8),
    "gemini": st.lists(gemini_contents(), max_size=8),
    "bedrock": st.lists(bedrock_messages(), max_size=8),
    "langchain": st.lists(langchain_messages(), max_size=8),
    "pi": st.lists(pi_messages(), max_size=10),
    "opencode": st.lists(opencode_messages(), max_size=8),
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
        [
            *("type", "role", "id", "call_id", "content", "tool_calls", "output", "name"),
            *("object", "parts"),
        ]
    ),
    st.one_of(
        anything,
        st.sampled_from([family.call_type for family in families.ALL_FAMILIES]),
        st.sampled_from(["assistant", "tool", "user", "message", "reasoning"]),
    ),
    max_size=6,
)
