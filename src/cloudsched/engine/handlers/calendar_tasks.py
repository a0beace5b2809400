"""The built-in handlers of the system's own tasks for calendars: fetch one again, and plan its tasks again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from cloudsched.domain.transitions.outcome import Snooze
from cloudsched.engine.handlers.handler import builtin_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched.engine.handlers.registry import Registry

REFRESH_HANDLER: Final = "cloudsched.calendar.refresh"
"""The name of the handler of the tasks that fetch calendars from their URLs."""
REPLAN_HANDLER: Final = "cloudsched.calendar.replan"
"""The name of the handler of the tasks that plan a changed calendar's tasks again."""
_AGAIN_AFTER: Final = timedelta(minutes=1)


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


def with_calendars(registry: Registry, jobs: Callable[[], CalendarJobs]) -> Registry:
    """Return a registry that also has the handlers for calendars."""

    def run_refresh(payload: dict[str, Any]) -> str:
        return jobs().refresh(str(payload["calendar"]))

    def run_replan(payload: dict[str, Any]) -> Snooze | None:
        if jobs().replan(ChangeToFollow.from_payload(payload)):
            return None
        return Snooze(_AGAIN_AFTER, "There are more tasks to plan again, or some that are just being stored.")

    return registry.with_builtin(
        builtin_handler(REFRESH_HANDLER, run_refresh, takes_context=False),
        builtin_handler(REPLAN_HANDLER, run_replan, takes_context=False),
    )
