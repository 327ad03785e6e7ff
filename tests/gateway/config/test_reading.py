"""The file: what may be in it, and how each mistake is told."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstitch.gateway.config import (
    Config,
    ConfigError,
    Key,
    Limits,
    LogSettings,
    MetricsSettings,
    RealtimeSettings,
    Secret,
    Server,
    Upstream,
)
from tests.gateway.config.written import HASH, OTHER_HASH, SECRET, UPSTREAM, read, refused


def test_everything_that_can_be_said(tmp_path):
    (tmp_path / "vllm.key").write_text("local-key\n")
    text = f"""\
store = "postgresql://anna@db/journal"
unknown_chains = "pass"

[server]
host = "0.0.0.0"
port = 443
tls_certificate = "certificate.pem"
tls_key = "/etc/key.pem"
workers = 4
drain_seconds = 5

[limits]
body_bytes = 2048
header_bytes = 4096
request_seconds = 1
idle_seconds = 2
silence_seconds = 3.5
connections = 4
events_kept_bytes = 0
unread_bytes = 6000
unread_seconds = 7
unattended_seconds = 8

[[upstreams]]
name = "openai"
url = "https://api.openai.com/v1/"
key_env = "OPENAI_API_KEY"

[[upstreams]]
name = "vllm"
url = "http://gpu:8000"
key_file = "vllm.key"
headers = {{ X-Team = "seams" }}
models = ["qwen-*"]
state = "gateway"
transport = "http"
guard = "mend"
apis = ["chat"]
retries = 0
connect_seconds = 1
silence_seconds = 9

[[keys]]
name = "anna"
hash = "{HASH}"
expires = 2027-01-31
requests_per_minute = 60
concurrent = 4
upstreams = ["vllm"]
guard = "refuse"

[realtime]
deletes_in_flight = "carry-out"
held_seconds = 3

[log]
level = "debug"
format = "text"

[metrics]
open = true
"""
    assert read(tmp_path, text) == Config(
        store="postgresql://anna@db/journal",
        unknown_chains="pass",
        server=Server(
            host="0.0.0.0",
            port=443,
            tls_certificate=str(tmp_path / "certificate.pem"),
            tls_key="/etc/key.pem",
            workers=4,
            drain_seconds=5,
        ),
        limits=Limits(
            body_bytes=2048,
            header_bytes=4096,
            request_seconds=1,
            idle_seconds=2,
            silence_seconds=3.5,
            connections=4,
            events_kept_bytes=0,
            unread_bytes=6000,
            unread_seconds=7,
            unattended_seconds=8,
        ),
        upstreams=(
            Upstream(
                name="openai",
                url="https://api.openai.com/v1",
                key=Secret(SECRET),
                apis=("responses", "chat"),
            ),
            Upstream(
                name="vllm",
                url="http://gpu:8000",
                key=Secret("local-key"),
                key_file=str(tmp_path / "vllm.key"),
                headers=(("X-Team", "seams"),),
                models=("qwen-*",),
                state="gateway",
                transport="http",
                guard="mend",
                apis=("chat",),
                retries=0,
                connect_seconds=1,
                silence_seconds=9,
            ),
        ),
        keys=(
            Key(
                name="anna",
                hash=HASH,
                expires=1801353600.0,
                requests_per_minute=60,
                concurrent=4,
                upstreams=("vllm",),
                guard="refuse",
            ),
        ),
        realtime=RealtimeSettings(deletes_in_flight="carry-out", held_seconds=3),
        log=LogSettings(level="debug", format="text"),
        metrics=MetricsSettings(open=True),
        file=str(tmp_path / "gateway.toml"),
    )


def test_all_problems_are_told_at_once_each_with_its_line(tmp_path):
    text = f"""\
stroe = "memory:"
[server]
port = 99999
tls_key = "key.pem"

[limits]
body_bytes = "10 MB"
request_seconds = 0

[[upstreams]]
name = "openai"
url = "api.openai.com"
gaurd = "mend"
guard = "mned"
key = "{SECRET}"
apis = ["chat", "assistants"]

[[upstreams]]
name = "openai"

[[keys]]
name = "an na"
hash = "{SECRET}"
expires = "2027-01-31"
upstreams = ["opnai"]
"""
    assert (
        refused(tmp_path, text)
        == """\
