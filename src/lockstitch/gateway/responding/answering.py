"""One request to the Responses API, try by try, to the end of its answer.

What is decided is decided elsewhere: what comes before (`preparing`), in which form it is sent
(`making`), what follows a try that failed (`retrying`). This carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

import msgspec
from msgspec.structs import replace

from lockstitch.dialects.reading import UNREADABLE
from lockstitch.gateway.deciding import refusals, retrying, routing
from lockstitch.gateway.deciding.asked import Api, Asked
from lockstitch.gateway.deciding.condensing import condensed
from lockstitch.gateway.deciding.refusals import Failing, RequestRefused
from lockstitch.gateway.deciding.retrying import (
    Again,
    AgainReplayed,
    AgainStripped,
    Elsewhere,
    Next,
    PassOn,
    ReadBack,
    Shown,
    Try,
)
from lockstitch.gateway.deciding.sending import Form
from lockstitch.gateway.events import FAILED, Heard, as_sse, body_of, changed, number_of, peeked
from lockstitch.gateway.keeping.conversations import Held
from lockstitch.gateway.keeping.exchanges import Kept
from lockstitch.gateway.keeping.notes import AskedNote
from lockstitch.gateway.keeping.prefixes import Running
from lockstitch.gateway.keeping.recording import NotDurable
from lockstitch.gateway.keeping.recordings import Beside, Recording
from lockstitch.gateway.lines import Line, LineFailure
from lockstitch.gateway.responding.attempts import Attempt, Broken, Ended, Outcome, Refused
from lockstitch.gateway.responding.course import Course
from lockstitch.gateway.responding.forms import (
    as_refusal,
    can_read_back,
    failure_of,
    no,
    not_again,
    sent_as,
)
from lockstitch.gateway.responding.looking import never_arrived
from lockstitch.gateway.responding.making import Making
from lockstitch.gateway.responding.mishaps import refusal_for
from lockstitch.gateway.responding.passing import JSON, Whole
from lockstitch.gateway.responding.preparing import Prepared, prepared
from lockstitch.gateway.responding.replaying import CannotReplay, Sending
from lockstitch.gateway.responding.silence import Silence
from lockstitch.gateway.responding.warming import warmed_up
from lockstitch.gateway.responding.ways import Way
from lockstitch.gateway.showing.streams import Stream
from lockstitch.gateway.upstreams import Reached
from lockstitch.gateway.watching.logs import careful
from lockstitch.gateway.wire import HandshakeRefused
from lockstitch.gateway.world import Caller, World
from lockstitch.store.errors import StoreError
from lockstitch.upstream.said import Said

NOT_ITS_ANSWER = frozenset({500, 502, 504})
"""A handshake that failed so says nothing of the request, which was not sent."""


class Ways(Protocol):
    """How upstreams are asked for this client."""

    def to(self, upstream: Reached) -> Way: ...

    def fills(self, line: Line) -> None:
        """This line fills the client's stream from now on."""
        ...

    def drains(self, line: Line) -> None:
        """And no longer."""
        ...

    def warms_up(self, upstream: Reached) -> bool:
        """Can the upstream be asked to get ready, without an answer?"""
        ...

    def anchor_gone(self, parent: Kept | None) -> bool:
        """Is it certain that no upstream has this response any more?"""
        ...


