"""What stores count of what is due: tasks in groups that are due at the same times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.recurrence.iso8601 import UTC_EPOCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.category import Category
    from cloudsched.domain.documents.task import Task

TICK: Final = timedelta(microseconds=1)
MAX_GROUPS: Final = 200
"""The most handlers or owners that a grouped count returns."""


@dataclass(frozen=True, slots=True)
class DueQuery:
    """The filters of a count of what is due. A task must match every filter that is set."""

    until: datetime
    """Its next occurrence is before this instant."""
    owner: str | None = None
    handler: str | None = None
    label: str | None = None
    """One of its labels, whole."""
    category: Category | None = None
    since: datetime | None = None
    """Where the count begins. A store may leave out what is due once, and before that."""

    plan: str | None = None
    """The key of their plan. Empty for tasks that have none."""

    def matches(self, task: Task) -> bool:
        """Return whether a task matches the filters that no index by time has."""
        return (
            self.handler in {None, task.handler}
            and self.label in {None, *task.labels}
            and self.category in {None, task.category}
        )


class DueGroup(NamedTuple):
    """Tasks that are due next at one instant, and at the same times from then on."""

    key: str | None
    """The key of their plan (`find_plan_key`). None of a single task that has none."""
    ticks: int
    """The instant, in microseconds since 1970: of thousands of groups, few need it as a datetime."""
    size: int
    task_id: str
    """One of them."""
    task: Task | None = None
    """That one, if it was read anyway."""

    @property
    def next_at(self) -> datetime:
        """Return the instant at which they are due next."""
        return UTC_EPOCH + self.ticks * TICK


@dataclass(frozen=True, slots=True)
class DueGroups:
    """Some groups of tasks, the soonest first."""

    items: Sequence[DueGroup]
    complete_until: datetime | None = None
    """Tasks that are due next at this instant or later are missing. None if none is."""
