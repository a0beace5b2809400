"""An execution as a row of a list: how late it was, how long it took, and what came of it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.status import write_message
from cloudsched.dashboard.times import NONE, find_instant, parse_instant, write_duration, write_took
from cloudsched.dashboard.words import shorten
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Json
    from cloudsched.dashboard.visit import Visit

_LONGEST_OUTCOME: Final = 4000
_TRIGGERS: Final = complete_table(
    Trigger,
    {
        Trigger.SCHEDULE: "",
        Trigger.MANUAL: "by hand",
        Trigger.BACKFILL: "backfilled",
        Trigger.SNOOZE: "snoozed",
    },
)


def build_execution(record: Json, visit: Visit) -> Json:
    """Return an execution as a row."""
    late = find_lateness(record)
    return {
        **record,
        "title": record.get("title") or record["taskId"],
        "outcome": shorten(_write_outcome(record, visit), _LONGEST_OUTCOME),
        "took": write_took(record, visit.now),
        "late": NONE if late is None else write_duration(late),
        "trigger": _TRIGGERS[record.get("trigger", Trigger.SCHEDULE)],
        "until": record.get("nextAttemptAt") or record.get("leaseUntil"),
        "untilWord": _name_until(record, visit),
    }


def find_lateness(record: Json) -> timedelta | None:
    """Return how long after it was due an execution started. None if it has not."""
    started = find_instant(record, "startedAt")
    return None if started is None else max(started - parse_instant(record["scheduledFor"]), timedelta(0))


def _write_outcome(record: Json, visit: Visit) -> str:
    error = record.get("error")
    if error and record["status"] != ExecutionStatus.SUSPENDED:  # what a pause holds says so, not why it failed before
        return f"{error['type']}: {error['message']}"
    if record["status"] == ExecutionStatus.SUCCEEDED and record.get("content") is not None:
        return json.dumps(record["content"], ensure_ascii=False)
    if not record.get("finishedAt") and record.get("progress"):
        return str(record["progress"][-1]["text"])
    covers = record.get("covers") or {}
    more = covers.get("count", 1) - 1
    told = f"This and {more:,} more, up to {visit.moment(covers['until']).text}. " if more else ""
    return told + write_message(record, visit)


def _name_until(record: Json, visit: Visit) -> str:
    until = record.get("nextAttemptAt") or record.get("leaseUntil")
    is_ahead = until is not None and parse_instant(until) >= visit.now
    if not record.get("nextAttemptAt"):
        return "lease ends" if is_ahead else "lease ended"
    if record["status"] == ExecutionStatus.RETRYING and is_ahead:
        return "next attempt"
    return "next attempt was due"
