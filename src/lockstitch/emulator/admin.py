"""`/_emulator/…`: read what happened, say what happens next, and check that it did.

For tests in any language. What changes something takes JSON alone, so that no web page can send
it unasked; when a key was chosen, it is needed here too. Over loopback the host must be named as
such: a page whose name was pointed at this machine is not answered."""

import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.clock import VirtualClock
from lockstitch.emulator.decoding import decoded
from lockstitch.emulator.errors import BadScript, EmulatorError
from lockstitch.emulator.expectations import Expected, problems
from lockstitch.emulator.model.script import Script, from_data
from lockstitch.emulator.record import Entry, readable
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.conversations import Conversations
from lockstitch.emulator.responses.store import Responses
from lockstitch.emulator.wire.reception import body_of, check_key
from lockstitch.emulator.world import World

log = logging.getLogger("lockstitch.emulator")

HOME = "/_emulator"

_encode = msgspec.json.Encoder().encode

Handler = Callable[[web.Request], Awaitable[Any]]
Body = TypeVar("Body")


class AdminDoor:
    def __init__(
        self,
        world: World,
        script: Script,
        responses: Responses,
        conversations: Conversations,
        *,
        reset: Callable[[], None],
        speak: Callable[..., Awaitable[None]],
    ) -> None:
        self._world = world
        self._script = script
        self._responses = responses
        self._conversations = conversations
        self._reset = reset
        self._speak = speak

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(HOME, self._wrapped(self.overview)),
            web.get(f"{HOME}/record", self._wrapped(self.record)),
            web.get(f"{HOME}/requests", self._wrapped(self.requests)),
            web.get(f"{HOME}/violations", self._wrapped(self.violations)),
            web.get(f"{HOME}/state", self._wrapped(self.state)),
            web.get(f"{HOME}/faults", self._wrapped(self.faults)),
            web.post(f"{HOME}/faults", self._wrapped(self.arm)),
            web.delete(f"{HOME}/faults", self._wrapped(self.disarm)),
            web.post(f"{HOME}/turns", self._wrapped(self.turns)),
            web.post(f"{HOME}/speak", self._wrapped(self.speak)),
            web.post(f"{HOME}/forget", self._wrapped(self.forget)),
            web.post(f"{HOME}/clock", self._wrapped(self.clock)),
            web.post(f"{HOME}/reset", self._wrapped(self.reset)),
            web.post(f"{HOME}/assert", self._wrapped(self.expect)),
        ]

    def _wrapped(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                if not _is_named_rightly(request):
                    return _answer({"error": "Ask for localhost or 127.0.0.1 by that name."}, 403)
                if self._world.settings.key:
                    check_key(self._world.settings.key, request)
                # A page can send a POST of a simple type unasked; a DELETE it cannot.
                if request.method == "POST" and request.content_type != "application/json":
                    return _answer({"error": "Send Content-Type: application/json."}, 415)
                return _answer(await handler(request))
            except Refused as refused:
                return _answer(refused.body(), refused.status)
            except _Unmet as unmet:
                return _answer({"ok": False, "problems": unmet.problems}, 409)
            except (EmulatorError, msgspec.MsgspecError) as problem:
                return _answer({"error": readable(str(problem))}, 400)
            except ConnectionError:
                raise
            except Exception:
                log.exception("the emulator failed at %s", request.path)
                return _answer(refusals.own_fault().body(), 500)

        return handle

    async def overview(self, request: web.Request) -> Any:
        record = self._world.record
        return {
            "seed": self._world.settings.seed,
            "requests": dict(record.requests),
            "violations": dict(record.broken),
            "struck": dict(record.struck),
            "forgotten_entries": record.dropped,
            "turns_left": len(self._script.left()),
        }

    async def record(self, request: web.Request) -> Any:
        return {"entries": self._entries(lambda entry: True)}

    async def requests(self, request: web.Request) -> Any:
        return {"entries": self._entries(lambda entry: not entry.sent)}

    async def violations(self, request: web.Request) -> Any:
        return {"entries": self._entries(lambda entry: entry.broke is not None)}

    def _entries(self, wanted: Callable[[Entry], bool]) -> list[dict[str, Any]]:
        return [entry.readable() for entry in self._world.record.entries() if wanted(entry)]

    async def state(self, request: web.Request) -> Any:
        return {
            "responses": self._responses.ids_stored(),
            "conversations": [
                {"id": each.id, "locked": each.locked, "items": list(each.items.values())}
                for each in self._conversations.all()
            ],
        }

    async def faults(self, request: web.Request) -> Any:
        return {
            "faults": [
                {"fault": fault.text, "struck": fault.struck, "spent": not fault.left}
                for fault in self._world.faults.all()
            ]
        }

    async def arm(self, request: web.Request) -> Any:
        """`{"fault": "cut …"}` or `{"faults": […]}`: all of them, or none."""
        body = await _body(request, _Arm)
        asked = [*body.faults, *([body.fault] if body.fault else [])]
        self._world.faults.arm_all(asked)
        return await self.faults(request)

    async def disarm(self, request: web.Request) -> Any:
        self._world.faults.clear()
        return {"faults": []}

    async def turns(self, request: web.Request) -> Any:
        body = await _body(request, _Turns)
        turns = from_data(body.turns)
        for turn in turns:
            self._script.add(turn)
        return {"turns_left": len(self._script.left())}

    async def speak(self, request: web.Request) -> Any:
        body = await _body(request, _Speak)
        await self._speak(body.text, responds=body.responds)
        return {"spoken": body.text}

    async def forget(self, request: web.Request) -> Any:
        body = await _body(request, _Forget)
        self._responses.forget(body.response)
        return {"forgotten": body.response or "everything"}

    async def clock(self, request: web.Request) -> Any:
        body = await _body(request, _Advance)
        clock = self._world.clock
        if not isinstance(clock, VirtualClock):
            raise BadScript("This emulator runs on the real clock, which cannot be moved.")
        clock.advance(body.advance)
        return {"now": clock.now()}

    async def reset(self, request: web.Request) -> Any:
        self._reset()
        return {"reset": True}

    async def expect(self, request: web.Request) -> Any:
        """200 if all is as expected; 409 and what is not otherwise."""
        expected = await _body(request, Expected)
        found = problems(expected, self._world, self._script)
        if found:
            raise _Unmet(found)
        return {"ok": True}


class _Unmet(Exception):
    """Not all is as expected."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(*problems)
        self.problems = problems


class _Arm(msgspec.Struct, forbid_unknown_fields=True):
    fault: str = ""
    faults: list[str] = []


class _Turns(msgspec.Struct, forbid_unknown_fields=True):
    turns: list[Any]


class _Speak(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    responds: bool = True


class _Forget(msgspec.Struct, forbid_unknown_fields=True):
    response: str | None = None


class _Advance(msgspec.Struct, forbid_unknown_fields=True):
    advance: float


async def _body(request: web.Request, of: type[Body]) -> Body:
    return msgspec.convert(decoded(await body_of(request) or b"{}"), of)


def _is_named_rightly(request: web.Request) -> bool:
    """Whether whoever came over loopback knows it.

    A page that is not ours can have its own name resolve to 127.0.0.1, and then counts as of the
    same origin as all that listens there; but it has to ask for that name."""
    reached = request.transport and request.transport.get_extra_info("sockname")
    named = request.headers.get("Host")
    if not reached or named is None or not _is_loopback(str(reached[0])):
        return True
    return _is_loopback(request.url.host or "")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _answer(value: Any, status: int = 200) -> web.Response:
    return web.Response(body=_encode(value), status=status, content_type="application/json")
