"""The ledger's front door: wire items as dictionaries in, plans and items to send out."""

from lockstitch.ledgers.compacting import compacted
from lockstitch.ledgers.finding import ConversationChanged, found
from lockstitch.ledgers.ledger import Ledger
from lockstitch.ledgers.making import (
    call_settled,
    call_settled_honestly,
    encoded,
    item_added,
    item_completed,
)
from lockstitch.ledgers.matching import Follower, Position, matched, resent
from lockstitch.ledgers.preparing import request_prepared

__all__ = [
    "ConversationChanged",
    "Follower",
    "Ledger",
    "Position",
    "call_settled",
    "call_settled_honestly",
    "compacted",
    "encoded",
    "found",
    "item_added",
    "item_completed",
    "matched",
    "request_prepared",
    "resent",
]
