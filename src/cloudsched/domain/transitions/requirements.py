"""The requirements of changes that callers ask for. Each check raises NotAllowed or InvalidInput if a task lacks one.

`manual_verbs` asks the same checks, so exactly the verbs that would be accepted are offered.
"""

from __future__ import annotations

from datetime import datetime

from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Run
from cloudsched.domain.documents.task import MAX_OPEN_RUNS, Task, TaskStatus
from cloudsched.domain.transitions.growth import require_payload_room
from cloudsched.domain.transitions.planning import find_budget_pause
from cloudsched.errors import NotAllowed

_S = TaskStatus

FINAL_STATUSES = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED, _S.EXPIRED})
"""The final statuses: nothing of the task starts any more."""
RETRYABLE_STATUSES = (_S.ACTIVE, _S.COMPLETED, _S.FAILED, _S.EXPIRED)
"""The task statuses in which an execution may be retried manually."""
RETRY_ACTION = "retry an execution of"


def require_status(task: Task, action: str, *statuses: TaskStatus) -> None:
    """Check that the task has one of these statuses."""
    if task.status not in statuses:
        raise NotAllowed(
            action, task.status, "Give it a new schedule to start it again." * (task.status in FINAL_STATUSES)
        )


def require_budget(task: Task) -> None:
    """Check that a task that a user starts is not paused because its owner's budget is used up."""
    if find_budget_pause(task) is not None:
        raise NotAllowed("start", "paused: its owner's budget is used up", "An admin may raise the budget.")


def require_pausable(task: Task) -> None:
    """Check that an ACTIVE task may be paused."""
    require_status(task, "pause", _S.ACTIVE)


def require_future(task: Task, following: datetime | None) -> None:
    """Check that a paused task would have something to do: `following` is its next occurrence, were it resumed."""
    require_status(task, "resume", _S.PAUSED)
    if following is None and task.is_one_time and task.planned_to is None and not task.runs:
        raise NotAllowed("resume", "PAUSED past its only instant", "Give it a new schedule.")


def require_cancellable(task: Task) -> None:
    """Check that a task may be cancelled."""
    require_status(task, "cancel", _S.ACTIVE, _S.PAUSED)


def require_retryable(task: Task, execution: Execution) -> None:
    """Check that an execution that is not open may have one more attempt, with the payload that it had."""
    if execution.status is ExecutionStatus.SUCCEEDED:  # guard: succeeded run
        raise NotAllowed(RETRY_ACTION, "done with it", "It has succeeded; trigger the task to run it anew.")
    if execution.covers is not None:
        hint = f"Backfill from {execution.scheduled_for.isoformat()} to {execution.covers.until.isoformat()} instead."
        raise NotAllowed(RETRY_ACTION, "past several occurrences with that one record", hint)
    require_status(task, RETRY_ACTION, *RETRYABLE_STATUSES)
    require_free_run(task, "retry")
    require_payload_room(task, added=execution.payload)


def open_run_error(run: Run) -> NotAllowed:
    """Return the error for retrying a run that is still open."""
    is_at = "is running" if run.lease else "is suspended" if run.suspension else "waits to be run"
    hint = f"{run.execution_id} {is_at}, and continues by itself: retry it after it has ended."
    return NotAllowed(RETRY_ACTION, "still at work on it", hint)


def missing_steps_error(reference: str) -> NotAllowed:
    """Return the error for retrying an execution whose steps are gone: completed ones would run again."""
    hint = (
        f"They were stored as {reference!r}, which is not there any more. Without them, what it has done would be done "
        "again: if that is meant, trigger the task, which runs from the beginning."
    )
    return NotAllowed(RETRY_ACTION, "missing the steps of that execution", hint)


def require_free_run(task: Task, action: str) -> None:
    """Check that the task has room for one more open run."""
    if len(task.runs) >= MAX_OPEN_RUNS:
        raise NotAllowed(action, f"busy with {MAX_OPEN_RUNS} open runs", "Wait until some of them have ended.")
