"""The built-in handlers of the system's own tasks for calendars: fetch one again, and plan its tasks again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from cloudsched.domain.documents.outcome import Snooze
from cloudsched.engine.handlers.handler import builtin_handler

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.handlers.registry import Registry

REFRESH_HANDLER: Final = "cloudsched.calendar.refresh"
"""The name of the handler of the tasks that fetch calendars from their URLs."""
REPLAN_HANDLER: Final = "cloudsched.calendar.replan"
"""The name of the handler of the tasks that plan a changed calendar's tasks again."""
_AGAIN_AFTER: Final = timedelta(minutes=1)


class CalendarJobs(Protocol):
    """What the system does with calendars."""

    def refresh(self, key: str) -> str:
        """Fetch a calendar again; return what was found."""
        ...

    def replan(self, key: str, since: datetime) -> bool:
        """Plan tasks of a calendar again, whose writer began at an instant; return whether to stop."""
        ...


def with_calendars(registry: Registry, jobs: Callable[[], CalendarJobs]) -> Registry:
    """Return a registry that also has the handlers for calendars."""

    def run_refresh(payload: dict[str, Any]) -> str:
        return jobs().refresh(str(payload["calendar"]))

    def run_replan(payload: dict[str, Any]) -> Snooze | None:
        if jobs().replan(str(payload["calendar"]), datetime.fromisoformat(str(payload["since"]))):
            return None
        return Snooze(_AGAIN_AFTER, "There are more tasks to plan again, or some that are just being stored.")

    return registry.with_builtin(
        builtin_handler(REFRESH_HANDLER, run_refresh, takes_context=False),
        builtin_handler(REPLAN_HANDLER, run_replan, takes_context=False),
    )
