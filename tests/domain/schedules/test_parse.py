"""The notations in which a schedule may be written."""

from __future__ import annotations

import string
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.call_counts import count_calls
from tests.cases import try_each

from cloudsched.domain.recurrence.cron import cron_rules
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

NOW = datetime(2027, 1, 31, 12, 0, tzinfo=UTC)
PARIS = "Europe/Paris"
EVENT = """BEGIN:VCALENDAR
BEGIN:VTIMEZONE
TZID:America/New_York
BEGIN:STANDARD
DTSTART:19671029T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
END:STANDARD
END:VTIMEZONE
BEGIN:VEVENT
SUMMARY:Stand-up: the daily one
DTSTART;TZID=America/New_York:20270201T090000
DTEND;TZID=America/New_York:20270201T091500
RRULE:FREQ=WEEKLY;
 BYDAY=MO,TU
EXDATE;TZID=America/New_York:20270202T090000,20270208T090000
RDATE;TZID=Europe/Paris:20270203T090000
BEGIN:VALARM
TRIGGER:-PT5M
END:VALARM
END:VEVENT
END:VCALENDAR
"""


def list_next(text: str, count: int = 3, timezone: str = PARIS) -> list[str]:
    found = Schedule.parse(text, timezone=timezone, now=NOW).upcoming(NOW, count)
    return [f"{at:%Y-%m-%dT%H:%M}" for at in found]


def test_a_rule_without_dtstart_begins_now_or_stays_unanchored() -> None:
    assert list_next("FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9", 2) == ["2027-02-28T08:00", "2027-03-31T07:00"]
    assert not Schedule.parse("RRULE:FREQ=DAILY", timezone=PARIS).is_anchored


def test_a_day_that_an_event_leaves_out_is_its_own_day() -> None:
    """A date is no instant, whatever zone stands beside it."""
    event = EVENT.replace("EXDATE;TZID=America/New_York:20270202T090000,20270208T090000", "{0}")
    for left_out in ("EXDATE;VALUE=DATE:20270202", "EXDATE;VALUE=DATE;TZID=Europe/Paris:20270202"):
        found = list_next(event.format(left_out), 20)
        assert not [at for at in found if at.startswith("2027-02-02")]
        assert [at for at in found if at.startswith("2027-02-08")]


def test_an_icalendar_event() -> None:
    """The event's own properties count: not the time zone's, not the alarm's."""
    schedule = Schedule.parse(EVENT, timezone=PARIS)
    assert schedule == Schedule(
        rrule="FREQ=WEEKLY;BYDAY=MO,TU",
        dtstart="2027-02-01T09:00:00",
        timezone="America/New_York",
        rdates=["2027-02-03T08:00:00Z"],
        exdates=["2027-02-02T09:00:00", "2027-02-08T09:00:00"],
    )


@try_each(
    "text, timezone",
    [
        ("DTSTART:20270101T090000Z\nRRULE:FREQ=DAILY", "UTC"),
        ("DTSTART:20270101T090000\nRRULE:FREQ=DAILY", PARIS),
        ("dtstart;tzid=Asia/Tokyo:20270101T090000\r\nrrule:freq=daily", "Asia/Tokyo"),
        ('DTSTART;X="a;TZID=Asia/Tokyo":20270101T090000', PARIS),
        ('DTSTART;TZID="/example.org/2027/America/Argentina/Ushuaia":20270101T090000', "America/Argentina/Ushuaia"),
        ("DTSTART;TZID=W. Europe Standard Time:20270101T090000", "Europe/Berlin"),
        ("DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=DAILY", PARIS),
    ],
)
def test_the_time_zone_of_an_icalendar_block(text: str, timezone: str) -> None:
    """UTC if DTSTART is in UTC, the zone of TZID if there is one, otherwise the caller's."""
    assert Schedule.parse(text, timezone=PARIS).timezone == timezone


