"""What failures mean: the tables, and the exceptions of the libraries."""

import asyncio
from datetime import UTC, datetime

import anthropic
import httpx2
import openai
import pytest
import websockets.exceptions
from websockets.datastructures import Headers
from websockets.http11 import Response

from lockstitch.upstream.contract import Fate
from lockstitch.upstream.failures import (
    LONGEST_MESSAGE_CHARACTERS,
    Stage,
    failure_raised,
    failure_said,
    fate_of,
    library_errors,
)
from lockstitch.upstream.retry_after import LONGEST_RETRY_AFTER_SECONDS, retry_after
from lockstitch.upstream.said import Said, said_in, said_in_frame

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/responses")


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        *((status, Fate.REFUSED) for status in (400, 401, 402, 403, 404, 405, 413, 422, 426)),
        *((status, Fate.BUSY) for status in (409, 425, 429, 503, 529)),
        *((status, Fate.LOST) for status in (408, 499, 500, 501, 502, 504, 520)),
    ],
)
def test_a_status_has_a_fate(status, fate):
    assert fate_of(Said(status=status)) is fate


@pytest.mark.parametrize(
    ("said", "fate"),
    [
        (Said(code="previous_response_not_found"), Fate.ANCHOR_LOST),
        (
            Said(status=400, message="Previous response with id 'resp_1' not found."),
            Fate.ANCHOR_LOST,
        ),
        (
            Said(
                status=400,
                code="invalid_request_error",
                type="invalid_request_error",
                message="Invalid `previous_response_id`.",
            ),
            Fate.ANCHOR_LOST,
        ),
        (Said(status=404, message="Conversation with id 'conv_1' not found."), Fate.ANCHOR_LOST),
        (Said(status=400, code="conversation_locked"), Fate.LOCKED),
        (Said(status=409, code="conversation_locked"), Fate.LOCKED),
        (
            Said(
                status=400,
                message="Another process is currently operating on this conversation. "
                "Please retry in a few seconds.",
            ),
            Fate.LOCKED,
        ),
        (Said(status=400, code="websocket_connection_limit_reached"), Fate.NEW_CONNECTION),
        (Said(status=400, code="websocket_stream_limit_reached"), Fate.NEW_CONNECTION),
        (Said(status=429, code="insufficient_quota"), Fate.REFUSED),
        (Said(code="rate_limit_exceeded"), Fate.BUSY),
        (Said(type="overloaded_error"), Fate.BUSY),
        (Said(type="rate_limit_error"), Fate.BUSY),
        (Said(type="invalid_request_error"), Fate.REFUSED),
        (Said(type="api_error"), Fate.LOST),
        (Said(code="server_error"), Fate.LOST),
        (Said(status=400, message="No tool output found for function call call_1."), Fate.REFUSED),
        (Said(), Fate.LOST),
        (Said(message="Something nobody ever said before"), Fate.LOST),
    ],
)
def test_what_a_provider_says_has_a_fate(said, fate):
    assert fate_of(said) is fate


def test_an_anchor_that_is_missing_by_name_is_lost_in_any_words():
    said = Said(status=404, message="Response resp_1 was not found on this server")
    assert fate_of(said, anchor="resp_1") is Fate.ANCHOR_LOST
    assert fate_of(said, anchor="resp_2") is Fate.REFUSED
    assert fate_of(said) is Fate.REFUSED


def test_what_was_not_sent_cannot_be_lost():
    assert failure_said(Said(status=500), stage=Stage.UNSENT).fate is Fate.BUSY


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "websocket_connection_limit_reached"])
def test_an_answer_that_had_begun_is_lost(code):
    assert failure_said(Said(code=code), stage=Stage.HEARD).fate is Fate.LOST


def test_a_refusal_is_one_also_after_the_answer_had_begun():
    said = Said(code="context_length_exceeded", type="invalid_request_error")
    assert failure_said(said, stage=Stage.HEARD).fate is Fate.REFUSED


def test_a_failure_says_what_happened_and_what_to_do_next():
    failure = failure_said(
        Said(status=429, code="rate_limit_exceeded", message="Too fast", retry_after=2.0)
    )
    assert str(failure) == (
        "The provider returned an error (429, rate_limit_exceeded): Too fast. "
        "The request was not processed. Send it again later."
    )
    assert (failure.status, failure.code, failure.retry_after) == (
        429,
        "rate_limit_exceeded",
        2.0,
    )


def test_a_message_is_bounded():
    failure = failure_said(Said(status=500, message="<html>" * 10_000))
    assert len(str(failure)) < LONGEST_MESSAGE_CHARACTERS + 200


# Where a provider says it


