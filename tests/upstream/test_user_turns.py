"""The results of one turn stand in one message, before what the user says."""

from lockstitch.upstream.user_turns import joined_user_turns


def result(name: str) -> dict[str, str]:
    return {"type": "tool_result", "tool_use_id": name, "content": "x"}


def user(*blocks: object) -> dict[str, object]:
    return {"role": "user", "content": list(blocks)}


CALLS = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
}
SAID = {"role": "user", "content": "And now?"}
TEXT = {"type": "text", "text": "And now?"}
FIRST = {"role": "user", "content": "Hi."}


def test_a_message_for_each_result_becomes_one():
    sent = [FIRST, CALLS, user(result("a")), user(result("b")), SAID]
    wanted = [FIRST, CALLS, user(result("a"), result("b"), TEXT)]
    assert joined_user_turns(sent) == wanted


def test_results_stand_before_anything_else_in_the_order_they_came():
    sent = [FIRST, CALLS, SAID, user(result("b")), user(TEXT, result("a"))]
    wanted = [FIRST, CALLS, user(result("b"), result("a"), TEXT, TEXT)]
    assert joined_user_turns(sent) == wanted


def test_messages_without_results_stay_as_they_are():
    sent = [FIRST, SAID, {"role": "assistant", "content": "Yes."}, SAID]
    assert all(one is other for one, other in zip(joined_user_turns(sent), sent, strict=True))


def test_one_message_that_is_right_already_stays_as_it_is():
    sent = [FIRST, CALLS, user(result("a"), TEXT), CALLS, user(result("a"))]
    assert all(one is other for one, other in zip(joined_user_turns(sent), sent, strict=True))


def test_results_of_different_turns_are_not_joined():
    sent = [FIRST, CALLS, user(result("a")), CALLS, user(result("b")), SAID]
    wanted = [FIRST, CALLS, user(result("a")), CALLS, user(result("b"), TEXT)]
    assert joined_user_turns(sent) == wanted


def test_it_changes_nothing_the_second_time_and_nothing_that_was_passed():
    sent = [FIRST, CALLS, user(result("a")), user(result("b")), SAID]
    once = joined_user_turns(sent)
    assert joined_user_turns(once) == once
    assert sent == [FIRST, CALLS, user(result("a")), user(result("b")), SAID]


def test_blocks_and_fields_that_nobody_knows_pass():
    odd = {"type": "unknown", "x": [1]}
    sent = [FIRST, CALLS, {**user(result("a")), "y": 1}, user(odd), user("no block")]
    wanted = [FIRST, CALLS, {**user(result("a"), odd, "no block"), "y": 1}]
    assert joined_user_turns(sent) == wanted


def test_an_empty_text_is_left_out():
    sent = [FIRST, CALLS, user(result("a")), {"role": "user", "content": ""}]
    assert joined_user_turns(sent) == [FIRST, CALLS, user(result("a"))]
