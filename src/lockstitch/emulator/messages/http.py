"""The door of Anthropic's Messages: POST /v1/messages and /v1/messages/count_tokens."""

from typing import Any

from aiohttp import web

from lockstitch.emulator.messages import refusals as messages_refusals
from lockstitch.emulator.messages.refusals import invalid
from lockstitch.emulator.messages.rules import asked, check_count, check_create
from lockstitch.emulator.messages.shapes import OLDER_VERSIONS, VERSION
from lockstitch.emulator.messages.signing import Signer
from lockstitch.emulator.messages.speaking import Answer, count_input
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.wire.telling import tell_as_events, tell_whole
from lockstitch.emulator.world import World

HOME = "/v1/messages"
VERSION_HEADER = "anthropic-version"
VERSIONS = OLDER_VERSIONS | {VERSION}


class MessagesDoor:
    """`/v1/messages` and all below it. Nothing is kept: a request brings its whole history."""

    def __init__(self, world: World, reception: Reception) -> None:
        self._world = world
        self._reception = reception
        self._signer = Signer(world.settings.seed)

    def routes(self) -> list[web.RouteDef]:
        received = self._reception.received
        return [
            web.post(HOME, received(self.create, self.refusal)),
            web.post(f"{HOME}/count_tokens", received(self.count, self.refusal)),
        ]

    async def create(self, exchange: Exchange) -> web.StreamResponse:
        body = await exchange.json(streams=True)
        check_create(body, self._signer, version=version_of(exchange))
        reply = self._world.speak(asked(body))
        ids = self._world.ids.branch()
        answer = Answer(body, reply, ids, self._signer)
        headers = {"request-id": ids.letters("req", 24)}
        if body.get("stream"):
            return await tell_as_events(exchange, reply, answer, headers, named=True)
        return await tell_whole(exchange, reply, answer, headers)

    async def count(self, exchange: Exchange) -> web.StreamResponse:
        body = await exchange.json()
        check_count(body, self._signer, version=version_of(exchange))
        headers = {"request-id": self._world.ids.letters("req", 24)}
        return exchange.answer({"input_tokens": count_input(body)}, headers=headers)

    def refusal(self, refused: Refused) -> dict[str, Any]:
        return refusal_body(self._world, refused)


def is_spoken(request: web.Request) -> bool:
    """Whether a request, of any path, is meant for Anthropic's API."""
    path = request.path
    return path == HOME or path.startswith(f"{HOME}/") or VERSION_HEADER in request.headers


def version_of(exchange: Exchange) -> str:
    """The version of the API that the client speaks; it must be said, and be one."""
    given = exchange.request.headers.get(VERSION_HEADER)
    if given is None:
        raise invalid("missing-parameter", VERSION_HEADER, "header is required")
    if given not in VERSIONS:
        raise invalid("wrong-value", VERSION_HEADER, f'"{given}" is not a valid version')
    return given


def refusal_body(world: World, refused: Refused) -> dict[str, Any]:
    """The error as this API writes it; its id is in the header too, where the client looks."""
    name = world.ids.letters("req", 24)
    refused.headers["request-id"] = name
    return messages_refusals.body(refused, name)
