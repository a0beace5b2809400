"""Work that is fetched: a task that names a queue waits in the store until a worker takes it.

What comes due is *offered* instead of run. Each offer lies in a lane: its queue, or its queue and the skill that it
asks for; a worker looks only into the lanes of which it can do everything. There the most urgent priority comes first,
and within it what came due first. An offer is derived from the task's runs whenever the task is written, so it is there
exactly as long as one of them waits for a worker.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import StringConstraints, model_validator

from cloudsched.domain.documents.document import Value
from cloudsched.domain.documents.execution import Awaits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task

MAX_SKILLS = 20
"""How many skills one worker may have: each is a lane that it looks into (Firestore's ``IN`` takes 30 values)."""

QueueName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
"""Letters, digits, hyphens and underscores."""
Skill = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]
"""Letters, digits, hyphens, underscores and dots."""


class Pull(Value):
    """Who runs a task: a worker of this queue. The queue alone may stand for all of it."""

    queue: QueueName
    skill: Skill | None = None
    """What the worker must be able to do, such as ``cuda``; None if any worker of the queue will do."""

    @model_validator(mode="before")
    @classmethod
    def _queue_alone(cls, value: object) -> object:
        return {"queue": value} if isinstance(value, str) else value

    @property
    def lane(self) -> str:
        """Where its offers lie."""
        return lane_of(self.queue, self.skill)


class Offer(Value):
    """Where workers find a task."""

    lane: str
    order: str
    """Its place in the lane, as text that sorts: the priority's rank, then when the run came due."""


def lane_of(queue: str, skill: str | None = None) -> str:
    """Return the lane of a queue's tasks that ask for a skill, or for none."""
    return queue if skill is None else f"{queue}/{skill}"


def lanes_of(queue: str, skills: Iterable[str]) -> tuple[str, ...]:
    """Return the lanes of a queue that a worker with these skills looks into."""
    return (lane_of(queue), *(lane_of(queue, skill) for skill in sorted(set(skills))))


def offered_runs(task: Task) -> list[Run]:
    """Return the runs that wait for a worker, what came due first at the head: the task's offer is about that one."""
    if task.pull is None or not task.is_active:
        return []
    waiting = [run for run in task.runs if run.awaits is Awaits.WORKER]
    return sorted(waiting, key=lambda run: (run.due_at, run.execution_id))


def expires_at(task: Task, run: Run) -> datetime | None:
    """Return when a run that waits for a worker has waited for too long, or None if it may wait for ever."""
    return run.due_at + task.expiration if task.expiration and run.started_at is None else None


def offering(task: Task, now: datetime) -> dict[str, Any]:
    """Return what is to change in a task so that what is due is offered, and nothing else is.

    A run that waits for its turn at a lock stays as it is: the dispatch that wakes it offers it again.
    """
    if task.pull is None:
        if not any(run.awaits for run in task.runs):
            return {} if task.offer is None else {"offer": None}
        return {"offer": None, "runs": tuple(run.model_copy(update={"awaits": None}) for run in task.runs)}
    if task.is_active:
        runs = tuple(_offered(run, now) for run in task.runs)
        task = task.model_copy(update={"runs": runs})
    return {"runs": task.runs, "offer": _offer(task)}


def _offered(run: Run, now: datetime) -> Run:
    if run.lease is not None or run.awaits is not None or run.due_at > now:
        return run
    return run.model_copy(update={"awaits": Awaits.WORKER})


def _offer(task: Task) -> Offer | None:
    runs = offered_runs(task)
    if not runs or task.pull is None:
        return None
    since = runs[0].due_at.astimezone(UTC).isoformat(timespec="microseconds")
    return Offer(lane=task.pull.lane, order=f"{task.priority.rank} {since}")
