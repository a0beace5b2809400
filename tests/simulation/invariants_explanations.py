"""The invariants of what people are told of a task, checked on each state that a history reaches.

X1  Each open run is explained once, by what it does: it runs, has lost its lease, waits for something, or is due.
X2  An ACTIVE task without an open run says when it runs next, or that it was due.
X3  What is said to begin later is to come, in the present and not in the past.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from tests.simulation.invariants_runs import fail

from cloudsched import Task
from cloudsched.domain.documents.execution import Run, WaitingFor
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.explanation.explain import explain
from cloudsched.domain.explanation.findings import Evidence, Reason

_LATER: Final = {Reason.SCHEDULED, Reason.RETRYING, Reason.PUT_OFF, Reason.SLEEPING, Reason.SUSPENDED}
_SUSPENDED: Final = {
    Reason.WAITING_FOR_EVENT,
    Reason.WAITING_FOR_CALLS,
    Reason.WAITING_FOR_QUOTA,
    Reason.SLEEPING,
    Reason.SUSPENDED,
    Reason.DUE,
}
_BESIDE: Final = {Reason.EVENT_ARRIVED}
"""What is said of a run beside why it is open."""
_WAITS: Final = {WaitingFor.WORKER: Reason.WAITING_FOR_WORKER, WaitingFor.LOCK: Reason.WAITING_FOR_LOCK}


def check_explanation(task: Task, now: datetime) -> None:
    """Explain a task as it was just written. Raises InvariantViolated."""
    found = explain(Evidence(task=task, now=now))
    said = f"of {task.id}, {task.status}: {[(each.reason.value, each.sentence) for each in found.findings]}"
    for run in task.runs:
        about = [each.reason for each in found.findings if each.execution_id == run.execution_id]
        reasons = [reason for reason in about if reason not in _BESIDE]
        if len(reasons) != 1 or reasons[0] not in _find_possible(run, now):
            fail(f"X1 {run.execution_id} is not explained {said}")
    is_idle = task.status is TaskStatus.ACTIVE and not task.runs and task.next_execution_time is not None
    if is_idle and found.findings[0].reason not in {Reason.SCHEDULED, Reason.DUE}:
        fail(f"X2 nothing is said {said}")
    if any(each.reason in _LATER and each.at is not None and each.at <= now for each in found.findings):
        fail(f"X3 it is {now} {said}")


def _find_possible(run: Run, now: datetime) -> set[Reason]:
    if run.lease is not None:
        return {Reason.RUNNING if run.lease.until > now else Reason.LEASE_ENDED}
    if run.waiting_for is not None:
        return {_WAITS[run.waiting_for]}
    if run.suspension is not None and run.suspension_count:
        return _SUSPENDED
    return {Reason.DUE} if run.due_at <= now else {Reason.RETRYING, Reason.PUT_OFF, Reason.SCHEDULED}
