"""Configurations written to files, and read."""

from __future__ import annotations

import pytest

from lockstitch.gateway.config import ConfigError, Options, load

HASH = "sha256:" + "0123456789abcdef" * 4
OTHER_HASH = "sha256:" + "fedcba9876543210" * 4
SECRET = "sk-proj-verysecretverysecret"
ENVIRONMENT = {"HOME": "/home/anna", "OPENAI_API_KEY": SECRET}

UPSTREAM = """\
[[upstreams]]
name = "openai"
url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"
"""


def read(tmp_path, text, environment=ENVIRONMENT, **options):
    file = tmp_path / "gateway.toml"
    file.write_text(text)
    return load(Options(config=str(file), **options), environment)


def refused(tmp_path, text, environment=ENVIRONMENT, **options):
    """The messages, with the file named as people do."""
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text, environment, **options)
    said = str(caught.value)
    assert SECRET not in said
    assert SECRET not in repr(caught.value)
    return said.replace(str(tmp_path / "gateway.toml"), "gateway.toml")
