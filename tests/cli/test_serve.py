"""`lockstitch serve`, as a process: what it prints, what it takes as its upstream, how it ends; and
`lockstitch key`."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import anthropic
import pytest

from lockstitch.cli.serving import _moment, _Source
from lockstitch.gateway.access.keys import Keyring, hash_of, new_key
from lockstitch.gateway.config import ConfigError, Options, load
from tests.cli.commands import lockstitch

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 20
SECRET = "sk-proj-verysecretverysecret"

PROGRAM = """
import sys
from lockstitch.cli.app import run
sys.exit(run(["serve", *sys.argv[1:]]))
"""


def environment(tmp_path, **more):
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "ANTHROPIC_"))
    }
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
    return plain | {"PYTHONPATH": paths, "XDG_DATA_HOME": str(tmp_path / "data")} | more


def serve(tmp_path, *arguments, **variables):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path, **variables),
        start_new_session=True,  # a service: no terminal
    )


@contextmanager
def serving(tmp_path, *arguments, **variables):
    """The process, and what it said when it was ready."""
    process = serve(tmp_path, "--port", 0, *arguments, **variables)
    try:
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, said + process.stderr.read()
            said += line
        yield process, said
    finally:
        process.kill()
        process.communicate()


def stopped(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


@pytest.mark.parametrize("workers", [1, 2])
def test_with_nothing_at_all_it_serves_on_an_emulator(tmp_path, workers):
    with serving(tmp_path, "--workers", workers) as (process, said):
        base = re.search(r"export OPENAI_BASE_URL=(http://127.0.0.1:(\d+)/v1)\n", said)[1]
        assert f'    base_url = "{base}"\n    wire_api = "responses"\n' in said
        assert f"  Store: {tmp_path}/data/lockstitch/gateway.db\n" in said
        assert re.search(r"Upstream: a local emulator at http://[^ ]+/v1,", said)
        with urllib.request.urlopen(f"{base}/models", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        code, _, err = stopped(process)
    assert code == 0
    assert "Traceback" not in err
    assert (tmp_path / "data/lockstitch/gateway.db").exists()
    assert (tmp_path / "data/lockstitch").stat().st_mode & 0o077 == 0


def test_it_says_what_to_put_into_a_client(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text(
        f"""\
store = "sqlite:///{tmp_path}/journal.db"
[[upstreams]]
name = "openai"
url = "https://api.openai.com/v1"
key_env = "OPENAI_API_KEY"
[[keys]]
name = "anna"
hash = "sha256:{"0" * 64}"
"""
    )
    arguments = ("--config", file, "--host", "0.0.0.0")
    with serving(tmp_path, *arguments, OPENAI_API_KEY=SECRET) as (process, said):
        port = re.search(r":(\d+)$", said.splitlines()[0])[1]
        assert (
            said
            == f"""\
Lockstitch is running at http://127.0.0.1:{port}
  Upstream openai: https://api.openai.com/v1 (Responses, Chat Completions)
  Guard: mend (broken tool-call histories are repaired before they are sent)
  Store: {tmp_path}/journal.db

OpenAI clients:
    export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1
    export OPENAI_API_KEY=…    # a key that `lockstitch key NAME` printed
Codex CLI (it does not read OPENAI_BASE_URL): at the top of ~/.codex/config.toml:
    model_provider = "lockstitch"
  and at the end of the same file:
    [model_providers.lockstitch]
    name = "Lockstitch"
    base_url = "http://127.0.0.1:{port}/v1"
    wire_api = "responses"
    env_key = "OPENAI_API_KEY"

