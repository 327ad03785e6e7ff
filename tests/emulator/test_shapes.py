import json
import typing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItem, ResponseOutputMessage
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from openai.types.responses.response_input_audio import ResponseInputAudio
from openai.types.responses.response_input_item import Message
from openai.types.responses.responses_client_event import ResponseCreate

from lockstitch.emulator.ids import PREFIXES
from lockstitch.emulator.kinds import Kind, Shape, shaped
from lockstitch.emulator.metadata import check_metadata
from lockstitch.emulator.refusals import Refused
from lockstitch.emulator.responses.item_shapes import (
    ITEM_SHAPES,
    ITEM_TYPES,
    MESSAGE_SHAPES,
    REFERENCE_SHAPE,
)
from lockstitch.emulator.responses.part_shapes import (
    ALSO_TAKEN,
    ALSO_TAKEN_PARTS,
    INPUT_PART,
    LEFT_OUT,
    MESSAGE_INPUT_PART,
    OUTPUT_PART,
    WELL_KNOWN_PREFIXES,
)
from lockstitch.emulator.responses.shapes import (
    ALSO_TAKEN_PARAMETERS,
    CREATE_PARAMETERS,
    WEBSOCKET_PARAMETERS,
    check_create,
    check_items,
)
from tests.emulator.shaped import items_of, messages
from tests.emulator.strictly import fields_of, members_of
from tests.timing import least_seconds

CAPTURED = json.loads(
    (Path(__file__).parent.parent / "data/emulator/codex_requests.json").read_text()
)
QUICKLY = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

CALL = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
BODY = {"model": "gpt-5.5", "input": "hi"}


def refusal(check, *arguments, **options):
    with pytest.raises(Refused) as refused:
        check(*arguments, **options)
    return refused.value


def said(check, *arguments, **options):
    refused = refusal(check, *arguments, **options)
    return refused.param, refused.message


# Parity with the official types


JSON_TYPES = {str: {str}, int: {int}, float: {float, int}, bool: {bool}}


def differences(annotation, kind: Kind, path: str, name: str = "") -> list[str]:
    """Where a kind says something else than the official annotation."""
    members = [member for member in members_of(annotation) if member is not type(None)]
    if object in members:
        return [] if type(None) in kind.types else [f"{path}: takes less than anything"]
    wanted, found = set(), []
    literals = {v for m in members if is_literal(m) for v in typing.get_args(m)}
    models = [member for member in members if hasattr(member, "model_fields")]
    for member in members:
        origin = typing.get_origin(member)
        if origin is list:
            wanted.add(list)
            found += differences_inside(typing.get_args(member)[0], kind, path, name)
        elif origin is dict:
            wanted.add(dict)
            found += differences_inside(typing.get_args(member)[1], kind, path, name)
        elif not is_literal(member) and member not in models:
            wanted |= JSON_TYPES[member]
    if models:
        wanted.add(dict)
        found += differences_of_models(models, kind, path)
    if literals:
        open_ended = str in wanted
        wanted.add(str)
        if not open_ended and literals != set(kind.values):
            found.append(f"{path}: {sorted(literals)} are not {kind.values}")
    if wanted != set(kind.types):
        found.append(f"{path}: {wanted} are not {set(kind.types)}")
    return found


def is_literal(member) -> bool:
    return typing.get_origin(member) is typing.Literal


def differences_inside(annotation, kind: Kind, path: str, name: str) -> list[str]:
    if name == "tools" and kind.each is None:
        return []  # The inside of tools is not checked.
    if kind.each is None:
        return [] if annotation is object else [f"{path}: its members are not described"]
    return differences(annotation, kind.each, f"{path}[]")


