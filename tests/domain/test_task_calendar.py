"""When the calendar of a task has its rule, and when its occurrences one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from icalendar import Calendar
from tests.cases import try_each
from tests.conftest import MakeTask

from cloudsched import Schedule
from cloudsched.domain.calendar_feeds import MAX_SHOWN, build_task_calendar, is_portable
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.schedules.calendar_days import CalendarRule


@try_each(
    "rule, is_alike",
    [
        ("FREQ=YEARLY", True),
        ("FREQ=MONTHLY;BYDAY=1MO,-1FR", True),
        ("FREQ=WEEKLY;BYDAY=MO,TU", True),
        ("FREQ=DAILY", True),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", False),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", True),
        ("FREQ=HOURLY", False),
        ("FREQ=MINUTELY;INTERVAL=90", False),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD", False),
        ("FREQ=YEARLY;BYWEEKNO=20", False),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1", False),
        ("FREQ=MONTHLY;BYDAY=1MO,FR", False),
        ("FREQ=MONTHLY;BYMONTHDAY=24", True),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU", True),
        ("FREQ=YEARLY;BYDAY=20MO", False),
        ("FREQ=YEARLY;BYYEARDAY=100", False),
        ("FREQ=MONTHLY;BYMONTH=5,6", False),
        ("FREQ=MONTHLY;BYMONTHDAY=1,2;BYDAY=MO;BYSETPOS=1", False),
        ("FREQ=DAILY;BYMINUTE=5,10", False),
    ],
)
def test_a_rule_is_portable_if_all_programs_read_it_alike(rule: str, *, is_alike: bool) -> None:
    """Those that some read otherwise are given as single events instead."""
    assert is_portable(Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Berlin")) is is_alike


@pytest.mark.parametrize(
    ("now", "has_rule"), [(datetime(2027, 3, 1, tzinfo=UTC), False), (datetime(2027, 5, 1, tzinfo=UTC), True)]
)
def test_a_rule_that_a_clock_change_moves_is_given_as_single_events(
    make_task: MakeTask, now: datetime, *, has_rule: bool
) -> None:
    """One moved occurrence among many is enough: programs do not agree on where it goes."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T02:30:00", timezone="Europe/Berlin")
    calendar: Any = Calendar.from_ical(
        build_task_calendar(make_task(schedule=schedule, next_execution_time=schedule.next_after(now)), now)
    )
    events = calendar.walk("VEVENT")
    assert ("RRULE" in events[0], len(events) == 1) == (has_rule, has_rule)


NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def read(text: str) -> Any:  # noqa: ANN401 - its types are unions of everything
    """Return a calendar as another program reads it, strictly: it has a component, and each of these what it must."""
    calendar: Any = Calendar.from_ical(text)
    assert calendar.walk("VEVENT")
    for component in calendar.walk():
        assert not component.errors
        assert {*component.required} <= {*component}
    assert all("DTSTART" in event for event in calendar.walk("VEVENT"))
    assert len({str(event["UID"]) for event in calendar.walk("VEVENT")}) == len(calendar.walk("VEVENT"))
    return calendar


def test_a_series_keeps_its_events_when_it_is_added_again(make_task: MakeTask) -> None:
    """Added a day later, each daily rule has the UID that it had, so programs do not show it twice."""
    schedule = Schedule(rrule="FREQ=HOURLY;INTERVAL=7", dtstart="2027-02-27T09:30:00", timezone="Europe/Berlin")
    seen = []
    for now in (NOW, NOW + timedelta(days=1)):
        task = make_task(id="t", schedule=schedule, next_execution_time=schedule.next_after(now))
        week = timedelta(days=7)
        events = read(build_task_calendar(task, now)).walk("VEVENT")
        seen.append({str(each["UID"]): (each["DTSTART"].dt - NOW) % week for each in events})
    assert seen[0] == seen[1]


@try_each(
    "status, is_cancelled",
    [
        (TaskStatus.CANCELLED, True),
        (TaskStatus.PAUSED, True),
        (TaskStatus.FAILED, True),
        (TaskStatus.EXPIRED, True),
        (TaskStatus.COMPLETED, False),
    ],
)
def test_a_task_that_runs_no_more_is_a_calendar_nevertheless(
    status: TaskStatus, *, is_cancelled: bool, make_task: MakeTask
) -> None:
    """It has one event: cancelled, under the UID of the event with the rule, or confirmed if the task is completed."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:30:00", timezone="Europe/Berlin")
    active = make_task(id="t", schedule=schedule, next_execution_time=schedule.next_after(NOW))
    (before,) = read(build_task_calendar(active, NOW)).walk("VEVENT")
    ended = make_task(id="t", schedule=schedule, next_execution_time=None, status=status)
    (event,) = read(build_task_calendar(ended, NOW)).walk("VEVENT")
    assert event["UID"] == before["UID"]
    assert event["STATUS"] == ("CANCELLED" if is_cancelled else "CONFIRMED")
    assert "nothing is to come" in event["DESCRIPTION"]


def test_an_instant_in_years_is_shown(make_task: MakeTask) -> None:
    """What runs once runs then, however far ahead."""
    at = datetime(2031, 1, 1, 9, tzinfo=UTC)
    task = make_task(schedule=Schedule.once(at), next_execution_time=at)
    (event,) = read(build_task_calendar(task, NOW)).walk("VEVENT")
    assert event["DTSTART"].dt == at


def test_a_search_that_is_given_up_is_told(make_task: MakeTask) -> None:
    """A schedule that costs more steps than a request has shows what was found, and says that the task goes on."""
    schedule = Schedule(rrule="FREQ=HOURLY", dtstart="2027-02-27T09:30:00", timezone="Europe/Berlin").model_copy(
        update={"calendars": (CalendarRule(id="weekends", on="after").with_content("weekdays SA,SU"),)}
    )
    task = make_task(schedule=schedule, next_execution_time=schedule.next_after(NOW))
    with limit_search(2_000):
        events = read(build_task_calendar(task, NOW)).walk("VEVENT")
    assert 2 < len(events) < MAX_SHOWN
    assert "more follows" in events[-1]["SUMMARY"]
