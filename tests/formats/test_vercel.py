"""The Vercel AI SDK: histories that are broken, and what the real SDK says of them.

Model messages are judged by `modelMessageSchema` and `generateText`, UI messages by
`validateUIMessages`, `convertToModelMessages` and `generateText`. Some broken histories the SDK
rejects; others it passes on to the provider as they are, or drops a call from them."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch import Evidence, Outcome
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.formats.vercel import (
    NEXT,
    SAID,
    STEP,
    TEXT,
    USER,
    answer,
    asked,
    assistant,
    call,
    part,
    request,
    response,
    result,
    tool,
)
from tests.generated import HISTORIES, anything, examples

BY_PROVIDER = {"providerExecuted": True}
V4_CALL = {"type": "tool-call", "toolCallId": "call_1", "toolName": "book", "args": {}}

FIELDS = ["type", "toolCallId", "toolName", "input", "args", "output", "result", "state"]
FIELDS += ["approval", "approvalId", "approved"]

BROKEN = {
    "an open call": ([USER, assistant(TEXT, call()), NEXT], ["LS001"]),
    "an open call at the end": ([USER, assistant(call())], ["LS001"]),
    "some of several calls": (
        [USER, assistant(call(), call("call_2")), tool(result("call_2")), NEXT],
        ["LS010"],
    ),
    "a call of version 4": ([USER, assistant(V4_CALL), NEXT], ["LS001"]),
    "a call that the provider did not finish": (
        [USER, assistant(call(**BY_PROVIDER)), NEXT],
        ["LS001"],
    ),
    "a result without a call": ([USER, tool(result()), NEXT], ["LS002"]),
    "a result with an empty id": ([USER, tool(result("")), NEXT], ["LS002"]),
    "a result with no id": (
        [USER, tool({name: v for name, v in result().items() if name != "toolCallId"}), NEXT],
        ["LS002"],
    ),
    "an answer to no request": ([USER, assistant(TEXT), tool(response())], ["LS002"]),
    "a request about no call": ([USER, assistant(request()), tool(response())], ["LS002", "LS002"]),
    "a result before its call": ([USER, tool(result()), assistant(call()), NEXT], ["LS003"]),
    "two results": ([USER, assistant(call()), tool(result(), result(text="x")), NEXT], ["LS004"]),
    "two calls with one id": (
        [USER, assistant(call(), call()), tool(result(), result(text="x")), NEXT],
        ["LS005"],
    ),
    "a result behind the next message": (
        [USER, assistant(call()), NEXT, tool(result()), NEXT],
        ["LS009"],
    ),
    "a result in the message of its call": ([USER, assistant(call(), result()), NEXT], ["LS009"]),
    "a result in a message of the user": (
        [USER, assistant(call()), {"role": "user", "content": [result()]}, NEXT],
        ["LS009"],
    ),
    "an answer to a request behind the next message": (
        [USER, assistant(call(), request()), NEXT, tool(response())],
        ["LS001", "LS009"],
    ),
    "an answer to a request behind the result": (
        [USER, assistant(call(), request()), tool(result()), tool(response())],
        ["LS009"],
    ),
    "an unanswered request": ([USER, assistant(call(), request()), NEXT], ["LS001", "LS013"]),
    "an unanswered request at the end": (
        [USER, assistant(call(), request())],
        ["LS001", "LS013"],
    ),
    "an unanswered request to run a provider's tool": (
        [USER, assistant(call(**BY_PROVIDER), request()), NEXT],
        ["LS001", "LS013"],
    ),
    "a call that was approved and not run": (
        [USER, assistant(call(), request()), tool(response()), NEXT],
        ["LS001"],
    ),
    "a call that was denied, and the model not told": (
        [USER, assistant(call(), request()), tool(response(approved=False)), NEXT],
        ["LS001"],
    ),
    "an approval that is no longer in the last message": (
        [
            USER,
            assistant(call(), call("call_2"), request()),
            tool(response()),
            tool(result("call_2")),
        ],
        ["LS010"],
    ),
    "a call that was cut off": (
        [USER, assistant(TEXT, call(input='{"flight": "SK')), NEXT],
        ["LS014"],
    ),
    "a call that was cut off, and its request": (
        [USER, assistant(call(input='{"fl'), request()), NEXT],
        ["LS014", "LS014"],
    ),
}
PASSED_ON = {
    "a call that the provider did not finish",
    "a result without a call",
    "an answer to a request behind the result",
    "two results",
    "two calls with one id",
    "a result with an empty id",
    "an unanswered request to run a provider's tool",
}
"""What the SDK lets through: the provider is left to reject it."""

UI_BROKEN = {
    "an open call": ([asked(), answer(STEP, SAID, part("input-available")), asked()], ["LS001"]),
    "an open call at the end": ([asked(), answer(part("input-available"))], ["LS001"]),
    "an open call of a dynamic tool": (
        [asked(), answer(part("input-available", type="dynamic-tool", toolName="book"))],
        ["LS001"],
    ),
    "some of several calls": (
        [asked(), answer(part("input-available"), part("output-available", "call_2")), asked()],
        ["LS010"],
    ),
    "a call that the provider did not finish": (
        [asked(), answer(part("input-available", **BY_PROVIDER)), asked()],
        ["LS001"],
    ),
    "two calls with one id": (
        [asked(), answer(part("output-available"), part("output-error")), asked()],
        ["LS005"],
    ),
    "an unanswered request": ([asked(), answer(part("approval-requested")), asked()], ["LS013"]),
    "an unanswered request at the end": ([asked(), answer(part("approval-requested"))], ["LS013"]),
    "a call that was approved and not run": (
        [asked(), answer(part("approval-responded")), asked()],
        ["LS001"],
    ),
    "a call that was approved and not run, and another step": (
        [asked(), answer(part("approval-responded"), STEP, SAID)],
        ["LS001"],
    ),
    "a call that was denied, and the model not told": (
        [
            asked(),
            answer(part("approval-responded", approval={"id": "a", "approved": False})),
            asked(),
        ],
        ["LS001"],
    ),
    "a call that was cut off": (
        [asked(), answer(SAID, part("input-streaming", input={"flight": "S"})), asked()],
        ["LS014"],
    ),
}
UI_PASSED_ON = {"two calls with one id", "a call that the provider did not finish"}

VALID = {
    "calls with their results": [
        USER,
        assistant(TEXT, call(), call("call_2")),
        tool(result("call_2")),
        tool(result()),
        assistant(TEXT),
        NEXT,
    ],
    "a result behind more of the assistant": [
        USER,
        assistant(call()),
        assistant(TEXT),
        tool(result()),
    ],
    "every kind of output": [
        USER,
        *(
            message
            for n, output in enumerate(
                [
                    {"type": "json", "value": {"a": 1}},
                    {"type": "error-text", "value": "no"},
                    {"type": "error-json", "value": [1]},
                    {"type": "execution-denied", "reason": "no"},
                    {"type": "content", "value": [{"type": "text", "text": "hm"}]},
                ]
            )
            for message in (
                assistant(call(f"call_{n}")),
                tool(result(f"call_{n}", output=output)),
            )
        ),
    ],
    "a call that was approved and run": [
        USER,
        assistant(call(), request()),
        tool(response()),
        tool(result()),
        assistant(TEXT),
    ],
    "a call that was approved just now": [USER, assistant(call(), request()), tool(response())],
    "a call that was denied just now": [
        USER,
        assistant(call(), request()),
        tool(response(approved=False)),
    ],
    "a request with the id of its call": [
        USER,
        assistant(call(), request("call_1")),
        tool(response("call_1"), result()),
        NEXT,
    ],
    "a provider's tool": [USER, assistant(call(**BY_PROVIDER), result(), TEXT), NEXT],
    "a provider's tool that finished later": [
        USER,
        assistant(call(**BY_PROVIDER), call("call_2")),
        tool(result("call_2")),
        assistant(result(), TEXT),
        NEXT,
    ],
    "a provider's tool that was denied": [
        USER,
        assistant(call(**BY_PROVIDER), request()),
        tool(response(approved=False, **BY_PROVIDER), result()),
        NEXT,
    ],
    "an id used again in a later turn": [
        USER,
        assistant(call()),
        tool(result()),
        NEXT,
        assistant(call()),
        tool(result()),
    ],
}
UI_VALID = {
    "calls with their results": [
        asked(),
        answer(STEP, SAID, part("output-available"), part("output-error", "call_2"), STEP, SAID),
        asked(),
    ],
    "a call that was approved just now": [asked(), answer(SAID, part("approval-responded"))],
    "a call that was denied just now": [
        asked(),
        answer(part("approval-responded", approval={"id": "a", "approved": False}), STEP),
    ],
    "a call that was denied": [asked(), answer(part("output-denied"), STEP, SAID), asked()],
    "a provider's tool": [
        asked(),
        answer(part("output-available", **BY_PROVIDER), SAID),
        asked(),
    ],
    "a result that is not final": [
        asked(),
        answer(part("output-available", preliminary=True)),
        asked(),
    ],
    "an id used again in a later step": [
        asked(),
        answer(part("output-available"), STEP, part("output-available")),
    ],
    "parts that hold no call": [
        asked(),
        answer(
            {"type": "data-tool-progress", "id": "d", "data": {"toolName": "book", "input": {}}},
            {"type": "source-url", "sourceId": "s", "url": "https://example.com"},
            {"type": "file", "mediaType": "text/plain", "url": "data:text/plain;base64,aGk="},
            SAID,
        ),
    ],
}


def named(table):
    return pytest.mark.parametrize("history", table.values(), ids=table.keys())


def named_with(table, what):
    rows = [(name, *row) for name, row in table.items()]
    return pytest.mark.parametrize(("name", "history", what), rows, ids=table.keys())


def codes(history):
    return [finding.code for finding in lockstitch.check(history)]


# --- broken and valid histories ------------------------------------------------------------------


@named_with({**BROKEN, **{f"UI: {name}": row for name, row in UI_BROKEN.items()}}, "expected")
def test_each_kind_of_broken_history_is_found_and_mended_once(name, history, expected):
    before = copy.deepcopy(history)
    assert codes(history) == expected
    mended = lockstitch.mend(history)
    assert history == before
    assert codes(mended) == []
    assert lockstitch.mend(mended).edits == []
    assert mended[0] is history[0]
    if history[-1]["role"] == "user":
        assert mended[-1] is history[-1]


@named({**VALID, **{f"UI: {name}": row for name, row in UI_VALID.items()}})
def test_a_valid_history_is_clean_and_stays_as_it_is(history):
    assert codes(history) == []
    mended = lockstitch.mend(history)
    assert all(one is item for one, item in zip(mended, history, strict=True))


@named_with(BROKEN, "expected")
def test_the_sdk_rejects_a_broken_history_or_sends_it_on_broken(judge, name, history, expected):
    verdict = judge.model(history)
    assert verdict.ok is (name in PASSED_ON)
    if name not in PASSED_ON:
        return
    if name == "two calls with one id":
        assert {part["toolCallId"] for part in verdict.parts("tool-call")} == {"call_1"}
        assert len(verdict.parts("tool-call")) == 2
    elif "provider" in name:
        assert len(verdict.parts("tool-call")) > len(verdict.parts("tool-result"))
    else:
        assert verdict.unpaired


@named_with(BROKEN, "expected")
def test_the_sdk_accepts_what_mending_writes(judge, name, history, expected):
    verdict = judge.model(_without_version_4(lockstitch.mend(history)))
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []
    assert verdict.executed == []


@named(VALID)
def test_the_sdk_accepts_what_is_clean(judge, history):
    verdict = judge.model(history)
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []


@named_with(UI_BROKEN, "expected")
def test_the_sdk_rejects_a_broken_ui_history_or_drops_or_sends_on_the_call(
    judge, name, history, expected
):
    verdict = judge.ui(history)
    if not verdict.ok:
        assert "MissingToolResults" in verdict.error
    elif name in UI_PASSED_ON:
        assert len(verdict.parts("tool-call")) == 2 or not verdict.parts("tool-result")
    elif judge.version == "ai-7" and "denied" in name:
        assert verdict.unpaired == []  # this version writes the denial itself
    else:
        assert "cut off" in name or (judge.version == "ai-7" and name == "an unanswered request")
        assert not verdict.parts("tool-call")  # the call that the user saw is gone


@named_with(UI_BROKEN, "expected")
def test_the_sdk_accepts_what_mending_writes_into_ui_messages(judge, name, history, expected):
    mended = lockstitch.mend(history)
    verdict = judge.ui(mended)
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []
    assert verdict.executed == []
    assert codes(judge.converted(mended)) == []


@named(UI_VALID)
def test_the_sdk_accepts_ui_messages_that_are_clean(judge, history):
    verdict = judge.ui(history)
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []
    assert codes(judge.converted(history)) == []


# --- whatever comes ------------------------------------------------------------------------------


@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(HISTORIES["vercel"])
def test_the_sdk_accepts_every_clean_history_and_every_mended_one(judge, history):
    history = [message for message in history if message["role"] != "tool" or message["content"]]
    history = _without_version_4(history)
    mended = lockstitch.mend([USER, *history], dialect="vercel")
    verdict = judge.model(mended)
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []


def _without_version_4(history):
    """The history with its old parts in the new form: only that is in the schema."""

    def new(part):
        renamed = dict(part)
        if "args" in part:
            renamed["input"] = renamed.pop("args")
        if "result" in part:
            renamed["output"] = {"type": "text", "value": renamed.pop("result")}
        return renamed

    return [
        message
        if isinstance(message["content"], str)
        else {**message, "content": [new(part) for part in message["content"]]}
        for message in history
    ]


def _with_own_approval_ids(history):
    """The history with an id of its own for each request: the SDK mixes up those that share one."""
    history = json.loads(json.dumps(history))
    requests = [one["approval"] for m in history for one in m["parts"] if "approval" in one]
    for n, approval in enumerate(requests):
        approval["id"] = f"approval_{n}"
    return history


@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(HISTORIES["vercel-ui"])
def test_the_sdk_accepts_all_ui_messages_that_are_mended(judge, history):
    mended = lockstitch.mend([asked(), *_with_own_approval_ids(history)], dialect="vercel-ui")
    verdict = judge.ui(mended)
    assert verdict.ok, verdict.error
    assert verdict.unpaired == []


@settings(max_examples=examples(500))
@given(
    st.sampled_from(["vercel", "vercel-ui"]),
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "tool", 7])},
            optional={
                name: st.lists(
                    st.dictionaries(
                        st.sampled_from(FIELDS),
                        anything
                        | st.sampled_from(["tool-call", "tool-result", "tool-approval-request"])
                        | st.sampled_from(["tool-approval-response", "tool-t", "output-error"])
                        | st.sampled_from(["approval-responded", "approval-requested"]),
                        max_size=6,
                    )
                    | anything,
                    max_size=3,
                )
                for name in ("content", "parts")
            },
        ),
        max_size=5,
    ),
)
def test_no_messages_make_check_or_mend_raise_anything_but_a_refusal(dialect, history):
    try:
        findings = lockstitch.check(history, dialect=dialect)
    except lockstitch.NotAHistory:
        return
    mended = lockstitch.mend(history, dialect=dialect)
    assert lockstitch.check(mended, dialect=dialect) == []
    assert bool(findings) is mended.changed


# --- what mending writes -------------------------------------------------------------------------


def test_a_missing_result_says_that_the_outcome_is_unknown_and_is_an_error():
    mended = lockstitch.mend([USER, assistant(TEXT, call()), assistant(TEXT), NEXT])
    assert mended[2]["role"] == "tool"
    (written,) = mended[2]["content"]
    assert written["output"]["type"] == "error-text"
    assert "Outcome unknown" in written["output"]["value"]
    assert (written["toolCallId"], written["toolName"]) == ("call_1", "book")


def test_a_result_that_is_known_is_no_error():
    known = {"call_1": Evidence(Outcome.FINISHED, "finished", "seat 4A")}
    written = lockstitch.mend([USER, assistant(call()), NEXT], evidence=known)[2]["content"][0]
    assert written["output"]["type"] == "text"
    assert "seat 4A" in written["output"]["value"]
    ui = lockstitch.mend([asked(), answer(part("input-available"))], evidence=known)
    assert ui[1]["parts"][0]["state"] == "output-available"
    assert "seat 4A" in ui[1]["parts"][0]["output"]


def test_a_request_that_nobody_answered_is_denied_and_the_call_was_never_started():
    mended = lockstitch.mend([USER, assistant(call(), request()), NEXT])
    denial, written = mended[2]["content"]
    assert (denial["approvalId"], denial["approved"]) == ("approval_1", False)
    assert "Nobody approved it" in denial["reason"]
    assert "Never started" in written["output"]["value"]
    (ui,) = lockstitch.mend([asked(), answer(part("approval-requested"))])[1]["parts"]
    assert ui["state"] == "output-denied"
    assert ui["approval"]["approved"] is False
    assert "Nobody approved it" in ui["approval"]["reason"]


def test_the_reason_that_a_user_gave_for_a_denial_stays():
    approval = {"id": "a", "approved": False, "reason": "too expensive"}
    history = [asked(), answer(part("approval-responded", approval=approval)), asked()]
    (ui,) = lockstitch.mend(history)[1]["parts"]
    assert (ui["state"], ui["approval"]) == ("output-denied", approval)


def test_a_call_that_was_approved_may_have_run():
    (finding,) = lockstitch.check([USER, assistant(call(), request()), tool(response()), NEXT])
    assert finding.evidence is None
    history = [asked(), answer(part("approval-responded")), asked()]
    (ui,) = lockstitch.mend(history)[1]["parts"]
    assert ui["state"] == "output-error"
    assert "Outcome unknown" in ui["errorText"]
    assert ui["approval"] == {"id": "approval_1", "approved": True}


def test_a_call_of_version_4_gets_a_result_of_version_4():
    mended = lockstitch.mend([USER, assistant(V4_CALL), NEXT])
    (written,) = mended[2]["content"]
    assert "output" not in written
    assert "Outcome unknown" in written["result"]
    assert written["isError"] is True


def test_results_of_either_version_answer_a_call():
    old = {"type": "tool-result", "toolCallId": "call_1", "toolName": "book", "result": "booked"}
    assert codes([USER, assistant(V4_CALL), tool(old), NEXT]) == []
    assert codes([USER, assistant(V4_CALL), tool(result()), NEXT]) == []
    assert codes([USER, assistant(call()), tool(old), NEXT]) == []


def test_a_new_id_of_a_call_goes_into_its_request_for_approval():
    history = [
        USER,
        assistant(call(), call(), request()),
        tool(response()),
        tool(result(), result(text="x")),
        NEXT,
    ]
    mended = lockstitch.mend(history)
    assert [one["toolCallId"] for one in mended[1]["content"]] == [
        "call_1",
        "call_1_ls2",
        "call_1_ls2",
    ]
    assert [one["toolCallId"] for one in mended[3]["content"]] == ["call_1", "call_1_ls2"]


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "history",
    [
        [USER, assistant(call(""))],
        [USER, assistant(call(None))],
        [USER, {"role": "user", "content": [call()]}],
        [USER, assistant(call()), tool(result(), call("call_2"))],
        [USER, assistant(call()), {"role": "tool", "tool_call_id": "call_1", "content": "booked"}],
        [USER, assistant(call(), request(about="")), tool(result())],
        [asked(), answer(part("input-available", ""))],
        [asked(), answer(part("running"))],
        [asked(), {**answer(part("input-available")), "role": "user"}],
        [asked(), answer(part("approval-responded", approval={"id": "a"}))],
        [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": "",
                "toolInvocations": [
                    {"state": "call", "toolCallId": "call_1", "toolName": "book", "args": {}}
                ],
            },
        ],
        [
            asked(),
            answer(
                {
                    "type": "tool-invocation",
                    "toolInvocation": {"state": "call", "toolCallId": "c", "toolName": "t"},
                }
            ),
        ],
    ],
)
def test_a_call_that_cannot_be_read_is_refused(history):
    with pytest.raises(lockstitch.NotAHistory, match="could not be read as one"):
        lockstitch.check(history)


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        (json.dumps([USER, assistant(call()), NEXT], indent=2), "vercel"),
        ("".join(json.dumps(m) + "\n" for m in (USER, assistant(call()), NEXT)), "vercel"),
        (
            json.dumps({"id": "c", "messages": [asked(), answer(part("input-available"))]}),
            "vercel-ui",
        ),
    ],
    ids=["a list", "lines", "a chat"],
)
def test_a_file_of_messages_is_read_from_its_content_alone(text, dialect, tmp_path):
    path = tmp_path / "chat"
    path.write_text(text)
    (conversation,) = check_file(Source(path)).conversations
    (finding,) = conversation.findings
    assert (finding.code, finding.key) == ("LS001", "call_1")
    family = "Vercel tool" if dialect == "vercel" else "Vercel UI tool"
    assert finding.family is not None
    assert finding.family.name == family