def differences_of_models(models, kind: Kind, path: str) -> list[str]:
    if kind.shape is not None:
        (model,) = models
        return differences_of_shape(model, kind.shape, path)
    by_tag = {typing.get_args(fields_of(model)["type"].annotation)[0]: model for model in models}
    if by_tag.keys() != kind.shapes.keys():
        return [f"{path}: {set(by_tag)} are not {set(kind.shapes)}"]
    return [
        difference
        for tag, shape in kind.shapes.items()
        for difference in differences_of_shape(by_tag[tag], shape, f"{path}<{tag}>", tag)
    ]


def differences_of_shape(model, shape: Shape, path: str, tag: str = "", skip=()) -> list[str]:
    fields = {name: f for name, f in fields_of(model).items() if name not in skip}
    extra = ALSO_TAKEN.get(tag, {}).keys()
    left_out = LEFT_OUT.get(tag, frozenset())
    required = {name for name, field in fields.items() if field.is_required()} - left_out
    found = []
    if fields.keys() | extra != shape.fields.keys() - set(skip):
        found.append(f"{path}: {sorted(fields)} are not {sorted(shape.fields)}")
    if required != shape.needs.keys() - set(skip):
        found.append(f"{path}: needs {sorted(required)}, not {sorted(shape.needs)}")
    for name in fields.keys() & shape.fields.keys():
        inside = f"{path}.{name}"
        found += differences(fields[name].annotation, shape.fields[name], inside, name)
    return found


OFFICIAL = {}
for member in members_of(ResponseInputItem):
    for literal_type in members_of(fields_of(member)["type"].annotation):
        for item_name in typing.get_args(literal_type):
            OFFICIAL.setdefault(item_name, []).append(member)


def test_the_item_types_are_the_official_ones():
    assert set(ITEM_TYPES) == set(OFFICIAL)


@pytest.mark.parametrize("named", ITEM_SHAPES)
def test_an_items_fields_are_the_official_ones_and_the_named_extras_at_every_depth(named):
    (model,) = OFFICIAL[named]
    assert differences_of_shape(model, ITEM_SHAPES[named], named, named) == []


def test_a_references_fields_are_the_official_ones():
    (model,) = OFFICIAL["item_reference"]
    assert differences_of_shape(model, REFERENCE_SHAPE, "item_reference") == []


@pytest.mark.parametrize("role", MESSAGE_SHAPES)
def test_a_messages_fields_are_those_of_its_official_forms_together(role):
    forms = [
        fields_of(form)
        for form in OFFICIAL["message"]
        if role in typing.get_args(fields_of(form)["role"].annotation)
    ]
    needed = [{name for name, field in form.items() if field.is_required()} for form in forms]
    shape = MESSAGE_SHAPES[role]
    assert shape.fields.keys() == set().union(*forms) | ALSO_TAKEN["message"].keys()
    assert shape.needs.keys() == set.intersection(*needed)
    for name in ("phase", "status", "type"):
        field = next(form[name] for form in forms if name in form)
        assert differences(field.annotation, shape.fields[name], name) == []


def test_the_parts_of_messages_are_the_official_ones_and_the_named_extras():
    def parts(model):
        return typing.get_args(fields_of(model)["content"].annotation)[0]

    assert differences(parts(Message), INPUT_PART, "input") == []
    assert differences(parts(ResponseOutputMessage), OUTPUT_PART, "output") == []
    with_audio = typing.Union[parts(Message), ResponseInputAudio]  # noqa: UP007
    assert differences(with_audio, MESSAGE_INPUT_PART, "input") == []
    assert MESSAGE_INPUT_PART.shapes.keys() - INPUT_PART.shapes.keys() == ALSO_TAKEN_PARTS


def test_the_roles_of_messages_are_the_official_ones():
    roles = {
        role
        for form in OFFICIAL["message"]
        for role in typing.get_args(fields_of(form)["role"].annotation)
    }
    assert set(MESSAGE_SHAPES) == roles


