"""Where keys stand in a TOML document: told for every key, and told right."""

from __future__ import annotations

import tomllib

from hypothesis import example, given
from hypothesis import strategies as st

from lockstitch.gateway.config.line_numbers import line_numbers


def test_tables_keys_and_elements():
    text = """\
store = "memory:"

[server]
host = "::1"
# port = 1
port = 2

[[upstreams]]
name = "a"
headers = { one = "1", "two.three" = "2" }
models = [
    "x",  # ] = "no"
    "y",
]

[[upstreams]]
name = \"\"\"
[server]
port = 3\"\"\"
url.base = 1
[upstreams.headers]
four = 4
"""
    assert line_numbers(text) == {
        ("store",): 1,
        ("server",): 3,
        ("server", "host"): 4,
        ("server", "port"): 6,
        ("upstreams",): 8,
        ("upstreams", 0): 8,
        ("upstreams", 0, "name"): 9,
        ("upstreams", 0, "headers"): 10,
        ("upstreams", 0, "headers", "one"): 10,
        ("upstreams", 0, "headers", "two.three"): 10,
        ("upstreams", 0, "models"): 11,
        ("upstreams", 0, "models", 0): 12,
        ("upstreams", 0, "models", 1): 13,
        ("upstreams", 1): 16,
        ("upstreams", 1, "name"): 17,
        ("upstreams", 1, "url"): 20,
        ("upstreams", 1, "url", "base"): 20,
        ("upstreams", 1, "headers"): 21,
        ("upstreams", 1, "headers", "four"): 22,
    }


TRICKY = st.text(alphabet="ab#=[]{},.'\" \t\n\\", max_size=12)
NAMES = st.text(alphabet="abc-_1", min_size=1, max_size=4) | TRICKY.filter(
    lambda name: "\n" not in name
)


def quoted(text):
    signs = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(signs.get(sign, sign) for sign in text) + '"'


def key(name):
    plain = name and all(sign in "abc-_1" for sign in name)
    return name if plain else quoted(name)


def spread(text):
    """The same text over several lines."""
    return '"""\n' + text.replace("\\", "\\\\").replace('"', '\\"') + '"""'


SCALARS = st.one_of(
    TRICKY.map(quoted),
    TRICKY.map(spread),
    TRICKY.filter(lambda text: "'" not in text and "\n" not in text).map(lambda one: f"'{one}'"),
    TRICKY.filter(lambda text: "'" not in text).map(lambda one: f"'''\n{one}'''"),
    st.sampled_from(["1", "-2.5e3", "true", "1979-05-27 07:32:00Z", "07:32:00", "inf"]),
    st.just('"""a"""""'),
    st.just("'''a'''''"),
    st.just('""""""'),
)
GAPS = st.sampled_from(["", " ", "\n", " # ] } = [x]\n", "\n\t\n"])


@st.composite
def documents(draw):
    """A document, and where each key of it stands, as its writer knows."""
    lines: dict[tuple, int] = {}
    said = ""

    def stands(path):
        lines.setdefault(path, said.count("\n") + 1)

    def value(path, depth):
        nonlocal said
        kind = draw(
            st.sampled_from(["scalar", "scalar", "array", "table"] if depth else ["scalar"])
        )
        if kind == "scalar":
            said += draw(SCALARS)
        elif kind == "array":
            said += "["
            for number in range(draw(st.integers(0, 3))):
                said += ("," if number else "") + draw(GAPS)
                stands((*path, number))
                value((*path, number), depth - 1)
                said += draw(GAPS)
            said += "]"
        else:
            said += "{"
            for number, name in enumerate(draw(st.lists(NAMES, max_size=2, unique=True))):
                said += "," * bool(number) + " "
                stands((*path, name))
                said += f"{key(name)} = "
                value((*path, name), 0)
            said += " }"

    def pairs(path):
        nonlocal said
        for name in draw(st.lists(NAMES, max_size=3, unique=True)):
            said += draw(st.sampled_from(["", "  ", "\n", "# [no]\n"]))
            stands((*path, name))
            said += f"{key(name)}{draw(st.sampled_from(['=', ' = ']))}"
            value((*path, name), 2)
            said += draw(st.sampled_from(["\n", " # = ]\n", "\n\n"]))

    pairs(())
    known = {path[0] for path in lines}
    tables = draw(st.lists(NAMES, max_size=3, unique=True))
    for name in tables:
        if name in known:
            continue
        is_array = draw(st.booleans())
        for number in range(draw(st.integers(1, 3)) if is_array else 1):
            stands((name,))
            path = (name, number) if is_array else (name,)
            stands(path)
            said += f"[[ {key(name)} ]]\n" if is_array else f"[{key(name)}] # [[x]]\n"
            pairs(path)
            if draw(st.booleans()) and (*path, "below") not in lines:
                stands((*path, "below"))
                said += f"[{key(name)}.below]\n"
                pairs((*path, "below"))
    return said, lines


@given(documents())
@example(("", {}))
def test_every_key_of_any_document_is_found_where_it_stands(made):
    text, lines = made
    tomllib.loads(text)
    assert line_numbers(text) == lines


@given(st.text(alphabet="a=[]{}.\"',#\n 1\\", max_size=40))
def test_what_is_no_document_is_no_error(text):
    assert all(line >= 1 for line in line_numbers(text).values())
