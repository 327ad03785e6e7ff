"""A provider of our own for these tests: a plain list, and a queue of what it has still to tell.

Written from the facts alone. A deleted item stays in the list as a tombstone; a response fixes the
predecessor of its items when it starts."""

from __future__ import annotations

from collections import deque
from copy import deepcopy

from lockstitch.mirror import Mirror


def message(id, text, role="user"):
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "id": id,
        "type": "message",
        "role": role,
        "status": "completed",
        "content": [{"type": kind, "text": text}],
    }


def call(id, call_id, arguments="{}", status="completed"):
    return {
        "id": id,
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": "look",
        "arguments": arguments,
    }


def output(id, call_id, said="seen"):
    return {"id": id, "type": "function_call_output", "call_id": call_id, "output": said}


def speech(id, transcript=None, role="user"):
    """What somebody said; the user's words come later, in an event of their own."""
    kind = "output_audio" if role == "assistant" else "input_audio"
    content = [{"type": kind, "transcript": transcript}]
    return {"id": id, "type": "message", "role": role, "status": "completed", "content": content}


class Ids:
    """Ids that were never used."""

    def __init__(self, prefix="new"):
        self.prefix = prefix
        self.used = 0

    def __call__(self, kind):
        self.used += 1
        return f"{self.prefix}_{kind}_{self.used}"


