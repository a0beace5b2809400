"""The days of generated calendars, beside those that another program finds."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
import recurring_ical_events  # type: ignore[import-untyped]  # it has no stubs
from icalendar import Calendar
from tests.cases import try_each
from tests.engine.harness import DAY, SECOND
from tests.features.calendars.ics_files import FileWriter, days_between

from cloudsched.features.calendars.ics_days import read_ics_days


@pytest.mark.filterwarnings("ignore")  # those libraries' own
@try_each("seed", range(200))
def test_a_calendar_has_the_days_that_another_program_finds(seed: int) -> None:
    """Day by day, for RDATE, EXDATE, DURATION, changed and cancelled occurrences, in whatever zone they are."""
    text = FileWriter(seed).write()
    found = set[date]()
    for first, last, _ in read_ics_days(text, date(2026, 6, 1)):
        found |= days_between(first, last)
    begin, end = date(2025, 12, 1), date(2029, 1, 1)
    expected = set[date]()
    calendar: Any = Calendar.from_ical(text)
    for event in recurring_ical_events.of(calendar).between(begin, end):
        start, stop = event["DTSTART"].dt, event["DTEND"].dt
        if event.get("STATUS") != "CANCELLED":
            last = stop - DAY if not isinstance(stop, datetime) else (stop - SECOND).date()
            first = start.date() if isinstance(start, datetime) else start
            expected |= days_between(first, max(first, last))
    inner = days_between(begin + 20 * DAY, end - 20 * DAY)
    assert found & inner == expected & inner, sorted((found ^ expected) & inner)
