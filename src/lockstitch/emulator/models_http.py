"""The door of the models: GET /v1/models and /v1/models/{id}, in the form of either provider.

Whoever says which version of Anthropic's API it speaks is answered in Anthropic's form."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiohttp import web

from lockstitch.emulator.messages.http import VERSION_HEADER, refusal_body, version_of
from lockstitch.emulator.messages.refusals import invalid
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.wire.reception import Exchange, Handler, Reception
from lockstitch.emulator.world import World

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]

# When every model came to be: 2026-01-01T00:00:00Z. Any fixed moment would do.
_SINCE: Final = 1_767_225_600
_SINCE_SAID: Final = "2026-01-01T00:00:00Z"
_LISTED_MODELS: Final = 20
_MOST_LISTED_MODELS: Final = 1_000


class ModelsDoor:
    def __init__(self, world: World, reception: Reception) -> None:
        self._world = world
        self._reception = reception

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self._either(self.all, self.all_for_anthropic)),
            web.get("/v1/models/{id}", self._either(self.one, self.one_for_anthropic)),
        ]

    def _either(self, openai: Handler, anthropic: Handler) -> Handle:
        said_by_openai = self._reception.received(openai)
        said_by_anthropic = self._reception.received(anthropic, self._refusal)

        async def handle(request: web.Request) -> web.StreamResponse:
            known = VERSION_HEADER in request.headers
            return await (said_by_anthropic if known else said_by_openai)(request)

        return handle

    async def all(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        models = [_openai(name) for name in self._world.settings.models]
        return exchange.answer({"object": "list", "data": models})

    async def one(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        name = exchange.request.match_info["id"]
        if name not in self._world.settings.models:
            raise Refused(
                "not-found",
                f"The model '{name}' does not exist",
                404,
                param="model",
                code="model_not_found",
            )
        return exchange.answer(_openai(name))

    async def all_for_anthropic(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        version_of(exchange)
        page = _page(list(self._world.settings.models), exchange.request.query)
        return exchange.answer(page)

    async def one_for_anthropic(self, exchange: Exchange) -> web.StreamResponse:
        await exchange.no_body()
        version_of(exchange)
        name = exchange.request.match_info["id"]
        if name not in self._world.settings.models:
            raise Refused("not-found", f"model: {name}", 404)
        return exchange.answer(_anthropic(name))

    def _refusal(self, refused: Refused) -> dict[str, Any]:
        return refusal_body(self._world, refused)


def _openai(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _SINCE, "owned_by": "lockstitch"}


def _anthropic(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": "model",
        "display_name": name.replace("-", " ").title(),
        "created_at": _SINCE_SAID,
        "lifecycle": "active",
    }


def _page(names: list[str], query: Any) -> dict[str, Any]:
    """The models after or before one, as many as were asked for."""
    most = _limit(query.get("limit"))
    after, before = query.get("after_id"), query.get("before_id")
    if after in names:
        names = names[names.index(after) + 1 :]
    if before in names:
        names = names[: names.index(before)]
        page = names[-most:]
    else:
        page = names[:most]
    return {
        "data": [_anthropic(name) for name in page],
        "has_more": len(page) < len(names),
        "first_id": page[0] if page else None,
        "last_id": page[-1] if page else None,
    }


def _limit(said: str | None) -> int:
    if said is None:
        return _LISTED_MODELS
    if not (said.isascii() and said.isdecimal() and 1 <= int(said) <= _MOST_LISTED_MODELS):
        should = f"Input should be an integer from 1 to {_MOST_LISTED_MODELS}"
        raise invalid("wrong-value", "limit", should)
    return int(said)
