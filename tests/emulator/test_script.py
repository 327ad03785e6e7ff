"""Scripts: which turn is used, and how a script is read from a file."""

from pathlib import Path

import pytest

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.limits import LARGEST_SCRIPT_BYTES
from lockstitch.emulator.model import script as scripts
from lockstitch.emulator.model.draft_reading import FORMS
from lockstitch.emulator.model.replies import call, reply
from lockstitch.emulator.model.script import ALWAYS, Script, Turn, When, load
from lockstitch.emulator.model.turn_reading import CHOICE, DOCUMENT, REPLY, SEVERAL, SPEECH, WHEN
from tests.emulator.scripts import asked, loaded, said

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "emulator-scripts.md"
EXAMPLE = ROOT / "examples" / "emulator" / "weather.yaml"


# --- which turn is used ------------------------------------------------------------------------


def test_turns_without_conditions_are_used_in_order_and_once():
    script = Script(["one", reply("two"), Turn(reply("three"))])
    assert [said(script.choose(asked())) for _ in range(4)] == ["one", "two", "three", None]


def test_a_turn_that_does_not_fit_is_passed_over_and_kept():
    script = Script([Turn(reply("late"), When(user="bye")), "first"])
    assert said(script.choose(asked())) == "first"
    assert said(script.choose(asked("bye"))) == "late"


def test_a_turn_is_used_as_often_as_it_says():
    script = Script([Turn(reply("twice"), times=2), "once"])
    assert [said(script.choose(asked())) for _ in range(4)] == ["twice", "twice", "once", None]


def test_a_rule_is_never_used_up_and_never_left():
    script = Script([Turn(reply("rule"), times=ALWAYS)])
    assert {said(script.choose(asked())) for _ in range(10)} == {"rule"}
    assert script.left() == ()


def test_what_is_added_goes_to_the_end_and_a_reset_takes_it_away():
    script = Script(["one"])
    script.add("two")
    assert [said(script.choose(asked())) for _ in range(3)] == ["one", "two", None]
    script.add("three")
    script.reset()
    assert [said(script.choose(asked())) for _ in range(2)] == ["one", None]


def test_what_is_left_tells_how_often():
    script = Script([Turn(reply("a"), times=3), "b"])
    script.choose(asked())
    assert [turn.times for turn in script.left()] == [2, 1]
    assert repr(script) == "<Script 2 of 2 turns left>"


def test_there_is_a_limit_to_the_turns(monkeypatch):
    monkeypatch.setattr(scripts, "MOST_TURNS", 2)
    script = Script(["a", "b"])
    with pytest.raises(BadScript, match="already 2 turns"):
        script.add("c")
    with pytest.raises(BadScript, match="There are 3 turns"):
        Script(["a", "b", "c"])


def test_a_function_decides_and_none_means_the_next_turn():
    def decide(asked):
        return f"You are {asked.user}" if asked.user else None

    script = Script([Turn(decide=decide, times=ALWAYS), "nobody"])
    assert said(script.choose(asked("Ada"))) == "You are Ada"
    assert said(script.choose(asked(""))) == "nobody"


def test_a_function_that_fails_is_told_with_its_file_and_line():
    def decide(asked):
        return 1 / 0

    script = Script([Turn(decide=decide)])
    line = decide.__code__.co_firstlineno + 1
    with pytest.raises(BadScript, match=rf"test_script\.py:{line}: ZeroDivisionError: division"):
        script.choose(asked())


@pytest.mark.parametrize("value", [1, ["text"], {}, reply("a", faults=("nonsense",))])
def test_a_function_that_returns_what_cannot_be_said_is_told(value):
    with pytest.raises(BadScript, match=r"must return a Reply|cannot be spoken"):
        Script([Turn(decide=lambda asked: value)]).choose(asked())


def test_a_script_that_raised_is_the_script_it_was_before():
    script = Script(["one"])
    for wrong in (3, reply("a", faults=("nonsense",)), {"no": "type"}):
        with pytest.raises(BadScript):
            script.add(wrong)
    assert len(script.left()) == 1


@pytest.mark.parametrize("wrong", ["nonsense", "cut before=a after=b", 3])
def test_faults_of_a_script_are_parsed_when_it_is_made(wrong):
    with pytest.raises(BadScript, match=r"faults\[0\]: "):
        Script(faults=[wrong])


# --- files -------------------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_told_with_what_to_do(tmp_path):
    with pytest.raises(BadScript, match=r"none\.yaml: there is no such file\. Check the path\."):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["script.toml", "script", "script.yaml.txt"])
def test_a_suffix_that_says_nothing_is_told(tmp_path, name):
    with pytest.raises(BadScript, match=r"ends in \.yaml, \.yml, \.json or \.py"):
        load(tmp_path / name)


