"""What the parts of one gateway share, and who asks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final, Protocol

from msgspec import Struct

from lockstitch.core.records import Name
from lockstitch.gateway.access.keys import Keyring, presented
from lockstitch.gateway.config.model import LOCAL_TENANT, Config, Guard, Key, Upstream
from lockstitch.gateway.deciding import routing
from lockstitch.gateway.deciding.asked import Api
from lockstitch.gateway.deciding.guard import Guarded, Guarding
from lockstitch.gateway.deciding.refusals import (
    Refusal,
    RequestRefused,
    no_such_api,
    no_such_model,
    too_many_requests,
)
from lockstitch.gateway.headers import REPAIRED, REQUEST_ID, repaired_value
from lockstitch.gateway.keeping.conversations import Conversations
from lockstitch.gateway.keeping.journal import Exchanges
from lockstitch.gateway.keeping.prefixes import Prefixes
from lockstitch.gateway.lines import Headers, LineFailure
from lockstitch.gateway.running.shared_allowance import allowance_here
from lockstitch.gateway.showing.runs import Runs
from lockstitch.gateway.upstreams import Reached, Upstreams
from lockstitch.gateway.watching import logs
from lockstitch.gateway.watching.metrics import Metrics
from lockstitch.store.contract import Store

TRIED: Final = "gateway-tried"
"""What is written to see whether it can be. It is no tenant's (`keeping.journal`), and deleted at
once."""
TRIED_SECONDS: Final = 1.0


class Caller(Struct, kw_only=True, eq=False):
    """Who asks, once."""

    request_id: str
    key: Key | None
    headers: Headers
    """As they came."""
    upstream: str = ""
    """The name of the upstream that answered, for the log."""
    events: int = 0
    notes: list[str] = []
    """What was out of the ordinary, for the log."""
    repairs: list[tuple[str, str | None]] = []
    """What the guard repaired in the request: rule codes and call ids."""

    @property
    def own_headers(self) -> Headers:
        """The headers that the gateway adds to the response."""
        own = [(REQUEST_ID, self.request_id)]
        if self.repairs:
            own.append((REPAIRED, repaired_value(self.repairs)))
        return own

    def again(self, number: int) -> Caller:
        """The same, for one of many requests on one connection."""
        return Caller(request_id=f"{self.request_id}.{number}", key=self.key, headers=self.headers)

    @property
    def tenant(self) -> str:
        return self.key.name if self.key is not None else LOCAL_TENANT

    def note(self, what: str) -> None:
        if what not in self.notes:
            self.notes.append(what)

    def note_failure(self, upstream: str, failure: LineFailure) -> None:
        """A line failed: in its own words, which only the log has."""
        self.note(f"{upstream}: {failure}")

    def guard(self, upstream: Reached) -> Guard:
        own = self.key.guard if self.key is not None else None
        return own if own is not None else upstream.told.guard


class Answerer(Protocol):
    """A request that is being answered."""

    def stop(self, why: str) -> None: ...


class Session(Protocol):
    """A client's WebSocket."""

    def drain(self) -> None: ...


class Passing(Protocol):
    """A client's WebSocket whose frames pass: nobody asks for its key with each of them."""

    def look_at_key(self) -> None:
        """Keys are taken back, and expire, while it is open."""


