"""List a task's executions: stored records, together with the executions that are running or suspended.

An open execution has no record yet: it is part of its task's document until it finishes. Readers see it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.records import execution_record
from cloudsched.engine.ports.pages import Page
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext


def list_executions(engine: EngineContext, task: Task, limit: int, page_token: str | None) -> Page[Execution]:
    """Return a page of a task's executions, the latest first; open ones are on the first page."""
    page = engine.store.list_executions(task.id, limit=limit, page_token=page_token)
    return page if page_token else merge_open_runs(task, page)


def load_execution(engine: EngineContext, task: Task, execution_id: str) -> Execution:
    """Return one execution, open or finished. Raises NotFound."""
    run = task.find_run(execution_id)
    if run and (run.lease or run.suspension):
        return open_run_as_execution(task, run, engine.archive.load(task.id, run) if run.steps else ())
    execution = engine.store.load_execution(task.id, execution_id)
    if execution is None:
        raise NotFound("execution", execution_id)
    return engine.archive.load_execution(execution)


def load_sealed_log(engine: EngineContext, task: Task, execution_id: str) -> tuple[str | None, str | None]:
    """Return which handler an execution ran, and what it has logged, encrypted; None if nothing. Raises NotFound."""
    run = task.find_run(execution_id)
    if run is not None:
        return task.as_begun(run).handler, run.log
    execution = engine.store.load_execution(task.id, execution_id)
    if execution is None:
        raise NotFound("execution", execution_id)
    return execution.handler, execution.log


def open_run_as_execution(task: Task, run: Run, journal: Iterable[JournalEntry] = ()) -> Execution:
    """Return an open run as an execution, with the steps of its journal."""
    steps = tuple(entry.to_record() for entry in journal)
    if run.suspension is not None:
        message = f"It {run.suspension.reason.rstrip('.')}."
        return execution_record(task, run, ExecutionStatus.SUSPENDED, task.updated_at, message=message, steps=steps)
    if run.lease is None:
        return execution_record(task, run, ExecutionStatus.RETRYING, task.updated_at, next_attempt_at=run.due_at)
    record = execution_record(task, run, ExecutionStatus.RUNNING, task.updated_at, steps=steps)
    return record.model_copy(update={"lease_until": run.lease.until, "worker": run.lease.worker})


def merge_open_runs(task: Task, first_page: Page[Execution]) -> Page[Execution]:
    """Return the first page of a task's executions with its running and suspended ones sorted in."""
    open_executions = {
        run.execution_id: open_run_as_execution(task, run) for run in task.runs if run.lease or run.suspension
    }
    finished = [execution for execution in first_page.items if execution.id not in open_executions]
    items = sorted([*open_executions.values(), *finished], key=lambda one: (one.scheduled_for, one.id), reverse=True)
    return Page(items, first_page.next_page_token)
