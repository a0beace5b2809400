"""Which tasks a list has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import TaskStatus


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list. A task must match every filter that is set.

    Without `due_from` and `due_until` the newest tasks come first (createdAt, then id, both descending). With either,
    the soonest come first (nextExecutionTime, then id, both ascending), and tasks without one are left out: all that
    are not ACTIVE. A label goes only with the first order, an owner and a status: there is an index of each of these.

    Raises:
        InvalidInput: There is a label and another filter than these.
    """

    owner: str | None = None
    status: TaskStatus | None = None
    handler: str | None = None
    due_from: datetime | None = None
    """Not before this instant."""
    due_until: datetime | None = None
    """Before this instant, exclusively."""
    parent: str | None = None
    """The id of the task that called them, or whose results they deliver."""
    label: str | None = None
    """One of their labels, whole."""
    is_delivery: bool = False
    """Whether to list the deliveries that the system made, and only these. No other list has them; by the times when
    they are due, none are listed."""

    def __post_init__(self) -> None:
        if self.label is None:
            return
        others = {"handler": self.handler, "parent": self.parent, "dueFrom": self.due_from, "dueUntil": self.due_until}
        for name, value in others.items():
            if value is not None:
                hint = "Combine it with owner and status only, and leave the order at the newest first."
                raise InvalidInput("label", f"cannot be combined with {name}: no index has both", hint)

    @property
    def is_sorted_by_due_time(self) -> bool:
        """Whether the soonest come first, rather than the newest."""
        return self.due_from is not None or self.due_until is not None
