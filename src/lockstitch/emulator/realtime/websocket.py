"""`GET /v1/realtime` with an upgrade: the door of the Realtime sessions.

A session is driven in `connection`; this lets clients in, and lets the simulated user
speak in one of the sessions that are open."""

import logging
from collections.abc import Sequence

from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.errors import NobodyThere
from lockstitch.emulator.model.turns import SpeechStep
from lockstitch.emulator.realtime.connection import BROKEN, PATH, Connection
from lockstitch.emulator.realtime.session import RealtimeSession
from lockstitch.emulator.wire.frames import FrameSink
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.world import World

log = logging.getLogger("lockstitch.emulator")

# The subprotocol that a browser names, beside the one that holds its key.
SUBPROTOCOL = "realtime"


class RealtimeDoor:
    """The sessions that are open, by the number of their connection in the record."""

    def __init__(
        self, world: World, reception: Reception, *, speech: Sequence[SpeechStep] = ()
    ) -> None:
        self._world = world
        self._reception = reception
        # What the user says in each session, and when.
        self._speech = speech
        self.sessions: dict[int, Connection] = {}

    def routes(self) -> list[web.RouteDef]:
        return [web.get(PATH, self._reception.received(self.connect))]

    async def speak(self, text: str, *, responds: bool = True, session: int | None = None) -> None:
        """The user says this in the newest session, or in the one of this connection.

        Returns when the events of it are out; the response that it starts may go on."""
        number = max(self.sessions, default=None) if session is None else session
        connection = self.sessions.get(number) if number is not None else None
        if connection is None:
            said = "No Realtime session is open" if session is None else f"No session {session}"
            raise NobodyThere(f"{said}. Connect to {PATH} first, and speak while it is open.")
        try:
            await connection.speak(text, responds=responds)
        except ConnectionError as gone:
            raise NobodyThere("The session ended before the user could speak.") from gone

    async def connect(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.upgrade(counts=True)
        model = exchange.request.query.get("model", "")
        if not model:
            raise refusals.missing_parameter("model")
        socket = await exchange.open_socket(SUBPROTOCOL)
        world, number = self._world, exchange.connection
        expires_at = world.clock.now() + world.settings.connection_seconds
        session = RealtimeSession(world.ids.branch(), model, expires_at=expires_at)
        sink = FrameSink(socket, exchange.request, world.record, number)
        connection = Connection(world, session, socket, sink, self._speech)
        self.sessions[number] = connection
        try:
            await connection.serve(exchange.faults)
        except ConnectionError:
            world.record.sent(number, "cut", "the connection is gone")
        except Exception:
            log.exception("the emulator failed in a Realtime session")
            await socket.close(code=BROKEN)
        finally:
            self.sessions.pop(number, None)
            await connection.stop()
        return socket

    def __repr__(self) -> str:
        return f"<RealtimeDoor {len(self.sessions)} sessions>"
