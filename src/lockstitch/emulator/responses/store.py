"""The provider's responses: what a request continues, what it makes, what is kept of it.

A request becomes a `Run` (or is refused, and nothing has changed); a run that reaches its end is
committed, any other is abandoned. Responses are a tree: each keeps the context it ended with,
and any number of requests may continue it."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lockstitch.emulator import refusals, tokens
from lockstitch.emulator.events import Event
from lockstitch.emulator.faults import Fault
from lockstitch.emulator.ids import Ids
from lockstitch.emulator.limits import MOST_REMEMBERED_ITEM_IDS, MOST_STORED_RESPONSES
from lockstitch.emulator.model.replies import Asked, Reply, item, json_text
from lockstitch.emulator.responses.admission import Made, admitted, announced, check_answered
from lockstitch.emulator.responses.asking import asked_of
from lockstitch.emulator.responses.bodies import opening_body
from lockstitch.emulator.responses.context import Context, Item
from lockstitch.emulator.responses.conversations import Conversation, Conversations
from lockstitch.emulator.responses.drafting import ENCRYPTED_REASONING
from lockstitch.emulator.responses.dressing import NOT_LISTED, dressed
from lockstitch.emulator.responses.minting import Mint
from lockstitch.emulator.responses.shapes import check_compact, check_count, check_create
from lockstitch.emulator.responses.speaking import Performance

# The responses that can be continued: the others never made a context.
CONTINUABLE = frozenset({"completed", "incomplete"})


class Anchors(Protocol):
    """Where else than in the store an anchor may be: a connection's own cache."""

    def context(self, id: str) -> Context | None: ...


