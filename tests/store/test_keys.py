"""Keys: how they are written, where they come from, and that they are never shown."""

from __future__ import annotations

import base64

import pytest

from lockstitch.store.errors import NotAKey
from lockstitch.store.keys import Key, Keys, keys_from_environment, new_key

SECRET = bytes(range(64))
TEXT = base64.b64encode(SECRET).decode()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.rstrip("="),
        SECRET.hex(),
        SECRET.hex().upper(),
        base64.urlsafe_b64encode(SECRET).decode(),
    ],
    ids=["base64", "unpadded", "hex", "HEX", "urlsafe"],
)
def test_a_key_is_base64_or_hex(text):
    assert Key.from_text(text).secret == SECRET


@pytest.mark.parametrize("text", ["secret", TEXT[:-4], TEXT + "AAAA", SECRET.hex()[:-2], "é" * 88])
def test_anything_else_is_refused_and_not_shown(text):
    with pytest.raises(NotAKey, match="is not 64 bytes as base64 or hex") as refused:
        Key.from_text(text)
    assert text not in str(refused.value)


def test_new_keys_are_keys_and_differ():
    assert Key.from_text(new_key()).id != Key.from_text(new_key()).id


def test_the_id_tells_keys_apart_and_is_no_part_of_them():
    one, other = Key(b"a" * 64), Key(b"b" * 64)
    assert one.id != other.id
    assert repr(one) == f"<Key {one.id.hex()}>"
    assert one.secret.hex() not in repr(Keys([one, other]))


def test_a_file_has_a_key_in_each_line_and_comments(tmp_path):
    path = tmp_path / "keys"
    old = new_key()
    path.write_text(f"# the new one\n{TEXT}  # since May\n\n   \n{old}\n")
    keys = Keys.from_file(path)
    assert [key.secret for key in keys] == [SECRET, Key.from_text(old).secret]
    assert keys.first.secret == SECRET
    assert keys.get(keys.first.id) is keys.first
    assert keys.get(b"other") is None


def test_a_wrong_line_is_named(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"{TEXT}\n# fine\nwrong\n")
    with pytest.raises(NotAKey, match="keys, line 3, is not 64 bytes"):
        Keys.from_file(path)


def test_a_file_without_a_key_is_refused(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# none yet\n")
    with pytest.raises(NotAKey, match="holds no key"):
        Keys.from_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(NotAKey, match="is not text"):
        Keys.from_file(path)
    with pytest.raises(NotAKey, match=r"missing cannot be read: No such file.*Check the path"):
        Keys.from_file(tmp_path / "missing")


def test_the_environment_names_a_key_or_a_file_or_none(tmp_path):
    path = tmp_path / "keys"
    path.write_text(TEXT)
    for environment in (
        {"LOCKSTITCH_STORE_KEY": TEXT},
        {"LOCKSTITCH_STORE_KEY_FILE": str(path), "LOCKSTITCH_STORE_KEY": ""},
    ):
        keys = keys_from_environment(environment)
        assert keys is not None
        assert keys.first.secret == SECRET
    assert keys_from_environment({}) is None


def test_the_environment_may_not_name_both():
    both = {"LOCKSTITCH_STORE_KEY": TEXT, "LOCKSTITCH_STORE_KEY_FILE": "keys"}
    with pytest.raises(NotAKey, match="both set"):
        keys_from_environment(both)


def test_the_variable_may_hold_several_lines():
    keys = keys_from_environment({"LOCKSTITCH_STORE_KEY": f"{TEXT}\n{new_key()}"})
    assert keys is not None
    assert len(keys) == 2
