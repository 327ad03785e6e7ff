"""Who may write to a conversation: claims, by the clock of the server."""

from __future__ import annotations

from lockstitch.store.contract import Claim
from lockstitch.store.errors import ConversationBusy, StoreError
from lockstitch.store.postgres.pool import Connection
from lockstitch.store.postgres.queries import QUERIES
from lockstitch.store.postgres.text import kept, key, original
from lockstitch.store.stepping import claim_lost, conversation_busy, out_of_step


async def claim(
    connection: Connection, url: str, conversation: str, *, owner: str, seconds: float
) -> Claim:
    """Raises `ConversationBusy` at once."""
    row = await connection.fetchrow(
        QUERIES["claim"], key(conversation), kept(owner), float(seconds), kept(conversation)
    )
    if row is not None:
        return Claim(conversation, owner, row["token"], row["length"])
    holder = await connection.fetchrow(QUERIES["holder"], key(conversation))
    if holder is None or holder["token"] is None:
        raise ConversationBusy(
            f"Conversation {conversation!r} in {url} was held a moment ago. Try again."
        )
    raise conversation_busy(
        url,
        conversation,
        owner=original(holder["owner"]),
        token=holder["token"],
        seconds_left=max(holder["seconds_left"], 0),
    )


async def renew(connection: Connection, url: str, claim: Claim, *, seconds: float) -> None:
    """Raises `ClaimLost`."""
    row = await connection.fetchrow(
        QUERIES["renew"], key(claim.conversation), claim.token, float(seconds)
    )
    if row is None:
        raise await why_refused(connection, url, claim)


async def release(connection: Connection, claim: Claim) -> None:
    """A claim that was lost is left alone."""
    await connection.execute(QUERIES["release"], key(claim.conversation), claim.token)


async def why_refused(
    connection: Connection, url: str, claim: Claim, after: int = 0, count: int = 0
) -> StoreError:
    """Why a write with this claim, of ``count`` records behind ``after``, was refused."""
    holder = await connection.fetchrow(QUERIES["holder"], key(claim.conversation))
    if holder is not None and holder["token"] == claim.token:
        return out_of_step(
            url, claim.conversation, length=holder["length"], after=after, count=count
        )
    owner = None
    if holder is not None and holder["token"] is not None:
        owner = original(holder["owner"])
    return claim_lost(url, claim.conversation, there=holder is not None, owner=owner)
