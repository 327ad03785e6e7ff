"""What a docstring says to a model."""

from __future__ import annotations

import pytest

from lockstitch.runner.docstrings import described

GOOGLE = """Tell the weather
    of a city.

    More for people.

    Args:
        city: The city,
            with its country.
        days (int): How many: up to 9.
        *more: Whatever.

            Note: not a parameter.

    Returns:
        text: The weather.
    """
NUMPY = """Tell the weather of a city.

    Parameters
    ----------
    city : str
        The city,
        with its country.
    days
        How many: up to 9.

    Returns
    -------
    text : str
        The weather.
    """
SPHINX = """Tell the weather of a city.

    :param city: The city,
        with its country.
    :param int days: How many: up to 9.
    :type city: str
    :returns: The weather.
    """
TEXTS = {"city": "The city, with its country.", "days": "How many: up to 9."}


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_the_first_paragraph_and_the_parameters_are_read(docstring):
    said = described(docstring)
    assert said.summary == "Tell the weather of a city."
    assert {name: said.parameters[name] for name in TEXTS} == TEXTS
    assert set(said.parameters) <= {"city", "days", "more"}


@pytest.mark.parametrize(
    "docstring",
    [
        "Args:\n    city: The city.",
        ":param city: The city.",
        "Parameters\n----------\ncity : str\n    The city.",
    ],
)
def test_parameters_are_no_description_of_the_tool(docstring):
    said = described(docstring)
    assert said.summary == ""
    assert said.parameters == {"city": "The city."}


@pytest.mark.parametrize("docstring", [None, "", "   \n  "])
def test_no_docstring_says_nothing(docstring):
    assert described(docstring).summary == ""
    assert described(docstring).parameters == {}


def test_a_section_without_a_parameter_is_empty():
    assert described("Look.\n\nArgs:\n").parameters == {}
    assert described("Look.\n\nArgs:\nNothing is indented: here.\n").parameters == {}


def test_words_that_look_like_headings_are_words():
    said = described("Look.\n\nParameters are checked.\ncity: no section\n")
    assert said.parameters == {}
