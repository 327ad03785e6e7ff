"""Random agents against a random provider, through LiveKit's own engine: nothing unseen goes.

The engine runs on a line in memory, so that what comes late, and how late, is drawn too."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import Counter

import aiohttp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from livekit.agents import Agent
from livekit.agents.voice.agent_activity import AgentActivity

from lockstitch.integrations.livekit.contexts import says_nothing
from tests.generated import examples
from tests.integrations.livekit.lines import Line, OnALine, Telling
from tests.integrations.livekit.scenes import OURS, in_step, llm, output_of
from tests.mirror.provider import call, message

MOST_TURNS_OF_THE_LOOP = 50
MOST_ROUNDS = 50


class Listening(AgentActivity):
    """An activity of which only the part is there that keeps the agent's context."""

    def __init__(self, agent, session):
        self._agent = agent
        self._rt_session = session
        self._rt_chat_ctx_lock = asyncio.Lock()


class Failures(logging.Handler):
    """What LiveKit could not handle: an event that is lost."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.records = []

    def emit(self, record):
        if "failed to" in record.getMessage() or "unknown item" in record.getMessage():
            self.records.append(record.getMessage())


class Agents(RuleBasedStateMachine):
    """Callers copy the agent's context, think, and push what became of it."""

    @initialize()
    def begin(self):
        self.loop = asyncio.new_event_loop()
        self.failures = Failures()
        logging.getLogger("livekit.agents").addHandler(self.failures)
        self.count = 0
        self.speaking = None
        self.copies = []
        self.may_go = set()
        self.done = set()  # each call is carried out once
        self.pushes = []
        self.run(self._open())

    async def _open(self):
        self.provider = Telling()
        model = OURS(api_key="any", base_url="http://127.0.0.1:9", modalities=["text"])
        OnALine.line = self.line = Line(self.provider)
        self.session = OnALine(model)
        self.agent = Agent(instructions="")
        self.activity = Listening(self.agent, self.session)
        self.session.on("remote_item_added", self.activity._on_remote_item_added)
        await self.session._update_session(chat_ctx=self.agent.chat_ctx)

    def run(self, work):
        return self.loop.run_until_complete(work)

    async def _turns(self):
        for _ in range(MOST_TURNS_OF_THE_LOOP):
            await asyncio.sleep(0)

    def go_on(self):
        self.run(self._turns())

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    # --- the provider's side

    @rule()
    def the_user_speaks(self):
        name = self.name("user")
        self.provider.hears(message(name, name))

    @precondition(lambda self: self.provider.response is None)
    @rule()
    def a_response_starts(self):
        self.provider.starts(self.name("resp"))

    @precondition(lambda self: self.provider.response is not None and self.speaking is None)
    @rule(calls=st.booleans())
    def an_item_is_announced(self, calls):
        name = self.name("said")
        item = call(name, f"c_{name}", '{"a": 1}') if calls else message(name, name, "assistant")
        self.speaking = item
        self.provider.announces(item)

    @precondition(lambda self: self.speaking is not None)
    @rule()
    def an_item_is_finished(self):
        self.provider.finishes(self.speaking)
        self.speaking = None

    @precondition(lambda self: self.provider.response is not None and self.speaking is None)
    @rule()
    def the_response_ends(self):
        self.provider.ends()

    @rule(count=st.integers(1, 2))
    def the_provider_refuses(self, count):
        self.provider.refuse_next = count

    @rule(count=st.integers(1, 8), twice=st.booleans())
    def events_come(self, count, twice):
        self.tell(min(count, len(self.provider.outbox)), times=1 + twice)

    def tell(self, count, times=1):
        for _ in range(count):
            event = json.dumps(self.provider.outbox.popleft())
            for _ in range(times):
                self.line.told.put_nowait(aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, event, None))
        self.go_on()

    # --- the agent's own context

    @rule(data=st.data())
    def the_agent_learns_of_an_item(self, data):
        """Words are transcribed, speech is played, a tool starts: in any order, at any time."""
        held = {item.id for item in self.agent.chat_ctx.items if not says_nothing(item)}
        news = [
            item
            for item in self.session.chat_ctx.items
            if item.id not in held and not says_nothing(item)
        ]
        if news:
            learned = data.draw(st.sampled_from(news)).model_copy(deep=True)
            self.agent._chat_ctx._upsert_item(learned)

    @rule()
    def the_agent_gets_an_item_that_never_leaves_it(self):
        self.agent._chat_ctx.insert(llm.AgentConfigUpdate(instructions=self.name("Be ")))

    @rule()
    def a_call_is_answered(self):
        """As LiveKit does it: into the agent's context, then behind what the session has."""
        context = self.session.chat_ctx.copy()
        for item in context.items:
            if item.type == "function_call" and item.arguments and item.call_id not in self.done:
                self.done.add(item.call_id)
                output = output_of(item)
                self.agent._chat_ctx._upsert_item(item.model_copy())
                self.agent._chat_ctx._upsert_item(output)
                context.items.append(output)
                self.push(self.session.update_chat_ctx(context))
                return

    # --- callers

    @rule()
    def a_caller_copies(self):
        self.copies.append(self.agent.chat_ctx.copy())

    @precondition(lambda self: self.copies)
    @rule(data=st.data(), knowing=st.booleans())
    def a_caller_pushes(self, data, knowing):
        context = self.copies.pop(data.draw(st.integers(0, len(self.copies) - 1)))
        if knowing:
            context = in_step.copy_of(context)
        had = {item.id for item in context.items}
        self.edit(context, data)
        if not context.items:
            return  # that clears: it says more than any copy
        self.may_go |= had - {item.id for item in context.items}
        update = self.activity.update_chat_ctx(context, exclude_invalid_function_calls=False)
        self.push(update)

    def edit(self, context, data):
        items = context.items
        what = data.draw(st.sampled_from(["append", "sum up", "take out", "change"]))
        if what == "sum up":
            count = data.draw(st.integers(0, len(items)))
            items[:count] = [self.said("summary", "assistant")]
        elif what == "take out" and items:
            gone = data.draw(st.sets(st.integers(0, len(items) - 1), max_size=3))
            items[:] = [item for at, item in enumerate(items) if at not in gone]
        elif what == "change" and items:
            at = data.draw(st.integers(0, len(items) - 1))
            if items[at].type == "message" and not says_nothing(items[at]):
                items[at] = items[at].model_copy(update={"content": [self.name("changed ")]})
        else:
            items.append(self.said("mine", "user"))

    def said(self, what, role):
        name = self.name(what)
        return llm.ChatMessage(id=name, role=role, content=[name])

    def push(self, update):
        self.pushes.append(self.loop.create_task(update))
        self.go_on()

    # --- what must hold

    def check_lost(self):
        """What is changed or moved is deleted, too, and there under another id."""
        view = self.session._view
        gone = {view.name(one) for one in self.provider.deleted}
        there = {view.name(item["id"]) for item in self.provider.items}
        assert gone - there <= self.may_go, "deleted what no caller gave up"

    def settle(self):
        """Everything is told, and what follows from it, until there is nothing left to tell."""
        self.go_on()
        for _ in range(MOST_ROUNDS):
            if not self.provider.outbox:
                return
            self.tell(len(self.provider.outbox))
        raise AssertionError("edits without end")

    def teardown(self):
        if not hasattr(self, "session"):
            return
        try:
            self.finish()
        finally:
            logging.getLogger("livekit.agents").removeHandler(self.failures)
            self.run(self.session.aclose())
            self.run(self._turns())
            self.loop.close()

    def finish(self):
        self.provider.refuse_next = 0
        if self.speaking is not None:
            self.provider.finishes(self.speaking)
        if self.provider.response is not None:
            self.provider.ends()
        self.settle()
        assert all(push.done() for push in self.pushes)
        for push in self.pushes:
            push.result()
        self.check_lost()
        # What is wanted now: everything as it is. That repairs what was refused.
        for _ in range(4):
            self.push(self.session.update_chat_ctx(self.session.chat_ctx.copy()))
            self.settle()
        view = self.session._view
        assert view.mirror.items == self.provider.items
        assert view.mirror.idle
        there = [view.name(item["id"]) for item in self.provider.items]
        assert [item.id for item in self.session.chat_ctx.items] == there
        outputs = Counter(item["call_id"] for item in self.provider.items if "output" in item)
        calls = Counter(
            item["call_id"] for item in self.provider.items if item["type"] == "function_call"
        )
        assert not outputs - calls, "an output without its call"
        assert self.failures.records == []


Agents.TestCase.settings = settings(
    max_examples=examples(60),
    # The same each time, unless somebody asks for more.
    derandomize="THOROUGH" not in os.environ,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestAgents = Agents.TestCase
