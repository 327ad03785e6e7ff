"""One random conversation: a journal on this side, the emulator on the other, HTTP in between.

It does what a careful runner does: plans, records before it acts, hears events one by one, settles
an output the moment its tool ends, and dies and comes back anywhere. It keeps its own account of
what was said and done; `socket_judging` compares that with what the provider has in the end."""

from __future__ import annotations

from collections import Counter

from lockstitch.core.continuation import Reason
from lockstitch.core.exchanges import Exchange
from lockstitch.emulator import Emulator
from lockstitch.facts import (
    AnchorAdopted,
    Continue,
    ItemsRemoved,
    Mode,
    ReadBack,
    Refuse,
    Removal,
    Replay,
    SettleFirst,
    compacted,
    item_added,
)
from lockstitch.store.contract import Store
from tests.ledgers.socket_desk import Desk, Died
from tests.ledgers.socket_losses import read_back
from tests.ledgers.socket_model import Wire
from tests.ledgers.socket_provider import MODEL, Provider, Refusal
from tests.ledgers.socket_requests import Requests
from tests.ledgers.socket_tools import Tools

MOST_STEPS = 60
"""Plans in one turn. A conversation that takes more goes round in circles."""
SUMMARY = {"role": "developer", "content": "Summary: things were said."}


class Stuck(AssertionError):
    """The conversation does not come to its end."""


class Talk:
    """A conversation, from its first word to its last."""

    def __init__(self, seed: int, emulator: Emulator, provider: Provider, store: Store) -> None:
        self.desk = Desk(seed, emulator, provider, store)
        self.tools = Tools(self.desk)
        self.requests = Requests(self.desk, self.tools)

    async def run(self) -> None:
        desk = self.desk
        await desk.open()
        try:
            await self._begin()
            for turn in range(desk.turns):
                desk.model.begin(turn)
                await self._speak(turn)
                await self._until_answered()
                if desk.compactions and desk.likely(0.2):
                    await self._compact_here()
        finally:
            await desk.journal.close()

    async def _begin(self) -> None:
        """A conversation of the provider's; or one that goes on from what we never saw."""
        desk = self.desk
        if desk.mode is Mode.CONVERSATION:
            desk.conversation = (await desk.provider.post("/conversations", {}))["id"]
        if not desk.adopts:
            return
        said = "This was said to somebody else."
        body: Wire = {"model": MODEL, "input": said}
        if desk.conversation is not None:
            body["conversation"] = desk.conversation
        answer = await desk.provider.post("/responses", body)
        anchor = desk.conversation or answer["id"]
        last = answer["output"][-1]["id"] if desk.conversation else None
        await desk.journal.append(AnchorAdopted(mode=desk.mode, anchor=anchor, last_item=last))
        desk.account.users.append(said)

    async def _speak(self, turn: int) -> None:
        """The user speaks: at the end, or somewhere behind what was said before."""
        desk, account = self.desk, self.desk.account
        said = f"This is turn {turn}: go ahead."
        places = list(account.snapshots)
        if desk.adopts and desk.mode is Mode.CONVERSATION:
            places = []  # a list cannot fork, and what we never saw cannot be sent anew
        if not (places and desk.likely(0.2)):
            await desk.journal.append(item_added(said))
        else:
            desk.met["fork"] += 1
            place = desk.rng.choice(places)
            account.back_to(place)
            if desk.likely(0.5):
                await desk.journal.append(item_added(said, after=place))
            else:
                back = ItemsRemoved(by=Removal.ROLLBACK, to=place)
                await desk.journal.append(back, item_added(said))
        account.users.append(said)

    async def _until_answered(self) -> None:
        for _ in range(MOST_STEPS):
            try:
                self.desk.may_die(0.02)
                if await self._step():
                    return
            except Died:
                await self.tools.ended()
                self.desk.dying = False
                await self.desk.come_back()
                if self.requests.last:
                    self.desk.note(self.desk.ledger.exchange(self.requests.last))
        raise Stuck(f"Turn {self.desk.model.turn} does not end.")

    async def _step(self) -> bool:
        """Carry out one plan; whether the turn is over."""
        desk = self.desk
        plan = desk.ledger.plan(desk.mode, conversation=desk.conversation)
        desk.met[plan.why.name if isinstance(plan, Replay) else type(plan).__name__] += 1
        match plan:
            case SettleFirst(calls):
                for call in calls:
                    await self.tools.settle(call)
            case ReadBack():
                return await read_back(desk, plan)
            case Refuse(reason=Reason.NOTHING_NEW):
                last = desk.ledger.links[desk.ledger.tip]
                if isinstance(last, Exchange) and desk.note(last):
                    return True
                await self._go_on()
            case Refuse():
                raise Stuck(str(plan))
            case _ if desk.compactions and desk.likely(0.05):
                await self._compact_at_provider(plan)
            case _:
                return await self.requests.send(plan)
        return False

    async def _go_on(self) -> None:
        """Nothing is open, and the model did not say its last word: an answer ended early."""
        said = f"Go on, after {len(self.desk.ledger)} facts."
        await self.desk.journal.append(item_added(said))
        self.desk.account.users.append(said)

    async def _compact_here(self) -> None:
        desk = self.desk
        desk.compactions -= 1
        facts = compacted(desk.ledger, max_items=desk.rng.randint(1, 9), replaced=[SUMMARY])
        if facts:
            desk.met["compaction here"] += 1
            await desk.journal.append(*facts)
            desk.account.compacted()

    async def _compact_at_provider(self, plan: Continue | Replay) -> None:
        """In place of sending it, have all that the plan would send compacted."""
        desk = self.desk
        desk.compactions -= 1
        body: Wire = {"model": MODEL}
        if isinstance(plan, Continue) and plan.mode is Mode.CHAIN:
            body |= {"previous_response_id": plan.anchor, "input": desk.ledger.items(plan)}
        else:
            whole = desk.ledger.plan(Mode.FULL)
            assert isinstance(whole, Replay), whole
            body["input"] = desk.ledger.items(whole)
        try:
            made = await desk.provider.post("/responses/compact", body)
        except Refusal as said:
            if said.code != "previous_response_not_found":
                raise
            if plan.anchor not in desk.account.forgotten:
                raise
            # The next request finds out, too.
            desk.account.allow("anchor-not-found")
            return
        desk.met["compaction there"] += 1
        self.requests.window = made["output"]
        await desk.journal.append(*compacted(desk.ledger, replaced=made["output"]))
        desk.account.compacted()


def met(talk: Talk) -> Counter[str]:
    """What the conversation met: plans, losses, faults that struck, and families of calls."""
    desk = talk.desk
    struck = {f"fault {fault.split()[0]}": n for fault, n in desk.emulator.record.struck.items()}
    calls = desk.ledger.calls.values()
    families = Counter(call.item.family.name for call in calls if call.item.family)
    return desk.met + Counter(struck) + families


def told(talk: Talk) -> str:
    """Everything that is needed to see what happened: the ledger's facts, one a line."""
    desk = talk.desk
    record = desk.emulator.record
    facts = [f"{seq:4} {fact!r:.400}" for seq, fact in enumerate(desk.ledger.facts, 1)]
    return "\n".join([*facts, f"struck: {dict(record.struck)}", f"broken: {dict(record.broken)}"])
