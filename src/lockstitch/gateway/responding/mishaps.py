"""What a client is told when something was raised: one table for all doors."""

from __future__ import annotations

from aiohttp import web

from lockstitch.gateway.deciding import refusals
from lockstitch.gateway.deciding.asked import NotARequest
from lockstitch.gateway.deciding.refusals import Refusal, RequestRefused
from lockstitch.gateway.keeping.recording import NotDurable
from lockstitch.gateway.lines import LineFailure
from lockstitch.gateway.watching import logs
from lockstitch.gateway.world import Caller, World
from lockstitch.store.errors import StoreError


def refusal_for(error: Exception, world: World, caller: Caller) -> Refusal:
    """What to say to the client; what is a mistake of ours goes into the log, with its trace."""
    match error:
        case NotARequest():
            return refusals.not_a_request(error)
        case RequestRefused():
            return error.refusal
        case TimeoutError():
            return Refusal(status=408, message="The request did not arrive in time. Send it again.")
        case StoreError() | NotDurable():
            logs.careful("journal", why=str(error), request_id=caller.request_id)
            return refusals.journal_unavailable(asked=bool(caller.upstream))
        case LineFailure():
            caller.note_failure(caller.upstream, error)
            return refusals.unreachable(caller.upstream, error)
        case web.HTTPException():
            return Refusal(status=error.status, message=error.reason)
    logs.went_wrong("a mistake of the gateway", error, request_id=caller.request_id)
    return Refusal(
        status=500,
        message=f"The gateway made a mistake. Its log has more: {caller.request_id}.",
        type="server_error",
        code="gateway_error",
    )
