"""`lockstitch check store:URL`: every conversation of a store, rebuilt from its facts and checked.

What a gateway wrote is judged elsewhere (`checking_exchanges`). Memory holds one conversation at a
time, and the calls that its exchanges leave open."""

from __future__ import annotations

import asyncio
from functools import partial

from lockstitch.cli.checking_exchanges import GatewayChecks
from lockstitch.cli.reporting import STORE, FileReport, Row, row_of
from lockstitch.core import records
from lockstitch.core.arranging import history
from lockstitch.core.errors import LockstitchError
from lockstitch.core.facts import AnyFact
from lockstitch.core.links import Adoption, back
from lockstitch.core.outcomes import Evidence, Outcome
from lockstitch.dialects.examination import examine
from lockstitch.ledgers.ledger import Ledger
from lockstitch.store.contract import Store
from lockstitch.store.errors import StoreError
from lockstitch.store.keys import checked_plain
from lockstitch.store.opening import open_store

SCHEME = "store:"
"""What tells a store from a file on the command line."""


def check_store(named: str, *, anchored: bool) -> list[FileReport]:
    """A report for each conversation; of a store that cannot be read, one that says so."""
    return asyncio.run(_check_store(named.removeprefix(SCHEME), anchored))


async def _check_store(url: str, anchored: bool) -> list[FileReport]:
    reports: list[FileReport] = []
    shown = SCHEME
    try:
        async with open_store(url, create=False) as store:
            shown = f"{SCHEME}{store.url}"
            gateway = GatewayChecks(partial(_facts, store))
            async for summary in store.conversations():
                report = await _check_conversation(store, gateway, summary.conversation, anchored)
                reports.append(report)
    except StoreError as error:
        reports.append(FileReport(path=shown, format=STORE, error=str(error)))
    return reports


async def _facts(store: Store, conversation: str) -> list[AnyFact]:
    return [
        records.decoded(checked_plain(record, conversation, store.url))
        async for record in store.read(conversation)
    ]


async def _check_conversation(
    store: Store, gateway: GatewayChecks, conversation: str, anchored: bool
) -> FileReport:
    path = f"{SCHEME}{store.url}#{conversation}"
    try:
        facts = await _facts(store, conversation)
        if not facts:
            return FileReport(path=path, format=STORE)
        ledger = Ledger.rebuilt(facts)
        rows = await gateway.rows(conversation, facts, anchored=anchored)
    except StoreError:
        raise  # the next conversation would have the same trouble
    except LockstitchError as error:
        return FileReport(path=path, format=STORE, error=f"{path}: {error}")
    if rows is None:
        rows = _rows(ledger, anchored)
    return FileReport(path=path, format=STORE, records=len(facts), rows=rows)


def _rows(ledger: Ledger, anchored: bool) -> list[Row]:
    entries = history(ledger)
    wires = [ledger.wire(seq) for seq in entries]
    adopted = any(isinstance(link, Adoption) for link, _ in back(ledger.links, ledger.tip))
    examination = examine(ledger.dialect, wires, evidence=_evidence(ledger))
    findings = examination.finish(anchored=anchored or adopted)
    return [row_of(finding, lambda place: f"entry {entries[place.at]}") for finding in findings]


def _evidence(ledger: Ledger) -> dict[str, Evidence]:
    """What the ledger knows of calls that have no output: which were never started.

    Of a call that was brought along it knows nothing: whoever had it before may have run it."""
    waiting = [call for call in ledger.calls.values() if call.output is None]
    unknown = {call.item.key for call in waiting if not ledger.is_unstarted(call)}
    return {
        call.item.key: Evidence(Outcome.NEVER_STARTED, "was never started")
        for call in waiting
        if call.item.key is not None and call.item.key not in unknown
    }