Stop with Ctrl-C.
"""
        )
        time.sleep(0.1)
        code, out, err = stopped(process)
    assert code == 0
    assert "Warning: 0.0.0.0 can be reached from other machines, and without TLS" in err
    assert SECRET not in said + out + err


def test_anthropics_client_works_with_what_it_says(tmp_path):
    with serving(tmp_path) as (_, said):
        base = re.search(r"export ANTHROPIC_BASE_URL=(\S+)", said)[1]
        with anthropic.Anthropic(base_url=base, api_key="any", max_retries=0) as client:
            told = client.messages.create(
                model="claude-sonnet-5",
                max_tokens=100,
                messages=[{"role": "user", "content": "hello"}],
            )
    assert told.content[0].text == "You said: hello"


CALL = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
BROKEN = {
    "/v1/responses": {
        "model": "gpt-5.5",
        "input": [
            {"role": "user", "content": "Book it."},
            {"type": "function_call", "call_id": "call_1", "name": "book", "arguments": "{}"},
            {"role": "user", "content": "And?"},
        ],
    },
    "/v1/chat/completions": {
        "model": "gpt-5.5",
        "messages": [
            {"role": "user", "content": "Book it."},
            {"role": "assistant", "tool_calls": [CALL]},
            {"role": "user", "content": "And?"},
        ],
    },
    "/v1/messages": {
        "model": "claude-sonnet-5",
        "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Book it."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "call_1", "name": "book", "input": {}}],
            },
            {"role": "user", "content": "And?"},
        ],
    },
}


def posted(base, path, body):
    """The status, headers and body of an answer."""
    asking = urllib.request.Request(
        base.removesuffix("/v1") + path,
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "anthropic-version": "2023-06-01"},
    )
    try:
        with urllib.request.urlopen(asking, timeout=PATIENCE_SECONDS) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, dict(refused.headers), refused.read().decode()


@pytest.mark.parametrize("stream", [False, True])
def test_broken_histories_are_repaired_by_default_and_each_repair_is_told(tmp_path, stream):
    with serving(tmp_path) as (process, said):
        assert "  Guard: mend (broken tool-call histories are repaired before" in said
        base = re.search(r"export OPENAI_BASE_URL=(\S+)", said)[1]
        for path, body in BROKEN.items():
            status, headers, text = posted(base, path, body | {"stream": stream})
            assert status == 200, text
            assert headers["x-lockstitch-repaired"] == "LS001 call_1"
            valid = {key: value[:1] if key in BODY_LISTS else value for key, value in body.items()}
            status, headers, text = posted(base, path, valid)
            assert status == 200, text
            assert "x-lockstitch-repaired" not in headers
        with urllib.request.urlopen(base.removesuffix("/v1") + "/metrics") as metrics:
            assert 'lockstitch_repairs_total{rule="LS001"} 3.0' in metrics.read().decode()
        _, _, err = stopped(process)
    repaired = [line for line in map(json.loads, err.splitlines()) if line["event"] == "repaired"]
    told = [(line["level"], line["rule"], line["call"], line["model"]) for line in repaired]
    models = [body["model"] for body in BROKEN.values()]
    assert told == [("warning", "LS001", "call_1", model) for model in models]
    assert "Book it" not in err


BODY_LISTS = ("input", "messages")


@pytest.mark.parametrize(
    ("guard", "status"), [("mend", 200), ("report", 400), ("refuse", 400), ("off", 400)]
)
def test_the_guard_can_be_chosen_on_the_command_line(tmp_path, guard, status):
    with serving(tmp_path, "--guard", guard) as (_, said):
        assert f"  Guard: {guard} (" in said
        base = re.search(r"export OPENAI_BASE_URL=(\S+)", said)[1]
        for path, body in BROKEN.items():
            assert posted(base, path, body)[0] == status, path


@pytest.mark.parametrize(
    "variables",
    [{"OPENAI_API_KEY": SECRET}, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}],
    ids=["OpenAI", "a server of one's own"],
)
def test_an_api_that_no_upstream_has_is_told_and_how_to_add_it(tmp_path, variables):
    with serving(tmp_path, **variables) as (_, said):
        assert "ANTHROPIC" not in said
        assert "(Responses, Chat Completions)" in said
        base = re.search(r"export OPENAI_BASE_URL=(\S+)", said)[1]
        for path in ("", "/count_tokens", "/batches"):
            status, _, text = posted(base, f"/v1/messages{path}", BROKEN["/v1/messages"])
            assert status == 404
            error = json.loads(text)
            assert (error["type"], error["error"]["type"]) == ("error", "not_found_error")
            assert error["error"]["message"] == NO_ANTHROPIC


NO_ANTHROPIC = (
    "No upstream of this gateway has the Anthropic Messages API. To add one, put an [[upstreams]]"
    ' table into its configuration file (lockstitch serve --config FILE): name = "anthropic", url'
    ' = "https://api.anthropic.com/v1", key_env = "ANTHROPIC_API_KEY". If neither a configuration'
    " file nor --upstream names an upstream, it is enough to set ANTHROPIC_API_KEY before you"
    " start `lockstitch serve`."
)


def test_an_upstream_of_the_command_line_may_have_every_api(tmp_path):
    with serving(tmp_path, "--upstream", "http://127.0.0.1:9/v1") as (_, said):
        assert "(Responses, Chat Completions, Anthropic Messages)" in said
        assert "export ANTHROPIC_BASE_URL=" in said


def test_the_advice_for_an_api_that_is_missing_works_with_a_configuration_file(tmp_path):
    file = tmp_path / "gateway.toml"
    anthropic = '[[upstreams]]\nname = "anthropic"\nurl = "https://api.anthropic.com/v1"\n'
    openai = '[[upstreams]]\nname = "openai"\nurl = "https://api.openai.com/v1"\n'
    openai += 'key_env = "OPENAI_API_KEY"\n'
    file.write_text(anthropic)
    keys = {"OPENAI_API_KEY": SECRET}
    with serving(tmp_path, "--config", file, **keys) as (_, said):
        base = re.search(r"export ANTHROPIC_BASE_URL=(\S+)", said)[1]
        for path, api in (("/v1/responses", "Responses"), ("/v1/chat/completions", "Chat")):
            status, _, text = posted(base, path, BROKEN[path])
            assert (status, f"has the {api}" in text) == (404, True)
            message = json.loads(text)["error"]["message"]
            for line in openai.splitlines():
                assert line in message
    file.write_text(anthropic + openai)
    with serving(tmp_path, "--config", file, **keys) as (_, said):
        assert "Upstream openai: https://api.openai.com/v1 (Responses, Chat Completions)" in said


def test_with_a_key_of_anthropic_alone_only_its_api_is_offered(tmp_path):
    with serving(tmp_path, ANTHROPIC_API_KEY=SECRET) as (_, said):
        assert "Upstream anthropic: https://api.anthropic.com/v1 (Anthropic Messages)" in said
        assert "OPENAI_BASE_URL" not in said
        base = re.search(r"export ANTHROPIC_BASE_URL=(\S+)", said)[1]
        status, _, text = posted(base, "/v1/responses", BROKEN["/v1/responses"])
    assert status == 404
    assert "to set OPENAI_API_KEY before you start" in json.loads(text)["error"]["message"]


@pytest.mark.parametrize("workers", [1, 2])
def test_closing_the_terminal_ends_it(tmp_path, workers):
    """SIGHUP comes from the terminal here: its other side is closed."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *command],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(tmp_path),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        while "Stop with Ctrl-C" not in (line := process.stdout.readline()):
            assert line, "it ended"
        os.close(ours)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


