"""Why tasks need somebody: how each cause is said, and where its tasks are listed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.status import Status, show_status
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.overview_responses import NeedCause

if TYPE_CHECKING:
    from cloudsched.dashboard.visit import Visit

LATE: Final = timedelta(minutes=3)
"""What is overdue for longer has not come by itself: the sweep, each minute, has not helped either."""


@dataclass(frozen=True, slots=True)
class Cause:
    """How a cause is said."""

    status: Status
    chip: str
    """In a word or two, before a number."""
    one: str
    """What goes on after a single task's title."""
    many: str
    """What goes on after a number of them."""


CAUSES: Final = complete_table(
    NeedCause,
    {
        NeedCause.FAILED: Cause(show_status("FAILED"), "Failed last", "failed last,", "failed last, the first of them"),
        NeedCause.WAITING: Cause(
            show_status("SUSPENDED"),
            "Give up soon",
            "waits for an event, and gives up",
            "wait for events and give up soon, the first",
        ),
        NeedCause.OVERDUE: Cause(
            Status("late", "Late", "timeout"),
            "Late",
            "is late and has not started: it was due",
            "are late and have not started: the first was due",
        ),
        NeedCause.PAUSED: Cause(
            show_status("PAUSED"),
            "Paused after failures",
            "is paused after a failure,",
            "are paused after failures, the first",
        ),
        NeedCause.BUDGET: Cause(
            show_status("PAUSED"),
            "Without budget",
            "is paused: its owner's budget is used up,",
            "are paused: their owners' budgets are used up, the first",
        ),
        NeedCause.DELIVERY: Cause(
            Status("fail", "Not delivered", "fail"),
            "Not delivered",
            "has not been delivered,",
            "have not been delivered, the first",
        ),
    },
)
"""What stands first is first."""


def list_path(cause: NeedCause, visit: Visit) -> str:
    """Return where all tasks of a cause are listed."""
    if cause is NeedCause.OVERDUE:
        return f"tasks?{urlencode({'dueUntil': (visit.now - LATE).isoformat()})}"
    return f"tasks?{urlencode({'trouble': cause.value})}"
