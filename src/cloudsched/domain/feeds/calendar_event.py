"""One event of a calendar: an occurrence of a task, or what became of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.documents.execution import NOT_RUN_STATUSES
from cloudsched.domain.recurrence.content_lines import escape_text
from cloudsched.domain.transitions.planning import execution_id

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task

PRODUCT = "PRODID:-//cloudsched//Calendar//EN"


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
        lines += [f"DESCRIPTION:{escape_text(self.description)}"] if self.description else []
        lines += [f"STATUS:{'CANCELLED' if self.is_cancelled else 'CONFIRMED'}", "TRANSP:TRANSPARENT", "END:VEVENT"]
        return lines


def occurrence_event(task: Task, at: datetime) -> CalendarEvent:
    """Return the event of an occurrence to come."""
    return _event(task, execution_id(at), at, task.description, task.updated_at)


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
