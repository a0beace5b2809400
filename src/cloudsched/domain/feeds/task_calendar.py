"""One task as a calendar to add to one's own: with its rule, where every program reads it alike.

A rule is kept if a plain reader of RFC 5545 finds the same instants from now to the end of the window. Otherwise the
occurrences of the window are events of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.feeds.calendar_event import PRODUCT, occurrence_event
from cloudsched.domain.feeds.feed_calendar import AFTER, MAX_UPCOMING, list_upcoming
from cloudsched.domain.recurrence.content_lines import join_lines
from cloudsched.domain.recurrence.icalendar_output import event_lines, split_events
from cloudsched.domain.recurrence.preview import ClockChange, preview
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.recurrence.vtimezone import vtimezone_lines

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.recurrence.schedule import Schedule

_HEAD = ("BEGIN:VCALENDAR", "VERSION:2.0", PRODUCT, "CALSCALE:GREGORIAN", "METHOD:PUBLISH")
_END = "END:VCALENDAR"


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
    """Whether the schedule's rule says when the task runs, and every program reads it alike."""
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
    """Whether programs agree on what the schedule's rules mean, clock changes aside.

    They do not on rules finer than a day across clock changes, on SKIP, on weeks by number without a weekday, on
    BYSETPOS of a week that DTSTART cuts, and on numbered weekdays beside plain ones.
    """
    return all(_is_read_alike(parse_rule(rule)) for rule in schedule.rules)


def _is_read_alike(rule: Rule) -> bool:
    if rule.frequency > Frequency.DAILY or rule.skip != "OMIT":
        return False
    if rule.week_numbers and not rule.weekdays:
        return False
    if rule.positions and rule.frequency is Frequency.WEEKLY:
        return False
    return len({bool(day.nth) for day in rule.weekdays}) <= 1
