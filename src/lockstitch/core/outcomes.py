"""How a call ended, and the words in which a synthetic output says so.

Three outcomes are told apart. "Unknown" is never told as "did not run": the call may have had
its effect. The texts are constants, so the same history is always mended to the same bytes."""

from __future__ import annotations

import re
from enum import Enum

from msgspec import Struct


class Outcome(Enum):
    NEVER_STARTED = "never started"
    FINISHED = "finished"
    UNKNOWN = "outcome unknown"


class Evidence(Struct, frozen=True):
    """What is known of a call apart from its output: a completion event, a journal entry."""

    outcome: Outcome
    summary: str
    """For people, after "it": ``finished with exit code 0``."""
    text: str = ""
    """What the tool gave back, where the evidence holds it."""
    at: int | None = None
    """Where it stands (a line), where it stands anywhere."""
    failed: bool = False
    """It finished, and not well."""
    exit_code: int | None = None


class Settlement(Struct, frozen=True):
    """What a synthetic output says of its call."""

    outcome: Outcome
    text: str
    failed: bool = False
    exit_code: int | None = None

    @property
    def well(self) -> bool:
        """Did the call finish, and finish well, as far as is known?"""
        return self.outcome is Outcome.FINISHED and not self.failed


MARK = "[lockstitch]"

UNKNOWN_TEXT = (
    f"{MARK} Outcome unknown. The call was made, and nothing on record says whether it ran or how"
    " it ended. It may have taken effect. Find out before making it again."
)
NEVER_STARTED_TEXT = f"{MARK} Never started. The call was made and was not run; it had no effect."

NO_TEXT = "No text of its output is on record."


def settlement(evidence: Evidence | None) -> Settlement:
    """What to say of a call, given what is known of it."""
    if evidence is None or evidence.outcome is Outcome.UNKNOWN:
        more = f"\n{evidence.text}" if evidence is not None and evidence.text else ""
        return Settlement(Outcome.UNKNOWN, UNKNOWN_TEXT + more)
    if evidence.outcome is Outcome.NEVER_STARTED:
        more = f" {evidence.text}" if evidence.text else ""
        return Settlement(Outcome.NEVER_STARTED, NEVER_STARTED_TEXT + more)
    head = f"{MARK} Recovered from what is on record: the call {evidence.summary}."
    # Whether it gave nothing back, or nobody wrote down what, the evidence does not tell.
    text = f"{head}\nOutput:\n{evidence.text}" if evidence.text else f"{head} {NO_TEXT}"
    return Settlement(Outcome.FINISHED, text, evidence.failed, evidence.exit_code)


# What clients write in place of an output when they believe, or claim, that a call did not run.
# Anchored at the start: an output that merely mentions these words is somebody's real output.
_DENIAL = re.compile(
    r"\s*\[?\s*(?:"
    r"aborted"
    r"|(?:the |this )?(?:tool |function )?(?:call |execution |command |tool |request )?"
    r"(?:was |has been )?(?:not (?:run|executed|started)|never (?:started|ran|executed)"
    r"|cancell?ed|interrupted|skipped)"
    r"|did not run"
    r"|no (?:output|result) (?:available|provided|recorded)"
    r")(?:\s*$|\s*[.;:,!\]\)]\s*$|\s*[.;:,]?\s+(?:by|after|because|before|due|as|for)\b"
    r"|\s*[.;:]\s)"
    r"|\s*" + re.escape(NEVER_STARTED_TEXT),
    re.IGNORECASE,
)


def denies_running(text: str) -> bool:
    """Does this output say that its call did not run?"""
    return _DENIAL.match(text) is not None


_STAND_INS = (MARK, "[openclaw] missing tool result in session history")
"""How outputs begin that a repair wrote: ours, and those of clients that repair on their own."""


def stands_in(text: str) -> bool:
    """Does this output only stand in for one: a repair's, or a client's word that nothing ran?"""
    return text.startswith(_STAND_INS) or denies_running(text)
