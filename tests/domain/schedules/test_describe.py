"""Schedules in English."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest
from tests.cases import try_each

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
START = {"dtstart": "2027-01-04T09:00:00", "timezone": "Europe/Paris"}


@try_each(
    "rule, text",
    [
        ("FREQ=DAILY", "every day at 09:00"),
        ("FREQ=DAILY;INTERVAL=2;BYHOUR=8,20", "every 2 days at 08:00 and 20:00"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every weekday at 09:00"),
        ("FREQ=DAILY;BYDAY=SA,SU", "every Saturday and Sunday at 09:00"),
        ("FREQ=WEEKLY", "every Monday at 09:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "every 2 weeks on Monday and Friday at 09:00"),
        ("FREQ=MONTHLY", "every month on the 4th at 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15,-1", "every month on the last day, the 1st and the 15th at 09:00"),
        ("FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday at 09:00"),
        ("FREQ=MONTHLY;BYDAY=2TU,-2TU", "every month on the 2nd last Tuesday and the 2nd Tuesday at 09:00"),
        (
            "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
            "every month on the 31st at 09:00 (or the last day before, where there is no such day)",
        ),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "the last of every month on Monday and Tuesday at 09:00"),
        (
            "FREQ=YEARLY;BYMONTH=3,6;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "the last of every year on Monday, Tuesday, Wednesday, Thursday and Friday in March and June at 09:00",
        ),
        (
            "FREQ=YEARLY;BYMONTH=3;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "every year on the last working day in March at 09:00",
        ),
        (
            "FREQ=DAILY;INTERVAL=2;BYHOUR=9,10,11,12;BYMINUTE=0,15,30,45",
            "every 2 days at minute 0, 15, 30 and 45 in hour 9 to 12",
        ),
        ("FREQ=YEARLY", "every year on the 4th of January at 09:00"),
        ("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24;BYHOUR=18", "every year on the 24th of December at 18:00"),
        ("FREQ=YEARLY;BYYEARDAY=100", "every year on the 100th day of the year at 09:00"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "every year on Monday in week 20 at 09:00"),
        ("FREQ=DAILY;COUNT=1", "every day at 09:00|, 1 time"),
        ("FREQ=DAILY;UNTIL=20271231T230000Z", "every day at 09:00|, until 2027-12-31 23:00 UTC"),
        ("FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10,11,12,17", "every 15 minutes in hour 9 to 12 and 17"),
        ("FREQ=DAILY;BYMONTH=6,7", "every day in June and July at 09:00"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "every week, on the last of Monday to Friday at 09:00"),
        ("FREQ=WEEKLY;BYDAY=SU,MO,SA;BYSETPOS=2", "every week, on the 2nd of Monday, Saturday and Sunday at 09:00"),
        (
            "FREQ=WEEKLY;WKST=SU;BYDAY=SU,MO,SA;BYSETPOS=2",
            "every week, on the 2nd of Sunday, Monday and Saturday at 09:00",
        ),
        (
            "FREQ=WEEKLY;WKST=SA;BYDAY=SU,MO,SA,TH;BYSETPOS=1,-1",
            "every week, on the 1st and last of Saturday to Monday and Thursday at 09:00",
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYMONTH=3;BYDAY=TU,TH;BYSETPOS=1",
            "every 2 weeks in March, on the 1st of Tuesday and Thursday at 09:00",
        ),
        (
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-1",
            "every week, at the last of the times on Monday to Friday at 09:00 and 17:00",
        ),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=1", "every Monday at 09:00"),
        ("FREQ=WEEKLY;BYDAY=TU;BYHOUR=9,17;BYSETPOS=2", "every Tuesday, at the 2nd of 09:00 and 17:00"),
        ("FREQ=DAILY;BYHOUR=9;BYSETPOS=-1", "every day at 09:00"),
        ("FREQ=DAILY;BYHOUR=9,12,17;BYSETPOS=1,-1", "every day, at the 1st and last of 09:00, 12:00 and 17:00"),
        ("FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-1", "every weekday, at the last of 09:00 and 17:00"),
        ("FREQ=DAILY;INTERVAL=3;BYHOUR=9,17;BYSETPOS=-2", "every 3 days, at the 2nd last of 09:00 and 17:00"),
        (
            "FREQ=DAILY;BYHOUR=9,10,11;BYMINUTE=0,10,20,30,40;BYSETPOS=-1",
            "every day, at the last of the times at minute 0, 10, 20, 30 and 40 in hour 9 to 11",
        ),
    ],
)
def test_a_rule(rule: str, text: str) -> None:
    """The text contains the start, and the times and days that the rule takes from it."""
    text, _, end = text.partition("|")
    start = ", starting 2027-01-04" + (" at 09:00" if "08:00" in text or "minutes" in text else "")
    assert Schedule(rrule=rule, **START).describe() == f"{text}{start}{end}, Europe/Paris"


def test_a_start_in_1970_is_omitted() -> None:
    """Schedules that do not depend on their start, such as those of cron expressions, start in 1970."""
    assert Schedule.parse("0 9 * * 1-5").describe() == "every weekday at 09:00, UTC"


@try_each(
    "rules, text",
    [
        (["FREQ=DAILY;BYHOUR=9,10,11,12,13;BYMINUTE=0"], "every hour from 09:00 to 13:00"),
        (
            [
                "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,10;BYMINUTE=0,30",
                "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=11",
            ],
            "every 30 minutes from 09:00 to 11:00 on weekdays",
        ),
        (
            "FREQ=MONTHLY;BYDAY=SA,SU;BYSETPOS=1;BYHOUR=9;BYMINUTE=0",
            "every month on the 1st weekend day at 09:00",
        ),
        (
            ["FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9;BYMINUTE=0"],
            "every month on the last working day at 09:00",
        ),
        (
            ["FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9"],
            "every month on the 31st at 09:00 (only in months that have that day)",
        ),
        (["FREQ=DAILY;BYHOUR=9;UNTIL=20271231T235959"], "every day at 09:00, until 2027-12-31"),
        (
            ["FREQ=DAILY;INTERVAL=2;BYHOUR=9,10,11,12;BYMINUTE=0"],
            "every 2 days at 09:00, 10:00, 11:00 and 12:00",
        ),
        (
            ["FREQ=YEARLY;BYMONTH=12;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9;BYMINUTE=0"],
            "every year on the last working day in December at 09:00",
        ),
        (["FREQ=MINUTELY;BYSECOND=0"], "every minute"),
        (["FREQ=MINUTELY;BYSECOND=0,30"], "every minute at second 0 and 30"),
    ],
)
def test_common_rules_have_idiomatic_texts(rules: list[str], text: str) -> None:
    """Windows of the day, working days, days that some months lack and ends of days read as people say them."""
    assert Schedule(rrule=rules, dtstart="1970-01-01T00:00:00").describe() == f"{text}, UTC"


def test_the_second_of_two_equal_local_times_is_given_in_utc() -> None:
    """The local time alone would mean the first."""
    at = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert Schedule.once(at, timezone="Europe/Paris").describe() == "once, on 2026-10-25 at 01:30, UTC"


def test_other_schedules() -> None:
    at = datetime(2027, 1, 4, 8, 0, 30, tzinfo=UTC)
    assert Schedule.once(at, timezone="Europe/Paris").describe() == "once, on 2027-01-04 at 09:00:30, Europe/Paris"
    assert Schedule(rrule="FREQ=DAILY;BYHOUR=9").describe() == "every day at 09:00, UTC"
    assert Schedule(rrule="FREQ=WEEKLY").describe() == "every week, UTC"
    both = Schedule(
        rrule=["FREQ=DAILY", "FREQ=WEEKLY;BYHOUR=18"], rdates=["2027-01-05"], exdates=["2027-01-06"], **START
    )
    text = (
        "every day at 09:00; and every Monday at 18:00, "
        "starting 2027-01-04, plus 2027-01-05, except 2027-01-06, Europe/Paris"
    )
    assert both.describe() == text
    assert Schedule(**START).describe() == "on 2027-01-04 at 09:00, Europe/Paris"


def test_on_which_day_weeks_begin_is_said_where_it_changes_the_days() -> None:
    """With an interval of several weeks, for each start, up to two days, and each WKST; by default it is Monday."""
    codes = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    days = [*itertools.combinations(codes, 1), *itertools.combinations(codes, 2)]
    said = 0
    for number, chosen, week_start, interval in itertools.product(range(7), days, codes, (1, 2)):
        rule = f"FREQ=WEEKLY;INTERVAL={interval};BYDAY={','.join(chosen)}"
        plain, other = (
            Schedule(rrule=each, dtstart=f"2027-01-{4 + number:02}T09:00:00")
            for each in (rule, f"{rule};WKST={week_start}")
        )
        now = datetime(2027, 1, 1, tzinfo=UTC)
        changes = plain.upcoming(now, 6) != other.upcoming(now, 6)
        words = f" (weeks begin on {WEEKDAYS[codes.index(week_start)]})" if changes else ""
        assert other.describe() == plain.describe().replace(" at 09:00", f" at 09:00{words}")
        said += changes
    assert said > 200


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (
            "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU",
            "every 2 weeks on Tuesday and Sunday at 09:00 (weeks begin on Sunday)",
        ),
        (
            "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO;WKST=SU",
            "every year on Monday in week 20 at 09:00 (weeks begin on Sunday)",
        ),
        (
            "FREQ=MONTHLY;BYDAY=2MO;WKST=SU",
            "every month on the 2nd Monday at 09:00",
        ),
    ],
)
def test_on_which_day_weeks_begin_stands_before_start_and_end(rule: str, text: str) -> None:
    """Beside the days that it is about."""
    schedule = Schedule(rrule=f"{rule};UNTIL=20280101T235959", dtstart="2027-01-05T09:00:00")
    assert schedule.describe() == f"{text}, starting 2027-01-05, until 2028-01-01, UTC"


def test_without_a_start_the_day_on_which_weeks_begin_may_matter() -> None:
    """The start is not known yet, so that is said."""
    schedule = Schedule(rrule="FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU")
    assert schedule.describe() == "every 2 weeks on Tuesday and Sunday (weeks begin on Sunday), UTC"


def test_different_positions_have_different_texts() -> None:
    """Whatever BYSETPOS picks from a week or a day: schedules with the same text have the same occurrences."""
    by_text: dict[str, set[tuple[datetime, ...]]] = {}
    weeks = itertools.product(
        ("", ";BYDAY=TU", ";BYDAY=MO,SU", ";BYDAY=MO,TU,WE,TH,FR", ";BYDAY=SA,SU,MO"), (";WKST=MO", ";WKST=SU")
    )
    days = [f"FREQ=DAILY{days}" for days in ("", ";BYDAY=MO,SU", ";BYDAY=MO,TU,WE,TH,FR")]
    periods = [*(f"FREQ=WEEKLY{days}{start}" for days, start in weeks), *days]
    times = ("", ";BYHOUR=9", ";BYHOUR=9,17", ";BYHOUR=7,9,17")
    positions = ("", ";BYSETPOS=1", ";BYSETPOS=-1", ";BYSETPOS=2", ";BYSETPOS=-2", ";BYSETPOS=1,-1")
    for parts in itertools.product(periods, times, positions):
        try:
            schedule = Schedule(rrule="".join(parts), **START)
            found = tuple(schedule.upcoming(datetime(2027, 1, 1, tzinfo=UTC), 12))
        except InvalidSchedule:  # there is nothing to pick
            continue
        by_text.setdefault(schedule.describe(), set()).add(found)
    assert len(by_text) > 60
    assert {text: found for text, found in by_text.items() if len(found) > 1} == {}
