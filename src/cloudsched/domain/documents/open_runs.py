"""What an open run looks like from outside: its status as an execution, and where its task stands in lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import FAILURE_STATUSES, OPEN_STATUSES, ExecutionStatus

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.documents.task import Task


def _find_position(run: Run) -> tuple[ExecutionStatus, datetime] | None:
    """Return the status of a run as an open execution, and since when; None if its handler was never started."""
    if run.suspension is not None:
        return ExecutionStatus.SUSPENDED, run.suspension.at
    if run.lease is not None:
        return ExecutionStatus.RUNNING, run.lease.started_at
    return None if run.started_at is None else (ExecutionStatus.RETRYING, run.due_at)


def get_open_status(run: Run) -> ExecutionStatus | None:
    """Return the status of a run as an open execution; None if its handler was never started."""
    position = _find_position(run)
    return None if position is None else position[0]


def find_open_position(task: Task) -> tuple[ExecutionStatus, datetime] | None:
    """Return where lists of open executions have a task: the status of its most active run, and since when.

    None if nothing of it is open, or if no list has it.
    """
    if not task.runs or task.delivery is not None or task.deleted_at is not None:
        return None
    positions = [position for run in task.runs if (position := _find_position(run))]
    if len(positions) > 1:
        return min(positions, key=lambda one: (OPEN_STATUSES.index(one[0]), one[1]))
    return positions[0] if positions else None


def is_listed(execution: Execution) -> bool:
    """Return whether the lists across tasks have a record: open executions are listed by their tasks."""
    return execution.handler is not None and execution.status.is_final


def is_failure(execution: Execution) -> bool:
    """Return whether a record is among those that lists have first."""
    return execution.status in FAILURE_STATUSES
