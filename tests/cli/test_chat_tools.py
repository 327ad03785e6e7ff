"""What the model of `lockstitch chat` can do with files, and what it cannot."""

from __future__ import annotations

import os

import pytest

from lockstitch.cli import chat_tools
from lockstitch.cli.chat_tools import Refused, Toolbox


@pytest.fixture
def tools(tmp_path):
    """A working folder with ways out of it."""
    folder, outside = tmp_path / "work", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (folder / "file_link").symlink_to(outside / "secret.txt")
    (folder / "folder_link").symlink_to(outside)
    (folder / "dangling_link").symlink_to(outside / "new.txt")
    (folder / "circle").symlink_to(folder / "circle")
    return Toolbox(folder)


WAYS_OUT = [
    "../outside/secret.txt",
    "file_link",
    "folder_link/secret.txt",
    "folder_link/new.txt",
    "dangling_link",
    "sub/../../outside/secret.txt",
    "/etc/hostname",
    "..",
    "folder_link",
    "a\0b",
]


@pytest.mark.parametrize("path", WAYS_OUT)
def test_no_path_leads_out_of_the_folder(tools, tmp_path, path):
    for use in (tools.read_file, tools.list_folder, lambda path: tools.write_file(path, "x")):
        with pytest.raises(Refused, match=r"is outside the working folder|leads nowhere"):
            use(path)
    assert [each.name for each in (tmp_path / "outside").iterdir()] == ["secret.txt"]
    assert (tmp_path / "outside" / "secret.txt").read_text() == "secret"


def test_an_absolute_path_into_the_folder_is_a_path_into_the_folder(tools):
    tools.write_file(str(tools.folder / "sub" / "a.txt"), "one\r\ntwo\n")
    assert (tools.folder / "sub" / "a.txt").read_bytes() == b"one\r\ntwo\n"
    assert tools.list_folder("sub") == "a.txt"


def test_what_is_no_file_or_too_large_or_not_text_is_told(tools, monkeypatch):
    monkeypatch.setattr(chat_tools, "LARGEST_FILE_BYTES", 10)
    os.mkfifo(tools.folder / "pipe")
    (tools.folder / "large").write_text("x" * 11)
    (tools.folder / "picture").write_bytes(b"\xff\xd8")
    for path, why in [
        ("pipe", "There is no file"),
        (".", "There is no file"),
        ("missing", "There is no file"),
        ("circle", "There is no file|leads nowhere"),
        ("large", "larger than 10 bytes"),
        ("picture", "is not text"),
    ]:
        with pytest.raises(Refused, match=why):
            tools.read_file(path)
    with pytest.raises(Refused, match="There is no folder"):
        tools.list_folder("large")
    with pytest.raises(Refused, match="is a folder"):
        tools.write_file(".", "x")


def test_a_long_folder_is_listed_in_part(tools, monkeypatch):
    monkeypatch.setattr(chat_tools, "MOST_NAMES", 2)
    for name in ("a", "b", "c"):
        (tools.folder / "many" / name).mkdir(parents=True)
    assert tools.list_folder("many") == "a/\nb/\n… and 1 more"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tools, monkeypatch):
    tools.write_file("sub/a.txt", "old")
    (tools.folder / "sub" / "a.txt").chmod(0o640)
    with pytest.raises(UnicodeEncodeError):
        tools.write_file("sub/a.txt", "half a pair: \ud800")
    assert tools.list_folder("sub") == "a.txt"
    assert tools.read_file("sub/a.txt") == "old"
    tools.write_file("sub/a.txt", "new")
    assert (tools.folder / "sub" / "a.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "arguments", "effect", "asks"),
    [
        ("read_file", {"path": "a"}, "read", False),
        ("list_folder", {}, "read", False),
        ("write_file", {"path": "a", "content": ""}, "idempotent", True),
        ("run_shell", {"command": "ls"}, "once", True),
    ],
)
def test_a_tool_declares_what_it_does_to_the_world(tools, name, arguments, effect, asks):
    (made,) = [one for one in tools.tools if one.name == name]
    assert (made.effect.value, made.asks_first(arguments)) == (effect, asks)
