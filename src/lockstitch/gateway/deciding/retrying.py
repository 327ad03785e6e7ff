"""What to do after a try that failed, as a table.

Everything that decides whether a request is sent again, where, and in which form, lives in this
file. A row lists what is wanted, best first; the first that is possible is done. What a failure
says is read in `upstream.said`, what that means in `upstream.failures`. How a request is sent at
first is in `sending`. Who acts is elsewhere."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from lockstitch.gateway.lines import LineFailure
from lockstitch.upstream.contract import Fate
from lockstitch.upstream.failures import FATE_OF_CODE, FATE_OF_TYPE, FATE_OF_WORDS, fate_of
from lockstitch.upstream.said import Said

LONGEST_WAIT_SECONDS: Final = 5.0
"""A client waits this long for a busy upstream without noticing. If the upstream asks for more,
the client is told, and decides itself."""

WAITS_SECONDS: Final = (0.0, 0.2, 0.8, 2.0)
"""Before the first, second … try behind one that was lost or never left; then the last again."""

LATE_LISTING_SECONDS: Final = 0.5
"""Before a conversation is read back: what it lists may be a moment old."""

LOCKED_WAITS_SECONDS: Final = (0.5, 1.0, 2.0)
"""A conversation is locked while another response runs on it: "Please retry in a few seconds"."""


class Shown(IntEnum):
    """How much a client has seen."""

    NOTHING = 0
    BEGUN = 1
    """That there is a response, and nothing of what it says."""
    MORE = 2


class Sent(Enum):
    """What the try that failed went on from, as the upstream saw it."""

    UNANCHORED = "everything, in one request"
    """The client's own full input, a replay, or what the gateway keeps the state of."""
    KNOWN_CHAIN = "behind a response, of which the journal has the whole chain"
    UNKNOWN_CHAIN = "behind a response that only the upstream knows"
    CONVERSATION = "to a conversation that the upstream keeps"


class Failed(Enum):
    """What became of the try."""

    UNSENT = "it never left"
    BUSY = "not taken: later"
    LOST = "nobody knows"
    ANCHOR_LOST = "not taken: what it goes on from is gone"
    LOCKED = "not taken: the conversation is in use"
    NEW_CONNECTION = "not taken: the connection is used up"
    FOREIGN = "not taken: it holds what another upstream encrypted"
    REFUSED = "will never be taken"
    UNCLASSIFIED = "in words that no table knows"


class Want(Enum):
    """What a row of the table may ask for."""

    AGAIN = "again"
    AGAIN_IF_SOON = "again, if the upstream says when, and that is soon"
    AGAIN_WHEN_FREE = "again, after a moment"
    REPLAY = "again, with everything and without the anchor"
    ELSEWHERE = "at another upstream"
    STRIPPED = "again, without what belongs to another upstream"
    READ_BACK = "again, if the conversation proves that it is not there"


_AGAIN, _SOON, _FREE = Want.AGAIN, Want.AGAIN_IF_SOON, Want.AGAIN_WHEN_FREE
_REPLAY, _ELSEWHERE, _STRIPPED = Want.REPLAY, Want.ELSEWHERE, Want.STRIPPED
_READ_BACK = Want.READ_BACK

