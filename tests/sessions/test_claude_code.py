"""Claude Code transcripts: chains, sidechains, rewinds, boundaries."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core.errors import CannotMend
from lockstitch.core.items import Place
from lockstitch.sessions.claude_code import dead_lines
from lockstitch.sessions.files import check_file
from lockstitch.sessions.source import Source
from tests.generated import KEYS, examples
from tests.sessions.written import findings, jsonl, mend, messages, records, written


class Transcript:
    """Writes lines whose parent is the line before, unless told otherwise."""

    def __init__(self):
        self.lines = []
        self.tip = None

    def add(self, kind, message=None, *, parent=..., **more):
        uuid = f"00000000-0000-4000-8000-{len(self.lines):012}"
        line = {
            "parentUuid": self.tip if parent is ... else parent,
            "isSidechain": False,
            "sessionId": "s",
            "version": "2.1.12",
            "type": kind,
            **({"message": message} if message else {}),
            "uuid": uuid,
            "timestamp": "2026-11-15T19:20:00.000Z",
            **more,
        }
        self.lines.append(line)
        if not line["isSidechain"]:
            self.tip = uuid
        return uuid

    def prompt(self, text="go", **more):
        return self.add("user", {"role": "user", "content": text}, **more)

    def use(self, key, name="Bash", **more):
        block = {"type": "tool_use", "id": key, "name": name, "input": {}}
        message = {"id": "msg_1", "role": "assistant", "content": [block]}
        return self.add("assistant", message, **more)

    def result(self, key, text="done", **more):
        block = {"type": "tool_result", "tool_use_id": key, "content": text}
        return self.add("user", {"role": "user", "content": [block]}, **more)

    def say(self, text="ok", **more):
        content = [{"type": "text", "text": text}]
        return self.add(
            "assistant", {"id": "msg_2", "role": "assistant", "content": content}, **more
        )

    def source(self, tmp_path):
        return written(tmp_path / "t.jsonl", jsonl(self.lines))


def test_a_whole_transcript_is_clean(tmp_path):
    t = Transcript()
    t.add("summary", summary="x", leafUuid="y")
    t.prompt()
    t.use("toolu_1")
    t.result("toolu_1")
    t.say()
    source = t.source(tmp_path)
    assert findings(source) == []
    assert check_file(source).format == "claude-code"


def test_parallel_uses_on_lines_of_their_own_are_one_group(tmp_path):
    t = Transcript()
    t.prompt()
    first = t.use("toolu_1")
    second = t.use("toolu_2")
    t.result("toolu_1", parent=first)
    t.result("toolu_2", parent=second)
    t.say()
    assert findings(t.source(tmp_path)) == []


def test_an_interrupted_use_has_no_result(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_1")
    t.prompt("never mind")
    source = t.source(tmp_path)
    assert messages(source) == ["toolu_1 (Bash) has no output"]


def test_a_settled_use_becomes_part_of_the_chain(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_1")
    t.prompt("never mind")
    t.say()
    source = t.source(tmp_path)
    lines = records(mend(source))
    new = lines[2]
    assert new["message"]["content"][0]["tool_use_id"] == "toolu_1"
    assert new["parentUuid"] == t.lines[1]["uuid"]
    assert lines[3]["parentUuid"] == new["uuid"]
    assert lines[3]["message"] == t.lines[2]["message"]
    assert lines[4] == t.lines[3]
    assert new["sessionId"] == "s"
    assert findings(source) == []


def test_a_removed_result_is_bridged(tmp_path):
    t = Transcript()
    t.prompt()
    t.result("toolu_nobody")
    t.say()
    source = t.source(tmp_path)
    lines = records(mend(source))
    assert [line["type"] for line in lines] == ["user", "assistant"]
    assert lines[1]["parentUuid"] == t.lines[0]["uuid"]


def test_what_a_rewind_left_behind_is_not_looked_at(tmp_path):
    t = Transcript()
    t.prompt()
    keep = t.say()
    t.prompt("wrong way")
    t.use("toolu_1")
    t.prompt("another way", parent=keep)
    t.say()
    assert findings(t.source(tmp_path)) == []


def test_a_rewind_that_took_a_result_leaves_half_a_pair(tmp_path):
    t = Transcript()
    t.prompt()
    use = t.use("toolu_1")
    t.say("thinking")
    t.result("toolu_1")
    t.prompt("back", parent=use)
    source = t.source(tmp_path)
    assert [code for code, _ in findings(source)] == ["LS011"]


def test_a_rewind_is_not_undone_when_the_last_line_goes(tmp_path):
    """The last message says what is live; if nothing is left of it, a note takes its place."""
    t = Transcript()
    first = t.prompt("first")
    t.say("left behind")
    t.result("toolu_nobody", parent=first)
    t.result("toolu_nobody_else")
    source = t.source(tmp_path)
    lines = records(mend(source))
    assert [line["uuid"] for line in lines] == [t.lines[n]["uuid"] for n in (0, 1, 3)]
    assert lines[2]["parentUuid"] == first
    assert lines[2]["message"]["content"][0]["text"].startswith("[lockstitch]")
    assert findings(source) == []


def test_a_message_that_is_no_part_of_the_chain_is_settled_beside_it(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_1", uuid=None)
    t.prompt("again", parent=None)
    source = t.source(tmp_path)
    lines = records(mend(source))
    assert findings(source) == []
    assert [line.get("parentUuid") for line in lines if line.get("uuid")] == [None, None]


def test_a_boundary_starts_anew(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_1")
    t.add("system", subtype="compact_boundary", parent=None)
    t.prompt("summary")
    t.say()
    assert findings(t.source(tmp_path)) == []


def test_a_result_behind_a_boundary_is_half_a_pair(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_1")
    t.add("system", subtype="compact_boundary", parent=None)
    t.result("toolu_1")
    source = t.source(tmp_path)
    assert messages(source) == [
        "output for toolu_1 has no call: it was cut away by the compaction (line 3)"
    ]


def test_a_sidechain_is_a_conversation_of_its_own(tmp_path):
    t = Transcript()
    t.prompt()
    t.use("toolu_task", name="Task")
    t.prompt("sub", isSidechain=True, agentId="a1", parent=None)
    t.use("toolu_sub", isSidechain=True, agentId="a1")
    t.result("toolu_task")
    t.say()
    scan = check_file(t.source(tmp_path))
    assert [(one.finding.key, one.label) for one in scan.findings()] == [
        ("toolu_sub", "sidechain a1")
    ]


def test_a_torn_line_goes_and_the_rest_stays(tmp_path):
    t = Transcript()
    t.prompt()
    t.say()
    source = written(tmp_path / "t.jsonl", jsonl([t.lines[0], b'{"type":"us', t.lines[1]]))
    assert findings(source) == [("LS101", 2)]
    assert records(mend(source)) == t.lines


steps = st.lists(
    st.tuples(
        st.sampled_from(["prompt", "use", "result", "say", "boundary", "rewind", "sidechain"]),
        st.sampled_from(KEYS),
        st.integers(0, 12),
    ),
    max_size=14,
)


@settings(max_examples=examples(150))
@given(steps)
def test_any_mended_transcript_checks_clean_and_is_a_fixed_point(tmp_path_factory, steps):
    t = Transcript()
    for kind, key, back in steps:
        if kind == "use":
            t.use(key)
        elif kind == "result":
            t.result(key)
        elif kind == "boundary":
            t.add("system", subtype="compact_boundary", parent=None)
        elif kind == "rewind" and t.lines:
            t.prompt(parent=t.lines[back % len(t.lines)]["uuid"])
        elif kind == "sidechain":
            t.use(key, isSidechain=True, agentId="a")
        elif kind == "say":
            t.say()
        else:
            t.prompt()
    if not t.lines:
        return
    path = tmp_path_factory.mktemp("claude")
    source = t.source(path)
    if all(kind == "result" for kind, _, _ in steps):
        with pytest.raises(lockstitch.CannotMend, match="nothing of it would be left"):
            mend(source)
        return
    once = mend(source)
    assert findings(source) == []
    assert mend(Source(source.path)) == once
    lines = records(once)
    known = {line["uuid"] for line in lines} | {None}
    assert all(line["parentUuid"] in known for line in lines)
    assert all(line["parentUuid"] != line["uuid"] for line in lines)


@settings(max_examples=examples(300))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["prompt", "use", "result", "say", "boundary"]),
            st.sampled_from(KEYS),
            st.one_of(st.just(...), st.none(), st.integers(0, 9)),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_no_mending_brings_back_what_was_left_behind(tmp_path_factory, steps):
    """Whatever hangs on whatever: a mended transcript is whole, and no other line is live in it."""
    t = Transcript()
    for what, key, parent in steps:
        on = t.lines[parent % len(t.lines)]["uuid"] if isinstance(parent, int) and t.lines else None
        more = {} if parent is ... else {"parent": on}
        if what == "boundary":
            t.add("system", subtype="compact_boundary", **more)
        else:
            getattr(t, what)(key, **more)
    source = t.source(tmp_path_factory.mktemp("chain"))
    before = _live(source)
    try:
        mended = mend(source)
    except CannotMend as refused:
        said = str(refused)
        assert "nothing of it would be left" in said
        return
    assert findings(source) == []
    assert mend(source) == mended
    there = {line["uuid"] for line in t.lines}
    assert _live(source) & there <= before


def _live(source):
    dead, _ = dead_lines(source)
    lines = enumerate(records(source.path.read_bytes()), 1)
    return {line["uuid"] for n, line in lines if not any(one.holds(Place(n)) for one in dead)}
