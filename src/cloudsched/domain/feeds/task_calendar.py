"""One task as a calendar to add to one's own: with its rule, where every program reads it alike.

A rule is kept if a plain reader of RFC 5545 finds the same instants from now to the end of the window. Otherwise the
occurrences of the window are events of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.feeds.feed_calendar import AFTER, MAX_UPCOMING, PRODUCT, list_upcoming, occurrence_event
from cloudsched.domain.recurrence.content_lines import join_lines
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.recurrence.vtimezone import vtimezone_lines
from cloudsched.domain.schedules.icalendar_output import event_lines, split_events
from cloudsched.domain.schedules.preview import ClockChange, preview

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.schedules.schedule import Schedule

_HEAD = ("BEGIN:VCALENDAR", "VERSION:2.0", PRODUCT, "CALSCALE:GREGORIAN", "METHOD:PUBLISH")
_END = "END:VCALENDAR"
_LEAP_DAY = "02-29"
_MOST_OF_A_WEEKDAY = 5
"""How often a month may have a weekday."""


def build_task_calendar(task: Task, now: datetime) -> str:
    """Return the iCalendar text of a task: one event with its rule, or its occurrences of the next 90 days."""
    upcoming = list_upcoming(task, now + AFTER, MAX_UPCOMING)
    if not upcoming or not _keeps_rule(task, now, upcoming):
        return join_lines([*_HEAD, *(line for at in upcoming for line in occurrence_event(task, at).to_lines()), _END])
    schedule = task.schedule
    (event,) = split_events(schedule)
    zone = vtimezone_lines(schedule.timezone, event.start.wall) if schedule.timezone != "UTC" else []
    timing = tuple(event_lines(event, schedule.timezone))
    whole = occurrence_event(task, upcoming[0])._replace(uid=f"{task.id}@cloudsched", timing=timing)
    return join_lines([*_HEAD, *zone, *whole.to_lines(), _END])


def _keeps_rule(task: Task, now: datetime, upcoming: list[datetime]) -> bool:
    """Return whether the schedule's rule says when the task runs, and every program reads it alike."""
    schedule = task.schedule
    if schedule.at is not None or len(schedule.rules) != 1 or schedule.policies or schedule.calendars:
        return False
    if task.max_runs is not None or task.until is not None or task.backlog or task.plan_from is not None:
        return False
    if upcoming != schedule.upcoming(now, len(upcoming)) or not is_portable(schedule):
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
