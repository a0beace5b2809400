"""A job of another scheduler, as it becomes a task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule

MAX_FILE_BYTES = 10_000_000
"""The largest file that is read."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job that can become a task."""

    id: str
    """The id of its task: the same whenever the same file is read."""
    name: str
    """What ``--map`` is compared with: a job's name, or a command."""
    place: str
    """Where it stands in the file, for people."""
    title: str
    schedule: Schedule | str
    timezone: str | None
    """The zone of a schedule in words."""
    payload: dict[str, Any]
    """The whole job: what a handler for any job takes."""
    body: dict[str, Any] | None
    """What a handler of this job alone takes; None if there is nothing that could be a payload."""
    left_out: tuple[str, ...] = ()
    """What a task cannot take over, for people."""
    more: dict[str, Any] = field(default_factory=dict)
    """Other fields of the task, by their Python names."""
    is_paused: bool = False


class Refusal(Exception):
    """A job cannot become a task."""


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What a file has."""

    jobs: list[Job]
    refusals: list[str]
    """Each job that cannot become a task: where it stands, why, and what to do."""
    notes: list[str]
    """What people should know beforehand."""
