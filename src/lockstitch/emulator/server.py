"""The emulator: one provider on one address, for as long as it is open.

    async with Emulator(settings=Settings(seed=1)) as emulator:
        client = AsyncOpenAI(base_url=emulator.base_url, api_key="any")

For tests that are not async, `lockstitch.testing` runs one in a thread."""

import errno
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self, TextIO

from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.admin import AdminDoor
from lockstitch.emulator.chat.http import ChatDoor
from lockstitch.emulator.clock import Clock, RealClock, VirtualClock
from lockstitch.emulator.errors import CannotListen
from lockstitch.emulator.faults import Faults
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import LARGEST_BODY_BYTES
from lockstitch.emulator.messages.http import MessagesDoor, is_spoken
from lockstitch.emulator.model.brain import answer
from lockstitch.emulator.model.replies import Asked, Draft, Reply, reply
from lockstitch.emulator.model.script import Script
from lockstitch.emulator.models_http import ModelsDoor
from lockstitch.emulator.realtime.websocket import RealtimeDoor
from lockstitch.emulator.record import Record
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.conversations import Conversations
from lockstitch.emulator.responses.conversations_http import ConversationsDoor
from lockstitch.emulator.responses.http import ResponsesDoor
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.responses.websocket import SocketDoor
from lockstitch.emulator.wire.listening import Listener
from lockstitch.emulator.wire.reception import Exchange, Reception, openai_body
from lockstitch.emulator.world import Settings, World

LOOPBACK = "127.0.0.1"


class Emulator:
    """A provider. Its parts are there to be looked at: `record`, `faults`, `script`, `responses`,
    `conversations`, `realtime`."""

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
        self.conversations = Conversations(ids.lasting("conversations"))
        self.responses = Responses(
            ids=ids.lasting("responses"),
            seed=self.settings.seed,
            now=self.clock.now,
            speak=self._speak,
            conversations=self.conversations,
        )
        self._reception = Reception(self.world)
        self._responses_door = ResponsesDoor(self.world, self._reception, self.responses)
        self.realtime = RealtimeDoor(self.world, self._reception, speech=self.script.speech)
        self._messages_door = MessagesDoor(self.world, self._reception)
        self._listener: Listener | None = None
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
        await self.realtime.speak(text, responds=responds)

    def reset(self) -> None:
        """As it was when it started: nothing stored or recorded, the first faults armed, the same
        ids from the start, and a virtual clock at its start. Connections stay open."""
        self.responses.forget()
        self.world.ids.reset()
        if isinstance(self.clock, VirtualClock):
            self.clock.reset()
        self.record.reset()
        self.script.reset()
        self.faults.clear()
        self.faults.arm_all(self._first_faults)

    # Its life

    async def start(self, host: str = LOOPBACK, port: int = 0) -> None:
        """Listen. Port 0 takes any that is free."""
        listener = Listener(self._application(), self.record, self._elsewhere)
        try:
            host, port = await listener.start(host, port)
        except (OSError, OverflowError) as problem:
            raise CannotListen(
                f"Cannot listen on {host}:{port}: {_why(problem)}. Choose another --port (0 takes"
                " any that is free) or --host."
            ) from problem
        self._listener = listener
        self.url = f"http://{_in_url(host)}:{port}"

    async def stop(self) -> None:
        """Break off all that is open. What was recorded can still be read."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        listener.refuse()
        await self._reception.stop()
        await self._responses_door.stop()
        await listener.stop()
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
        return application

    def _routes(self) -> list[web.RouteDef]:
        doors = (
            self._responses_door,
            SocketDoor(self.world, self._reception, self.responses),
            ConversationsDoor(self.world, self._reception, self.conversations),
            ChatDoor(self.world, self._reception),
            self._messages_door,
            ModelsDoor(self.world, self._reception),
            self.realtime,
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

    async def _elsewhere(self, request: web.Request, said: web.HTTPException) -> web.StreamResponse:
        """A request that no door takes."""
        form = self._messages_door.refusal if is_spoken(request) else openai_body
        return await self._reception.received(partial(_refuse, said), form)(request)

    def __repr__(self) -> str:
        return f"<Emulator {self.url or 'not listening'}>"


async def _refuse(said: web.HTTPException, exchange: Exchange) -> web.StreamResponse:
    if not isinstance(said, web.HTTPExpectationFailed):
        # Whoever expects something sends no body before it came.
        await exchange.no_body()
    raise _refusal(said, exchange.request)


def _refusal(said: web.HTTPException, request: web.Request) -> Refused:
    """What aiohttp has to say about a request, in the provider's words."""
    match said:
        case web.HTTPMethodNotAllowed():
            allowed = {"Allow": ", ".join(sorted(said.allowed_methods))}
            return replace(refusals.wrong_method(request.method, request.path), headers=allowed)
        case web.HTTPNotFound():
            return refusals.unknown_path(request.method, request.path or request.raw_path)
        case _:
            return refusals.unreadable_request(said.text or said.reason, said.status)


def _why(problem: Exception) -> str:
    """The event loop's own words begin with a number and name the address once more."""
    if isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE:
        return "it is in use"
    return str(problem)


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
