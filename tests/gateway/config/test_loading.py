"""File, options and environment together; and who may reach the gateway."""

from __future__ import annotations

import socket

import pytest

from lockstitch.gateway.config import ConfigError, Options, Secret, Upstream, load
from lockstitch.gateway.config.loading import default_store
from tests.gateway.config.written import ENVIRONMENT, HASH, SECRET, UPSTREAM, read, refused

HOME = {"HOME": "/home/anna"}
KEY = f"[[keys]]\nname = 'a'\nhash = '{HASH}'\n"


def test_with_nothing_at_all_an_emulator_is_the_upstream():
    config = load(Options(), HOME)
    assert config.emulator
    assert config.upstreams == ()
    assert config.server.url == "http://127.0.0.1:8770"
    assert config.store == default_store(HOME)
    there = config.with_emulator("http://127.0.0.1:9/v1")
    assert there.upstreams == (
        Upstream(name="emulator", url="http://127.0.0.1:9/v1", key=Secret("any")),
    )


def test_the_upstream_is_that_of_the_environment():
    config = load(Options(), HOME | {"OPENAI_API_KEY": SECRET})
    assert not config.emulator
    assert config.upstreams == (
        Upstream(
            name="default",
            url="https://api.openai.com/v1",
            key=Secret(SECRET),
            apis=("responses", "chat"),
        ),
    )
    config = load(Options(), HOME | {"OPENAI_BASE_URL": "http://gpu:8000/v1/"})
    both = ("responses", "chat")
    assert config.upstreams == (Upstream(name="default", url="http://gpu:8000/v1", apis=both),)
    config = load(Options(upstream="http://gpu:8000/v1"), HOME | {"OPENAI_BASE_URL": "http://x/v1"})
    assert config.upstreams == (Upstream(name="default", url="http://gpu:8000/v1"),)


ANTHROPIC = Upstream(
    name="anthropic",
    url="https://api.anthropic.com/v1",
    key=Secret(SECRET),
    apis=("messages",),
)


