"""Say what a write promises: when the task runs next, by when it should have begun, and what stands in the way.

A receipt without doubts says that the next run begins by `due_by`, as far as anybody can know now. So it tells no
more than was looked at: what holds in the future, such as a deployment without the handler, is not foreseen.
"""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.receipt import Doubt, Receipt
from cloudsched.domain.documents.run_counts import LATE
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task, TaskStatus
from cloudsched.domain.explanation.explain import explain_next, explain_run, explain_status
from cloudsched.domain.explanation.findings import DEFERRED, DELETED, NO_OCCURRENCE, Evidence, Finding, Reason
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.planning import (
    find_tolerance,
    jittered_start,
    occurrence_after,
    waits_for_open_run,
)
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, tzinfo

    from cloudsched.domain.documents.execution import Run

SHOWN: Final = 3
"""The number of instants in a receipt."""
_STARTS: Final = frozenset(
    {
        Reason.SCHEDULED,
        Reason.RETRYING,
        Reason.PUT_OFF,
        Reason.SLEEPING,
        Reason.SUSPENDED,
        Reason.DUE,
        Reason.WAITING_FOR_WORKER,
    },
)
"""The reasons of open runs that go on by themselves, at their instant."""
_OF_DISPATCHES: Final = frozenset({Reason.QUEUE_PAUSED, Reason.SWEEP_IS_LATE, Reason.OVERDUE})


def make_receipt(evidence: Evidence, zone: tzinfo) -> Receipt:
    """Return the receipt of a task as it is now, with instants in a zone."""
    task = evidence.task
    if task.deleted_at is not None:
        due_by, doubts = None, [DELETED]
    elif task.status is TaskStatus.ACTIVE:
        due_by, doubts = _find_start(evidence)
        doubts += [DEFERRED] if task.deferred else []
        doubts += [each for each in _list_conditions(evidence) if each not in doubts]
    else:
        due_by, doubts = None, [explain_status(evidence)]
    return Receipt(
        scheduled=not doubts,
        next=tuple(_say_in(zone, at) for at in _list_next(evidence)),
        due_by=None if due_by is None else _say_in(zone, due_by),
        doubts=tuple(Doubt(reason=each.reason, sentence=each.sentence) for each in doubts),
    )


def _list_conditions(evidence: Evidence) -> Iterable[Finding]:
    """Return what concerns a task's next run. Workers get what they are offered without a dispatch."""
    task = evidence.task
    if task.offer is None or any(each.traits.is_sent for each in task.delivery_channels):
        return evidence.conditions
    return [each for each in evidence.conditions if each.reason not in _OF_DISPATCHES]


def _say_in(zone: tzinfo, at: datetime) -> datetime:
    """Return an instant with the offset that a zone has then. The zone itself could not be sent to another process."""
    local = at.astimezone(zone)
    return local.replace(tzinfo=timezone(local.utcoffset() or timedelta(0)))


def _find_start(evidence: Evidence) -> tuple[datetime | None, list[Finding]]:
    """Return by when the next run of an active task is to begin, and what its documents have against that."""
    task = evidence.task
    limit = task.expiration or timedelta.max
    runs = [(run, explain_run(evidence, run)) for run in task.runs]
    # One that waits for others is due as soon as they have answered.
    starts = [
        (run.due_at, limit, found) for run, found in runs if found.reason in _STARTS or _is_answered(run, evidence)
    ]

    occurrence = task.next_execution_time
    if occurrence is not None:
        start = jittered_start(task, occurrence)
        if not _is_blocked(task, start):
            starts.append((start, find_tolerance(task), explain_next(evidence, occurrence)))

    if starts:
        start, limit, found = min(starts, key=lambda each: each[0])
        # A change of the task sends what is due once more. What is later than the limit is recorded as skipped.
        due_by = min(max(start, task.updated_at) + LATE, add_duration(start, limit))
        return due_by, [found] if due_by < evidence.now else []

    waits = [found for _, found in runs if found.reason is not Reason.RUNNING]
    if occurrence is not None:
        return None, [explain_next(evidence, occurrence), *waits]
    return None, waits if runs else [NO_OCCURRENCE]


def _is_answered(run: Run, evidence: Evidence) -> bool:
    return run.lease is None and run.suspension is not None and run.due_at <= evidence.now


def _is_blocked(task: Task, start: datetime) -> bool:
    """Return whether an occurrence may have to wait for an open run, or be skipped for it."""
    if not waits_for_open_run(task):
        return len(task.runs) >= MAX_OPEN_RUNS
    return any(run.lease is None or run.lease.until > start for run in task.runs)


def _list_next(evidence: Evidence) -> Iterable[datetime]:
    """Return the next instants of an active task that are in the future."""
    task, now = evidence.task, evidence.now
    if task.status is not TaskStatus.ACTIVE or task.deleted_at is not None:
        return ()
    found = {run.due_at for run in task.runs if run.lease is None and run.suspension is None and run.due_at > now}
    left = SHOWN
    if task.max_runs is not None:
        left = min(left, task.max_runs - task.run_count)
    occurrence = task.next_execution_time
    if occurrence is not None and occurrence <= now:
        left -= 1
    try:
        if occurrence is not None and occurrence <= now:
            occurrence = occurrence_after(task, now)
        while occurrence is not None and left > 0:
            found.add(occurrence)
            left -= 1
            occurrence = occurrence_after(task, occurrence)
    except InvalidSchedule:  # so sparse that the search was given up, or the request's allowance is spent
        pass
    return sorted(found)[:SHOWN]
