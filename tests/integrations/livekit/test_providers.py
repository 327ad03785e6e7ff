"""Providers that speak another way: Azure's words, and xAI, which says nothing of any order."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from livekit.plugins import openai

from tests.integrations.livekit.lines import OnALine, Prompt, Telling
from tests.integrations.livekit.scenes import OURS, in_step, llm, talk


class Azure(Telling):
    def tell(self, type, **fields):
        if type == "conversation.item.done":
            return  # it has no such event
        names = {"conversation.item.added": "conversation.item.created"}
        super().tell(names.get(type, type), **fields)


class Unlinked(Telling):
    """As xAI: no predecessors, and no id of what was deleted."""

    def tell(self, type, **fields):
        if "previous_item_id" in fields:
            fields["previous_item_id"] = None
        if type == "conversation.item.deleted":
            fields["item_id"] = ""
        super().tell(type, **fields)


class TheirUnlinkedSession(openai.realtime.RealtimeSession):
    """What LiveKit's plugin for xAI does about that."""

    def _handle_conversion_item_added(self, event):
        if event.previous_item_id is None:
            tail = self._remote_chat_ctx._tail
            event.previous_item_id = tail.item.id if tail else None
        super()._handle_conversion_item_added(event)

    def _handle_conversion_item_deleted(self, event):
        if event.item_id == "" and self._item_delete_future:
            event.item_id = next(iter(self._item_delete_future))
        super()._handle_conversion_item_deleted(event)


class UnlinkedSession(OnALine, in_step.RealtimeSession, TheirUnlinkedSession):
    links = False


@asynccontextmanager
async def on_a_line(provider, session_class=OnALine, **azure):
    model = OURS.with_azure(**azure) if azure else OURS(api_key="any")
    OnALine.line = Prompt(provider)
    session = session_class(model)
    try:
        async with asyncio.timeout(10):
            yield session
    finally:
        await session.aclose()


def ids(items):
    return [item["id"] for item in items]


def local(session):
    return [item.id for item in session.chat_ctx.items]


def test_azures_words_are_understood():
    async def whole():
        provider = Azure()
        azure = {
            "azure_deployment": "gpt-realtime",
            "azure_endpoint": "http://127.0.0.1:9",
            "api_key": "any",
        }
        async with on_a_line(provider, **azure) as session:
            await session.update_chat_ctx(talk("Hi.", "Hi!", "So?"))
            await session.update_chat_ctx(llm.ChatContext(talk("Hi.", "Ho!", "So?").items[1:]))
            assert [item["content"][0]["text"] for item in provider.items] == ["Ho!", "So?"]
            assert local(session) == ["t1", "t2"]

    asyncio.run(whole())


def test_a_provider_that_does_not_link_gets_items_at_the_end():
    async def whole():
        provider = Unlinked()
        async with on_a_line(provider, UnlinkedSession) as session:
            await session.update_chat_ctx(talk("Hi.", "Hi!", "So?"))
            assert ids(provider.items) == ["t0", "t1", "t2"]
            context = session.chat_ctx.copy()
            del context.items[:2]
            context.items.append(llm.ChatMessage(id="new", role="user", content=["And?"]))
            await session.update_chat_ctx(context)
            assert ids(provider.items) == ["t2", "new"]
            assert local(session) == ids(provider.items)

    asyncio.run(whole())
