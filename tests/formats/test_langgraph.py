"""LangGraph's SqliteSaver: what a killed graph leaves behind is found, and the real library resumes
what was repaired."""

from __future__ import annotations

import json
import operator
import os
import shutil
import sqlite3
import time
from typing import Annotated, Any

import msgspec
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.chat_agent_executor import _validate_chat_history
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

import lockstitch
from lockstitch.core.errors import LockstitchError
from lockstitch.core.mending import Policy
from lockstitch.sessions.errors import CannotRead, CannotWrite, EmptyFile, NotASession
from lockstitch.sessions.files import check_file, mended, put_in_place
from lockstitch.sessions.formats import detect_format
from lockstitch.sessions.langgraph_checkpoints import next_id
from lockstitch.sessions.source import Source

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t1"}}
GO = {"messages": [HumanMessage("go", id="h1")]}


def calls(*keys, name="slow"):
    return [{"name": name, "args": {"x": n}, "id": key} for n, key in enumerate(keys)]


class DeltaState(TypedDict):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]


class Graph:
    """An agent with two tools. The slow one copies the database while it runs: the copy is what a
    process leaves that is killed at that moment."""

    def __init__(self, path, *, parallel=True, state=MessagesState, asks=False):
        self.path = path
        self.seen = []
        self.copy = path.with_name(f"{path.name}.killed")
        graph = self

        @tool
        def fast(x: int) -> str:
            """Fast."""
            return f"fast {x}"

        @tool
        def slow(x: int) -> str:
            """Slow."""
            if asks:
                return f"approved: {interrupt('May I?')}"
            graph.snapshot(wait=parallel)
            return f"slow {x}"

        def agent(state):
            messages = state["messages"]
            graph.seen.append(list(messages))
            if messages[-1].content == "go":
                made = [
                    {"name": "fast", "args": {"x": 1}, "id": "c1"},
                    {"name": "slow", "args": {"x": 2}, "id": "c2"},
                ]
                return {"messages": [AIMessage("", tool_calls=made, id=f"a{len(messages)}")]}
            return {"messages": [AIMessage("done")]}

        def route(state):
            made = getattr(state["messages"][-1], "tool_calls", None)
            if made and parallel:
                return [Send("tools", [call]) for call in made]
            return "tools" if made else END

        builder = StateGraph(state)
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode([fast, slow]))
        builder.add_edge(START, "agent")
        builder.add_conditional_edges("agent", route, ["tools", END])
        builder.add_edge("tools", "agent")
        self._builder = builder

    def snapshot(self, *, wait):
        source = sqlite3.connect(self.path)
        query = (
            "SELECT COUNT(*) FROM writes WHERE channel = 'messages' AND checkpoint_id ="
            " (SELECT MAX(checkpoint_id) FROM checkpoints)"
        )
        until = time.monotonic() + 10
        while wait and not source.execute(query).fetchone()[0] and time.monotonic() < until:
            time.sleep(0.005)
        target = sqlite3.connect(self.copy)
        source.backup(target)
        target.close()
        source.close()

    def run(self, given, path=None, config=CONFIG):
        with SqliteSaver.from_conn_string(str(path or self.path)) as saver:
            graph = self._builder.compile(checkpointer=saver)
            return graph.invoke(given, config, durability="sync")["messages"]

    def state(self, path=None, config=CONFIG):
        with SqliteSaver.from_conn_string(str(path or self.path)) as saver:
            return self._builder.compile(checkpointer=saver).get_state(config)

    def update(self, values, path=None, config=CONFIG, **more):
        with SqliteSaver.from_conn_string(str(path or self.path)) as saver:
            self._builder.compile(checkpointer=saver).update_state(config, values, **more)

    def killed(self):
        """The database of a process that was killed while the slow tool ran."""
        self.run(GO)
        self.seen.clear()
        return self.copy


def findings(path):
    return [
        (finding.code, finding.key)
        for conversation in check_file(Source(path)).conversations
        for finding in conversation.findings
    ]


def mend(path, tmp_path, policy=None):
    target = tmp_path / "mended.sqlite"
    with mended(Source(path), beside=tmp_path, policy=policy) as ready:
        put_in_place(ready, target, backup=False)
    return target


def said(messages):
    return [(one.type, getattr(one, "tool_call_id", None)) for one in messages]


