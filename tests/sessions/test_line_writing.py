"""Writing lines: only what the plan names is touched."""

from __future__ import annotations

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.core.mending import Policy
from lockstitch.dialects.responses import Responses
from lockstitch.sessions.line_writing import LineWriter
from lockstitch.sessions.plain_lines import Bare, PlainLines
from tests.generated import examples, responses_items
from tests.sessions.written import jsonl, written


@settings(max_examples=examples(150))
@given(st.lists(responses_items(), min_size=1, max_size=10), st.sampled_from([b"\n", b"\r\n"]))
def test_lines_that_no_change_names_keep_their_bytes(tmp_path_factory, history, end):
    content = jsonl(history).replace(b"\n", end)
    source = written(tmp_path_factory.mktemp("w") / "h.jsonl", content)
    scan = PlainLines(Responses()).scan(source)
    writer = LineWriter(scan, Responses(), Bare(), Policy())
    out = io.BytesIO()
    writer.write(source, out)
    after = out.getvalue().splitlines(keepends=True)
    gone = {line for change in writer.log.all() for line in change.before}
    for line in content.splitlines(keepends=True):
        assert line in after or line in gone


class Marking:
    """A last touch that counts what it is given."""

    def __init__(self):
        self.seen = []

    def one(self, line, new):
        self.seen.append(new)
        return line

    def many(self, block):
        return [self.one(line, False) for line in block]


def test_every_line_passes_the_last_touch(tmp_path):
    source = written(tmp_path / "h.jsonl", jsonl([{"type": "function_call", "call_id": "a"}, {}]))
    scan = PlainLines(Responses()).scan(source)
    writer = LineWriter(scan, Responses(), Bare(), Policy())
    marking = Marking()
    out = io.BytesIO()
    writer.write(source, out, marking)
    assert marking.seen == [False, True, False]
    assert len(out.getvalue().splitlines()) == 3
