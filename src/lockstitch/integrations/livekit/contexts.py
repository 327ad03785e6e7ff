"""A chat context that knows what was in it when it was copied, through further copies."""

from __future__ import annotations

from typing import Any

from livekit.agents.llm import ChatContext, ChatItem


def copy_of(chat_ctx: ChatContext) -> ChatContext:
    """A copy, like ``chat_ctx.copy()``, that knows what it was a copy of.

    When it is edited and pushed, what was taken out of it is deleted, and nothing is in doubt."""
    items = list(chat_ctx.items)
    return SeenContext(items, seen=finished(items), of_session=False)


def finished(items: list[ChatItem]) -> frozenset[str]:
    """The ids of those that say something. An empty message is a place that is kept for words."""
    return frozenset(item.id for item in items if not says_nothing(item))


def says_nothing(item: ChatItem) -> bool:
    """Is it a message without words, or a call whose arguments are still to come?"""
    if item.type == "message":
        return not any(item.content)
    return item.type == "function_call" and not item.arguments


class SeenContext(ChatContext):
    """A context, and the ids that were in it when it was taken.

    ``of_session``: it was read from the session, and tells nothing of the agent's own context."""

    def __init__(
        self,
        items: list[ChatItem],
        *,
        seen: frozenset[str],
        of_session: bool,
        order: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(items)
        self.seen = seen
        self.of_session = of_session
        self.order = _ids(items) if order is None else order
        """All ids that were in it, in their order."""

    def copy(self, **excluding: Any) -> SeenContext:
        items = super().copy(**excluding).items
        return SeenContext(items, seen=self.seen, of_session=self.of_session, order=self.order)


def _ids(items: list[ChatItem]) -> tuple[str, ...]:
    return tuple(item.id for item in items)
