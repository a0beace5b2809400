"""Retry an execution by hand: change its task, and keep or repeat the entries of its journal."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run
from cloudsched.domain.documents.journal import JournalEntry, StepKind, StepRecord, StepStatus, call_id
from cloudsched.domain.documents.task import RecentRequest, Task, TaskStatus
from cloudsched.domain.documents.usage import RunUsage
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.definitions import restore_definition
from cloudsched.domain.transitions.lifecycle import (
    may_have_children,
    require_free_run,
    require_status,
    with_changes,
)
from cloudsched.domain.transitions.run_records import execution_record, require_payload_room
from cloudsched.domain.transitions.suspend import require_event_room
from cloudsched.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from datetime import datetime

RETRYABLE_STATUSES = (TaskStatus.ACTIVE, TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.EXPIRED)
"""The task statuses in which an execution may be retried manually."""
RETRY_ACTION = "retry an execution of"


def last_finished_execution_id(task: Task) -> str:
    """Return the execution that finished last, or, if none has run, the last skipped or expired one."""
    last = task.last_execution_id or task.outcome_execution_id
    if last is not None:
        return last
    if task.runs:
        raise open_run_error(max(task.runs, key=lambda run: run.scheduled_for))
    require_status(task, RETRY_ACTION, *RETRYABLE_STATUSES)
    raise NotAllowed(
        RETRY_ACTION,
        "yet to have one",
        "Nothing of it has run yet; trigger the task to run it now.",
    )


def retry(
    task: Task,
    execution: Execution,
    now: datetime,
    cancelled_calls: Collection[int] = (),
    retried_calls: Collection[int] = (),
    *,
    from_step: int | None = None,
) -> Commit:
    """Retry an execution that did not succeed: one more attempt in the same record.

    A task that has ended is active again until that attempt is over. A durable handler continues from the
    failure: its `cancelled_calls` are created again, and its failed `retried_calls` are awaited. With
    `from_step`, it continues from there: that step and all after it are forgotten.

    It runs the definition that the execution began with, whatever the task runs now, but today's children
    or script. Raises NotAllowed if the execution succeeded, or its task is paused or cancelled.
    """
    if task.find_run(execution.id):
        return Commit(task)
    require_retryable(task, execution)
    entries = restore_entries(execution, now, cancelled_calls, retried_calls, from_step=from_step)
    task, definition = restore_definition(task, execution)
    if definition is not None:
        require_payload_room(task, added=execution.payload)
    if execution.events:
        require_event_room(task, *execution.events, is_wanted=not task.events, action=RETRY_ACTION)
    run = Run(
        execution_id=execution.id,
        scheduled_for=execution.scheduled_for,
        trigger=execution.trigger,
        attempt=execution.attempt_count + 1,
        due_at=now,
        started_at=execution.started_at,
        retried_at=now,
        attempts=execution.attempts,
        omitted_attempts=execution.omitted_attempts,
        progress=execution.progress,
        steps=len(entries),
        usage=restore_usage(execution, entries),
        payload=execution.payload,
        defined_by=execution.defined_by,
        definition=definition,
        log=execution.log,
    )
    why = "Retried by hand."
    record = execution_record(task, run, ExecutionStatus.RETRYING, now, message=why, next_attempt_at=now)
    active = with_changes(
        task,
        now,
        status=TaskStatus.ACTIVE,
        message=task.message if task.is_active else why,
        runs=task.runs_with(run),
        has_children=may_have_children(task, entries),
        events=(*task.events, *execution.events),
        recent_requests=_keep_marks(task, execution),
    )
    return Commit(active, executions=(record,), entries=entries)


def _keep_marks(task: Task, execution: Execution) -> tuple[RecentRequest, ...]:
    """Return the requests that the task remembers, without answers that the execution asks for again."""
    own = f"{execution.id} "
    kept = {each.mark(execution.id) for each in execution.events}
    return tuple(each for each in task.recent_requests if each.key in kept or not each.key.startswith(own))


def require_retryable(task: Task, execution: Execution) -> None:
    """Check that an execution that is not open may have one more attempt, with the payload that it had."""
    if execution.status is ExecutionStatus.SUCCEEDED:  # guard: succeeded run
        raise NotAllowed(RETRY_ACTION, "done with it", "It has succeeded; trigger the task to run it anew.")
    if execution.covers is not None:
        hint = f"Backfill from {execution.scheduled_for.isoformat()} to {execution.covers.until.isoformat()} instead."
        raise NotAllowed(RETRY_ACTION, "past several occurrences with that one record", hint)
    unsent = () if task.delivery is None else (TaskStatus.CANCELLED,)
    require_status(task, RETRY_ACTION, *RETRYABLE_STATUSES, *unsent)
    require_free_run(task, "retry")
    require_payload_room(task, added=execution.payload)


def open_run_error(run: Run) -> NotAllowed:
    """Return the error for retrying a run that is still open."""
    is_at = "waits to be run"
    if run.lease:
        is_at = "is running"
    elif run.suspension:
        is_at = "is suspended"
    hint = f"{run.execution_id} {is_at}, and continues by itself: retry it after it has ended."
    return NotAllowed(RETRY_ACTION, "still at work on it", hint)


def missing_steps_error(reference: str) -> NotAllowed:
    """Return the error for retrying an execution whose steps are gone: completed ones would run again."""
    hint = (
        f"They were stored as {reference!r}, which is not there any more. Without them, what it has done would be done "
        "again: if that is meant, trigger the task, which runs from the beginning."
    )
    return NotAllowed(RETRY_ACTION, "missing the steps of that execution", hint)


def restore_entries(
    execution: Execution,
    now: datetime,
    cancelled_calls: Collection[int] = (),
    retried_calls: Collection[int] = (),
    *,
    from_step: int | None = None,
) -> tuple[JournalEntry, ...]:
    """Return the journal that a manually retried execution continues from.

    The entries that made it fail are repeated: at the journal's end they are dropped, and a failed call
    that other entries follow waits again, as a new task. Entries that the handler requested after it
    received the failure are dropped too. Everything else is kept, including failures that the handler
    caught, so nothing that succeeded runs again.

    `cancelled_calls` were cancelled before the handler received a result. `retried_calls` have failed,
    and their tasks were retried since: they are awaited, not created again. With `from_step`, that entry
    and all after it are forgotten, whatever their results.
    """
    again = {*cancelled_calls, *retried_calls}
    steps = sorted(keep_before(execution.steps, from_step), key=lambda step: step.number)
    failed_by = execution.failure_cause
    if failed_by is not None:
        again.update(failed_by.steps)
        steps = [step for step in steps if step.number <= failed_by.position]
        while steps and steps[-1].number in {*failed_by.steps} - {*retried_calls}:
            steps.pop()

    return tuple(
        _reset_call(step, execution, now, is_made=step.number in retried_calls)
        if step.number in again
        else _keep_entry(step, execution)
        for step in steps
    )


def keep_before(steps: Iterable[StepRecord], from_step: int | None) -> list[StepRecord]:
    """Return the steps before the first one that is forgotten, or all of them if None."""
    return [step for step in steps if from_step is None or step.number < from_step]


def require_step(execution: Execution, from_step: int) -> None:
    """Check that an execution has a step of that number."""
    last = max((step.number for step in execution.steps), default=0)
    if not 1 <= from_step <= last:
        hint = "It has no steps: leave this out."
        if last:
            hint = f"Give the number of one of its steps, from 1 to {last}."
        raise InvalidInput("fromStep", f"is {from_step}, and {execution.id} has no such step", hint)


def restore_usage(execution: Execution, entries: Collection[JournalEntry]) -> RunUsage:
    """Return the usage of the ended execution, of which a replay of the kept entries reports a part again."""
    if not entries:
        return RunUsage(queries=execution.queries, tokens=execution.tokens)
    calls = [each for each in entries if each.kind is StepKind.CALL]
    lost = [each for each in execution.steps if each.number > len(entries) and each.kind is not StepKind.CALL]
    return RunUsage(
        queries=execution.queries,
        tokens=execution.tokens,
        step_queries=execution.queries - sum(each.queries or 0 for each in lost),
        step_tokens=execution.tokens - sum(each.tokens or 0 for each in lost),
        called_queries=sum(each.queries or 0 for each in calls),
        called_tokens=sum(each.tokens or 0 for each in calls),
    )


def _keep_entry(step: StepRecord, execution: Execution) -> JournalEntry:
    is_waiting = step.kind is StepKind.CALL and step.status is StepStatus.WAITING
    is_made = is_waiting and (step.is_made or step.number <= execution.calls_made)
    return JournalEntry.from_record(step.model_copy(update={"is_made": is_made or None}), execution.id)


def _reset_call(step: StepRecord, execution: Execution, now: datetime, *, is_made: bool) -> JournalEntry:
    """Return a call that is awaited again.

    Unless its task exists already (`is_made`), the call is created again, under a new id.
    """
    child = step.child if is_made else _next_call_id(step, execution)
    record = StepRecord(
        number=step.number,
        kind=step.kind,
        name=step.name,
        started_at=now,
        child=child,
        is_made=is_made,
        is_owners=step.is_owners,
    )
    return JournalEntry.from_record(record, execution.id)


def _next_call_id(step: StepRecord, execution: Execution) -> str:
    if step.child is None:
        return call_id(execution.task_id, execution.id, step.number, execution.attempt_count + 1)
    return f"call-{hashlib.sha256(step.child.encode()).hexdigest()[:32]}"
