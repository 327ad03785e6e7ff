"""One streamed request over HTTP, sent with an official client: its key, address and timeouts.

The client builds and sends; the bytes of the answer are read here, because only they are exact, and
because a model object for each event costs more than all the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Final

from lockstitch.upstream.answers import Answer
from lockstitch.upstream.contract import Fate, Heard, UpstreamFailure
from lockstitch.upstream.failures import (
    Stage,
    failure_of_ours,
    failure_raised,
    library_errors,
)
from lockstitch.upstream.sse import Events, EventTooLarge

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI

LINGER_SECONDS: Final = 0.5
"""How long the end of the body, and what was used, is waited for when all was said. A connection
whose body ended is used again; one that takes longer is given up."""

_EVENT_STREAM: Final = "text/event-stream"


async def hear(
    client: AsyncOpenAI | AsyncAnthropic,
    stream_class: Any,
    path: str,
    body: Mapping[str, Any],
    answer: Answer,
    *,
    anchor: str | None = None,
) -> AsyncGenerator[Heard, None]:
    """Send a request, and tell what its answer says. Ends as `Upstream.stream` does.

    `stream_class` is the client's own class of streams: it is never iterated, it only keeps the
    response, whichever HTTP library made that."""
    response = await _sent(client, stream_class, path, body, anchor)
    failure: UpstreamFailure | None = None
    try:
        async with aclosing(_batches(response)) as batches:
            try:
                async for batch in batches:
                    for data in batch:
                        for heard in answer.hear(data):
                            yield heard
                    if answer.said_all:
                        await _linger(batches, answer)
                        break
            except UpstreamFailure as raised:
                failure = raised
    finally:
        await response.aclose()
    for heard in answer.last():
        yield heard
    if not answer.said_all:
        raise failure or _broken_off(response)


async def _sent(
    client: Any, stream_class: Any, path: str, body: Mapping[str, Any], anchor: str | None
) -> Any:
    """The answer's head; its body is still to be read."""
    try:
        stream = await client.post(
            path, cast_to=object, body=body, stream=True, stream_cls=stream_class
        )
    except library_errors() as error:
        raise failure_raised(error, anchor=anchor) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise failure_of_ours(
            f"The request cannot be written as JSON: {error}", Fate.REFUSED, Stage.UNSENT
        ) from error
    return stream.response


async def _batches(response: Any) -> AsyncGenerator[list[bytes], None]:
    """The data of events, as many at a time as came at once."""
    events = Events()
    try:
        async for piece in response.aiter_bytes():
            batch = events.feed(piece)
            if batch:
                yield batch
    except library_errors() as error:
        raise failure_raised(error, stage=Stage.HEARD) from error
    except EventTooLarge as error:
        raise failure_of_ours(str(error), Fate.LOST, Stage.HEARD) from error


async def _linger(batches: AsyncGenerator[list[bytes], None], answer: Answer) -> None:
    """Hear what comes behind the last word, if it comes soon."""
    with suppress(TimeoutError, UpstreamFailure):
        async with asyncio.timeout(LINGER_SECONDS):
            async for batch in batches:
                for data in batch:
                    answer.hear(data)


def _broken_off(response: Any) -> UpstreamFailure:
    kind = str(response.headers.get("content-type", ""))
    if _EVENT_STREAM not in kind:
        what = f"The answer is no stream of events but {kind or 'of no type'}"
    else:
        what = "The stream ended before the answer did"
    return failure_of_ours(what, Fate.LOST, Stage.HEARD)
