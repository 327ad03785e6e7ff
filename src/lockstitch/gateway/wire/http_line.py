"""One connection to an upstream over HTTP/1.1, and the line it carries: one answer at a time.

Bytes go to whoever listens from the callback in which they came. Which connection is asked, and how
many there may be, is `http_pool`; what the bytes mean is `http_answer`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Protocol, cast

from lockstitch.gateway.lines import Hearing, LineFailure
from lockstitch.gateway.wire.http_answer import Answer, BadAnswer
from lockstitch.gateway.wire.looks import looks_here

LARGEST_JOINED_BYTES: Final = 64 * 1024
"""A head and a body up to this go out in one system call; a larger body is not copied."""

SILENCE_LOOKS: Final = 10
"""How often it is looked whether anything came, while silence is still allowed: bytes that come
need not look at the clock, and silence is noticed a tenth too late at worst."""


class Keeper(Protocol):
    """Who has the connections."""

    def freed(self, connection: HttpConnection, *, reusable: bool) -> None:
        """An exchange is over: once for each `HttpConnection.ask`."""
        ...

    def lost(self, connection: HttpConnection) -> None:
        """It is closed. Comes once; `freed` may come after it, if the line is paused."""
        ...


class HttpLine:
    """One answer that is being heard. After its end every call does nothing."""

    __slots__ = ("connection", "hearing")

    def __init__(self, connection: HttpConnection, hearing: Hearing) -> None:
        self.connection: HttpConnection | None = connection
        self.hearing = hearing

    def pause(self) -> None:
        """Read no more for now, and tell nothing more until `resume`. An answer whose last bytes
        are being told ends all the same."""
        if self.connection is not None:
            self.connection.pause()

    def resume(self) -> None:
        if self.connection is not None:
            self.connection.resume()

    def leave(self) -> None:
        """Nobody listens any more: an answer cannot be stopped but by closing its connection."""
        if self.connection is not None:
            self.connection.leave()

    def __repr__(self) -> str:
        return f"<HttpLine {'over' if self.connection is None else 'open'}>"


class HttpConnection(asyncio.Protocol):
    """One connection. `Hearing` is called from here, and never again after a line's end."""

    __slots__ = (
        "_answer",
        "_begun",
        "_heard",
        "_heard_at",
        "_keeper",
        "_largest_head",
        "_line",
        "_looks",
        "_loop",
        "_lost_because",
        "_name",
        "_pass",
        "_passes",
        "_paused",
        "_silence",
        "_silence_seconds",
        "_transport",
        "_unsent_bytes",
        "_wrong",
        "answers",
        "idle_since",
    )

    def __init__(
        self, keeper: Keeper, name: str, *, silence_seconds: float, largest_head: int
    ) -> None:
        self._keeper = keeper
        self._name = name
        self._silence_seconds = silence_seconds
        self._largest_head = largest_head
        self._loop = asyncio.get_running_loop()
        self._looks = looks_here()
        self._transport: asyncio.Transport | None = None
        self._line: HttpLine | None = None
        self._answer: Answer | None = None
        self._pass: Callable[[bytes], bool] | None = None
        """Takes bytes that begin with a chunk, if they are one that can go on as it is."""
        self._passes: Callable[[bytes], bool] | None = None
        """The same, where what comes next begins with a chunk and nothing waits before it."""
        self._begun = False
        self._wrong: BadAnswer | None = None
        self._lost_because: str | None = None
        self._paused = False
        self._heard = False
        self._heard_at = 0.0
        self._unsent_bytes = 0
        self._silence: asyncio.TimerHandle | None = None
        self.answers = 0
        """How many answers it has brought, whole."""
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, method: str, head: bytes, body: bytes, hearing: Hearing) -> HttpLine:
        """Write a request. One at a time: a slow answer would hold up all behind it."""
        assert self._line is None, "the connection is busy"
        transport = self._transport
        assert transport is not None
        line = self._line = HttpLine(self, hearing)
        self._answer = Answer(method, largest_head=self._largest_head)
        self._pass = getattr(hearing, "passed", None)
        self._begun = False
        if len(body) <= LARGEST_JOINED_BYTES:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        self._heard_at = self._loop.time()
        self._unsent_bytes = transport.get_write_buffer_size()
        self._check_silence_in(self._silence_seconds)
        return line

    def pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._passes = None
            # Also without a connection: what came before it was lost may not have been told.
            if self.usable:
                cast("asyncio.Transport", self._transport).pause_reading()

    def resume(self) -> None:
        if self._paused:
            self._paused = False
            # Nothing could be heard meanwhile.
            self._heard_at = self._loop.time()
            if self.usable:
                cast("asyncio.Transport", self._transport).resume_reading()
            # Not from inside of the caller's own call. Bytes that come before it are behind these.
            self._loop.call_soon(self._tell_held)

    def leave(self) -> None:
        self._over(reusable=False)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def give_up(self, why: str) -> None:
        """End the line, if there is one, and the connection."""
        if self._line is None:
            self.abort()
        else:
            self._broke(why)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if not self._looks.looked:
            self._looks.look(self._loop)
        passes = self._passes
        if passes is not None and passes(data):
            return
        line, answer = self._line, self._answer
        if line is None or answer is None:
            # Nobody asked: a server's word that it closes, or a second answer to the last request.
            self.abort()
            return
        if self._wrong is None:
            try:
                answer.feed(data)
            except BadAnswer as error:
                self._wrong = error
        self._tell()
        if self._line is line:
            all_told = answer.between_chunks and not self._paused and not answer.pieces
            self._passes = self._pass if all_told else None

    def _tell(self) -> None:
        """Tell what has come and was not told yet."""
        line, answer = self._line, self._answer
        if line is None or answer is None or self._paused:
            return
        hearing = line.hearing
        if not self._begun and answer.status:
            self._begun = True
            hearing.begun(answer.status, answer.headers)
            if self._line is not line or self._paused:
                return
        if pieces := answer.pieces:
            body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            hearing.heard(body)
            if self._line is not line:
                return
        if answer.whole:
            self._ended()
        elif self._wrong is not None:
            self._broke(f"sent what is no HTTP answer: {self._wrong}")
        elif self._lost_because is not None:
            self._broke(self._lost_because)

    def _tell_held(self) -> None:
        try:
            self._tell()
        except Exception:
            # As the loop does where it calls: whoever listens failed, and cannot go on.
            self.abort()
            raise

    def eof_received(self) -> None:
        # The transport closes itself; nobody talks to half a connection.
        self._end_at_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is None:
            self._end_at_eof()
        self._lost_because = self._how_it_was_lost(exc)
        self._transport = None
        self._tell()
        self._keeper.lost(self)

    def _end_at_eof(self) -> None:
        answer = self._answer
        if answer is None or self._wrong is not None or answer.breaks_off:
            return
        if answer.until_eof:
            answer.whole = True
            self._tell()

    # How a line ends.

    def _ended(self) -> None:
        answer, transport = self._answer, self._transport
        assert answer is not None
        self.answers += 1
        hearing = self._over(
            reusable=answer.reusable
            and transport is not None
            and not transport.is_closing()
            # Answered before the request was there: the rest of it would look like the next one.
            and transport.get_write_buffer_size() == 0
        )
        hearing.ended()

    def _broke(self, why: str, *, timed_out: bool = False) -> None:
        hearing = self._over(reusable=False)
        hearing.broke(
            LineFailure(
                f"The upstream {self._name} {why}. It may have the request: ask again only if that"
                " does no harm.",
                sent=True,
                timed_out=timed_out,
            )
        )

    def _over(self, *, reusable: bool) -> Hearing:
        """Let go of the line first, so that whatever is called next finds the connection free."""
        line, answer = self._line, self._answer
        assert line is not None, "nothing is under way"
        assert answer is not None
        self._line = self._answer = self._wrong = line.connection = None
        self._pass = self._passes = None
        answer.close()
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None
        if reusable:
            self.resume()
        else:
            self.abort()
        self._keeper.freed(self, reusable=reusable)
        return line.hearing

    def _how_it_was_lost(self, error: Exception | None) -> str:
        how = f"broke the connection ({error})" if error else "closed the connection"
        if self._begun:
            return f"{how} before the end of its answer"
        if self.answers:
            return f"{how}, which had been used before, without an answer"
        return f"{how} without an answer"

    def _check_silence(self) -> None:
        """Once in a while, so that bytes which come cost no timer."""
        transport = self._transport
        if self._line is None or transport is None:
            return
        now = self._loop.time()
        unsent = transport.get_write_buffer_size()
        if self._heard or self._paused or unsent < self._unsent_bytes:
            self._heard = False
            self._heard_at = now
        self._unsent_bytes = unsent
        left = self._heard_at + self._silence_seconds - now
        if left <= 0:
            says = f"said nothing for {self._silence_seconds:g} seconds"
            self._broke(says, timed_out=True)
        else:
            self._check_silence_in(left)

    def _check_silence_in(self, seconds: float) -> None:
        seconds = min(seconds, self._silence_seconds / SILENCE_LOOKS)
        self._silence = self._loop.call_later(seconds, self._check_silence)

    def __repr__(self) -> str:
        state = "busy" if self._line else "idle" if self.usable else "closed"
        return f"<HttpConnection to {self._name}, {state}, {self.answers} answers>"
