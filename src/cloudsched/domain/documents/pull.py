"""Pull: a task that names a queue waits in the store until a worker claims it.

A due run is *offered* instead of run. Each offer has a queue key: its queue, or its queue and the skill that
it requires. A worker reads only the keys whose offers it can run. Offers are ordered by priority, then by due
time. An offer is derived from the task's runs whenever the task is written, so it exists exactly as long as
one of them waits for a worker.

Workers do not search the tasks themselves: each offer is also a small document of its own (`OfferEntry`),
which is written or deleted by the commit that changes it. So neither their queries nor their listeners see
other changes of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import StringConstraints, model_validator

from cloudsched.domain.documents.document import Document, InputModel, WireModel

MAX_SKILLS = 20
"""The most skills of one worker: each is a queue key that it reads (Firestore's ``IN`` takes 30 values)."""

QueueName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Letters, digits, hyphens and underscores."""
Skill = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
"""Letters, digits, hyphens, underscores and dots."""


class Pull(InputModel):
    """The queue whose workers run a task. On the wire, the queue's name alone may replace the object."""

    queue: QueueName
    skill: Skill | None = None
    """The skill that the worker must have, such as ``cuda``, or None if any worker of the queue may run
    it."""

    @model_validator(mode="before")
    @classmethod
    def _expand_queue(cls, value: object) -> object:
        return {"queue": value} if isinstance(value, str) else value

    @property
    def queue_key(self) -> str:
        """The key under which its offers are stored."""
        return queue_key(self.queue, self.skill)


class Offer(WireModel):
    """The entry by which workers find a task."""

    queue_key: str
    order: str
    """Its sort key among the offers of that queue key: the priority's rank, then the due time, as text."""


class OfferEntry(Document):
    """A task's offer as workers find it, with the fields that determine its workers. ``offers/{taskId}``."""

    task_id: str
    owner: str
    handler: str
    queue_key: str
    order: str
    is_code_call: bool = False
    """True if a handler's code made the task. See `Task.is_made_by_code`."""
    is_for_servers: bool | None = None
    """True if no user wrote or edited the task or the one at the top of its tree, so that no user may claim
    it."""


def queue_key(queue: str, skill: str | None = None) -> str:
    """Return the queue key of tasks that require a skill, or none."""
    return queue if skill is None else f"{queue}/{skill}"


def queue_keys(queue: str, skills: Iterable[str]) -> tuple[str, ...]:
    """Return the queue keys that a worker with these skills reads."""
    return (queue_key(queue), *(queue_key(queue, skill) for skill in sorted(set(skills))))
