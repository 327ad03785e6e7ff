"""What can happen to a conversation: every fact that a ledger takes, and nothing else.

A fact is past tense, frozen, and holds at most one wire item, as the bytes that came. It names
others by position: `seq`, counted from 1 in the order of the ledger. What follows from a fact is
decided in `ledger`; how facts are kept is in `records`."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import force_setattr

from lockstitch.core.members import Member
from lockstitch.core.outcomes import Outcome

Seq: TypeAlias = int
"""The position of a fact in its ledger. It is the only identity there is."""

START: Seq = 0
"""The position before the first fact: nothing has been said."""


class By(Member):
    """Who gave an item."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"
    """Outputs that a tool gave are settled by it: they belong to their calls, and are no links."""
    IMPORT = "import"
    REWRITE = "rewrite"
    """The caller's filter, or a compaction: it was sent in place of others, and is on no path of
    its own."""


class Mode(Member):
    """How the provider is told what came before."""

    CHAIN = "previous_response_id"
    """Each response names the one before it: a tree. The first request of a chain names none."""
    CONVERSATION = "conversation"
    """The provider keeps one list and appends to it."""
    FULL = "full"
    """Everything is sent every time."""


class Ending(Member):
    """How a response ended."""

    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    """Ended early by a limit; it can be continued."""
    FAILED = "failed"
    """The provider gave up; nothing of it can be continued."""
    CUT = "cut"
    """We stopped hearing it. What came before is known, and the rest is not."""


class Removal(Member):
    """Why items left the conversation."""

    ROLLBACK = "rollback"
    COMPACTION = "compaction"


class Fact(Struct, frozen=True, kw_only=True, gc=False, tag_field="fact"):
    """The root of every fact."""


def _make_writable(fact: Fact, reason: str) -> None:
    """Reasons come from providers, and may hold half of a surrogate pair: no UTF-8 has that."""
    if not reason.isascii():
        written = reason.encode("utf-8", "backslashreplace").decode()
        force_setattr(fact, "reason", written)


class Opened(Fact, frozen=True, kw_only=True, tag="opened"):
    """The ledger began. Always the first fact, and only the first."""

    dialect: str


class ItemAdded(Fact, frozen=True, kw_only=True, tag="item_added"):
    """An item joined the conversation."""

    item: bytes
    by: By
    after: Seq | None = None
    """The link it follows; None is the tip. What a filter gave follows nothing."""


class CallStarted(Fact, frozen=True, kw_only=True, tag="call_started"):
    """The effect of a call may begin from here on."""

    call: Seq
    slot: int = 0
    """Which call of the item, where an item holds several."""


class CallSettled(Fact, frozen=True, kw_only=True, tag="call_settled"):
    """The output of a call is ours, and durable."""

    call: Seq
    item: bytes
    slot: int = 0
    outcome: Outcome = Outcome.FINISHED


class RequestPrepared(Fact, frozen=True, kw_only=True, tag="request_prepared"):
    """A request was built, and proven whole."""

    mode: Mode
    base: Seq
    """The request whose answer is everything before `sent`; `START` for none."""
    covers: Seq
    """The tip it was built from: what was said up to here is in it."""
    sent: tuple[Seq, ...]
    """The items it adds to what `base` left, in the order sent."""
    anchor: str | None = None
    """The response id or conversation id that the provider is to continue; None sends all."""


class RequestSent(Fact, frozen=True, kw_only=True, tag="request_sent"):
    """The request is leaving: from here on the provider may have it."""

    request: Seq


class RequestAccepted(Fact, frozen=True, kw_only=True, tag="request_accepted"):
    """The provider has the items of a request, and no answer to it was seen or made."""

    request: Seq


class RequestRejected(Fact, frozen=True, kw_only=True, tag="request_rejected"):
    """The provider refused the request, or does not have it: as if it had not been sent."""

    request: Seq
    reason: str = ""

    def __post_init__(self) -> None:
        _make_writable(self, self.reason)


class RequestLost(Fact, frozen=True, kw_only=True, tag="request_lost"):
    """No answer was seen. The provider may have the request, or not.

    Also where a conversation is said to be locked: it may be an earlier send that runs there."""

    request: Seq
    reason: str = ""

    def __post_init__(self) -> None:
        _make_writable(self, self.reason)


class ResponseOpened(Fact, frozen=True, kw_only=True, tag="response_opened"):
    """The provider began to answer."""

    request: Seq
    id: str | None = None
    """None where it was read back from a conversation, which does not tell."""


class ItemCompleted(Fact, frozen=True, kw_only=True, tag="item_completed"):
    """The model said an item to its end."""

    request: Seq
    item: bytes


class ResponseEnded(Fact, frozen=True, kw_only=True, tag="response_ended"):
    """The response is over."""

    request: Seq
    ending: Ending = Ending.COMPLETED


class ItemsRemoved(Fact, frozen=True, kw_only=True, tag="items_removed"):
    """What was said is no longer part of the conversation; it stays in the ledger."""

    by: Removal
    to: Seq = START
    """Rollback: the link that is the tip now. Compaction: the last link that goes, with all before
    it; an earlier compaction stands where its items stand."""
    replaced: tuple[Seq, ...] = ()
    """Compaction: the items that stand in for what went."""


class AnchorAdopted(Fact, frozen=True, kw_only=True, tag="anchor_adopted"):
    """The conversation goes on from something at the provider that we never saw."""

    mode: Mode
    anchor: str
    last_item: str | None = None
    """The id of the newest item of an adopted conversation: what is listed behind it is ours."""


class AnchorLost(Fact, frozen=True, kw_only=True, tag="anchor_lost"):
    """The provider no longer knows a response or a conversation."""

    anchor: str


class Noted(Fact, frozen=True, kw_only=True, tag="noted"):
    """A driver wrote down something of its own. Nothing follows from it."""

    kind: str
    """What the note is about; its driver knows."""
    note: bytes


MODEL_NOTE: Final = "model"
"""The kind of a note that names the model which is asked from here on, in UTF-8."""

WITH_ITEM: Final = (ItemAdded, CallSettled, ItemCompleted)
"""The facts that hold a wire item."""

AnyFact: TypeAlias = (
    Opened
    | ItemAdded
    | CallStarted
    | CallSettled
    | RequestPrepared
    | RequestSent
    | RequestAccepted
    | RequestRejected
    | RequestLost
    | ResponseOpened
    | ItemCompleted
    | ResponseEnded
    | ItemsRemoved
    | AnchorAdopted
    | AnchorLost
    | Noted
)
