"""The built-in model: what it calls, what it says, and that nothing makes it fail."""

import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.ids import Ids
from lockstitch.emulator.kinds import check_shape
from lockstitch.emulator.model.brain import MOST_CALLS, answer
from lockstitch.emulator.model.calling import CALLS, is_self_contained
from lockstitch.emulator.model.replies import Asked, Offered
from lockstitch.emulator.model.turns import check_reply
from lockstitch.emulator.responses.drafting import finished
from lockstitch.emulator.responses.item_shapes import ITEM_SHAPES
from lockstitch.emulator.responses.minting import Mint
from tests.emulator.test_schema_samples import ANYTHING

WEATHER = Offered(
    type="function",
    name="get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer", "minimum": 2},
        },
        "required": ["city", "unit"],
    },
)
TIME = Offered(type="function", name="get-time")
NOTE = Offered(type="custom", name="note")


def asked(user="", *tools, **more):
    return Asked(model="gpt-5.5", user=user, tools=tools, **more)


def said(asked):
    (draft,) = answer(asked).drafts
    return draft["content"][0]["text"]


def called(asked):
    """The names and arguments of function calls."""
    drafts = answer(asked).drafts
    return [
        (draft["name"], json.loads(draft["arguments"]))
        for draft in drafts
        if draft["type"] == "function_call"
    ]


# --- what it says ------------------------------------------------------------------------------


def test_it_repeats_what_the_user_said_and_shortens_it():
    assert said(asked("Good morning")) == "You said: Good morning"
    assert said(asked("a" * 1000)) == f"You said: {'a' * 200}…"
    assert said(asked(" ")) == "You said nothing."


def test_it_tells_what_came_back():
    assert said(asked("get_weather", WEATHER, output="sunny", tool="get_weather")) == (
        "get_weather returned: sunny"
    )
    assert said(asked("", output="sunny")) == "The tool returned: sunny"
    assert said(asked("", output="", tool="note")) == "note is done."


# --- what it calls -----------------------------------------------------------------------------


def test_a_tool_that_the_user_names_is_called_with_arguments_that_fit():
    assert called(asked("Please use get_weather for Oslo.", WEATHER, TIME)) == [
        ("get_weather", {"city": "Oslo", "unit": "celsius"})
    ]


@pytest.mark.parametrize("user", ["get_weathers", "my_get_weather", "get weather", "Get_Weather"])
def test_only_a_whole_word_is_a_name(user):
    assert called(asked(user, WEATHER)) == []


def test_a_tool_that_is_not_offered_is_not_called():
    assert called(asked("get_weather", TIME)) == []
    assert called(asked("get_weather")) == []


@pytest.mark.parametrize(
    "user",
    [
        'get_weather {"city": "Rome"}',
        'get_weather({"city": "Rome"})',
        'use `get_weather` with {"city": "Rome"} now',
        'get_weather: {"city": "Rome"}, please',
    ],
)
def test_a_json_object_behind_the_name_is_the_arguments(user):
    assert called(asked(user, WEATHER)) == [("get_weather", {"city": "Rome"})]


@pytest.mark.parametrize("rest", ["{city}", '{"city": NaN}', "{" * 100_000, '{"a":' * 100_000])
def test_what_is_no_json_behind_the_name_is_passed_over(rest):
    ((name, arguments),) = called(asked(f"get_weather {rest}", WEATHER))
    assert name == "get_weather"
    assert arguments["unit"] == "celsius"


def test_several_tools_are_called_at_once_in_the_order_they_are_named():
    calls = called(asked("get-time and get_weather", WEATHER, TIME))
    assert [name for name, _ in calls] == ["get-time", "get_weather"]


def test_one_tool_is_called_several_times_only_with_arguments():
    assert len(called(asked("get_weather get_weather", WEATHER))) == 1
    user = 'get_weather {"city": "Oslo"} and get_weather {"city": "Rome"}'
    assert [arguments["city"] for _, arguments in called(asked(user, WEATHER))] == ["Oslo", "Rome"]


def test_a_name_inside_arguments_is_no_name():
    user = 'get_weather {"city": "get-time"}'
    assert called(asked(user, WEATHER, TIME)) == [("get_weather", {"city": "get-time"})]


def test_a_client_that_wants_no_parallel_calls_gets_one():
    assert len(called(asked("get-time get_weather", WEATHER, TIME, parallel=False))) == 1


def test_there_is_a_limit_to_the_calls_at_once():
    assert len(called(asked("get_weather {} " * 1000, WEATHER))) == MOST_CALLS


def test_no_choice_means_no_call():
    assert called(asked("get_weather", WEATHER, choice="none")) == []


def test_a_required_call_is_made_once():
    assert [name for name, _ in called(asked("Hi", TIME, WEATHER, choice="required"))] == [
        "get-time"
    ]
    assert called(asked("Hi", TIME, choice="required", output="now", tool="get-time")) == []


def test_a_forced_tool_is_called_once_and_no_other():
    forced = asked("get-time", TIME, WEATHER, choice="get_weather")
    assert [name for name, _ in called(forced)] == ["get_weather"]
    after = {"choice": "get_weather", "output": "x"}
    assert called(asked("", TIME, WEATHER, tool="get_weather", **after)) == []
    assert called(asked("", TIME, WEATHER, tool="", **after)) == []
    assert len(called(asked("", TIME, WEATHER, tool="get-time", **after))) == 1


