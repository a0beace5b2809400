"""The records of runs: the effect of a run's end on its task's executions, and on the task itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    NOT_RUN_STATUSES,
    CalledBy,
    Execution,
    ExecutionStatus,
    Run,
    Trigger,
)
from cloudsched.domain.documents.json_limits import MAX_STORED, stored_size
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.definitions import describe_record

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task

MAX_RECENT: Final = 12
"""The number of a task's latest executions whose final statuses its document has."""
_TIME_LENGTH: Final = len("20270101T090000")
"""The length of the time that begins the id of a scheduled execution, and by which these ids are sorted."""
_FOUND_BY: Final = ("title", "handler", "category", "labels")
"""The fields of a task that its records copy as they were then."""


def last_run_fields(task: Task, run: Run, status: ExecutionStatus, now: datetime) -> dict[str, Any]:
    """Return the task's fields about a run that has finished. The run due last says if it is failing.

    A run that was due before it, such as a retry or a backfill, has its record and its place among the recent outcomes.
    """
    is_again = run.execution_id == task.last_execution_id
    recent = drop_latest_run(task.recent_outcomes) if is_again else task.recent_outcomes
    last: dict[str, Any] = {"recent_outcomes": keep_recent(recent, status)}
    is_latest = _is_latest(task, run)
    if is_latest or task.last_execution_id is None:
        last["last_execution_id"] = run.execution_id
    is_later = task.outcome is None or is_latest
    is_later = is_later or run.execution_id[:_TIME_LENGTH] >= (task.outcome_execution_id or "")[:_TIME_LENGTH]
    if run.trigger is Trigger.SCHEDULE and is_later:
        last |= {"outcome": status, "outcome_execution_id": run.execution_id}
    if is_latest and status not in NOT_RUN_STATUSES:  # as in `says_how_task_is`
        failures = 0
        if status in FAILURE_STATUSES:
            is_another = task.latest_run_at != run.scheduled_for
            failures = max(1, task.consecutive_failures + is_another)
        since = (task.failing_since or now) if failures else None
        last |= {"consecutive_failures": failures, "failing_since": since, "latest_run_at": run.scheduled_for}
    return last


def says_how_task_is(task: Task, run: Run, status: ExecutionStatus) -> bool:
    """Return whether a run of this status decides if its task is failing: it ran, and none that ran was due later."""
    return _is_latest(task, run) and status not in NOT_RUN_STATUSES


def _is_latest(task: Task, run: Run) -> bool:
    """Return whether no run that has run was due later. A backfill is of the past, whenever it runs."""
    is_backfill = run.trigger is Trigger.BACKFILL
    return not is_backfill and (task.latest_run_at is None or run.scheduled_for >= task.latest_run_at)


def keep_recent(recent: Sequence[ExecutionStatus], *more: ExecutionStatus) -> tuple[ExecutionStatus, ...]:
    """Return the final statuses of the latest executions, with more of them."""
    return (*recent, *more)[-MAX_RECENT:]


def drop_latest_run(recent: Sequence[ExecutionStatus]) -> tuple[ExecutionStatus, ...]:
    """Return the outcomes without the latest one that is not SKIPPED: its execution has been retried."""
    for index in range(len(recent) - 1, -1, -1):
        if recent[index] is not ExecutionStatus.SKIPPED:
            return (*recent[:index], *recent[index + 1 :])
    return tuple(recent)


def execution_record(
    task: Task, run: Run, status: ExecutionStatus, now: datetime, *, message: str | None = None, **more: Any
) -> Execution:
    """Return the record of a run with this status. The record of a call is kept as long as its task.

    It has the fields by which lists across tasks find it. Records of deliveries do not, since they are in no such list.
    """
    retention = task.execution_retention if task.parent is None else None
    found_by: dict[str, Any] = {} if task.delivery else {name: getattr(task, name) for name in _FOUND_BY}
    if task.parent is not None and found_by:
        found_by["called_by"] = CalledBy(task_id=task.parent.task_id, execution_id=task.parent.execution_id)
    usage, payload, chat = run.usage, run.payload, find_chat(task)
    ran = task if run.definition is None else task.as_begun(run)
    if run.definition is not None:
        found_by = {**found_by, "handler": ran.handler} if found_by else found_by
        payload = ran.payload if payload is None and ran.payload != task.payload else payload
    own: dict[str, Any] = {} if payload is None else _payload_fields(payload, more.get("content"))
    if run.started_at is not None and status.is_final and status is not ExecutionStatus.SUCCEEDED:
        own["began_with"] = describe_record(task, run)
    return Execution.build(
        id=run.execution_id,
        task_id=task.id,
        owner=task.owner,
        scheduled_for=run.scheduled_for,
        started_at=run.started_at,
        finished_at=now if status.is_final else None,
        attempts=run.attempts,
        omitted_attempts=run.omitted_attempts,
        status=status,
        message=message or run.note,
        progress=run.progress,
        trigger=run.trigger,
        defined_by=run.defined_by or ran.defined_by,
        log=run.log,
        calls_made=run.calls_made,
        queries=0 if usage is None else usage.queries,
        tokens=0 if usage is None else usage.tokens,
        estimated_queries=task.query_per_execution or None,
        estimated_tokens=task.tokens_per_execution or None,
        expire_at=add_duration(now, retention) if status.is_final and retention is not None else None,
        **({} if chat is None else {"chat_id": chat, "message_id": derive_message_id(task.id, run.execution_id)}),
        **{"error": run.attempts[-1].error if run.attempts else None, **found_by, **own, **more},
    )


def _payload_fields(payload: dict[str, Any], content: object) -> dict[str, Any]:
    """Return the record's fields for the payload of a trigger. A result that leaves no room for it matters more."""
    if content is not None and stored_size(payload) + stored_size(content) > MAX_STORED:
        return {"has_unrecorded_payload": True}
    return {"payload": payload}


def derive_message_id(task_id: str, execution_id: str, number: int = 1) -> str:
    """Return the id of a message that an execution makes, the same in every attempt."""
    return f"{task_id}-{execution_id}-{number}"


def find_chat(task: Task) -> str | None:
    """Return the chat that a task comes from, if it comes from one."""
    return task.source.chat_id if task.source is not None else None
