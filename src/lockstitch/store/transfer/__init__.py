"""A store written out as JSONL, and read in again; nothing is lost."""

from lockstitch.store.transfer.spools import expect_export
from lockstitch.store.transfer.transfer import Exported, Imported, export_store, import_store

__all__ = ["Exported", "Imported", "expect_export", "export_store", "import_store"]
