"""Gemini contents. The judge is google-genai: its types, its chat, and what its client sends."""

from __future__ import annotations

import copy
import json

import pytest
from google.genai import _transformers, chats, models, types
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch import Evidence, Outcome
from lockstitch.dialects import DIALECTS
from lockstitch.dialects.detection import detect
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.generated import HISTORIES, examples

GEMINI = DIALECTS["gemini"]
UNKNOWN = "Outcome unknown"


def user(*parts):
    return {"role": "user", "parts": list(parts)}


def model(*parts):
    return {"role": "model", "parts": list(parts)}


def text(words="go"):
    return {"text": words}


def call(name="f", key=None, **more):
    body = {"name": name, "args": {"n": 1}, **more}
    return {"functionCall": body if key is None else {"id": key, **body}}


def response(name="f", key=None, said="ok"):
    body = {"name": name, "response": {"output": said}}
    return {"functionResponse": body if key is None else {"id": key, **body}}


def snake(value):
    """The same in the spelling that the Python types use."""
    if isinstance(value, dict):
        names = {
            "functionCall": "function_call",
            "functionResponse": "function_response",
            "toolCall": "tool_call",
            "toolResponse": "tool_response",
            "toolType": "tool_type",
            "thoughtSignature": "thought_signature",
            "willContinue": "will_continue",
            "partialArgs": "partial_args",
            "jsonPath": "json_path",
        }
        return {names.get(name, name): snake(inner) for name, inner in value.items()}
    return [snake(one) for one in value] if isinstance(value, list) else value


USER = user(text())

STREAMED = {"name": "f", "willContinue": True}
PIECE = {"partialArgs": [{"jsonPath": "$.n", "numberValue": 1}], "willContinue": True}

