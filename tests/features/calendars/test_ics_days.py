"""Which days the events of an iCalendar file take. `test_ics_files` is about what is no file at all."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each
from tests.engine.harness import DAY

from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.errors import InvalidInput
from cloudsched.features.calendars import ics_days
from cloudsched.features.calendars.ics_days import MAX_EVENTS, read_ics_days

NEW_YEAR = date(2027, 1, 1)


def calendar(*lines: str) -> str:
    body = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "SUMMARY:Closed", *lines, "END:VEVENT", "END:VCALENDAR")
    return "\r\n".join(body) + "\r\n"


@try_each(
    "lines, days",
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
    length = 3660 * DAY
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
        (HEAD + "BEGIN:VEVENT\n" * 5_001, "BEGIN:VEVENT is in VEVENT of line 2"),
        (HEAD + "BEGIN:X-A\n" * 20_000, "15000 components"),
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
        (f"{HEAD}BEGIN:VEVENT\nDTSTART;=:1\nEND:VEVENT\nEND:VCALENDAR", "date"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART:20270101\nDURATION:P{'9' * 30}D\nEND:VEVENT\nEND:VCALENDAR", "ten years"),
        (f"{HEAD}BEGIN:VEVENT\nDTSTART{';A=B' * 10_000}:20270101\nEND:VEVENT\nEND:VCALENDAR", ""),
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
    "long parameters": ['RDATE;X="', *["a^"] * 99, '":20270102'],
    "other lines": ["X-A:b", "\nBEGIN:VALARM", "\nTRIGGER:-PT5M", "\nEND:VALARM"],
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


def bounded(*lines: str, calendar: tuple[str, ...] = ()) -> list[str]:
    """Return the days of an event that takes whole days of the first week of 2027, as far as some lines let it."""
    event = ["UID:a", "DTSTART;VALUE=DATE:20270104", *lines]
    return read(event, zone=list(calendar))


BERLIN, NEW_YORK, AUCKLAND = (
    (f"X-WR-TIMEZONE:{zone}",) for zone in ("Europe/Berlin", "America/New_York", "Pacific/Auckland")
)
OWN_BERLIN = tuple(own_zone("Customized Time Zone", "+0100"))
FIRST_FOUR, FIRST_FIVE = ["2027-01-04/2027-01-07"], ["2027-01-04/2027-01-08"]


@try_each(
    "until, calendar, days",
    [
        ("20270107T230000Z", (), FIRST_FIVE),  # midnight in Berlin
        ("20270107T230000Z", BERLIN, FIRST_FIVE),
        ("20270107T230000Z", OWN_BERLIN, FIRST_FIVE),
        ("20270107T225959Z", (), FIRST_FOUR),
        ("20270107T225959Z", BERLIN, FIRST_FOUR),
        ("20270108T050000Z", (), FIRST_FIVE),  # midnight in New York
        ("20270108T050000Z", NEW_YORK, FIRST_FIVE),
        ("20270108T045959Z", (), FIRST_FOUR),
        ("20270108T045959Z", NEW_YORK, FIRST_FOUR),
        ("20270107T110000Z", (), FIRST_FIVE),  # midnight in Auckland
        ("20270107T110000Z", AUCKLAND, FIRST_FIVE),
        ("20270107T110000Z", BERLIN, FIRST_FOUR),  # noon
        ("20270108T100000Z", (), FIRST_FIVE),  # midnight in Honolulu
        ("20270107T160000Z", (), FIRST_FIVE),  # midnight in Singapore
        ("20270107T160000Z", BERLIN, FIRST_FOUR),
        ("20270108T000000Z", NEW_YORK, FIRST_FIVE),  # a date with zeros behind it
        ("20270107T235959Z", BERLIN, FIRST_FOUR),
        ("20270107T235959Z", (), FIRST_FOUR),
        ("20270107", BERLIN, FIRST_FOUR),
    ],
)
def test_bounds_in_utc_mean_a_day_of_an_event_of_whole_days(
    until: str, calendar: tuple[str, ...], days: list[str]
) -> None:
    """That on which it is midnight, or the end of the day, where the calendar is from; east or west of Greenwich."""
    assert bounded(f"RRULE:FREQ=DAILY;UNTIL={until}", calendar=calendar) == days


@try_each(
    "at, calendar",
    [
        ("20270105T230000Z", ()),
        ("20270105T230000Z", BERLIN),
        ("20270106T050000Z", ()),
        ("20270106T050000Z", NEW_YORK),
        ("20270105T110000Z", AUCKLAND),
        ("20270106T000000Z", NEW_YORK),
    ],
)
def test_an_excluded_or_changed_day_may_be_given_in_utc(at: str, calendar: tuple[str, ...]) -> None:
    """EXDATE and RECURRENCE-ID mean the same day as UNTIL would."""
    rest = ["2027-01-04/2027-01-05", "2027-01-07"]
    assert bounded("RRULE:FREQ=DAILY;COUNT=4", f"EXDATE:{at}", calendar=calendar) == rest
    event = ["UID:a", "DTSTART;VALUE=DATE:20270104", "RRULE:FREQ=DAILY;COUNT=4"]
    assert read(event, ["UID:a", f"RECURRENCE-ID:{at}", "STATUS:CANCELLED"], zone=list(calendar)) == rest
    moved = ["UID:a", f"RECURRENCE-ID:{at}", "DTSTART;VALUE=DATE:20270201"]
    assert read(event, moved, zone=list(calendar)) == [*rest, "2027-02-01"]


@try_each(
    "lines, calendar, days",
    [
        (["DTSTART:20270713T140000Z", "DTEND:20270714T140000Z"], ["X-WR-TIMEZONE:Australia/Sydney"], ["2027-07-14"]),
        (["DTSTART:20270713T140000Z", "DTEND:20270714T140000Z"], [], ["2027-07-13/2027-07-14"]),
        (["DTSTART:20270714T030000Z"], ["X-WR-TIMEZONE:America/Los_Angeles"], ["2027-07-13"]),
        (["DTSTART:20270714T233000"], ["X-WR-TIMEZONE:Australia/Sydney"], ["2027-07-14"]),
        (["DTSTART;TZID=Europe/Berlin:20270714T233000"], ["X-WR-TIMEZONE:Australia/Sydney"], ["2027-07-14"]),
        (["DTSTART;VALUE=DATE:20270714"], ["X-WR-TIMEZONE:America/Los_Angeles"], ["2027-07-14"]),
        (["DTSTART:20270714T233000Z"], ["X-WR-TIMEZONE:Own", *own_zone("Own", "+0100")], ["2027-07-15"]),
        (["DTSTART:20270714T233000Z"], ["X-WR-TIMEZONE:Nowhere"], ["2027-07-14"]),
        (
            ["DTSTART:20270713T140000Z", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;VALUE=DATE:20270715"],
            ["X-WR-TIMEZONE:Australia/Sydney"],
            ["2027-07-14", "2027-07-16"],
        ),
        (
            ["DTSTART:20270713T090000", "RRULE:FREQ=DAILY;UNTIL=20270714T230000Z"],
            ["X-WR-TIMEZONE:Australia/Sydney"],
            ["2027-07-13/2027-07-15"],
        ),
    ],
)
def test_a_calendar_shows_events_in_utc_on_its_own_clock(
    lines: list[str], calendar: list[str], days: list[str]
) -> None:
    """X-WR-TIMEZONE is the zone of the calendar's days, and of bounds, but of no event that has its own zone."""
    assert read(lines, zone=calendar) == days


