"""What another program finds in the calendar of a task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from tests.cases import try_each
from tests.conftest import MakeTask
from tests.domain.recurrence.test_rfc5545_cases import CASES
from tests.domain.schedules.test_icalendar_output import ZONES, one_database
from tests.domain.test_task_calendar import NOW, read

from cloudsched import Schedule
from cloudsched.domain.calendar_feeds import AFTER, MAX_SERIES, MAX_SHOWN, build_task_calendar
from cloudsched.domain.recurrence.allowance import limit_search

__all__ = ["one_database"]  # the other program's zones are ours


def list_instants(calendar: Any, end: datetime, now: datetime = NOW) -> list[datetime]:  # noqa: ANN401 - as above
    events = recurring_ical_events.of(calendar).between(now, end)
    return sorted(at for each in events if now < (at := each["DTSTART"].dt.astimezone(UTC)) < end)


@pytest.mark.filterwarnings("ignore")  # those libraries' own
@try_each(
    "rule, zone, days, form",
    [
        ("FREQ=MINUTELY;INTERVAL=5", "Europe/Berlin", 2, "series"),
        ("FREQ=HOURLY", "America/New_York", 30, "series"),
        ("FREQ=HOURLY;INTERVAL=7", "Europe/Berlin", 90, "series"),
        ("FREQ=HOURLY;INTERVAL=36", "Europe/Berlin", 90, "series"),
        ("FREQ=MINUTELY;INTERVAL=90", "Europe/Berlin", 40, "series"),
        ("FREQ=SECONDLY;INTERVAL=600", "UTC", 3, "series"),
        ("FREQ=MINUTELY;INTERVAL=4", "UTC", 2, "cut"),
        ("FREQ=MINUTELY;INTERVAL=7", "UTC", 2, "cut"),
        ("FREQ=HOURLY;BYHOUR=9,10,11", "Europe/Berlin", 89, "cut"),
        ("FREQ=MINUTELY;INTERVAL=30;BYHOUR=9", "Europe/Berlin", 89, "cut"),
        ("FREQ=HOURLY;COUNT=100", "UTC", 89, "whole"),
        ("FREQ=DAILY", "Europe/Berlin", 89, "rule"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=3", "Europe/Berlin", 800, "rule"),
        ("FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD", "Europe/Berlin", 89, "cut"),
    ],
)
def test_another_program_finds_what_the_task_runs(
    rule: str, zone: str, days: int, form: str, make_task: MakeTask
) -> None:
    """By a rule, by daily rules in UTC, or one by one with an event that says where they end and what comes then."""
    schedule = Schedule(rrule=rule, dtstart="2027-02-27T09:30:00", timezone=zone)
    task = make_task(title="T", schedule=schedule, next_execution_time=schedule.next_after(NOW))
    with limit_search():
        calendar = read(build_task_calendar(task, NOW))
    end = NOW + timedelta(days=days)
    assert list_instants(calendar, end) == schedule.between(NOW + timedelta(seconds=1), end)
    events = calendar.walk("VEVENT")
    assert (form in {"rule", "series"}) == all("RRULE" in event for event in events)
    assert (form == "rule") == (len(events) == 1)
    assert len(events) <= (MAX_SERIES if form == "series" else MAX_SHOWN + 1)
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
    dates = {"rdates": case.get("rdates", ()), "exdates": case.get("exdates", ())}
    schedule = Schedule(rrule=case["rrule"], dtstart=case["dtstart"], timezone=zone, **dates)
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
