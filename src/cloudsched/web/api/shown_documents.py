"""Turns stored documents into the models of responses that show them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents import shown_documents
from cloudsched.domain.documents.open_runs import get_open_status
from cloudsched.domain.documents.task import PublicTask
from cloudsched.domain.transitions.offers import offered_runs
from cloudsched.domain.transitions.records import drop_latest_run, keep_recent

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import ExecutionStatus, Run
    from cloudsched.domain.documents.person import Person
    from cloudsched.domain.documents.task import Task


def show_task(task: Task) -> shown_documents.Task:
    """Return a stored task as callers see it. It was validated when it was read."""
    state = task.__dict__
    offered = offered_runs(task)
    return _blank().model_copy(  # a third of the time that `model_construct` takes
        update={
            **{name: state[name] for name in PublicTask.model_fields},
            "message": _message(task),
            "is_running": any(run.lease for run in task.runs),
            "offered_at": offered[0].due_at if offered else None,
            "recent_statuses": _find_recent(task),
            "dispatch_deferred": True if task.deferred else None,
        }
    )


def show_person(person: Person) -> shown_documents.Person:
    """Return a stored person as callers see them. They were validated when they were read."""
    fields = shown_documents.Person.model_fields
    return shown_documents.Person.model_construct(**{name: getattr(person, name) for name in fields})


def _find_recent(task: Task) -> tuple[ExecutionStatus, ...]:
    """Return the statuses of the latest executions. One that failed and is being retried is open, and not over."""
    runs = sorted(task.runs, key=lambda run: run.scheduled_for)
    open_ones = [status for run in runs if (status := get_open_status(run))]
    is_again = any(run.execution_id == task.last_execution_id for run in runs)
    return keep_recent(drop_latest_run(task.recent_outcomes) if is_again else task.recent_outcomes, *open_ones)


@lru_cache(maxsize=1)
def _blank() -> shown_documents.Task:
    values: dict[str, Any] = {"is_running": False}  # the others are those of the task
    return shown_documents.Task.model_construct(**values)


def _message(task: Task) -> str:
    message = task.message
    if (refusal := next(filter(None, map(_quota_refusal, task.runs)), None)) is not None:
        message = f"{message} Calls wait for room: {refusal}".strip()
    if task.deferred:
        message = f"{message} Saved; its dispatch is deferred until the queue can be reached.".strip()
    return message


def _quota_refusal(run: Run) -> str | None:
    return None if run.suspension is None else run.suspension.quota_refusal