def rows(path):
    connection = sqlite3.connect(path)
    found = [
        connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
        for table in ("checkpoints", "writes")
    ]
    connection.close()
    return found


# --- killed while two parallel tools ran -------------------------------------------------------


def test_a_new_input_after_a_kill_loses_results_and_breaks_the_history(tmp_path):
    # What LangGraph does without a repair, and why both calls are findings.
    graph = Graph(tmp_path / "db")
    killed = graph.killed()
    graph.run({"messages": [HumanMessage("hm?")]}, killed)
    (seen,) = graph.seen
    assert said(seen) == [("human", None), ("ai", None), ("human", None)]
    with pytest.raises(ValueError, match="do not have a corresponding ToolMessage"):
        _validate_chat_history(seen)


def test_calls_of_a_killed_graph_are_found_and_pending_results_are_evidence(tmp_path):
    graph = Graph(tmp_path / "db")
    scan = check_file(Source(graph.killed()))
    (conversation,) = scan.conversations
    assert scan.format == "langgraph"
    assert conversation.label == "thread t1"
    first, second = conversation.findings
    assert first.message == (
        "c1 (fast) has no output; it finished, and its result is a pending write of the checkpoint"
    )
    assert second.message == "c2 (slow) has no output"


@pytest.mark.parametrize("state", [MessagesState, DeltaState])
def test_a_result_that_was_pending_is_put_in_and_the_graph_resumes(tmp_path, state):
    graph = Graph(tmp_path / "db", state=state)
    killed = graph.killed()
    target = mend(killed, tmp_path)
    messages = graph.state(target).values["messages"]
    assert said(messages) == [("human", None), ("ai", None), ("tool", "c1"), ("tool", "c2")]
    assert messages[2].content == "fast 1"
    assert messages[2].status == "success"
    assert messages[3].content.startswith("[lockstitch] Outcome unknown.")
    assert messages[3].status == "error"
    assert isinstance(messages[3], ToolMessage)
    # The fast tool had finished, and its edge to the agent was taken.
    assert graph.state(target).next == ("agent",)
    result = graph.run(None, target)
    assert [len(one) for one in graph.seen] == [4]  # the tools are not run again
    assert said(result)[-1] == ("ai", None)
    _validate_chat_history(result)
    assert findings(target) == []


@pytest.mark.parametrize("state", [MessagesState, DeltaState])
@pytest.mark.parametrize("parallel", [True, False])
def test_a_repaired_thread_takes_a_new_input(tmp_path, state, parallel):
    graph = Graph(tmp_path / "db", state=state, parallel=parallel)
    killed = graph.killed()
    assert findings(killed) == [("LS001", "c1"), ("LS001", "c2")]
    target = mend(killed, tmp_path)
    result = graph.run({"messages": [HumanMessage("and?")]}, target)
    _validate_chat_history(graph.seen[0])
    assert said(result)[2:4] == [("tool", "c1"), ("tool", "c2")]
    assert len(result) == 6
    assert findings(target) == []


def test_the_calls_of_a_repaired_thread_are_not_run_again(tmp_path):
    graph = Graph(tmp_path / "db", parallel=False)
    target = mend(graph.killed(), tmp_path)
    assert graph.state(target).next == ()
    assert said(graph.run(None, target)) == [
        ("human", None),
        ("ai", None),
        ("tool", "c1"),
        ("tool", "c2"),
    ]


def test_repairing_adds_one_checkpoint_and_changes_nothing_else(tmp_path):
    graph = Graph(tmp_path / "db")
    killed = graph.killed()
    checkpoints, writes = rows(killed)
    target = mend(killed, tmp_path)
    after, writes_after = rows(target)
    assert writes_after == writes
    assert after[:-1] == checkpoints
    added = after[-1]
    assert added[3] == checkpoints[-1][2]  # its parent
    assert json.loads(added[6])["source"] == "update"
    with SqliteSaver.from_conn_string(str(target)) as saver:
        history = list(saver.list(CONFIG))
    assert len(history) == len(after)


def test_repairing_is_deterministic_and_idempotent(tmp_path):
    killed = Graph(tmp_path / "db").killed()
    first = rows(mend(killed, tmp_path))
    again = rows(mend(killed, tmp_path))
    assert first == again
    with mended(Source(tmp_path / "mended.sqlite"), beside=tmp_path) as ready:
        assert ready.path is None
        assert ready.changes == []


