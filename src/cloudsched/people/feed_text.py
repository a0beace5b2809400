"""The iCalendar text of a feed (RFC 5545): past and coming occurrences of an owner's tasks, each an event."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.recurrence.allowance import TASK_STEPS, limit_search
from cloudsched.domain.recurrence.icalendar import escape_text, join_lines
from cloudsched.people.calendar_events import (
    AFTER,
    CALENDAR_HEAD,
    MAX_BYTES,
    CalendarEvent,
    describe_calendar,
    execution_event,
    fit_events,
    list_upcoming,
    occurrence_event,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task

BEFORE: Final = timedelta(days=30)
REFRESH: Final = "PT1H"
"""The interval at which programs should ask again (RFC 7986). Google ignores it, and asks every 12 to 24 hours."""
MAX_PAST: Final = 100
MAX_UPCOMING: Final = 200
"""The most past and coming occurrences of one task that a feed shows: the latest, and the next."""
MAX_EVENTS: Final = 3_000
"""The most events that a feed shows."""


class FeedTask(NamedTuple):
    """A task of a feed, and those of its executions that the feed may show."""

    task: Task
    executions: Sequence[Execution] = ()
    is_cut: bool = False
    """True if there are more executions than were read."""


def build_feed(tasks: Iterable[FeedTask], now: datetime, *, title: str, is_cut: bool = False) -> str:
    """Return the iCalendar text of a feed. `is_cut` says that there are more tasks than were read."""
    cut: list[str] = []
    if is_cut:
        cut.append("It does not show all tasks.")
    shown: list[bytes] = []
    left = MAX_BYTES

    for task, executions, has_more in tasks:
        some, is_task_cut = _task_events(task, executions, now)
        if has_more:
            cut.append("It does not show all past occurrences.")
        if is_task_cut:
            cut.append(f"It shows {MAX_PAST} past and {MAX_UPCOMING} coming occurrences of each task at most.")
        fitting = fit_events(some[: MAX_EVENTS - len(shown)], left)
        shown += fitting
        left -= sum(map(len, fitting))
        if len(fitting) < len(some):
            cut.append(f"It shows {len(shown)} events, as many as fit.")
            break

    about = " ".join([f"From {BEFORE.days} days ago to {AFTER.days} days ahead.", *dict.fromkeys(cut)])
    lines = [*CALENDAR_HEAD]
    lines += [f"{name}:{escape_text(title)}" for name in ("NAME", "X-WR-CALNAME")]
    lines += describe_calendar(about)
    lines += [f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}", f"X-PUBLISHED-TTL:{REFRESH}"]
    return "".join([join_lines(lines), *(text.decode() for text in shown), join_lines(["END:VCALENDAR"])])


def _task_events(
    task: Task,
    executions: Sequence[Execution],
    now: datetime,
) -> tuple[list[CalendarEvent], bool]:
    """Return a task's events in the window, by time, and whether there are more than a feed shows."""
    past = {each.id: each for each in executions if now - BEFORE <= each.scheduled_for <= now + AFTER}
    shown = sorted(past.values(), key=lambda each: each.scheduled_for)[-MAX_PAST:]
    with limit_search(TASK_STEPS):
        upcoming = list_upcoming(task, now + AFTER, MAX_UPCOMING)
    events = [execution_event(task, each) for each in shown]
    known = {event.uid for event in events}
    events += [event for at in upcoming.shown if (event := occurrence_event(task, at)).uid not in known]
    is_cut = upcoming.has_given_up or (upcoming.following is not None and upcoming.following <= now + AFTER)
    return events, is_cut or len(past) > MAX_PAST
