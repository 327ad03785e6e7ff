"""Bedrock Converse messages. The judge is the service model in botocore, which validates what a
client is about to send."""

from __future__ import annotations

import copy
import json

import pytest
from botocore.session import get_session
from botocore.validate import ParamValidator
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch import Evidence, Outcome
from lockstitch.dialects import DIALECTS
from lockstitch.dialects.detection import detect
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.generated import HISTORIES, examples

BEDROCK = DIALECTS["bedrock"]
CONVERSE = (
    get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
)
UNKNOWN = "Outcome unknown"


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def text(words="go"):
    return {"text": words}


def use(key="a", **more):
    return {"toolUse": {"toolUseId": key, "name": "f", "input": {"n": 1}, **more}}


def result(key="a", said="ok", **more):
    return {"toolResult": {"toolUseId": key, "content": [{"text": said}], **more}}


SERVED = use("s", type="server_tool_use")
USER = user(text())


def complaints(history):
    """What botocore would raise before it sends these messages."""
    body = {"modelId": "anthropic.claude-sonnet-4", "messages": list(history)}
    return ParamValidator().validate(body, CONVERSE).generate_report()


def results_follow_calls(history):
    """The published rule: the message after an assistant's turn begins with one result for each
    of its calls."""
    waiting = []
    for message in [*history, USER]:
        blocks = message["content"]
        if message["role"] == "assistant":
            served = [b["toolUse"] for b in blocks if "toolUse" in b]
            waiting += [b["toolUseId"] for b in served if b.get("type") != "server_tool_use"]
            continue
        found = [b["toolResult"]["toolUseId"] for b in blocks[: len(waiting)] if "toolResult" in b]
        more = [b for b in blocks[len(waiting) :] if "toolResult" in b]
        if sorted(found) != sorted(waiting) or more:
            return False
        waiting = []
    return True


BROKEN = {
    "an open call": ([USER, assistant(use())], ["LS001"]),
    "an open call and a message": ([USER, assistant(text(), use()), USER], ["LS001"]),
    "one of two calls is open": ([USER, assistant(use(), use("b")), user(result("b"))], ["LS010"]),
    "a result without a call": ([USER, assistant(text()), user(result(), text())], ["LS002"]),
    "a result without an id": ([USER, assistant(use()), user(result(), result(""))], ["LS002"]),
    "a result whose id is missing": (
        [USER, assistant(use()), user(result(), {"toolResult": {"content": []}})],
        ["LS002"],
    ),
    "a result before its call": ([user(result()), assistant(use())], ["LS003"]),
    "two results": ([USER, assistant(use()), user(result(), result())], ["LS004"]),
    "an id used again": (
        [USER, assistant(use(), use()), user(result(), result(said="of the second"))],
        ["LS005"],
    ),
    "a result of the server for a client's call": (
        [USER, assistant(use(), result(type="f_result")), USER],
        ["LS006"],
    ),
    "a result after a text": ([USER, assistant(use()), user(text(), result())], ["LS009"]),
    "a result after a message": ([USER, assistant(use()), USER, user(result())], ["LS009"]),
    "a result in the assistant's message": ([USER, assistant(use(), result())], ["LS009"]),
    "a call cut off": ([USER, assistant(text(), use(input='{"pa')), USER], ["LS014"]),
    "a server tool without its result": ([USER, assistant(SERVED), USER], ["LS001"]),
    "a server tool's result after a message": (
        [USER, assistant(SERVED), USER, assistant(result("s", type="f_result"))],
        ["LS009"],
    ),
}


