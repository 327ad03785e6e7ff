"""The faults that act on what the provider remembers, before it looks at a request."""

from collections.abc import Callable
from typing import Any

from lockstitch.emulator import refusals
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.responses.store import Responses


def meet(
    struck: Callable[[str], Fault | None],
    request: dict[str, Any],
    responses: Responses,
    forget_cache: Callable[[], None] | None = None,
) -> None:
    """Forget what is to be forgotten; refuse a conversation that is to be locked.

    `struck` gives the fault of a name if one strikes, `forget_cache` empties the connection's own
    memory where there is one."""
    forget = struck("forget")
    if forget is not None:
        if forget_cache is not None:
            forget_cache()
        what, anchor = forget.word("what"), request.get("previous_response_id")
        if what == "everything":
            responses.forget()
        elif what == "anchor" and isinstance(anchor, str):
            responses.forget(anchor)
    if request.get("conversation") is not None and struck("lock") is not None:
        raise refusals.conversation_locked()