def test_the_parameters_of_a_create_are_the_official_ones():
    over_http = typing.get_type_hints(ResponseCreateParamsNonStreaming)
    assert CREATE_PARAMETERS.keys() == over_http.keys()
    over_websocket = CREATE_PARAMETERS.keys() | WEBSOCKET_PARAMETERS.keys()
    assert over_websocket == fields_of(ResponseCreate).keys()
    assert not ALSO_TAKEN_PARAMETERS.keys() & over_websocket


# The rules of these are written out in the module and tested below.
RULED = ("input", "metadata", "tool_choice", "tools", "prompt", "context_management", "stream_id")


def test_the_parameters_of_a_create_hold_what_the_official_ones_hold():
    shape = Shape(None, CREATE_PARAMETERS | WEBSOCKET_PARAMETERS)
    found = differences_of_shape(ResponseCreate, shape, "", skip=RULED)
    # A frame without a `type` never gets here.
    assert found == [": needs ['type'], not []"]


def test_the_extras_are_all_in_use():
    assert set(ALSO_TAKEN) <= set(ITEM_TYPES)
    for named, fields in LEFT_OUT.items():
        shapes = [
            ITEM_SHAPES.get(named),
            (MESSAGE_INPUT_PART.shapes | OUTPUT_PART.shapes).get(named),
        ]
        for shape in filter(None, shapes):
            assert fields <= shape.may.keys()


# What real clients send


@pytest.mark.parametrize("captured", CAPTURED, ids=lambda captured: captured["from"])
def test_what_codex_sends_is_taken(captured):
    check_create(captured["body"], websocket=captured["websocket"])


@pytest.mark.parametrize("named", ITEM_SHAPES)
def test_an_item_of_the_right_shape_is_taken_and_one_field_more_or_less_is_refused(named):
    @QUICKLY
    @given(items_of(named), st.data())
    def holds(item, data):
        check_items([item])
        assert said(check_items, [{**item, "foo": 1}]) == (
            "input[0].foo",
            "Unknown parameter: 'input[0].foo'.",
        )
        needed = sorted(ITEM_SHAPES[named].needs.keys() - {"type"})
        if needed:
            gone = data.draw(st.sampled_from(needed))
            without = {name: value for name, value in item.items() if name != gone}
            assert refusal(check_items, [without]).param == f"input[0].{gone}"

    holds()


@pytest.mark.parametrize("role", MESSAGE_SHAPES)
def test_a_message_of_the_right_shape_is_taken(role):
    @QUICKLY
    @given(messages(role))
    def holds(message):
        check_items([message])

    holds()


def test_three_thousand_items_are_checked_in_a_few_tens_of_milliseconds():
    message = {"role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    items = [message, CALL, OUTPUT] * 1000
    # Some 10 ms on an idle machine; the margin is for a busy one, whose caches are cold.
    assert least_seconds(lambda: check_items(items)) < 0.1


# Items


def test_an_item_with_an_unknown_field_is_refused_by_its_path():
    refused = refusal(check_items, [CALL, {**OUTPUT, "foo": 1}])
    assert refused.error() == {
        "message": "Unknown parameter: 'input[1].foo'.",
        "type": "invalid_request_error",
        "param": "input[1].foo",
        "code": "unknown_parameter",
    }


def test_an_item_without_a_required_field_is_refused_by_its_path():
    without = {name: value for name, value in CALL.items() if name != "call_id"}
    assert said(check_items, [OUTPUT, OUTPUT, OUTPUT, without]) == (
        "input[3].call_id",
        "Missing required parameter: 'input[3].call_id'.",
    )


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (1, "an integer"),
        (1.5, "a decimal"),
        (True, "a boolean"),
        ([], "an array"),
        ({}, "an object"),
        (None, "null"),
    ],
)
def test_a_wrong_json_type_is_said_in_the_providers_words(value, got):
    assert said(check_items, [{**CALL, "arguments": value}])[1] == (
        f"Invalid type for 'input[0].arguments': expected a string, but got {got} instead."
    )


