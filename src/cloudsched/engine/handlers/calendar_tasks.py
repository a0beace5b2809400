"""The system's own tasks for calendars: fetch one again, and plan its tasks again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


REFRESH_HANDLER: Final = "cloudsched.calendar.refresh"
"""The name of the handler of the tasks that fetch calendars from their URLs."""
REPLAN_HANDLER: Final = "cloudsched.calendar.replan"
"""The name of the handler of the tasks that plan a changed calendar's tasks again."""


@dataclass(frozen=True, slots=True)
class ChangeToFollow:
    """A change of a calendar, as the task that follows it knows it."""

    id: str
    calendar: str
    """The calendar's id."""
    revision: int
    """The calendar's revision once the change is written."""
    since: datetime
    """When the writer began."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the task."""
        since = self.since.isoformat()
        return {"change": self.id, "calendar": self.calendar, "revision": self.revision, "since": since}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Self:
        """Return the change that a task follows."""
        return cls(
            str(payload["change"]),
            str(payload["calendar"]),
            int(payload["revision"]),
            datetime.fromisoformat(str(payload["since"])),
        )


class CalendarJobs(Protocol):
    """What the system does with calendars."""

    def refresh(self, key: str) -> str:
        """Fetch a calendar again; return what was found."""
        ...

    def replan(self, change: ChangeToFollow) -> bool:
        """Plan tasks of a changed calendar again; return whether nothing is left to do."""
        ...
