"""Anthropic Messages: results stand first in the user turn that follows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lockstitch
from lockstitch.core import families
from lockstitch.core.items import LONGEST_NOTE_CHARACTERS, Part, Place
from lockstitch.core.outcomes import Evidence, Outcome, Settlement
from lockstitch.dialects.messages import Messages
from tests.generated import examples

MESSAGES = Messages()
HELLO = {"role": "user", "content": "hi"}
TEXT = {"type": "text", "text": "hm"}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def use(key="toolu_a", **more):
    return {"type": "tool_use", "id": key, "name": "t", "input": {}, **more}


def result(key="toolu_a", text="ok", **more):
    return {"type": "tool_result", "tool_use_id": key, "content": text, **more}


def server_use(key="srvtoolu_s", name="web_search"):
    return {"type": "server_tool_use", "id": key, "name": name, "input": {}}


def found_pages(key="srvtoolu_s", url="https://example.org"):
    page = {"type": "web_search_result", "url": url, "title": "t", "encrypted_content": "x"}
    return {"type": "web_search_tool_result", "tool_use_id": key, "content": [page]}


MCP_USE = {"type": "mcp_tool_use", "id": "mcptoolu_m", "name": "t", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_m", "content": [TEXT]}


def check(*history):
    return lockstitch.check(history, dialect="messages")


def codes(*history):
    return [(f.code, str(f.place)) for f in check(*history)]


def mend(*history, **more):
    return lockstitch.mend(history, dialect="messages", **more)


def assert_anthropic_takes(block):
    """The block has the form that Anthropic documents for its type."""
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", block["tool_use_id"])
    kind = block["type"]
    if kind in ("tool_result", "mcp_tool_result"):
        assert set(block) <= {"type", "tool_use_id", "content", "is_error", "cache_control"}
        assert isinstance(block["content"], str | list)
        assert isinstance(block.get("is_error", False), bool)
    else:
        assert kind in {
            "web_search_tool_result",
            "web_fetch_tool_result",
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "tool_search_tool_result",
        }
        assert set(block) == {"type", "tool_use_id", "content"}
        if isinstance(block["content"], dict):
            assert block["content"]["type"] == f"{kind}_error"
            assert isinstance(block["content"]["error_code"], str)


# --- reading -----------------------------------------------------------------------------------


def test_each_block_is_read_in_a_slot_of_its_own():
    wire = assistant({"type": "thinking", "thinking": "…"}, TEXT, use("a"), server_use("s"))
    items = MESSAGES.read(wire)
    assert [(i.part, i.key, i.slot) for i in items] == [
        (Part.REASONING, None, 0),
        (Part.MODEL, None, 1),
        (Part.CALL, "a", 2),
        (Part.CALL, "s", 3),
    ]
    assert [item.family for item in items[2:]] == [families.TOOL_USE, families.SERVER_TOOL_USE]


def test_a_result_is_an_output_of_the_family_it_names():
    own, text = MESSAGES.read(user(result("a", "aborted"), TEXT))
    assert (own.part, own.family, own.key) == (Part.OUTPUT, families.TOOL_USE, "a")
    assert own.note == "aborted"
    assert text.part is Part.INPUT
    for block, family in (
        (found_pages(), families.SERVER_TOOL_USE),
        (MCP_RESULT, families.MCP_TOOL_USE),
    ):
        (item,) = MESSAGES.read(assistant(block))
        assert (item.part, item.family) == (Part.OUTPUT, family)


@pytest.mark.parametrize(
    ("wire", "part"),
    [
        (HELLO, Part.INPUT),
        ({"role": "assistant", "content": "x"}, Part.MODEL),
        (user(), Part.INPUT),
        (assistant(), Part.MODEL),
        ({"role": "user"}, Part.INPUT),
        ({"content": "x"}, Part.OTHER),
        ({"role": ["user"]}, Part.OTHER),
        (assistant("just text"), Part.MODEL),
        (assistant({"type": "tool_use"}), Part.OTHER),
        (assistant({"type": "tool_use", "id": ""}), Part.OTHER),
        (user({"type": "tool_result"}), Part.OUTPUT),
        (assistant({"type": "redacted_thinking", "data": "x"}), Part.REASONING),
        (assistant({"type": "a_type_of_next_year"}), Part.MODEL),
    ],
)
def test_everything_else_is_read_for_the_part_it_plays(wire, part):
    assert [item.part for item in MESSAGES.read(wire)] == [part]


@pytest.mark.parametrize("kind", [[], {}, ["tool_use"], 7, None, True])
def test_a_block_type_may_hold_anything(kind):
    # "Any mapping is legal, whatever it holds."
    (item,) = MESSAGES.read(assistant({"type": kind, "id": "a", "tool_use_id": "a"}))
    assert item.part is Part.MODEL


def test_only_a_short_text_is_carried_as_a_note():
    long = "x" * (LONGEST_NOTE_CHARACTERS + 1)
    assert MESSAGES.read(user(result("a", long)))[0].note is None
    assert MESSAGES.read(user(result("a", [TEXT])))[0].note is None


# --- what is wrong -----------------------------------------------------------------------------


def test_a_whole_conversation_is_whole():
    assert (
        check(
            HELLO,
            assistant(TEXT, use("a"), use("b")),
            user(result("b"), result("a"), TEXT),
            assistant(server_use(), found_pages(), TEXT),
            HELLO,
            assistant(MCP_USE, MCP_RESULT, use("a")),
            user(result("a")),
        )
        == []
    )


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([HELLO, assistant(use("a"))], [("LS001", "1")]),
        ([HELLO, assistant(use("a")), HELLO], [("LS001", "1")]),
        ([assistant(use("a"), use("b")), user(result("a"))], [("LS010", "0.1")]),
        ([HELLO, assistant(TEXT), user(result("a"))], [("LS002", "2")]),
        ([assistant(use("a")), user(result("a"), result("a"))], [("LS004", "1.1")]),
        ([assistant(use("a"), use("a")), user(result("a"), result("a"))], [("LS005", "0.1")]),
        ([assistant(use("a")), user(TEXT, result("a"))], [("LS009", "1.1")]),
        ([assistant(use("a")), HELLO, user(result("a"))], [("LS009", "2")]),
        ([assistant(use("a")), HELLO, assistant(TEXT), user(result("a"))], [("LS009", "3")]),
        ([assistant(server_use()), HELLO], [("LS001", "0")]),
        ([assistant(MCP_USE), HELLO], [("LS001", "0")]),
        ([HELLO, assistant(found_pages())], [("LS002", "1")]),
    ],
)
def test_what_the_provider_would_refuse_is_found(history, expected):
    assert codes(*history) == expected


def test_messages_of_one_role_in_a_row_are_one_turn():
    assert check(assistant(use("a")), assistant(TEXT), user(result("a"))) == []
    assert (
        check(assistant(use("a")), assistant(use("b")), user(result("a")), user(result("b"))) == []
    )


def test_the_server_may_still_answer_its_own_tool_at_the_end():
    assert check(HELLO, assistant(TEXT, server_use())) == []


@pytest.mark.parametrize(
    "history",
    [
        [assistant(use("a"), result("a"))],
        [assistant(use("a")), assistant(result("a"))],
    ],
    ids=["in the same message", "in the next message"],
)
def test_a_result_in_the_models_own_turn_is_no_result(history):
    # "`tool_result` block, `tool_use_id`, in the *next* user message"
    assert check(HELLO, *history) != []


@pytest.mark.parametrize(
    "history",
    [
        [assistant(server_use()), user(found_pages())],
        [assistant(server_use()), HELLO, assistant(found_pages())],
    ],
    ids=["in a user message", "in a later turn"],
)
def test_the_servers_result_stands_in_the_turn_of_its_use(history):
    assert check(HELLO, *history) != []


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", Outcome)
def test_a_synthetic_result_has_the_form_that_anthropic_wants(outcome):
    block = MESSAGES.output(families.TOOL_USE, "toolu_a", Settlement(outcome, "the text"))
    assert_anthropic_takes(block)
    assert block["content"] == "the text"
    assert block.get("is_error", False) is (outcome is not Outcome.FINISHED)


@pytest.mark.parametrize(
    "name",
    [
        "web_search",
        "web_fetch",
        "code_execution",
        "bash_code_execution",
        "text_editor_code_execution",
        "tool_search_tool_regex",
        "tool_search_tool_bm25",
    ],
)
def test_a_tool_of_the_server_is_answered_as_the_server_does_when_it_fails(name):
    mended = mend(HELLO, assistant(TEXT, server_use(name=name), TEXT), HELLO)
    blocks = mended[1]["content"]
    assert [block["type"] for block in (blocks[0], blocks[1], blocks[3])] == [
        "text",
        "server_tool_use",
        "text",
    ]
    assert_anthropic_takes(blocks[2])


def test_a_tool_of_an_mcp_server_is_answered_in_its_own_form():
    mended = mend(HELLO, assistant(MCP_USE), HELLO)
    block = mended[1]["content"][1]
    assert block["type"] == "mcp_tool_result"
    assert block["is_error"] is True
    assert_anthropic_takes(block)


def test_a_settled_result_stands_first_in_the_turn_that_follows():
    mended = mend(HELLO, assistant(use("a"), use("b")), user(result("b"), TEXT))
    assert [block.get("tool_use_id") for block in mended[2]["content"]] == ["a", "b", None]
    assert len(mended) == 3


def test_a_turn_of_plain_text_becomes_blocks_to_take_a_result():
    mended = mend(HELLO, assistant(use("a")), HELLO)
    assert mended[2]["content"][1] == {"type": "text", "text": "hi"}
    assert mended[2]["role"] == "user"


@pytest.mark.parametrize("content", ["", None])
def test_an_empty_turn_takes_a_result_alone(content):
    mended = mend(assistant(use("a")), {"role": "user", "content": content})
    (block,) = mended[1]["content"]
    assert block["type"] == "tool_result"


def test_a_new_user_turn_is_made_where_none_follows():
    mended = mend(HELLO, assistant(use("a")))
    assert [wire["role"] for wire in mended] == ["user", "assistant", "user"]
    assert mended[2]["content"][0]["tool_use_id"] == "a"


def test_a_late_result_is_moved_into_the_turn_that_follows_its_use():
    late = result("a", "late")
    mended = mend(assistant(use("a")), HELLO, assistant(TEXT), user(late, TEXT))
    assert mended[1]["content"] == [late, {"type": "text", "text": "hi"}]
    assert mended[3] == user(TEXT)


def test_a_message_that_held_nothing_but_an_orphan_goes_with_it():
    mended = mend(HELLO, assistant(TEXT), user(result("gone")))
    assert list(mended) == [HELLO, assistant(TEXT)]
    assert mended.removed == [result("gone")]


def test_a_mended_conversation_still_begins_with_the_user():
    # "first message must use the user role": a cut that left a result first is a common one.
    mended = mend(user(result("gone")), assistant(TEXT), HELLO)
    assert mended[0]["role"] == "user"


def test_a_result_of_the_server_that_stands_before_its_use_is_moved_and_kept():
    pages = found_pages()
    mended = mend(HELLO, assistant(pages, server_use(), TEXT), HELLO)
    assert mended[1]["content"] == [server_use(), pages, TEXT]


def test_a_result_of_the_server_without_content_can_be_moved():
    bare = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_s"}
    mended = mend(HELLO, assistant(bare, server_use()), HELLO)
    assert mended[1]["content"] == [server_use(), bare]


@pytest.mark.parametrize(
    "history",
    [
        [HELLO, assistant(server_use()), user(result("srvtoolu_s"), TEXT)],
        [HELLO, assistant(use("a"), {**found_pages("a")}), HELLO],
    ],
    ids=["a result for a server's tool", "a server's result for a tool"],
)
def test_a_result_of_the_wrong_kind_is_mended_into_the_turn_where_it_belongs(history):
    for wire in mend(*history):
        blocks = wire["content"] if isinstance(wire["content"], list) else []
        for block in blocks:
            if block["type"] == "tool_result":
                assert wire["role"] == "user"
            elif block["type"].endswith("_tool_result"):
                assert wire["role"] == "assistant"
            if "tool_use_id" in block:
                assert_anthropic_takes(block)


def test_taking_blocks_leaves_the_others_and_the_message():
    wire = {**user(TEXT, result("a"), result("b")), "x": 1}
    left, taken = MESSAGES.take(wire, {1})
    assert left == {**user(TEXT, result("b")), "x": 1}
    assert taken == [result("a")]
    assert MESSAGES.take(user(result("a")), {0}) == (None, [result("a")])


def test_putting_results_makes_one_user_message_of_them():
    assert MESSAGES.put([result("a"), result("b")]) == [user(result("a"), result("b"))]


def test_only_the_servers_results_stand_beside_their_use():
    assert MESSAGES.beside(families.SERVER_TOOL_USE, Place(0)) is True
    assert MESSAGES.beside(families.TOOL_USE, Place(0)) is False


def test_an_id_is_replaced_in_its_own_block_and_nowhere_else():
    wire = assistant(use("a"), use("a"))
    assert MESSAGES.rekey(wire, 1, "a", "b") == assistant(use("a"), use("b"))
    assert MESSAGES.rekey(user(result("a"), TEXT), 0, "a", "b") == user(result("b"), TEXT)
    assert wire == assistant(use("a"), use("a"))


def test_the_id_of_a_use_is_replaced_whatever_other_fields_it_has():
    stray = use("a", tool_use_id="x")
    assert MESSAGES.rekey(assistant(stray), 0, "a", "b")["content"][0]["id"] == "b"


def test_rewording_touches_its_own_block_alone():
    wire = user(result("a", "aborted", cache_control={}), TEXT)
    changed = MESSAGES.reword(wire, 0, Settlement(Outcome.FINISHED, "new"))
    assert changed == user(result("a", "new", cache_control={}), TEXT)


def test_a_call_that_really_finished_is_not_left_as_an_error():
    known = {"a": Evidence(Outcome.FINISHED, "finished with exit code 0", "21")}
    mended = mend(assistant(use("a")), user(result("a", "aborted", is_error=True)), evidence=known)
    (block,) = mended[1]["content"]
    assert "21" in block["content"]
    assert block.get("is_error", False) is False


def test_a_call_that_finished_with_an_error_is_told_as_an_error():
    said = Settlement(Outcome.FINISHED, "boom", failed=True)
    assert MESSAGES.output(families.TOOL_USE, "a", said)["is_error"] is True
    reworded = MESSAGES.reword(user(result("a", "aborted")), 0, said)
    assert reworded["content"][0]["is_error"] is True


def test_blocks_have_no_id_to_strip():
    wire = assistant(use("a"))
    assert MESSAGES.strip_id(wire, 0) is wire


def test_unknown_blocks_and_fields_come_through_mending_untouched():
    strange = {"type": "a_type_of_next_year", "x": [1, None]}
    first = {**assistant(strange, use("a", cache_control={"type": "ephemeral"})), "meta": 1}
    mended = mend(HELLO, first, user(strange))
    assert mended[1] is first
    assert mended[2]["content"][1] is strange


def test_a_history_may_begin_with_a_user_message_that_answers_nothing():
    assert MESSAGES.may_begin(MESSAGES.read(HELLO))
    assert MESSAGES.may_begin(MESSAGES.read(user(TEXT)))
    assert not MESSAGES.may_begin(MESSAGES.read(user(result("a"), TEXT)))
    assert not MESSAGES.may_begin(MESSAGES.read(assistant(TEXT)))


# --- a provider that scans turn by turn --------------------------------------------------------


def refusal(history):
    """Why a provider would refuse these messages; None if it takes them."""
    turns: list[tuple[str, list]] = []
    for wire in history:
        content = wire["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if turns and turns[-1][0] == wire["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((wire["role"], list(blocks)))
    waiting: list[str] = []
    of_server: list[str] = []
    for role, blocks in turns:
        if role == "assistant":
            for block in blocks:
                if block["type"] in ("tool_use", "server_tool_use"):
                    ids = waiting if block["type"] == "tool_use" else of_server
                    if block["id"] in ids:
                        return "ids must be unique"
                    ids.append(block["id"])
                elif block["type"] == "tool_result":
                    return "a result in the model's turn"
                elif block["type"].endswith("_tool_result"):
                    if block["tool_use_id"] not in of_server:
                        return "a result of the server without its use"
                    of_server.remove(block["tool_use_id"])
        else:
            began = False
            for block in blocks:
                if block["type"] == "tool_result":
                    if block["tool_use_id"] not in waiting:
                        return "unexpected tool_use_id"
                    if began:
                        return "a result behind other content"
                    waiting.remove(block["tool_use_id"])
                elif block["type"].endswith("_tool_result"):
                    return "a result of the server in a user's turn"
                else:
                    began = True
            if waiting:
                return f"without tool_result blocks immediately after: {waiting}"
            if of_server and began:
                return f"the server never answered: {of_server}"
    return f"without tool_result blocks immediately after: {waiting}" if waiting else None


@st.composite
def conversations(draw):
    history = []
    for n in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["user", "assistant"]))
        blocks = []
        for k in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from("abc"))
            kind = draw(st.integers(0, 4))
            if role == "user":
                blocks.append(TEXT if kind == 0 else result(key, f"{n}.{k}"))
            elif kind <= 1:
                blocks.append(use(key))
            elif kind == 2:
                blocks += [server_use(f"s{n}{k}"), found_pages(f"s{n}{k}")][
                    : draw(st.integers(1, 2))
                ]
            elif kind == 3:
                blocks.append({"type": "thinking", "thinking": "…", "signature": "s"})
            else:
                blocks.append(TEXT)
        history.append({"role": role, "content": blocks if draw(st.integers(0, 5)) else "hm"})
    return history


@settings(max_examples=examples(300))
@given(conversations())
def test_check_finds_nothing_exactly_where_a_provider_takes_the_messages(history):
    findings = check(*history)
    assert (findings == []) is (refusal(history) is None), (findings, refusal(history))


@settings(max_examples=examples(300))
@given(conversations(), st.sampled_from(["first", "last"]))
def test_a_provider_takes_every_mended_conversation(history, keep):
    assert refusal(mend(*history, policy=lockstitch.Policy(keep=keep))) is None


@settings(max_examples=examples(300))
@given(conversations(), st.integers(0, 6))
def test_a_provider_takes_every_trimmed_conversation_that_was_whole(history, most):
    whole = mend(*history)
    trimmed = lockstitch.trim(whole, max_items=most, dialect="messages")
    assert refusal(trimmed) is None
    if len(trimmed) < len(whole) and trimmed:
        assert trimmed[0]["role"] == "user"


# --- blocks on the wrong side -------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "system", ""])
@pytest.mark.parametrize("kind", ["tool_use", "server_tool_use", "mcp_tool_use"])
@pytest.mark.parametrize(
    "beside",
    [
        {"type": "text", "text": "x"},
        {"type": "thinking", "thinking": "x"},
        {"type": "tool_result", "tool_use_id": "z", "content": "x"},
    ],
)
def test_a_use_that_is_not_in_the_models_own_message_is_mended_all_the_same(role, kind, beside):
    use = {"type": kind, "id": "a", "name": "web_search"}
    history = [
        {"role": role, "content": [use, beside]},
        {"role": "user", "content": [{"type": "thinking", "thinking": "x"}]},
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": "hm"},
    ]
    mended = lockstitch.mend(history, dialect="messages")
    assert lockstitch.check(mended, dialect="messages") == []
    assert lockstitch.mend(mended, dialect="messages").changed is False