@try_each(
    "text",
    [
        "DTSTART:20270101T090000\nEXRULE:FREQ=DAILY",
        "DTSTART;TZID=Middle/Earth:20270101T090000",
        "DTSTART:20270101T090000\nDTSTART:20280101T090000",
        "BEGIN:VEVENT\nEND:VEVENT\nBEGIN:VEVENT\nEND:VEVENT",
        "BEGIN:VEVENT\nDTSTART:20270101T090000\nSTATUS:CANCELLED\nEND:VEVENT",
        "DTSTART:20270101T090000\nnothing",
        "BEGIN:VEVENT\nDTSTART:20270101T090000",
        "BEGIN:VEVENT\nDTSTART:20270101T090000\nEND:VEVENT\nEND:VEVENT",
        "BEGIN:VEVENT\nDTSTART:20270101T090000\nEND:VEVNT",
        "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20270101T090000\nEND:VCALENDAR",
        "BEGIN:VTIMEZONE\nTZID:Own\nEND:VTIMEZONE\nDTSTART;TZID=Own:20270101T090000",
        "BEGIN:VTIMEZONE\nTZID:Own\nBEGIN:STANDARD\nEND:STANDARD\nEND:VTIMEZONE\nDTSTART;TZID=Own:20270101T090000",
        "BEGIN:VCALENDAR\nMETHOD:CANCEL\nBEGIN:VEVENT\nDTSTART:20270101T090000\nEND:VEVENT\nEND:VCALENDAR",
        "RRULE:FREQ=DAILY\nRDATE:tomorrow",
        # Cron
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "* * * * 1#6",
        "* * 31 2 *",
        "a * * * *",
        "* * 15W * *",
        "1-2-3 * * * *",
        ", * * * *",
        "* * */31 * 1#5",
        "* * L-31 * *",
        # No known notation
        "",
        "  ",
        "hello",
        "every day",
        "5",
        "* * * *",
        "* * * * * *",
        "P",
        "PT",
        "R/PT1H",
    ],
)
def test_text_that_cannot_be_represented_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule):
        Schedule.parse(text, now=NOW)


OWN_ZONE = """BEGIN:VTIMEZONE
TZID:Customized Time Zone
BEGIN:STANDARD
DTSTART:16010101T{change}
TZOFFSETFROM:{summer}
TZOFFSETTO:{winter}
RRULE:FREQ=YEARLY;BYDAY={end};BYMONTH={months[1]}
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:{winter}
TZOFFSETTO:{summer}
RRULE:FREQ=YEARLY;BYDAY={begin};BYMONTH={months[0]}
END:DAYLIGHT
END:VTIMEZONE
"""
EUROPE = {"change": "030000", "begin": "-1SU", "end": "-1SU", "months": (3, 10), "winter": "+0100", "summer": "+0200"}
AMERICA = {"change": "020000", "begin": "2SU", "end": "1SU", "months": (3, 11), "winter": "-0500", "summer": "-0400"}


@try_each(
    "zone, likely, same_as",
    [
        (EUROPE, "UTC", "Europe/Berlin"),
        (EUROPE, PARIS, PARIS),
        (AMERICA, PARIS, "America/New_York"),
        ({**EUROPE, "change": "040000"}, PARIS, None),
    ],
)
def test_a_zone_of_any_name_is_the_one_with_the_same_clock(
    zone: dict[str, Any], likely: str, same_as: str | None
) -> None:
    """A schedule needs a zone that IANA knows: one with the same clock, the caller's if it can."""
    event = "BEGIN:VEVENT\nDTSTART;TZID=Customized Time Zone:20270104T090000\nRRULE:FREQ=MONTHLY\nEND:VEVENT\n"
    text = f"BEGIN:VCALENDAR\n{OWN_ZONE.format(**zone)}{event}END:VCALENDAR"
    if same_as is None:
        with pytest.raises(InvalidSchedule, match="Customized Time Zone"):
            Schedule.parse(text, timezone=likely)
        return
    schedule = Schedule.parse(text, timezone=likely)
    expected = Schedule(rrule="FREQ=MONTHLY", dtstart="2027-01-04T09:00:00", timezone=same_as)
    start = datetime(2027, 1, 1, tzinfo=UTC)
    assert schedule.upcoming(start, 24) == expected.upcoming(start, 24)
    assert schedule.timezone == same_as or likely != same_as


@try_each(
    "line",
    [
        "SUMMARY:a\u2028b\x85c\x0cd",
        'ATTENDEE;MEMBER="mailto:a","mailto:b":mailto:c',
        'X-A;B="x;TZID=Asia/Tokyo:":c',
        "DESCRIPTION:END:VEVENT",
        "DESCRIPTION:Bring\n\nthe cake\nSee: a\nb",
    ],
)
def test_legal_lines_of_an_icalendar_block_are_read(line: str) -> None:
    """Whatever ends lines elsewhere, and parameters of several values."""
    text = f"BEGIN:VEVENT\n{line}\nDTSTART:20270101T090000\nRRULE:FREQ=DAILY\nEND:VEVENT"
    for end in ("\n", "\r\n", "\r"):
        schedule = Schedule.parse(text.replace("\n", end), timezone=PARIS)
        assert schedule == Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00", timezone=PARIS)


