"""Tasks as calendars that people subscribe to, or add to the one that they have: RFC 5545.

A feed has the expanded occurrences of several tasks, the calendar of one task has its rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.documents.execution import NOT_RUN_STATUSES, Execution
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.recurrence.allowance import TASK_STEPS, limit_search
from cloudsched.domain.recurrence.icalendar import escape_text, join_lines
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.schedules.icalendar_output import event_lines, split_events, vtimezone_lines
from cloudsched.domain.schedules.preview import ClockChange, preview
from cloudsched.domain.transitions.planning import occurrence_after, occurrence_id
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from cloudsched.domain.schedules.schedule import Schedule

PRODUCT = "PRODID:-//cloudsched//Calendar//EN"
MAX_ABOUT: Final = 1_000
"""The most characters of a description that an event shows. A long text would come again with each occurrence."""
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
"""The interval at which programs should ask again, in RFC 7986's terms. Google always asks every 12 to 24 hours."""
MAX_PAST: Final = 100
MAX_UPCOMING: Final = 200
"""The most past and coming occurrences of one task that a feed shows: the latest, and the next."""
MAX_EVENTS: Final = 3_000
"""The most events that a feed shows."""


class TaskHistory(NamedTuple):
    """A task, and those of its executions that a feed may show."""

    task: Task
    executions: Sequence[Execution] = ()
    is_cut: bool = False
    """True if there are more executions than were read."""


def build_feed(tasks: Iterable[TaskHistory], now: datetime, *, title: str, is_cut: bool = False) -> str:
    """Return the iCalendar text of a feed. `is_cut` says that there are more tasks than were read."""
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
    """The first one that is not shown. None if there is none, or if it was not found."""
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


_HEAD = ("BEGIN:VCALENDAR", "VERSION:2.0", PRODUCT, "CALSCALE:GREGORIAN", "METHOD:PUBLISH")
MAX_SHOWN: Final = 1_000
"""The most occurrences that are shown one by one."""
_STEPS: Final = 30_000
"""The most of a request's steps that may be spent on the occurrences to show."""
_COMPARED: Final = 200
_DAY: Final = 86_400
_LEAP_DAY = "02-29"
_MOST_OF_A_WEEKDAY = 5
"""The most days of one weekday in a month."""


def build_task_calendar(task: Task, now: datetime) -> str:
    """Return the iCalendar text of a task: events with its rule, or its occurrences of the next 90 days."""
    with limit_search(_STEPS):
        upcoming = list_upcoming(task, max(now + AFTER, task.next_execution_time or now), MAX_SHOWN)
    if not upcoming.shown:
        return _join(_ended_event(task).to_lines())
    follows_schedule = not upcoming.has_given_up and _follows_schedule(task, now, upcoming.shown)
    if follows_schedule and _keeps_rule(task.schedule, now, upcoming.shown):
        return _join(_rule_lines(task, upcoming.shown[0]))
    texts = fit_events((occurrence_event(task, at) for at in upcoming.shown), MAX_BYTES)
    shown, left_out = upcoming.shown[: len(texts)], upcoming.shown[len(texts) :]
    events = b"".join(texts).decode()
    if not left_out and upcoming.following is None and not upcoming.has_given_up:
        return _join((), events)
    last = shown[-1]
    about = (
        f"It shows {len(shown)} occurrences until {last:%Y-%m-%d %H:%M} UTC. The task goes on: get it again for more."
    )
    following = left_out[0] if left_out else upcoming.following or last
    more = join_lines(_more_event(task, following, about).to_lines())
    return _join(describe_calendar(about), events + more)


def _join(lines: Iterable[str], events: str = "") -> str:
    return "".join([join_lines([*_HEAD, *lines]), events, join_lines(["END:VCALENDAR"])])


def _rule_lines(task: Task, at: datetime) -> list[str]:
    schedule = task.schedule
    (event,) = split_events(schedule)
    zone = vtimezone_lines(schedule.timezone, event.start.wall) if schedule.timezone != "UTC" else []
    timing = tuple(event_lines(event, schedule.timezone))
    whole = occurrence_event(task, at)._replace(uid=f"{task.id}@cloudsched", timing=timing)
    return [*zone, *whole.to_lines()]


def _more_event(task: Task, at: datetime, about: str) -> CalendarEvent:
    """Return the event that says that a calendar ends here. A later one replaces an earlier one."""
    event = occurrence_event(task, at)
    number = int(at.timestamp()) // _DAY
    return event._replace(
        uid=f"more.{task.id}@cloudsched", title=f"{task.title}: more follows", description=about, sequence=number
    )


def _ended_event(task: Task) -> CalendarEvent:
    """Return a cancelled or completed event for a task that does not run for now, as a calendar must have an event."""
    try:
        first = task.schedule.first() if task.schedule.is_anchored else None
    except InvalidSchedule:
        first = None
    event = occurrence_event(task, first or task.updated_at)
    about = "\n".join(part for part in (f"{task.status.capitalize()}: nothing is to come.", task.description) if part)
    is_cancelled = task.status is not TaskStatus.COMPLETED
    return event._replace(uid=f"{task.id}@cloudsched", description=about, is_cancelled=is_cancelled)


def _follows_schedule(task: Task, now: datetime, upcoming: list[datetime]) -> bool:
    schedule = task.schedule
    if schedule.at is not None or len(schedule.rules) != 1 or schedule.policies or schedule.is_adjusted:
        return False
    if task.max_runs is not None or task.until is not None or task.backlog or task.plan_from is not None:
        return False
    some = upcoming[:_COMPARED]
    return some == schedule.upcoming(now, len(some))


def _keeps_rule(schedule: Schedule, now: datetime, upcoming: list[datetime]) -> bool:
    if not is_portable(schedule):
        return False
    return not any(
        each.clock_change in {ClockChange.SHIFTED, ClockChange.REPEATED}
        for each in preview(schedule, now, len(upcoming))
    )


def is_portable(schedule: Schedule) -> bool:
    """Return whether programs agree on what the schedule's rules mean, clock changes aside.

    They do on days by numbers, but on hardly any two limits together. ical.js, which Thunderbird and Nextcloud read
    with, does not follow the RFC on the others.
    """
    on_leap_day = schedule.dtstart is not None and schedule.dtstart[5:10] == _LEAP_DAY
    rules = [parse_rule(rule) for rule in schedule.rules]
    if on_leap_day and any(rule.frequency is Frequency.YEARLY for rule in rules):
        return False
    return all(map(_is_read_alike, rules))


def _is_read_alike(rule: Rule) -> bool:
    numbers = [abs(day.nth) for day in rule.weekdays if day.nth]
    is_monthly = rule.frequency is Frequency.MONTHLY
    if rule.skip != "OMIT" or rule.week_numbers or rule.year_days or len(rule.minutes) > 1:
        return False
    if rule.positions and (not is_monthly or numbers or rule.month_days or len(rule.hours) > 1):
        return False
    if numbers and (len(numbers) < len(rule.weekdays) or rule.month_days or max(numbers) > _MOST_OF_A_WEEKDAY):
        return False
    fits = {
        Frequency.YEARLY: not rule.weekdays or bool(rule.months),
        Frequency.MONTHLY: not rule.months,
        Frequency.WEEKLY: not rule.month_days,
        Frequency.DAILY: True,
    }
    return fits.get(rule.frequency, False)