gateway.toml:1: stroe: is not known. Did you mean store? Known are: guard, keys, limits, log, \
metrics, realtime, server, store, unknown_chains, upstreams.
gateway.toml:3: server.port: must be from 0 to 65535, not 99999.
gateway.toml:4: server.tls_key: needs tls_certificate beside it: TLS takes a certificate and its \
key.
gateway.toml:7: limits.body_bytes: must be a whole number from 1024 to 1099511627776, not this text.
gateway.toml:8: limits.request_seconds: must be at least 0.1 seconds, not 0.
gateway.toml:12: upstreams[0].url: must begin with http:// or https:// and a host, such as \
https://api.openai.com/v1
gateway.toml:13: upstreams[0].gaurd: is not known. Did you mean guard? Known are: apis, \
connect_seconds, guard, headers, key_env, key_file, models, name, retries, silence_seconds, state, \
transport, url.
gateway.toml:14: upstreams[0].guard: must be "mend", "report", "refuse" or "off", not this text. \
Did you mean 'mend'?
gateway.toml:15: upstreams[0].key: a key does not belong in this file: such files are copied, \
backed up and shared. Put it into an environment variable and name that (key_env), or into a file \
of its own (key_file).
gateway.toml:16: upstreams[0].apis[1]: must be "responses", "chat" or "messages", not this text.
gateway.toml:18: upstreams[1]: url is missing. Such as: url = "https://api.openai.com/v1"
gateway.toml:19: upstreams[1].name: is that of line 11. Each must have its own.
gateway.toml:22: keys[0].name: must be 1 to 64 letters, digits, dots, hyphens or underscores, and \
begin with a letter or a digit.
gateway.toml:23: keys[0].hash: must be "sha256:" and 64 hexadecimal digits, as lockstitch key NAME \
prints it. It is the hash of a key, not the key.
gateway.toml:24: keys[0].expires: must be a date, without quotes: 2027-01-31, or \
2027-01-31T12:00:00Z.
gateway.toml:25: keys[0].upstreams[0]: names an upstream that is not in this file. There are: \
openai."""
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("store = 1", "1: store: must be the URL of a store, in quotes, not 1."),
        ('store = ""', "1: store: must be the URL of a store, in quotes, not an empty text."),
        ("server = 1", "1: server: must be a table: [server] in a line of its own, not 1."),
        ("[upstreams]", "1: upstreams: must be tables: [[upstreams]] in a line of its own"),
        ("upstreams = [1]", "1: upstreams: must be tables: [[upstreams]] in a line of its own"),
        (
            '[realtime]\ndeletes_in_flight = "hold"',
            '2: realtime.deletes_in_flight: must be "drop" or "carry-out", not this text.',
        ),
        ("[metrics]\nopen = 1", "2: metrics.open: must be true or false, not 1."),
        ("[server]\nport = true", "2: server.port: must be a whole number"),
        ("[limits]\nrequest_seconds = nan", "2: limits.request_seconds: must be at least"),
        ("[limits]\nrequest_seconds = inf", "2: limits.request_seconds: must be at least"),
        ("[log]\nlevel = 2", '2: log.level: must be "debug", "info", "warning" or "error", not 2.'),
        ("[[keys]]\nname = 'a'", "1: keys[0]: hash is missing. Make a key"),
        ("[[keys]]\nkey = 'x'", "2: keys[0].key: a key does not belong in this file, only its"),
        (
            f"[[keys]]\nname = 'a'\nhash = '{HASH}'\n[[keys]]\nname = 'b'\nhash = '{HASH}'",
            "6: keys[1].hash: is that of line 3.",
        ),
        (f"{UPSTREAM}models = []", "5: upstreams[0].models: is empty. Name models"),
        (f"{UPSTREAM}models = 'gpt'", "5: upstreams[0].models: must be a list of models"),
        (f"{UPSTREAM}headers = 1", "5: upstreams[0].headers: must be a table"),
        (
            f"{UPSTREAM}[upstreams.headers]\nauthorization = 'Bearer {SECRET}'",
            "6: upstreams[0].headers.authorization: is for keys, and a key does not belong",
        ),
        (
            f"{UPSTREAM}headers = {{ Host = 'x' }}",
            "5: upstreams[0].headers.Host: belongs to the connection",
        ),
        (
            f'{UPSTREAM}headers = {{ x = "a\\r\\nb" }}',
            "5: upstreams[0].headers.x: must be a text of printable ASCII",
        ),
        (
            f"{UPSTREAM}headers = {{ 'a:b' = 'x' }}",
            "5: upstreams[0].headers.a:b: is no name of a header.",
        ),
        (
            UPSTREAM.replace("OPENAI_API_KEY", SECRET),
            "4: upstreams[0].key_env: must be the name of an environment variable",
        ),
        (
            UPSTREAM.replace("OPENAI_API_KEY", "NOT_THERE"),
            "4: upstreams[0].key_env: NOT_THERE is not set, or is empty. Set it where the gateway"
            " is started: export NOT_THERE=…",
        ),
        (
            UPSTREAM.replace("OPENAI_API_KEY", "aB3dE5fG7hI9"),
            "4: upstreams[0].key_env: the environment variable that it names is not set",
        ),
        (f"{UPSTREAM}key_file = 'x'", "5: upstreams[0].key_file: is one too many"),
        (
            UPSTREAM.replace("key_env = ", "key_file = "),
            "4: upstreams[0].key_file: the file that it names, beside this one, cannot be read: No"
            " such file",
        ),
        (
            UPSTREAM.replace('key_env = "OPENAI_API_KEY"', 'key_file = "/nowhere/openai"'),
            "4: upstreams[0].key_file: /nowhere/openai cannot be read: No such file or directory."
            " Put the key into it",
        ),
        (
            UPSTREAM.replace("https://", f"https://anna:{SECRET}@"),
            "3: upstreams[0].url: must not have a user or a password in it",
        ),
        (UPSTREAM.replace("/v1", "/v1?a=b"), "3: upstreams[0].url: must not have a query"),
        (UPSTREAM.replace("/v1", ":port"), "3: upstreams[0].url: is no address."),
        (UPSTREAM.replace("/v1", "/v1 "), "3: upstreams[0].url: must not have blanks"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_is_right(tmp_path, text, said):
    assert f"gateway.toml:{said}" in refused(tmp_path, text)


@pytest.mark.parametrize("content", ["", "a b", "one\ntwo", "ключ"])
def test_a_key_file_holds_one_key(tmp_path, content):
    (tmp_path / "OPENAI_API_KEY").write_text(content)
    said = refused(tmp_path, UPSTREAM.replace("key_env = ", "key_file = "))
    assert "upstreams[0].key_file: the file that it names, beside this one," in said


def test_unknown_chains_are_refused_where_there_are_keys(tmp_path):
    keys = f"[[keys]]\nname = 'a'\nhash = '{OTHER_HASH}'\n"
    assert read(tmp_path, UPSTREAM).unknown_chains == "pass"
    assert read(tmp_path, UPSTREAM + keys).unknown_chains == "refuse"


PLACES = [
    "store = {}",
    "unknown_chains = {}",
    "{} = 1",
    "[server]\nhost = {}\nworkers = {}",
    "[server]\ntls_certificate = {}",
    "[[upstreams]]\nname = {}",
    "[[upstreams]]\nname = 'a'\nurl = {}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nkey_env = {}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nkey_file = {}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nkey = {}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nmodels = {}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nmodels = [{}, 1]",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\napis = [{}]",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nheaders = {{ x-api-key = {} }}",
    "[[upstreams]]\nname = 'a'\nurl = 'http://h'\nheaders = {{ x = {} }}\nretries = {}",
    "[[keys]]\nname = {}",
    "[[keys]]\nhash = {}",
    "[[keys]]\nexpires = {}",
    "[[keys]]\nkey = {}",
    "[[keys]]\nupstreams = [{}]",
    "[log]\nlevel = {}",
    "x = {} {}",
    "[{}",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(PLACES),
    secret=st.from_regex(r"(sk-|lsk_|[a-z]{4})[A-Za-z0-9_-]{20,40}", fullmatch=True),
)
def test_a_secret_in_the_wrong_place_is_in_no_message(tmp_path, place, secret):
    text = place.replace("{}", f'"{secret}"').replace("{{", "{").replace("}}", "}")
    try:
        config = read(tmp_path, text, {"HOME": "/h"}, port=0)
        shown = f"{config} {config.upstreams} {config.keys}"
    except ConfigError as error:
        shown = f"{error} {error!r}"
    # Names and hosts are shown: there, only what looks like a secret is hidden.
    is_shown = any(one in place for one in ("name = {}", "host = {}", "{} = 1"))
    assert secret not in shown or (is_shown and not secret.startswith(("sk-", "lsk_")))