@dataclass(slots=True, eq=False)
class Run:
    """A response, from the moment its request was accepted."""

    id: str
    performance: Performance
    reply: Reply
    # What the model sees, and the part of it that this request brought.
    context: Context
    input: list[Item]
    kept: bool
    background: bool = False
    conversation: Conversation | None = None
    # The client asked for automatic compaction.
    compacts: bool = False
    # What it left behind, once it is committed.
    after: Context | None = None
    over: bool = False
    log: list[Event] = field(default_factory=list)
    watchers: list[Callable[[], None]] = field(default_factory=list)
    _telling: Iterator[Event] | None = None

    @property
    def body(self) -> dict[str, Any]:
        return self.performance.response

    def events(self) -> Iterator[Event]:
        """The events that were not told yet; those of a response that is kept are logged."""
        if self._telling is None:
            told = self.performance.events()
            self._telling = self._logged(told) if self.kept else told
        return self._telling

    def _logged(self, events: Iterator[Event]) -> Iterator[Event]:
        # Only what is kept can be cancelled: then it says nothing more.
        while not self.over and (event := next(events, None)) is not None:
            self.log.append(event)
            if self.watchers:
                self.notify()
            yield event

    def finish(self, fault: Fault) -> list[Event]:
        """The last events, when a fault ends the response."""
        if fault.point is not None and not fault.point.after:
            # The event it struck before was made, and is never sent.
            self.performance.retract()
            del self.log[-1:]
        match fault.name:
            case "fail":
                events = self.performance.end(
                    "failed", code=fault.word("code"), message=fault.word("message")
                )
            case "incomplete":
                events = self.performance.end("incomplete", reason=fault.word("reason"))
            case _:
                events = self.performance.broke(fault.word("code"), fault.word("message"))
        self.log += events if self.kept else []
        return events

    def stop(self, reason: str) -> list[Event]:
        """End it here, incomplete."""
        events = self.performance.end("incomplete", reason=reason)
        self.log += events if self.kept else []
        return events

    def notify(self) -> None:
        for watcher in self.watchers:
            watcher()


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
        # Items that can be referred to by id alone.
        self._items: OrderedDict[str, Item] = OrderedDict()

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
        sent = [*first, *input_of(request)]
        context, listed = self._entered(context, sent, ids)
        generates = request.get("generate") is not False
        if generates:
            check_answered(context)
        reply = self._reply(request, context) if generates else Reply(drafts=())
        response_id = ids.draw("resp")
        body = opening_body(
            request, response_id, self._now(), conversation.id if conversation else None
        )
        before = context.tokens + tokens.of_text(str(request.get("instructions") or ""))
        performance = Performance(
            body,
            reply.drafts,
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
        if conversation is not None:
            conversation.locked = True
        if run.background:
            self._keep(run)
        return run

    def commit(self, run: Run) -> None:
        """The response comes to its end, heard or unheard: from now on it can be continued."""
        if run.over:
            return
        if not run.performance.ended:
            for _ in run.events():
                pass
        output = run.performance.output
        if run.body["status"] in CONTINUABLE:
            run.after = continued(run.context, output)
            self._made.remember(output)
        self._release(run)
        if run.after is not None and run.conversation is not None:
            run.conversation.add([*run.input, *output])
            run.conversation.keep(run.after)
            self._remember(run.input, output)
        if run.kept:
            self._keep(run)
            self._remember(run.input, output)

    def abandon(self, run: Run) -> None:
        """The response was lost on the way: as if it had never been asked for."""
        if run.over:
            return
        self._release(run)
        self._stored.pop(run.id, None)

    def _release(self, run: Run) -> None:
        run.over = True
        if run.conversation is not None:
            run.conversation.locked = False
        run.notify()

    def _anchor(
        self, request: dict[str, Any], anchors: Anchors | None
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
            items = list(conversation.items.values())
            context = admitted(Context(), items, self._made, self.mint, sent=())
            conversation.keep(context)
        return context

    def _entered(self, context: Context, sent: list[Item], ids: Ids) -> tuple[Context, list[Item]]:
        """The context with what was sent after it, and the items as they are kept."""
        for each in sent:
            self._check_persisted(each)
        listed = [
            self._referred(each, context) if is_reference(each) else dressed(each, ids)
            for each in sent
        ]
        return admitted(context, listed, self._made, self.mint, sent=sent), listed

    def _referred(self, reference: Item, context: Context) -> Item:
        found = self._items.get(reference["id"])
        if found is None:
            raise refusals.item_not_persisted(reference["id"])
        if context.has(reference["id"]):
            raise refusals.duplicate_item(reference["id"])
        return found

    def _check_persisted(self, item: Item) -> None:
        """Reasoning without its content is a reference: it must be in the store."""
        if item.get("type") != "reasoning" or item.get("encrypted_content"):
            return
        if item.get("id") and item["id"] not in self._items:
            raise refusals.item_not_persisted(item["id"])

    def _reply(self, request: dict[str, Any], context: Context) -> Reply:
        last = next(context.backwards(), None)
        if last is not None and last["type"] == "compaction_trigger":
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
        run = self.get(id)
        return [dressed(seen, self._ids) for seen in run.context if seen["type"] not in NOT_LISTED]

    def _keep(self, run: Run) -> None:
        self._stored[run.id] = run
        if len(self._stored) > MOST_STORED_RESPONSES:
            self._stored.popitem(last=False)

    def _remember(self, *lists: Sequence[Item]) -> None:
        for items in lists:
            for kept in items:
                if kept.get("id"):
                    self._items[kept["id"]] = kept
        while len(self._items) > MOST_REMEMBERED_ITEM_IDS:
            self._items.popitem(last=False)

    def get(self, id: str) -> Run:
        stored = self._stored.get(id)
        if stored is None:
            raise refusals.not_found("Response", id)
        return stored

    def delete(self, id: str) -> None:
        self.get(id)
        del self._stored[id]

    def cancel(self, id: str) -> Run:
        run = self.get(id)
        if not run.background:
            raise refusals.not_cancellable(id)
        if not run.over:
            run.performance.end("cancelled")
            self._release(run)
        return run

    def forget(self, id: str | None = None) -> None:
        """Lose a response, or everything, as a provider that crashed would."""
        if id is not None:
            self._stored.pop(id, None)
            return
        self._stored.clear()
        self._items.clear()
        self._made.clear()
        self._conversations.clear()

    # Beside responses

    def compact(self, request: dict[str, Any]) -> dict[str, Any]:
        """The user's messages, then one item that stands for everything."""
        check_compact(request)
        ids = self._ids.branch()
        context, _ = self._anchor(request, None)
        context, _ = self._entered(context, input_of(request), ids)
        check_answered(context)
        users = [
            kept for kept in context if kept["type"] == "message" and kept.get("role") == "user"
        ]
        made = {
            "id": ids.item("compaction"),
            "type": "compaction",
            "encrypted_content": self.mint.sealed(json_text(len(context))),
        }
        return {
            "id": ids.draw("resp"),
            "object": "response.compaction",
            "created_at": int(self._now()),
            "output": [*users, made],
            "usage": tokens.usage(context.tokens, tokens.of_item(made)),
        }

    def count(self, request: dict[str, Any]) -> int:
        """The tokens that a request's input would cost."""
        check_count(request)
        context, _ = self._anchor(request, None)
        context, _ = self._entered(context, input_of(request), self._ids.branch())
        said = str(request.get("instructions") or "")
        return context.tokens + tokens.of_text(said) + tokens.of_items(request.get("tools") or ())

    def ids_stored(self) -> list[str]:
        return list(self._stored)


def input_of(request: dict[str, Any]) -> list[Item]:
    sent = request.get("input")
    if sent is None:
        return []
    return [{"role": "user", "content": sent}] if isinstance(sent, str) else list(sent)


def is_reference(item: Item) -> bool:
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "role" not in item)


def continued(context: Context, output: Sequence[Item]) -> Context:
    """The context with a response's output; after a compaction it begins there."""
    starts = [place for place, made in enumerate(output) if made["type"] == "compaction"]
    if starts:
        context, output = Context(), output[starts[-1] :]
    return context.extended(output, announced(dict(context.open), output), tokens.of_items(output))