BROKEN = {
    "an open call": ([USER, model(call())], ["LS001"]),
    "an open call and a message": ([USER, model(call()), USER], ["LS001"]),
    "an open call with an id": ([USER, model(call(key="1")), USER], ["LS001"]),
    "one of two calls is open": ([USER, model(call(), call("g")), user(response("g"))], ["LS010"]),
    "one of two calls of one tool is open": (
        [USER, model(call(), call()), user(response())],
        ["LS010"],
    ),
    "a response without a call": ([USER, user(response())], ["LS002"]),
    "a response of another id": ([USER, model(call(key="1")), user(response(key="2"))], None),
    "a response that names nothing": (
        [USER, model(call()), user(response(), {"functionResponse": {"response": {}}})],
        ["LS002"],
    ),
    "two responses": ([USER, model(call()), user(response(), response())], ["LS004"]),
    "two responses with an id": (
        [USER, model(call(key="1")), user(response(key="1"), response(key="1"))],
        ["LS004"],
    ),
    "a response before its call": ([USER, user(response(key="1")), model(call(key="1"))], None),
    "a response in the model's turn": ([USER, model(call(), response())], ["LS009"]),
    "a response after a message": ([USER, model(call()), USER, user(response())], ["LS009"]),
    "responses in two contents": (
        [USER, model(call(), call("g")), user(response()), user(response("g"))],
        ["LS009"],
    ),
    "an id that is used again": (
        [USER, model(call(key="1"), call("g", "1")), user(response(key="1"), response("g", "1"))],
        ["LS005"],
    ),
    "a call cut off": ([USER, model(text(), {"functionCall": STREAMED}), USER], ["LS014"]),
    "a call cut off in its arguments": (
        [USER, model(text(), {"functionCall": {"name": "f", "partialArgs": PIECE["partialArgs"]}})],
        ["LS014"],
    ),
    "a call cut off after some pieces": (
        [USER, model(text(), {"functionCall": STREAMED}, {"functionCall": PIECE}), USER],
        ["LS014", "LS014"],
    ),
    "a server tool without its response": (
        [USER, model({"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}}), USER],
        ["LS001"],
    ),
    "a call that an earlier turn left open": (
        [USER, model(call()), USER, model(call()), user(response(said="of the second"))],
        ["LS001"],
    ),
}


def sent(history):
    """The contents as the client of the Gemini Developer API would send them. Raises what it
    raises."""
    contents = _transformers.t_contents(history)
    assert chats._validate_contents(contents)
    return [models._Content_to_mldev(content) for content in contents]


def counts_match(history):
    """The published rule: the content after a model's turn with n function calls has n responses,
    and no other content has any."""
    expected = 0
    for wire in [*history, {"role": "user", "parts": []}]:
        content = types.Content.model_validate(wire)
        calls = [part for part in content.parts if part.function_call]
        responses = [part for part in content.parts if part.function_response]
        if content.role == "model":
            expected += len(calls)
            if responses:
                return False
            continue
        if len(responses) != expected:
            return False
        expected = 0
    return True


@pytest.mark.parametrize("spell", [copy.deepcopy, snake], ids=["camel", "snake"])
@pytest.mark.parametrize(("history", "expected"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found_and_repaired_to_what_google_accepts(history, expected, spell):
    history = spell(history)
    found = lockstitch.check(history)
    assert found
    assert expected is None or [finding.code for finding in found] == expected
    before = copy.deepcopy(history)
    mended = lockstitch.mend(history)
    assert history == before
    assert lockstitch.check(mended) == []
    assert counts_match(mended)
    assert sent(list(mended))
    assert list(lockstitch.mend(mended)) == list(mended)


CUT_OFF = [name for name in BROKEN if "cut off" in name]
JOINED_BY_ID = {"an id that is used again", "a response of another id"}
COUNTED = [name for name in BROKEN if "server" not in name and name not in CUT_OFF]


@pytest.mark.parametrize("name", [name for name in COUNTED if name not in JOINED_BY_ID])
def test_what_is_broken_breaks_the_rule_of_counts(name):
    history, _ = BROKEN[name]
    assert not counts_match(history)


@pytest.mark.parametrize("name", CUT_OFF)
def test_the_client_refuses_to_send_a_call_that_was_cut_off(name):
    history, _ = BROKEN[name]
    with pytest.raises(ValueError, match="only supported in"):
        sent(copy.deepcopy(history))


@pytest.mark.parametrize("spell", [copy.deepcopy, snake], ids=["camel", "snake"])
@pytest.mark.parametrize(
    "history",
    [
        [USER],
        [USER, model(text())],
        [{"parts": [text()]}, model({"text": "hm", "thought": True}, text()), {"parts": [text()]}],
        [{"role": "user", "parts": ["the short form of an older SDK"]}, {"role": "model"}],
        [USER, model(call(), call()), user(response(), response()), model(text())],
        [USER, model(call(key="1"), call(key="2")), user(response(key="2"), response(key="1"))],
        [USER, model(call()), {"role": "function", "parts": [response()]}],
        [USER, model(call()), {"parts": [response()]}],
        [USER, model(call(key="1")), user(response())],
        [USER, model(call()), user(response(key="1"))],
        [USER, model(call(key="1"), call(key="2")), user(response(), response(key="1"))],
        [USER, model(call()), user(text("here it is"), response())],
        [USER, model(call()), user(response()), model(call()), user(response()), model(text())],
        [
            USER,
            model(
                {"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}},
                {"toolResponse": {"id": "t", "toolType": "URL_CONTEXT", "response": {}}},
                text(),
            ),
            USER,
        ],
        [
            USER,
            model(
                {"executableCode": {"code": "1", "language": "PYTHON"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
            ),
        ],
        [
            USER,
            model({"functionCall": STREAMED}, {"functionCall": PIECE}, {"functionCall": {}}),
            user(response()),
        ],
        [user(text(), {"partMetadata": {"toolCallId": "the caller's own"}})],
    ],
)
def test_what_is_valid_is_clean_and_given_back_as_it_is(history, spell):
    history = spell(history)
    assert detect(history) is GEMINI
    assert lockstitch.check(history) == []
    mended = lockstitch.mend(history)
    assert all(new is old for new, old in zip(mended, history, strict=True))


@pytest.mark.parametrize(
    "history",
    [
        [USER, model({"functionCall": {"id": "1", "args": {}}})],
        [USER, model({"functionCall": ["f"]})],
        [USER, user({"functionResponse": "ok"})],
        [USER, model({**call(), **response()})],
        [USER, model({"functionCall": PIECE})],
        [USER, model({"function": {"name": "f", "args": {}}})],
        [USER, {"role": "model", "content": [call()]}],
        [USER, model(call()), user({"functionResponse": {"name": "f", "willContinue": True}})],
        [call()],
    ],
)
def test_a_call_that_cannot_be_read_is_refused(history):
    with pytest.raises(lockstitch.NotAHistory, match="looks like a tool call or result"):
        lockstitch.check(history)


def test_a_finding_names_a_call_without_an_id_by_its_tool():
    (finding,) = lockstitch.check([USER, model(call("get_weather"))])
    assert str(finding) == "LS001 get_weather has no output"
    (finding,) = lockstitch.check([USER, model(call("get_weather", "1"))])
    assert str(finding) == "LS001 1 (get_weather) has no output"
    (finding,) = lockstitch.check([USER, user(response("get_weather"))])
    assert str(finding) == "LS002 output for get_weather has no call"


@pytest.mark.parametrize("key", [None, "1"])
def test_a_missing_response_is_an_error_in_the_spelling_and_with_the_id_of_its_call(key):
    for spell, field in ((copy.deepcopy, "functionResponse"), (snake, "function_response")):
        mended = lockstitch.mend(spell([USER, model(call(key=key))]))
        (part,) = mended[2]["parts"]
        assert mended[2]["role"] == "user"
        assert part[field]["name"] == "f"
        assert part[field].get("id") == key
        assert UNKNOWN in part[field]["response"]["error"]


def test_what_is_known_of_a_call_is_its_output():
    known = {"1": Evidence(Outcome.FINISHED, "finished", "21 degrees")}
    mended = lockstitch.mend([USER, model(call(key="1"))], evidence=known)
    assert "21 degrees" in mended[2]["parts"][0]["functionResponse"]["response"]["output"]


def said(history):
    """What each response says, in order; None where it was made up."""
    found = []
    for content in history:
        for part in content["parts"]:
            if "functionResponse" in part:
                words = part["functionResponse"]["response"]
                found.append(None if UNKNOWN in str(words) else words["output"])
    return found


def test_a_late_response_of_a_tool_called_twice_stays_with_the_first_call():
    late = user(response(said="of the first"))
    mended = lockstitch.mend([USER, model(call(), call()), USER, late])
    assert said(mended) == ["of the first", None]
    inside = lockstitch.mend([USER, model(call(), call(), response(said="of the first"))])
    assert said(inside) == ["of the first", None]


def test_responses_in_several_contents_keep_their_order():
    made = model(call(), call(), call())
    answers = [user(response(said=str(n))) for n in range(3)]
    mended = lockstitch.mend([USER, made, *answers])
    assert said(mended) == ["0", "1", "2"]
    assert len(mended) == 3


def test_a_response_is_of_the_newest_call_of_its_tool_not_of_one_that_was_left_open():
    mended = lockstitch.mend(BROKEN["a call that an earlier turn left open"][0])
    assert said(mended) == [None, "of the second"]


def test_a_response_without_an_id_is_never_taken_for_a_later_call():
    mended = lockstitch.mend([user(text(), response(said="of a call that is gone")), model(call())])
    assert said(mended) == [None]
    assert mended.removed


def test_a_real_response_replaces_the_placeholder_of_its_call():
    mended = lockstitch.mend(
        [*lockstitch.mend([USER, model(call())]), user(response(said="after all"))]
    )
    assert said(mended) == ["after all"]


def test_a_cut_off_call_goes_and_nothing_is_said_for_it():
    history = [USER, model(text("I book."), {"functionCall": STREAMED}), USER]
    mended = lockstitch.mend(history)
    assert list(mended) == [USER, model(text("I book.")), USER]


def test_a_call_that_was_streamed_to_its_end_is_complete():
    pieces = [{"functionCall": STREAMED}, {"functionCall": PIECE}, {"functionCall": {}}]
    (finding,) = lockstitch.check([USER, model(*pieces), USER])
    assert finding.code == "LS001"


def test_the_response_of_a_client_becomes_the_servers_where_the_server_ran_the_tool():
    ran = {"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}}
    mended = lockstitch.mend([USER, model(ran), user(response("f", "t"))])
    assert lockstitch.check(mended) == []
    assert sent(list(mended))
    assert "toolResponse" in str(mended)


def test_a_content_with_calls_and_no_role_is_repaired_too():
    ran = {"toolCall": {"id": "t", "toolType": "URL_CONTEXT", "args": {}}}
    mended = lockstitch.mend([USER, {"parts": [ran]}, USER])
    assert lockstitch.check(mended) == []
    mended = lockstitch.mend([USER, {"parts": [call(key="1"), response(key="1")]}])
    assert said(mended) == ["ok"]
    assert len(mended) == 3


# --- objects of the SDK ------------------------------------------------------------------------

SIGNATURE = b"\xff\xfe\x00signature"


def objects():
    made = types.Part(
        function_call=types.FunctionCall(id="1", name="f", args={"n": 1}),
        thought_signature=SIGNATURE,
    )
    again = types.Part(function_call=types.FunctionCall(name="f", args={}, will_continue=True))
    return [types.UserContent("go"), types.Content(role="model", parts=[made, again])]


def test_objects_of_the_sdk_are_read_and_come_back_as_objects_with_their_signatures():
    history = objects()
    assert [finding.code for finding in lockstitch.check(history)] == ["LS001", "LS014"]
    mended = lockstitch.mend(history)
    assert mended[0] is history[0]
    assert all(isinstance(content, types.Content) for content in mended)
    assert mended[1].parts[0].thought_signature == SIGNATURE
    assert len(mended[1].parts) == 1
    assert sent(list(mended))


def test_valid_objects_are_the_very_same():
    history = [*objects()[:1], types.ModelContent("done")]
    mended = lockstitch.mend(history)
    assert all(new is old for new, old in zip(mended, history, strict=True))


def test_a_response_made_by_the_sdk_without_an_id_answers_a_call_that_has_one():
    answer = types.Part.from_function_response(name="f", response={"result": 1})
    made = types.Part(function_call=types.FunctionCall(id="1", name="f", args={}))
    history = [
        types.UserContent("go"),
        types.ModelContent([made]),
        types.UserContent([answer]),
    ]
    assert lockstitch.check(history) == []
    mixed = [USER, {"role": "model", "parts": [made]}, {"role": "user", "parts": [answer]}]
    assert lockstitch.check(mixed) == []


def test_dictionaries_among_objects_stay_what_they_are_unless_they_change():
    history = [USER, objects()[1], USER]
    mended = lockstitch.mend(history)
    assert mended[0] is USER
    assert lockstitch.check(mended) == []


@pytest.mark.parametrize("part", [types.Part(text="go"), types.FunctionCall(name="f")])
def test_what_is_not_a_content_is_refused_with_its_position(part):
    with pytest.raises(lockstitch.NotAHistory, match=f"Item 1 is a {type(part).__name__}"):
        lockstitch.check([types.UserContent("go"), part])


# --- trim --------------------------------------------------------------------------------------


def test_a_cut_keeps_calls_that_a_name_joins_with_their_responses():
    turn = [USER, model(call(), call()), user(response(), response()), model(text())]
    history = [*turn, *turn]
    for most in range(4, 8):
        assert lockstitch.trim(history, max_items=most) == turn


def test_a_call_left_open_does_not_keep_later_turns_of_its_tool_together():
    turn = [USER, model(call()), user(response()), model(text())]
    history = [USER, model(call()), *turn, *turn]
    assert lockstitch.trim(history, max_items=4) == turn


def test_a_cut_knows_which_call_a_response_of_either_kind_answers():
    made = model(call(key="1"), call(), call(key="3"))
    for answers in (
        [response(key="1"), response(), response(key="3")],
        [response(), response(key="9"), response(key="3")],
    ):
        history = [USER, made, user(*answers), model(text()), USER]
        assert lockstitch.trim(history, max_items=1) == [USER]
        assert lockstitch.trim(history[:3], max_items=1) == history[:3]


# --- anything ----------------------------------------------------------------------------------

_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 1), st.sampled_from(["", "f", "model"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    *("role", "parts", "text", "functionCall", "functionResponse", "toolCall"),
                    *("function_response", "id", "name", "response", "args", "willContinue"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=examples(400))
@given(st.lists(st.dictionaries(st.sampled_from(["role", "parts", "x"]), _values), max_size=4))
def test_whatever_stands_in_a_content_is_read_or_refused(history):
    for wire in history:
        GEMINI.claims(wire)
        GEMINI.read(wire)
    try:
        mended = lockstitch.mend(history, dialect="gemini")
    except lockstitch.NotAHistory:
        return
    assert mended == [] or mended.edits == [] or lockstitch.check(mended, dialect="gemini") == []


@settings(max_examples=examples(300))
@given(HISTORIES["gemini"])
def test_a_repaired_history_keeps_the_rule_of_counts(history):
    mended = lockstitch.mend([USER, *history], dialect="gemini")
    assert counts_match(mended)


@pytest.mark.parametrize("layout", ["list", "body", "lines"])
def test_files_are_recognised_by_their_content(tmp_path, layout):
    history = [{"parts": [text()]}, model(call()), USER]
    path = tmp_path / "history"
    written = {
        "list": json.dumps(history),
        "body": json.dumps({"systemInstruction": {"parts": [text()]}, "contents": history}),
        "lines": "\n".join(json.dumps(content) for content in history),
    }
    path.write_text(written[layout])
    (conversation,) = check_file(Source(path)).conversations
    assert [finding.code for finding in conversation.findings] == ["LS001"]
