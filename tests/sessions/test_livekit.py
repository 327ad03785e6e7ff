"""LiveKit's chat contexts, made and read back by LiveKit itself."""

from __future__ import annotations

import json

import pytest

from lockstitch.sessions.files import check_file
from tests.sessions.written import findings, mend, written

llm = pytest.importorskip("livekit.agents.llm")


def context(*, answered: bool):
    made = llm.ChatContext.empty()
    made.add_message(role="system", content="You are a voice.")
    made.add_message(role="user", content="Is it warm?")
    made.items.append(llm.FunctionCall(call_id="call_a", name="get_weather", arguments="{}"))
    if answered:
        made.items.append(
            llm.FunctionCallOutput(call_id="call_a", name="get_weather", output="4", is_error=False)
        )
    made.add_message(role="user", content="Hello?")
    return made


@pytest.mark.parametrize("options", [{}, {"exclude_timestamp": False}])
def test_a_real_context_is_known_and_clean(tmp_path, options):
    text = json.dumps(context(answered=True).to_dict(**options))
    scan = check_file(written(tmp_path / "c.json", text.encode()))
    assert scan.format == "livekit"
    assert scan.findings() == []


def test_a_mended_context_is_read_back_by_livekit(tmp_path):
    source = written(tmp_path / "c.json", json.dumps(context(answered=False).to_dict()).encode())
    assert [code for code, _ in findings(source)] == ["LS001"]
    read = llm.ChatContext.from_dict(json.loads(mend(source)))
    kinds = [item.type for item in read.items]
    assert kinds == ["message", "message", "function_call", "function_call_output", "message"]
    output = read.items[3]
    assert (output.call_id, output.name, output.is_error) == ("call_a", "get_weather", True)
    assert "Outcome unknown" in output.output
    assert findings(source) == []
