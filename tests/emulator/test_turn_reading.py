"""The script format: every key, every short form, and what is told of a mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.limits import MOST_TURNS
from lockstitch.emulator.model import script as scripts
from lockstitch.emulator.model.draft_reading import FORMS
from lockstitch.emulator.model.replies import call, reply, text
from lockstitch.emulator.model.script import ALWAYS, Script, SpeechStep, Turn, When
from lockstitch.emulator.model.turn_reading import CHOICE, DOCUMENT, REPLY, SEVERAL, SPEECH, WHEN
from tests.emulator.scripts import asked, is_script_or_bad, loaded, told


def drafts(folder, source):
    (turn,) = loaded(folder, f"turns:\n{source}").loaded
    return list(turn.reply.drafts)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("- Hello!", [text("Hello!")]),
        ("- text: Hello!", [text("Hello!")]),
        ("- {text: Hello!, phase: commentary}", [text("Hello!", phase="commentary")]),
        ("- call: f", [call("f")]),
        (
            "- {call: f, arguments: {a: 1}, call_id: call_1}",
            [call("f", {"a": 1}, call_id="call_1")],
        ),
        ("- {call: f, arguments: '{broken'}", [call("f", "{broken")]),
        (
            "- calls: [{call: f}, {custom: g, input: x}]",
            [call("f"), {"type": "custom_tool_call", "name": "g", "input": "x"}],
        ),
        (
            "- items: [{reasoning: why}, Hello!]",
            [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "why"}]},
                text("Hello!"),
            ],
        ),
        ("- items: []", []),
        (
            "- item: {type: computer_call, action: {type: screenshot}}",
            [{"type": "computer_call", "action": {"type": "screenshot"}}],
        ),
        (
            "- {approval: send, server: mail}",
            [
                {
                    "type": "mcp_approval_request",
                    "server_label": "mail",
                    "name": "send",
                    "arguments": "{}",
                }
            ],
        ),
    ],
)
def test_each_short_form_makes_its_items(tmp_path, source, expected):
    assert drafts(tmp_path, source) == expected


@pytest.mark.parametrize("form", ["shell: ls -l", "shell: [ls -l]"])
def test_a_single_command_needs_no_list(tmp_path, form):
    (draft,) = drafts(tmp_path, f"- {form}")
    assert draft["action"]["commands"] == ["ls -l"]


def test_a_turn_has_its_settings(tmp_path):
    (turn,) = loaded(
        tmp_path,
        "turns:\n"
        "- text: Hello!\n"
        "  when: {user: hi, longer_than: 3}\n"
        "  times: always\n"
        "  delay: 0.5\n"
        "  pace: 1\n"
        "  faults: ['cut after=response.created']\n"
        "  ends: incomplete\n"
        "  input_tokens: 10\n",
    ).loaded
    assert turn.when == When(user="hi", longer_than=3)
    assert turn.times == ALWAYS
    assert turn.reply == reply(
        "Hello!",
        delay=0.5,
        pace=1.0,
        faults=("cut after=response.created",),
        ends="incomplete",
        input_tokens=10,
    )


def test_speech_and_faults_stand_beside_the_turns(tmp_path):
    script = loaded(
        tmp_path,
        "speech:\n"
        "- {after: session.updated, says: hello}\n"
        "- {after: response.done, nth: 2, delay: 0.1, says: 'no', responds: false}\n"
        "faults: ['status code=429 request=2']\n",
    )
    assert script.speech == (
        SpeechStep(after="session.updated", nth=1, delay=0.0, says="hello", responds=True),
        SpeechStep(after="response.done", nth=2, delay=0.1, says="no", responds=False),
    )
    assert script.faults == ("status code=429 request=2",)
    assert script.loaded == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            "turns: [{txt: a}]",
            "turns[0]: unknown key 'txt'. Did you mean `text`? Known keys: text,",
        ),
        ("turns: [{text: a, time: 2}]", "turns[0]: unknown key 'time'. Did you mean `times`?"),
        ("turns: [{text: a, arguments: {}}]", "turns[0]: unknown key 'arguments'."),
        ("turn: []", "unknown key 'turn'. Did you mean `turns`? Known keys: turns, speech, faults"),
        ("turns: [{text: 5}]", "turns[0].text: it must be text, not a number: put it in quotes"),
        ("turns: [{text: }]", "turns[0].text: it must be text, not nothing"),
        ("turns: {text: a}", "turns: it must be a list, not a mapping"),
        ("turns: [5]", "turns[0]: a turn must be a mapping or a text, not a number"),
        ("turns: [{}]", "turns[0]: it says nothing. Give one of: text,"),
        ("turns: [{delay: 1}]", "turns[0]: it says nothing."),
        ("turns: [{text: a, call: f}]", "turns[0]: it has `text` and `call`: put several"),
        ("turns: [{text: a, delay: -1}]", "turns[0].delay: it must be from 0 to 3600 seconds"),
        ("turns: [{text: a, pace: true}]", "turns[0].pace: it must be a number of seconds"),
        ("turns: [{text: a, times: 0}]", "turns[0].times: it must be a whole number from 1, or"),
        ("turns: [{text: a, ends: badly}]", "turns[0].ends: it must be one of completed,"),
        ("turns: [{text: a, phase: last}]", "turns[0].phase: it must be one of commentary,"),
        ("turns: [a, {text: a, faults: [x]}]", "turns[1].faults[0]: There is no fault 'x'."),
        ("turns: [{text: a, faults: [status]}]", "turns[0].faults[0]: status strikes before a"),
        ("turns: [{text: a, faults: ['']}]", "turns[0].faults[0]: "),
        ("turns: [a, a, {text: a, when: {user: '('}}]", "turns[2].when.user: it is not a regular"),
        ("turns: [{text: a, when: {usr: a}}]", "turns[0].when: unknown key 'usr'. Did you mean"),
        ("turns: [{text: a, when: always}]", "turns[0].when: it must be a mapping"),
        ("turns: [{text: a, when: {dialect: x}}]", "turns[0].when.dialect: it must be one of"),
        ("turns: [{custom: f}]", "turns[0]: the key `input` is missing"),
        ("turns: [{calls: [{text: a}]}]", "turns[0].calls[0]: unknown key 'text'."),
        ("turns: [{items: [{item: {}}]}]", "turns[0].items[0].item: an item needs a `type`"),
        ("turns: [{items: [{text: a, times: 2}]}]", "turns[0].items[0]: unknown key 'times'"),
        ("turns: [{items: [1]}]", "turns[0].items[0]: it must be an item or a text, not a number"),
        ("turns: [{shell: []}]", "turns[0].shell: the list is empty"),
        ("speech: [{says: a}]", "speech[0]: the key `after` is missing"),
        ("speech: [{says: a, after: b, nth: 0}]", "speech[0].nth: it must be a whole number"),
        ("speech: [{says: a, after: b, responds: 1}]", "speech[0].responds: it must be true or"),
        ("faults: [cut, stutter]", "faults[1]: There is no fault 'stutter'."),
        ("", "the script is empty."),
        ("- text: a", "the script is a list. Put it under `turns:`"),
        ("just text", "it must be a mapping (key: value), not text"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(tmp_path, source, expected):
    assert told(tmp_path, source).startswith(expected)


def test_the_admin_endpoint_takes_the_same_turns_as_data():
    turns = scripts.from_data([{"text": "a"}, "b"])
    assert turns == [Turn(reply("a")), Turn(reply("b"))]
    assert scripts.from_data({"turns": [{"text": "a"}, "b"]}) == turns
    with pytest.raises(BadScript, match=r"unknown key 'faults'\..* Known keys: turns"):
        scripts.from_data({"turns": [], "faults": []})


def test_too_many_turns_are_told():
    with pytest.raises(BadScript, match=f"at most {MOST_TURNS}"):
        scripts.from_data(["a"] * (MOST_TURNS + 1))


# --- anything at all ---------------------------------------------------------------------------

KEYS = st.sampled_from([*FORMS, *CHOICE, *REPLY, *SEVERAL, *SPEECH, *WHEN, *DOCUMENT, "type"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["always", "completed", "cut", "status", "(", "commentary", "chat"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(KEYS, st.text(max_size=3)), inner, max_size=4),
    ),
    max_leaves=12,
)
ENTRIES = st.dictionaries(KEYS, VALUES, max_size=4)
DOCUMENTS = st.dictionaries(
    st.sampled_from([*DOCUMENT, "other"]), st.one_of(VALUES, st.lists(ENTRIES, max_size=3))
)


@given(st.one_of(DOCUMENTS, VALUES))
def test_any_data_is_a_script_or_a_bad_one(data):
    assert is_script_or_bad(lambda: scripts.from_document(data))


@given(st.one_of(st.lists(ENTRIES), VALUES, st.dictionaries(st.integers(), VALUES)))
def test_any_data_is_turns_or_bad_ones(data):
    try:
        turns = scripts.from_data(data)
    except BadScript:
        return
    script = Script(turns)
    for _ in range(len(turns) + 1):
        script.choose(asked("weather", output="x"))
