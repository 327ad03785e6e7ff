"""The emulator: one provider on one address, for as long as it is open.

    async with Emulator(seed=1) as emulator:
        client = AsyncOpenAI(base_url=emulator.base_url, api_key="any")

For tests that are not async, `lockstitch.testing` runs one in a thread."""

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TextIO

from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.admin import AdminDoor
from lockstitch.emulator.chat.http import ChatDoor
from lockstitch.emulator.clock import Clock, RealClock
from lockstitch.emulator.errors import CannotListen
from lockstitch.emulator.faults import Faults
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import LARGEST_BODY_BYTES, STOP_SECONDS
from lockstitch.emulator.messages.http import MessagesDoor
from lockstitch.emulator.model.brain import answer
from lockstitch.emulator.model.replies import Asked, Draft, Reply, reply
from lockstitch.emulator.model.script import Script
from lockstitch.emulator.models_http import ModelsDoor
from lockstitch.emulator.realtime.websocket import RealtimeDoor
from lockstitch.emulator.record import Record
from lockstitch.emulator.responses.conversations import Conversations
from lockstitch.emulator.responses.conversations_http import ConversationsDoor
from lockstitch.emulator.responses.http import ResponsesDoor
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.responses.websocket import SocketDoor
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.world import Settings, World

LOOPBACK = "127.0.0.1"


class Emulator:
    """A provider. Its parts are there to be looked at: `record`, `faults`, `script`, `world`."""

    def __init__(
        self,
        *,
        script: Script | None = None,
        faults: Iterable[str] = (),
        clock: Clock | None = None,
        record: TextIO | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock or RealClock()
        self.script = script or Script()
        self._first_faults = (*self.script.faults, *faults)
        self.faults = Faults(self._first_faults)
        self.record = Record(self.clock.now, record)
        ids = Ids(self.settings.seed)
        self.world = World(self.clock, ids, self.faults, self.record, self._speak, self.settings)
        self.conversations = Conversations(ids.branch())
        self.responses = Responses(
            ids=ids.branch(),
            seed=self.settings.seed,
            now=self.clock.now,
            speak=self._speak,
            conversations=self.conversations,
        )
        self._reception = Reception(self.world)
        self._responses_door = ResponsesDoor(self.world, self._reception, self.responses)
        self._realtime_door = RealtimeDoor(self.world, self._reception, speech=self.script.speech)
        self._runner: web.AppRunner | None = None
        self.url = ""

    @property
    def base_url(self) -> str:
        """What a client is given as its base URL."""
        return f"{self.url}/v1"

    def _speak(self, asked: Asked) -> Reply:
        return self.script.choose(asked) or answer(asked)

    # What it says and breaks next

    def say(self, *drafts: Draft | str, **settings: Any) -> None:
        """Queue a reply: texts, calls and other drafts of one turn."""
        self.script.add(reply(*drafts, **settings))

    def fault(self, text: str) -> None:
        """Arm a fault, written as on the command line."""
        self.faults.arm(text)

    async def speak(self, text: str, *, responds: bool = True) -> None:
        """The user speaks, in the newest Realtime session."""
        await self._realtime_door.speak(text, responds=responds)

    def reset(self) -> None:
        """As it was when it started: nothing stored, nothing armed, nothing recorded."""
        self.responses.forget()
        self.record.reset()
        self.script.reset()
        self.faults.clear()
        self.faults.arm_all(self._first_faults)

    # Its life

    async def start(self, host: str = LOOPBACK, port: int = 0) -> None:
        """Listen. Port 0 takes any that is free."""
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            handler_cancellation=True,
            shutdown_timeout=STOP_SECONDS,
        )
        await runner.setup()
        site = web.TCPSite(runner, host, port, reuse_address=True)
        try:
            await site.start()
        except (OSError, OverflowError) as problem:
            await runner.cleanup()
            raise CannotListen(
                f"Cannot listen on {host}:{port}: {problem}. Choose another --port (0 takes any "
                "that is free) or --host."
            ) from problem
        self._runner = runner
        address = runner.addresses[0]
        self.url = f"http://{_in_url(address[0])}:{address[1]}"

    async def stop(self) -> None:
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        await self._responses_door.stop()
        await self._realtime_door.stop()
        await runner.cleanup()
        self.record.flush()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def paths(self) -> list[tuple[str, str]]:
        """All that it serves: methods and paths."""
        return [(route.method, route.path) for route in self._routes()]

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=LARGEST_BODY_BYTES)
        application.router.add_routes(self._routes())
        application.router.add_route("*", "/{rest:.*}", self._reception.received(self._nowhere))
        return application

    def _routes(self) -> list[web.RouteDef]:
        doors = (
            self._responses_door,
            SocketDoor(self.world, self._reception, self.responses),
            ConversationsDoor(self.world, self._reception, self.conversations),
            ChatDoor(self.world, self._reception),
            MessagesDoor(self.world, self._reception),
            ModelsDoor(self.world, self._reception),
            self._realtime_door,
            AdminDoor(
                self.world,
                self.script,
                self.responses,
                self.conversations,
                reset=self.reset,
                speak=self.speak,
            ),
        )
        return [route for door in doors for route in door.routes()]

    async def _nowhere(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        raise refusals.unknown_path(exchange.request.method, exchange.request.path)

    def __repr__(self) -> str:
        return f"<Emulator {self.url or 'not listening'}>"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
