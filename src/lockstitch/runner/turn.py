"""One turn: from the user's word to the model's last, through every answer and tool between.

Every request is planned from the ledger at the moment it is sent. So a retry, a resume after a
crash and a second round are the same thing: plan, do what the plan says, plan again."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lockstitch.core.continuation import (
    Continue,
    ReadBack,
    Reason,
    Refuse,
    Replay,
    SettleFirst,
)
from lockstitch.core.errors import BrokenPair
from lockstitch.core.exchanges import Exchange, Standing
from lockstitch.core.facts import AnyFact, Ending, Mode, RequestLost, ResponseEnded
from lockstitch.core.links import back
from lockstitch.ledgers.finding import ConversationChanged, found
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.preparing import request_prepared
from lockstitch.runner.answering import Answering
from lockstitch.runner.backoff import delay
from lockstitch.runner.desk import Desk
from lockstitch.runner.errors import CannotContinue, OutOfBudget, ProviderRefused
from lockstitch.runner.events import Event, Retrying, TurnEnded, Waiting
from lockstitch.runner.given import Wire, added, in_force
from lockstitch.runner.limits import Budget
from lockstitch.store.journal import Journal
from lockstitch.upstream.contract import Ended, Fate, Request, Upstream, UpstreamFailure

InputFilter = Callable[[list[dict[str, Any]]], Iterable[Wire] | Awaitable[Iterable[Wire]]]
"""Rewrites what a request sends: gives all of it. It may not part a call from its output."""


class Setting(Struct, frozen=True, kw_only=True):
    """What all turns of a runner have in common."""

    upstream: Upstream
    model: str
    mode: Mode
    settings: Mapping[str, Any]
    leading: Sequence[Wire] = ()
    """Items that go before everything that is sent, and are no part of the conversation."""
    budget: Budget = Budget()
    input_filter: InputFilter | None = None
    eager: bool = True
    random: Callable[[], float]


class Turn:
    """One turn of one thread."""

    def __init__(
        self, setting: Setting, journal: Journal, desk: Desk, *, tell: Callable[[Event], None]
    ) -> None:
        self._setting = setting
        self._journal = journal
        self._desk = desk
        self._tell = tell
        self._answering = Answering(
            setting.upstream,
            journal,
            tell=tell,
            take=desk.take if setting.eager else lambda calls: None,
            silence_seconds=setting.budget.silence_seconds,
        )
        self._rounds = 0
        self._failures = 0
        self._last: Ended | None = None

    async def run(
        self, given: Sequence[Wire | str], approved: Mapping[str, bool] | None = None
    ) -> None:
        """Everything until the model has said its last word, or somebody else must act first."""
        try:
            async with asyncio.timeout(self._setting.budget.seconds) as budget:
                await self._resume()
                facts = added(self._journal.ledger, given)
                self._desk.approve(in_force(self._journal.ledger, approved or {}, facts))
                if facts:
                    await self._journal.append(*facts)
                while await self._step():
                    pass
        except TimeoutError:
            if not budget.expired():
                raise  # it is somebody else's: a filter's, or a store's
            raise OutOfBudget(
                f"The turn took longer than {self._setting.budget.seconds:g} seconds. Every "
                "call that ran has its result in the store; the next turn continues from there."
            ) from None
        finally:
            await self._desk.stop()

    async def _resume(self) -> None:
        """What was under way when an earlier process died was lost: nobody hears it any more."""
        lost: list[AnyFact] = []
        for exchange in self._journal.ledger.doubts():
            if exchange.standing is Standing.ANSWERING:
                lost.append(ResponseEnded(request=exchange.seq, ending=Ending.CUT))
            elif exchange.standing is Standing.SENT:
                lost.append(RequestLost(request=exchange.seq, reason="the process ended"))
        if lost:
            await self._journal.append(*lost)

    async def _step(self) -> bool:
        """Do what the plan says; False when the turn is over."""
        ledger = self._journal.ledger
        plan = ledger.plan(self._setting.mode, conversation=self._conversation())
        if isinstance(plan, SettleFirst):
            return await self._settle(plan)
        if isinstance(plan, ReadBack):
            listed = await self._listed(plan)
            if listed is not None:
                await self._journal.append(*self._found(plan, listed))
            return True
        if isinstance(plan, Refuse):
            if plan.reason is not Reason.NOTHING_NEW:
                raise CannotContinue(f"{self._journal.conversation} cannot continue: {plan}.")
            self._end()
            return False
        await self._send(plan)
        return True

    async def _settle(self, plan: SettleFirst) -> bool:
        self._desk.take(plan.calls)
        await self._desk.finish()
        left = [call for call in plan.calls if call.output is None]
        approval, output = self._desk.held(left)
        if approval or output:
            self._tell(Waiting(approval, output))
            return False
        return True

    async def _send(self, plan: Continue | Replay) -> None:
        setting, ledger = self._setting, self._journal.ledger
        if self._rounds >= setting.budget.rounds:
            raise OutOfBudget(
                f"The turn took {self._rounds} answers, and the model still calls tools. Raise the "
                "budget, or continue with the next turn."
            )
        items = ledger.items(plan)
        rewritten = await self._filtered(items)
        conversation = None
        try:
            if isinstance(plan, Replay) and setting.mode is Mode.CONVERSATION and not plan.anchor:
                conversation = await setting.upstream.new_conversation()
            prepared = request_prepared(ledger, plan, items=rewritten, conversation=conversation)
            request = Request(
                model=setting.model,
                items=[*setting.leading, *(items if rewritten is None else rewritten)],
                mode=setting.mode,
                anchor=conversation or plan.anchor,
                settings=setting.settings,
            )
            ended = await self._answering.send(prepared, request)
        except UpstreamFailure as failure:
            await self._after(failure)
            return
        except BrokenPair as broken:
            raise CannotContinue(
                f"The input filter would separate a call from its output. {broken}"
            ) from None
        if ended.ending is Ending.FAILED:
            await self._after(UpstreamFailure(ended.detail or "it failed", fate=Fate.BUSY))
            return
        self._failures = 0
        self._rounds += 1
        self._last = ended

    async def _filtered(self, items: list[dict[str, Any]]) -> Sequence[Wire] | None:
        if self._setting.input_filter is None:
            return None
        filtered = self._setting.input_filter(items)
        given = await filtered if inspect.isawaitable(filtered) else filtered
        # Nothing given is no answer: who forgot to return what was redacted would send the rest.
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise CannotContinue(
                f"The input filter returned a {type(given).__name__} instead of a list. Return the"
                " items to send, even if none was changed."
            )
        return list(given)

    async def _listed(self, plan: ReadBack) -> list[dict[str, Any]] | None:
        try:
            return await self._setting.upstream.listed(plan.conversation, plan.after)
        except UpstreamFailure as failure:
            await self._after(failure)
            return None

    def _found(self, plan: ReadBack, listed: list[dict[str, Any]]) -> list[AnyFact]:
        try:
            return found(self._journal.ledger, plan, listed)
        except ConversationChanged as changed:
            raise CannotContinue(
                f"{changed} The stored thread is valid: a Runner with another mode can continue it."
            ) from None

    async def _after(self, failure: UpstreamFailure) -> None:
        """Wait as long as a failure asks for; raise if it is final, or one too many."""
        if failure.fate is Fate.REFUSED:
            raise ProviderRefused(str(failure)) from failure
        self._failures += 1
        if self._failures >= self._setting.budget.attempts:
            last = str(failure).rstrip(".")
            raise OutOfBudget(
                f"Gave up after {self._failures} attempts. The last error: {last}. The stored "
                "thread is valid; the next turn continues from there."
            ) from failure
        at_once = failure.fate in (Fate.ANCHOR_LOST, Fate.NEW_CONNECTION)
        wait = 0.0
        if not at_once:
            wait = delay(self._failures, failure.retry_after, self._setting.random)
        self._tell(Retrying(f"{failure.fate.value}: {failure}", self._failures + 1, wait))
        await asyncio.sleep(wait)

    def _conversation(self) -> str | None:
        return self._journal.ledger.conversation

    def _end(self) -> None:
        """Say the last word again, whole."""
        ledger = self._journal.ledger
        last = self._last
        usage = last.usage if last is not None else None
        incomplete = last is not None and last.ending is Ending.INCOMPLETE
        self._tell(TurnEnded(_last_text(ledger), usage, self._rounds, incomplete))


def _last_text(ledger: Ledger) -> str:
    """What the model said in its last answer."""
    for link, _ in back(ledger.links, ledger.tip):
        if isinstance(link, Exchange) and link.standing is Standing.ACCEPTED:
            said = [ledger.wire(seq) for seq in link.said]
            return "".join(_text_of(wire) for wire in said if wire.get("role") == "assistant")
    return ""


def _text_of(message: Wire) -> str:
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
