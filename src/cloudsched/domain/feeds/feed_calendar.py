"""A feed: the occurrences of an owner's tasks, from 30 days ago to 90 days ahead, with what became of the past ones.

Each occurrence is an event of its own, in UTC: so every program shows the instants that are meant, whatever it makes of
rules and time zones.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.execution import NOT_RUN_STATUSES
from cloudsched.domain.recurrence.allowance import TASK_STEPS, limit_search
from cloudsched.domain.recurrence.icalendar import escape_text, join_lines
from cloudsched.domain.transitions.planning import occurrence_after
from cloudsched.domain.transitions.zone_plans import occurrence_id
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task


PRODUCT = "PRODID:-//cloudsched//Calendar//EN"
MAX_ABOUT: Final = 1_000
"""How many characters of a description an event shows: each occurrence is one, so a long text would come again and
again."""
MAX_BYTES: Final = 1_000_000
"""How large a calendar is, in UTF-8, but for what it says of itself."""


class CalendarEvent(NamedTuple):
    """An event, as a calendar shows it."""

    uid: str
    """The same for an occurrence before it has run and after."""
    title: str
    description: str
    sequence: int
    modified: datetime
    """When it last changed, as far as a calendar can see."""
    timing: tuple[str, ...]
    """The properties that say when it is, such as DTSTART."""
    duration: timedelta
    category: str
    is_cancelled: bool = False

    def to_lines(self) -> list[str]:
        """Return the event as the content lines of a VEVENT. It blocks no time, since nobody has to attend."""
        stamp = format_utc(self.modified)
        lines = ["BEGIN:VEVENT", f"UID:{escape_text(self.uid)}", f"DTSTAMP:{stamp}", f"LAST-MODIFIED:{stamp}"]
        lines += [*self.timing, f"DURATION:{_format_duration(self.duration)}", f"SEQUENCE:{self.sequence}"]
        lines += [f"SUMMARY:{escape_text(self.title)}", f"CATEGORIES:{escape_text(self.category)}"]
        about = self.description if len(self.description) <= MAX_ABOUT else f"{self.description[: MAX_ABOUT - 1]}…"
        lines += [f"DESCRIPTION:{escape_text(about)}"] if about else []
        lines += [f"STATUS:{'CANCELLED' if self.is_cancelled else 'CONFIRMED'}", "TRANSP:TRANSPARENT", "END:VEVENT"]
        return lines


def occurrence_event(task: Task, at: datetime) -> CalendarEvent:
    """Return the event of an occurrence to come."""
    follows = f"Follows its owner, in {task.timezone} now." if task.schedule.follows_owner else ""
    text = "\n".join(part for part in (task.description, follows) if part)
    return _event(task, occurrence_id(task, at), at, text, task.updated_at)


def execution_event(task: Task, execution: Execution) -> CalendarEvent:
    """Return the event of an occurrence that has come: with its outcome, and cancelled if it was not run."""
    outcome = execution.status.replace("_", " ").capitalize()
    reason = execution.message or (execution.error.message if execution.error else "")
    modified = execution.finished_at or execution.started_at or execution.scheduled_for
    text = "\n".join(part for part in (f"{outcome}. {reason}".strip(), task.description) if part)
    event = _event(task, execution.id, execution.scheduled_for, text, modified)
    return event._replace(is_cancelled=execution.status in NOT_RUN_STATUSES)


def _event(task: Task, execution: str, at: datetime, description: str, modified: datetime) -> CalendarEvent:
    return CalendarEvent(
        uid=f"{execution}.{task.id}@cloudsched",
        title=task.title,
        description=description,
        sequence=task.revision,
        modified=modified,
        timing=(f"DTSTART:{format_utc(at)}",),
        duration=task.expected_duration,
        category=task.category,
    )


def format_utc(at: datetime) -> str:
    """Return an instant as iCalendar writes it, to the second."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def _format_duration(duration: timedelta) -> str:
    return f"PT{max(1, round(duration.total_seconds()))}S"


BEFORE: Final = timedelta(days=30)
AFTER: Final = timedelta(days=90)
REFRESH: Final = "PT1H"
"""How often programs should ask again, in RFC 7986's terms; Google asks every 12 to 24 hours whatever one says."""
MAX_PAST: Final = 100
MAX_UPCOMING: Final = 200
"""How many past and coming occurrences of one task a feed shows: the latest, and the next."""
MAX_EVENTS: Final = 3_000
"""How many events a feed shows."""


class TaskHistory(NamedTuple):
    """A task, and those of its executions that a feed may show."""

    task: Task
    executions: Sequence[Execution] = ()
    is_cut: bool = False
    """Whether there are more executions than were read."""


def build_feed(tasks: Iterable[TaskHistory], now: datetime, *, title: str, is_cut: bool = False) -> str:
    """Return the iCalendar text of a feed.

    Args:
        tasks: The tasks, with the executions that have been read.
        now: The present instant.
        title: The calendar's name.
        is_cut: Whether there are more tasks than were read.
    """
    cut: list[str] = ["It does not show all tasks."] if is_cut else []
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
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", PRODUCT, "CALSCALE:GREGORIAN", "METHOD:PUBLISH"]
    lines += [f"{name}:{escape_text(title)}" for name in ("NAME", "X-WR-CALNAME")]
    lines += describe_calendar(about)
    lines += [f"REFRESH-INTERVAL;VALUE=DURATION:{REFRESH}", f"X-PUBLISHED-TTL:{REFRESH}"]
    return "".join([join_lines(lines), *(text.decode() for text in shown), join_lines(["END:VCALENDAR"])])


def fit_events(events: Iterable[CalendarEvent], size: int) -> list[bytes]:
    """Return the content lines of the first events that are so large together, in UTF-8."""
    found: list[bytes] = []
    for event in events:
        text = join_lines(event.to_lines()).encode()
        size -= len(text)
        if size < 0:
            break
        found.append(text)
    return found


def describe_calendar(text: str) -> list[str]:
    """Return what a calendar says of itself, as RFC 7986 writes it and as older programs read it."""
    return [f"{name}:{escape_text(text)}" for name in ("DESCRIPTION", "X-WR-CALDESC")]


def _task_events(task: Task, executions: Sequence[Execution], now: datetime) -> tuple[list[CalendarEvent], bool]:
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


class Upcoming(NamedTuple):
    """The next occurrences of a task, as far as a calendar shows them."""

    shown: list[datetime]
    following: datetime | None
    """The first that is not shown; None if there is none, or if it was not found."""
    has_given_up: bool = False
    """The rule is so sparse, or costs so much, that the search ended before the last one to show."""


def list_upcoming(task: Task, until: datetime, count: int) -> Upcoming:
    """Return the occurrences that a task will run until an instant, at most `count`, and the one after them."""
    left = None if task.max_runs is None else max(0, task.max_runs - task.run_count)
    shown: list[datetime] = []
    occurrence = task.next_execution_time
    try:
        while occurrence is not None and len(shown) != left:
            if occurrence > until or len(shown) == count:
                return Upcoming(shown, occurrence)
            shown.append(occurrence)
            occurrence = occurrence_after(task, occurrence)
    except InvalidSchedule:
        return Upcoming(shown, None, has_given_up=True)
    return Upcoming(shown, None)
