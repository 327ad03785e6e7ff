"""The provider's responses: what a request continues, what it makes, what is kept of it.

A request becomes a `Run` (or is refused, and nothing has changed); a run that reaches its end is
committed, any other is abandoned. Responses are a tree: each keeps the context it ended with,
and any number of requests may continue it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from lockstitch.emulator import refusals, tokens
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import MOST_STORED_RESPONSES
from lockstitch.emulator.model.replies import Asked, Reply, item
from lockstitch.emulator.responses.admission import Made, admitted, announced, check_answered
from lockstitch.emulator.responses.asking import asked_of
from lockstitch.emulator.responses.beside import compacted, input_tokens
from lockstitch.emulator.responses.bodies import opening_body
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.conversations import Conversation, Conversations
from lockstitch.emulator.responses.drafting import ENCRYPTED_REASONING, with_free_ids
from lockstitch.emulator.responses.dressing import dressed
from lockstitch.emulator.responses.minting import Mint
from lockstitch.emulator.responses.run import Run
from lockstitch.emulator.responses.shapes import (
    check_compact,
    check_count,
    check_create,
    item_type,
)
from lockstitch.emulator.responses.speaking import Performance

# The responses that can be continued: the others never made a context.
CONTINUABLE = frozenset({"completed", "incomplete"})


class Anchors(Protocol):
    """Where else than in the store an anchor may be: a connection's own cache."""

    def context(self, id: str) -> Context | None: ...


