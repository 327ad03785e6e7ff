"""Pydantic AI's message histories. The judge is Pydantic AI: it validates what a repair made, and
its models send it to the strict emulator."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent, direct
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

import lockstitch
from lockstitch import Evidence, Outcome, Policy
from lockstitch.dialects.detection import detect
from lockstitch.dialects.pydantic_ai import PydanticAI
from lockstitch.emulator import call as emulated_call
from lockstitch.emulator import reasoning
from lockstitch.sessions.files import check_file
from lockstitch.sessions.files import mended as mended_file
from lockstitch.sessions.source import Source
from lockstitch.testing import EmulatorThread
from tests.formats.pydantic_ai import (
    CUT_OFF,
    MISPLACED,
    OPEN,
    ORPHAN,
    SAMPLES,
    SECOND_RETURN,
    SOME_OPEN,
    SYSTEM,
    TIME,
    UNASKED_NATIVE_RETURN,
    UNASKED_RETRY,
    call,
    native_call,
    native_return,
    prompt,
    request,
    response,
    retry,
    returned,
    text,
    thinking,
)
from tests.formats.sample import json_lines
from tests.generated import HISTORIES, anything, examples

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MODELS = ("chat", "responses", "messages")

REUSED = [
    request(prompt()),
    response(call(), call()),
    request(returned(), returned()),
    response(text()),
]
EARLY = [request(prompt()), request(returned(), prompt("x")), response(call()), request(prompt())]
LATE = [
    request(prompt()),
    response(call()),
    request(prompt("And?")),
    response(text()),
    request(returned(), prompt("?")),
    response(text()),
]
LATER_AGAIN = [
    request(prompt()),
    response(call()),
    request(returned()),
    response(text()),
    request(returned(), prompt("?")),
    response(text()),
]
NO_ID = [request(prompt()), response(call()), request(returned(""))]
NATIVE_TWICE = [
    request(prompt()),
    response(native_call(), native_return(), native_return(), text()),
]

BROKEN = {
    "open": (OPEN, {"LS001"}),
    "open at the end": (OPEN[:2], {"LS001"}),
    "some open": (SOME_OPEN, {"LS010"}),
    "orphan": (ORPHAN, {"LS002"}),
    "orphan retry": (UNASKED_RETRY, {"LS002"}),
    "orphan native return": (UNASKED_NATIVE_RETURN, {"LS002"}),
    "second return": (SECOND_RETURN, {"LS004"}),
    "second return later": (LATER_AGAIN, {"LS004"}),
    "second native return": (NATIVE_TWICE, {"LS004"}),
    "after a prompt": (MISPLACED, {"LS009"}),
    "too late": (LATE, {"LS009"}),
    "too early": (EARLY, {"LS003"}),
    "id reused": (REUSED, {"LS005"}),
    "cut off": (CUT_OFF, {"LS014"}),
    "empty id": (NO_ID, {"LS001", "LS002"}),
}
broken = pytest.mark.parametrize("history", [case[0] for case in BROKEN.values()], ids=BROKEN)


def codes(history):
    return {finding.code for finding in lockstitch.check(history)}


def loaded(history):
    return ModelMessagesTypeAdapter.validate_json(json.dumps(history))


def model_at(emulator, name):
    openai = OpenAIProvider(base_url=emulator.base_url, api_key="k")
    if name == "chat":
        return OpenAIChatModel("gpt-5.5", provider=openai)
    if name == "responses":
        return OpenAIResponsesModel("gpt-5.5", provider=openai)
    anthropic = AnthropicProvider(base_url=emulator.url, api_key="k")
    return AnthropicModel("claude-sonnet-4-5", provider=anthropic)


def sent(history, name, *, by_agent=False):
    """The rules that a provider finds broken when Pydantic AI sends this history. Nothing is in it
    that only one provider has signed."""
    messages = [_unsigned(message) for message in loaded(history)]
    with EmulatorThread() as emulator:
        model = model_at(emulator, name)
        try:
            if by_agent:
                asyncio.run(Agent(model).run("And now?", message_history=messages))
            else:
                asyncio.run(direct.model_request(model, [*messages, _asking()]))
        except ModelHTTPError:
            assert emulator.violations()
        return set(emulator.violations())


def _asking():
    return ModelRequest([UserPromptPart("And now?", timestamp=NOW)])


def _unsigned(message):
    parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
    return dataclasses.replace(message, parts=parts)


# --- what is found -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BROKEN)
def test_every_kind_of_broken_history_is_found(name):
    history, expected = BROKEN[name]
    assert codes(history) == expected
    assert codes(loaded(history)) == expected


@broken
def test_the_dialect_is_detected_from_content_alone(history):
    assert detect(history).name == "pydantic-ai"


def test_a_retry_with_a_tool_name_answers_its_call():
    assert lockstitch.check([request(prompt()), response(call()), request(retry())]) == []


def test_a_retry_without_a_tool_name_answers_nothing_whatever_its_id():
    history = [request(prompt()), response(call()), request(retry(name=None))]
    assert codes(history) == {"LS001"}
    assert isinstance(loaded(history)[2].parts[0].content, list)


def test_a_native_call_without_a_return_is_valid_because_pydantic_ai_sends_what_is_accepted():
    history = [request(prompt()), response(native_call(), text()), request(prompt("And?"))]
    assert lockstitch.check(history) == []
    for name in MODELS:
        assert sent(history, name) == set()


def test_a_native_return_may_come_in_a_later_response_after_results_alone():
    history = [
        request(prompt()),
        response(native_call(), call()),
        request(returned()),
        response(native_return(), text()),
    ]
    assert lockstitch.check(history) == []


def test_more_of_the_user_may_stand_between_results_as_pydantic_ai_writes_it():
    history = [
        request(prompt()),
        response(call(), call("call_2")),
        request(returned(), prompt("Also this."), returned("call_2")),
        response(text()),
    ]
    assert lockstitch.check(history) == []
    for name in MODELS:
        assert sent(history, name, by_agent=True) == set()


@pytest.mark.parametrize(
    "record",
    [
        {"part_kind": "tool-availability-delta", "tools_added": ["t"], "tool_call_id": "call_1"},
        {"part_kind": "capability-load-delta", "loaded": ["c"], "tool_call_id": "call_1"},
        {"part_kind": "model-settings-delta", "settings": {"thinking": "low"}},
        {"part_kind": "instruction-baseline", "instructions": []},
        {"part_kind": "instruction-delta", "id": None, "content": "Be kind."},
    ],
    ids=lambda part: part["part_kind"],
)
def test_what_pydantic_ai_notes_may_stand_before_results(record):
    history = [request(prompt()), response(call()), request(record, returned()), response(text())]
    assert lockstitch.check(history) == []
    assert sent(history, "chat", by_agent=True) == set()
    assert codes([request(prompt()), response(call()), request(record)]) == {"LS001"}


def test_a_request_without_parts_is_no_message():
    history = [request(prompt()), response(call()), request(), request(returned()), response()]
    assert lockstitch.check(history) == []
    assert sent(history, "chat", by_agent=True) == set()


def test_histories_of_older_versions_are_read():
    old = {"parts": [call()], "kind": "response", "timestamp": TIME, "vendor_details": {"a": 1}}
    history = [request(prompt()), {**old, "vendor_id": "resp_1"}]
    assert loaded(history)[1].provider_response_id == "resp_1"
    assert codes(history) == {"LS001"}


@pytest.mark.parametrize("field", ["metadata", "provider_details", "usage", "instructions"])
def test_what_a_field_beside_the_parts_holds_is_no_call(field):
    history = [request(prompt(), **{field: {"tool_calls": [{"id": "x", "args": {}}]}})]
    assert lockstitch.check(history) == []


def test_what_tools_return_and_users_write_is_no_call():
    inside = {"part_kind": "tool-call", "tool_call_id": "x", "tool_name": "t"}
    history = [
        request(prompt([json.dumps(inside), {"kind": "text-content", "content": "x"}])),
        response(call(args={"call": inside})),
        request(returned(content=[inside], metadata=inside)),
    ]
    assert lockstitch.check(history) == []


@pytest.mark.parametrize(
    "message",
    [
        request(call()),
        request(native_call()),
        response(call("")),
        response(call(None)),
        response({**call(), "part_kind": "text"}),
        response({**call(), "part_kind": "a-new-kind"}),
        response({"part_kind": "text", "content": "x", "tool_call_id": "call_1"}),
        request({**retry(name=None), "toolName": "book"}),
        {"kind": "answer", "parts": [call()]},
        {"kind": "response", "parts": {"0": call()}},
        response(tool_calls=[{"id": "call_1"}]),
        response(json.dumps(call())),
    ],
    ids=range(12),
)
def test_what_looks_like_a_call_and_cannot_be_read_as_one_is_refused(message):
    with pytest.raises(lockstitch.NotAHistory, match="could not be read as one"):
        lockstitch.check([request(prompt()), message])


def test_an_unknown_part_without_any_sign_of_a_call_passes():
    part = {"part_kind": "weather", "content": {"degrees": 21}}
    assert lockstitch.check([request(prompt()), response(part, text()), request(part)]) == []


# --- what a repair makes -----------------------------------------------------------------------


@broken
def test_a_mended_history_is_valid_and_a_fixed_point(history):
    before = copy.deepcopy(history)
    mended = lockstitch.mend(history)
    assert history == before
    assert lockstitch.check(mended) == []
    assert lockstitch.mend(mended).edits == []
    assert list(lockstitch.mend(mended)) == list(mended)
    assert json.dumps(lockstitch.mend(before)) == json.dumps(mended)


@broken
def test_pydantic_ai_loads_a_mended_history(history):
    assert len(loaded(lockstitch.mend(history))) == len(lockstitch.mend(history))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BROKEN)
def test_every_provider_takes_a_mended_history(name, model):
    assert sent(lockstitch.mend(BROKEN[name][0]), model) == set()


@pytest.mark.parametrize("name", BROKEN)
def test_some_provider_rejects_every_broken_history_as_it_is(name):
    assert set().union(*(sent(BROKEN[name][0], model) for model in MODELS))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["some open", "second return", "too late", "after a prompt"])
def test_an_agent_runs_on_from_a_mended_history(name, model):
    assert sent(lockstitch.mend(BROKEN[name][0]), model, by_agent=True) == set()


@pytest.mark.parametrize("name", ["second return", "second return later", "after a prompt"])
def test_an_agent_does_not_repair_these_itself(name):
    history = [*BROKEN[name][0], response(text())]
    assert sent(history, "chat", by_agent=True)
    assert sent(lockstitch.mend(history), "chat", by_agent=True) == set()


@pytest.mark.parametrize("name", ["open", "orphan", "too early"])
def test_an_agent_repairs_these_itself_and_providers_take_it(name):
    assert sent(BROKEN[name][0], "chat", by_agent=True) == set()


def test_an_agent_refuses_a_new_prompt_after_open_calls_until_they_are_mended():
    with pytest.raises(UserError, match="unprocessed tool calls"):
        sent(OPEN[:2], "chat", by_agent=True)
    assert sent(lockstitch.mend(OPEN[:2]), "chat", by_agent=True) == set()


def test_a_synthetic_result_is_a_return_that_failed_before_what_the_user_said():
    mended = lockstitch.mend(OPEN)
    assert mended[:2] == OPEN[:2]
    assert mended[2] == {**OPEN[2], "parts": [mended[2]["parts"][0], *OPEN[2]["parts"]]}
    result = mended[2]["parts"][0]
    assert result.pop("content").startswith("[lockstitch] Outcome unknown.")
    assert result == {
        "tool_name": "book",
        "tool_call_id": "call_1",
        "outcome": "failed",
        "part_kind": "tool-return",
    }


def test_a_call_that_finished_well_gets_a_success():
    known = {"call_1": Evidence(Outcome.FINISHED, "finished", "booked")}
    mended = lockstitch.mend(OPEN[:2], evidence=known)
    (made,) = loaded(mended)[2].parts
    assert made.outcome == "success"
    assert made.content.endswith("booked")


def test_without_a_request_that_follows_a_new_one_is_written():
    mended = lockstitch.mend(OPEN[:2])
    assert mended[:2] == OPEN[:2]
    assert mended[2].keys() == {"kind", "parts"}


def test_messages_and_parts_that_nothing_touches_are_the_very_same():
    mended = lockstitch.mend(SOME_OPEN)
    assert [m for m in mended if any(m is one for one in SOME_OPEN)] == [
        *SOME_OPEN[:2],
        SOME_OPEN[3],
    ]
    assert mended[2]["parts"][1] is SOME_OPEN[2]["parts"][0]


def test_a_call_that_was_cut_off_goes_with_the_thinking_that_led_to_it():
    history = [
        request(prompt()),
        response(thinking(), call(args='{"flight": "S')),
        request(prompt()),
    ]
    mended = lockstitch.mend(history)
    assert list(mended) == [history[0], history[2]]
    assert mended.removed == [history[1]]


@pytest.mark.parametrize("name", ["responses", "messages"])
def test_no_provider_misses_what_its_reasoning_led_to(name):
    tools = ModelRequestParameters(function_tools=[ToolDefinition(name="book")])
    thinks = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000}
    settings = thinks if name == "messages" else {}

    async def play(emulator):
        model = model_at(emulator, name)
        start = ModelRequest([UserPromptPart("Book.", timestamp=NOW)])
        made = await direct.model_request(
            model, [start], model_request_parameters=tools, model_settings=settings
        )
        *thoughts, last = made.parts
        assert any(isinstance(part, ThinkingPart) for part in thoughts)
        broken = dataclasses.replace(
            made, parts=[*thoughts, dataclasses.replace(last, args='{"flight": "S')]
        )
        mended = lockstitch.mend([start, broken, _asking()])
        await direct.model_request(model, list(mended), model_settings=settings)

    with EmulatorThread() as emulator:
        emulator.say(reasoning("Hm."), emulated_call("book", {"a": 1}, call_id="call_1"))
        asyncio.run(play(emulator))
        assert emulator.violations() == {}


def test_a_call_that_was_cut_off_leaves_what_else_was_said():
    history = [request(prompt()), response(thinking(), text(), call(args='{"flight": "S'))]
    mended = lockstitch.mend(history)
    assert mended[1]["parts"] == history[1]["parts"][:2]


def test_thinking_alone_stays_where_no_call_goes():
    history = [*ORPHAN[:2], response(thinking())]
    assert lockstitch.mend(history)[-1] is history[-1]


@pytest.mark.parametrize("args", [None, "", "{}", {}, {"a": 1}, '{"a": 1}', "not JSON"])
def test_arguments_that_are_not_the_beginning_of_json_are_no_sign_of_a_cut(args):
    history = [request(prompt()), response(call(args=args)), request(prompt())]
    assert codes(history) == {"LS001"}


def test_a_history_still_begins_with_a_request_if_its_only_result_goes():
    history = [request(returned()), response(text()), request(prompt())]
    mended = lockstitch.mend(history)
    (stays,) = loaded(mended)[0].parts
    assert isinstance(stays, UserPromptPart)
    assert stays.timestamp == NOW
    assert sent(mended, "messages") == set()


def test_a_first_response_of_which_nothing_is_left_goes():
    history = [response(native_return()), request(prompt())]
    assert list(lockstitch.mend(history)) == history[1:]


def test_a_result_in_the_message_of_the_model_moves_to_the_request_that_follows():
    history = [request(prompt()), response(call(), returned()), request(prompt("And?"))]
    with pytest.raises(ValueError, match="tool-return"):
        loaded(history)
    assert codes(history) == {"LS009"}
    mended = lockstitch.mend(history)
    assert mended[2]["parts"] == [returned()]
    assert mended[3] is history[2]
    for name in MODELS:
        assert sent(mended, name) == set()


def test_a_native_return_in_a_request_moves_to_its_call():
    history = [request(prompt()), response(native_call(), text()), request(native_return())]
    with pytest.raises(ValueError, match="builtin-tool-return"):
        loaded(history)
    assert codes(history) == {"LS009"}
    mended = lockstitch.mend(history)
    assert [part["part_kind"] for part in mended[1]["parts"]] == [
        "builtin-tool-call",
        "builtin-tool-return",
        "text",
    ]
    assert len(loaded(mended)) == 2


@pytest.mark.parametrize("result", [returned("srvtoolu_1"), retry("srvtoolu_1")])
def test_a_result_of_the_other_kind_becomes_one_of_its_call(result):
    history = [request(prompt()), response(native_call(), text()), request(result)]
    assert codes(history) == {"LS006"}
    mended = lockstitch.mend(history)
    assert loaded(mended)[1].parts[1].part_kind == "builtin-tool-return"
    for name in MODELS:
        assert sent(mended, name) == set()


def test_a_native_return_for_a_call_of_our_own_becomes_a_tool_return():
    history = [request(prompt()), response(call(), native_return("call_1"), text())]
    mended = lockstitch.mend(history)
    assert loaded(mended)[2].parts[0].part_kind == "tool-return"


@pytest.mark.parametrize("result", [returned(content="aborted"), retry(content="aborted")])
def test_a_result_that_evidence_contradicts_says_what_happened(result):
    known = {"call_1": Evidence(Outcome.FINISHED, "finished", "booked")}
    history = [request(prompt()), response(call()), request(result)]
    mended = lockstitch.mend(history, evidence=known)
    (part,) = loaded(mended)[2].parts
    assert part.content.endswith("booked")
    assert (part.outcome, part.timestamp) == ("success", NOW)


def test_the_last_of_two_results_stays_if_told_so():
    mended = lockstitch.mend(SECOND_RETURN, policy=Policy(keep="last"))
    assert mended[2]["parts"] == [returned()]


def test_trimming_begins_with_a_request_that_answers_nothing():
    history = [request(SYSTEM, prompt()), response(call()), request(returned()), response(text())]
    history += [request(prompt("And?")), response(text())]
    assert lockstitch.trim(history, max_items=3) == history[4:]
    assert sent(lockstitch.trim(history, max_items=3), "messages") == set()


# --- files -------------------------------------------------------------------------------------


@broken
def test_a_file_of_one_list_is_mended_and_pydantic_ai_loads_it(history, tmp_path):
    path = tmp_path / "history.json"
    path.write_bytes(ModelMessagesTypeAdapter.dump_json(loaded(history), indent=2))
    with mended_file(Source(path), beside=tmp_path) as ready:
        made = ready.path.read_bytes()
    assert check_of(made, tmp_path) == []
    assert ModelMessagesTypeAdapter.validate_json(made)


@broken
def test_a_file_of_lines_is_mended_and_its_other_lines_keep_their_bytes(history, tmp_path):
    path = tmp_path / "history.jsonl"
    json_lines(history, path)
    with mended_file(Source(path), beside=tmp_path) as ready:
        made = ready.path.read_bytes()
    assert check_of(made, tmp_path) == []
    assert path.read_bytes().splitlines()[0] in made.splitlines()
    lines = [json.loads(line) for line in made.splitlines()]
    assert [one["kind"] for one in lines] == [one["kind"] for one in lockstitch.mend(history)]
    assert loaded(lines)


def check_of(made, folder):
    (folder / "made").write_bytes(made)
    (conversation,) = check_file(Source(folder / "made")).conversations
    return conversation.findings


# --- message objects ---------------------------------------------------------------------------


class Unwritable:
    """What JSON cannot hold."""


@dataclasses.dataclass
class Seats:
    free: int


def objects():
    """A history in which two of three calls are open, as objects with all they may hold."""
    picture = BinaryContent(b"\xff\xfe\x00", media_type="image/png")
    return [
        ModelRequest([UserPromptPart(["Book.", picture], timestamp=NOW)], metadata={"a": 1}),
        ModelResponse(
            [
                ToolCallPart("book", '{"flight": 1}', "call_1"),
                ToolCallPart("book", {"flight": 2}, "call_2"),
                ToolCallPart("book", '{"fli', "call_3"),
            ],
            timestamp=NOW,
        ),
        ModelRequest(
            [
                ToolReturnPart("book", Seats(4), "call_1", metadata=Unwritable(), timestamp=NOW),
                UserPromptPart([picture], timestamp=NOW),
            ],
            metadata={"b": Unwritable()},
            run_id="run_7",
        ),
    ]


def test_objects_that_nothing_touches_stay_the_very_same():
    history = objects()
    mended = lockstitch.mend(history)
    assert mended[0] is history[0]
    assert mended[1].parts[0] is history[1].parts[0]
    assert mended[1].parts[1] is history[1].parts[1]
    assert mended[2].parts[1:] == history[2].parts
    assert mended[2].parts[1] is history[2].parts[0]
    assert mended[2].metadata is history[2].metadata
    assert mended[2].run_id == "run_7"
    assert lockstitch.check(mended) == []


def test_objects_are_not_changed_in_place():
    history = objects()
    sizes = [len(message.parts) for message in history]
    lockstitch.mend(history)
    assert [len(message.parts) for message in history] == sizes


def test_a_result_made_as_an_object_has_the_time_of_its_response_and_no_clock():
    for history in (objects(), objects()[:2]):
        mended = lockstitch.mend(history)
        (made,) = [p for p in mended[2].parts if getattr(p, "tool_call_id", None) == "call_2"]
        assert isinstance(made, ToolReturnPart)
        assert made.timestamp == NOW


def test_an_object_with_another_id_keeps_all_else_it_holds():
    seats = Seats(4)
    history = [
        objects()[0],
        ModelResponse([ToolCallPart("book", {}, "call_1")] * 2, timestamp=NOW),
        ModelRequest([ToolReturnPart("book", seats, "call_1", timestamp=NOW)] * 2),
    ]
    mended = lockstitch.mend(history)
    assert [part.tool_call_id for part in mended[1].parts] == ["call_1", "call_1_ls2"]
    assert [part.tool_call_id for part in mended[2].parts] == ["call_1", "call_1_ls2"]
    assert mended[2].parts[1].content is seats


def test_an_object_that_moves_is_the_very_same():
    history = [
        ModelRequest([UserPromptPart("a", timestamp=NOW)]),
        ModelResponse([ToolCallPart("book", {}, "call_1")], timestamp=NOW),
        ModelRequest([UserPromptPart("b", timestamp=NOW)]),
        ModelResponse([TextPart("x")], timestamp=NOW),
        ModelRequest([ToolReturnPart("book", Seats(4), "call_1", timestamp=NOW)]),
    ]
    mended = lockstitch.mend(history)
    assert mended[2].parts[0] is history[4].parts[0]
    assert mended[3] is history[3]
    assert len(mended) == 4


@broken
def test_objects_and_json_are_mended_alike(history):
    mended = lockstitch.mend(loaded(history))
    expected = loaded(lockstitch.mend(history))
    assert lockstitch.check(mended) == []
    for one, other in zip(mended, expected, strict=True):
        assert _told(one) == _told(other)


def _told(message):
    return [
        (part.part_kind, getattr(part, "tool_call_id", None), part.content)
        if hasattr(part, "content")
        else (part.part_kind, part.tool_call_id, part.args)
        for part in message.parts
    ]


@settings(max_examples=examples(100))
@given(HISTORIES["pydantic-ai"])
def test_any_history_of_objects_is_mended_like_its_json(history):
    messages = loaded(history)
    mended = lockstitch.mend(messages, dialect="pydantic-ai") if messages else []
    as_json = lockstitch.mend(history, dialect="pydantic-ai") if messages else []
    assert [len(message.parts) for message in mended] == [len(one["parts"]) for one in as_json]


# --- hostile values ----------------------------------------------------------------------------

_odd = st.one_of(anything, st.lists(st.just({"part_kind": ["x"]}), max_size=1))


@settings(max_examples=examples(400))
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "kind": st.one_of(_odd, st.sampled_from(["request", "response"])),
            "parts": st.one_of(
                _odd,
                st.lists(
                    st.dictionaries(
                        st.sampled_from(
                            ["part_kind", "tool_call_id", "tool_name", "args", "content"]
                        ),
                        st.one_of(
                            _odd,
                            st.sampled_from(
                                ["tool-call", "tool-return", "retry-prompt", "builtin-tool-call"]
                            ),
                        ),
                    ),
                    max_size=3,
                ),
            ),
            "state": _odd,
        },
    )
)
def test_no_value_whatever_makes_reading_raise(wire):
    PydanticAI().read(wire)
    PydanticAI().claims(wire)
    try:
        mended = lockstitch.mend([wire], dialect="pydantic-ai")
    except (lockstitch.NotAHistory, lockstitch.CannotMend):
        return
    assert lockstitch.check(mended, dialect="pydantic-ai") == [] or not mended


def test_the_samples_are_what_pydantic_ai_loads():
    for sample in SAMPLES:
        assert loaded(sample.broken)
