"""LiveKit's realtime session, driven by a mirror: its events feed it, its plans are carried out.

What is asked for is in `wanting`, what the provider has in `viewing`. All else is LiveKit's."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from copy import deepcopy
from types import MethodType
from typing import Any, ClassVar, Final, Literal
from weakref import WeakSet

import aiohttp
from livekit.agents import llm
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from livekit.agents.utils import is_given, shortuuid
from livekit.agents.voice.agent_activity import AgentActivity
from livekit.plugins import openai
from livekit.plugins.openai.realtime.utils import openai_item_to_livekit_item
from openai.types.realtime import (
    ConversationItemAdded,
    ConversationItemDeletedEvent,
    ConversationItemInputAudioTranscriptionCompletedEvent,
    RealtimeClientEvent,
    RealtimeErrorEvent,
    ResponseDoneEvent,
)

from lockstitch.integrations.livekit.contexts import SeenContext
from lockstitch.integrations.livekit.holding import Holdings
from lockstitch.integrations.livekit.reading import Reader
from lockstitch.integrations.livekit.viewing import MirroredContext
from lockstitch.integrations.livekit.wanting import Wanted, planned, wanted
from lockstitch.mirror import Mirror, Plan, fresh_ids
from lockstitch.mirror.flight import OPEN

log = logging.getLogger("lockstitch.livekit")

LONGEST_UPDATE_SECONDS: Final = 5.0
"""How long an update of the context waits for its acknowledgements: as long as LiveKit's own."""

MOST_PLANS: Final = 3
"""Plans for one update: the first resolves a doubt, and what that held up goes with the next."""


