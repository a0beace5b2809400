"""Which tasks a list has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.domain.documents.task import TaskStatus, Trouble


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list. A task must match every filter that is set.

    Without `due_from` and `due_until` the newest tasks come first (createdAt, then id, both descending). With either,
    the soonest come first (nextExecutionTime, then id, both ascending), and tasks without one are left out: all that
    are not ACTIVE. A label goes only with the first order, an owner and a status: there is an index of each of these.
    Deliveries are listed by their owner alone, and what needs somebody by the reason, perhaps with an owner.

    An index has every other combination, but for what is `looked_for`.

    Raises:
        InvalidInput: A label or a trouble goes with no other filter than these; or it is a list of deliveries of no
            owner.
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
    trouble: Trouble | None = None
    """Why they need somebody. The latest to do so come first, and of those that wait the last to give up."""
    trouble_until: datetime | None = None
    """Of those that wait: which give up before this instant, exclusively. Goes with `trouble`."""
    is_delivery: bool = False
    """Whether to list the deliveries that the system made, and only these, of one owner. No other list has them."""

    def __post_init__(self) -> None:
        if self.is_delivery:
            if self.owner is None or replace(self, is_delivery=False) != TaskQuery(owner=self.owner):
                raise InvalidInput("isDelivery", "goes with an owner and nothing else", "Give the owner alone.")
            return
        if self.trouble is not None or self.trouble_until is not None:
            if self.trouble is None or replace(self, trouble=None, trouble_until=None) != TaskQuery(owner=self.owner):
                raise InvalidInput("trouble", "goes with an owner and nothing else", "Leave the other filters out.")
            return
        if self.label is None:
            return
        others = {"handler": self.handler, "parent": self.parent, "dueFrom": self.due_from, "dueUntil": self.due_until}
        for name, value in others.items():
            if value is not None:
                hint = "Combine it with owner and status only, and leave the order at the newest first."
                raise InvalidInput("label", f"cannot be combined with {name}: no index has both", hint)

    @property
    def is_sorted_by_due_time(self) -> bool:
        """Return whether the soonest come first, rather than the newest."""
        return self.due_from is not None or self.due_until is not None

    @property
    def looked_for(self) -> Mapping[str, str]:
        """The filters that no index has in this order: a page reads what `indexed` finds, and passes over the rest.

        By due time these are the handler and the parent; of the newest tasks of a parent, the handler.
        """
        names = ("handler", "parent") if self.is_sorted_by_due_time else ("handler",) if self.parent is not None else ()
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def indexed(self) -> TaskQuery:
        """The query without the filters in `looked_for`: an index has the rest."""
        kept = {name: None if name in self.looked_for else getattr(self, name) for name in ("handler", "parent")}
        return replace(self, handler=kept["handler"], parent=kept["parent"])

    def require_index(self) -> None:
        """Refuse to count what only reading would find. Raises InvalidInput."""
        refuse_count(self.looked_for)


def refuse_count(looked_for: Mapping[str, str]) -> None:
    """Raise InvalidInput if any filter has no index: an index alone can be counted."""
    for name in looked_for:
        raise InvalidInput(name, "cannot be counted with the other filters: no index has them all", "Read the list.")