def test_a_repair_in_place_keeps_a_backup_and_leaves_no_file_of_sqlite_behind(tmp_path):
    graph = Graph(tmp_path / "db")
    killed = graph.killed()
    before = rows(killed)
    with mended(Source(killed), beside=tmp_path) as ready:
        kept = put_in_place(ready, killed, backup=True)
    assert rows(kept) == before
    assert findings(killed) == []
    assert len(graph.run({"messages": [HumanMessage("and?")]}, killed)) == 6


@pytest.mark.parametrize(
    ("name", "following"),
    [
        ("1f1e38e4-8860-624c-8001-3e72bca8ad78", "1f1e38e4-8860-624d-8001-3e72bca8ad78"),
        ("1f1e38e4-8860-6fff-8001-3e72bca8ad78", "1f1e38e4-8861-6000-8001-3e72bca8ad78"),
        ("1f1e38e4-ffff-6fff-8001-3e72bca8ad78", "1f1e38e5-0000-6000-8001-3e72bca8ad78"),
        ("ffffffff-ffff-6fff-8001-3e72bca8ad78", None),
        ("1", None),
        ("a name", None),
    ],
)
def test_the_next_checkpoint_is_one_tick_later(name, following):
    assert next_id(name) == following


def test_messages_that_are_not_touched_stay_the_same_bytes(tmp_path):
    killed = Graph(tmp_path / "db").killed()
    before = rows(killed)[0][-1][5]
    after = rows(mend(killed, tmp_path))[0][-1][5]

    def messages(data):
        fields = msgspec.msgpack.decode(data, type=dict[str, msgspec.Raw])
        values = msgspec.msgpack.decode(fields["channel_values"], type=dict[str, msgspec.Raw])
        return [
            bytes(one) for one in msgspec.msgpack.decode(values["messages"], type=list[msgspec.Raw])
        ]

    assert messages(after)[:2] == messages(before)


# --- other broken threads ----------------------------------------------------------------------


def stored(tmp_path, *messages, thread="t1", path=None):
    """A database with a thread of these messages, as a graph would have stored them."""
    graph = Graph(path or tmp_path / "db")
    config = {"configurable": {"thread_id": thread}}
    graph.update({"messages": list(messages)}, config=config, as_node="agent")
    return graph


BROKEN = [
    ([HumanMessage("a"), AIMessage("", tool_calls=calls("c1")), HumanMessage("b")], "LS001"),
    (
        [
            HumanMessage("a"),
            AIMessage("", tool_calls=calls("c1", "c2")),
            ToolMessage("x", tool_call_id="c1"),
            HumanMessage("b"),
        ],
        "LS010",
    ),
    ([HumanMessage("a"), ToolMessage("x", tool_call_id="c9"), AIMessage("b")], "LS002"),
    ([HumanMessage("a"), ToolMessage("x", tool_call_id=""), AIMessage("b")], "LS002"),
    (
        [
            HumanMessage("a"),
            AIMessage("", tool_calls=calls("c1")),
            ToolMessage("x", tool_call_id="c1"),
            ToolMessage("y", tool_call_id="c1"),
        ],
        "LS004",
    ),
    (
        [
            HumanMessage("a"),
            AIMessage("", tool_calls=calls("c1")),
            HumanMessage("b"),
            ToolMessage("x", tool_call_id="c1"),
            HumanMessage("c"),
        ],
        "LS009",
    ),
    (
        [
            HumanMessage("a"),
            AIMessage("", tool_calls=calls("c1", "c1")),
            ToolMessage("x", tool_call_id="c1"),
            ToolMessage("y", tool_call_id="c1"),
            HumanMessage("c"),
        ],
        "LS005",
    ),
    (
        [
            HumanMessage("a"),
            AIMessage(
                "",
                invalid_tool_calls=[{"name": "slow", "args": '{"x": ', "id": "c1", "error": None}],
            ),
            HumanMessage("c"),
        ],
        "LS014",
    ),
]


@pytest.mark.parametrize(("messages", "code"), BROKEN, ids=[code for _, code in BROKEN])
def test_each_kind_of_broken_thread_is_found_and_repaired(tmp_path, messages, code):
    graph = stored(tmp_path, *[one.model_copy() for one in messages])
    found = check_file(Source(graph.path))
    assert code in {f.code for c in found.conversations for f in c.findings}
    target = mend(graph.path, tmp_path)
    assert findings(target) == []
    assert lockstitch.check(graph.state(target).values["messages"]) == []
    result = graph.run({"messages": [HumanMessage("next")]}, target)
    assert lockstitch.check(result) == []
    _validate_chat_history(result)


