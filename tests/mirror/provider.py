"""A provider of our own for these tests: a plain list, and a queue of what it has still to tell.

Written from the facts alone. A deleted item stays in the list as a tombstone; a response fixes the
predecessor of its items when it starts."""

from __future__ import annotations

from collections import deque
from copy import deepcopy


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


class Ids:
    """Ids that were never used."""

    def __init__(self, prefix="new"):
        self.prefix = prefix
        self.used = 0

    def __call__(self, kind):
        self.used += 1
        return f"{self.prefix}_{kind}_{self.used}"


class Provider:
    """Takes client events; what it tells waits in `outbox` until somebody takes it."""

    def __init__(self):
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
        if previous is not None:
            (at,) = [n + 1 for n, (one, _) in enumerate(self.places) if one["id"] == previous]
        self.places.insert(at, [item, True])

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
                for place in self.places:
                    if place[1] and place[0]["id"] == event["item_id"]:
                        place[1] = False
                        self.deleted.append(event["item_id"])
                        self.tell("conversation.item.deleted", item_id=event["item_id"])
                        return None
                return "item_delete_invalid_item_id"
            case "conversation.item.retrieve":
                item = self.living(event["item_id"])
                if item is None:
                    return "item_retrieve_invalid_item_id"
                self.tell("conversation.item.retrieved", item=item)
        return None

    def _create(self, item, previous):
        if any(one["id"] == item["id"] for one, _ in self.places):
            raise AssertionError(f"{item['id']} was created twice")
        if previous not in {None, "root"} and self.living(previous) is None:
            return "item_create_invalid_previous_item_id"
        if item["type"] == "function_call_output" and not any(
            one["type"] == "function_call" and one["call_id"] == item["call_id"]
            for one in self.items
        ):
            raise AssertionError(f"an output for {item['call_id']}, which is not there")
        after = self.last() if previous is None else None if previous == "root" else previous
        self.insert(item, after)
        self.created.append(item["id"])
        self.tell("conversation.item.added", item=item, previous_item_id=after)
        self.tell("conversation.item.done", item=item, previous_item_id=after)
        return None

    # --- the user and the model

    def hears(self, item):
        previous = self.last()
        self.insert(item, previous)
        self.tell("conversation.item.added", item=item, previous_item_id=previous)
        self.tell("conversation.item.done", item=item, previous_item_id=previous)

    def starts(self, id):
        """A response: the place of its first item is fixed now."""
        self.response = {"id": id, "previous": self.last(), "items": []}
        self.tell("response.created", response={"id": id, "status": "in_progress", "output": []})

    def announces(self, item):
        item = item | {"status": "in_progress"}
        for empty in ("content", "arguments"):
            if empty in item:
                item[empty] = [] if empty == "content" else ""
        response = self.response
        self.insert(item, response["previous"])
        where = {"response_id": response["id"], "output_index": len(response["items"])}
        self.tell("response.output_item.added", item=item, **where)
        self.tell("conversation.item.added", item=item, previous_item_id=response["previous"])
        response["previous"] = item["id"]
        response["items"].append(item["id"])

    def finishes(self, item):
        for place in self.places:
            if place[0]["id"] == item["id"]:
                place[0] = item
        response = self.response
        self.tell("response.output_item.done", item=item, response_id=response["id"])
        if self.living(item["id"]):
            self.tell("conversation.item.done", item=item, previous_item_id=None)

    def ends(self):
        response, self.response = self.response, None
        output = [item for item, _ in self.places if item["id"] in response["items"]]
        self.tell(
            "response.done",
            response={"id": response["id"], "status": "completed", "output": output},
        )


class Session:
    """A mirror and its provider, with somebody who carries everything at once."""

    def __init__(self, **options):
        from lockstitch.mirror import Mirror

        self.provider = Provider()
        self.mirror = Mirror(**options)
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

    def hear(self, count=1):
        events = [self.provider.outbox.popleft() for _ in range(count) if self.provider.outbox]
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
