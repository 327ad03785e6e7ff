"""Where a request stands, from try to try: who is asked next, with what, and what was tried.

What follows a try that failed is decided in `deciding.retrying`; who acts is `answering`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from lockstitch.gateway.deciding import routing
from lockstitch.gateway.responding.replaying import Sending
from lockstitch.gateway.upstreams import Reached


class Course(Struct):
    """One request's way through its upstreams."""

    upstream: Reached
    """Who is asked,"""
    sending: Sending
    """and with what."""
    made: int = 0
    """Tries so far,"""
    made_here: int = 0
    """and those at this upstream."""
    left: set[str] = field(default_factory=set)
    """Upstreams that are not asked any more, by name."""
    stripped: bool = False
    """What belongs to another upstream was left out."""
    in_doubt: bool = False
    """A try went to a conversation, and may have arrived after all."""

    def begin_try(self) -> None:
        self.made += 1
        self.made_here += 1

    def next_of(self, route: Sequence[str]) -> str | None:
        """The next upstream on its route, if there is one."""
        return routing.next_upstream(route, {*self.left, self.upstream.name})

    def leave_for(self, upstream: Reached) -> None:
        """Go on at another upstream."""
        self.left.add(self.upstream.name)
        self.upstream, self.made_here = upstream, 0