class Provider:
    """Takes client events; what it tells waits in `outbox` until somebody takes it.

    ``links=False`` is xAI's way: it takes items at the end only, never says what an item follows,
    nor which item was deleted. ``added`` is the event for a new item: Azure says `created`."""

    def __init__(self, *, links=True, added="conversation.item.added"):
        self.links = links
        self.added = added
        self.places = []  # [item, lives]
        self.outbox = deque()
        self.told = 0
        self.refuse_next = 0
        self.response = None
        self.created = []
        self.deleted = []

    def tell(self, type, **fields):
        self.told += 1
        self.outbox.append({"type": type, "event_id": f"srv_{self.told}", **deepcopy(fields)})

    def tell_added(self, item, previous):
        self.tell(self.added, item=item, previous_item_id=previous if self.links else None)

    def tell_done(self, item, previous):
        told = previous if self.links else None
        self.tell("conversation.item.done", item=item, previous_item_id=told)

    @property
    def items(self):
        return [item for item, lives in self.places if lives]

    def living(self, id):
        return next((item for item, lives in self.places if lives and item["id"] == id), None)

    def last(self):
        return self.items[-1]["id"] if self.items else None

    def insert(self, item, previous):
        """Behind this one, tombstone or not; None: at the head."""
        at = 0
        if not self.links:
            at = len(self.places)
        elif previous is not None:
            (at,) = [n + 1 for n, (one, _) in enumerate(self.places) if one["id"] == previous]
        self.places.insert(at, [item, True])

    def rewrite(self, item):
        for place in self.places:
            if place[0]["id"] == item["id"]:
                place[0] = item

    # --- the client

    def receive(self, event):
        error = self._take(event)
        if error:
            self.tell("error", error={"code": error, "event_id": event["event_id"]})

    def _take(self, event):
        if self.refuse_next:
            self.refuse_next -= 1
            return "server_busy"
        match event["type"]:
            case "conversation.item.create":
                return self._create(deepcopy(event["item"]), event.get("previous_item_id"))
            case "conversation.item.delete":
                return self.deletes(event["item_id"])
            case "conversation.item.retrieve":
                item = self.living(event["item_id"])
                if item is None:
                    return "item_retrieve_invalid_item_id"
                self.tell("conversation.item.retrieved", item=item)
        return None

    def _create(self, item, previous):
        if any(one["id"] == item["id"] for one, _ in self.places):
            raise AssertionError(f"{item['id']} was created twice")
        if not self.links and previous is not None:
            raise AssertionError("this provider takes items at the end only")
        if previous not in {None, "root"} and self.living(previous) is None:
            return "item_create_invalid_previous_item_id"
        if any(part["type"] in {"input_audio", "output_audio"} for part in item.get("content", ())):
            raise AssertionError("a client cannot create what it cannot say")
        if item["type"] == "function_call_output" and not any(
            one["type"] == "function_call" and one["call_id"] == item["call_id"]
            for one in self.items
        ):
            raise AssertionError(f"an output for {item['call_id']}, which is not there")
        after = self.last() if previous is None else None if previous == "root" else previous
        self.insert(item, after)
        self.created.append(item["id"])
        self.tell_added(item, after)
        self.tell_done(item, after)
        return None

    def deletes(self, id):
        for place in self.places:
            if place[1] and place[0]["id"] == id:
                place[1] = False
                self.deleted.append(id)
                self.tell("conversation.item.deleted", item_id=id if self.links else "")
                return None
        return "item_delete_invalid_item_id"

    # --- the user and the model

    def hears(self, item):
        previous = self.last()
        self.insert(item, previous)
        self.tell_added(item, previous)
        self.tell_done(item, previous)

    def transcribes(self, id, words):
        """What the user said, in words; None: it cannot be told."""
        kind = "conversation.item.input_audio_transcription"
        if words is None:
            self.tell(f"{kind}.failed", item_id=id, content_index=0, error={"code": "unclear"})
            return
        item = next(item for item, _ in self.places if item["id"] == id)
        self.rewrite(item | {"content": [item["content"][0] | {"transcript": words}]})
        self.tell(f"{kind}.completed", item_id=id, content_index=0, transcript=words)

    def truncates(self, id):
        """The user interrupted: what was not heard is taken out of what was said."""
        self.rewrite(self.living(id) | {"content": [{"type": "output_audio"}]})
        self.tell("conversation.item.truncated", item_id=id, content_index=0, audio_end_ms=100)

    def starts(self, id):
        """A response: the place of its first item is fixed now."""
        self.response = {"id": id, "previous": self.last(), "said": {}}
        self.tell("response.created", response={"id": id, "status": "in_progress", "output": []})

    def announces(self, item):
        item = item | {"status": "in_progress"}
        for empty in ("content", "arguments"):
            if empty in item:
                item[empty] = [] if empty == "content" else ""
        response = self.response
        self.insert(item, response["previous"])
        where = {"response_id": response["id"], "output_index": len(response["said"])}
        self.tell("response.output_item.added", item=item, **where)
        self.tell_added(item, response["previous"])
        response["previous"] = item["id"]
        response["said"][item["id"]] = item

    def finishes(self, item):
        self.rewrite(item)
        response = self.response
        response["said"][item["id"]] = item
        self.tell("response.output_item.done", item=item, response_id=response["id"])
        if self.living(item["id"]):
            self.tell_done(item, None)

    def ends(self):
        """What it said is told once more, as it was said: before anybody truncated it."""
        response, self.response = self.response, None
        said = list(response["said"].values())
        self.tell(
            "response.done",
            response={"id": response["id"], "status": "completed", "output": said},
        )


class Session:
    """A mirror and its provider, with somebody who carries everything at once."""

    def __init__(self, *, links=True, **provider):
        self.provider = Provider(links=links, **provider)
        self.mirror = Mirror(links=links)
        self.new_id = Ids()
        self.now = 0.0

    def drain(self):
        """Carry what is due there and what is told back, until nothing is."""
        while True:
            sent = self.send()
            heard = self.hear(len(self.provider.outbox))
            if not sent and not heard:
                return

    def send(self):
        edits = list(self.mirror.due(at=self.now))
        for edit in edits:
            self.provider.receive(edit.client_event())
        return edits

    def hear(self, count=1, order=lambda events: events):
        outbox = self.provider.outbox
        events = order([outbox.popleft() for _ in range(min(count, len(outbox)))])
        for event in events:
            self.mirror.apply(event)
        return events

    def sync(self, target, base=None):
        """Plan, commit, carry."""
        base = base or self.mirror.snapshot()
        plan = self.mirror.plan(target, base=base, new_id=self.new_id)
        self.mirror.commit(plan)
        self.drain()
        return plan

    def ids(self):
        assert self.mirror.items == self.provider.items
        return [item["id"] for item in self.mirror.items]