def test_an_error_is_read_nested_or_flat():
    error = {"message": "No.", "type": "invalid_request_error", "code": "c", "param": None}
    wanted = Said(code="c", type="invalid_request_error", message="No.")
    assert said_in({"error": error}) == wanted
    assert said_in(error) == wanted
    flat = {"type": "error", "code": "c", "message": "No.", "sequence_number": 7}
    assert said_in(flat) == Said(code="c", message="No.")


@pytest.mark.parametrize("body", [None, "Bad gateway", [1], {"error": "Bad gateway"}, {"error": 7}])
def test_a_body_that_is_no_error_object_is_read_as_far_as_it_goes(body):
    said = said_in(body, status=502)
    assert said.status == 502
    assert said.message in {"Bad gateway", "7", ""}


@pytest.mark.parametrize("place", ["frame", "error"])
def test_an_error_frame_has_status_and_headers_in_itself(place):
    headers = {"headers": {"Retry-After": "3"}}
    frame = {
        "type": "error",
        "status": 429,
        "error": {"code": "rate_limit_exceeded", **(headers if place == "error" else {})},
        **(headers if place == "frame" else {}),
    }
    assert said_in_frame(frame) == Said(status=429, code="rate_limit_exceeded", retry_after=3.0)


# Exceptions


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def handshake(status: int) -> websockets.exceptions.InvalidStatus:
    body = b'{"error": {"message": "No WebSocket here.", "code": null}}'
    return websockets.exceptions.InvalidStatus(Response(status, "No", Headers(), body))


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (
            caused(openai.APIConnectionError(request=REQUEST), httpx2.ConnectError("refused")),
            Fate.BUSY,
        ),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ConnectTimeout("slow")), Fate.BUSY),
        (caused(openai.APITimeoutError(REQUEST), httpx2.PoolTimeout("full")), Fate.BUSY),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ReadTimeout("slow")), Fate.LOST),
        (caused(openai.APITimeoutError(REQUEST), httpx2.WriteTimeout("slow")), Fate.LOST),
        (
            caused(anthropic.APIConnectionError(request=REQUEST), httpx2.ReadError("reset")),
            Fate.LOST,
        ),
        (
            caused(openai.APIConnectionError(request=REQUEST), httpx2.UnsupportedProtocol("x:")),
            Fate.REFUSED,
        ),
        (openai.APIError("What?", REQUEST, body=None), Fate.LOST),
        (httpx2.RemoteProtocolError("incomplete chunked read"), Fate.LOST),
        (httpx2.ReadTimeout("slow"), Fate.LOST),
        (httpx2.DecodingError("no gzip"), Fate.LOST),
        (openai.OpenAIError("Missing credentials."), Fate.REFUSED),
        (anthropic.AnthropicError("Missing credentials."), Fate.REFUSED),
        (websockets.exceptions.ConnectionClosedOK(None, None), Fate.LOST),
        (websockets.exceptions.ConnectionClosedError(None, None), Fate.LOST),
        (ConnectionResetError(104, "reset"), Fate.LOST),
        (TimeoutError(), Fate.LOST),
    ],
)
def test_an_exception_has_a_fate(error, fate):
    assert isinstance(error, library_errors())
    assert failure_raised(error).fate is fate


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (handshake(426), Fate.REFUSED),
        (handshake(401), Fate.REFUSED),
        (handshake(500), Fate.BUSY),
        (handshake(503), Fate.BUSY),
        (websockets.exceptions.InvalidURI("http:", "no"), Fate.REFUSED),
        (websockets.exceptions.InvalidMessage("no HTTP"), Fate.BUSY),
        (ConnectionRefusedError(111, "refused"), Fate.BUSY),
        (TimeoutError(), Fate.BUSY),
    ],
)
def test_a_handshake_that_fails_sent_nothing(error, fate):
    assert isinstance(error, library_errors())
    assert failure_raised(error, stage=Stage.UNSENT).fate is fate


def test_the_words_of_a_refused_handshake_are_told():
    assert "No WebSocket here." in str(failure_raised(handshake(426), stage=Stage.UNSENT))


def test_an_error_with_a_status_is_what_the_provider_said():
    response = httpx2.Response(429, request=REQUEST, headers={"retry-after": "7"})
    body = {"message": "Slow down.", "code": "rate_limit_exceeded"}
    failure = failure_raised(openai.RateLimitError("429", response=response, body=body))
    assert (failure.fate, failure.retry_after, failure.code, failure.status) == (
        Fate.BUSY,
        7.0,
        "rate_limit_exceeded",
        429,
    )


def test_a_cancellation_is_no_failure():
    assert not isinstance(asyncio.CancelledError(), library_errors())


# Retry-After

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e9"}, LONGEST_RETRY_AFTER_SECONDS),
        ({"retry-after": "Fri, 01 Jan 2049 12:00:00 GMT"}, LONGEST_RETRY_AFTER_SECONDS),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "later"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_is_seconds_milliseconds_or_a_date_and_bounded(headers, seconds):
    assert retry_after(headers, NOW) == seconds