@pytest.mark.parametrize(("history", "expected"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found_and_repaired_to_what_botocore_accepts(history, expected):
    before = copy.deepcopy(history)
    assert [finding.code for finding in lockstitch.check(history)] == expected
    mended = lockstitch.mend(history)
    assert history == before
    assert lockstitch.check(mended) == []
    assert complaints(mended) == ""
    assert results_follow_calls(mended)
    assert list(lockstitch.mend(mended)) == list(mended)


def test_messages_that_no_repair_touches_are_the_very_same():
    turn = [USER, assistant(use()), user(result()), assistant(text())]
    mended = lockstitch.mend([*turn, USER, assistant(use("b")), USER])
    assert all(new is old for new, old in zip(mended[:4], turn, strict=True))


@pytest.mark.parametrize("name", [name for name in BROKEN if "server" not in name])
def test_each_break_breaks_the_published_rule_or_is_refused_by_botocore(name):
    history, _ = BROKEN[name]
    refused = "toolUseId" in complaints(history)
    same_ids = name == "an id used again"
    cut = name == "a call cut off"
    assert refused or same_ids or cut or not results_follow_calls(history)


def test_botocore_refuses_results_without_an_id_and_accepts_what_is_left():
    for name in ("a result without an id", "a result whose id is missing"):
        history, _ = BROKEN[name]
        assert "toolUseId" in complaints(history)
        assert complaints(lockstitch.mend(history)) == ""


@pytest.mark.parametrize(
    "history",
    [
        [USER],
        [USER, assistant(text())],
        [user({"document": {"format": "txt", "name": "a", "source": {"text": "hi"}}}), USER],
        [user(text(), {"cachePoint": {"type": "default"}}), assistant(text())],
        [user({"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}, text())],
        [user({"guardContent": {"text": {"text": "go"}}})],
        [
            USER,
            assistant({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c"}}}),
        ],
        [USER, assistant({"reasoningContent": {"redactedContent": b"\x00"}}, text())],
        [USER, assistant(use(), use("b")), user(result("b"), result(), text()), assistant(text())],
        [USER, assistant(use()), user(result(status="error", type="f_result"))],
        [USER, assistant(use()), user({"toolResult": {"toolUseId": "a", "content": []}})],
        [USER, assistant(SERVED, result("s", type="f_result"), text()), USER],
        [USER, assistant(SERVED, result("s"), text()), USER],
        [USER, assistant(SERVED)],
        [{"role": "system", "content": [{"toolRemoval": {"tool": {"name": "f"}}}]}, USER],
    ],
)
def test_what_is_valid_is_clean_and_given_back_as_it_is(history):
    assert complaints(history) == ""
    assert detect(history) is BEDROCK
    assert lockstitch.check(history) == []
    mended = lockstitch.mend(history)
    assert all(new is old for new, old in zip(mended, history, strict=True))


@pytest.mark.parametrize(
    "history",
    [
        [USER, assistant({"toolUse": {"name": "f", "input": {}}})],
        [USER, assistant({"toolUse": {"toolUseId": "", "name": "f", "input": {}}})],
        [USER, assistant({"toolUse": [use()]})],
        [USER, user({"toolResult": "ok"})],
        [USER, assistant({**use(), **result()})],
        [USER, assistant({"use": use()["toolUse"]})],
        [USER, {"role": "assistant", "blocks": [use()]}],
        [USER, {"role": "tool", "content": [text()]}],
        [USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}],
    ],
)
def test_a_call_that_cannot_be_read_is_refused(history):
    with pytest.raises(lockstitch.NotAHistory, match="looks like a tool call or result"):
        lockstitch.check(history)


def test_a_missing_result_is_an_error_that_does_not_say_that_nothing_ran():
    mended = lockstitch.mend([USER, assistant(use()), USER])
    assert mended[2]["content"][1:] == [text()]
    made = mended[2]["content"][0]["toolResult"]
    assert made["toolUseId"] == "a"
    assert made["status"] == "error"
    assert UNKNOWN in made["content"][0]["text"]


def test_what_is_known_to_have_ended_well_has_no_error_status():
    known = {"a": Evidence(Outcome.FINISHED, "finished", "21 degrees")}
    mended = lockstitch.mend([USER, assistant(use())], evidence=known)
    made = mended[2]["content"][0]["toolResult"]
    assert "21 degrees" in made["content"][0]["text"]
    assert "status" not in made
    assert complaints(mended) == ""


def test_a_result_that_denies_what_is_known_says_it_instead():
    known = {"a": Evidence(Outcome.FINISHED, "finished", "21 degrees")}
    history = [USER, assistant(use()), user(result(said="aborted", status="error"))]
    mended = lockstitch.mend(history, evidence=known)
    assert "21 degrees" in str(mended[2])
    assert "status" not in mended[2]["content"][0]["toolResult"]


def test_calls_that_share_an_id_keep_their_own_results():
    mended = lockstitch.mend(BROKEN["an id used again"][0])
    keys = [block["toolUse"]["toolUseId"] for block in mended[1]["content"]]
    assert len(set(keys)) == 2
    results = [block["toolResult"] for block in mended[2]["content"]]
    of_second = next(one for one in results if one["toolUseId"] == keys[1])
    assert of_second["content"] == [{"text": "of the second"}]


def test_a_cut_off_call_goes_and_nothing_is_said_for_it():
    history, _ = BROKEN["a call cut off"]
    assert list(lockstitch.mend(history)) == [USER, assistant(text()), USER]


def test_anthropic_messages_are_not_taken_for_bedrock():
    history = [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]},
    ]
    assert detect(history) is DIALECTS["messages"]


def test_the_first_message_stays_when_all_its_results_go():
    mended = lockstitch.mend([user(result()), assistant(text())])
    assert mended[0]["role"] == "user"
    assert complaints(mended) == ""


def test_a_trimmed_history_begins_with_the_user_and_splits_no_pair():
    turn = [USER, assistant(use()), user(result()), assistant(text())]
    assert lockstitch.trim([*turn, *turn], max_items=5) == turn
    assert complaints(lockstitch.trim([*turn, *turn], max_bytes=10_000)) == ""


def test_pictures_in_bytes_have_a_size():
    picture = user({"image": {"format": "png", "source": {"bytes": b"\x89" * 3_000}}})
    assert lockstitch.trim([picture, USER], max_bytes=1_000) == [USER]


_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 1), st.sampled_from(["", "a", "user"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    *("text", "toolUse", "toolResult", "toolUseId", "content", "type", "name"),
                    *("input", "reasoningContent", "status"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=examples(400))
@given(st.lists(st.dictionaries(st.sampled_from(["role", "content", "x"]), _values), max_size=4))
def test_whatever_stands_in_a_message_is_read_or_refused(history):
    for wire in history:
        BEDROCK.claims(wire)
        BEDROCK.read(wire)
    try:
        mended = lockstitch.mend(history, dialect="bedrock")
    except lockstitch.NotAHistory:
        return
    assert mended == [] or mended.edits == [] or lockstitch.check(mended, dialect="bedrock") == []


@settings(max_examples=examples(300))
@given(HISTORIES["bedrock"])
def test_botocore_accepts_every_repaired_history(history):
    assert complaints(lockstitch.mend([USER, *history], dialect="bedrock")) == ""


@pytest.mark.parametrize("layout", ["list", "body", "lines"])
def test_files_are_recognised_by_their_content(tmp_path, layout):
    history = [USER, assistant(use()), USER]
    path = tmp_path / "history"
    written = {
        "list": json.dumps(history),
        "body": json.dumps({"modelId": "m", "messages": history}),
        "lines": "\n".join(json.dumps(message) for message in history),
    }
    path.write_text(written[layout])
    (conversation,) = check_file(Source(path)).conversations
    assert [finding.code for finding in conversation.findings] == ["LS001"]