class RealtimeSession(openai.realtime.RealtimeSession):
    """A session whose context handling is a mirror's.

    Sessions of plugins that build on LiveKit's own can have it, too:
    ``class Session(RealtimeSession, theirs.RealtimeSession)``."""

    links: ClassVar[bool] = True
    """The provider says what an item follows, and takes items anywhere. xAI does not."""

    def __init__(self, realtime_model: openai.realtime.RealtimeModel, **options: Any) -> None:
        # LiveKit's own __init__ sends events: what that needs must be there before.
        self._holdings = Holdings()
        self._reader = Reader()
        """Of the session's own context; that of the agent's is with the holdings."""
        self._new_id = fresh_ids(shortuuid())
        self._activity: AgentActivity | None = None
        self._agents: llm.ChatContext | None = None
        self._waiting = WeakSet[llm.ChatContext]()
        self._connected = False
        self._changed: set[str] = set()
        self._refused: dict[str, str] = {}
        self._remaining: list[str] = []
        """The edits of the update that goes on, without those at the end that have ended."""
        self._settled = asyncio.Event()
        self._updating = 0
        """How many updates go on, or wait for one that does."""
        self._cuts: dict[str, str] = {}
        self._unnamed: str | None = None
        super().__init__(realtime_model, **options)
        self._view = self._remote_chat_ctx = self._new_view()

    def _new_view(self) -> MirroredContext:
        transcribes = self._opts.input_audio_transcription is not None
        return MirroredContext(Mirror(links=self.links, transcribes=transcribes), links=self.links)

    # --- the agent's own context ---------------------------------------------------------------

    def on(self, event: Any, callback: Callable[..., Any] | None = None) -> Callable[..., Any]:
        if event == "remote_item_added" and (activity := _activity_of(callback)) is not None:
            # Until it pushes its agent's context, the one that was there before counts.
            self._activity, self._agents = activity, None
        return super().on(event, callback)

    def off(self, event: Any, callback: Callable[..., Any]) -> None:
        if event == "remote_item_added" and _activity_of(callback) is self._activity:
            self._look()
            self._activity = None
        super().off(event, callback)

    def _look(self) -> None:
        if self._activity is None:
            return
        context = self._activity.agent._chat_ctx
        if context is self._agents:
            self._holdings.look(context.items)
        else:
            self._waiting.add(context)  # the push that brings it is still on its way

    # --- what the provider says ----------------------------------------------------------------

    def emit(self, event: Any, *told: Any) -> None:
        """Every event of the provider comes here first, as it was sent. For a listener LiveKit
        would look up its signature each time, which takes longer than to hear."""
        if event == "openai_server_event_received":
            try:
                self._hear(told[0])
            except Exception:  # as of any listener: the line goes on
                log.exception("an event of the provider could not be taken")
        super().emit(event, *told)

    def _hear(self, event: dict[str, Any]) -> None:
        self._look()
        view = self._view
        if event.get("type") == "conversation.item.deleted":
            item_id = event.get("item_id") or None
            asked_for = view.mirror.deleting(item_id)
            if not view.mirror.apply(event):
                return
            self._unnamed = asked_for
            if asked_for is None and item_id is not None:
                view.gone.add(view.name(item_id))
        elif not view.mirror.apply(event):
            return
        elif event["type"] == "error":
            error = event.get("error") or {}
            if self._is_ours(error.get("event_id")):
                self._refused[error["event_id"]] = str(error.get("message"))
        self._go_on()

    def _is_ours(self, event_id: str | None) -> bool:
        """Does the provider say no to an edit of a plan?"""
        return event_id is not None and self._view.mirror.standing(event_id) is not None

    def _handle_conversion_item_added(self, event: ConversationItemAdded) -> None:
        item_id = event.item.id
        if item_id is None:
            return
        view, name = self._view, self._view.name(item_id)
        node = view.get(item_id)
        if node is not None:
            if name != item_id:  # it takes the place of the one that has its name
                created_at = node.item.created_at
                node.item = openai_item_to_livekit_item(event.item.model_copy(update={"id": name}))
                node.item.created_at = created_at
            return
        event.previous_item_id = view.previous(item_id, event.previous_item_id)
        former = view.former.pop(name, None)
        if former is not None:
            view.insert(event.previous_item_id, former)  # nobody needs to be told of it again
            return
        event.item.id = name
        super()._handle_conversion_item_added(event)
        self._look()

    def _handle_conversion_item_deleted(self, event: ConversationItemDeletedEvent) -> None:
        item_id = event.item_id or self._unnamed
        if item_id is None:
            return
        view, name = self._view, self._view.name(item_id)
        if view.get(name) is None or view.id(name) is not None:
            return  # heard before, or something stands in its place
        if name != event.item_id:  # a model checks what it is given, which takes its time
            event.item_id = name
        super()._handle_conversion_item_deleted(event)

    def _handle_conversion_item_input_audio_transcription_completed(
        self, event: ConversationItemInputAudioTranscriptionCompletedEvent
    ) -> None:
        super()._handle_conversion_item_input_audio_transcription_completed(event)
        self._look()

    def _handle_response_done(self, event: ResponseDoneEvent) -> None:
        super()._handle_response_done(event)
        cuts, self._cuts = self._cuts, {}
        for message_id, words in cuts.items():
            self.truncate(
                message_id=message_id, modalities=["text"], audio_end_ms=0, audio_transcript=words
            )

    def _handle_error(self, event: RealtimeErrorEvent) -> None:
        if self._is_ours(event.error.event_id) and not self._is_fatal_error(event.error):
            return  # an edit was refused: the mirror knows, and the next plan repairs it
        super()._handle_error(event)

    # --- what the agent wants ------------------------------------------------------------------

    async def update_chat_ctx(self, chat_ctx: llm.ChatContext) -> None:
        """Take the provider's context to this one; keep what its author had not seen."""
        want = self._take(chat_ctx)
        waits = self._updating > 0  # the lock may be free for a moment while others wait for it
        self._updating += 1
        try:
            async with self._update_chat_ctx_lock:
                await self._update(want.read_again() if waits else want)
        finally:
            self._updating -= 1

    async def _update(self, want: Wanted) -> None:
        self._refused.clear()
        try:
            async with asyncio.timeout(LONGEST_UPDATE_SECONDS):
                await self._carry_out(want)
        except TimeoutError:
            self._look()
            # What was sent is in doubt from now on, and the next plan asks what became of it.
            self._view.mirror.expire(sent_before=time.monotonic())
            raise llm.RealtimeError("update_chat_ctx timed out.") from None
        if self._refused:
            log.warning(
                "%s rejected part of a chat context update",
                self._realtime_model._provider_label,
                extra={"errors": list(self._refused.values())},
            )

    async def _update_session(
        self,
        *,
        instructions: NotGivenOr[str] = NOT_GIVEN,
        chat_ctx: NotGivenOr[llm.ChatContext] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> None:
        if is_given(chat_ctx):
            there = frozenset(self._view.present())
            known = there | self._holdings.stays.keys()
            if not any(item.id in known for item in chat_ctx.items):
                # Another agent that starts afresh: nothing of it can be a copy of what is there.
                items = list(chat_ctx.items)
                chat_ctx = SeenContext(items, seen=there, of_session=False)
        await super()._update_session(instructions=instructions, chat_ctx=chat_ctx, tools=tools)

    def truncate(
        self,
        *,
        message_id: str,
        modalities: list[Literal["text", "audio"]],
        audio_end_ms: int,
        audio_transcript: NotGivenOr[str] = NOT_GIVEN,
    ) -> None:
        if "audio" in modalities:
            message_id = self._view.id(message_id) or message_id
        elif is_given(audio_transcript) and self._view.mirror.responding:
            self._cuts[message_id] = audio_transcript  # it cannot be changed before it is finished
            return
        super().truncate(
            message_id=message_id,
            modalities=modalities,
            audio_end_ms=audio_end_ms,
            audio_transcript=audio_transcript,
        )

    def send_event(self, event: RealtimeClientEvent | dict[str, Any]) -> None:
        self._look()
        super().send_event(event)

    def _take(self, chat_ctx: llm.ChatContext) -> Wanted:
        waited = chat_ctx in self._waiting  # LiveKit has gone on writing into it
        of_session = isinstance(chat_ctx, SeenContext) and chat_ctx.of_session
        reader = self._reader if of_session else self._holdings.reader
        want = wanted(chat_ctx, reader, self._holdings, self._view, waited=waited)
        if not of_session and self._becomes_the_agents(chat_ctx):
            self._holdings.take(want.readings, self._view.present(), waited=waited)
        return want

    def _becomes_the_agents(self, chat_ctx: llm.ChatContext) -> bool:
        """Is it the agent's own context from now on? LiveKit gives the agent what it pushes."""
        if self._activity is None:
            return True
        context = self._activity.agent._chat_ctx
        if chat_ctx is context or self._agents is None:
            self._agents = context
            self._waiting.discard(context)
            return True
        return False

    async def _carry_out(self, want: Wanted) -> None:
        for _ in range(MOST_PLANS):
            plan = planned(want, self._view, self._changed, self._new_id)
            _report(plan)
            self._view.mirror.commit(plan)
            self._remaining = [edit.event_id for edit in plan.edits]
            self._settled.clear()
            self._go_on()
            await self._settled.wait()
            if not plan.waiting:
                return
            want = want.read_again()

    def _create_update_chat_ctx_events(  # type: ignore[override]
        self, chat_ctx: llm.ChatContext
    ) -> list[dict[str, Any]]:
        """The events to send now, as the wire has them; those that must wait follow."""
        if not isinstance(self._remote_chat_ctx, MirroredContext):
            return self._start_again()
        want = self._take(chat_ctx)
        self._view.mirror.commit(planned(want, self._view, self._changed, self._new_id))
        return self._due() if self._connected else []

    def _due(self) -> list[dict[str, Any]]:
        events = [edit.client_event() for edit in self._view.mirror.due(at=time.monotonic())]
        if self._opts.is_azure:
            return deepcopy(events)  # LiveKit rewrites them in place, and the mirror has them, too
        return events

    def _go_on(self) -> None:
        """Send what can be sent, and tell who waits."""
        if self._connected:
            for event in self._due():
                self.send_event(event)
        mirror, remaining = self._view.mirror, self._remaining
        while remaining and mirror.standing(remaining[-1]) not in OPEN:
            remaining.pop()
        if not remaining or mirror.idle:
            self._settled.set()

    # --- connections ---------------------------------------------------------------------------

    async def _create_ws_conn(self) -> aiohttp.ClientWebSocketResponse:
        # LiveKit puts the old context back if a replay fails. The new one knows what was to go.
        self._remote_chat_ctx = self._view
        return await super()._create_ws_conn()

    async def _run_ws(self, ws_conn: aiohttp.ClientWebSocketResponse) -> None:
        self._connected = True
        self._go_on()
        try:
            await super()._run_ws(ws_conn)
        finally:
            self._connected = False

    def _start_again(self) -> list[dict[str, Any]]:
        """A new connection has nothing: everything that is to be there goes there, once."""
        former = self._view
        view = self._view = self._remote_chat_ctx = self._new_view()
        intended = former.intended()
        items = former.former | {item.id: item for item in former.to_chat_ctx().items}
        names = [wire["id"] for wire in intended]
        view.former = {name: items[name] for name in names if name in items}
        view.gone = former.gone
        mirror = view.mirror
        plan = mirror.plan(intended, base=mirror.snapshot(), new_id=self._new_id)
        mirror.commit(plan)
        self._cuts.clear()
        if self._remaining:
            self._remaining = [edit.event_id for edit in plan.edits]
        return self._due()


class RealtimeModel(openai.realtime.RealtimeModel):
    """`livekit.plugins.openai.realtime.RealtimeModel`, with sessions that stay in step."""

    def session(self, *, turn_detection_disabled: bool = False) -> RealtimeSession:
        session = RealtimeSession(self, turn_detection_disabled=turn_detection_disabled)
        self._sessions.add(session)
        return session


def _activity_of(callback: Callable[..., Any] | None) -> AgentActivity | None:
    """The activity that listens, if one does: it knows its agent, and so the agent's context."""
    if isinstance(callback, MethodType) and isinstance(callback.__self__, AgentActivity):
        return callback.__self__
    return None


def _report(plan: Plan) -> None:
    for one in plan.unplaceable:
        log.warning("%s is not sent: %s", one.item_id, one.why.value)
    for kept in plan.kept:
        log.debug("%s stays as it is: %s", kept.item_id, kept.why.value)
