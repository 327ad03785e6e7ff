"""The nine families of calls with the official client: what is taken, how the rest is refused."""

from typing import Any

import pytest

from lockstitch.emulator import (
    call,
    custom_call,
    item,
)
from tests.emulator.official import (
    as_input,
    invalid,
    refusal_of,
)
from tests.emulator.official_client.shared import USER, output_of

# Tools


def test_a_function_of_a_namespace_is_called_with_it(client):
    tools = [
        {
            "type": "namespace",
            "name": "crm",
            "description": "Customers.",
            "tools": [
                {"type": "function", "name": "find", "parameters": {}},
                {"type": "custom", "name": "note"},
            ],
        }
    ]
    made = client.create("find and note", tools=tools)
    assert [(item.name, item.namespace) for item in made.output] == [
        ("find", "crm"),
        ("note", "crm"),
    ]
    assert [item.type for item in made.output] == ["function_call", "custom_tool_call"]


@pytest.mark.parametrize(
    ("inside", "param"),
    [
        ({}, "tools[0].tools"),
        ({"tools": 1}, "tools[0].tools"),
        ({"tools": [1]}, "tools[0].tools[0]"),
        ({"tools": [{}]}, "tools[0].tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].tools[0].name"),
        ({"tools": [{"type": "namespace", "tools": []}]}, "tools[0].tools[0].type"),
        ({"tools": [], "name": 1}, "tools[0].name"),
    ],
)
def test_a_namespace_holds_functions_and_custom_tools(client, inside, param):
    tool = {"type": "namespace", "name": "crm", "description": ""} | inside
    status, error = refusal_of(lambda: client.create(tools=[tool]))
    assert (status, error["param"]) == (400, param)


# The nine families: what is called, what answers it, and what errors call it.
FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "function_call": (
        call("f", call_id="call_1"),
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
        "function call",
    ),
    "custom_tool_call": (
        custom_call("g", "x", call_id="call_1"),
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "x"},
        "custom tool call",
    ),
    "computer_call": (
        item("computer_call", call_id="call_1"),
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,aGk="},
        },
        "computer call",
    ),
    "shell_call": (
        item("shell_call", call_id="call_1"),
        {"type": "shell_call_output", "call_id": "call_1", "output": []},
        "shell call",
    ),
    "local_shell_call": (
        item("local_shell_call", call_id="call_1"),
        {"type": "local_shell_call_output", "id": "call_1", "output": "{}"},
        "local shell call",
    ),
    "apply_patch_call": (
        item("apply_patch_call", call_id="call_1"),
        # Nothing was printed: there is no `output`.
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"},
        "apply patch call",
    ),
    "tool_search_call": (
        item("tool_search_call", call_id="call_1"),
        {"type": "tool_search_output", "call_id": "call_1", "tools": []},
        "tool search call",
    ),
    "program": (
        item("program", call_id="call_1"),
        {
            "type": "program_output",
            "id": "progo_1",
            "call_id": "call_1",
            "result": "x",
            "status": "completed",
        },
        "program",
    ),
    "mcp_approval_request": (
        item("mcp_approval_request", id="mcpr_1"),
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        "MCP approval request",
    ),
}
families = pytest.mark.parametrize("family", FAMILIES)


def no_output(family: str) -> tuple[int, Any]:
    """The refusal of a call that has no output."""
    key = "mcpr_1" if family == "mcp_approval_request" else "call_1"
    return invalid(f"No tool output found for {FAMILIES[family][2]} {key}.")


def no_call(family: str) -> tuple[int, Any]:
    """The refusal of an output that has no call."""
    answer, words = FAMILIES[family][1:]
    name = next(name for name in ("call_id", "approval_request_id", "id") if name in answer)
    return invalid(f"No tool call found for {words} output with {name} {answer[name]}.")


@families
def test_a_call_is_answered_by_its_output(client, emulator, family):
    draft, answer, _ = FAMILIES[family]
    emulator.say(draft)
    made = client.create()
    assert made.output[0].type == family
    assert client.create([answer], previous_response_id=made.id).status == "completed"
    whole = [USER, *as_input(*made.output), answer]
    assert client.create(whole, store=False).status == "completed"
    assert emulator.violations() == {}


@families
def test_a_call_without_its_output_is_refused(client, emulator, family):
    emulator.say(FAMILIES[family][0])
    made = client.create()
    asked = [
        lambda: client.create(previous_response_id=made.id),
        lambda: client.create([USER, *as_input(*made.output)]),
        lambda: client.create([USER, *as_input(*made.output), USER]),
    ]
    assert [refusal_of(ask) for ask in asked] == [no_output(family)] * 3
    assert emulator.violations() == {"call-without-output": 3}


