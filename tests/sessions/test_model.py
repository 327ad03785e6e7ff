"""Scans: findings in order, and where a person finds them."""

from __future__ import annotations

from lockstitch.core import rules
from lockstitch.core.findings import Finding
from lockstitch.core.items import Place
from lockstitch.sessions.model import Conversation, Scan


def finding(at: int, rule=rules.NO_OUTPUT) -> Finding:
    return Finding(rule=rule, place=Place(at), key="call_a", other=Place(1), detail="x")


def test_findings_come_in_the_order_of_lines():
    scan = Scan(
        format="x",
        records=0,
        conversations=[
            Conversation(findings=[finding(9), finding(2, rules.UNDECODABLE)], label="b"),
            Conversation(findings=[finding(5)], label="a"),
        ],
    )
    assert [(one.line, one.label) for one in scan.findings()] == [(2, "b"), (5, "a"), (9, "b")]


def test_a_position_that_is_not_a_line_is_looked_up():
    one = Conversation(findings=[finding(3)])
    scan = Scan(format="x", records=0, conversations=[one], word="item", lines={3: 40})
    (located,) = scan.findings()
    assert located.line == 40


def test_a_conversation_on_one_line_has_all_its_findings_there():
    one = Conversation(findings=[finding(3, rules.SECOND_OUTPUT)], line=7)
    (located,) = Scan(format="x", records=0, conversations=[one], word="item").findings()
    assert located.line == 7
    assert located.message == "second output for call_a; the first is at item 1"