def test_each_thread_is_a_conversation_and_only_broken_ones_get_a_checkpoint(tmp_path):
    path = tmp_path / "db"
    stored(tmp_path, HumanMessage("a"), AIMessage("b"), thread="whole", path=path)
    stored(
        tmp_path,
        HumanMessage("a"),
        AIMessage("", tool_calls=calls("c1")),
        HumanMessage("b"),
        thread="broken",
        path=path,
    )
    scan = check_file(Source(path))
    assert [(one.label, len(one.findings)) for one in scan.conversations] == [
        ("thread broken", 1),
        ("thread whole", 0),
    ]
    before, after = rows(path)[0], rows(mend(path, tmp_path))[0]
    assert {row[0] for row in after if row not in before} == {"broken"}


def test_only_the_newest_checkpoint_of_a_thread_counts(tmp_path):
    graph = Graph(tmp_path / "db")
    graph.run(GO)  # its checkpoints in between have open calls
    assert findings(graph.path) == []


def test_a_call_that_waits_at_an_interrupt_is_told_as_such(tmp_path):
    graph = Graph(tmp_path / "db", asks=True)
    graph.run(GO)
    (conversation,) = check_file(Source(graph.path)).conversations
    assert conversation.label == "thread t1, waiting at an interrupt"
    assert [finding.key for finding in conversation.findings] == ["c1", "c2"]
    assert said(graph.run(Command(resume="yes")))[-1] == ("ai", None)
    assert findings(graph.path) == []


def test_a_failed_request_is_repeated_after_the_repair(tmp_path):
    # The provider refused a broken history: the agent is still to run.
    graph = Graph(tmp_path / "db")
    killed = graph.killed()
    agent = graph._builder.nodes["agent"].runnable
    kept, agent.func = agent.func, _refuse
    with pytest.raises(ValueError, match="refused"):
        graph.run({"messages": [HumanMessage("hm?")]}, killed)
    agent.func = kept
    assert findings(killed) == [("LS001", "c1"), ("LS001", "c2")]
    target = mend(killed, tmp_path)
    assert graph.state(target).next == ("agent",)
    result = graph.run(None, target)
    _validate_chat_history(graph.seen[-1])
    assert said(result)[-2:] == [("human", None), ("ai", None)]


def _refuse(state):
    raise ValueError("refused")


def test_other_channels_with_messages_are_read_and_results_alone_are_not_a_history(tmp_path):
    class State(TypedDict):
        messages: Annotated[list, operator.add]
        side: list
        results: list
        numbers: list

    builder = StateGraph(State)
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    path = tmp_path / "db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke(
            {
                "messages": [{"role": "user", "content": "a"}],
                "side": [AIMessage("", tool_calls=calls("c1")), HumanMessage("b")],
                "results": [ToolMessage("x", tool_call_id="c9")],
                "numbers": [1, 2],
            },
            CONFIG,
        )
    scan = check_file(Source(path))
    assert [(one.label, len(one.findings)) for one in scan.conversations] == [
        ("thread t1", 0),
        ("thread t1 channel side", 1),
    ]
    target = mend(path, tmp_path)
    with SqliteSaver.from_conn_string(str(target)) as saver:
        values = builder.compile(checkpointer=saver).get_state(CONFIG).values
    assert said(values["side"]) == [("ai", None), ("tool", "c1"), ("human", None)]
    assert values["messages"] == [{"role": "user", "content": "a"}]
    assert values["numbers"] == [1, 2]


def test_messages_that_are_dictionaries_stay_dictionaries(tmp_path):
    class State(TypedDict):
        messages: Annotated[list, operator.add]

    builder = StateGraph(State)
    builder.add_node("node", lambda state: {})
    builder.add_edge(START, "node")
    path = tmp_path / "db"
    function = {"name": "slow", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    given = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": "b"},
    ]
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"messages": given}, CONFIG)
    assert findings(path) == [("LS001", "c1")]
    target = mend(path, tmp_path)
    with SqliteSaver.from_conn_string(str(target)) as saver:
        messages = builder.compile(checkpointer=saver).get_state(CONFIG).values["messages"]
    assert lockstitch.check(messages) == []
    assert messages[1]["role"] == "tool"
    assert [messages[0], messages[2]] == given