@families
def test_an_output_without_its_call_is_refused(client, emulator, family):
    draft, answer, _ = FAMILIES[family]
    emulator.say(draft)
    made = client.create()
    second = answer | ({"id": "progo_2"} if family == "program" else {})
    asked = [
        # No call at all; twice for one call; before its call.
        lambda: client.create([answer]),
        lambda: client.create([answer, second], previous_response_id=made.id),
        lambda: client.create([USER, answer, *as_input(*made.output)]),
    ]
    assert [refusal_of(ask) for ask in asked] == [no_call(family)] * 3
    following = client.create([answer], previous_response_id=made.id)
    assert refusal_of(
        lambda: client.create([second], previous_response_id=following.id)
    ) == no_call(family)


@families
def test_an_output_of_another_family_answers_nothing(client, emulator, family):
    emulator.say(FAMILIES[family][0])
    made = client.create()
    for other, (_, answer, _) in FAMILIES.items():
        legal = family == "local_shell_call" and other == "function_call"
        if other == family or legal:
            continue
        assert refusal_of(
            lambda answer=answer: client.create([answer], previous_response_id=made.id)
        ) == no_call(other)


def test_a_local_shell_call_is_answered_in_any_of_three_ways(client, emulator):
    emulator.say(FAMILIES["local_shell_call"][0])
    made = client.create()
    as_the_guide_has_it = {"type": "local_shell_call_output", "call_id": "call_1", "output": "{}"}
    for answer in (
        FAMILIES["local_shell_call"][1],
        as_the_guide_has_it,
        {**as_the_guide_has_it, "id": "lsho_1"},
        FAMILIES["function_call"][1],
    ):
        assert client.create([answer], previous_response_id=made.id).status == "completed"
    both = [FAMILIES["local_shell_call"][1], FAMILIES["function_call"][1]]
    assert refusal_of(lambda: client.create(both, previous_response_id=made.id)) == no_call(
        "function_call"
    )


def test_the_outputs_of_many_calls_come_in_any_order_and_all_at_once(client, emulator):
    emulator.say(*(call("f", call_id=f"call_{number}") for number in range(3)))
    made = client.create()
    outputs = [
        {"type": "function_call_output", "call_id": f"call_{number}", "output": "x"}
        for number in (2, 0, 1)
    ]
    assert refusal_of(lambda: client.create(outputs[:2], previous_response_id=made.id)) == invalid(
        "No tool output found for function call call_1."
    )
    assert client.create(outputs, previous_response_id=made.id).status == "completed"


def test_a_named_event_needs_no_call(client, emulator):
    event = {"type": "function_call_output", "name": "alarm", "output": "it rings"}
    assert client.create([event]).status == "completed"
    assert client.create([event, event], store=False).status == "completed"
    assert emulator.violations() == {}


def test_a_search_of_the_server_needs_no_answer(client, emulator):
    emulator.say(
        item("tool_search_call", execution="server"),
        item("tool_search_output"),
        call("f", call_id="call_1"),
    )
    made = client.create()
    assert made.output[0].call_id is None
    assert client.create([output_of(made)], previous_response_id=made.id).status == "completed"


def test_a_call_id_is_used_again_in_a_later_round(client, emulator):
    history: list[dict[str, Any]] = [USER]
    anchor = None
    for _ in range(3):
        emulator.say(call("f", call_id="call_1"))
        made = client.create([USER], previous_response_id=anchor)
        anchor = client.create([output_of(made)], previous_response_id=made.id).id
        history += [*as_input(*made.output), output_of(made)]
    assert client.create(history, store=False).status == "completed"
    emulator.say(call("f", call_id="call_1"))
    made = client.create([USER], previous_response_id=anchor)
    assert refusal_of(lambda: client.create(previous_response_id=made.id)) == invalid(
        "No tool output found for function call call_1."
    )


def test_a_call_id_is_used_again_in_a_conversation_and_by_a_borrowed_id(client, emulator):
    conversation = client.conversations.create().id
    for _ in range(3):
        emulator.say(item("local_shell_call", call_id="call_1"))
        client.create(conversation=conversation)
        answer = {"type": "local_shell_call_output", "id": "call_1", "output": "{}"}
        client.create([answer], conversation=conversation)
    items = client.all(client.conversations.items.list(conversation))
    assert [item.type for item in items].count("local_shell_call_output") == 3
