"""YAML and JSON, strictly: what is plain data, and what is told of the rest."""

import json
import string

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lockstitch.emulator.model import document_files
from lockstitch.emulator.model import script as scripts
from tests.emulator.scripts import asked, is_script_or_bad, loaded, said, told


def value_of(word):
    return document_files.read_yaml(f"- {word}".encode())[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("turns:\n  - text: 'a", "line 2, column 13: this is not YAML: while scanning a quoted"),
        ("turns: [\n", "line 2, column 1: this is not YAML: while parsing a flow"),
        ("turns: &a []\nfaults: *a", "line 2, column 9: aliases (*a) are not taken"),
        ("turns:\n- text: !!binary aGk=", "line 2, column 9: tags (tag:yaml.org,2002:binary)"),
        ("turns: !!python/name:os.system", "line 1, column 8: tags ("),
        ("turns: []\nturns: []", "line 2, column 1: the key 'turns' is there twice"),
        ("? [a]\n: b", "line 1, column 3: a key must be text"),
        ("turns: []\n---\nturns: []", "line 2, column 1: a script is one YAML document"),
        ("turns: " + "[" * 100_000, "line 1, column 71: it is nested deeper than 64 levels"),
        (b"turns: \xff", "line 1: it is not UTF-8"),
        ("turns: \0", "this is not YAML: unacceptable character #x0000"),
        ("turns:\n  a\n b: [c\n", "line 3, column 3: this is not YAML: mapping values are not"),
        ("turns: [{call: f, arguments: 1e999}]", "turns[0].arguments: the number is not finite"),
        ("turns: [{call: f, arguments: %s}]" % ("9" * 99), "turns[0].arguments: the number is too"),
        ("turns: [%s]" % ("9" * 9999), "line 1, column 9: the number is too large"),
    ],
)
@pytest.mark.parametrize("parser", ["SafeLoader", "CSafeLoader"])
def test_what_is_not_plain_yaml_is_told_with_its_line(
    tmp_path, monkeypatch, parser, source, expected
):
    if not hasattr(yaml, parser):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(document_files, "_LOADER", getattr(yaml, parser))
    assert told(tmp_path, source).startswith(expected)


@pytest.mark.parametrize(
    ("parser", "expected"),
    [
        ("SafeLoader", "turns[0]: the text has half of a surrogate pair"),
        ("CSafeLoader", "line 1, column 12: this is not YAML: "),
    ],
)
def test_half_of_a_surrogate_pair_is_told_by_us_or_by_the_parser(
    tmp_path, monkeypatch, parser, expected
):
    if not hasattr(yaml, parser):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(document_files, "_LOADER", getattr(yaml, parser))
    assert told(tmp_path, 'turns: ["\\ud800"]').startswith(expected)


@pytest.mark.parametrize("word", ["no", "on", "12:30", "2026-01-01", "1_000", "0x1F", "007", ".5"])
def test_what_json_would_not_call_a_value_is_text(word):
    assert value_of(word) == word


@pytest.mark.parametrize(
    ("word", "value"),
    [("null", None), ("~", None), ("true", True), ("False", False), ("-3", -3), ("1.5e2", 150.0)],
)
def test_what_json_would_call_a_value_is_one(word, value):
    found = value_of(word)
    assert (type(found), found) == (type(value), value)


def test_json_is_read_by_the_same_keys(tmp_path):
    document = {"turns": [{"text": "\N{GRINNING FACE}"}]}
    script = loaded(tmp_path, json.dumps(document), "script.json")
    assert said(script.choose(asked())) == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('{"turns": [}', "line 1, column 12: Expecting value"),
        ('{"turns": [], "turns": []}', "the key 'turns' is there twice"),
        ('{"turns": [NaN]}', "NaN is not JSON"),
        ('{"turns": [%s]}' % ("9" * 9999), "the number 99999999999999999999… is too large"),
        ('{"turns": %s' % ("[" * 100_000), "it is nested deeper than 64 levels"),
        ('{"turns": %s}' % ("[" * 80 + "]" * 80), "it is nested deeper than 64 levels"),
        ('{"turns": ["\\ud800"]}', "turns[0]: the text has half of a surrogate pair"),
    ],
)
def test_what_is_not_plain_json_is_told(tmp_path, source, expected):
    assert told(tmp_path, source, "script.json").startswith(expected)


PIECES = [
    *"[]{}:,-?&*!|>'\"%@`#~ \n\t\\",
    *(
        "  ",
        "- ",
        ": ",
        "\n- ",
        "---\n",
        "%YAML 1.1\n",
        "!!int ",
        "<<: ",
        '"\\U',
        "FFFFFFFF",
        '\\x"',
    ),
    *("turns:", "text", "when", "0", "1e5", "\ufeff", "é"),
]
SYNTAX = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize("parser", ["SafeLoader", "CSafeLoader"])
@given(source=st.one_of(SYNTAX, st.text(), st.text(string.printable)))
@example(source='"\\UFFFFFFFF"')
@example(source="%YAML " + "9" * 5000 + ".1\n--- a")
@example(source="a: !<%ff> b")
@example(source='"\\ud800": 1')
def test_any_text_is_plain_data_or_a_bad_script(parser, source):
    data = source.encode("utf-8", "surrogatepass")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document_files, "_LOADER", getattr(yaml, parser, yaml.SafeLoader))
        assert is_script_or_bad(lambda: scripts.from_document(document_files.read_yaml(data)))


@given(st.binary())
def test_any_bytes_are_a_script_or_a_bad_one(data):
    for read in (document_files.read_yaml, document_files.read_json):
        assert is_script_or_bad(lambda read=read: scripts.from_document(read(data)))


# Without the characters that only YAML takes for the end of a line, or not at all.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]))
PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXTS, inner)),
    max_leaves=10,
)


@given(PLAIN)
def test_json_means_the_same_in_both_readers(value):
    data = json.dumps(value, ensure_ascii=False).encode()
    assert document_files.read_json(data) == value
    assert document_files.read_yaml(data) == value