def test_a_checkpoint_that_an_older_langgraph_stored_as_json_is_repaired(tmp_path):
    graph = stored(
        tmp_path, HumanMessage("a"), AIMessage("", tool_calls=calls("c1")), HumanMessage("b")
    )
    with SqliteSaver.from_conn_string(str(graph.path)) as saver:
        newest = saver.get_tuple(CONFIG)

        def plain(value):
            if hasattr(value, "model_dump"):
                path = [*type(value).__module__.split("."), type(value).__name__]
                fields = value.model_dump()
                return {"lc": 2, "type": "constructor", "id": path, "kwargs": fields}
            raise TypeError

        data = json.dumps(newest.checkpoint, default=plain).encode()
        saver.conn.execute("UPDATE checkpoints SET type = 'json', checkpoint = ?", (data,))
        saver.conn.commit()
    assert findings(graph.path) == [("LS001", "c1")]
    target = mend(graph.path, tmp_path)
    messages = graph.state(target).values["messages"]
    assert said(messages) == [("human", None), ("ai", None), ("tool", "c1"), ("human", None)]
    _validate_chat_history(messages)


# --- what cannot be read is refused ------------------------------------------------------------


class _Cipher:
    def encrypt(self, plaintext):
        return "rot", plaintext[::-1]

    def decrypt(self, ciphername, ciphertext):
        return ciphertext[::-1]


def test_an_encrypted_checkpoint_is_refused(tmp_path):
    path = tmp_path / "db"
    graph = Graph(path)
    connection = sqlite3.connect(path, check_same_thread=False)
    saver = SqliteSaver(connection, serde=EncryptedSerializer(_Cipher()))
    graph._builder.compile(checkpointer=saver).update_state(CONFIG, GO, as_node="agent")
    connection.close()
    with pytest.raises(CannotRead, match=r"stored as msgpack\+rot, which cannot be read"):
        check_file(Source(path))


@pytest.mark.parametrize("kind", ["pickle", "bytes", "null", None, "zzz"])
def test_an_unknown_serialization_is_refused(tmp_path, kind):
    graph = stored(tmp_path, *BROKEN[0][0])
    connection = sqlite3.connect(graph.path)
    connection.execute("UPDATE checkpoints SET type = ?", (kind,))
    connection.commit()
    connection.close()
    with pytest.raises(CannotRead, match="cannot be read"):
        check_file(Source(graph.path))


def test_damaged_checkpoints_are_refused_wherever_they_are_cut(tmp_path):
    graph = stored(tmp_path, *[one.model_copy() for one in BROKEN[0][0]])
    connection = sqlite3.connect(graph.path)
    (data,) = connection.execute("SELECT checkpoint FROM checkpoints").fetchone()
    for size in range(0, len(data), 7):
        connection.execute("UPDATE checkpoints SET checkpoint = ?", (data[:size],))
        connection.commit()
        with pytest.raises(CannotRead):
            check_file(Source(graph.path))
    connection.close()


def test_no_damaged_byte_raises_anything_but_an_error_of_ours(tmp_path):
    graph = stored(tmp_path, *[one.model_copy() for one in BROKEN[0][0]])
    connection = sqlite3.connect(graph.path)
    (data,) = connection.execute("SELECT checkpoint FROM checkpoints").fetchone()
    for at in range(0, len(data), 5):
        torn = bytearray(data)
        torn[at] ^= 0xC1
        connection.execute("UPDATE checkpoints SET checkpoint = ?", (bytes(torn),))
        connection.commit()
        try:
            check_file(Source(graph.path))
        except LockstitchError:
            continue
    connection.close()


def test_a_database_without_checkpoints_or_messages_is_not_clean(tmp_path):
    path = tmp_path / "db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        saver.setup()
    with pytest.raises(EmptyFile, match="no checkpoint"):
        check_file(Source(path))

    class State(TypedDict):
        number: int

    builder = StateGraph(State)
    builder.add_node("node", lambda state: {"number": 2})
    builder.add_edge(START, "node")
    with SqliteSaver.from_conn_string(str(path)) as saver:
        builder.compile(checkpointer=saver).invoke({"number": 1}, CONFIG)
    with pytest.raises(NotASession, match="no thread has a list of messages"):
        check_file(Source(path))