def test_a_forced_tool_that_goes_by_its_type_is_called_once():
    shell = Offered(type="shell", name="shell")
    (draft,) = answer(asked("", shell, choice="shell")).drafts
    assert draft["type"] == "shell_call"
    (draft,) = answer(asked("", shell, choice="shell", output="x", tool="shell_call")).drafts
    assert draft["type"] == "message"


def test_a_tool_that_cannot_be_called_is_passed_over():
    assert said(asked("namespace", Offered(type="telepathy", name="namespace"))).startswith("You")
    assert said(asked("Hi", choice="required")).startswith("You said")


# --- each type of tool -------------------------------------------------------------------------


def test_a_custom_tool_gets_what_the_user_said():
    (draft,) = answer(asked("take a note", NOTE)).drafts
    assert draft == {"type": "custom_tool_call", "name": "note", "input": "take a note"}


@pytest.mark.parametrize("type_", CALLS)
def test_each_type_is_called_by_an_item_that_the_client_may_send_back(type_):
    tool = Offered(type=type_, name=type_, said={"server_label": "mail"})
    drafts = answer(asked("Hello, use it", tool, choice="required")).drafts
    item = finished(drafts[0], Ids(), Mint(0), encrypted=False)
    item = {name: value for name, value in item.items() if value is not None}
    check_shape(ITEM_SHAPES[item["type"]], item, "input[0]")
    spoke = len(drafts) > 1 and drafts[1]["type"] == "message"
    assert spoke == is_self_contained(drafts[0])


def test_what_a_shell_is_given_is_harmless_whatever_the_user_says():
    shell = Offered(type="shell", name="shell")
    (draft,) = answer(asked("shell $(rm -rf /); `reboot`", shell)).drafts
    assert draft["action"]["commands"] == ["echo reboot"]


@pytest.mark.parametrize(
    ("approval", "type_"),
    [
        (None, "mcp_approval_request"),
        ("always", "mcp_approval_request"),
        ({"never": {"tool_names": ["read"]}}, "mcp_approval_request"),
        ({"never": {"tool_names": ["send"]}}, "mcp_call"),
        ({"never": 5}, "mcp_approval_request"),
        ("never", "mcp_call"),
    ],
)
def test_a_tool_of_an_mcp_server_is_called_unasked_only_if_the_client_said_so(approval, type_):
    said = {"server_label": "mail", "allowed_tools": ["send"], "require_approval": approval}
    tool = Offered(type="mcp", name="mail", said=said)
    for user in ("use mail", "please send it"):
        draft = answer(asked(user, tool)).drafts[0]
        assert (draft["type"], draft["name"]) == (type_, "send")
        assert draft["server_label"] == "mail"


@pytest.mark.parametrize("execution", ["client", "server", None])
def test_a_search_of_the_server_has_no_call_id(execution):
    tool = Offered(type="tool_search", name="tool_search", said={"execution": execution})
    draft = answer(asked("tool_search", tool)).drafts[0]
    assert draft["execution"] == (execution or "server")
    assert ("call_id" in draft) == (execution != "client")


# --- anything at all ---------------------------------------------------------------------------

OBJECTS = st.dictionaries(st.text(max_size=3), ANYTHING, max_size=3)
TOOLS = st.builds(
    Offered,
    type=st.sampled_from([*CALLS, "namespace", ""]),
    name=st.sampled_from(["f", "g", "", "get_weather", "é"]),
    parameters=st.one_of(OBJECTS, st.builds(lambda inner: {"allOf": [inner]}, ANYTHING)),
    said=st.dictionaries(
        st.sampled_from(
            ["server_label", "allowed_tools", "require_approval", "execution", "container"]
        ),
        ANYTHING,
    ),
)
ASKED = st.builds(
    Asked,
    model=st.just("gpt-5.5"),
    user=st.one_of(
        st.text(),
        st.lists(st.sampled_from(["f", "g", "shell", "mcp", "{}", '{"a": 1}', "Oslo"])).map(
            " ".join
        ),
    ),
    output=st.one_of(st.none(), st.text()),
    tool=st.sampled_from(["", "f", "shell_call"]),
    tools=st.lists(TOOLS, max_size=4).map(tuple),
    choice=st.sampled_from(["auto", "none", "required", "f", "shell", "nothing"]),
    parallel=st.booleans(),
)


@given(ASKED)
def test_it_always_answers_and_always_the_same(asked):
    reply = answer(asked)
    check_reply(reply)
    assert reply.drafts
    assert reply == answer(asked)


@given(ASKED)
def test_after_an_output_it_does_not_call_the_same_tool_again(asked):
    if asked.output is None:
        return
    for draft in answer(asked).drafts:
        assert draft["type"] == "message" or draft.get("name") != asked.tool


@given(st.text(), st.lists(st.sampled_from(["city", "unit", "days"]), unique=True))
def test_arguments_fit_the_schema_whatever_the_user_says(user, required):
    schema = WEATHER.parameters | {"required": required}
    tool = Offered(type="function", name="get_weather", parameters=schema)
    for _, arguments in called(asked(f"{user} get_weather", tool)):
        jsonschema.validate(arguments, schema)