class World:
    """One gateway's parts."""

    def __init__(
        self, config: Config, store: Store, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.config = config
        self.store = store
        self.clock = clock
        """Seconds since 1970."""
        self.metrics = Metrics()
        self.exchanges = Exchanges(store, took=self.metrics.append_seconds.observe)
        self.conversations = Conversations(store)
        self.runs = Runs(config.limits.events_kept_bytes)
        self.prefixes = Prefixes()
        self._upstreams: Upstreams | None = None
        self.keyring = Keyring(config.keys)
        self.allowance = allowance_here()
        self.running: set[Answerer] = set()
        """Requests that are being answered."""
        self.sessions: set[Session] = set()
        """Clients' WebSockets."""
        self.passing: set[Passing] = set()
        self.journal_failed = False
        """An answer could not be kept, or the journal does not answer."""

    @property
    def upstreams(self) -> Upstreams:
        assert self._upstreams is not None, "connect first"
        return self._upstreams

    def connect(self) -> None:
        """Make the lines to the upstreams. They belong to the running event loop."""
        config = self.config
        self._upstreams = Upstreams(config.upstreams, config.limits, keyed=bool(config.keys))

    async def try_journal(self) -> None:
        """Where the journal has failed, see that the next answer can be kept before it is asked
        for. Raises `StoreError`."""
        if self.journal_failed:
            name = f"{TRIED}/{secrets.token_hex(8)}"
            await self.store.claim(name, owner=TRIED, seconds=TRIED_SECONDS)
            await self.store.delete(name)
            self.journal_failed = False

    def key_of(self, headers: Headers) -> Key | None:
        """Whose key these headers show, now."""
        return self.keyring.holder(presented(headers), now=self.clock())

    def may_ask(self, key: Key | None) -> bool:
        """May whoever has this key, or none, ask at all?"""
        return key is not None or not self.keyring

    def place_for(self, caller: Caller) -> AbstractContextManager[None]:
        """A place among what the caller's key may have under way, for as long as this is open.
        Raises `RequestRefused` if there is none."""
        return nullcontext() if caller.key is None else self._place_of(caller.key)

    @contextmanager
    def _place_of(self, key: Key) -> Iterator[None]:
        exhausted = self.allowance.take(key, self.clock())
        if exhausted is not None:
            self.metrics.refused.labels(exhausted.of).inc()
            most = (
                f"{key.concurrent} at a time"
                if exhausted.of == "concurrent"
                else f"{key.requests_per_minute} a minute"
            )
            what = f"requests (more than {most})"
            raise RequestRefused(too_many_requests(exhausted.retry_after, what))
        try:
            yield
        finally:
            self.allowance.give_back(key)

    def upstreams_for(self, caller: Caller) -> list[Reached]:
        """Those that this caller may use."""
        allowed = caller.key.upstreams if caller.key is not None else None
        return [one for one in self.upstreams if allowed is None or one.name in allowed]

    def some_upstreams_for(
        self,
        caller: Caller,
        *,
        model: str | None = None,
        api: Api | None = None,
        fits: Callable[[Upstream], bool] = lambda told: True,
    ) -> list[Reached]:
        """Those of them that have the model and the API, and fit. Raises `RequestRefused` if there
        is none."""
        found = [
            one
            for one in self.upstreams_for(caller)
            if fits(one.told)
            and (model is None or one.told.serves(model))
            and (api is None or api.dialect in one.told.apis)
        ]
        if not found:
            raise RequestRefused(self._nobody_serves(model, api))
        return found

    def _nobody_serves(self, model: str | None, api: Api | None) -> Refusal:
        """Why no upstream fits: the API, if none has it; else the model."""
        if api is not None and not any(api.dialect in one.told.apis for one in self.upstreams):
            return no_such_api(api)
        return no_such_model(model, keyed=bool(self.keyring))

    def route(
        self,
        caller: Caller,
        api: Api,
        model: str | None,
        *,
        home: str | None = None,
        bound: bool = False,
    ) -> dict[str, Reached]:
        """The upstreams that a request may go to, by name, best first (`routing`). Raises
        `RequestRefused` if there is none."""
        now = self.clock()
        known = self.upstreams.by_name
        names = routing.route(
            [one.told for one in known.values()],
            api=api,
            model=model,
            now=now,
            allowed=caller.key.upstreams if caller.key is not None else None,
            cooling={
                name: one.cooling_until for name, one in known.items() if one.cooling_until > now
            },
            home=home,
            bound=bound,
        )
        if not names:
            raise RequestRefused(self._nobody_serves(model, api))
        return {name: known[name] for name in names}

    def note_findings(
        self, caller: Caller, mode: Guarding, found: Guarded, model: str | None
    ) -> None:
        """Count and log what the guard found in a request. A repair is one warning in the log and
        a part of the response's header."""
        for finding in found.findings:
            self.metrics.guarded.labels(finding.code, mode.value).inc()
            caller.note(f"guard {mode.value}: {finding.code} {finding.key or ''}".rstrip())
        if found.items is None:
            return
        for finding in found.findings:
            repair = (finding.code, finding.key)
            if repair in caller.repairs:
                continue  # the guard of another upstream said so before
            caller.repairs.append(repair)
            self.metrics.repairs.labels(finding.code).inc()
            logs.careful(
                "repaired",
                rule=finding.code,
                call=finding.key or "",
                model=model or "",
                request_id=caller.request_id,
            )

    async def is_anothers(self, caller: Caller, name: Name) -> bool:
        """Does it belong to another key? An upstream would not ask. Without keys, all that an
        upstream has is for everybody who may ask it."""
        return bool(self.keyring) and await self.exchanges.is_anothers(caller.tenant, name)

    def reload(self, config: Config) -> None:
        """Go on with another configuration. What runs keeps the lines it has; those that nobody
        uses any more end by themselves. What passes for a key that is no more ends now."""
        self.config = config
        self.keyring = Keyring(config.keys)
        self.allowance.keep_only(config.keys)
        self.runs.limit(config.limits.events_kept_bytes)
        self.connect()
        for one in list(self.passing):
            one.look_at_key()

    async def close(self) -> None:
        if self._upstreams is not None:
            await self._upstreams.close()
