"""In which form a request is sent to an upstream, before anything was tried there.

Everything that decides it lives in this file: forms are listed best first, and the first that can
be made is sent. What follows a try that failed is in `retrying`; who makes a form is elsewhere."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct


class Form(Enum):
    """What of a request is sent."""

    AS_IT_IS = "as the client sent it"
    REPLAYED = "everything, from the journal, in place of the anchor"
    CONVERSATION = "behind all of the conversation, which the gateway keeps"
    STRIPPED = "all of it, without what belongs to another upstream"
    ALONE = "all of it, without what only names something that is kept elsewhere"
    UNSTORED = "as it is, but the upstream shall not keep it"


class Going(Struct, frozen=True, kw_only=True):
    """A request, and the upstream it goes to."""

    anchored: bool = False
    """The client named a response to go on from."""
    local: bool = False
    """The gateway itself gave that response: no upstream has it."""
    anchor_gone: bool = False
    """It was on a connection alone (`store: false`), and that is closed."""
    held: bool = False
    """It stands in a conversation that the gateway keeps."""
    foreign: bool = False
    """It was sent in full before, and something in it belonged to another upstream."""
    names_kept: bool = False
    """Some of its items only name what a provider keeps."""
    store: bool = True
    keeps_state: bool = True
    """Does the upstream keep responses?"""
    at_home: bool = True
    """It said what comes before, or nobody knows who did."""
    first: bool = True
    """The request was meant for this upstream from the start."""


def first_forms(going: Going) -> tuple[Form, ...]:
    """For the upstream that a request goes to first."""
    if not _has_what_comes_before(going):
        return other_forms(going)
    # What cannot be rebuilt goes as it is: the upstream shall say itself what is wrong with it.
    if going.foreign:
        return (Form.STRIPPED, Form.AS_IT_IS)
    if going.anchor_gone:
        return (Form.REPLAYED, Form.AS_IT_IS)
    return (Form.AS_IT_IS,)


def other_forms(going: Going) -> tuple[Form, ...]:
    """For an upstream that has nothing of what a request goes on from."""
    if going.anchored:
        return (Form.REPLAYED,)
    if going.held:
        return (Form.CONVERSATION,)
    if not going.first or not going.at_home:
        return (Form.STRIPPED,)
    # The client sent everything, and it goes where it was meant for.
    if not going.store:
        return (Form.AS_IT_IS,)
    # What is not whole, the upstream shall refuse.
    return (Form.ALONE, Form.UNSTORED) if going.names_kept else (Form.UNSTORED,)


KEPT_HERE: Final = "kept_here"
"""Not a repair: no upstream was ever to have what the request goes on from."""


def why_replayed(going: Going) -> str:
    """What makes it necessary to send everything, for the upstream that a request goes to first."""
    if going.local or (going.at_home and not going.keeps_state):
        return KEPT_HERE
    return "anchor_gone" if going.anchor_gone else "no_anchor_there"


def _has_what_comes_before(going: Going) -> bool:
    return going.keeps_state and going.at_home and not going.held and not going.local
