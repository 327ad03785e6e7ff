"""A ledger of wire items: the core's, with a dialect chosen by name.

What is planned is rendered here as the dictionaries to send. Facts are made in `making`,
`preparing`, `compacting`, `matching` and `finding`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lockstitch.core import continuation, ledger
from lockstitch.core.arranging import NEW_KEY, Sending, history
from lockstitch.core.continuation import Continue, Plan, Replay
from lockstitch.core.errors import IllegalFact, UnknownMode
from lockstitch.core.facts import AnyFact, Mode, Opened, Seq
from lockstitch.dialects.base import Dialect, Wire
from lockstitch.dialects.detection import by_name
from lockstitch.dialects.reading import decoded, reading


class Ledger(ledger.Ledger):
    """The ledger of one conversation: facts in, state derived, what to send next out."""

    def __init__(self, dialect: str = "responses") -> None:
        super().__init__(reading(dialect))
        self.dialect: Dialect = by_name(dialect)

    @classmethod
    def rebuilt(cls, facts: Iterable[AnyFact]) -> Ledger:
        """The ledger that these facts make, the first of them included."""
        facts = iter(facts)
        first = next(facts, None)
        if not isinstance(first, Opened):
            raise IllegalFact("These are not the facts of a ledger: the first is not its opening.")
        made = cls(first.dialect)
        made.extend(facts)
        return made

    def wire(self, seq: Seq) -> Wire:
        """The wire item of an entry."""
        return decoded(self.item(seq))

    def history(self, tip: Seq | None = None) -> list[Wire]:
        """The conversation on the path to ``tip``, as it was said here."""
        return [self.wire(seq) for seq in history(self, tip)]

    def plan(
        self,
        mode: Mode | str = Mode.CHAIN,
        *,
        tip: Seq | None = None,
        conversation: str | None = None,
    ) -> Plan:
        """What to send next; see `continuation`."""
        if not isinstance(mode, Mode):
            mode = mode_named(mode)
        return continuation.plan(self, mode, tip=tip, conversation=conversation)

    def items(self, plan: Continue | Replay) -> list[Wire]:
        """The wire items of a plan, in the order to be sent: all of them for a replay."""
        return [*map(self.rendered, self.sendings(plan))]

    def sendings(self, plan: Continue | Replay) -> Sequence[Sending]:
        """The entries of a plan, in the order to be sent."""
        if isinstance(plan, Continue):
            return plan.items
        if isinstance(plan, Replay):
            return (*plan.before(self), *plan.items)
        raise nothing_to_send(plan)

    def rendered(self, sending: Sending) -> Wire:
        """The wire item of an entry, as it is sent."""
        wire = decoded(self.item(sending.seq))
        if sending.bare:
            return self.dialect.strip_id(wire, 0)
        if sending.rekeyed is not None:
            return self.dialect.rekey(wire, 0, sending.rekeyed, sending.rekeyed + NEW_KEY)
        return wire


def nothing_to_send(plan: object) -> IllegalFact:
    """A plan was taken for one that sends something."""
    kind, says = type(plan).__name__, str(plan).rstrip(".")
    return IllegalFact(f"{kind} is no plan that sends anything: {says}. Continue and Replay do.")


def mode_named(mode: Mode | str) -> Mode:
    """The way of continuing that a caller named."""
    try:
        return Mode(mode)
    except ValueError:
        known = ", ".join(one.value for one in Mode)
        raise UnknownMode(f"There is no mode {mode!r}. Choose one of: {known}.") from None
