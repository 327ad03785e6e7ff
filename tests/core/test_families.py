"""The table of families, against the facts and against OpenAI's own types."""

from __future__ import annotations

import typing

import pytest
import typing_extensions
from openai.types.responses import ResponseInputItemParam

from lockstitch.core import families
from lockstitch.core.families import Family, Join

# Written down from the facts, not from the code.
RESPONSES_PAIRS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
    "mcp_approval_request": "mcp_approval_response",
}
SELF_CONTAINED = {
    "mcp_call",
    "mcp_list_tools",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
}


def sdk_items() -> dict[str, set[str]]:
    """Every item type that OpenAI's SDK lets one send, and its fields."""
    found: dict[str, set[str]] = {}
    for member in typing.get_args(ResponseInputItemParam):
        hints = typing_extensions.get_type_hints(member)
        for literal in _literals(hints.get("type")):
            found.setdefault(literal, set()).update(hints)
    return found


def _literals(hint: object) -> list[str]:
    if typing_extensions.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return [one for inner in typing.get_args(hint) for one in _literals(inner)]


def test_the_nine_families_are_those_of_the_facts():
    assert {f.call_type: f.output_type for f in families.RESPONSES_FAMILIES} == RESPONSES_PAIRS
    assert len(families.RESPONSES_FAMILIES) == 9


@pytest.mark.parametrize(
    ("family", "join"),
    [
        (families.FUNCTION, Join.CALL_ID),
        (families.CUSTOM, Join.CALL_ID),
        (families.COMPUTER, Join.CALL_ID),
        (families.SHELL, Join.CALL_ID),
        (families.LOCAL_SHELL, Join.CALL_ID_OR_ID),
        (families.APPLY_PATCH, Join.CALL_ID),
        (families.TOOL_SEARCH, Join.CALL_ID),
        (families.PROGRAM, Join.CALL_ID),
        (families.MCP_APPROVAL, Join.APPROVAL),
        (families.CHAT_TOOL, Join.TOOL_CALL_ID),
        (families.TOOL_USE, Join.TOOL_USE_ID),
        (families.SERVER_TOOL_USE, Join.TOOL_USE_ID),
        (families.GEMINI_FUNCTION, Join.ID_OR_NAME),
        (families.GEMINI_FUNCTION_SNAKE, Join.ID_OR_NAME),
        (families.GEMINI_TOOL, Join.ID),
        (families.GEMINI_TOOL_SNAKE, Join.ID),
        (families.BEDROCK_TOOL_USE, Join.BEDROCK_ID),
        (families.BEDROCK_SERVER_TOOL_USE, Join.BEDROCK_ID),
        (families.VERCEL_TOOL, Join.TOOL_CALL_ID_OF_PART),
        (families.VERCEL_APPROVAL, Join.APPROVAL_ID),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_each_family_is_joined_by_the_fields_of_the_facts(family, join):
    assert family.join is join


# The other families come from libraries that have several spellings of one type.
OF_PROVIDERS = tuple(f for f in families.ALL_FAMILIES if f not in families.VERCEL_FAMILIES)


def test_no_two_families_share_a_name():
    names = [family.name for family in families.ALL_FAMILIES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "of_one_dialect",
    [families.RESPONSES_FAMILIES, families.GEMINI_FAMILIES],
    ids=["responses", "gemini"],
)
def test_no_two_families_of_a_dialect_share_a_type(of_one_dialect):
    for field in ("call_type", "output_type"):
        values = [getattr(family, field) for family in of_one_dialect]
        assert len(set(values)) == len(values), field


ALSO_LEGAL = {
    ("local shell", "function"),  # the form of Codex
    # Python programs write Gemini in either spelling, and the SDK reads both.
    ("Gemini function", "Gemini function in snake case"),
    ("Gemini function in snake case", "Gemini function"),
    ("Gemini server tool", "Gemini server tool in snake case"),
    ("Gemini server tool in snake case", "Gemini server tool"),
    # The user's turn does not show who ran the tool.
    ("Bedrock server tool use", "Bedrock tool use"),
}


@pytest.mark.parametrize("call", OF_PROVIDERS, ids=lambda f: f.name)
@pytest.mark.parametrize("output", families.ALL_FAMILIES, ids=lambda f: f.name)
def test_an_output_answers_its_own_family_and_few_others(call, output):
    also = (call.name, output.name) in ALSO_LEGAL
    one_format = {call, output} <= set(families.LANGCHAIN_SHAPES)
    assert call.accepts(output) is (call is output or also or one_format)


@pytest.mark.parametrize("call", families.VERCEL_FAMILIES, ids=lambda f: f.name)
@pytest.mark.parametrize("output", families.ALL_FAMILIES, ids=lambda f: f.name)
def test_a_call_of_the_ai_sdk_takes_every_spelling_of_a_result_and_nothing_else(call, output):
    alike = output in families.VERCEL_FAMILIES and (
        output is call
        or (
            not (call.inline or output.inline)
            and (output.join, output.asks_first) == (call.join, call.asks_first)
        )
    )
    assert call.accepts(output) is alike


def test_an_output_without_a_key_is_legal_only_as_an_event_and_as_a_tool_search():
    legal = {f.name for f in families.ALL_FAMILIES if f.keyless_output}
    assert legal == {"function", "tool search"}


def test_only_a_tool_search_is_ever_called_without_a_key():
    assert [f for f in families.ALL_FAMILIES if f.keyless_call] == [families.TOOL_SEARCH]


def test_the_server_answers_programs_and_its_own_tools():
    by_server = {f.name for f in OF_PROVIDERS if f.by_server}
    assert by_server == {
        "program",
        "server tool use",
        "MCP tool use",
        "Gemini server tool",
        "Gemini server tool in snake case",
        "Bedrock server tool use",
        "LangChain server tool",
        "Pydantic AI native tool",
    }


def test_only_an_approval_asks_before_anything_is_done():
    assert [f for f in OF_PROVIDERS if f.asks_first] == [families.MCP_APPROVAL]


def test_nothing_answers_the_calls_that_hold_their_own_result():
    assert families.SELF_CONTAINED == SELF_CONTAINED
    paired = {f.call_type for f in families.ALL_FAMILIES}
    assert not families.SELF_CONTAINED & paired


def test_a_realtime_conversation_knows_functions_and_approvals():
    assert set(families.REALTIME_FAMILIES) == {families.FUNCTION, families.MCP_APPROVAL}


def test_every_pair_of_the_table_is_a_pair_in_openais_types():
    types = sdk_items()
    for family in families.RESPONSES_FAMILIES:
        assert family.call_type in types
        assert family.output_type in types


def test_every_type_in_openais_sdk_with_a_joining_field_is_in_the_table():
    joined = {
        name
        for name, fields in sdk_items().items()
        if "call_id" in fields or ("approval_request_id" in fields and "approve" in fields)
    }
    known = {t for f in families.RESPONSES_FAMILIES for t in (f.call_type, f.output_type)}
    assert joined <= known


def test_openais_types_join_the_local_shell_output_by_its_id_alone():
    fields = sdk_items()["local_shell_call_output"]
    assert "id" in fields
    assert "call_id" not in fields


def test_a_family_is_a_value():
    same = Family(
        name="custom", call_type="custom_tool_call", output_type="custom_tool_call_output"
    )
    assert same == families.CUSTOM
    with pytest.raises(AttributeError):
        same.name = "other"
