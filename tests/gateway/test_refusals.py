"""How the gateway says no: in the provider's form, and in its words where there are any."""

from __future__ import annotations

import inspect
import json
import socket
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFailedEvent

import lockstitch
from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.deciding.asked import Api, NotARequest, read
from lockstitch.gateway.deciding.guard import Guarding, guarded
from lockstitch.gateway.deciding.refusals import Failing, Refusal, not_whole
from lockstitch.gateway.lines import LineFailure
from lockstitch.upstream.contract import Fate
from lockstitch.upstream.failures import fate_of
from lockstitch.upstream.said import said_in, said_in_frame
from tests.generated import HISTORIES, examples
from tests.turns import Words, call, output, reasoning, user

APIS = {"responses": Api.RESPONSES, "chat": Api.CHAT, "messages": Api.MESSAGES}


def refused(history, dialect="responses"):
    return not_whole(lockstitch.check(history, dialect=dialect), APIS[dialect])


def test_a_call_without_an_output_is_refused_in_the_providers_words():
    no = refused([call("call_X"), user()])
    assert no.message.startswith("No tool output found for function call call_X.")
    assert "LS001" in no.message
    assert (no.status, no.type, no.param, no.code) == (400, "invalid_request_error", "input", None)


def test_an_output_without_a_call_is_refused_in_the_providers_words():
    no = refused([user(), output("call_X")])
    assert "No tool call found for function call output with call_id call_X." in no.message


def test_every_call_is_named():
    no = refused([call("a"), call("b"), user(), output("c")])
    for key in "abc":
        assert f" {key}." in no.message
    chat = Words("chat")
    no = refused([chat.user(), *chat.calls("a", "b"), chat.user()], "chat")
    assert "did not have response messages: a, b." in no.message
    assert no.param == "messages.[1].role"
    messages = Words("messages")
    no = refused([messages.user(), *messages.calls("a", "b"), messages.user()], "messages")
    assert "immediately after: a, b. Each `tool_use` block" in no.message


def test_thousands_of_calls_are_counted():
    no = refused([*[call(f"c{n}") for n in range(500)], user()])
    assert "c99." in no.message
    assert "c100." not in no.message
    assert "400 more" in no.message


def test_other_rules_have_the_providers_words_where_there_are_any():
    assert "of type 'reasoning' was provided without" in refused([reasoning(), user()]).message
    twice = [user(id="msg_1"), user(id="msg_1")]
    assert "Duplicate item found with id msg_1." in refused(twice).message


@settings(max_examples=examples(200))
@given(st.sampled_from(sorted(APIS)).flatmap(lambda d: st.tuples(st.just(d), HISTORIES[d])))
def test_whatever_is_wrong_can_be_said(pair):
    dialect, history = pair
    found = lockstitch.check(history, dialect=dialect)
    if found:
        no = not_whole(found, APIS[dialect])
        assert "None." not in no.message or any(finding.key is None for finding in found)
        json.loads(no.body(APIS[dialect]))


def test_what_waits_behind_an_anchor_is_not_said_to_be_an_item():
    from lockstitch.dialects import by_name

    waits = [by_name("responses").read(call("a"))[0]]
    wrong = {"type": "custom_tool_call_output", "call_id": "a", "output": "x"}
    made = guarded([wrong], mode=Guarding.REFUSE, anchored=True, open_calls=waits)
    assert "the earlier history" in not_whole(made.refused).message


def test_a_body_has_the_form_of_its_api():
    no = refusals.too_many_requests(1.2)
    assert json.loads(no.body()) == {
        "error": {
            "message": no.message,
            "type": "requests",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
    assert json.loads(no.body(Api.CHAT)) == json.loads(no.body())
    assert json.loads(no.body(Api.MESSAGES)) == {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": no.message},
    }
    assert ("retry-after", "2") in no.headers()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (404, "not_found_error"),
        (409, "invalid_request_error"),
        (413, "request_too_large"),
        (502, "api_error"),
        (503, "overloaded_error"),
    ],
)
def test_an_anthropic_error_is_told_by_its_type(status, kind):
    no = Refusal(status=status, message="no")
    assert json.loads(no.body(Api.MESSAGES))["error"]["type"] == kind


def test_a_frame_names_its_lane_and_its_status():
    frame = json.loads(refusals.previous_response_not_found("resp_1").frame("s1"))
    assert (frame["type"], frame["status"], frame["stream_id"]) == ("error", 400, "s1")
    assert frame["error"]["code"] == "previous_response_not_found"
    assert "stream_id" not in json.loads(refusals.draining().frame())


AWAY = LineFailure("No connection to 10.0.0.1.", sent=False)

EVERY = [
    refusals.not_a_request(NotARequest("no")),
    refusals.unreadable("it is no HTTP"),
    refusals.response_not_found("resp_1"),
    refusals.conversation_not_found("conv_1"),
    refusals.previous_response_not_found("resp_1"),
    refusals.item_not_found("msg_1", 2),
    refusals.two_anchors(),
    refusals.no_background("openai"),
    refusals.cannot_continue(ValueError("no")),
    refusals.bad_key(),
    refusals.from_a_page(),
    refusals.no_such_api(Api.MESSAGES),
    refusals.no_such_model("m"),
    refusals.too_many_requests(3),
    refusals.too_large(5),
    refusals.unreachable("openai", AWAY),
    refusals.unreachable("openai", LineFailure("slow", sent=True, timed_out=True)),
    refusals.no_stream("openai"),
    refusals.journal_unavailable(),
    refusals.not_written_yet("resp_1"),
    refusals.answer_not_kept(),
    refusals.draining(),
]