def test_a_null_is_taken_where_the_field_may_be_absent():
    check_items([{**CALL, "id": None, "status": None, "caller": None, "namespace": None}])
    check_items([{"type": "reasoning", "id": "rs_1", "summary": [], "content": None}])


def test_an_unknown_type_is_refused_with_the_supported_ones():
    param, message = said(check_items, [{"type": "telepathy_call"}])
    assert param == "input[0].type"
    assert message.startswith("Invalid value: 'telepathy_call'. Supported values are: 'message', ")
    assert message.endswith(", and 'item_reference'.")


def test_a_type_that_is_no_string_is_refused():
    assert said(check_items, [{"type": 3}])[1] == (
        "Invalid type for 'input[0].type': expected a string, but got an integer instead."
    )


def test_an_item_without_type_is_a_message_by_its_role_and_a_reference_by_its_id_alone():
    check_items([{"role": "user", "content": "hi"}, {"id": "fc_1"}, {"id": "x", "type": None}])
    assert refusal(check_items, [{"id": "fc_1", "call_id": "call_1"}]).param == "input[0].type"
    assert refusal(check_items, [{}]).rule == "missing-parameter"


@pytest.mark.parametrize("item", ["hi", 3, None, []])
def test_an_item_that_is_no_object_is_refused(item):
    assert refusal(check_items, [CALL, item]).param == "input[1]"


def test_items_that_are_no_array_are_refused_under_the_name_of_their_parameter():
    assert said(check_items, {"a": 1}, "items") == (
        "items",
        "Invalid type for 'items': expected an array of objects, but got an object instead.",
    )
    assert refusal(check_items, [{**CALL, "foo": 1}], "items").param == "items[0].foo"


def test_a_message_of_an_unknown_role_is_refused():
    assert said(check_items, [{"role": "tool", "content": "hi"}]) == (
        "input[0].role",
        "Invalid value: 'tool'. Supported values are: "
        "'user', 'assistant', 'system', and 'developer'.",
    )


def test_an_assistants_message_takes_output_parts_and_the_others_take_input_parts():
    texts = {
        "output": {"type": "output_text", "text": "hi"},
        "input": {"type": "input_text", "text": "hi"},
    }
    check_items([{"role": "assistant", "content": [texts["output"]]}])
    check_items([{"role": "developer", "content": [texts["input"]]}])
    assert said(check_items, [{"role": "assistant", "content": [texts["input"]]}]) == (
        "input[0].content[0].type",
        "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
    )
    refused = refusal(check_items, [{"role": "user", "content": [texts["input"], texts["output"]]}])
    assert refused.param == "input[0].content[1].type"


def test_a_part_is_checked_at_depth():
    part = {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "implicit"}}
    refused = refusal(check_items, [{"role": "user", "content": [part]}])
    assert refused.param == "input[0].content[0].prompt_cache_breakpoint.mode"
    output = {**OUTPUT, "output": [{"type": "input_text"}]}
    assert refusal(check_items, [output]).param == "input[0].output[0].text"


def test_a_content_that_is_neither_text_nor_parts_is_refused():
    assert said(check_items, [{"role": "user", "content": {"text": "hi"}}])[1] == (
        "Invalid type for 'input[0].content': expected one of a string or array of objects, "
        "but got an object instead."
    )


def test_a_wrong_status_is_refused_with_the_supported_ones():
    assert said(check_items, [{**CALL, "status": "done"}])[1] == (
        "Invalid value: 'done'. Supported values are: 'in_progress', 'completed', and 'incomplete'."
    )


def test_a_call_id_is_one_to_64_characters():
    check_items([{**CALL, "call_id": "c" * 64}])
    refused = refusal(check_items, [{**CALL, "call_id": "c" * 65}])
    assert (refused.rule, refused.param) == ("too-long", "input[0].call_id")
    assert "maximum length 64, but got a string with length 65" in refused.message
    assert "empty string" in refusal(check_items, [{**CALL, "call_id": ""}]).message


