"""One task as iCalendar text (RFC 5545), to add to a calendar: its rule, or its next occurrences."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.recurrence.icalendar import join_lines
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.schedules.icalendar_output import event_lines, split_events, vtimezone_lines
from cloudsched.domain.schedules.preview import ClockChange, preview
from cloudsched.errors import InvalidSchedule
from cloudsched.people.calendar_events import (
    AFTER,
    CALENDAR_HEAD,
    MAX_BYTES,
    CalendarEvent,
    describe_calendar,
    fit_events,
    list_upcoming,
    occurrence_event,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule


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
    events = b"".join(texts).decode()
    shown = upcoming.shown[: len(texts)]
    last = shown[-1]
    following = upcoming.following
    if len(shown) < len(upcoming.shown):
        following = upcoming.shown[len(shown)]
    elif upcoming.has_given_up:
        following = last
    if following is None:
        return _join((), events)

    until = f"{last:%Y-%m-%d %H:%M} UTC"
    about = f"It shows {len(shown)} occurrences until {until}. The task goes on: get it again for more."
    more = join_lines(_more_event(task, following, about).to_lines())
    return _join(describe_calendar(about), events + more)


def _join(lines: Iterable[str], events: str = "") -> str:
    return "".join([join_lines([*CALENDAR_HEAD, *lines]), events, join_lines(["END:VCALENDAR"])])


def _rule_lines(task: Task, at: datetime) -> list[str]:
    schedule = task.schedule
    (event,) = split_events(schedule)
    timing = tuple(event_lines(event, schedule.timezone))
    lines = occurrence_event(task, at)._replace(uid=f"{task.id}@cloudsched", timing=timing).to_lines()
    if schedule.timezone == "UTC":
        return lines
    return [*vtimezone_lines(schedule.timezone, event.start.wall), *lines]


def _more_event(task: Task, at: datetime, about: str) -> CalendarEvent:
    """Return the event that says that a calendar ends here. A later one replaces an earlier one."""
    event = occurrence_event(task, at)
    number = int(at.timestamp()) // _DAY
    return event._replace(
        uid=f"more.{task.id}@cloudsched",
        title=f"{task.title}: more follows",
        description=about,
        sequence=number,
    )


def _ended_event(task: Task) -> CalendarEvent:
    """Return an event for a task with no occurrence to come: a calendar must have an event."""
    first = None
    if task.schedule.is_anchored:
        with suppress(InvalidSchedule):
            first = task.schedule.first()
    event = occurrence_event(task, first or task.updated_at)
    about = f"{task.status.capitalize()}: nothing is to come.\n{task.description}".rstrip("\n")
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

    They do on days by numbers, but on hardly any two limits together. ical.js, which Thunderbird and
    Nextcloud read with, does not follow the RFC on the others.
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