def test_every_refusal_is_tried_here():
    made = [
        name
        for name, value in vars(refusals).items()
        if inspect.isfunction(value)
        and value.__module__ == refusals.__name__
        and value.__annotations__.get("return") == "Refusal"
    ]
    assert len(made) == len(EVERY)  # one has two forms, and `not_whole` has tests of its own


def test_the_gateway_reads_its_own_refusals_as_what_they_are():
    fates = {
        "Previous response": Fate.ANCHOR_LOST,
        "Conversation with id": Fate.ANCHOR_LOST,
        "Rate limit": Fate.BUSY,
        "The upstream": Fate.LOST,
        "The journal": Fate.BUSY,
        "This gateway is": Fate.BUSY,
    }
    for no in EVERY:
        wanted = next((f for words, f in fates.items() if no.message.startswith(words)), None)
        said = said_in(json.loads(no.body()), status=no.status, headers=dict(no.headers()))
        assert fate_of(said) is (wanted or Fate.REFUSED), no
        framed = said_in_frame(json.loads(no.frame()))
        assert (framed.status, framed.code, framed.retry_after) == (
            said.status,
            said.code,
            said.retry_after,
        )


def because(cause):
    """A line that failed for this reason."""
    try:
        raise LineFailure("No connection to 10.0.0.1.", sent=False) from cause
    except LineFailure as failure:
        return failure


@pytest.mark.parametrize(
    ("cause", "why"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "it refused the connection"),
        (socket.gaierror(-2, "Name or service not known"), "its name is not known"),
        (UnicodeError("label too long"), "its name is not known"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "TLS failed"),
        (ssl.SSLCertVerificationError(1, "self-signed"), "its certificate is not trusted"),
        (TimeoutError(), "there was no connection in time"),
    ],
)
def test_a_client_is_told_which_upstream_and_why_but_no_address(cause, why):
    no = refusals.unreachable("openai", because(cause))
    assert no.message == f"The upstream 'openai' cannot be reached: {why}. Try again."
    assert (no.status, no.headers()) == (502, [("content-type", "application/json")])


def test_what_nobody_knows_the_reason_of_is_told_without_one():
    no = refusals.unreachable("openai", because(OSError("Multiple exceptions")))
    assert no.message == "The upstream 'openai' cannot be reached. Try again."


@pytest.mark.parametrize("timed_out", [False, True])
def test_what_may_have_arrived_and_would_do_harm_twice_is_not_to_be_sent_again(timed_out):
    lost = LineFailure("It was cut.", sent=True, timed_out=timed_out)
    no = refusals.unreachable("openai", lost, again=False)
    assert "It may have the request" in no.message
    assert ("x-should-retry", "false") in no.headers()
    harmless = refusals.unreachable("openai", lost)
    assert harmless.message.endswith("Try again.")
    assert dict(harmless.headers()).keys() == {"content-type"}
    # What never left is sent for the first time.
    assert refusals.unreachable("openai", AWAY, again=False).again


def test_a_request_that_is_none_is_refused_with_its_field():
    with pytest.raises(NotARequest) as caught:
        read(b'{"store": 1}')
    no = refusals.not_a_request(caught.value)
    assert (no.status, no.param, no.code) == (400, "store", "invalid_type")


def _data(event: bytes) -> tuple[str | None, dict]:
    assert event.endswith(b"\n\n")
    lines = event.decode().removesuffix("\n\n").split("\n")
    name = lines.pop(0).removeprefix("event: ") if len(lines) == 2 else None
    return name, json.loads(lines[0].removeprefix("data: "))


def test_a_stream_is_ended_in_the_form_of_its_api():
    no = refusals.unreachable("openai", AWAY)
    assert _data(no.event(Api.CHAT)) == (None, json.loads(no.body()))
    assert _data(no.event(Api.MESSAGES)) == ("error", json.loads(no.body(Api.MESSAGES)))
    name, data = _data(no.event(Api.RESPONSES))
    assert (name, data["type"], data["sequence_number"]) == ("error", "error", 0)


def test_a_response_that_failed_is_well_formed():
    item = b'{"type":"function_call","call_id":"a","name":"t","arguments":"{ }"}'
    failing = Failing(
        sequence_number=5,
        id="resp_1",
        model="m",
        created_at=17,
        output=[item],
        message="The upstream is gone.",
    )
    data = json.loads(failing.frame())
    event = ResponseFailedEvent.model_validate(data)
    assert (event.sequence_number, event.response.status) == (5, "failed")
    assert event.response.error is not None
    assert event.response.error.message == "The upstream is gone."
    assert item in failing.frame()


def test_a_response_that_failed_keeps_what_it_said_of_itself():
    begun = (
        b'{"id":"resp_1","object":"response","created_at":17,"status":"in_progress","model":"m-1",'
        b'"metadata":{"a":"b"},"temperature":1.0,"output":[],"error":null}'
    )
    failing = Failing(sequence_number=2, id="other", response=begun, message="no")
    response = json.loads(failing.frame())["response"]
    assert (response["id"], response["model"], response["metadata"]) == (
        "resp_1",
        "m-1",
        {"a": "b"},
    )
    assert (response["status"], response["error"]["code"]) == ("failed", "server_error")
    assert response["output"] == []