def test_a_line_of_no_form_is_named() -> None:
    """A rule in it is not taken for the text before it."""
    with pytest.raises(InvalidSchedule, match="line 3: 'RRULE FREQ=DAILY'"):
        Schedule.parse("BEGIN:VEVENT\nSUMMARY:a\nRRULE FREQ=DAILY\nDTSTART:20270101T090000\nEND:VEVENT")


@try_each(
    "schedule",
    [
        Schedule.parse(EVENT),
        Schedule(rrule=["FREQ=DAILY", "FREQ=HOURLY;BYDAY=SU"], dtstart="2027-01-01T09:00:00", timezone=PARIS),
        Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00", exdates=["2027-02-01", "2027-02-02T09:00:00Z"]),
        Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T09:00:00", timezone=PARIS, gap="skip", sub_daily="wall"),
        Schedule(rrule="FREQ=SECONDLY;BYSECOND=" + ",".join(map(str, range(60))), timezone=PARIS),
    ],
)
def test_icalendar_round_trip(schedule: Schedule) -> None:
    """`to_ical` writes text that other programs can read, and `parse` reads it back as the same schedule."""
    text = schedule.to_ical()
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    again = Schedule.parse(text, timezone=schedule.timezone)
    assert again == schedule
    assert again.to_ical() == text


@try_each(
    "text, expected",
    [
        ("2027-03-01T09:00:00Z", "2027-03-01T09:00"),
        ("2027-03-01T09:00:00+02:00", "2027-03-01T07:00"),
        ("2027-03-01T09:00:00-05:30", "2027-03-01T14:30"),
        ("2027-03-01T09:00", "2027-03-01T08:00"),
        ("2027-03-28T02:30:00", "2027-03-28T01:30"),
        ("2027-03-01", "2027-02-28T23:00"),
        ("PT5M", "2027-01-31T12:05"),
        ("P1M", "2027-02-28T12:00"),
        ("P2W", "2027-02-14T12:00"),
    ],
)
def test_instants_and_durations(text: str, expected: str) -> None:
    """Local times are in the zone; months end at their last day; days keep the local time, hours are elapsed."""
    assert list_next(text) == [expected]


def test_a_duration_ends_within_the_calendar() -> None:
    with pytest.raises(InvalidSchedule, match="calendar"):
        Schedule.parse("P9000Y", now=NOW)


@try_each(
    "text, expected",
    [
        ("0 9 * * 1-5", ["2027-02-01T08:00", "2027-02-02T08:00", "2027-02-03T08:00"]),
        ("30 8 L * *", ["2027-02-28T07:30", "2027-03-31T06:30", "2027-04-30T06:30"]),
        ("30 8 L-2 * ?", ["2027-02-26T07:30", "2027-03-29T06:30", "2027-04-28T06:30"]),
        ("0 9 * * 5L", ["2027-02-26T08:00", "2027-03-26T08:00", "2027-04-30T07:00"]),
        ("0 9 * * FRI#2", ["2027-02-12T08:00", "2027-03-12T08:00", "2027-04-09T07:00"]),
        ("0 9 * * SUN#5,2L", ["2027-02-23T08:00", "2027-03-30T07:00", "2027-04-27T07:00"]),
        ("0 0 1,15 * MON", ["2027-01-31T23:00", "2027-02-07T23:00", "2027-02-14T23:00"]),
        ("0 0 */10 * MON", ["2027-01-31T23:00", "2027-02-28T23:00", "2027-05-30T22:00"]),
        ("*/20 9-10 * FEB sun", ["2027-02-07T08:00", "2027-02-07T08:20", "2027-02-07T08:40"]),
        ("0 22-2/2 * * *", ["2027-01-31T21:00", "2027-01-31T23:00", "2027-02-01T01:00"]),
        ("15 10 29 2 *", ["2028-02-29T09:15", "2032-02-29T09:15", "2036-02-29T09:15"]),
        ("@hourly", ["2027-01-31T13:00", "2027-01-31T14:00", "2027-01-31T15:00"]),
        ("*/30 * * * 1#1", ["2027-01-31T23:00", "2027-01-31T23:30", "2027-02-01T00:00"]),
        ("*/30 * */10 * 1L", ["2027-05-30T22:00", "2027-05-30T22:30", "2027-05-30T23:00"]),
        ("* 5 * * SAT-MON", ["2027-02-01T04:00", "2027-02-01T04:01", "2027-02-01T04:02"]),
        ("5 0-23 * * *", ["2027-01-31T12:05", "2027-01-31T13:05", "2027-01-31T14:05"]),
    ],
)
def test_cron(text: str, expected: list[str]) -> None:
    """Five fields with names, lists, ranges, steps, ``L`` and ``#``; the start does not matter."""
    assert list_next(text) == expected
    found = Schedule.parse(text, timezone=PARIS).upcoming(NOW, 3)
    assert [f"{at:%Y-%m-%dT%H:%M}" for at in found] == expected