TABLE: Final[dict[Failed, dict[Sent, tuple[Want, ...]]]] = {
    # It cannot have arrived, so sending it once more is the first time.
    Failed.UNSENT: {
        Sent.UNANCHORED: (_AGAIN, _ELSEWHERE),
        Sent.KNOWN_CHAIN: (_AGAIN, _ELSEWHERE),
        Sent.UNKNOWN_CHAIN: (_AGAIN,),
        Sent.CONVERSATION: (_AGAIN,),
    },
    # 429 and 503. Without a time, or with a long one, waiting is the client's to decide.
    Failed.BUSY: {
        Sent.UNANCHORED: (_SOON, _ELSEWHERE),
        Sent.KNOWN_CHAIN: (_SOON, _ELSEWHERE),
        Sent.UNKNOWN_CHAIN: (_SOON,),
        Sent.CONVERSATION: (_SOON,),
    },
    # Responses are a tree: a second send behind the same anchor, or of everything, is a sibling
    # of the first, and nobody goes on from that one. A conversation is a list, and would have it
    # twice: it is looked at first, and in doubt the client, who can do the same, is told.
    Failed.LOST: {
        Sent.UNANCHORED: (_AGAIN, _ELSEWHERE),
        Sent.KNOWN_CHAIN: (_AGAIN, _ELSEWHERE),
        Sent.UNKNOWN_CHAIN: (_AGAIN,),
        Sent.CONVERSATION: (_READ_BACK,),
    },
    # Only where the journal has everything is there something to send in its place. A lost
    # conversation cannot be replayed: the client named it, and will name it again.
    Failed.ANCHOR_LOST: {
        Sent.UNANCHORED: (),
        Sent.KNOWN_CHAIN: (_REPLAY,),
        Sent.UNKNOWN_CHAIN: (),
        Sent.CONVERSATION: (),
    },
    # Another response runs there; it may be an earlier try of ours (`in_doubt`).
    Failed.LOCKED: {
        Sent.UNANCHORED: (),
        Sent.KNOWN_CHAIN: (),
        Sent.UNKNOWN_CHAIN: (),
        Sent.CONVERSATION: (_FREE,),
    },
    # A socket is old, or has too many lanes. What was not stored is gone with it; the upstream
    # says so next (`ANCHOR_LOST`), unless it is known beforehand (`anchor_gone`).
    Failed.NEW_CONNECTION: {
        Sent.UNANCHORED: (_AGAIN, _ELSEWHERE),
        Sent.KNOWN_CHAIN: (_AGAIN, _ELSEWHERE),
        Sent.UNKNOWN_CHAIN: (_AGAIN,),
        Sent.CONVERSATION: (_AGAIN,),
    },
    # A history that began at another upstream, of which nobody here remembers: who sends all of it
    # does not say where it was said. It may also come in one piece behind a warm-up.
    Failed.FOREIGN: {
        Sent.UNANCHORED: (_STRIPPED,),
        Sent.KNOWN_CHAIN: (_STRIPPED,),
        Sent.UNKNOWN_CHAIN: (),
        Sent.CONVERSATION: (),
    },
    Failed.REFUSED: {
        Sent.UNANCHORED: (),
        Sent.KNOWN_CHAIN: (),
        Sent.UNKNOWN_CHAIN: (),
        Sent.CONVERSATION: (),
    },
    # "A wording that is not known passes unchanged."
    Failed.UNCLASSIFIED: {
        Sent.UNANCHORED: (),
        Sent.KNOWN_CHAIN: (),
        Sent.UNKNOWN_CHAIN: (),
        Sent.CONVERSATION: (),
    },
}
"""Where nothing of a row is possible the client gets the upstream's own answer, or, where there is
none that it could be given, a `response.failed`."""

_FAILED_BY_FATE: Final = {
    Fate.REFUSED: Failed.REFUSED,
    Fate.BUSY: Failed.BUSY,
    Fate.LOST: Failed.LOST,
    Fate.ANCHOR_LOST: Failed.ANCHOR_LOST,
    Fate.LOCKED: Failed.LOCKED,
    Fate.NEW_CONNECTION: Failed.NEW_CONNECTION,
}

FOREIGN_CODE: Final = "invalid_encrypted_content"

LOST_TYPES: Final = frozenset({"server_error", "api_error", "internal_error", "timeout_error"})
"""In an event, which has no status: what a 500 would have been."""


class Try(Struct, frozen=True, kw_only=True):
    """A try that failed, and what is left to do."""

    sent: Sent
    failure: Said | LineFailure
    """What the upstream said, or how the line failed."""
    anchor: str | None = None
    """What the request went on from; some upstreams only name it."""
    shown: int = Shown.NOTHING
    in_stream: bool = False
    """The upstream said it in an event, which can be passed on as it is after others."""
    made: int = 1
    """Tries so far, with this one."""
    tries_left: int = 0
    others_left: bool = False
    """There are upstreams that were not tried, and the request may go to them."""
    may_be_foreign: bool = False
    """What it holds may have been said by another upstream, and was not left out yet."""
    background: bool = False
    provider_acts: bool = False
    """The provider may call tools itself that do something (`Asked.provider_acts`)."""
    anchor_gone: bool = False
    """What it goes on from was on the connection alone (`store: false`), and that is closed."""
    can_read_back: bool = False
    """It went to a conversation, no response began that we heard of, and what it holds would be
    known again in a listing (`reading_back`)."""
    in_doubt: bool = False
    """An earlier try went to a conversation, and may have arrived after all."""
    unattended: bool = False
    """Nobody waits for another try: the client has gone, or the gateway stops."""


class Again(Struct, frozen=True):
    """Send the same request to the same upstream, on another connection."""

    after: float = 0.0
    """Seconds."""


class AgainReplayed(Struct, frozen=True):
    """Send everything, from the journal, to the same upstream; if that is not whole, pass on."""

    after: float = 0.0
    """Seconds."""


class Elsewhere(Struct, frozen=True):
    """Send everything to the next upstream, without what belongs to this one (`portable.abroad`);
    if that cannot travel, pass on."""


class AgainStripped(Struct, frozen=True):
    """Send the same to the same upstream, without what belongs to another one."""


class PassOn(Struct, frozen=True):
    """Give the client what the upstream said, unchanged."""


class Fail(Struct, frozen=True):
    """End with an answer of the gateway's own: a `response.failed` if a stream has begun,
    otherwise an error (502, or 504 after a timeout)."""

    code: str
    message: str