OLD, NEW = "DTSTAMP:20260101T000000Z", "DTSTAMP:20260102T000000Z"
FOUR_LESS_ONE = ["2027-01-04/2027-01-05", "2027-01-07"]
FOUR = ["DTSTART;VALUE=DATE:20270104", "RRULE:FREQ=DAILY;COUNT=4"]
CHANGED = ["RECURRENCE-ID;VALUE=DATE:20270106", "DTSTART;VALUE=DATE:20270201"]


@try_each(
    "events, days",
    [
        ([[NEW, "DTSTART:20270105"], [OLD, "DTSTART:20270101"]], ["2027-01-05"]),
        ([[OLD, "DTSTART:20270101"], [NEW, "DTSTART:20270105"]], ["2027-01-05"]),
        ([[NEW, "DTSTART:20270105"], [OLD, "SEQUENCE:1", "DTSTART:20270101"]], ["2027-01-01"]),
        ([["SEQUENCE:1", NEW, "DTSTART:20270105"], ["SEQUENCE:1", OLD, "DTSTART:20270101"]], ["2027-01-05"]),
        ([["DTSTART:20270105"], [OLD, "DTSTART:20270101"]], ["2027-01-01"]),
        ([[OLD, *FOUR], [NEW, "DTSTART;VALUE=DATE:20270104", "RRULE:FREQ=DAILY;COUNT=2"]], ["2027-01-04/2027-01-05"]),
        ([[OLD, *FOUR], [NEW, *FOUR, "STATUS:CANCELLED"]], []),
        ([[NEW, *FOUR, "STATUS:CANCELLED"], [OLD, *FOUR]], []),
        ([[OLD, *FOUR], [NEW, "STATUS:CANCELLED"]], []),
        ([[OLD, *FOUR, "STATUS:CANCELLED"], [OLD, *FOUR]], []),
        ([[OLD, *FOUR, "STATUS:CANCELLED"], [OLD, *CHANGED]], ["2027-02-01"]),
        ([[OLD, *FOUR], [OLD, *CHANGED], [NEW, "STATUS:CANCELLED"]], []),
        (
            [[OLD, *FOUR], [NEW, *CHANGED], [OLD, CHANGED[0], "DTSTART;VALUE=DATE:20270301"]],
            ["2027-01-04/2027-01-05", "2027-01-07", "2027-02-01"],
        ),
        ([[OLD, *CHANGED], [NEW, *FOUR, "EXDATE;VALUE=DATE:20270106"]], ["2027-01-04/2027-01-05", "2027-01-07"]),
        ([[NEW, *CHANGED], [OLD, *FOUR, "EXDATE;VALUE=DATE:20270106"]], [*FOUR_LESS_ONE, "2027-02-01"]),
        ([[OLD, *CHANGED], [NEW, *FOUR]], [*FOUR_LESS_ONE, "2027-02-01"]),
        (
            [[OLD, "RECURRENCE-ID;RANGE=THISANDFUTURE:20270106", CHANGED[1]], [NEW, *FOUR, "EXDATE:20270106"]],
            ["2027-01-04/2027-01-05", "2027-01-07"],
        ),
        ([[OLD, *CHANGED], [NEW, FOUR[0], "RRULE:FREQ=DAILY;COUNT=2"]], ["2027-01-04/2027-01-05"]),
    ],
)
def test_the_latest_version_counts(events: list[list[str]], days: list[str]) -> None:
    """By SEQUENCE, then by DTSTAMP, wherever it is in the file. What it no longer has is gone with its changes."""
    assert read(*(["UID:a", *each] for each in events)) == days


