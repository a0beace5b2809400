"""What holds of every write of a task, in the random histories and in the explorer's worlds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from cloudsched import Execution, Task
from cloudsched.domain.documents.execution import ExecutionStatus, Run, WaitingFor
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.lifecycle import ALLOWED
from cloudsched.domain.transitions.planning import jittered_start, waits_for_open_run


def find_broken_future(task: Task) -> Iterator[str]:
    """Yield what is wrong with when something looks at a task again."""
    if task.next_execution_time is not None and task.status is not TaskStatus.ACTIVE:
        yield f"4: {task.id} is {task.status}, and has a next occurrence: lists by it leave out its status"
    if task.deleted_at or task.deferred:
        pending = [task.updated_at]
    else:
        pending = [run.lease.until for run in task.runs if run.lease]
        if task.status is TaskStatus.ACTIVE:
            waiting = [_processing_deadline(task, run) for run in task.runs if not run.lease]
            pending += [at for at in waiting if at is not None]
            if task.next_execution_time and not waits_for_open_run(task):
                pending.append(jittered_start(task, task.next_execution_time))
        if task.paused_until is not None:
            pending.append(task.paused_until)
    if task.status is TaskStatus.ACTIVE and not pending and not task.offer:
        yield f"4: {task.id} is ACTIVE and waits for nothing"
    if pending and (task.wake_at is None or task.wake_at > max(min(pending), task.updated_at)):
        yield f"4: the sweep looks at {task.id} at {task.wake_at}, and not at {min(pending)}"


def _processing_deadline(task: Task, run: Run) -> datetime | None:
    """Return when a run that is not in progress must be processed; None if it may wait for a worker for ever."""
    if run.waiting_for is not WaitingFor.WORKER:
        return run.due_at
    startable = max(run.due_at, task.status_changed_at)  # a pause held it until then
    return startable + task.expiration if task.expiration and run.started_at is None else None


def find_broken_change(before: Task, after: Task, executions: Sequence[Execution]) -> Iterator[str]:
    """Yield what is wrong with a change of a task, whoever has made it."""
    if after.status is not before.status and after.status not in ALLOWED[before.status]:
        yield f"the table of statuses: {before.status} became {after.status}"
    final = {one.id for one in executions if one.status.is_final}
    for run in before.runs:
        if after.find_run(run.execution_id) is None and run.execution_id not in final:
            yield f"1: the run of {run.execution_id} is gone without a record"
        yield from _find_broken_retries(before, run, after.find_run(run.execution_id))
    for record in executions:
        ended = before.find_run(record.id)
        if ended is None or record.status is not ExecutionStatus.TIMED_OUT:
            continue
        if ended.attempt - ended.uncounted_attempts <= before.retry.max_retries:
            yield f"9: {record.id} has ended, and has retries of its own left"


LOSSES = frozenset({"ProcessEnded", "ResultLost", "WorkerLost"})
"""The types of the errors of attempts that were lost with their process."""


def _find_broken_retries(task: Task, before: Run, after: Run | None) -> Iterator[str]:
    """Yield what is wrong with the count of the retries that a run has used: its own failures use them alone."""
    if after is None or after.attempt == before.attempt or not after.attempts:
        return
    error = after.attempts[-1].error
    is_lost = error is not None and error.type in LOSSES
    used = (after.attempt - after.uncounted_attempts) - (before.attempt - before.uncounted_attempts)
    if used != (not is_lost):
        yield f"9: {after.execution_id} of {task.id} has used {used} retries by an attempt that was {error}"
    if after.losses != (before.losses + 1 if is_lost else 0):
        yield f"9: {after.execution_id} of {task.id} was lost {after.losses} times in a row, after {before.losses}"
    if after.losses > 2:
        yield f"9: {after.execution_id} of {task.id} is lost again and again"
