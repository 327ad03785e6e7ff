"""The rules, as a table: every code, its name, and what it means in one sentence.

Everything that has to do with a code and is not its docs page starts here. LS0xx are about calls
and outputs, in any dialect; LS1xx are about the file that holds them."""

from __future__ import annotations

from msgspec import Struct


class Rule(Struct, frozen=True):
    code: str
    name: str
    summary: str

    def __str__(self) -> str:
        return self.code


NO_OUTPUT = Rule("LS001", "no-output", "A call has no output.")
ORPHAN_OUTPUT = Rule("LS002", "orphan-output", "An output has no call.")
OUTPUT_BEFORE_CALL = Rule("LS003", "output-before-call", "An output comes before its call.")
SECOND_OUTPUT = Rule("LS004", "second-output", "A call has more than one output.")
ID_REUSED_WHILE_OPEN = Rule(
    "LS005", "id-reused-while-open", "A call id is used again before its first call has an output."
)
WRONG_FAMILY = Rule("LS006", "wrong-family", "An output is of another family than its call.")
REASONING_PARTED = Rule(
    "LS007", "reasoning-parted", "A reasoning item is not followed by what it led to."
)
DUPLICATE_ITEM_ID = Rule("LS008", "duplicate-item-id", "Two items have the same id.")
NOT_ADJACENT = Rule("LS009", "not-adjacent", "Another item comes between a call and its output.")
GROUP_INCOMPLETE = Rule(
    "LS010", "group-incomplete", "Of several calls made at once, some have an output and some none."
)
HALF_PAIR_LEFT = Rule("LS011", "half-pair-left", "A compaction or a rollback left half of a pair.")
CONTRADICTED = Rule(
    "LS012", "contradicted", "An output says that its call did not run, and evidence says it did."
)
UNANSWERED_APPROVAL = Rule(
    "LS013", "unanswered-approval", "A request for approval was neither approved nor denied."
)
INCOMPLETE_CALL = Rule(
    "LS014", "incomplete-call", "A call was cut off before its arguments were complete."
)
UNDECODABLE = Rule("LS101", "undecodable", "A line is torn or cannot be decoded.")
ORDINAL = Rule("LS102", "ordinal", "A line's ordinal is missing, repeated or skipped.")
NO_HEADER = Rule("LS103", "no-header", "The file does not begin with its header.")

OPEN_CALL = frozenset({NO_OUTPUT, GROUP_INCOMPLETE, UNANSWERED_APPROVAL, INCOMPLETE_CALL})
"""The rules for a call that has no output and waits for one."""

RULES: dict[str, Rule] = {
    rule.code: rule
    for rule in (
        NO_OUTPUT,
        ORPHAN_OUTPUT,
        OUTPUT_BEFORE_CALL,
        SECOND_OUTPUT,
        ID_REUSED_WHILE_OPEN,
        WRONG_FAMILY,
        REASONING_PARTED,
        DUPLICATE_ITEM_ID,
        NOT_ADJACENT,
        GROUP_INCOMPLETE,
        HALF_PAIR_LEFT,
        CONTRADICTED,
        UNANSWERED_APPROVAL,
        INCOMPLETE_CALL,
        UNDECODABLE,
        ORDINAL,
        NO_HEADER,
    )
}