@pytest.mark.parametrize("named", sorted(WELL_KNOWN_PREFIXES - {"message"}))
def test_an_id_with_a_wrong_prefix_is_refused(named):
    assert said(check_items, [{"type": named, "id": "call_X"}]) == (
        "input[0].id",
        f"Invalid 'input[0].id': 'call_X'. Expected an ID that begins with '{PREFIXES[named]}'.",
    )


def test_a_message_with_a_wrong_prefix_is_refused():
    message = {"role": "user", "content": "hi", "id": "item_1"}
    assert refusal(check_items, [message]).rule == "wrong-prefix"


def test_an_id_whose_prefix_is_not_well_known_is_taken():
    check_items([{**OUTPUT, "id": "anything"}])
    check_items([{"type": "local_shell_call_output", "id": "call_1", "output": ""}])


@pytest.mark.parametrize("named", [{}, {"id": None}, {"id": None, "call_id": None}])
def test_a_local_shell_output_that_names_no_call_is_refused(named):
    output = {"type": "local_shell_call_output", "output": "", **named}
    refused = refusal(check_items, [output])
    assert (refused.rule, refused.param) == ("missing-parameter", "input[0].call_id")


# A create


def test_a_small_create_is_taken():
    check_create(BODY)
    check_create({**BODY, "input": [CALL, OUTPUT], "stream": True, "store": False})


def test_an_unknown_parameter_is_refused():
    assert said(check_create, {**BODY, "x": 1}) == ("x", "Unknown parameter: 'x'.")


@pytest.mark.parametrize(
    ("parameter", "value", "param"),
    [
        ("store", "yes", "store"),
        ("stream", 1, "stream"),
        ("temperature", "0.5", "temperature"),
        ("max_output_tokens", 1.5, "max_output_tokens"),
        ("input", {"role": "user"}, "input"),
        ("instructions", ["a"], "instructions"),
        ("reasoning", {"effort": 3}, "reasoning.effort"),
        ("text", {"format": {"type": "json_schema", "name": 1}}, "text.format.name"),
        ("conversation", {"id": 3}, "conversation.id"),
        ("client_metadata", {"a": 1}, "client_metadata.a"),
        ("tools", [{"type": 1}], "tools[0].type"),
        ("tools", ["function"], "tools[0]"),
        ("tool_choice", {"type": None}, "tool_choice.type"),
        ("metadata", {"a": 1}, "metadata.a"),
        ("metadata", [], "metadata"),
    ],
)
def test_a_parameter_of_a_wrong_json_type_is_refused_by_its_path(parameter, value, param):
    refused = refusal(check_create, {**BODY, parameter: value})
    assert (refused.rule, refused.param) == ("wrong-type", param)


@pytest.mark.parametrize(
    ("parameter", "value", "param"),
    [
        ("truncation", "always", "truncation"),
        ("service_tier", "gold", "service_tier"),
        ("tool_choice", "any", "tool_choice"),
        ("include", ["reasoning.encrypted_content", "x"], "include[1]"),
        ("reasoning", {"effort": "huge"}, "reasoning.effort"),
        ("text", {"verbosity": "loud"}, "text.verbosity"),
        ("text", {"format": {"type": "xml"}}, "text.format.type"),
        ("context_management", [{"type": "x"}], "context_management[0].type"),
        ("temperature", 2.5, "temperature"),
        ("top_p", -0.1, "top_p"),
        ("top_logprobs", 21, "top_logprobs"),
        ("max_output_tokens", 0, "max_output_tokens"),
    ],
)
def test_a_parameter_of_a_wrong_value_is_refused_by_its_path(parameter, value, param):
    refused = refusal(check_create, {**BODY, parameter: value})
    assert (refused.rule, refused.param) == ("wrong-value", param)


def test_a_value_out_of_range_is_said_with_its_limit():
    assert said(check_create, {**BODY, "temperature": 3})[1] == (
        "Invalid 'temperature': decimal above maximum value. "
        "Expected a value <= 2, but got 3 instead."
    )


