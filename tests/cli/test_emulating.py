"""`lockstitch emulate`, as a process: what it prints, what it serves, how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
from openai import OpenAI

from lockstitch.emulator.faults import COMMON, FAULTS, POINTS

ROOT = Path(__file__).parents[2]

TIMEOUT_SECONDS = 20


@contextmanager
def emulating(*arguments, environment=None):
    """The process, and the address it listens on."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lockstitch", "emulate", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"} | (environment or {}),
    )
    try:
        greeting = process.stdout.readline()
        found = re.search(r"http://[^ ]+", greeting)
        assert found, greeting + process.stderr.read()
        yield process, found.group()
    finally:
        process.kill()
        process.communicate()


def stopped(process, number=signal.SIGINT):
    process.send_signal(number)
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    return process.returncode, out, err


def ask(url, body, key="any"):
    request = urllib.request.Request(
        f"{url}/v1/responses",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        return json.load(answer)


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "lockstitch", "emulate", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_tells_what_happened(tmp_path, number):
    file = tmp_path / "record.jsonl"
    with emulating("--record", str(file), "--fault", "lock") as (process, url):
        assert ask(url, {"model": "m", "input": "hi"})["status"] == "completed"
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(url, {"model": "m", "input": "hi", "previous_response_id": "resp_gone"})
        code, out, err = stopped(process, number)
    assert (code, err) == (0, "")
    assert "1 -> POST /v1/responses" in out
    assert "<- 400  anchor-not-found" in out
    assert re.search(r"2  POST /v1/responses", out)
    assert re.search(r"Rules broken:\n +1  anchor-not-found", out)
    assert "Faults never triggered:\n         lock" in out
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["request", "response"] * 2
    assert "any" not in json.dumps(lines[0]["headers"])


def test_it_answers_also_when_nobody_reads_what_it_tells():
    with emulating() as (process, url):
        process.stdout.close()
        for _ in range(3):
            assert ask(url, {"model": "m", "input": "hi"})["status"] == "completed"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
        assert process.wait(TIMEOUT_SECONDS) == 0


def test_it_answers_also_when_its_record_cannot_be_written():
    with emulating("--record", "/dev/full") as (process, url):
        for _ in range(3):
            assert ask(url, {"model": "m", "input": "hi"})["status"] == "completed"
        code, out, err = stopped(process)
    assert code == 2
    assert "3  POST /v1/responses" in out
    assert "Traceback" not in err
    said = "lockstitch: /dev/full is incomplete: No space left on device.\n"
    assert err.endswith(said)


def test_the_first_example_in_the_docs_breaks_the_first_request(tmp_path):
    page = (ROOT / "docs" / "emulator.md").read_text()
    fault = re.search(r'lockstitch emulate --fault "(.+)"', page)[1]
    with emulating("--fault", fault) as (process, url):
        client = OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        for ends in ["response.output_item.done", "response.completed"]:
            stream = client.responses.create(model="m", input="hi", stream=True)
            assert [event.type for event in stream][-1] == ends
        _, out, _ = stopped(process)
    assert f"Faults triggered:\n      1  {fault}" in out


def test_it_says_what_its_script_says(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("turns:\n  - text: Good morning\n")
    with emulating("--script", str(script)) as (_, url):
        said = ask(url, {"model": "m", "input": "hi"})
    assert said["output"][0]["content"][0]["text"] == "Good morning"


def test_the_same_seed_gives_the_same_ids():
    ids = []
    for seed in ("3", "3", "4"):
        with emulating("--seed", seed) as (_, url):
            ids.append(ask(url, {"model": "m", "input": "hi"})["id"])
    assert ids[0] == ids[1] != ids[2]


def test_a_key_can_be_given_in_the_environment():
    with emulating(environment={"LOCKSTITCH_EMULATOR_KEY": "sesame"}) as (process, url):
        assert ask(url, {"model": "m", "input": "hi"}, key="sesame")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask(url, {"model": "m", "input": "hi"}, key="other")
        _, out, err = stopped(process)
    assert "sesame" not in out + err


def test_it_warns_where_others_can_reach_it():
    with emulating("--host", "0.0.0.0") as (process, _):
        _, _, err = stopped(process)
    assert "other machines can reach 0.0.0.0, and any API key is accepted" in err


def test_every_fault_and_every_setting_is_listed():
    result = run("--faults")
    assert result.returncode == 0
    for name, kind in FAULTS.items():
        assert re.search(rf"^{name}  ", result.stdout, re.MULTILINE)
        assert kind.does in result.stdout
        for setting in kind.settings:
            assert f"    {setting}=" in result.stdout
    for setting in (*COMMON, *POINTS):
        assert f"    {setting}=" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fault", "explode"], "There is no fault 'explode'"),
        (["--script", "no/such.yaml"], "no/such.yaml: there is no such file"),
        (["--record", "no/such/folder/record.jsonl"], "Choose another --record FILE"),
        (["--host", "192.0.2.1"], "Choose another --port"),
        (["--port", "99999"], "--port"),
    ],
)
def test_a_mistake_is_one_message_and_no_traceback(arguments, said):
    result = run(*arguments)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_without_its_parts_it_says_what_to_install(tmp_path):
    (tmp_path / "aiohttp.py").write_text("raise ModuleNotFoundError(name='aiohttp')")
    result = subprocess.run(
        [sys.executable, "-m", "lockstitch", "emulate"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert result.returncode == 2
    assert "pip install 'lockstitch[emulator]'" in result.stderr
    assert "Traceback" not in result.stderr
