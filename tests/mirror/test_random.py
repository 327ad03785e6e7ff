"""Random providers against random callers: the mirror is true, and nothing is torn or lost."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from lockstitch.mirror import Create, Delete, summarised
from tests.generated import examples
from tests.mirror.provider import Session, call, message, output, speech

ADDED = {"conversation.item.added", "conversation.item.created"}


def about(event):
    """The item that an event is about; a response, or an edit, if it is about none."""
    if "item" in event:
        return event["item"]["id"]
    return event.get("item_id") or event.get("response", {}).get("id") or event["event_id"]


def may_swap(one, other):
    """Could the second come first, and the same be meant? Of two items behind the same one, the
    order tells which stands nearer; and what a response says comes while it goes on."""
    if about(one) == about(other) or "response" in one or "response" in other:
        return False
    both_added = one["type"] in ADDED and other["type"] in ADDED
    return not both_added or one["previous_item_id"] != other["previous_item_id"]


def finished(item):
    return item.get("status") != "in_progress"


class Conversations(RuleBasedStateMachine):
    """The caller's snapshots may be old; the provider speaks when it likes."""

    @initialize(links=st.booleans(), added=st.sampled_from(sorted(ADDED)), reorders=st.booleans())
    def begin(self, links, added, reorders):
        self.session = Session(links=links, added=added)
        self.links = links
        # Without links the order of events is all that there is.
        self.reorders = reorders and links
        self.provider, self.mirror = self.session.provider, self.session.mirror
        self.count = 0
        self.base = self.mirror.snapshot()
        self.bases = [(self.base, ())]
        self.speaking = None
        self.unheard = []
        self.last_target = []

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # --- the provider's side

    @rule(words=st.booleans())
    def the_user_speaks(self, words):
        name = self.name("user")
        if words:
            self.provider.hears(message(name, name))
        else:
            self.provider.hears(speech(name))
            self.unheard.append(name)

    @precondition(lambda self: self.unheard)
    @rule(fails=st.booleans(), data=st.data())
    def the_words_come(self, fails, data):
        name = data.draw(st.sampled_from(self.unheard))
        self.unheard.remove(name)
        self.provider.transcribes(name, None if fails else f"words of {name}")

    @precondition(lambda self: self.provider.response is None)
    @rule()
    def a_response_starts(self):
        self.provider.starts(self.name("resp"))

    @precondition(lambda self: self.provider.response is not None and self.speaking is None)
    @rule(what=st.sampled_from(["call", "text", "audio"]))
    def an_item_is_announced(self, what):
        name = self.name("said")
        self.speaking = {
            "call": call(name, f"c_{name}", '{"a": 1}'),
            "text": message(name, name, "assistant"),
            "audio": speech(name, f"spoken {name}", "assistant"),
        }[what]
        self.provider.announces(self.speaking)

    @precondition(lambda self: self.speaking is not None)
    @rule(cut=st.booleans())
    def an_item_is_finished(self, cut):
        status = "incomplete" if cut else "completed"
        self.provider.finishes(self.speaking | {"status": status})
        self.speaking = None

    @precondition(lambda self: self.provider.response is not None and self.speaking is None)
    @rule()
    def the_response_ends(self):
        self.provider.ends()

    @rule(data=st.data())
    def the_user_interrupts(self, data):
        spoken = [
            item["id"]
            for item in self.provider.items
            if finished(item) and item.get("content", [{}])[0].get("type") == "output_audio"
        ]
        if spoken:
            self.provider.truncates(data.draw(st.sampled_from(spoken)))

    @precondition(lambda self: self.links)  # else nobody could tell what was deleted
    @rule(data=st.data())
    def somebody_else_deletes(self, data):
        messages = [
            item["id"]
            for item in self.provider.items
            if item["type"] == "message" and finished(item)
        ]
        if messages:
            self.provider.deletes(data.draw(st.sampled_from(messages)))

    @rule(count=st.integers(1, 3))
    def the_provider_refuses(self, count):
        self.provider.refuse_next = count

    # --- what is between them

    @rule(count=st.integers(1, 6), twice=st.booleans(), data=st.data())
    def events_come(self, count, twice, data):
        def order(events):
            at = 0
            while self.reorders and at + 1 < len(events):
                if may_swap(events[at], events[at + 1]) and data.draw(st.booleans()):
                    events[at : at + 2] = reversed(events[at : at + 2])
                    at += 1
                at += 1
            return events

        heard = self.session.hear(count, order)
        for event in heard if twice else ():
            self.mirror.apply(event)

    @rule()
    def edits_go(self):
        self.session.send()

    @precondition(lambda self: self.links)  # else nobody could tell which answer is whose
    @rule()
    def edits_are_lost(self):
        list(self.mirror.due(at=self.session.now))

    @rule()
    def time_passes(self):
        self.session.now += 10
        self.mirror.expire(sent_before=self.session.now - 5)

    # --- the caller's side

    @rule()
    def the_caller_looks(self):
        self.base = self.mirror.snapshot()
        self.bases = [*self.bases[-2:], (self.base, tuple(self.mirror.items))]

    @rule(back=st.integers(0, 2))
    def the_caller_goes_on_from_what_it_saw_before(self, back):
        self.base, shown = self.bases[max(0, len(self.bases) - 1 - back)]
        assert self.base.items == shown

    def sync(self, target):
        seen = {item["id"] for item in self.base.items if finished(item)}
        wanted = {item["id"] for item in target}
        plan = self.mirror.plan(target, base=self.base, new_id=self.session.new_id)
        copied = {edit.copy_of for edit in plan.edits if isinstance(edit, Create)}
        for edit in plan.edits:
            if isinstance(edit, Delete) and edit.item_id not in self.strays():
                assert edit.item_id in seen, "deleted what the caller never saw"
                assert edit.item_id not in wanted or edit.item_id in copied, "deleted what stays"
        self.check_calls(plan)
        self.last_target = target
        self.mirror.commit(plan)

    def check_calls(self, plan):
        """No call in flight is deleted, and no half of a pair."""
        going = {edit.item_id for edit in plan.edits if isinstance(edit, Delete)}
        copied = {edit.copy_of for edit in plan.edits if isinstance(edit, Create)}
        items = self.mirror.items
        for item in items:
            if item["type"] != "function_call" or item["id"] not in going - copied - self.strays():
                continue
            answers = {one["id"] for one in items if one.get("call_id") == item["call_id"]}
            answers -= {one["id"] for one in items if one["type"] == "function_call"}
            assert answers or item["status"] == "incomplete", "deleted a call in flight"
            assert answers <= going | self.leaving(), "deleted half a pair"

    def leaving(self):
        flight = self.mirror._context.flight
        return {item["id"] for item in self.mirror.items if flight.deleting(item["id"])}

    def strays(self):
        """Copies of ours that did not take the place of what they are copies of."""
        context = self.mirror._context
        return {record.id for record in context.chain.order() if context.is_stray(record)}

    def changed(self, item):
        if item["type"] == "message":
            return message(item["id"], self.name("changed "), item["role"])
        if item["type"] == "function_call":
            return item | {"arguments": self.name("changed ")}
        return item | {"output": self.name("changed ")}

    @rule(data=st.data())
    def the_caller_edits(self, data):
        target = list(self.base.items)
        if target:
            gone = data.draw(st.sets(st.integers(0, len(target) - 1), max_size=4))
            target = [item for at, item in enumerate(target) if at not in gone]
        if target and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(target) - 1))
            target[at] = self.changed(target[at])
        if len(target) > 1 and data.draw(st.booleans()):
            item = target.pop(data.draw(st.integers(0, len(target) - 1)))
            target.insert(data.draw(st.integers(0, len(target))), item)
        for _ in range(data.draw(st.integers(0, 3))):
            name = self.name("mine")
            target.insert(data.draw(st.integers(0, len(target))), message(name, name))
        if data.draw(st.booleans()):
            name = self.name("pair")
            at = data.draw(st.integers(0, len(target)))
            target[at:at] = [call(name, f"c_{name}"), output(f"{name}o", f"c_{name}")]
        self.sync(target)

    @rule(data=st.data())
    def the_caller_shuffles(self, data):
        self.sync(data.draw(st.permutations(self.base.items)))

    @rule(more=st.booleans(), changes=st.booleans())
    def the_caller_says_again_what_it_wanted(self, more, changes):
        target = list(self.last_target)
        if changes and target:
            target[0] = self.changed(target[0])  # under the id that it knows
        if more:
            name = self.name("mine")
            target.append(message(name, name))
        self.sync(target)

    @rule(fraction=st.sampled_from([0.3, 0.5, 1.0]), leading=st.integers(0, 2))
    def the_caller_summarises(self, fraction, leading):
        summary = message(self.name("summary"), "in short", "assistant")
        self.sync(summarised(self.base.items, summary, fraction=fraction, leading=leading))

    @rule()
    def the_caller_answers_every_call_it_sees(self):
        target = list(self.base.items)
        keys = {one["call_id"] for one in target if one["type"] == "function_call_output"}
        calls = [item["call_id"] for item in target if item["type"] == "function_call"]
        target += [output(f"o_{key}", key) for key in calls if key not in keys]
        self.sync(target)

    @rule(data=st.data())
    def the_caller_names_what_changed(self, data):
        ids = [item["id"] for item in self.base.items]
        removed = data.draw(st.sets(st.sampled_from(ids), max_size=3)) if ids else ()
        others = [item for item in self.base.items if item["id"] not in removed]
        changed = [self.changed(others[0])] if others and data.draw(st.booleans()) else []
        name, first = self.name("mine"), self.name("mine")
        plan = self.mirror.plan_changes(
            base=self.base,
            new_id=self.session.new_id,
            added=[message(name, name)],
            inserted={"root": [message(first, first)]} if data.draw(st.booleans()) else None,
            changed=changed,
            removed=sorted(removed),
        )
        copied = {edit.copy_of for edit in plan.edits if isinstance(edit, Create)}
        # An item whose place a copy took goes by both ids.
        named = {self.mirror._context.resolve(one) for one in removed}
        for edit in plan.edits:
            assert not isinstance(edit, Delete) or edit.item_id in named | copied
        self.check_calls(plan)
        self.mirror.commit(plan)

    # --- what must hold

    @invariant()
    def drained_it_is_true(self):
        if not hasattr(self, "session") or self.provider.outbox:
            return
        assert self.mirror.items == self.provider.items

    def pairs(self):
        outputs = Counter(item["call_id"] for item in self.provider.items if "output" in item)
        calls = Counter(
            item["call_id"] for item in self.provider.items if item["type"] == "function_call"
        )
        return outputs, calls

    def teardown(self):
        if not hasattr(self, "session"):
            return
        for snapshot, shown in self.bases:
            assert snapshot.items == shown
        self.provider.refuse_next = 0
        if self.speaking is not None:
            self.provider.finishes(self.speaking)
        if self.provider.response is not None:
            self.provider.ends()
        self.session.drain()
        assert self.mirror.items == self.provider.items
        # What the caller wants now: everything as it is. The next plans repair what was refused.
        for _ in range(6):
            self.session.now += 10
            self.mirror.expire(sent_before=self.session.now)
            plan = self.session.sync(self.mirror.items)
        assert self.mirror.idle
        assert not plan.edits
        outputs, calls = self.pairs()
        assert not outputs - calls, "an output without its call"
        assert all(count == 1 for count in outputs.values()), "two outputs for one call"
        assert self.mirror.items == self.provider.items
        # And answering every call that waits makes every pair whole.
        target = self.mirror.items
        for key in calls - outputs:
            target.append(output(self.name("last"), key))
        self.session.sync(target)
        outputs, calls = self.pairs()
        assert outputs == calls
        # Wanting the same again changes nothing.
        for _ in range(2):
            self.session.sync(self.last_target)
        assert not self.session.sync(self.last_target).edits
        assert self.mirror.items == self.provider.items
        outputs, calls = self.pairs()
        assert not outputs - calls
        created = Counter(self.provider.created)
        assert not created or max(created.values()) == 1


Conversations.TestCase.settings = settings(
    max_examples=examples(150),
    # The same each time, unless somebody asks for more.
    derandomize="THOROUGH" not in os.environ,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestConversations = Conversations.TestCase