def test_every_parameter_may_be_null():
    nothing = dict.fromkeys(CREATE_PARAMETERS | ALSO_TAKEN_PARAMETERS)
    check_create({**nothing, **BODY})
    check_create({**nothing, **dict.fromkeys(WEBSOCKET_PARAMETERS), **BODY}, websocket=True)


def test_a_model_is_required_over_http_unless_a_prompt_names_it():
    assert said(check_create, {"input": "hi"})[1] == "Missing required parameter: 'model'."
    check_create({"input": "hi", "prompt": {"id": "pmpt_1"}})
    check_create({"input": "hi"}, websocket=True)


def test_an_input_is_required_unless_there_is_something_to_go_on_from():
    refused = refusal(check_create, {"model": "gpt-5.5"})
    assert (refused.rule, refused.param) == ("missing-parameter", "input")
    for instead in (
        {"prompt": {"id": "pmpt_1"}},
        {"previous_response_id": "resp_1"},
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
        {"input": []},
    ):
        check_create({"model": "gpt-5.5", **instead})


def test_an_input_is_checked_item_by_item():
    assert refusal(check_create, {**BODY, "input": [CALL, {"type": "x"}]}).param == "input[1].type"


def test_two_anchors_are_refused():
    body = {**BODY, "previous_response_id": "resp_1", "conversation": "conv_1"}
    assert refusal(check_create, body).rule == "two-anchors"
    check_create({**body, "conversation": None})


@pytest.mark.parametrize("anchor", ["", "resp", "msg_1", 3, ["resp_1"], {}, True])
def test_an_anchor_that_is_no_response_id_is_malformed(anchor):
    refused = refusal(check_create, {**BODY, "previous_response_id": anchor})
    assert refused.rule == "anchor-malformed"


def test_a_background_response_must_be_stored():
    check_create({**BODY, "background": True})
    check_create({**BODY, "background": False, "store": False})
    refused = refusal(check_create, {**BODY, "background": True, "store": False})
    assert (refused.rule, refused.param) == ("unsupported-parameter", "background")


@pytest.mark.parametrize("background", [True, False])
def test_there_is_no_background_over_websocket(background):
    refused = refusal(check_create, {**BODY, "background": background}, websocket=True)
    assert (refused.rule, refused.param) == ("unsupported-parameter", "background")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("stream_id", "lane-1"), ("generate", False), ("type", "response.create")],
)
def test_the_parameters_of_a_frame_are_unknown_over_http(parameter, value):
    check_create({**BODY, parameter: value, "stream": True}, websocket=True)
    assert said(check_create, {**BODY, parameter: value})[1] == (
        f"Unknown parameter: '{parameter}'."
    )


def test_a_function_needs_a_name_of_its_own():
    weather = {"type": "function", "name": "weather"}
    check_create({**BODY, "tools": [weather, {"type": "web_search"}, {"type": "web_search"}]})
    assert refusal(check_create, {**BODY, "tools": [{"type": "function"}]}).param == "tools[0].name"
    assert refusal(check_create, {**BODY, "tools": [weather, weather]}).param == "tools[1].name"
    assert refusal(check_create, {**BODY, "tools": [{}]}).param == "tools[0].type"


def test_metadata_is_sixteen_short_pairs_at_most():
    check_metadata({f"k{index}": "v" * 512 for index in range(16)})
    check_metadata({"k" * 64: ""})
    assert refusal(check_metadata, {f"k{index}": "" for index in range(17)}).param == "metadata"
    assert refusal(check_metadata, {"k" * 65: ""}).rule == "too-long"
    assert refusal(check_metadata, {"k": "v" * 513}).param == "metadata.k"


def test_a_shape_shows_what_it_needs():
    assert repr(shaped(Shape({"id": OUTPUT_PART})).shape) == "<Shape needs id>"