def test_a_database_of_langgraph_0_1_is_refused(tmp_path):
    path = tmp_path / "db"
    connection = sqlite3.connect(path)
    connection.execute(
        "CREATE TABLE checkpoints (thread_id TEXT, thread_ts TEXT, parent_ts TEXT, checkpoint BLOB,"
        " metadata BLOB)"
    )
    connection.commit()
    connection.close()
    with pytest.raises(CannotRead, match=r"LangGraph 0\.1"):
        check_file(Source(path))


def test_a_database_that_changes_while_it_is_mended_is_left_alone(tmp_path):
    graph = stored(tmp_path, *[one.model_copy() for one in BROKEN[0][0]])
    kind = detect_format(Source(graph.path))
    scan = kind.scan(Source(graph.path))
    graph.update({"messages": [HumanMessage("late")]}, as_node="agent")
    with (tmp_path / "out").open("wb") as out, pytest.raises(CannotWrite, match="it changed"):
        kind.write(Source(graph.path), out, scan, Policy())


def test_a_database_in_use_is_read_with_its_write_ahead_log_and_left_alone(tmp_path):
    graph = Graph(tmp_path / "db")
    with SqliteSaver.from_conn_string(str(graph.path)) as saver:
        compiled = graph._builder.compile(checkpointer=saver)
        values = {"messages": [one.model_copy() for one in BROKEN[0][0]]}
        compiled.update_state(CONFIG, values, as_node="agent")
        before = sorted(os.listdir(tmp_path))
        assert any(name.endswith("-wal") for name in before)
        assert findings(graph.path) == [("LS001", "c1")]
        assert sorted(os.listdir(tmp_path)) == before
        shutil.copy(graph.path, tmp_path / "copy")
        shutil.copy(f"{graph.path}-wal", tmp_path / "copy-wal")
    assert findings(tmp_path / "copy") == [("LS001", "c1")]
    assert not (tmp_path / "copy-shm").exists()


def test_a_channel_of_writes_is_rebuilt_as_langgraph_does_it(tmp_path):
    graph = Graph(tmp_path / "db", state=DeltaState)
    for n, messages in enumerate(
        [
            [HumanMessage("a", id="1"), AIMessage("", tool_calls=calls("c1"), id="2")],
            [ToolMessage("x", tool_call_id="c1", id="3"), HumanMessage("b", id="4")],
            [RemoveMessage(id="3"), HumanMessage("c", id="4"), HumanMessage("d")],
        ]
    ):
        graph.update({"messages": messages}, as_node="agent")
        assert len(graph.state().values["messages"]) == (2, 4, 4)[n]
    assert said(graph.state().values["messages"]) == [
        ("human", None),
        ("ai", None),
        ("human", None),
        ("human", None),
    ]
    scan = check_file(Source(graph.path))
    assert scan.records == 4
    assert findings(graph.path) == [("LS001", "c1")]
    target = mend(graph.path, tmp_path)
    messages = graph.state(target).values["messages"]
    assert [one.content for one in messages][3:] == ["c", "d"]
    assert said(messages)[2] == ("tool", "c1")
    graph.update({"messages": [HumanMessage("e")]}, target, as_node="agent")
    assert len(graph.state(target).values["messages"]) == 6
    assert findings(target) == []


def test_a_subgraph_is_a_conversation_of_its_own_and_a_repaired_thread_takes_a_new_input(tmp_path):
    graph = Graph(tmp_path / "db", asks=True)
    outer = StateGraph(MessagesState)
    outer.add_node("inner", graph._builder.compile())
    outer.add_edge(START, "inner")
    with SqliteSaver.from_conn_string(str(graph.path)) as saver:
        outer.compile(checkpointer=saver).invoke(GO, CONFIG, durability="sync")
    first, second = check_file(Source(graph.path)).conversations
    assert first.label == "thread t1, waiting at an interrupt"
    assert second.label.startswith("thread t1 subgraph inner:")
    assert first.findings == []
    assert [finding.key for finding in second.findings] == ["c1", "c2"]
    target = mend(graph.path, tmp_path)
    assert findings(target) == []
    with SqliteSaver.from_conn_string(str(target)) as saver:
        result = outer.compile(checkpointer=saver).invoke(
            {"messages": [HumanMessage("and?")]}, CONFIG
        )
    assert said(result["messages"])[-1] == ("ai", None)
    assert lockstitch.check(result["messages"]) == []
    assert findings(target) == []
