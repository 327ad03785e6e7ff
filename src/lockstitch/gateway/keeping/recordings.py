"""What is written down of one exchange while its answer is heard.

It turns what an attempt hears into facts for the `Recorder`, in the order of the response. Nothing
is written before an upstream has given the response an id: without one nobody can go on from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeAlias

from msgspec import Raw

from lockstitch.core.errors import LockstitchError, NotAnItem
from lockstitch.core.facts import Ending, ItemCompleted, Noted, Seq
from lockstitch.gateway.events import Body, body_of
from lockstitch.gateway.keeping.exchanges import (
    CONTINUES,
    begun,
    ended,
    is_call,
    same_as,
    without_output,
)
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.notes import ASKED, AnsweredNote, AskedNote, written
from lockstitch.gateway.keeping.recording import DELETED, NotDurable, Recorder
from lockstitch.upstream.item_order import ItemOrder
from lockstitch.upstream.responses_answer import ENDING_OF_EVENT, ENDING_OF_STATUS

Beside: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
"""What else must be written when an answer has ended."""


class Recording:
    """One exchange that is being answered."""

    def __init__(
        self,
        exchanges: Exchanges,
        tenant: str,
        note: AskedNote,
        items: Sequence[bytes],
        *,
        brief: bool = True,
    ) -> None:
        self.note = note
        self.id: str | None = None
        """The response, once it has an id."""
        self.said: list[bytes] = []
        self.ending: Ending | None = None
        self.when_opened: Callable[[str], None] | None = None
        self.when_ended: Callable[[Recording], Beside | None] | None = None
        """What it gives back is done once the exchange is durable, before the end may be seen."""
        self.first: Recording | None = None
        """The try under whose id the client saw the answer begin, if it broke off."""
        self._exchanges = exchanges
        self._tenant = tenant
        self._items = items
        self._brief = brief
        self._order = ItemOrder()
        self._numbers: dict[bytes, int] = {}
        self._request: Seq = 0
        self._recorder: Recorder | None = None
        self._later: list[asyncio.Future[None]] = []
        self._beside: Beside | None = None
        self._together: asyncio.Future[None] | None = None

    def opened(self, response: str) -> None:
        """The upstream began to answer."""
        if self.id is not None:
            return
        self.id = response
        if self.first is not None and self.first.id == response:
            self._go_on_with(self.first)
            return
        exchanges, tenant = self._exchanges, self._tenant
        self._recorder = Recorder(
            lambda facts, last: exchanges.begun(tenant, response, facts, last=last),
            exchanges.took,
        )
        try:
            beginning = begun(self.note, self._items, response)
        except NotAnItem as error:
            self._recorder.give_up(str(error))
            return
        self._request = beginning.request
        self._recorder.record(beginning.facts, waits=True)
        if self.when_opened is not None:
            self.when_opened(response)

    def _go_on_with(self, first: Recording) -> None:
        """An upstream that gives an id again goes on with it: so does its exchange, which is held
        all the time."""
        self.first = None
        self._recorder, self._request = first._recorder, first._request
        first._recorder = first.when_opened = first.when_ended = None
        if self._recorder is not None:
            self._recorder.record([Noted(kind=ASKED, note=written(self.note))], waits=True)

    def done(self, item: bytes, index: int | None, number: int | None) -> bool:
        """An item was said to its end. Must it be durable before the client may see it?"""
        if self._recorder is None:
            return False
        if number is not None:
            self._numbers[item] = number
        try:
            must = is_call(item)
        except NotAnItem as error:
            self._recorder.give_up(str(error))
            return False
        self._say(self._order.done(index, item))
        return must

    def ended(self, type: str, number: int | None, response: Raw) -> None:
        """The answer is over."""
        if self._recorder is None or self.ending is not None:
            return
        body = body_of(response)
        self._say(self._order.rest([bytes(item) for item in body.output or ()]))
        self._end(ENDING_OF_EVENT[type], type, number, response)

    def told(self, response: bytes, body: Body) -> None:
        """The whole response came at once, or as far as it has come."""
        if body.id is None:
            return
        self.opened(body.id)
        ending = ENDING_OF_STATUS.get(body.status or "")
        if ending is not None and self._recorder is not None and self.ending is None:
            self._say(self._order.rest([bytes(item) for item in body.output or ()]))
            self._end(ending, f"response.{body.status}", None, Raw(response))

    def cut(self) -> None:
        """Nothing more of the answer will be heard."""
        if self._recorder is not None and self.ending is None:
            self._say(self._order.rest())
            self._end(Ending.CUT, "", None, Raw(b""))

    async def lead_to(self, response: str) -> None:
        """It broke off, and the next try was answered as this response: whoever asks for this one
        finds that. Raises `NotDurable`."""
        if self._recorder is None or self.ending is not None:
            return
        self.ending = Ending.CUT
        self.when_opened = self.when_ended = None
        self._recorder.record([same_as(response)], last=True)
        await self._recorder.durable()
        if self.unrecorded == DELETED:
            await self._exchanges.forget(self._tenant, response)

    def left(self) -> None:
        """The answer goes on without us; who asks for it later may write down its end."""
        if self._recorder is not None and self.ending is None:
            self._say(self._order.rest())
            self._recorder.record((), last=True)
            self.when_opened = self.when_ended = None

    def durable(self) -> asyncio.Future[None] | None:
        """Done when what was said so far is on disk; None where nothing is recorded."""
        if self._recorder is None:
            return None
        if self._beside is not None:
            beside, self._beside = self._beside, None
            self._together = asyncio.ensure_future(_both(self._recorder.durable(), beside))
        if self._together is not None:
            return self._together
        if self._recorder.given_up is not None:
            return None
        if self._order.waits:
            # An item that came before its turn is written when it is its turn.
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._later.append(future)
            return future
        return self._recorder.durable()

    async def close(self) -> None:
        if self._recorder is not None:
            await self._recorder.close()

    @property
    def failure(self) -> Exception | None:
        """Why not all of it is on disk, once it was closed."""
        return self._recorder.failure if self._recorder is not None else None

    @property
    def continues(self) -> bool:
        """Can anything go on from it?"""
        return self.ending in CONTINUES

    @property
    def unrecorded(self) -> str | None:
        """Why nothing is recorded, if that is so."""
        return self._recorder.given_up if self._recorder is not None else None

    def _say(self, items: Sequence[bytes]) -> None:
        assert self._recorder is not None
        if items:
            self.said += items
            request = self._request
            done = [ItemCompleted(request=request, item=item) for item in items]
            self._recorder.record(done, waits=True)
        if self._later and not self._order.waits:
            later, self._later = self._later, []
            for future in later:
                _follow(self._recorder.durable(), future)

    def _end(self, ending: Ending, type: str, number: int | None, response: Raw) -> None:
        assert self._recorder is not None
        self.ending = ending
        without = without_output(bytes(response), brief=self._brief)
        note = AnsweredNote(
            numbers=[self._numbers.get(item) for item in self.said],
            last=number,
            ended_by=type,
            response=Raw(without),
            began_as=self.first.id if self.first is not None else None,
        )
        self._recorder.record(ended(self._request, ending, note), last=True)
        if self.when_ended is not None:
            self._beside = self.when_ended(self)
        self.when_opened = self.when_ended = None  # they hold whoever asked


async def _both(first: asyncio.Future[None], second: Beside) -> None:
    """The one, and only then the other: who is told that nothing was kept asks again."""
    await first
    try:
        await second()
    except LockstitchError as error:
        raise NotDurable(f"What belongs to it could not be written: {error}") from error


def _follow(first: asyncio.Future[None], second: asyncio.Future[None]) -> None:
    def done(first: asyncio.Future[None]) -> None:
        if first.cancelled():
            second.cancel()
            return
        error = first.exception()
        if second.done():
            return
        if error is None:
            second.set_result(None)
        else:
            second.set_exception(error)

    first.add_done_callback(done)
