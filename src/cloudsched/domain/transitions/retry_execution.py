"""The entries of an execution's journal that a manual retry keeps, and those that it repeats."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import JournalEntry, StepKind, StepRecord, StepStatus, call_id
from cloudsched.domain.documents.usage import RunUsage
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution


def restore_entries(
    execution: Execution,
    now: datetime,
    cancelled_calls: Collection[int] = (),
    retried_calls: Collection[int] = (),
    *,
    from_step: int | None = None,
) -> tuple[JournalEntry, ...]:
    """Return the journal that a manually retried execution continues from.

    The entries that made it fail are repeated: at the journal's end they are dropped, and a failed call that other
    entries follow waits again, as a new task. Entries that the handler requested after it received the failure are
    dropped too. Everything else is kept, including failures that the handler caught, so nothing that succeeded runs
    again.

    `cancelled_calls` were cancelled before the handler received a result. `retried_calls` have failed, and their tasks
    were retried since: they are awaited, not created again. With `from_step`, that entry and all after it are
    forgotten, whatever their results.
    """
    failed_by = execution.failure_cause
    steps = sorted(keep_before(execution.steps, from_step), key=lambda step: step.number)
    if failed_by is not None:
        steps = [step for step in steps if step.number <= failed_by.position]
        while steps and steps[-1].number in {*failed_by.steps} - {*retried_calls}:
            steps.pop()
    again = {*cancelled_calls, *(failed_by.steps if failed_by is not None else ())}
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
        hint = f"Give the number of one of its steps, from 1 to {last}." if last else "It has no steps: leave this out."
        raise InvalidInput("fromStep", f"is {from_step}, and {execution.id} has no such step", hint)


def restore_usage(execution: Execution, entries: Collection[JournalEntry]) -> RunUsage:
    """Return the usage of the ended execution, of which the kept entries have a part."""
    return RunUsage(
        queries=execution.queries,
        tokens=execution.tokens,
        step_queries=sum(each.queries or 0 for each in entries),
        step_tokens=sum(each.tokens or 0 for each in entries),
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
