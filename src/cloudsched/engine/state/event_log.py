"""Log the changes of a commit: one line for each change of state, with an ``action`` and the ids.

Cloud Logging shows these lines, and log-based metrics are computed from them. No line has a payload, a result or a
token. A final failure is an ERROR and a retry a WARNING, each with the exception's message and traceback. The rest is
INFO.

============================================  ============================================================
``created edited deleted``                    of a task
``paused resumed completed failed_task``      a task's new status, also ``cancelled_task expired_task``
``run_requested``                             a manual run, or one of a backfill, was added
``queued_for_worker``                         an attempt waits for a worker under the ``queueKey``
``started``                                   an attempt, with ``latenessSeconds``: how long after it was due
``succeeded failed timed_out retrying``       an execution's new status, also ``skipped cancelled expired suspended``
============================================  ============================================================
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run, WaitingFor
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.wakeups import startable_since

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import TaskWrite

log: Final = own_logger("cloudsched.events")

_STATUS_ACTIONS = {
    TaskStatus.ACTIVE: "resumed",
    TaskStatus.PAUSED: "paused",
    TaskStatus.COMPLETED: "completed",
    TaskStatus.FAILED: "failed_task",
    TaskStatus.CANCELLED: "cancelled_task",
    TaskStatus.EXPIRED: "expired_task",
}

_LEVELS = {
    ExecutionStatus.FAILED: logging.ERROR,
    ExecutionStatus.TIMED_OUT: logging.ERROR,
    ExecutionStatus.RETRYING: logging.WARNING,
}
"""The levels of an execution's new status. All others are INFO."""
_TRACEBACK_HEADER = "Traceback (most recent call last):\n"


def log_changes(write: TaskWrite, before: Task | None) -> None:
    """Log the changes of a commit to one task. `before` is the task until then, or None if it is new."""
    if log.isEnabledFor(logging.INFO):
        _log_progress(before, write.task)
    for execution in write.executions:
        if log.isEnabledFor(_LEVELS.get(execution.status, logging.INFO)):
            _log_execution(write.task, execution)


def _log_progress(before: Task | None, task: Task) -> None:
    for action in _task_actions(before, task):
        _log_line(task, action)
    runs_before = {} if before is None else {run.execution_id: run for run in before.runs}
    for run in task.runs:
        _log_run(task, run, runs_before.get(run.execution_id))


def _task_actions(before: Task | None, task: Task) -> list[str]:
    if before is None:
        return ["created"]
    if task.deleted_at is not None:
        return ["deleted"] if before.deleted_at is None else []
    if task.status is not before.status:
        return [_STATUS_ACTIONS[task.status]]
    return ["edited"] if task.revision != before.revision else []


def _log_run(task: Task, run: Run, before: Run | None) -> None:
    old_lease = before.lease if before else None
    if run.lease is not None and (old_lease is None or old_lease.token_hash != run.lease.token_hash):
        worker: dict[str, object] = {} if run.lease.worker is None else {"worker": run.lease.worker}
        _log_line(
            task,
            "started",
            level=logging.INFO if run.resumed_from is None else logging.DEBUG,
            executionId=run.execution_id,
            attempt=run.attempt,
            latenessSeconds=max(0.0, (run.lease.started_at - startable_since(task, run)).total_seconds()),
            **worker,  # type: ignore[arg-type]  # a field, not one of the line's own parts
        )
    elif run.waiting_for is WaitingFor.WORKER and (before is None or before.waiting_for is not WaitingFor.WORKER):
        queue_key = task.workers.queue_key if task.workers else ""
        _log_line(
            task,
            "queued_for_worker",
            executionId=run.execution_id,
            attempt=run.attempt,
            queueKey=queue_key,
        )
    elif run.lease is None and before is None:
        _log_line(task, "run_requested", executionId=run.execution_id, trigger=run.trigger.value)
    elif run.lease is None and run.suspension is not None and before is not None and before.lease is not None:
        is_same_wait = before.resumed_from is not None and before.resumed_from.events == run.suspension.events
        level = logging.DEBUG if is_same_wait else logging.INFO  # it has only looked whether its event has come
        _log_line(task, "suspended", level=level, executionId=run.execution_id, until=run.due_at.isoformat())


def _log_execution(task: Task, execution: Execution) -> None:
    level = _LEVELS.get(execution.status, logging.INFO)
    error = execution.error
    trace = ""
    fields: dict[str, object] = {}
    reason = ""
    if error is not None:
        fields["error"] = error.type

    if level > logging.INFO:
        reason = execution.message or ""
        if error is not None:
            reason = f"{error.type}: {error.message}"
            trace = whole_traceback(error.traceback or "")
    _log_line(
        task,
        execution.status.lower(),
        level=level,
        reason=reason,
        trace=trace,
        executionId=execution.id,
        attempt=execution.attempt_count,
        scheduledFor=execution.scheduled_for.isoformat(),
        **fields,
    )


def whole_traceback(text: str) -> str:
    """Return a stored traceback, of which only the end may have been kept, in the form that Python prints."""
    text = text.rstrip("\n")
    if text.startswith(_TRACEBACK_HEADER):
        return text
    start = text.find('  File "')
    return _TRACEBACK_HEADER + text[start:] if start >= 0 else text


def _log_line(
    task: Task, action: str, *, level: int = logging.INFO, reason: str = "", trace: str = "", **more: object
) -> None:
    fields: dict[str, object] = {
        "action": action,
        "taskId": task.id,
        "owner": task.owner,
        "handler": task.handler,
    }
    if task.labels:
        fields["labels"] = list(task.labels)
    message = f"{action} {more['executionId']}" if "executionId" in more else action
    if level > logging.INFO:  # whoever reads it has perhaps no formatter for the fields
        message += f" of {task.handler!r}, task {task.id}"
    if reason:
        message += f": {' '.join(reason.split())}"
    if not log.isEnabledFor(level):
        return

    line = log.makeRecord(
        log.name,
        level,
        __file__,
        0,
        "%s",
        (message,),
        None,
        extra={**fields, "revision": task.revision, **more},
    )
    line.exc_text = trace or None  # formatters print it like an exception's
    log.handle(line)
