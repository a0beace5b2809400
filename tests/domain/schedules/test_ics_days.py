"""Which days the events of an iCalendar file take."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from icalendar.parser import Contentline
from icalendar.prop import vDDDTypes
from tests.call_counts import count_calls
from tests.cases import try_each

from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.domain.schedules import ics_days
from cloudsched.domain.schedules.ics_days import MAX_EVENTS, read_ics_days
from cloudsched.errors import InvalidInput

NEW_YEAR = date(2027, 1, 1)


def calendar(*lines: str) -> str:
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


def own_zone(name: str, offset: str) -> list[str]:
    change = ("BEGIN:STANDARD", "DTSTART:16010101T000000", "TZOFFSETFROM:+0000", f"TZOFFSETTO:{offset}", "END:STANDARD")
    return ["BEGIN:VTIMEZONE", f"TZID:{name}", *change, "END:VTIMEZONE"]


def read(*events: list[str], zone: list[str] | None = None) -> list[str]:
    """Return the intervals of days of some events, such as ``2027-01-01/2027-01-02``."""
    lines = ["BEGIN:VCALENDAR", *(zone or [])]
    for event in events:
        lines += ["BEGIN:VEVENT", *event, "END:VEVENT"]
    found = read_ics_days("\n".join([*lines, "END:VCALENDAR"]), NEW_YEAR)
    return [str(first) if first == last else f"{first}/{last}" for first, last, _ in found]


EASTER_MONDAYS = ["DTSTART;VALUE=DATE:20270329", "RDATE;VALUE=DATE:20280417,20290402"]


@try_each(
    "events, days",
    [
        ([EASTER_MONDAYS], ["2027-03-29", "2028-04-17", "2029-04-02"]),
        ([["DTSTART;VALUE=DATE:20270101", "DURATION:P3D"]], ["2027-01-01/2027-01-03"]),
        ([["DTSTART;VALUE=DATE:20270101", "DURATION:P1W"]], ["2027-01-01/2027-01-07"]),
        (
            [["DTSTART:20270101T220000", "RDATE;VALUE=PERIOD:20270201T220000/PT4H"]],
            ["2027-01-01", "2027-02-01/2027-02-02"],
        ),
        (
            [["UID:a", *EASTER_MONDAYS], ["UID:a", "RECURRENCE-ID;VALUE=DATE:20280417", "STATUS:CANCELLED"]],
            ["2027-03-29", "2029-04-02"],
        ),
        (
            [
                ["UID:a", *EASTER_MONDAYS],
                ["UID:a", "RECURRENCE-ID;VALUE=DATE:20280417", "DTSTART;VALUE=DATE:20280418", "DURATION:P2D"],
            ],
            ["2027-03-29", "2028-04-18/2028-04-19", "2029-04-02"],
        ),
        (
            [
                ["UID:a", *EASTER_MONDAYS],
                [
                    "UID:a",
                    "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20280417",
                    "DTSTART;VALUE=DATE:20280418",
                ],
            ],
            ["2027-03-29", "2028-04-18", "2029-04-03"],
        ),
        (
            [["UID:a", "DTSTART;VALUE=DATE:20270101"], ["UID:a", "DTSTART;VALUE=DATE:20270102"]],
            ["2027-01-01/2027-01-02"],
        ),
        ([["UID:a", "DTSTART:20270101"], ["UID:a", "SEQUENCE:1", "DTSTART:20270105"]], ["2027-01-05"]),
        ([["DTSTART:20270101", "RRULE:FREQ=DAILY;COUNT=4", "EXRULE:FREQ=DAILY;INTERVAL=3"]], ["2027-01-02/2027-01-03"]),
        (
            [["DTSTART:20270101", "RRULE:FREQ=DAILY;COUNT=9", "BEGIN:VALARM", "DURATION:P9W", "END:VALARM"]],
            ["2027-01-01/2027-01-09"],
        ),
        ([["DTSTART:20500101"]], ["2050-01-01"]),
        ([["DTSTART:20251220", "DURATION:P3W", "RRULE:FREQ=WEEKLY;COUNT=1"]], ["2025-12-20/2026-01-09"]),
        (
            [
                ["UID:a", "DTSTART:20251220", "RRULE:FREQ=WEEKLY;COUNT=2"],
                ["UID:a", "RECURRENCE-ID;RANGE=THISANDFUTURE:20251220", "DTSTART:20260120"],
            ],
            ["2026-01-20", "2026-01-27"],
        ),
        ([["DTSTART:20270101", "DTEND:20261201"]], ["2027-01-01"]),
    ],
)
def test_events_recur_move_and_end_as_the_standard_says(events: list[list[str]], days: list[str]) -> None:
    """Whatever a file leaves out or adds, one occurrence or all later ones."""
    assert read(*events) == days


@try_each(
    "lines, days",
    [
        # All occurrences take the 24 hours of the first one, which end an hour later on the clock after the change.
        (["DTSTART;TZID=Europe/Berlin:20270320T233000", "DTEND;TZID=Europe/Berlin:20270321T233000"], "2027-03-29"),
        (["DTSTART;TZID=Europe/Berlin:20270320T233000", "DURATION:PT24H"], "2027-03-29"),
        (["DTSTART;TZID=Europe/Berlin:20270320T233000", "DURATION:P1D"], "2027-03-28"),
    ],
)
def test_a_day_is_one_of_the_clock_where_the_standard_says_so(lines: list[str], days: str) -> None:
    """DTEND and hours are elapsed time on each occurrence, and the days of a DURATION are not."""
    assert read([*lines, "RDATE;TZID=Europe/Berlin:20270327T233000"])[-1] == f"2027-03-27/{days}"


@try_each(
    "tzid, days",
    [
        ("Own", "2027-01-01/2027-01-02"),
        ("Europe/Berlin", "2027-01-01/2027-01-02"),
        ("/example.org/20250101/Europe/Berlin", "2027-01-01/2027-01-02"),
        ("W. Europe Standard Time", "2027-01-01/2027-01-02"),
        ("Nowhere", "2027-01-01"),
    ],
)
def test_zones_are_found(tzid: str, days: str) -> None:
    """By IANA name, also after a prefix, in the file itself, by the name in Windows; else the time is as written."""
    event = [f'DTSTART;TZID="{tzid}":20270101T233000', "DTEND:20270101T233000Z"]
    assert read(event, zone=own_zone("Own", "+0100")) == [days]


def test_a_file_does_not_change_what_the_next_one_means() -> None:
    """Two users' files may give one name to different zones; a file cannot say where Berlin is."""
    for offset, days in (
        ("+0100", "2027-01-01/2027-01-02"),
        ("-0100", "2027-01-01"),
        ("+0100", "2027-01-01/2027-01-02"),
    ):
        event = ["DTSTART;TZID=Mine:20270101T230000", "DTEND:20270101T233000Z"]
        assert read(event, zone=own_zone("Mine", offset)) == [days]
    event = ["DTSTART;TZID=Europe/Berlin:20270101T230000", "DTEND:20270101T233000Z"]
    assert read(event, zone=own_zone("Europe/Berlin", "-0900")) == ["2027-01-01/2027-01-02"]
    event = ["DTSTART;TZID=EST:20270101T230000", "DTEND:20270101T133000Z"]
    assert read(event, zone=own_zone("EST", "+1000")) == ["2027-01-01"]
    event = ["DTSTART;TZID=EST:20270101T230000", "DTEND:20270101T143000Z"]
    assert read(event, zone=own_zone("EST", "+1000")) == ["2027-01-01/2027-01-02"]


