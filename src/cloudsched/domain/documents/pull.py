"""Work that is fetched: a task that names a queue waits in the store until a worker takes it.

What comes due is *offered* instead of run. Each offer lies in a lane: its queue, or its queue and the skill that it
asks for; a worker looks only into the lanes of which it can do everything. There the most urgent priority comes first,
and within it what came due first. An offer is derived from the task's runs whenever the task is written, so it is there
exactly as long as one of them waits for a worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import StringConstraints, model_validator

from cloudsched.domain.documents.document import WireModel

if TYPE_CHECKING:
    from collections.abc import Iterable


MAX_SKILLS = 20
"""How many skills one worker may have: each is a lane that it looks into (Firestore's ``IN`` takes 30 values)."""

QueueName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Letters, digits, hyphens and underscores."""
Skill = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
"""Letters, digits, hyphens, underscores and dots."""


class Pull(WireModel):
    """Who runs a task: a worker of this queue. The queue alone may stand for all of it."""

    queue: QueueName
    skill: Skill | None = None
    """What the worker must be able to do, such as ``cuda``; None if any worker of the queue will do."""

    @model_validator(mode="before")
    @classmethod
    def _expand_queue(cls, value: object) -> object:
        return {"queue": value} if isinstance(value, str) else value

    @property
    def queue_key(self) -> str:
        """Where its offers lie."""
        return queue_key(self.queue, self.skill)


class Offer(WireModel):
    """Where workers find a task."""

    queue_key: str
    order: str
    """Its place in the lane, as text that sorts: the priority's rank, then when the run came due."""


def queue_key(queue: str, skill: str | None = None) -> str:
    """Return the lane of a queue's tasks that ask for a skill, or for none."""
    return queue if skill is None else f"{queue}/{skill}"


def queue_keys(queue: str, skills: Iterable[str]) -> tuple[str, ...]:
    """Return the lanes of a queue that a worker with these skills looks into."""
    return (queue_key(queue), *(queue_key(queue, skill) for skill in sorted(set(skills))))
