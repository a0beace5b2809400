"""How a run counts: the one definition behind every number of runs on a page, in the API and in a store's index."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    NOT_RUN_STATUSES,
    Execution,
    ExecutionStatus,
)

LATE: Final = timedelta(minutes=3)
"""What starts longer after it was due is late: the one limit of all answers, pages and messages. A lost dispatch is
sent again within two minutes, as the sweep comes once a minute and gives a dispatch one to arrive."""


class CountedAs(StrEnum):
    """The number that an ended run belongs to."""

    RAN = "ran"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Skipped, cancelled or expired: it has ended by a decision."""
    CALL = "calls"
    """Made by another run, whose record has the call's end. It is in none of the others."""


class RunOutcome(StrEnum):
    """What a run that is no call counts as."""

    RAN = "RAN"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"


OUTCOME_STATUSES: Final = {
    RunOutcome.RAN: (ExecutionStatus.SUCCEEDED,),
    RunOutcome.FAILED: tuple(sorted(FAILURE_STATUSES)),
    RunOutcome.SKIPPED: tuple(sorted(NOT_RUN_STATUSES)),
}
"""The statuses that count as each."""


class PartLength(StrEnum):
    """The length of the parts of the time that are counted."""

    DAY = "P1D"
    HOUR = "PT1H"
    QUARTER = "PT15M"


def is_late(due_at: datetime, at: datetime) -> bool:
    """Return whether what was due at `due_at` and starts `at` some time, or has not started until then, is late."""
    return at - due_at > LATE


def classify_run(execution: Execution) -> CountedAs | None:
    """Return what an execution counts as. None for an open one."""
    if not execution.status.is_final:
        return None
    if execution.called_by is not None:
        return CountedAs.CALL
    if execution.status in FAILURE_STATUSES:
        return CountedAs.FAILED
    if execution.status in NOT_RUN_STATUSES:
        return CountedAs.SKIPPED
    return CountedAs.RAN


def has_started_late(execution: Execution) -> bool:
    """Return whether a run of a schedule ran or failed, and started `LATE` or more after it was due."""
    return (execution.lateness or timedelta(0)) >= LATE and classify_run(execution) in {CountedAs.RAN, CountedAs.FAILED}


@dataclass(frozen=True, slots=True)
class GroupCount:
    """The number of tasks or runs of one handler or owner."""

    name: str
    count: int
    first: datetime
    """The earliest instant by which they are listed."""
    first_id: str
    """The id of the task that has it."""