def test_a_cron_field_that_names_every_day_names_no_day() -> None:
    """Then the other field says nothing either, since either suffices; one rule says that."""
    for text in ("0 9 1-31 * FRI", "0 9 13 * 0-6", "0 9 1-31 * 0-6"):
        assert cron_rules(text) == cron_rules("0 9 * * *"), text


def test_cron_handles_clock_changes_like_debian() -> None:
    """A job with a fixed time runs once on each day; one with ``*`` runs whenever the clock matches."""
    fold = datetime(2027, 10, 31, 0, 10, tzinfo=UTC)
    gap = datetime(2027, 3, 28, 0, 10, tzinfo=UTC)
    fixed = Schedule.parse("30 2 * * *", timezone=PARIS)
    assert [at.day for at in fixed.upcoming(fold - timedelta(hours=1), 2)] == [31, 1]
    assert fixed.next_after(gap) == datetime(2027, 3, 28, 1, 30, tzinfo=UTC)
    each = Schedule.parse("30 * * * *", timezone=PARIS)
    for change in (gap, fold):
        found = each.upcoming(change, 4)
        assert found == [change + timedelta(minutes=20, hours=hour) for hour in range(4)]
    every_half = Schedule.parse("*/30 2 * * *", timezone=PARIS)
    assert [f"{at:%d %H:%M}" for at in every_half.upcoming(fold, 5)] == [
        *("31 00:30", "31 01:00", "31 01:30"),
        *("01 01:00", "01 01:30"),
    ]
    assert every_half.next_after(gap - timedelta(hours=2)) == gap + timedelta(hours=23, minutes=50)


PARTS = st.sampled_from(
    ["FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "BYHOUR", "BYSETPOS", "BYWEEKNO", "SKIP"]
)
VALUES = st.one_of(
    st.integers().map(str),
    st.sampled_from(["DAILY", "SECONDLY", "YEARLY", "MO,-1FR", "20270101T000000Z", "1,2,3", "BACKWARD", ""]),
    st.text(max_size=8),
)
RULES = st.lists(st.builds("{}={}".format, PARTS, VALUES), max_size=6).map(";".join)
PROPERTIES = st.sampled_from(["DTSTART", "RRULE", "RDATE", "EXDATE;TZID=UTC", "BEGIN", "END", "DTSTART;TZID"])
BLOCKS = st.lists(st.builds("{}:{}".format, PROPERTIES, st.one_of(RULES, VALUES)), max_size=5).map("\n".join)
ALPHABET = string.digits + "*/-,#L?PTZMDYHWFREQ=;: \n"
TEXTS = st.one_of(st.text(max_size=60), st.text(alphabet=ALPHABET, max_size=40), RULES, BLOCKS)


@settings(max_examples=600)
@given(TEXTS)
def test_no_text_crashes_the_parser(text: str) -> None:
    """Any text is parsed or refused with a reason, and neither takes long."""
    with count_calls() as calls, suppress(InvalidSchedule):
        schedule = Schedule.parse(text, timezone=PARIS, now=NOW)
        schedule.upcoming(NOW, 2)
        schedule.describe()
        schedule.to_ical()
    assert calls.count < 250_000


def test_second_60_is_second_59() -> None:
    """There are no leap seconds here; RFC 5545, section 3.3.12."""
    schedule = Schedule(rrule="FREQ=DAILY;BYSECOND=60", dtstart="2027-01-01T09:00:00")
    assert schedule.first() == datetime(2027, 1, 1, 9, 0, 59, tzinfo=UTC)


@try_each(
    "rule, problem",
    [
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "BYWEEKNO"),  # a week has each weekday once
        *((f"FREQ=DAILY;{part}", "1 or more|whole number") for part in ("INTERVAL=0", "COUNT=0", "COUNT=-1")),
        *((f"FREQ=DAILY;{part};BYHOUR=9", "is not NAME=VALUE.*BYDAY=MO,WE") for part in ("COUNT", "=9", "COUNT=", "")),
        ("FREQ=DAILY;BYSETPOS=1", "there is none"),
    ],
)
def test_an_invalid_rule_is_refused_with_what_is_allowed(rule: str, problem: str) -> None:
    """As RFC 5545 says. What is no pair is told as such, whichever half is missing."""
    with pytest.raises(InvalidSchedule, match=problem):
        Schedule(rrule=rule, dtstart="2027-01-01T09:00:00")
