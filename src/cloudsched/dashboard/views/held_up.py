"""The reason why an open execution does not go on, although the time of its next attempt or of its lease has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.times import find_instant
from cloudsched.dashboard.words import shorten
from cloudsched.domain.documents.execution import ExecutionStatus

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LONGEST: Final = 1000
_TIMED: Final = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.RETRYING})
"""The statuses of what goes on at that time. What is suspended has a message that says for what it waits."""


def fetch_held_up(api: Api, visit: Visit, record: Json) -> str:
    """Return the sentence of the explanation about an execution that is late. Empty if it is not."""
    until = find_instant(record, "nextAttemptAt") or find_instant(record, "leaseUntil")
    if record["status"] not in _TIMED or until is None or until >= visit.now:
        return ""
    findings = api.list_items(f"{task_path(record['taskId'])}/explain", "findings")
    return next(
        (shorten(each["sentence"], _LONGEST) for each in findings if each.get("executionId") == record["id"]), ""
    )
