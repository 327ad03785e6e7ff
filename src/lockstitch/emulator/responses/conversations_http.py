"""The Conversations API over HTTP."""

from typing import Any

from aiohttp import web

from lockstitch.emulator import refusals
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.metadata import check_metadata
from lockstitch.emulator.responses.conversations import Conversation, Conversations, check_count
from lockstitch.emulator.responses.dressing import dressed, in_conversation
from lockstitch.emulator.responses.shapes import check_items, item_type
from lockstitch.emulator.wire.listing import page
from lockstitch.emulator.wire.reception import Exchange, Reception
from lockstitch.emulator.world import World

Item = dict[str, Any]


class ConversationsDoor:
    """`/v1/conversations` and all below it."""

    def __init__(self, world: World, reception: Reception, conversations: Conversations) -> None:
        self._world = world
        self._reception = reception
        self._conversations = conversations
        self._ids: Ids = world.ids.lasting("items")

    def routes(self) -> list[web.RouteDef]:
        received = self._reception.received
        one = "/v1/conversations/{id}"
        return [
            web.post("/v1/conversations", received(self.create)),
            web.get(one, received(self.retrieve)),
            web.post(one, received(self.update)),
            web.delete(one, received(self.delete)),
            web.post(f"{one}/items", received(self.add_items)),
            web.get(f"{one}/items", received(self.list_items)),
            web.get(one + "/items/{item}", received(self.retrieve_item)),
            web.delete(one + "/items/{item}", received(self.delete_item)),
        ]

    async def create(self, exchange: Exchange) -> web.Response:
        request = await exchange.json()
        _check_parameters(request, {"items", "metadata"})
        items = self._dressed(request.get("items") or [])
        metadata = request.get("metadata") or {}
        check_metadata(metadata)
        made = self._conversations.create(self._world.clock.now(), metadata, items)
        return exchange.answer(made.body())

    async def retrieve(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        return exchange.answer(self._named(exchange).body())

    async def update(self, exchange: Exchange) -> web.Response:
        request = await exchange.json()
        _check_parameters(request, {"metadata"})
        if "metadata" not in request:
            raise refusals.missing_parameter("metadata")
        conversation = self._named(exchange)
        metadata = request["metadata"] or {}
        check_metadata(metadata)
        conversation.metadata = metadata
        return exchange.answer(conversation.body())

    async def delete(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        conversation = self._free(exchange)
        self._conversations.delete(conversation.id)
        return exchange.answer(
            {"id": conversation.id, "object": "conversation.deleted", "deleted": True}
        )

    async def add_items(self, exchange: Exchange) -> web.Response:
        request = await exchange.json()
        _check_parameters(request, {"items"})
        if "items" not in request:
            raise refusals.missing_parameter("items")
        conversation = self._free(exchange)
        items = self._dressed(request["items"])
        self._conversations.add(conversation, items)
        return exchange.answer(page(_shown(items), {"order": "asc", "limit": "100"}))

    async def list_items(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        items = list(self._named(exchange).items.values())
        return exchange.answer(page(_shown(items), exchange.request.query))

    async def retrieve_item(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        found = self._named(exchange).get(exchange.request.match_info["item"])
        return exchange.answer(in_conversation(found))

    async def delete_item(self, exchange: Exchange) -> web.Response:
        await exchange.no_body()
        conversation = self._free(exchange)
        conversation.remove(exchange.request.match_info["item"])
        return exchange.answer(conversation.body())

    def _named(self, exchange: Exchange) -> Conversation:
        return self._conversations.get(exchange.request.match_info["id"])

    def _free(self, exchange: Exchange) -> Conversation:
        """The conversation, if nobody is at work on it."""
        conversation = self._named(exchange)
        if conversation.locked or exchange.struck("lock"):
            raise refusals.conversation_locked()
        return conversation

    def _dressed(self, items: Any) -> list[Item]:
        check_items(items, "items")
        check_count(items)
        for place, item in enumerate(items):
            if item_type(item) in {"item_reference", "compaction_trigger"}:
                raise refusals.wrong_value(
                    f"items[{place}].type", str(item_type(item)), "those of items that can be kept"
                )
        return [dressed(item, self._ids) for item in items]


def _shown(items: list[Item]) -> list[Item]:
    return [in_conversation(item) for item in items]


def _check_parameters(request: Item, known: set[str]) -> None:
    for name in request:
        if name not in known:
            raise refusals.unknown_parameter(name)