def test_versions_of_an_occurrence_may_name_it_on_different_clocks() -> None:
    """One program writes the local time, another one UTC. Only the newer change counts."""
    event = ["UID:a", "DTSTART;TZID=Europe/Berlin:20270104T090000", "RRULE:FREQ=DAILY;COUNT=2"]
    local = ["RECURRENCE-ID;TZID=Europe/Berlin:20270105T090000", "DTSTART:20270120T080000Z"]
    utc = ["RECURRENCE-ID:20270105T080000Z", "DTSTART:20270121T080000Z"]
    assert read(event, ["UID:a", OLD, *local], ["UID:a", NEW, *utc]) == ["2027-01-04", "2027-01-21"]
    assert read(event, ["UID:a", NEW, *local], ["UID:a", OLD, *utc]) == ["2027-01-04", "2027-01-20"]


def test_a_message_that_cancels_an_event_takes_its_days_away() -> None:
    """A file may have several messages about one event: METHOD:CANCEL cancels, whatever STATUS says."""
    request = "BEGIN:VCALENDAR\nMETHOD:REQUEST\nBEGIN:VEVENT\nUID:a\n{}\nDTSTART:20270101\nEND:VEVENT\nEND:VCALENDAR\n"
    cancel = "BEGIN:VCALENDAR\nMETHOD:CANCEL\nBEGIN:VEVENT\nUID:a\n{}\n{}\nEND:VEVENT\nEND:VCALENDAR\n"
    assert read_ics_days(request.format(OLD), NEW_YEAR)
    assert not read_ics_days(cancel.format(NEW, "DTSTART:20270101"), NEW_YEAR)
    for last in ("DTSTART:20270101", "STATUS:CANCELLED", "X-A:b"):
        for text in (request.format(OLD) + cancel.format(NEW, last), cancel.format(NEW, last) + request.format(OLD)):
            assert not read_ics_days(text, NEW_YEAR)
    one = cancel.format(NEW, "RECURRENCE-ID:20270101")
    again = request.format(OLD).replace("DTSTART", "RRULE:FREQ=DAILY;COUNT=2\nDTSTART")
    assert read_ics_days(again + one, NEW_YEAR) == [(date(2027, 1, 2), date(2027, 1, 2), "")]


@try_each("method", ["REPLY", "COUNTER", "ADD", "REFRESH", "DECLINECOUNTER", "X-OTHER"])
def test_a_message_that_is_no_calendar_is_refused(method: str) -> None:
    """An answer or a proposal has events that do not take place like this."""
    with pytest.raises(InvalidInput, match=f"METHOD:{method}"):
        read_ics_days(f"{HEAD}METHOD:{method}\nBEGIN:VEVENT\nDTSTART:20270101\n{FOOT}", NEW_YEAR)


def test_a_zone_of_any_name_is_the_one_that_the_file_defines() -> None:
    """Exporting programs name zones as they like; IANA's and those of Windows need no definition."""
    for tzid in ("Customized Time Zone", "Customized Time Zone 1", "(UTC+01:00) Amsterdam, Berlin", "tzone://X/1"):
        event = [f'DTSTART;TZID="{tzid}":20270101T233000', "DTEND:20270101T233000Z"]
        assert read(event, zone=own_zone(tzid, "+0100")) == ["2027-01-01/2027-01-02"]
