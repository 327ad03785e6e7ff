"""Where conversations are kept: SQLite, PostgreSQL or memory, behind one contract."""

from lockstitch.store.contract import Claim, Found, Stats, Store, Summary
from lockstitch.store.journal import Journal, JournalStale, kept_ledger
from lockstitch.store.opening import open_store

__all__ = [
    "Claim",
    "Found",
    "Journal",
    "JournalStale",
    "Stats",
    "Store",
    "Summary",
    "kept_ledger",
    "open_store",
]
