"""What the tests of scripts share."""

import pytest

from lockstitch.emulator.errors import BadScript
from lockstitch.emulator.model.replies import Asked
from lockstitch.emulator.model.script import Script, load


def asked(user="hello", **more):
    return Asked(model="gpt-5.5", user=user, **more)


def said(reply):
    return None if reply is None else reply.drafts[0]["content"][0]["text"]


def loaded(folder, source, name="script.yaml"):
    path = folder / name
    path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return load(path)


def told(folder, source, name="script.yaml"):
    """What is told of a bad script, without its name."""
    with pytest.raises(BadScript) as caught:
        loaded(folder, source, name)
    return str(caught.value).partition(f"{name}: ")[2]


def is_script_or_bad(make):
    """Nothing but BadScript may be raised, and it must say something."""
    try:
        return isinstance(make(), Script)
    except BadScript as error:
        return bool(str(error))
