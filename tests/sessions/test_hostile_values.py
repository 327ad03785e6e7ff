"""Any value may stand anywhere in a session: a list for a type, half of an emoji for a name.

Bytes that are damaged are in `test_formats`; here every record is JSON, and says odd things."""

from __future__ import annotations

import copy
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.sessions.errors import CannotRead
from lockstitch.sessions.files import check_file
from tests.generated import examples
from tests.sessions import rollouts
from tests.sessions.written import jsonl, mend, written

HALF_AN_EMOJI = "\ud83d"

ITEMS = [
    {"type": "message", "role": "user", "content": "x"},
    {"type": "function_call", "call_id": "a", "id": "i1", "name": "n"},
    {"type": "function_call", "call_id": "a", "id": "i1", "name": "n"},
    {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text"}]},
    {"type": "reasoning", "id": "r"},
    {"type": "shell_call", "call_id": "s", "id": "sh"},
    {"type": "function_call_output", "call_id": "s", "output": {"x": 1}},
    {"type": "local_shell_call", "id": "l", "call_id": "l2"},
    {"type": "mcp_approval_request", "id": "ap"},
    {"type": "tool_search_call", "call_id": None, "execution": "client"},
    {"type": "custom_tool_call_output", "call_id": "early", "output": "aborted"},
    {"type": "custom_tool_call", "call_id": "early", "name": "n"},
]
CHAT = [
    {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "n"}}, {"id": "b"}]},
    {"role": "user", "content": "x"},
    {"role": "tool", "tool_call_id": "a", "content": "aborted"},
]
MESSAGES = [
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z", "content": "x"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "x"},
            {"type": "tool_use", "id": "a", "name": "n", "input": {}},
            {"type": "server_tool_use", "id": "b", "name": "web_search"},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "q"},
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]},
        ],
    },
]
LIVEKIT = [
    {"id": "m", "type": "message", "role": "user", "content": ["hi"], "interrupted": False},
    {"id": "f", "type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
    {"id": "o", "type": "function_call_output", "call_id": "z", "output": "x", "is_error": False},
]


def _line(number, parent, message, **more):
    links = {"uuid": f"u{number}", "parentUuid": parent and f"u{parent}", "sessionId": "s"}
    return {"type": message["role"], **links, "timestamp": "t", "message": message, **more}


TRANSCRIPT = [
    _line(1, None, {"role": "user", "content": "hi"}),
    _line(2, 1, MESSAGES[1]),
    _line(3, 2, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}),
    _line(4, 2, {"role": "user", "content": "again"}),
    _line(5, 4, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "n"}]}),
    _line(6, 5, MESSAGES[0], isSidechain=True, agentId="a"),
    _line(7, 5, MESSAGES[2]),
]
ROLLOUT = [
    rollouts.user(),
    rollouts.call("a"),
    rollouts.ended("a"),
    rollouts.call("b"),
    rollouts.output("b", "aborted"),
    rollouts.event({"type": "exec_command_end", "call_id": "b", "exit_code": 0, "stdout": "x"}),
    rollouts.user("more"),
]
CUT_ROLLOUT = [
    rollouts.user(),
    rollouts.call("a"),
    rollouts.output("a"),
    rollouts.compacted([rollouts.user()["payload"], rollouts.call("a")["payload"]]),
    rollouts.user(),
    rollouts.call("c"),
    rollouts.output("c"),
    rollouts.rolled_back(),
    rollouts.call("d"),
]

SESSIONS = {
    "paginated rollout": rollouts.paginated(ROLLOUT),
    "rollout": rollouts.legacy(CUT_ROLLOUT),
    "transcript": TRANSCRIPT,
    "items": ITEMS,
    "chat": CHAT,
    "messages": MESSAGES,
    "requests": [{"model": "m", "input": ITEMS}, {"body": {"messages": CHAT}}],
    "document": {"model": "m", "previous_response_id": None, "input": ITEMS},
    "chat context": {"items": LIVEKIT},
}


class Digits(float):
    """A number that is written as it is here."""

    text: str


def digits(text: str) -> Digits:
    number = Digits(math.inf)
    number.text = text
    return number


HOSTILE = [
    *([], {}, None, True, False, 0, -1, 7.0, 10**30, "", "x", "a", "message", "function_call"),
    *(digits("1e999"), digits("1" * 5_000)),
    *(HALF_AN_EMOJI, "\x00", "\u2028"),
    *([[]], [{}], [None], ["x"], {"type": []}, [{"type": {}}], [{"type": [], "id": []}]),
]


def _json(value) -> str:
    """`json.dumps`, but for digits that no number holds."""
    if isinstance(value, Digits):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(n)}:{_json(one)}" for n, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value)


def _bytes(session) -> bytes:
    records = session if isinstance(session, list) else [session]
    return "".join(_json(record) + "\n" for record in records).encode()


