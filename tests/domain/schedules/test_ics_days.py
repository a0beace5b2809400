"""Which days the events of an iCalendar file take."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from cloudsched.domain.schedules.ics_days import read_ics_days
from cloudsched.errors import InvalidInput

NEW_YEAR = date(2027, 1, 1)


def calendar(*lines: str) -> str:
    """Return a calendar of one event."""
    body = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "SUMMARY:Closed", *lines, "END:VEVENT", "END:VCALENDAR")
    return "\r\n".join(body) + "\r\n"


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        (["DTSTART;VALUE=DATE:20270101"], 1),
        (["DTSTART;VALUE=DATE:20270101", "DTEND;VALUE=DATE:20270102"], 1),
        (["DTSTART;VALUE=DATE:20270101", "DTEND;VALUE=DATE:20270104"], 3),
        (["DTSTART:20270101T090000Z", "DTEND:20270101T170000Z"], 1),
        (["DTSTART:20270101T090000Z", "DTEND:20270102T000000Z"], 1),
        (["DTSTART:20270101T220000Z", "DTEND:20270102T020000Z"], 2),
        (["DTSTART;VALUE=DATE:20270101", "DTEND;VALUE=DATE:20270101"], 1),
    ],
)
def test_an_event_takes_its_days(lines: list[str], days: int) -> None:
    """From its first day up to the last one on which it has not ended yet; at least one."""
    last = NEW_YEAR + timedelta(days=days - 1)
    assert read_ics_days(calendar(*lines), NEW_YEAR) == [(NEW_YEAR, last, "Closed")]


def test_an_event_of_more_than_ten_years_is_refused() -> None:
    """Ten years are taken, a day more is not."""
    length = timedelta(days=3660)
    for days, is_taken in ((0, True), (1, False)):
        end = NEW_YEAR + length + timedelta(days=1 + days)
        text = calendar("DTSTART;VALUE=DATE:20270101", f"DTEND;VALUE=DATE:{end:%Y%m%d}")
        if is_taken:
            assert read_ics_days(text, NEW_YEAR) == [(NEW_YEAR, NEW_YEAR + length, "Closed")]
        else:
            with pytest.raises(InvalidInput, match="ten years"):
                read_ics_days(text, NEW_YEAR)
