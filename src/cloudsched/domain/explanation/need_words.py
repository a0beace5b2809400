"""The words for what needs attention: a word or two for each cause, and the sentences about tasks."""

from __future__ import annotations

from typing import Final, NamedTuple

from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.task import NeedCause


class NeedWords(NamedTuple):
    """The words for a cause."""

    chip: str
    one: str = ""
    """What is said of one task, after its title."""
    many: str = ""
    """What is said of more, after their number."""


NEED_WORDS: Final = complete_table(
    NeedCause,
    {
        NeedCause.QUEUE_PAUSED: NeedWords("Queue paused"),
        NeedCause.UNKNOWN_HANDLER: NeedWords("Not registered"),
        NeedCause.BUDGET_USED_UP: NeedWords("Budget used up"),
        NeedCause.NO_ANSWER: NeedWords("No answer"),
        NeedCause.NOT_REACHABLE: NeedWords("Not reached"),
        NeedCause.FAILED: NeedWords("Failing", "is failing", "are failing"),
        NeedCause.WAITING: NeedWords("Asked for an answer", "has asked for an answer", "have asked for an answer"),
        NeedCause.OVERDUE: NeedWords("Late", "is late and has not started", "are late and have not started"),
        NeedCause.PAUSED: NeedWords(
            "Paused after failures",
            "is paused, and its last run has failed",
            "are paused, and their last runs have failed",
        ),
        NeedCause.HELD: NeedWords(
            "Out of budget",
            "is paused: its owner's budget is used up",
            "are paused: their owners' budgets are used up",
        ),
        NeedCause.LIMITED: NeedWords(
            "Limit used up", "is paused: its limit is used up", "are paused: their limits are used up"
        ),
        NeedCause.DELIVERY: NeedWords("Not delivered", "has not been delivered", "have not been delivered"),
        NeedCause.NO_WORKER: NeedWords("No worker"),
    },
)