def test_it_outlives_its_terminal_if_hangups_are_ignored_as_under_nohup(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", IGNORE_HANGUPS + TAKE_TERMINAL, *command],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(tmp_path),
        start_new_session=True,
    )
    os.close(theirs)
    try:
        said = ""
        while "Stop with Ctrl-C" not in said:
            said += (line := process.stdout.readline())
            assert line, "it ended"
        os.close(ours)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        base = re.search(r"export OPENAI_BASE_URL=(\S+)", said)[1]
        with urllib.request.urlopen(f"{base}/models", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()


IGNORE_HANGUPS = """
import signal
signal.signal(signal.SIGHUP, signal.SIG_IGN)
"""
TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_nothing_is_said_of_anthropic_where_no_upstream_speaks_like_it(tmp_path):
    file = tmp_path / "gateway.toml"
    file.write_text('[[upstreams]]\nname = "a"\nurl = "http://127.0.0.1:9"\napis = ["responses"]\n')
    with serving(tmp_path, "--config", file) as (_, said):
        assert "ANTHROPIC" not in said


def test_without_an_upstream_and_without_the_emulators_parts_it_says_both_ways_out(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.modules['yaml'] = None\n{PROGRAM}"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=environment(tmp_path),
        check=False,
    )
    assert ran.returncode == 2
    said = " ".join(ran.stderr.split())
    assert "There is no upstream. Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or name one" in said
    assert "the emulator needs yaml, which is not installed. Run: pip install" in said
    assert "[gateway,emulator]" in said


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--host", "0.0.0.0"], {}, "Make a key (lockstitch key NAME)"),
        (["--host", "no..host"], {}, "no..host is not known here"),  # asks nobody: it is no name
        (["--config", "no.toml"], {}, "no.toml: cannot be read: No such file"),
        (["--upstream", "gpu:8000"], {}, "--upstream must begin with http://"),
        (["--store", "oracle:x"], {}, "is not a store URL"),
        (["--port", "99999"], {}, "--port"),
        (["--workers", "0"], {}, "--workers"),
        (["--workers", "2", "--store", "memory:"], {}, "which workers cannot share"),
        (["--port", "9"], {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "is this gateway itself"),
    ],
)
def test_a_mistake_is_one_message(monkeypatch, arguments, variables, said):
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"OPENAI_API_KEY": SECRET} | variables).items():
        monkeypatch.setenv(name, value)
    ran = lockstitch("serve", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert SECRET not in ran.out + ran.err


def test_a_port_in_use_is_one_message_and_no_traceback(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = serve(tmp_path, "--port", port, OPENAI_API_KEY=SECRET)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 2
    assert f"lockstitch: 127.0.0.1:{port} is in use" in err
    assert "Traceback" not in err


def test_a_file_that_loses_its_upstreams_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    source = _Source(Options(), None)
    with pytest.raises(ConfigError, match="upstreams: there is none any more"):
        source.again()
    assert _Source(Options(), "http://h/v1").again().upstreams[0].name == "emulator"


# Keys


def status(base, key):
    """What the gateway answers to whoever shows this key."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    asking = urllib.request.Request(f"{base}/models", headers=headers)
    try:
        with urllib.request.urlopen(asking, timeout=PATIENCE_SECONDS) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_only_key_is_revoked_when_its_block_is_taken_out(tmp_path, host):
    file = tmp_path / "gateway.toml"
    key = new_key()
    store = f'store = "sqlite:///{tmp_path}/journal.db"\n'
    file.write_text(f'{store}[[keys]]\nname = "anna"\nhash = "{hash_of(key)}"\n')
    with serving(tmp_path, "--config", file, "--host", host) as (process, said):
        base = re.search(r"export OPENAI_BASE_URL=(\S+)", said)[1]
        assert (status(base, key), status(base, None)) == (200, 401)
        file.write_text(store)
        process.send_signal(signal.SIGHUP)
        ends = time.monotonic() + PATIENCE_SECONDS
        while status(base, key) != 401:
            assert time.monotonic() < ends, "it stays valid"
            time.sleep(0.02)
        assert status(base, None) == 401
        _, _, err = stopped(process)
    assert "no keys are left" in err
    assert "configuration not loaded" not in err


def test_a_key_is_shown_once_and_its_block_makes_it_one(tmp_path):
    ran = lockstitch(
        "key", "anna", "--expires", "90d", "--requests-per-minute", 60, "--concurrent", 4
    )
    assert ran.code == 0
    (key,) = re.findall(r"lsk_[A-Za-z0-9_-]{43}", ran.err)
    assert key not in ran.out
    assert tomllib.loads(ran.out)["keys"][0]["requests_per_minute"] == 60
    file = tmp_path / "gateway.toml"
    file.write_text(ran.out)
    config = load(Options(config=str(file)), {"HOME": "/home/anna"})
    holder = Keyring(config.keys).holder(key, now=time.time())
    assert (holder.name, holder.concurrent) == ("anna", 4)
    assert abs(holder.expires - time.time() - 90 * 86400) < 60


@pytest.mark.parametrize("last", ["", "\n"])
def test_a_key_can_be_added_to_a_file_whose_last_line_has_no_end(tmp_path, last):
    ran = lockstitch("key", "anna")
    assert "What standard output got goes into the file of `lockstitch serve --config`." in ran.err
    assert not ran.err.rstrip().endswith(":")
    assert tomllib.loads(f"[server]\nport = 8770{last}{ran.out}")["keys"][0]["name"] == "anna"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90d", datetime(2026, 4, 1, tzinfo=UTC)),
        ("12h", datetime(2026, 1, 1, 12, tzinfo=UTC)),
        ("1w", datetime(2026, 1, 8, tzinfo=UTC)),
        ("2027-01-31", datetime(2027, 1, 31, tzinfo=UTC)),
        ("2027-01-31T12:00:00+02:00", datetime(2027, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_when_a_key_ends(text, moment):
    assert _moment(text, NOW) == moment


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["an na"], "NAME must be 1 to 64 letters"),
        (["../x"], "NAME must be 1 to 64 letters"),
        (["anna", "--expires", "soon"], "--expires is a time from now"),
        (["anna", "--expires", "0d"], "--expires is a time from now"),
        (["anna", "--expires", "2020-01-01"], "--expires is in the past"),
        (["anna", "--concurrent", "0"], "--concurrent"),
    ],
)
def test_a_mistake_makes_no_key(arguments, said):
    ran = lockstitch("key", *arguments)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "lsk_" not in ran.out + ran.err
