"""The events of calendars (RFC 5545): how an occurrence looks to a calendar program, and which ones are to come."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.execution import FAILURE_STATUSES, NOT_RUN_STATUSES, Execution
from cloudsched.domain.recurrence.icalendar import escape_text, join_lines
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_id
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.task import Task

CALENDAR_HEAD: Final = (
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:-//cloudsched//Calendar//EN",
    "CALSCALE:GREGORIAN",
    "METHOD:PUBLISH",
)
MAX_ABOUT: Final = 1_000
"""The most characters of a description that an event shows: each occurrence repeats them."""
MAX_BYTES: Final = 1_000_000
"""The most bytes of a calendar, in UTF-8, without its own description."""


class CalendarEvent(NamedTuple):
    """An event, as a calendar shows it."""

    uid: str
    """The same for an occurrence before it has run and after."""
    title: str
    description: str
    sequence: int
    modified: datetime
    """The time of its last change, as far as a calendar can see."""
    timing: tuple[str, ...]
    """The properties that say when it is, such as DTSTART."""
    duration: timedelta
    category: str
    is_cancelled: bool = False

    def to_lines(self) -> list[str]:
        """Return the event as the content lines of a VEVENT. It blocks no time, since nobody has to attend."""
        stamp = format_utc(self.modified)
        lines = [
            "BEGIN:VEVENT",
            f"UID:{escape_text(self.uid)}",
            f"DTSTAMP:{stamp}",
            f"LAST-MODIFIED:{stamp}",
            *self.timing,
            f"DURATION:{_format_duration(self.duration)}",
            f"SEQUENCE:{self.sequence}",
            f"SUMMARY:{escape_text(self.title)}",
            f"CATEGORIES:{escape_text(self.category)}",
        ]

        about = self.description
        if len(about) > MAX_ABOUT:
            about = f"{about[: MAX_ABOUT - 1]}…"
        if about:
            lines.append(f"DESCRIPTION:{escape_text(about)}")

        status = "CANCELLED" if self.is_cancelled else "CONFIRMED"
        lines += [f"STATUS:{status}", "TRANSP:TRANSPARENT", "END:VEVENT"]
        return lines


def occurrence_event(task: Task, at: datetime) -> CalendarEvent:
    """Return the event of an occurrence to come."""
    text = task.description
    if task.schedule.follows_owner:
        text = f"{text}\nFollows its owner, in {task.timezone} now.".lstrip("\n")
    return _event(task, occurrence_id(task, at), at, text, task.updated_at)


def execution_event(task: Task, execution: Execution) -> CalendarEvent:
    """Return the event of an occurrence that has come: with its outcome, and cancelled if it was not run."""
    outcome = execution.status.replace("_", " ").capitalize()
    reason = "" if execution.status in FAILURE_STATUSES else execution.message or ""
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


AFTER: Final = timedelta(days=90)


def fit_events(events: Iterable[CalendarEvent], size: int) -> list[bytes]:
    """Return the content lines of the first events that together are at most this large, in UTF-8."""
    found: list[bytes] = []
    for event in events:
        text = join_lines(event.to_lines()).encode()
        size -= len(text)
        if size < 0:
            break
        found.append(text)
    return found


def describe_calendar(text: str) -> list[str]:
    """Return the lines in which a calendar describes itself, for RFC 7986 and for older programs."""
    return [f"{name}:{escape_text(text)}" for name in ("DESCRIPTION", "X-WR-CALDESC")]


class Upcoming(NamedTuple):
    """The next occurrences of a task, as far as a calendar shows them."""

    shown: list[datetime]
    following: datetime | None
    """The first one that is not shown. None if there is none, or if it was not found."""
    has_given_up: bool = False
    """The rule is so sparse, or costs so much, that the search ended before the last one to show."""


def list_upcoming(task: Task, until: datetime, count: int) -> Upcoming:
    """Return the occurrences that a task will run until an instant, at most `count`, and the one after them."""
    left: int | None = None
    if task.max_runs is not None:
        left = max(0, task.max_runs - task.run_count)
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
