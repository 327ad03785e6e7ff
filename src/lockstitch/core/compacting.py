"""Where a conversation may be cut: behind which links, so that nothing is torn apart.

The cut itself is a fact, `ItemsRemoved`; this only finds the place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstitch.core.arranging import arranged
from lockstitch.core.errors import CannotTrim
from lockstitch.core.facts import START, Seq
from lockstitch.core.ledger import Ledger
from lockstitch.core.links import back
from lockstitch.core.trimming import cut_points, newest


def cut_behind(
    ledger: Ledger, limits: Sequence[tuple[Callable[[Seq], int], int]], *, tip: Seq | None = None
) -> Seq:
    """The link behind which the newest part begins that fits the limits; `START` if all fits.

    ``limits`` are pairs of the cost of one entry and the most that all may cost. Where not even
    the newest whole part fits, the cut is behind the last link, and nothing is left; where that
    would lose a call that waits for its output, `CannotTrim` is raised."""
    tip = ledger.link(ledger.tip if tip is None else tip).seq
    links = [link for link, _ in back(ledger.links, tip)][::-1]
    found = arranged(links)
    entries = found.entries
    ends_at = {start: link.seq for start, link in zip(found.starts[1:], links, strict=False)}
    if links:
        ends_at[len(entries)] = links[-1].seq
    whole = cut_points([ledger.parts[seq] for seq in entries])
    allowed = [may and (at == 0 or at in ends_at) for at, may in enumerate(whole)]
    if found.unsettled:
        # A call without its output stays, with what follows it: its output is still to come.
        waiting = {call.seq for call in found.unsettled}
        first_open = next(at for at, seq in enumerate(entries) if seq in waiting)
        allowed[first_open + 1 :] = [False] * (len(allowed) - first_open - 1)
    costs = [(lambda at, cost=cost: cost(entries[at]), most) for cost, most in limits]
    first = newest(allowed, costs)
    if not allowed[first]:
        named = ", ".join(call.named for call in found.unsettled)
        raise CannotTrim(
            f"The limits cannot be met: {named} has no output yet, so it and everything after it "
            "must stay. Add its output first, or raise the limits."
        )
    return START if first == 0 else ends_at[first]
