"""The tools that a client offers: what of them can be called, whatever they are."""

import pytest

from lockstitch.emulator.model.offers import offered

FUNCTION = {"type": "function", "name": "find", "parameters": {"type": "object"}}


def test_a_tool_is_offered_by_its_name_its_label_or_its_type():
    tools = [FUNCTION, {"type": "mcp", "server_label": "mail"}, {"type": "shell"}]
    assert [(tool.type, tool.name) for tool in offered(tools)] == [
        ("function", "find"),
        ("mcp", "mail"),
        ("shell", "shell"),
    ]


def test_the_tools_of_a_namespace_are_offered_with_its_name():
    tools = [{"type": "namespace", "name": "crm", "tools": [FUNCTION]}, FUNCTION]
    assert [(tool.name, tool.namespace) for tool in offered(tools)] == [
        ("find", "crm"),
        ("find", ""),
    ]


@pytest.mark.parametrize(
    "tools",
    [
        None,
        1,
        "tools",
        {"type": "function"},
        [None, 1, "x", []],
        [{"type": "namespace"}],
        [{"type": "namespace", "tools": 1}],
        [{"type": "namespace", "tools": [1, None]}],
        [{"type": "namespace", "tools": {"type": "function"}}],
    ],
)
def test_what_is_no_tool_is_passed_over(tools):
    assert list(offered(tools)) == []


def test_a_namespace_in_itself_is_no_end_of_work():
    deep: dict = {"type": "namespace", "name": "a", "tools": []}
    deep["tools"].append(deep)
    assert len(list(offered([deep]))) == 1
