"""Which client speaks for which official one."""

import subprocess
import sys

import pytest
from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI

from lockstitch.core.facts import Mode
from lockstitch.upstream.anthropic_messages import AnthropicMessages
from lockstitch.upstream.choosing import UnknownClient, upstream_for
from lockstitch.upstream.openai_responses import OpenAIResponses
from lockstitch.upstream.openai_websocket import OpenAIWebSocket

OPENAI = AsyncOpenAI(api_key="any")


def test_a_client_of_openai_speaks_the_responses_api():
    upstream = upstream_for(OPENAI)
    assert type(upstream) is OpenAIResponses
    assert upstream.dialect == "responses"
    assert upstream.modes == frozenset(Mode)


def test_it_speaks_over_a_websocket_if_asked():
    upstream = upstream_for(OPENAI, websocket=True)
    assert type(upstream) is OpenAIWebSocket
    assert upstream.dialect == "responses"
    assert upstream.modes == frozenset(Mode)


def test_a_subclass_of_a_client_is_one():
    azure = AsyncAzureOpenAI(
        api_key="any", api_version="2026-01-01", azure_endpoint="http://127.0.0.1"
    )
    assert type(upstream_for(azure)) is OpenAIResponses


def test_a_client_of_anthropic_speaks_messages():
    upstream = upstream_for(AsyncAnthropic(api_key="any"))
    assert type(upstream) is AnthropicMessages
    assert upstream.dialect == "messages"


def test_anthropic_has_no_websocket():
    with pytest.raises(UnknownClient, match="no WebSocket"):
        upstream_for(AsyncAnthropic(api_key="any"), websocket=True)


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (OpenAI(api_key="any"), "synchronous client .OpenAI.. Pass openai.AsyncOpenAI"),
        (Anthropic(api_key="any"), "synchronous client .Anthropic.. Pass anthropic.AsyncAnthropic"),
        (AsyncOpenAI, "This is the class AsyncOpenAI. Pass a client"),
        (OpenAI, "This is the class OpenAI. Pass a client: AsyncOpenAI"),
        (None, "No client of a provider that is known: builtins.NoneType"),
        ("gpt-5.5", "Pass openai.AsyncOpenAI or anthropic.AsyncAnthropic"),
    ],
)
def test_anything_else_is_told_what_it_is(client, words):
    with pytest.raises(UnknownClient, match=words):
        upstream_for(client)


def test_no_library_is_imported_before_it_is_needed():
    code = """
import sys
from lockstitch.upstream.choosing import UnknownClient, upstream_for
try:
    upstream_for(object())
except UnknownClient:
    print(sorted({"openai", "anthropic", "httpx", "httpx2", "websockets"} & sys.modules.keys()))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