class Answering:
    """One request, until it is answered."""

    def __init__(
        self, world: World, caller: Caller, asked: Asked, stream: Stream, ways: Ways
    ) -> None:
        self._world = world
        self._caller = caller
        self._asked = asked
        self._stream = stream
        self._ways = ways
        self._making = Making(world, caller, asked, anchor_gone=ways.anchor_gone)
        self._attempt: Attempt | None = None
        self._line: Line | None = None
        self._unattended: asyncio.TimerHandle | None = None
        self._gone = False
        self._stopping = False
        self._sent = False
        """An upstream may have it."""
        self._over = False
        self._first: Recording | None = None
        """The try under whose id the client saw the answer begin, if it failed. It has no end, and
        its exchange is held, until it is known what became of the next."""
        self._runs: list[str] = []
        """The responses under which others can follow the stream: one for each try that began."""

    # --- from outside --------------------------------------------------------------------------

    def left(self) -> None:
        """The client has gone. What it asked for is heard to its end, for a while."""
        if self._gone or self._over:
            return
        self._gone = True
        self._world.metrics.clients_gone.inc()
        self._caller.note("client gone")
        seconds = self._world.config.limits.unattended_seconds
        self._unattended = asyncio.get_running_loop().call_later(
            seconds, self.stop, f"Nobody listened for {seconds:g} seconds."
        )

    def stop(self, why: str) -> None:
        """End it now, as well as that is possible; nothing is tried again."""
        self._stopping = True
        if self._line is not None:
            self._line.leave()
        if self._attempt is not None:
            self._attempt.broke(LineFailure(why, sent=True))

    async def run(self) -> Whole | None:
        """The answer, if it is not in the stream. What is raised was raised before that began."""
        try:
            try:
                async with AsyncExitStack() as stack:
                    await self._world.try_journal()
                    found = await prepared(self._world, self._caller, self._asked, stack)
                    return await self._tried(found)
            finally:
                await self._end_first()
        except RequestRefused as error:
            return no(error.refusal)
        except Exception as error:
            if self._sent and isinstance(error, StoreError | NotDurable):
                return self._unkept(error)
            if not self._stream.begun:
                raise
            refusal = refusal_for(error, self._world, self._caller)
            self._fail_stream(refusal.code or refusal.type, refusal.message, ())
            self._stream.end()
            return None
        finally:
            self._over = True
            if self._unattended is not None:
                self._unattended.cancel()
            for response in self._runs:
                last = response == self._runs[-1]
                self._world.runs.end(self._caller.tenant, response, keep=last)
            if self._stream.log is not None and not self._stream.log.over:
                self._stream.log.end()  # whoever follows must not wait for ever
            # What is large must not wait for the garbage collector to find this circle.
            self._attempt = self._line = self._stream.log = None

    # --- tries ---------------------------------------------------------------------------------

    async def _tried(self, found: Prepared) -> Whole | None:
        upstream = found.upstreams[found.route[0]]
        course = Course(upstream, await self._making.first(found, upstream))
        while True:
            at = course.upstream
            if not self._asked.generate and not self._ways.warms_up(at):
                stream, first = self._stream, self._first
                await warmed_up(self._world, self._caller, found, at, stream, first=first)
                stream.end()
                return None
            course.begin_try()
            attempt, outcome = await self._attempted(found, at, course.sending)
            if isinstance(outcome, Ended):
                return await self._ended(found, attempt)
            if isinstance(outcome, Whole) and outcome.status < 400:
                if self._stream.shown is Shown.NOTHING:
                    return await self._answered(found, attempt, outcome)
                # A second head cannot follow the first.
                outcome = Broken(
                    LineFailure("The upstream continued the answer without a stream.", sent=True)
                )
            this = self._failed_try(found, course, attempt, outcome)
            step = retrying.next_step(this)
            if self._began_with(attempt.recording) and retrying.goes_on(step):
                self._first = attempt.recording
            else:
                self._leave(attempt.recording, outcome)
            await attempt.recording.close()
            if attempt.recording is self._first and attempt.recording.failure is not None:
                return self._unkept(attempt.recording.failure)
            course.in_doubt = course.in_doubt or isinstance(step, ReadBack)
            step = await self._in_its_time(step, this, found, at)
            try:
                if await self._goes_on(step, this, found, course):
                    continue
            except CannotReplay as error:
                self._caller.note(f"not replayed: {error}")
                step = PassOn()
            if attempt.recording is self._first:
                self._leave(attempt.recording, outcome)
            await self._end_first()
            return self._failed(attempt, outcome, step, at, again=retrying.is_repeatable(this))

    def _failed_try(
        self, found: Prepared, course: Course, attempt: Attempt, outcome: Outcome
    ) -> Try:
        """A try that failed, as the table wants to know it."""
        asked, upstream, failure = self._asked, course.upstream, failure_of(outcome)
        if isinstance(failure, LineFailure):
            self._caller.note_failure(upstream.name, failure)
        return Try(
            sent=sent_as(found, course.sending.body),
            failure=failure,
            anchor=asked.previous_response_id or asked.conversation,
            shown=self._stream.shown,
            in_stream=isinstance(outcome, Refused),
            made=course.made,
            tries_left=upstream.told.retries + 1 - course.made_here,
            others_left=course.next_of(found.route) is not None and not found.bound,
            may_be_foreign=len(self._world.upstreams) > 1 and not course.stripped,
            background=asked.background,
            provider_acts=asked.provider_acts(),
            anchor_gone=self._ways.anchor_gone(found.parent),
            can_read_back=can_read_back(found, upstream, attempt),
            in_doubt=course.in_doubt,
            unattended=self._is_unattended,
        )

    async def _goes_on(self, step: Next, this: Try, found: Prepared, course: Course) -> bool:
        """Get ready for another try, if one follows. Raises `CannotReplay`."""
        why = retrying.failed(this.failure, anchor=this.anchor).name.lower()
        match step:
            case Again():
                self._note("again", why)
            case AgainReplayed():
                course.sending = await self._making.form(Form.REPLAYED, found, course.upstream, why)
            case AgainStripped():
                course.stripped = True
                self._note("stripped", why)
                course.sending = await self._making.form(Form.STRIPPED, found, course.upstream, why)
            case Elsewhere():
                other = course.next_of(found.route)
                assert other is not None  # the table was told that there is one
                asks = this.failure.retry_after if isinstance(this.failure, Said) else None
                course.upstream.cooling_until = routing.cooling_until(self._world.clock(), asks)
                course.leave_for(found.upstreams[other])
                self._note("elsewhere", why)
                course.sending = await self._making.elsewhere(found, course.upstream, why)
            case _:
                return False
        return True

    @property
    def _is_unattended(self) -> bool:
        return self._gone or self._stopping

    async def _in_its_time(self, step: Next, this: Try, found: Prepared, upstream: Reached) -> Next:
        """The step, once its time has come: then it is known what a look at the conversation shows,
        and whether anybody still waits. A client that has gone may have sent it again itself."""
        if isinstance(step, Again | AgainReplayed | ReadBack):
            await asyncio.sleep(step.after)
        if isinstance(step, ReadBack):
            where, items = self._asked.conversation or "", found.items
            absent = await never_arrived(upstream, self._caller, where, items)
            self._caller.note("read back: it is not there" if absent else "read back: in doubt")
            step = Again() if absent else step.otherwise
        if self._is_unattended:
            return retrying.next_step(replace(this, unattended=True))
        return step

    async def _attempted(
        self, found: Prepared, upstream: Reached, sent: Sending
    ) -> tuple[Attempt, Outcome]:
        self._caller.upstream = upstream.name
        way = self._ways.to(upstream)
        recording = self._recording(found, upstream, sent)
        attempt = Attempt(
            self._stream,
            recording,
            framed=way.framed,
            restored={} if sent.body is self._asked.body else recording.note.asked_for(),
        )
        self._attempt, self._line = attempt, None
        loop = asyncio.get_running_loop()
        asked_at = loop.time()
        try:
            headers = upstream.headers(self._caller.headers)
            line = await way.ask(upstream, sent.body, headers, attempt)
        except HandshakeRefused as refused:
            if refused.status in NOT_ITS_ANSWER or upstream.falls_back(refused.status):
                return attempt, Broken(refused)
            return attempt, Whole(refused.status, refused.headers, refused.body)
        except LineFailure as failure:
            return attempt, Broken(failure)
        self._line, self._sent = line, True
        self._ways.fills(line)
        if self._stopping:
            self.stop("The gateway is shutting down.")
        heard = False
        silence = Silence(attempt, upstream.silence_seconds) if way.framed else None
        try:
            outcome = await attempt.outcome
            heard = not way.framed and not isinstance(outcome, Broken)
        finally:
            if silence is not None:
                silence.end()
            if attempt.outcome.cancelled() or not attempt.outcome.done():
                recording.cut()
            if not heard:
                line.leave()
            self._ways.drains(line)
        if attempt.begins is not None:
            self._world.metrics.first_byte_came(upstream.name, attempt.begins - asked_at)
        return attempt, outcome

    # --- what a try leaves behind --------------------------------------------------------------

    def _began_with(self, recording: Recording) -> bool:
        """Is it the try under whose id the client saw the answer begin?"""
        stream = self._stream
        seen = stream.visible and stream.shown is not Shown.NOTHING
        return seen and recording.id is not None and recording.id == body_of(stream.response).id

    def _leave(self, recording: Recording, outcome: Outcome) -> None:
        """A try failed, and nothing comes of it any more: what the client saw begin does not lead
        there."""
        recording.first = None
        if isinstance(outcome, Refused) and outcome.heard.event.type == FAILED:
            event = outcome.heard.event
            recording.ended(event.type, number_of(outcome.heard), event.response)
        elif self._asked.background:
            recording.left()  # it goes on, heard or not
        else:
            recording.cut()

    async def _end_first(self) -> None:
        """Nothing has become of what the client saw begin."""
        if self._first is not None:
            self._first.cut()
            await self._first.close()

    def _recording(self, found: Prepared, upstream: Reached, sent: Sending) -> Recording:
        world, asked, tenant = self._world, self._asked, self._caller.tenant
        note = AskedNote(
            upstream=upstream.name,
            model=asked.model or "",
            base=found.base,
            anchored=asked.previous_response_id is not None,
            conversation=asked.conversation,
            store=asked.store,
            stored=asked.store and upstream.keeps_state,
            away=sent.away or (found.parent is not None and found.parent.asked.away),
            created=world.clock(),
        )
        recording = Recording(
            world.exchanges, tenant, note, found.added, brief=upstream.keeps_state
        )
        log = self._stream.log

        def opened(response: str) -> None:
            if log is not None:
                self._runs.append(response)
                world.runs.begin(tenant, response, log)

        def ended(recording: Recording) -> Beside | None:
            held = found.held if recording.continues else None
            if held is None and recording.first is None:
                return None
            return lambda: _written_too(found, recording, held)

        recording.when_opened, recording.when_ended = opened, ended
        recording.first = self._first
        return recording

    def _remember(self, found: Prepared, recording: Recording) -> None:
        """It is kept: a history that is sent in full can be found to go on from it."""
        durable = recording.unrecorded is None and recording.continues
        if durable and recording.id is not None and found.running.state:
            said = [msgspec.json.decode(item) for item in recording.said]
            state = Running(found.running.state).add_all(said)
            self._world.prefixes.remember(self._caller.tenant, recording.id, state)

    # --- ends ----------------------------------------------------------------------------------

    async def _ended(self, found: Prepared, attempt: Attempt) -> Whole | None:
        recording, stream = attempt.recording, self._stream
        try:
            await stream.clear()
        except NotDurable as error:
            return self._unkept(error)
        self._remember(found, recording)
        if recording.unrecorded is not None:
            careful("not recorded", request_id=self._caller.request_id, why=recording.unrecorded)
        stream.end()
        return None

    async def _answered(self, found: Prepared, attempt: Attempt, outcome: Whole) -> Whole | None:
        recording, body = attempt.recording, outcome.body
        if attempt.restored:
            with suppress(*UNREADABLE):
                body = changed(body, attempt.restored)
        if self._asked.api is Api.RESPONSES:
            recording.told(body, body_of(body))
            recording.left()
        durable = recording.durable()
        if durable is not None:
            try:
                await durable
            except NotDurable as error:
                return self._unkept(error)
            self._remember(found, recording)
        if self._stream.sink.framed:
            return self._condensed(body)
        return Whole(outcome.status, outcome.headers, body)

    def _condensed(self, body: bytes) -> Whole | None:
        """An answer that came whole, for a client that reads nothing but events."""
        stream = self._stream
        events = condensed(body)
        if not events:
            refusal = no(refusals.no_stream(self._caller.upstream))
            # An error is one, whatever status it came with.
            return replace(refusal, body=body) if body_of(body).error else refusal
        self._caller.note("the upstream does not stream")
        stream.begin(200, ())
        for heard in events:
            stream.show(as_sse(heard.event.type, heard.data), (heard,))
        stream.end()
        return None

    def _failed(
        self,
        attempt: Attempt,
        outcome: Outcome,
        step: retrying.Next,
        upstream: Reached,
        *,
        again: bool,
    ) -> Whole | None:
        """The client gets what the upstream said; where that is nothing, a word of our own.
        ``again``: it may send it again by itself."""
        stream = self._stream
        if attempt.recording.failure is not None:
            return self._unkept(attempt.recording.failure)
        if isinstance(outcome, Whole) and stream.shown is Shown.NOTHING:
            return outcome if again else not_again(outcome)
        if isinstance(outcome, Refused) and not stream.visible:
            if outcome.heard.event.type == FAILED:
                return Whole(200, JSON, bytes(outcome.heard.event.response))
            return no(replace(as_refusal(outcome.said), again=again))
        if isinstance(outcome, Refused) and isinstance(step, PassOn):
            stream.begin(200, attempt.headers)
            heard = attempt.restore(outcome.heard)
            stream.show(as_sse(heard.event.type, heard.data), (heard,))
        elif isinstance(outcome, Broken):
            refusal = refusals.unreachable(upstream.name, outcome.failure, again=again)
            # The words of a line name its address. Those in which it was stopped are our own.
            message = str(outcome.failure) if self._stopping else refusal.message
            if stream.shown is Shown.NOTHING:
                return no(replace(refusal, message=message))
            self._fail_stream(refusal.type, message, attempt.recording.said)
        elif isinstance(step, retrying.Fail):
            self._fail_stream(step.code, step.message, attempt.recording.said)
        else:
            self._fail_stream("server_error", str(failure_of(outcome)), attempt.recording.said)
        stream.end()
        return None

    def _unkept(self, error: Exception) -> Whole | None:
        """What was said could not be kept: nothing of it is shown."""
        careful("journal", why=str(error), request_id=self._caller.request_id)
        self._world.journal_failed = True
        refusal = refusals.answer_not_kept()
        if self._stream.shown is Shown.NOTHING:
            return no(refusal)
        self._fail_stream(refusal.code or refusal.type, refusal.message, ())
        self._stream.end()
        return None

    def _fail_stream(self, code: str, message: str, said: Sequence[bytes]) -> None:
        stream = self._stream
        failing = Failing(
            sequence_number=stream.number + 1,
            id=body_of(stream.response).id or "",
            model=self._asked.model,
            created_at=int(self._world.clock()),
            response=stream.response or None,
            output=said,
            code=code,
            message=message,
        )
        data = failing.frame()
        stream.show_last(as_sse(FAILED, data), Heard(peeked(data), data))

    def _note(self, what: str, why: str) -> None:
        self._world.metrics.retries.labels(why).inc()
        self._caller.note(f"{what}: {why}")


async def _written_too(found: Prepared, recording: Recording, held: Held | None) -> None:
    """What must be there, too, before anybody sees the end of an answer and goes on from it: under
    the id that it began with; and in a conversation what was asked and what was answered, together
    or not at all."""
    if recording.first is not None and recording.id is not None:
        await recording.first.lead_to(recording.id)
    if held is not None:
        await held.add([*found.added, *recording.said])
