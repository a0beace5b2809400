"""Turns stored documents into the models of responses that show them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents import shown_documents
from cloudsched.domain.documents.task import PublicTask
from cloudsched.domain.transitions.offers import offered_runs

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
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
            "dispatch_deferred": True if task.deferred else None,
        }
    )


def show_person(person: Person) -> shown_documents.Person:
    """Return a stored person as callers see them. They were validated when they were read."""
    fields = shown_documents.Person.model_fields
    return shown_documents.Person.model_construct(**{name: getattr(person, name) for name in fields})


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
