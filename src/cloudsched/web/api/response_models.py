"""The models of responses that no stored document has: the API answers with them, and OpenAPI describes them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.document import Instant  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.responses import Occurrence  # noqa: TC001 - pydantic reads it
from cloudsched.domain.documents.task import Owner, PublicTask
from cloudsched.domain.transitions.offers import offered_runs

if TYPE_CHECKING:
    from cloudsched.domain.documents import person as stored_person
    from cloudsched.domain.documents import task as stored
    from cloudsched.domain.documents.execution import Run


class Task(PublicTask):
    """One task: its spec and its state."""

    is_running: bool
    """Whether a handler is running for it."""
    offered_at: Instant | None = None
    """Since when it has been waiting for a worker, if it is."""
    dispatch_deferred: bool | None = None
    """A dispatch could not be created yet; the sweep will create it."""
    upcoming: tuple[Occurrence, ...] | None = None
    """Its next occurrences; only in the answer to ``validateOnly``."""

    @classmethod
    def from_stored_task(cls, task: stored.Task) -> Task:
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


class Person(PersonSpec):
    """A person's contacts and preferences."""

    owner: Owner
    created_at: Instant
    updated_at: Instant

    @classmethod
    def from_stored_person(cls, person: stored_person.Person) -> Person:
        """Return a stored person as callers see them. They were validated when they were read."""
        return cls.model_construct(**{name: getattr(person, name) for name in cls.model_fields})


@lru_cache(maxsize=1)
def _blank() -> Task:
    values: dict[str, Any] = {"is_running": False}  # the others are those of the task
    return Task.model_construct(**values)


def _message(task: stored.Task) -> str:
    message = task.message
    if (refusal := next(filter(None, map(_quota_refusal, task.runs)), None)) is not None:
        message = f"{message} Calls wait for room: {refusal}".strip()
    if task.deferred:
        message = f"{message} Saved; its dispatch is deferred until the queue can be reached.".strip()
    return message


def _quota_refusal(run: Run) -> str | None:
    return None if run.suspension is None else run.suspension.quota_refusal
