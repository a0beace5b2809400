"""When the calendar of a task has its rule, and when its occurrences one by one; what another program finds in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from icalendar import Calendar
from tests.cases import try_each
from tests.conftest import MakeTask
from tests.domain.recurrence.test_rfc5545_cases import CASES, make_schedule
from tests.domain.schedules.test_icalendar_output import ZONES, one_database

from cloudsched import Schedule
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.schedules.calendar_rule import CalendarRule
from cloudsched.people.calendar_events import AFTER
from cloudsched.people.task_calendar import MAX_SHOWN, build_task_calendar, is_portable

__all__ = ["one_database"]  # the other program's zones are ours


@try_each(
    "rule, is_alike",
    [
        ("FREQ=YEARLY", True),
        ("FREQ=MONTHLY;BYDAY=1MO,-1FR", True),
        ("FREQ=DAILY", True),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", True),
        ("FREQ=HOURLY", False),
        ("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD", False),
        ("FREQ=YEARLY;BYWEEKNO=20", False),
        ("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1", False),
        ("FREQ=MONTHLY;BYDAY=1MO,FR", False),
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


@try_each(
    "status, is_cancelled",
    [
        (TaskStatus.CANCELLED, True),
        (TaskStatus.PAUSED, True),
        (TaskStatus.FAILED, True),
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


def list_instants(calendar: Any, end: datetime, now: datetime = NOW) -> list[datetime]:  # noqa: ANN401 - as above
    events = recurring_ical_events.of(calendar).between(now, end)
    return sorted(at for each in events if now < (at := each["DTSTART"].dt.astimezone(UTC)) < end)


@pytest.mark.filterwarnings("ignore")  # those libraries' own
@try_each(
    "rule, zone, days, form",
    [
        ("FREQ=HOURLY;INTERVAL=7", "Europe/Berlin", 89, "cut"),
        ("FREQ=MINUTELY;INTERVAL=4", "UTC", 2, "cut"),
        ("FREQ=MINUTELY;INTERVAL=30;BYHOUR=9", "Europe/Berlin", 89, "cut"),
        ("FREQ=HOURLY;COUNT=100", "UTC", 89, "whole"),
        ("FREQ=DAILY", "Europe/Berlin", 89, "rule"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD", "Europe/Berlin", 89, "cut"),
    ],
)
def test_another_program_finds_what_the_task_runs(
    rule: str, zone: str, days: int, form: str, make_task: MakeTask
) -> None:
    """By a rule, or one by one with an event that says where they end and what comes then."""
    schedule = Schedule(rrule=rule, dtstart="2027-02-27T09:30:00", timezone=zone)
    task = make_task(title="T", schedule=schedule, next_execution_time=schedule.next_after(NOW))
    with limit_search():
        calendar = read(build_task_calendar(task, NOW))
    end = NOW + timedelta(days=days)
    assert list_instants(calendar, end) == schedule.between(NOW + timedelta(seconds=1), end)
    events = calendar.walk("VEVENT")
    assert (form == "rule") == (len(events) == 1 and "RRULE" in events[0])
    assert len(events) <= MAX_SHOWN + 1
    more = [event for event in events if "more follows" in event["SUMMARY"]]
    assert len(more) == (form == "cut")
    for event in more:
        shown = schedule.upcoming(NOW, len(events) - 1)
        assert event["DTSTART"].dt == schedule.next_after(shown[-1])
        assert f"until {shown[-1]:%Y-%m-%d %H:%M} UTC" in event["DESCRIPTION"]
        assert event["DESCRIPTION"] == calendar["X-WR-CALDESC"] == calendar["DESCRIPTION"]
        assert len(shown) == MAX_SHOWN or shown[-1] <= NOW + AFTER < event["DTSTART"].dt


@pytest.mark.filterwarnings("ignore")  # those libraries' own
@try_each("number", range(0, len(CASES), 5))
def test_another_program_finds_the_occurrences_of_every_case(number: int, make_task: MakeTask) -> None:
    """In some zone, from before its first occurrence on and later, as far as its calendar goes."""
    case: dict[str, Any] = CASES[number]
    zone = case["tzid"] if "UNTIL" in case["rrule"] else ZONES[number % len(ZONES)]
    schedule = make_schedule(case, zone)
    first = schedule.first()
    assert first is not None
    for now in (first - timedelta(days=1), first + timedelta(days=45)):
        calendar = read(
            build_task_calendar(make_task(schedule=schedule, next_execution_time=schedule.next_after(now)), now)
        )
        events = calendar.walk("VEVENT")
        if events[-1]["STATUS"] == "CANCELLED":
            assert schedule.next_after(now) is None
            continue
        end = events[-1]["DTSTART"].dt if "more follows" in events[-1]["SUMMARY"] else now + AFTER
        expected = schedule.between(now + timedelta(seconds=1), end)
        assert list_instants(calendar, end, now) == expected, case["id"]
