"""The executions of a task as a reader sees them: stored records, and what is running at this moment.

A running attempt is not a record yet: it lives in its task's document until it ends. Readers see it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.lifecycle import execution_record
from cloudsched.engine.ports.store import Page

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task


def open_run_as_execution(task: Task, run: Run, journal: Iterable[JournalEntry] = ()) -> Execution:
    """Return a run that is under way, or suspended, as an execution, with what its journal says."""
    steps = tuple(entry.to_record() for entry in journal)
    if run.suspension is not None:
        why = f"It {run.suspension.reason.rstrip('.')}."
        return execution_record(task, run, ExecutionStatus.SUSPENDED, task.updated_at, message=why, steps=steps)
    return execution_record(task, run, ExecutionStatus.RUNNING, task.updated_at, steps=steps)


def merge_open_runs(task: Task, first_page: Page[Execution]) -> Page[Execution]:
    """Return the first page of a task's executions with those that are under way in their places."""
    under_way = {run.execution_id: open_run_as_execution(task, run) for run in task.runs if run.lease or run.suspension}
    ended = [execution for execution in first_page.items if execution.id not in under_way]
    items = sorted([*under_way.values(), *ended], key=lambda one: (one.scheduled_for, one.id), reverse=True)
    return Page(items, first_page.next_page_token)
