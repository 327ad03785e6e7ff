"""Errors, as the official clients see them: their own types, with the provider's words."""

from __future__ import annotations

import hashlib
import socket

import anthropic
import openai
import pytest

from lockstitch.emulator import Settings
from lockstitch.gateway.config.model import Key, Upstream
from lockstitch.gateway.config.secrets import Secret
from tests.emulator.official import KINDS, MODEL, client_of, connected, sync_client
from tests.gateway.clients.asking import WEATHER, asked, calls_weather, output_of, user
from tests.gateway.clients.gateways import upstream

KEY = "sk-ls-key-of-the-gateway"
UPSTREAM_KEY = "sk-key-of-the-upstream"
ORPHAN = "No tool call found for function call output with call_id call_none."


@pytest.fixture(params=KINDS)
def client(request, gateway):
    with client_of(request.param, gateway) as made:
        yield made


def key(name="me", **settings):
    hashed = hashlib.sha256(KEY.encode()).hexdigest()
    return Key(name=name, hash=f"sha256:{hashed}", **settings)


def with_key(gateway, value=KEY):
    return openai.OpenAI(base_url=gateway.base_url, api_key=value, max_retries=0, timeout=10)


@pytest.fixture
def locked(make_gateway, make_emulator):
    """A gateway with a key of its own, and an upstream with another."""
    emulator = make_emulator(settings=Settings(key=UPSTREAM_KEY))
    one = upstream(emulator, key=Secret(UPSTREAM_KEY))
    return make_gateway(one, keys=(key(requests_per_minute=3),))


# --- what the provider says --------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_that_is_not_whole_is_refused_by_the_provider_in_its_words(
    client, broken, stream
):
    broken["output-without-call"] = 1
    with pytest.raises(openai.BadRequestError) as caught:
        client.create([output_of("call_none")], stream=stream)

    assert caught.value.body == {
        "message": ORPHAN,
        "type": "invalid_request_error",
        "param": "input",
        "code": None,
    }


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_is_busy_for_long_is_told_with_its_time(client, emulator, stream):
    emulator.fault("status code=429 retry_after=30 path=/v1/responses")
    with pytest.raises(openai.RateLimitError) as caught:
        client.create("hello", stream=stream)

    assert caught.value.response.headers["retry-after"] == "30"
    assert len(asked(emulator)) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_is_busy_for_a_moment_is_waited_for(client, emulator, stream):
    emulator.fault("status code=429 retry_after=0.1 path=/v1/responses")
    made = client.create("hello", stream=stream)
    made = client.all(made)[-1].response if stream else made

    assert made.output_text == "You said: hello"


def test_a_client_that_retries_itself_waits_as_long_as_it_is_told(gateway, emulator):
    emulator.fault("status code=429 retry_after=6 path=/v1/responses")
    waited = []
    with sync_client(gateway).with_options(max_retries=1) as client:
        client._sleep_for_retry = lambda **how: waited.append(
            client._calculate_retry_timeout(
                how["retries_taken"], how["options"], how["response"].headers
            )
        )
        assert client.responses.create(model=MODEL, input="hello").output_text
    assert waited == [6.0]


@pytest.mark.parametrize(
    ("status", "type_"),
    [
        ("400", openai.BadRequestError),
        ("401", openai.AuthenticationError),
        ("404", openai.NotFoundError),
        ("409", openai.ConflictError),
    ],
)
def test_what_will_never_be_taken_is_told_at_once(client, emulator, status, type_):
    emulator.fault(f"status code={status} path=/v1/responses")
    with pytest.raises(type_):
        client.create("hello", stream=True)

    assert len(asked(emulator)) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_provider_that_stays_broken_is_told_in_its_own_words(client, emulator, stream):
    emulator.fault("status code=500 path=/v1/responses times=always")
    with pytest.raises(openai.InternalServerError) as caught:
        client.create("hello", stream=stream)

    assert caught.value.status_code == 500
    assert len(asked(emulator)) == 3


def test_an_upstream_that_cannot_be_reached_is_a_bad_gateway(make_gateway):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    gateway = make_gateway(Upstream(name="away", url=f"http://127.0.0.1:{port}/v1", retries=0))
    with client_of("sync", gateway) as client:
        for ask in (
            lambda: client.create("hello"),
            lambda: client.create("hello", stream=True),
            client._client.models.list,
            lambda: client._client.chat.completions.create(model=MODEL, messages=[user("hi")]),
        ):
            with pytest.raises(openai.InternalServerError) as caught:
                ask()
            assert caught.value.status_code == 502
            assert "away" in caught.value.message
    with connected("sync", gateway) as connection:
        connection.create("hello")
        (refused,) = connection.until("error")
        assert refused.status == 502


# --- what the gateway says ---------------------------------------------------------------------


def test_a_wrong_key_is_told_as_the_provider_would(locked):
    with with_key(locked, "sk-wrong") as client:
        for ask in (
            lambda: client.responses.create(model=MODEL, input="hello"),
            client.models.list,
            client.conversations.create,
        ):
            with pytest.raises(openai.AuthenticationError) as caught:
                ask()
            assert caught.value.code == "invalid_api_key"


def test_a_wrong_key_is_told_to_anthropics_client(locked):
    with (
        anthropic.Anthropic(
            base_url=locked.base_url.removesuffix("/v1"), api_key="sk-wrong", max_retries=0
        ) as client,
        pytest.raises(anthropic.AuthenticationError) as caught,
    ):
        client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=[user("hello")])
    assert caught.value.body["error"]["type"] == "authentication_error"


def test_a_wrong_key_opens_no_websocket(locked):
    with with_key(locked, "sk-wrong") as client, pytest.raises(Exception, match="401"):
        client.responses.connect().enter()


def test_a_key_that_asked_too_often_is_told_when_to_come_back(locked):
    with with_key(locked) as client:
        for _ in range(3):
            assert client.responses.create(model=MODEL, input="hello").output_text
        with pytest.raises(openai.RateLimitError) as caught:
            client.responses.create(model=MODEL, input="hello")
    assert 0 < float(caught.value.response.headers["retry-after"]) <= 60
    assert UPSTREAM_KEY not in str(caught.value)


def test_a_history_that_is_not_whole_is_refused_before_the_provider_sees_it(make_gateway, emulator):
    gateway = make_gateway(upstream(emulator, guard="refuse"))
    with client_of("sync", gateway) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            client.create([output_of("call_none")])
        assert ORPHAN in caught.value.message
        assert caught.value.param == "input"
    with connected("sync", gateway) as connection:
        connection.create([output_of("call_none")], stream_id="a")
        (refused,) = connection.until("error")
        assert (refused.status, refused.stream_id) == (400, "a")
        assert refused.error.message.startswith(ORPHAN)
    assert asked(emulator) == []


def test_a_history_that_is_not_whole_is_mended_on_its_way(make_gateway, emulator):
    gateway = make_gateway(upstream(emulator, guard="mend"))
    calls_weather(emulator)
    with client_of("sync", gateway) as client:
        first = client.create("weather?", tools=[WEATHER])
        made = client.create("never mind", tools=[WEATHER], previous_response_id=first.id)
    assert made.status == "completed"
    assert asked(emulator)[-1]["input"][0]["call_id"] == "call_1"


def test_a_path_that_is_none_is_not_found(gateway):
    with (
        openai.OpenAI(
            base_url=gateway.base_url.removesuffix("/v1"), api_key="any", max_retries=0
        ) as client,
        pytest.raises(openai.NotFoundError, match="The API is under /v1"),
    ):
        client.models.list()
