"""Which upstreams a request may go to, in which order. Data in, decision out.

A chain stays where it began: what it leans on (encrypted reasoning, item ids, stored responses) is
there. What lives at one upstream alone, a conversation, goes nowhere else. Time is an argument;
what makes an upstream cool down is decided by the caller, with `cooling_until`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from lockstitch.gateway.deciding.asked import Api

COOLING_SECONDS: Final = 10.0
"""For an upstream that could not be reached or was busy without saying how long. Long enough that
not every request pays for finding out, short enough that one that is back is soon used again."""

LONGEST_COOLING_SECONDS: Final = 60.0
"""Whatever an upstream asks for: it is asked again after a minute, by one request."""


class Candidate(Protocol):
    """An upstream, as far as choosing one goes."""

    @property
    def name(self) -> str: ...

    @property
    def apis(self) -> Sequence[str]: ...

    def serves(self, model: str) -> bool: ...


def route(
    upstreams: Sequence[Candidate],
    *,
    api: Api,
    model: str | None,
    now: float,
    allowed: Collection[str] | None = None,
    cooling: Mapping[str, float] | None = None,
    home: str | None = None,
    bound: bool = False,
) -> tuple[str, ...]:
    """The names of the upstreams for a request, best first: in the order of the file, those that
    cool down last.

    ``allowed``: those that the key may use; None for all. ``cooling``: until when an upstream is
    to be left alone. ``home``: where the chain is; it comes first, cooling or not, because only
    there it goes on as it is. ``bound``: it cannot be anywhere else (a conversation that the
    upstream keeps)."""
    fitting = [
        upstream.name
        for upstream in upstreams
        if serves(upstream, api, model) and (allowed is None or upstream.name in allowed)
    ]
    if bound:
        return tuple(name for name in fitting if name == home)
    if cooling:
        # Of those that cool down the one that is first to be back is tried first.
        fitting.sort(key=lambda name: max(cooling.get(name, now), now))
    if home in fitting:
        fitting.remove(home)
        fitting.insert(0, home)
    return tuple(fitting)


def next_upstream(route: Iterable[str], tried: Collection[str]) -> str | None:
    """Where to go after these have failed; None if there is nobody left."""
    return next((name for name in route if name not in tried), None)


def serves(upstream: Candidate, api: Api, model: str | None) -> bool:
    """Does this upstream answer such requests? Where the request names no model (a stored prompt
    does), every upstream of the API may know it."""
    return api.dialect in upstream.apis and (model is None or upstream.serves(model))


def cooling_until(now: float, retry_after: float | None = None) -> float:
    """Until when an upstream is left alone that failed now."""
    seconds = COOLING_SECONDS if retry_after is None else retry_after
    return now + min(max(seconds, 0.0), LONGEST_COOLING_SECONDS)