class ReadBack(Struct, frozen=True):
    """Look what the conversation lists, and send the same again if it is proven not to be there
    (`reading_back.is_absent`)."""

    otherwise: PassOn | Fail
    after: float = LATE_LISTING_SECONDS
    """Seconds."""


Next: TypeAlias = Again | AgainReplayed | AgainStripped | Elsewhere | ReadBack | PassOn | Fail


def goes_on(step: Next) -> bool:
    """Does another try follow?"""
    return not isinstance(step, PassOn | Fail)


def failed(failure: Said | LineFailure, *, anchor: str | None = None) -> Failed:
    """What became of a try."""
    if isinstance(failure, LineFailure):
        return Failed.LOST if failure.sent else Failed.UNSENT
    if failure.code == FOREIGN_CODE:
        return Failed.FOREIGN
    fate = fate_of(failure, anchor=anchor)
    if fate is Fate.LOST and failure.status is None and not _is_known(failure):
        return Failed.UNCLASSIFIED
    return _FAILED_BY_FATE[fate]


def _is_known(said: Said) -> bool:
    names = {said.code, said.type}
    return (
        bool(names & LOST_TYPES)
        or said.code in FATE_OF_CODE
        or said.type in FATE_OF_TYPE
        or any(words.search(said.message) for words, _ in FATE_OF_WORDS)
    )


def next_step(one: Try) -> Next:
    """What to do after a try that failed."""
    what = failed(one.failure, anchor=one.anchor)
    if one.unattended:
        return _end(one)
    if one.shown >= Shown.MORE:
        return _end(one)  # the client has begun to act on what it saw
    careful = _careful(one, what)
    if careful is not None:
        return careful
    for want in TABLE[what][one.sent]:
        step = _possible(want, one)
        if isinstance(step, Again) and one.in_doubt:
            step = _read_back(one, step.after)
        if step is not None:
            return step
    return _end(one)


def _careful(one: Try, what: Failed) -> Next | None:
    """Requests that do more than make a sibling.

    `background: true`: the response runs to its end whether anybody listens or not, so a second
    one costs twice, and both can be found by their ids. The client is told, and asks for it by
    its id if it saw one. Tools that the provider calls
    unasked may have been called. `store` changes nothing here: what an upstream keeps of a lost
    try is a sibling that nobody names, and where nothing is kept not even that."""
    listed = one.sent is Sent.CONVERSATION
    if one.shown != Shown.NOTHING and (listed or one.background) and isinstance(one.failure, Said):
        return _end(one)  # the very response that the client knows has failed, and says so
    if what is Failed.LOST and (one.background or one.provider_acts):
        return _end(one)
    return None


def is_repeatable(one: Try) -> bool:
    """May the client send it again by itself? It would not know what it does."""
    if failed(one.failure, anchor=one.anchor) is not Failed.LOST and not one.in_doubt:
        return True  # nobody has it
    return not (one.background or one.provider_acts or one.sent is Sent.CONVERSATION)


def _possible(want: Want, one: Try) -> Next | None:
    if want is Want.STRIPPED:
        return AgainStripped() if one.may_be_foreign else None
    if want is Want.ELSEWHERE:
        if not one.others_left:
            return None
        return Elsewhere()
    if want is Want.REPLAY:
        # No repetition but a repair, and the last of its kind: a replay has no anchor to lose.
        return AgainReplayed()
    if one.tries_left <= 0:
        return None
    match want:
        case Want.READ_BACK:
            return _read_back(one)
        case Want.AGAIN:
            if one.anchor_gone and one.sent is Sent.KNOWN_CHAIN:
                return AgainReplayed(_nth(WAITS_SECONDS, one.made))
            return Again(_nth(WAITS_SECONDS, one.made))
        case Want.AGAIN_IF_SOON:
            wait = one.failure.retry_after if isinstance(one.failure, Said) else None
            return Again(wait) if wait is not None and wait <= LONGEST_WAIT_SECONDS else None
        case Want.AGAIN_WHEN_FREE:
            wait = one.failure.retry_after if isinstance(one.failure, Said) else None
            if wait is not None and wait > LONGEST_WAIT_SECONDS:
                return None
            return Again(_nth(LOCKED_WAITS_SECONDS, one.made) if wait is None else wait)


def _read_back(one: Try, after: float = 0.0) -> ReadBack | None:
    if not one.can_read_back:
        return None
    return ReadBack(_end(one), max(after, LATE_LISTING_SECONDS))


def _nth(waits: tuple[float, ...], made: int) -> float:
    return waits[min(max(made, 1), len(waits)) - 1]


def _end(one: Try) -> PassOn | Fail:
    if isinstance(one.failure, LineFailure):
        return Fail("server_error", str(one.failure))
    if one.shown != Shown.NOTHING and not one.in_stream:
        # The client reads a stream: a status and a body cannot follow it.
        said = one.failure
        return Fail(
            said.code or said.type or "server_error", said.message or "The upstream failed."
        )
    return PassOn()