HEAD, FOOT = "BEGIN:VCALENDAR\n", "END:VEVENT\nEND:VCALENDAR"
MANY = [f"2027{1 + number % 12:02}{1 + number % 28:02}T{number % 24:02}{number % 60:02}00Z" for number in range(1_500)]


@try_each(
    "text, problem",
    [
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\n", "cut off"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nEND:VEVENT\n", "cut off"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\n{FOOT}\nBEGIN:VCALENDAR", "cut off"),
        (f"X{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nEND:VEVENT", "no line BEGIN:VCALENDAR"),
        (HEAD + "BEGIN:VEVENT\n" * 5_001, "in each other"),
        (HEAD + "BEGIN:VEVENT\nEND:VEVENT\n" * (MAX_EVENTS + 1) + "END:VCALENDAR", f"{MAX_EVENTS} events"),
        (f"{HEAD}BEGIN:VEVENT\n" + "RRULE:FREQ=DAILY\n" * MAX_EVENTS, f"{MAX_EVENTS} events"),
        (f"{HEAD}BEGIN:VEVENT\n" + f"EXDATE:{'20270102,' * 5_000}\n" * 2, "10000 dates"),
        (f"{HEAD}BEGIN:VEVENT\n" + "RDATE:20270102\n" * 10_001, "10000 dates"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nRRULE:FREQ=SECONDLY\nEND:VEVENT\nEND:VCALENDAR", "too long"),
        (f"\ufeff{HEAD}BEGIN:VEVENT\nDTSTART:20270101\n{FOOT}", ""),
        (
            f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30\nEND:VEVENT\nEND:VCALENDAR",
            "",
        ),
        (
            "\n".join(["BEGIN:VCALENDAR", *own_zone("X", "1"), "BEGIN:VEVENT", "DTSTART;TZID=X:20270101T000000", FOOT]),
            "offset",
        ),
        (
            HEAD
            + "".join(f"BEGIN:VEVENT\nUID:a\nDTSTART:{each}\nEND:VEVENT\n" for each in MANY)
            + "".join(f"BEGIN:VEVENT\nUID:a\nRECURRENCE-ID:{each}\nEND:VEVENT\n" for each in MANY)
            + "END:VCALENDAR",
            "too long",
        ),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:99991231T235959Z\nDURATION:P9999D\nEND:VEVENT\nEND:VCALENDAR", "date"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:,\nEND:VEVENT\nEND:VCALENDAR", "empty"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:P1D\nEND:VEVENT\nEND:VCALENDAR", "date"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART;=:1\nEND:VEVENT\nEND:VCALENDAR", "cannot be read"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nDURATION:P{'9' * 30}D\nEND:VEVENT\nEND:VCALENDAR", "duration"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART{';A=B' * 100}:20270101\nEND:VEVENT\nEND:VCALENDAR", ""),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART{';A=B' * 101}:20270101\nEND:VEVENT\nEND:VCALENDAR", "more than 100 parameters"),
    ],
)
def test_a_file_that_asks_for_too_much_or_makes_no_sense_is_refused(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is wrong, after a bounded number of steps, and never by an error of Python's."""
    monkeypatch.setattr(ics_days, "DISPATCH_STEPS", 50_000)
    if not problem:
        assert read_ics_days(text, NEW_YEAR)
        return
    with pytest.raises(InvalidInput, match=problem):
        read_ics_days(text, NEW_YEAR)


LARGE = {
    "dates": ["RDATE:20270102", "\nEXDATE:20270103"],
    "folds": ["SUMMARY:A", *["\n A"] * 9],
    "parameters": ["RDATE", *[";A=B"] * 9, ":20270102"],
    "lists": ["RDATE:20270102", *[",20270103"] * 9],
    "zones": ["EXDATE;TZID=X/{0}:20270102T000000"],
    "events": ["END:VEVENT", "\nBEGIN:VEVENT", "\nUID:{0}", "\nDTSTART:20270101"],
}
"""Lines, of which a file has many."""


@try_each("name", list(LARGE))
def test_a_file_twice_as_large_takes_twice_as_much(name: str) -> None:
    """Never four times: two megabytes of it would stop a server."""
    counts = []
    for number in (100, 200, 400):
        many = "\n".join("".join(LARGE[name]).format(each) for each in range(number))
        text = f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\n{many}\n{FOOT}"
        with count_calls() as calls:
            assert read_ics_days(text, NEW_YEAR)
        counts.append(calls.count)
    assert counts[2] - counts[1] < 2.2 * (counts[1] - counts[0]) + 100, counts


def test_a_calendar_of_birthdays_fits_into_a_request() -> None:
    """Eighty days that come every year, followed for twelve years, and there are steps left."""
    event = "BEGIN:VEVENT\nDTSTART;VALUE=DATE:1970{:02}{:02}\nRRULE:FREQ=YEARLY\nEND:VEVENT\n"
    text = HEAD + "".join(event.format(1 + number % 12, 1 + number % 28) for number in range(80)) + "END:VCALENDAR"
    with limit_search():
        days = read_ics_days(text, NEW_YEAR)
    assert len(days) > 500


_VALUES = st.text(st.sampled_from('aZ09 ,;:=/+-^%."\\\\nN\u00e9\u2028'), max_size=12)
_PARAMETERS = st.lists(st.tuples(st.sampled_from(["TZID", "value", "X-A"]), _VALUES), max_size=3)


@given(name=st.sampled_from(["DTSTART", "summary", "EXDATE"]), parameters=_PARAMETERS, value=_VALUES)
def test_a_usual_line_means_what_the_package_reads(name: str, parameters: list[tuple[str, str]], value: str) -> None:
    """What is read without the package is what it would have read, whatever stands in parameters and value."""
    line = name + "".join(f";{key}={text}" for key, text in parameters) + f":{value}"
    quick = ics_days.parse_usual(line)
    if quick is None:
        return
    name, found, text = Contentline(line).parts()  # type: ignore[no-untyped-call]  # as most of the package
    assert quick == (text, dict(found))


_DIGITS = st.text(st.sampled_from("0123456789\u0661TZ+-:P "), min_size=1, max_size=20)
_MOMENTS = st.from_regex(r"[0-9]{4}[01][0-9][0-3][0-9](T[0-2][0-9][0-6][0-9][0-6][0-9]Z?)?", fullmatch=True)


@given(value=_MOMENTS | _DIGITS)
@example("20270101T235960Z")
@example("20270229")
@example("00000101")
def test_a_plain_moment_means_what_the_package_reads(value: str) -> None:
    """A date or time that is read without the package is the one that it would have read; all others are left to it."""
    quick = ics_days.parse_plain_moment(value)
    if quick is not None:
        read = vDDDTypes.from_ical(value)  # type: ignore[no-untyped-call]  # as most of the package
        assert (type(quick), quick) == (type(read), read)


def test_long_lines_that_are_unusual_are_refused() -> None:
    """The package looks at each of their characters several times."""
    lines = [f'DTSTART;X="{"a^" * 150_000}":20270101']
    with pytest.raises(InvalidInput, match="unusual parameters"):
        read_ics_days(calendar(*lines), date(2027, 1, 1))
