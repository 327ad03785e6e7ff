"""What a door raises that has its own words for the client. The server says the rest."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias

from aiohttp import web

from lockstitch.gateway.deciding.listing import NoSuchItem
from lockstitch.gateway.keeping.conversations import ConversationRefused
from lockstitch.gateway.responding.passing import refused
from lockstitch.gateway.world import Caller, World

Ids = ParamSpec("Ids")
Door: TypeAlias = Callable[
    Concatenate[World, Caller, web.BaseRequest, Ids], Coroutine[Any, Any, web.StreamResponse]
]


def refusing(door: Door[Ids]) -> Door[Ids]:
    """The door, with an answer for that."""

    @wraps(door)
    async def answered(
        world: World,
        caller: Caller,
        request: web.BaseRequest,
        /,
        *args: Ids.args,
        **named: Ids.kwargs,
    ) -> web.StreamResponse:
        try:
            return await door(world, caller, request, *args, **named)
        except (ConversationRefused, NoSuchItem) as error:
            return refused(caller, error.refusal)

    return answered
