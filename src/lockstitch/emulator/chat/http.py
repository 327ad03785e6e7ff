"""The door of Chat Completions: POST /v1/chat/completions."""

from aiohttp import web

from lockstitch.emulator.chat.rules import asked, check_request
from lockstitch.emulator.chat.speaking import Completion
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.wire.telling import tell_as_events, tell_whole
from lockstitch.emulator.world import World


class ChatDoor:
    """`/v1/chat/completions`. Nothing is kept: every request brings its whole history."""

    def __init__(self, world: World, reception: Reception) -> None:
        self._world = world
        self._reception = reception

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self._reception.received(self.create))]

    async def create(self, exchange: Exchange) -> web.StreamResponse:
        body = await exchange.json(streams=True)
        check_request(body)
        reply = self._world.speak(asked(body))
        ids = self._world.ids.branch()
        completion = Completion(body, reply, ids, self._world.clock.now())
        headers = {"openai-processing-ms": "1", "x-request-id": ids.draw("req")}
        if body.get("stream"):
            return await tell_as_events(exchange, reply, completion, headers, named=False)
        return await tell_whole(exchange, reply, completion, headers)
