"""`GET /v1/responses` with an upgrade: the door of the Responses WebSocket."""

from aiohttp import web

from lockstitch.emulator.responses.connection import PATH, Connection
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.wire.frames import FrameSink
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.world import World


class SocketDoor:
    """`GET /v1/responses` with an upgrade."""

    def __init__(self, world: World, reception: Reception, responses: Responses) -> None:
        self._world = world
        self._reception = reception
        self._responses = responses

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PATH, self._reception.received(self.connect))]

    async def connect(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.upgrade()
        socket = await exchange.open_socket()
        sink = FrameSink(socket, exchange.request, self._world.record, exchange.connection)
        connection = Connection(self._world, self._responses, sink)
        try:
            await connection.serve(socket)
        finally:
            await connection.stop()
        return socket
