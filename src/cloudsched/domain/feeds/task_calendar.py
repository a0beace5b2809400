"""One task as a calendar to add to one's own: with its rule, where every program reads it alike.

A rule is kept if a plain reader of RFC 5545 finds the same instants from now to the end of the window. A rule that
repeats every so many seconds is several daily ones in UTC, which every program can follow. Otherwise the occurrences of
the window are events of their own, and a last event says where they end and that the task goes on.
"""

from __future__ import annotations

from datetime import timedelta
from math import lcm
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.feeds.feed_calendar import (
    AFTER,
    MAX_BYTES,
    PRODUCT,
    CalendarEvent,
    describe_calendar,
    fit_events,
    format_utc,
    list_upcoming,
    occurrence_event,
)
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.recurrence.icalendar import join_lines
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.recurrence.vtimezone import vtimezone_lines
from cloudsched.domain.schedules.icalendar_output import event_lines, split_events
from cloudsched.domain.schedules.preview import ClockChange, preview
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule

_HEAD = ("BEGIN:VCALENDAR", "VERSION:2.0", PRODUCT, "CALSCALE:GREGORIAN", "METHOD:PUBLISH")
MAX_SHOWN: Final = 1_000
"""How many occurrences are shown one by one."""
MAX_SERIES: Final = 288
"""How many daily rules stand for one that is finer than a day: one for every five minutes."""
_STEPS: Final = 30_000
"""How many of a request's steps may be spent on the occurrences to show."""
_COMPARED: Final = 200
_DAY: Final = 86_400
_UNITS: Final = {Frequency.HOURLY: 3600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}
_LEAP_DAY = "02-29"
_MOST_OF_A_WEEKDAY = 5
"""How often a month may have a weekday."""


def build_task_calendar(task: Task, now: datetime) -> str:
    """Return the iCalendar text of a task: events with its rule, or its occurrences of the next 90 days."""
    with limit_search(_STEPS):
        upcoming = list_upcoming(task, max(now + AFTER, task.next_execution_time or now), MAX_SHOWN)
    if not upcoming.shown:
        return _join(_ended_event(task).to_lines())
    if not upcoming.has_given_up and _follows_schedule(task, now, upcoming.shown):
        if steps := _step_events(task, upcoming.shown[0]):
            return _join(line for event in steps for line in event.to_lines())
        if _keeps_rule(task.schedule, now, upcoming.shown):
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


def _step_events(task: Task, first: datetime) -> list[CalendarEvent]:
    """Return events, each every so many days in UTC, for a rule of a fixed step; none if they would be too many."""
    schedule = task.schedule
    rule = parse_rule(schedule.rules[0])
    if schedule.sub_daily != "elapsed" or schedule.rdates or schedule.exdates:
        return []
    unit = _UNITS.get(rule.frequency)
    if unit is None or rule != Rule(rule.frequency, interval=rule.interval, week_start=rule.week_start):
        return []
    step = unit * rule.interval
    days = lcm(step, _DAY) // _DAY
    if days * _DAY // step > MAX_SERIES:
        return []
    events = []
    for number in range(days * _DAY // step):
        at = first + timedelta(seconds=number * step)
        phase = int(at.timestamp()) % (days * _DAY)
        timing = (f"DTSTART:{format_utc(at)}", f"RRULE:FREQ=DAILY;INTERVAL={days}")
        events.append(occurrence_event(task, at)._replace(uid=f"{phase}.{task.id}@cloudsched", timing=timing))
    return events


def _more_event(task: Task, at: datetime, about: str) -> CalendarEvent:
    """Return the event that says that a calendar ends here; the later one replaces the earlier one."""
    event = occurrence_event(task, at)
    number = int(at.timestamp()) // _DAY
    return event._replace(
        uid=f"more.{task.id}@cloudsched", title=f"{task.title}: more follows", description=about, sequence=number
    )


def _ended_event(task: Task) -> CalendarEvent:
    """Return an event for a task that runs no more for now, as a calendar must have one: cancelled, or completed."""
    try:
        first = task.schedule.first() if task.schedule.is_anchored else None
    except InvalidSchedule:
        first = None
    event = occurrence_event(task, first or task.updated_at)
    about = "\n".join(part for part in (f"{task.status.capitalize()}: nothing is to come.", task.description) if part)
    is_cancelled = task.status is not TaskStatus.COMPLETED
    return event._replace(uid=f"{task.id}@cloudsched", description=about, is_cancelled=is_cancelled)


def _follows_schedule(task: Task, now: datetime, upcoming: list[datetime]) -> bool:
    """Return whether the schedule alone says when the task runs."""
    schedule = task.schedule
    if schedule.at is not None or len(schedule.rules) != 1 or schedule.policies or schedule.calendars:
        return False
    if task.max_runs is not None or task.until is not None or task.backlog or task.plan_from is not None:
        return False
    some = upcoming[:_COMPARED]
    return some == schedule.upcoming(now, len(some))


def _keeps_rule(schedule: Schedule, now: datetime, upcoming: list[datetime]) -> bool:
    """Return whether every program reads the schedule's rule alike."""
    if not is_portable(schedule):
        return False
    return not any(
        each.clock_change in {ClockChange.SHIFTED, ClockChange.REPEATED}
        for each in preview(schedule, now, len(upcoming))
    )


def is_portable(schedule: Schedule) -> bool:
    """Return whether programs agree on what the schedule's rules mean, clock changes aside.

    They do not on rules finer than a day across clock changes, on SKIP, and on numbered weekdays beside plain ones. And
    ical.js, which Thunderbird and Nextcloud read with, does not follow the RFC on all that is left out here.
    """
    on_leap_day = schedule.dtstart is not None and schedule.dtstart[5:10] == _LEAP_DAY
    rules = [parse_rule(rule) for rule in schedule.rules]
    if on_leap_day and any(rule.frequency is Frequency.YEARLY for rule in rules):
        return False
    return all(_is_read_alike(rule) and _is_simple(rule) for rule in rules)


def _is_read_alike(rule: Rule) -> bool:
    if rule.frequency > Frequency.DAILY or rule.skip != "OMIT":
        return False
    if rule.week_numbers and not rule.weekdays:
        return False
    if rule.positions and rule.frequency is Frequency.WEEKLY:
        return False
    return len({bool(day.nth) for day in rule.weekdays}) <= 1


def _is_simple(rule: Rule) -> bool:
    """Return whether ical.js finds what a rule means: days by numbers, but hardly any two limits together."""
    numbers = [abs(day.nth) for day in rule.weekdays if day.nth]
    is_numbered = bool(numbers) or bool(rule.month_days)
    if rule.week_numbers or rule.year_days or len(rule.minutes) > 1:
        return False
    if rule.positions and (rule.frequency is not Frequency.MONTHLY or is_numbered or len(rule.hours) > 1):
        return False
    if numbers and (rule.month_days or max(numbers) > _MOST_OF_A_WEEKDAY):
        return False
    if rule.frequency is Frequency.YEARLY:
        return not rule.weekdays or bool(rule.months)
    if rule.frequency is Frequency.MONTHLY:
        return not rule.months
    return not rule.month_days or rule.frequency is not Frequency.WEEKLY
