"""The provider knows its own encrypted content again, and no other's."""

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.emulator.responses.minting import Mint


@given(st.text(), st.integers(0, 5), st.integers(0, 5))
def test_content_is_genuine_where_it_was_sealed_and_nowhere_else(text, seed, other):
    sealed = Mint(seed).sealed(text)
    assert Mint(seed).genuine(sealed)
    assert Mint(other).genuine(sealed) == (seed == other)


@given(st.text())
def test_no_other_text_is_genuine(text):
    assert not Mint(0).genuine(text)
    assert not Mint(0).genuine("gAAAA" + text)


def test_content_given_word_for_word_is_taken_for_its_own():
    mint = Mint(0)
    mint.accept("captured elsewhere")
    assert mint.genuine("captured elsewhere")


@given(st.text(min_size=1), st.data())
def test_content_that_was_changed_is_not_genuine(text, data):
    sealed = Mint(0).sealed(text)
    place = data.draw(st.integers(5, len(sealed) - 1))
    other = "A" if sealed[place] != "A" else "B"
    changed = sealed[:place] + other + sealed[place + 1 :]
    same_bytes = Mint(0).genuine(changed) and sealed.rstrip("=") != changed.rstrip("=")
    # Base64 leaves a few bits of its last digit unused; only those may change unseen.
    assert not same_bytes or place >= len(sealed.rstrip("=")) - 1