class Responses:
    """All that the provider remembers of responses."""

    def __init__(
        self,
        *,
        ids: Ids,
        seed: int,
        now: Callable[[], float],
        speak: Callable[[Asked], Reply],
        conversations: Conversations,
    ) -> None:
        self._ids = ids
        self._now = now
        self._speak = speak
        self._conversations = conversations
        self.mint = Mint(seed)
        self._made = Made()
        self._stored: OrderedDict[str, Run] = OrderedDict()
        self._running: set[Run] = set()

    # Making responses

    def start(
        self,
        request: dict[str, Any],
        *,
        anchors: Anchors | None = None,
        first: Sequence[Item] = (),
        websocket: bool = False,
    ) -> Run:
        """Accept a request. `first` is input that goes before its own (queued steering)."""
        check_create(request, websocket=websocket)
        ids = self._ids.branch()
        context, conversation = self._anchor(request, anchors)
        sent, triggered = without_trigger([*first, *input_of(request)])
        context, listed = self._entered(context, sent, ids)
        if conversation is not None:
            # Room for one item of the output, too. More is taken as it comes: nothing is refused
            # once the response runs.
            conversation.check(listed, more=1)
        generates = request.get("generate") is not False
        if generates:
            check_answered(context)
        reply = self._reply(request, context, triggered) if generates else Reply(drafts=())
        response_id = ids.draw("resp")
        body = opening_body(
            request, response_id, self._now(), conversation.id if conversation else None
        )

        def taken(id: str) -> bool:
            return context.has(id) or (conversation is not None and id in conversation.items)

        before = context.tokens + tokens.of_text(str(request.get("instructions") or ""))
        performance = Performance(
            body,
            with_free_ids(reply.drafts, taken),
            ids=ids,
            mint=self.mint,
            now=self._now,
            input_tokens=before if reply.input_tokens is None else reply.input_tokens,
            output_tokens=reply.output_tokens,
            ends=reply.ends,
            encrypted=ENCRYPTED_REASONING in (request.get("include") or ()),
        )
        run = Run(
            id=response_id,
            performance=performance,
            reply=reply,
            context=context,
            input=listed,
            kept=request.get("store") is not False,
            background=bool(request.get("background")),
            conversation=conversation,
            compacts=bool(request.get("context_management")),
        )
        self._running.add(run)
        if conversation is not None:
            conversation.locked = True
        if run.background:
            self._keep(run)
        return run

    def commit(self, run: Run) -> None:
        """The response comes to its end, heard or unheard: from now on it can be continued.

        It never raises, and does nothing for a run that is over: cancelled, deleted, forgotten."""
        if run.over:
            return
        if not run.performance.ended:
            for _ in run.events():
                pass
        output = run.performance.output
        if run.performance.response["status"] in CONTINUABLE:
            run.after = continued(run.context, output)
            self._made.remember(output)
        conversation = run.conversation if run.after is not None else None
        self._release(run)
        if run.after is not None and conversation is not None:
            conversation.end(run.input, output, run.after)
        if run.kept:
            self._keep(run)
        if run.kept or conversation is not None:
            self._conversations.kept.remember(run.input)
            self._conversations.kept.remember(output)

    def fail(self, run: Run) -> None:
        """Something went wrong while the response was made: it failed, and is kept as such."""
        if not run.over:
            run.fail()
            self.commit(run)

    def abandon(self, run: Run) -> None:
        """The response was lost on the way: as if it had never been asked for."""
        if not run.over:
            self._release(run)
            if self._stored.get(run.id) is run:
                del self._stored[run.id]

    def _stop(self, run: Run) -> None:
        """It ends here, and whoever tells it hears of that from the run."""
        run.stopped = True
        run.take_back()
        self._release(run)

    def _release(self, run: Run) -> None:
        run.over = True
        self._running.discard(run)
        if run.conversation is not None:
            run.conversation.locked = False
        run.notify()

    def _anchor(
        self, request: dict[str, Any], anchors: Anchors | None = None
    ) -> tuple[Context, Conversation | None]:
        previous = request.get("previous_response_id")
        if previous is not None:
            return self.anchored(previous, anchors), None
        named = request.get("conversation")
        if named is None:
            return Context(), None
        conversation = self._conversations.get(named if isinstance(named, str) else named["id"])
        if conversation.locked:
            raise refusals.conversation_locked()
        return self._context_of(conversation), conversation

    def anchored(self, id: str, anchors: Anchors | None = None) -> Context:
        """The context that a response left behind."""
        context = anchors.context(id) if anchors is not None else None
        if context is None:
            stored = self._stored.get(id)
            context = stored.after if stored is not None else None
        if context is None:
            raise refusals.anchor_not_found(id)
        return context

    def _context_of(self, conversation: Conversation) -> Context:
        context = conversation.context()
        if context is None:
            context = admitted(Context(), conversation.seen(), self._made, self.mint, sent=())
            conversation.keep(context)
        return context

    def _entered(self, context: Context, sent: list[Item], ids: Ids) -> tuple[Context, list[Item]]:
        """The context with what was sent after it, and the items as they are kept."""
        listed = []
        for each in sent:
            self._check_persisted(each)
            reference = item_type(each) == "item_reference"
            listed.append(self._referred(each["id"], context) if reference else dressed(each, ids))
        return admitted(context, listed, self._made, self.mint, sent=sent), listed

    def _referred(self, id: str, context: Context) -> Item:
        found = self._conversations.kept.get(id)
        if found is None:
            raise refusals.item_not_persisted(id)
        if context.has(id):
            raise refusals.duplicate_item(id)
        return found

    def _check_persisted(self, item: Item) -> None:
        """Reasoning without its content is a reference: it must be in the store."""
        if item.get("type") != "reasoning" or item.get("encrypted_content"):
            return
        if item.get("id") and item["id"] not in self._conversations.kept:
            raise refusals.item_not_persisted(item["id"])

    def _reply(self, request: dict[str, Any], context: Context, triggered: bool) -> Reply:
        if triggered:
            return Reply(drafts=(item("compaction"),))
        reply = self._speak(asked_of(request, context))
        for entry in request.get("context_management") or ():
            threshold = entry.get("compact_threshold")
            if threshold is not None and context.tokens > threshold:
                return replace(reply, drafts=(item("compaction"), *reply.drafts))
        return reply

    # What is kept

    def input_items(self, id: str) -> list[Item]:
        """All that the response saw, as the provider lists it."""
        return [dressed(seen, self._ids) for seen in self.get(id).context]

    def _keep(self, run: Run) -> None:
        self._stored[run.id] = run
        if len(self._stored) > MOST_STORED_RESPONSES:
            self._stored.popitem(last=False)

    def get(self, id: str) -> Run:
        stored = self._stored.get(id)
        if stored is None:
            raise refusals.not_found("Response", id)
        return stored

    def ids_stored(self) -> list[str]:
        return list(self._stored)

    def delete(self, id: str) -> None:
        """The response goes; one that still runs is stopped."""
        run = self.get(id)
        del self._stored[id]
        if not run.over:
            self._stop(run)

    def cancel(self, id: str) -> Run:
        run = self.get(id)
        if not run.background:
            raise refusals.not_cancellable(id)
        if not run.over:
            run.performance.end("cancelled")
            self._stop(run)
        return run

    def forget(self, id: str | None = None) -> None:
        """Lose a response, or everything, as a provider that crashed would."""
        for run in list(self._running):
            if id is None or run.id == id:
                self._forget_running(run)
        if id is not None:
            self._stored.pop(id, None)
            return
        self._stored.clear()
        self._made.clear()
        self._conversations.clear()

    def _forget_running(self, run: Run) -> None:
        """In the background it is stopped. One that somebody hears is told to its end, and then
        nothing is kept of it."""
        if run.background:
            self._stop(run)
            return
        run.kept = False
        if run.conversation is not None:
            run.conversation.locked = False
            run.conversation = None

    # Beside responses

    def compact(self, request: dict[str, Any]) -> dict[str, Any]:
        check_compact(request)
        ids = self._ids.branch()
        context = self._seen(request, ids)
        check_answered(context)
        return compacted(context, ids, self.mint, self._now())

    def count(self, request: dict[str, Any]) -> int:
        check_count(request)
        return input_tokens(self._seen(request, self._ids.branch()), request)

    def _seen(self, request: dict[str, Any], ids: Ids) -> Context:
        context, _ = self._anchor(request)
        sent, _ = without_trigger(input_of(request))
        context, _ = self._entered(context, sent, ids)
        return context


def input_of(request: dict[str, Any]) -> list[Item]:
    sent = request.get("input")
    if sent is None:
        return []
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else list(sent)


def without_trigger(sent: list[Item]) -> tuple[list[Item], bool]:
    """What was sent without the request for a compaction, and whether it was there.

    It is no part of any context. Where it may not stand it stays, and is refused."""
    places = [place for place, item in enumerate(sent) if item.get("type") == "compaction_trigger"]
    if places != [len(sent) - 1]:
        return sent, False
    return sent[:-1], True


def continued(context: Context, output: Sequence[Item]) -> Context:
    """The context with a response's output; after a compaction it begins there."""
    starts = [place for place, made in enumerate(output) if made["type"] == "compaction"]
    if starts:
        context, output = Context(), output[starts[-1] :]
    return context.extended(output, announced(dict(context.open), output), tokens.of_items(output))