def _places(value, path=()):
    """The path of everything in a session."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in inner:
        yield (*path, name)
        if isinstance(one, dict | list):
            yield from _places(one, (*path, name))


def _with(session, path, value):
    session = copy.deepcopy(session)
    inner = session
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return session


PLACES = [(name, path) for name, session in SESSIONS.items() for path in _places(session)]


@settings(max_examples=examples(800))
@given(where=st.sampled_from(PLACES), value=st.sampled_from(HOSTILE))
def test_with_any_value_in_any_place_a_session_is_mended_whole_or_not_read(
    tmp_path_factory, where, value
):
    name, path = where
    content = _bytes(_with(SESSIONS[name], path, value))
    source = written(tmp_path_factory.mktemp("odd") / "s.jsonl", content)
    try:
        found = check_file(source).findings()
        whole = mend(source)
    except CannotRead:
        return
    assert found or whole == content
    assert check_file(source).findings() == []
    assert mend(source) == whole


# --- each of them by itself ---------------------------------------------------------------------

OPEN_CALL = {"type": "function_call", "call_id": "a", "name": "n"}


@pytest.mark.parametrize("kind", [[], {}])
@pytest.mark.parametrize(
    "record",
    [
        {"payload": {}},
        {"role": "user", "content": "x"},
        {"role": "user", "content": [{"type": "input_text"}]},
        {"sessionId": "s"},
    ],
)
def test_a_type_that_is_no_text_tells_nothing(tmp_path, kind, record):
    content = jsonl([{"type": kind, **record}, OPEN_CALL])
    for dialect in (None, "realtime"):
        source = written(tmp_path / "s.jsonl", content)
        assert [one.finding.code for one in check_file(source, dialect=dialect).findings()] == [
            "LS001"
        ]


@pytest.mark.parametrize("wrap", [list, lambda items: {"items": items}])
def test_an_item_whose_type_is_no_text_is_not_of_livekit(tmp_path, wrap):
    content = json.dumps(wrap([{"type": [], "role": "user"}, OPEN_CALL])).encode()
    assert check_file(written(tmp_path / "s.json", content)).format == "json"


@pytest.mark.parametrize(
    "record",
    [
        rollouts.event({"type": []}),
        rollouts.event({"type": {}, "call_id": []}),
        rollouts.output(["x"]),
        rollouts.record([], {}),
    ],
)
def test_a_rollout_record_of_an_odd_type_passes(tmp_path, record):
    kept = [rollouts.call("a")["payload"]]
    source = written(
        tmp_path / "s.jsonl", jsonl(rollouts.legacy([record, rollouts.compacted(kept)]))
    )
    assert [one.finding.code for one in check_file(source).findings()] == ["LS011"]


@pytest.mark.parametrize("wire", [{"call_id": "a", "name": HALF_AN_EMOJI}, {"call_id": "\ud800"}])
def test_half_of_an_emoji_is_written_as_it_came(tmp_path, wire):
    call = {"type": "function_call", "name": "n", "id": "i", **wire}
    for content in (
        b"".join(json.dumps(one).encode() + b"\n" for one in (call, call)),
        json.dumps({"input": [call, call]}).encode(),
        json.dumps([call, call], indent=1).encode(),
    ):
        source = written(tmp_path / "s", content)
        mended = mend(source)
        escaped = json.dumps(next(one for one in wire.values() if not one.isascii()))[1:-1]
        assert mended.count(escaped.encode()) >= 2
        assert check_file(source).findings() == []


@pytest.mark.parametrize("number", ["1e999", "-1E+400", "1" * 5_000, "123456789012345678901"])
def test_a_number_beyond_all_bounds_is_written_as_it_came(tmp_path, number):
    line = b'{"type":"function_call","call_id":"a","id":"i","x":%b}' % number.encode()
    for content in (line + b"\n" + line + b"\n", b'{"input":[%b,%b]}' % (line, line)):
        source = written(tmp_path / "s", content)
        assert mend(source).count(b'"x":' + number.encode()) == 2
        assert check_file(source).findings() == []


def test_what_is_odd_elsewhere_in_a_record_does_not_hide_its_output(tmp_path):
    """A record that is not at first sight what Codex writes is read all the same."""
    denied = {**rollouts.output("a", "aborted"), "ordinal": 10**30}
    records = [rollouts.user(), rollouts.call("a"), rollouts.ended("a"), denied]
    source = written(tmp_path / "s.jsonl", jsonl(rollouts.legacy(records)))
    assert [one.finding.code for one in check_file(source).findings()] == ["LS012"]


@pytest.mark.parametrize("ordinal", [True, 1.0, "1", None])
def test_an_ordinal_that_only_looks_like_one_is_written_anew(tmp_path, ordinal):
    records = rollouts.paginated([rollouts.user(), rollouts.user()])
    records[1]["ordinal"] = ordinal
    source = written(tmp_path / "s.jsonl", jsonl(records))
    mended = mend(source)
    assert [json.loads(line)["ordinal"].__repr__() for line in mended.splitlines()] == [*"012"]
    assert check_file(source).findings() == []


@pytest.mark.parametrize(
    "content",
    [
        b'{"model": "m" "input": []}',
        b'{"input": [] "model": "m"}',
        b'{, "input": []}',
        b'{"input": [],}',
        b'{"input": [],, "model": "m"}',
    ],
)
def test_an_object_with_its_commas_wrong_is_not_json(tmp_path, content):
    with pytest.raises(CannotRead, match=r"comma|torn"):
        check_file(written(tmp_path / "s.json", content))