def test_anthropic_is_an_upstream_if_its_key_is_set():
    config = load(Options(), HOME | {"ANTHROPIC_API_KEY": SECRET})
    assert not config.emulator
    assert config.upstreams == (ANTHROPIC,)
    config = load(Options(), HOME | {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": "sk-other"})
    assert [one.apis for one in config.upstreams] == [("responses", "chat"), ("messages",)]
    config = load(Options(upstream="http://gpu:8000/v1"), HOME | {"ANTHROPIC_API_KEY": SECRET})
    assert [one.apis for one in config.upstreams] == [("responses", "chat"), ("messages",)]


@pytest.mark.parametrize("url", ["http://gpu:9000", "http://gpu:9000/", "http://gpu:9000/v1"])
def test_anthropics_base_url_is_that_of_its_clients(url):
    variables = {"ANTHROPIC_API_KEY": SECRET, "ANTHROPIC_BASE_URL": url}
    (upstream,) = load(Options(), HOME | variables).upstreams
    assert upstream.url == "http://gpu:9000/v1"


def test_upstreams_of_the_file_are_all_there_are(tmp_path):
    text = '[[upstreams]]\nname = "a"\nurl = "http://h/v1"\n'
    (file := tmp_path / "gateway.toml").write_text(text)
    config = load(Options(config=str(file)), HOME | {"ANTHROPIC_API_KEY": SECRET})
    assert [one.name for one in config.upstreams] == ["a"]


def test_a_known_provider_has_only_its_own_apis_unless_the_file_says_otherwise(tmp_path):
    text = (
        '[[upstreams]]\nname = "a"\nurl = "https://api.openai.com/v1"\n'
        '[[upstreams]]\nname = "b"\nurl = "https://api.anthropic.com/v1"\n'
        '[[upstreams]]\nname = "c"\nurl = "https://api.openai.com/v1"\napis = ["messages"]\n'
        '[[upstreams]]\nname = "d"\nurl = "http://gpu/v1"\n'
    )
    (file := tmp_path / "gateway.toml").write_text(text)
    config = load(Options(config=str(file)), HOME)
    assert [one.apis for one in config.upstreams] == [
        ("responses", "chat"),
        ("messages",),
        ("messages",),
        ("responses", "chat", "messages"),
    ]


@pytest.mark.parametrize("guard", ["mend", "report", "refuse", "off"])
def test_the_guard_of_the_command_line_is_that_of_every_upstream_and_key(tmp_path, guard):
    assert load(Options(), HOME | {"OPENAI_API_KEY": SECRET}).upstreams[0].guard == "mend"
    text = (
        'guard = "refuse"\n'
        '[[upstreams]]\nname = "a"\nurl = "http://h/v1"\n'
        '[[upstreams]]\nname = "b"\nurl = "http://h/v1"\nguard = "off"\n'
        f'[[keys]]\nname = "anna"\nhash = "sha256:{"0" * 64}"\nguard = "report"\n'
    )
    (file := tmp_path / "gateway.toml").write_text(text)
    config = load(Options(config=str(file)), HOME)
    assert [one.guard for one in config.upstreams] == ["refuse", "off"]
    assert config.keys[0].guard == "report"
    config = load(Options(config=str(file), guard=guard), HOME)
    assert [one.guard for one in config.upstreams] == [guard, guard]
    assert config.keys[0].guard is None
    assert load(Options(guard=guard), HOME).with_emulator("http://h/v1").upstreams[0].guard == guard


def test_options_win(tmp_path):
    text = 'store = "memory:"\n[server]\nhost = "::1"\nport = 1\nworkers = 3\n'
    config = read(
        tmp_path,
        text,
        host="127.0.0.2",
        port=2,
        workers=1,
        store="sqlite:///x",
        upstream="http://h",
    )
    assert (config.server.host, config.server.port, config.server.workers) == ("127.0.0.2", 2, 1)
    assert config.store == "sqlite:///x"
    assert [one.url for one in config.upstreams] == ["http://h"]


def test_upstreams_of_the_file_and_an_option_are_one_too_many(tmp_path):
    assert "--upstream and upstreams in the file" in refused(
        tmp_path, UPSTREAM, upstream="http://h"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.x"])
def test_it_does_not_listen_elsewhere_without_keys(tmp_path, host, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: ["an address"])
    said = refused(tmp_path, f"{UPSTREAM}[server]\nhost = '{host}'\n")
    assert said.startswith(
        f"gateway.toml:6: server.host: {host} can be reached from other machines"
    )
    assert "lockstitch key NAME" in said
    assert read(tmp_path, f"{KEY}{UPSTREAM}[server]\nhost = '{host}'\n").server.host == host
    with pytest.raises(ConfigError, match="can be reached from other machines"):
        load(Options(host=host), ENVIRONMENT)


@pytest.mark.parametrize("host", ["nosuchhost.invalid", "no..host"])
def test_a_host_that_is_not_known_is_not_said_to_be_reached_from_other_machines(
    tmp_path, host, monkeypatch
):
    def unknown(host, *_, **__):
        host.encode("idna")  # as the real one does before it asks anybody
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = refused(tmp_path, f"{UPSTREAM}[server]\nhost = '{host}'\n")
    assert said.startswith(f"gateway.toml:6: server.host: {host} is not known here")
    assert "Choose another host: 127.0.0.1 for this machine alone" in said
    assert "other machines" not in said


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_it_listens_on_loopback_without_keys(host):
    assert load(Options(host=host), ENVIRONMENT).server.host == host


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://127.0.0.1:8770/v1", "127.0.0.1"),
        ("http://localhost:8770/v1", "127.0.0.1"),
        ("http://[::1]:8770", "localhost"),
    ],
)
def test_a_gateway_is_not_its_own_upstream(url, host):
    with pytest.raises(ConfigError, match="is this gateway itself"):
        load(Options(host=host), HOME | {"OPENAI_BASE_URL": url})
    assert load(Options(host=host, port=1), HOME | {"OPENAI_BASE_URL": url})


def test_workers_do_not_share_memory(tmp_path):
    said = refused(tmp_path, f'store = "memory:"\n{UPSTREAM}', workers=2)
    assert said == (
        "gateway.toml:1: store: is memory, which workers cannot share. Name a file or a database."
    )


@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        (Options(upstream="gpu"), HOME, "--upstream must begin with http:// or https://"),
        (Options(), HOME | {"OPENAI_BASE_URL": "x"}, "OPENAI_BASE_URL must begin with http://"),
        (Options(), HOME | {"OPENAI_API_KEY": f"{SECRET} x"}, "OPENAI_API_KEY is not a key"),
        (Options(workers=0), HOME, "--workers must be from 1 to 256."),
        (Options(upstream=f"http://a:{SECRET}@h"), HOME, "must not have a user or a password"),
    ],
)
def test_a_mistake_in_options_or_environment(options, environment, said):
    with pytest.raises(ConfigError) as caught:
        load(options, environment)
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "gateway.toml:1: is not TOML: invalid value."),
        ("a = 1\nb = [\n", "gateway.toml:3: is not TOML: "),
        ("a = 1\na = 2", "gateway.toml:2: is not TOML: cannot overwrite a value."),
        ("a = " + "[" * 100_000, "is not to be read: it is nested too deeply."),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(tmp_path, text, said):
    assert said in refused(tmp_path, text)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read: No such file"):
        load(Options(config=str(tmp_path / "nowhere.toml")), HOME)
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(Options(config=str(tmp_path)), HOME)
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe4'")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load(Options(config=str(tmp_path / "latin.toml")), HOME)
