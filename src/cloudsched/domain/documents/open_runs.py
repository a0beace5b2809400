"""What an open run looks like from outside: its status as an execution, and where its task stands in lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import FAILURE_STATUSES, OPEN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.documents.task import Task


def get_open_status(run: Run) -> ExecutionStatus | None:
    """Return the status of a run as an open execution; None if its handler has never been started."""
    if run.suspension is not None:
        return ExecutionStatus.SUSPENDED
    if run.lease is not None:
        return ExecutionStatus.RUNNING
    return None if run.started_at is None else ExecutionStatus.RETRYING


def find_open_position(task: Task) -> tuple[ExecutionStatus, datetime] | None:
    """Return where lists of open executions have a task: the status of its most active run, and since when.

    None if nothing of it is open, or if no list has it.
    """
    if not task.runs or task.delivery is not None or task.deleted_at is not None:
        return None
    positions = [(status, _get_since(run, status)) for run in task.runs if (status := get_open_status(run))]
    return min(positions, key=lambda one: (OPEN_STATUSES.index(one[0]), one[1]), default=None)


def is_listed(execution: Execution) -> bool:
    """Return whether the lists across tasks have a record: open executions are listed by their tasks."""
    return execution.handler is not None and execution.status.is_final


def is_failure(execution: Execution) -> bool:
    """Return whether a record is among those that lists have first."""
    return execution.status in FAILURE_STATUSES


def _get_since(run: Run, status: ExecutionStatus) -> datetime:
    if status is ExecutionStatus.SUSPENDED and run.suspension is not None:
        return run.suspension.at
    return run.lease.started_at if run.lease is not None else run.due_at