def test_a_directory_and_an_impossible_path_are_told(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    for path in (tmp_path / "folder.yaml", "\0.yaml"):
        with pytest.raises(BadScript, match="it cannot be read"):
            load(path)


def test_a_file_that_is_too_large_is_told(tmp_path):
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(LARGEST_SCRIPT_BYTES + 1)
    with pytest.raises(BadScript, match="larger than 16 MB"):
        load(path)


# --- the Python form ---------------------------------------------------------------------------


def test_a_python_file_has_a_list_or_a_script(tmp_path):
    head = "from lockstitch.emulator import call, reply\n"
    script = loaded(tmp_path, f"{head}script = ['one', call('f'), reply('three')]", "script.py")
    assert [turn.reply for turn in script.loaded] == [
        reply("one"),
        reply(call("f")),
        reply("three"),
    ]
    head = "from lockstitch.emulator import Script\n"
    script = loaded(tmp_path, f"{head}script = Script(['one'], faults=['cut'])", "script.py")
    assert script.faults == ("cut",)


def test_a_python_file_has_a_function_that_is_asked_last(tmp_path):
    script = loaded(
        tmp_path,
        "script = ['one']\ndef reply(asked):\n    return asked.user or None\n",
        "script.py",
    )
    assert [said(script.choose(asked("Ada"))) for _ in range(3)] == ["one", "Ada", "Ada"]
    assert script.choose(asked("")) is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("script = [\n1 / 0]", ":2: ZeroDivisionError: division by zero"),
        ("script = [\n", ":1: '[' was never closed"),
        ("import nothing_of_this_name", ":1: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", ":1: SystemExit: 3"),
        ("x = 1", ": define `script` (a Script or a list) or `def reply(asked)`."),
        ("from lockstitch.emulator import reply", ": define `script`"),
        ("script = 5", ": `script` must be a Script or a list, not a number."),
        ("script = ['a', 5]", ": script: turns[1]: it must be a Turn, a Reply, an item or a text"),
        ("script = [{'no': 'type'}]", ": script: turns[0]: drafts[0]: it must be an item"),
        (
            "from lockstitch.emulator import When\n\nWhen(user='(')",
            ":3: user: it is not a regular expression",
        ),
        ("\0", ": "),
    ],
)
def test_a_mistake_in_python_is_told_with_the_line(tmp_path, source, expected):
    with pytest.raises(BadScript) as caught:
        loaded(tmp_path, source, "script.py")
    assert str(caught.value).startswith(f"{tmp_path / 'script.py'}{expected}")


def test_a_function_in_a_file_that_fails_is_told_with_the_line(tmp_path):
    script = loaded(
        tmp_path, "def reply(asked):\n    return helper()\n\ndef helper():\n    {}['a']", "s.py"
    )
    with pytest.raises(BadScript) as caught:
        script.choose(asked())
    assert str(caught.value) == f"{tmp_path / 's.py'}:5: KeyError: 'a'"


# --- the page and the example ------------------------------------------------------------------


def blocks(language):
    parts = PAGE.read_text().split(f"```{language}\n")[1:]
    return [part.partition("```")[0] for part in parts]


@pytest.mark.parametrize("source", blocks("yaml"))
def test_every_yaml_example_of_the_page_loads(tmp_path, source):
    script = loaded(tmp_path, source)
    assert script.loaded or script.speech


def test_the_python_example_of_the_page_loads_and_answers(tmp_path):
    (source,) = blocks("python")
    script = loaded(tmp_path, source, "script.py")
    assert said(script.choose(asked(output="sunny"))) == "Hello!"
    assert [draft["type"] for draft in script.choose(asked()).drafts] == [
        "reasoning",
        "function_call",
    ]
    assert said(script.choose(asked(output="sunny"))) == "Take sunglasses."
    assert said(script.choose(asked(output="rain"))) == "It returned 4 characters."
    assert script.choose(asked()) is None


def rows(title):
    """The keys in the table under a heading, by the first word of each row."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {cell[0].strip("| `"): cell for cell in cells}


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("A script", DOCUMENT),
        ("A turn", {**SEVERAL, **CHOICE, **REPLY}),
        ("Items", FORMS),
        ("Which turn is used", WHEN),
        ("Speech", SPEECH),
    ],
)
def test_the_tables_of_the_page_have_every_key_and_no_other(title, keys):
    assert list(rows(title)) == list(keys)


def test_the_table_of_items_has_the_other_keys_of_each():
    for head, cells in rows("Items").items():
        for key in FORMS[head].also:
            assert f"`{key}`" in cells[2], (head, key)


def test_the_example_asks_twice_and_answers_by_what_came_back():
    script = load(EXAMPLE)
    tools = (scripts.replies.Offered(type="function", name="get_weather"),)
    question = asked("What is the weather?", tools=tools)
    for output, answer in [
        ("Sunny, 20 degrees", "Take sunglasses."),
        ("rain all day", "Take an umbrella."),
        ("snow", "I could not tell from the forecast. Take both."),
    ]:
        calls = script.choose(question).drafts
        assert [call["arguments"] for call in calls] == ['{"city":"Oslo"}', '{"city":"Rome"}']
        chosen = script.choose(asked("What is the weather?", output=output, tool="get_weather"))
        assert chosen.drafts[-1]["content"][0]["text"] == answer
    assert script.choose(asked("Hello")) is None
