"""Logs of responses: found by who they belong to, and bounded by what they really take."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.gateway.showing.runs import Runs
from lockstitch.gateway.showing.streams import Log
from tests.generated import examples


def log_of(size):
    log = Log()
    log.add(b"x" * size)
    return log


def test_a_running_response_is_found_by_its_tenant_alone():
    runs = Runs(100)
    log = log_of(5)
    runs.begin("a", "resp_1", log)
    assert runs.find("a", "resp_1") is log
    assert runs.find("b", "resp_1") is None
    assert runs.is_running("a", "resp_1")
    assert not runs.is_running("b", "resp_1")
    assert len(runs) == 1


def test_an_ended_response_is_found_until_others_need_the_room():
    runs = Runs(100)
    for n in range(5):
        runs.begin("a", f"resp_{n}", log_of(40))
        runs.end("a", f"resp_{n}")
    assert runs.find("a", "resp_0") is None
    assert runs.find("a", "resp_4") is not None
    assert runs.size == 80


def test_one_that_is_too_large_is_not_kept():
    runs = Runs(100)
    runs.begin("a", "resp_1", log_of(1000))
    runs.end("a", "resp_1")
    assert runs.find("a", "resp_1") is None
    assert runs.size == 0


def test_where_less_may_be_kept_the_oldest_go_at_once():
    runs = Runs(100)
    for n in range(2):
        runs.begin("a", f"resp_{n}", log_of(40))
        runs.end("a", f"resp_{n}")
    runs.limit(50)
    assert runs.find("a", "resp_0") is None
    assert runs.find("a", "resp_1") is not None
    assert runs.size == 40


def test_what_was_deleted_is_heard_by_nobody():
    runs = Runs(100)
    runs.begin("a", "resp_1", log_of(10))
    runs.end("a", "resp_1")
    runs.forget("a", "resp_1")
    assert runs.find("a", "resp_1") is None
    assert runs.size == 0


@settings(max_examples=examples(30))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "grow", "end", "forget", "drop"]),
            st.integers(0, 4),
            st.integers(0, 60),
        ),
        max_size=40,
    )
)
def test_the_size_is_that_of_the_logs_and_never_more_than_allowed(steps):
    runs = Runs(100)
    logs: dict[str, Log] = {}
    for step, n, size in steps:
        name = f"resp_{n}"
        if step == "begin":
            logs[name] = log_of(size)
            runs.begin("a", name, logs[name])
        elif step == "grow" and name in logs:
            logs[name].add(b"y" * size)
        elif step == "end":
            runs.end("a", name)
            logs.pop(name, None)
        elif step == "forget":
            runs.forget("a", name)
        elif step == "drop" and name in logs:
            logs[name].drop()
        assert runs.size == sum(log.size for log in runs._ended.values())
        assert 0 <= runs.size <= 100


def test_ending_what_does_not_run_changes_nothing():
    runs = Runs(100)
    runs.end("a", "resp_1")
    assert len(runs) == runs.size == 0
