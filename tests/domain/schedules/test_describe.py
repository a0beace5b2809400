"""Schedules in English."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each

from cloudsched.domain.schedules.describe import describe
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
START = {"dtstart": "2027-01-04T09:00:00", "timezone": "Europe/Paris"}


@try_each(
    "rule, text",
    [
        ("FREQ=DAILY", "every day at 09:00, first on Monday 4 January 2027"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "every weekday at 09:00, first on Monday 4 January 2027"),
        ("FREQ=DAILY;BYDAY=SA,SU", "every Saturday and Sunday at 09:00, first on Saturday 9 January 2027"),
        ("FREQ=WEEKLY", "every Monday at 09:00, first on Monday 4 January 2027"),
        ("FREQ=MONTHLY", "every month on the 4th at 09:00, first on Monday 4 January 2027"),
        (
            "FREQ=MONTHLY;BYMONTHDAY=1,15,-1",
            "every month on the 1st, 15th and last day at 09:00, first on Friday 15 January 2027",
        ),
        ("FREQ=MONTHLY;BYDAY=-1FR", "every month on the last Friday at 09:00, first on Friday 29 January 2027"),
        (
            "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
            "every month on the 31st at 09:00 (or the last day before, where there is no such day), first on Sunday 31 January 2027",  # noqa: E501 -- one sentence
        ),
        (
            "FREQ=YEARLY;BYMONTH=3;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
            "every year on the last working day in March at 09:00, first on Wednesday 31 March 2027",
        ),
        (
            "FREQ=DAILY;INTERVAL=2;BYHOUR=9,10,11,12;BYMINUTE=0,15,30,45",
            "every 2 days at minute 0, 15, 30 and 45 in hour 9 to 12, first on Monday 4 January 2027",
        ),
        ("FREQ=YEARLY", "every year on the 4th of January at 09:00, first on Monday 4 January 2027"),
        (
            "FREQ=YEARLY;BYYEARDAY=100",
            "every year on the 100th day of the year at 09:00, first on Saturday 10 April 2027",
        ),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "every year on Monday in week 20 at 09:00, first on Monday 17 May 2027"),
        ("FREQ=DAILY;COUNT=1", "every day at 09:00, first on Monday 4 January 2027, 1 time"),
        (
            "FREQ=DAILY;UNTIL=20271231T230000Z",
            "every day at 09:00, first on Monday 4 January 2027, until 2028-01-01 at 00:00",
        ),
        (
            "FREQ=MINUTELY;INTERVAL=15;BYHOUR=9,10,11,12,17",
            "every 15 minutes in hour 9 to 12 and 17, first on Monday 4 January 2027 at 09:00",
        ),
        ("FREQ=DAILY;BYMONTH=6,7", "every day in June and July at 09:00, first on Tuesday 1 June 2027"),
        (
            "FREQ=WEEKLY;WKST=SU;BYDAY=SU,MO,SA;BYSETPOS=2",
            "every week on the 2nd of Sunday, Monday and Saturday at 09:00 (weeks begin on Sunday), first on Monday 4 January 2027",  # noqa: E501 -- one sentence
        ),
        (
            "FREQ=WEEKLY;INTERVAL=2;BYMONTH=3;BYDAY=TU,TH;BYSETPOS=1",
            "every 2 weeks in March on the 1st of Tuesday and Thursday at 09:00, first on Tuesday 2 March 2027",
        ),
        (
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-1",
            "every week on the last of Monday to Friday at 09:00 and 17:00, first on Friday 8 January 2027 at 17:00 (a summary, which leaves out a limit to some of these times)",  # noqa: E501 -- one sentence
        ),
        ("FREQ=WEEKLY;BYDAY=MO;BYSETPOS=1", "every Monday at 09:00, first on Monday 4 January 2027"),
        ("FREQ=WEEKLY;BYDAY=TU;BYHOUR=9,17;BYSETPOS=2", "every Tuesday at 17:00, first on Tuesday 5 January 2027"),
        ("FREQ=DAILY;BYHOUR=9;BYSETPOS=-1", "every day at 09:00, first on Monday 4 January 2027"),
        ("FREQ=DAILY;BYHOUR=9,12,17;BYSETPOS=1,-1", "every day at 09:00 and 17:00, first on Monday 4 January 2027"),
        (
            "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-1",
            "every weekday at 17:00, first on Monday 4 January 2027",
        ),
        ("FREQ=DAILY;INTERVAL=3;BYHOUR=9,17;BYSETPOS=-2", "every 3 days at 09:00, first on Monday 4 January 2027"),
    ],
)
def test_a_rule(rule: str, text: str) -> None:
    """The text has the first occurrence, and the times and days that the rule takes from its start."""
    assert Schedule(rrule=rule, **START).describe().replace(", Europe/Paris", "") == text


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
            ["FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9"],
            "every month on the 31st at 09:00 (only in months that have that day)",
        ),
        (["FREQ=DAILY;BYHOUR=9;UNTIL=20271231T235959"], "every day at 09:00, until 2027-12-31"),
        (["FREQ=MINUTELY;BYSECOND=0"], "every minute on the clock"),
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


@pytest.mark.parametrize("locale", ["en", "de"])
def test_an_instant_is_told_to_the_second_and_a_delay_whole(locale: str) -> None:
    """What runs now has microseconds, and is no summary for that; "in 1 second" would be false for one and a half."""
    at = datetime(2027, 1, 4, 8, 0, 30, 999_999, tzinfo=UTC)
    told = describe(Schedule.once(at, timezone="Europe/Paris"), locale)
    assert told == describe(Schedule.once(at.replace(microsecond=0), timezone="Europe/Paris"), locale)
    assert told.is_exact
    assert not describe(Schedule.after(timedelta(seconds=1.5)), locale).is_exact


def test_other_schedules() -> None:
    at = datetime(2027, 1, 4, 8, 0, 30, tzinfo=UTC)
    assert Schedule.once(at, timezone="Europe/Paris").describe() == "once, on 2027-01-04 at 09:00:30, Europe/Paris"
    no_start = "(a summary, which leaves out its start)"
    assert Schedule(rrule="FREQ=DAILY;BYHOUR=9").describe() == "every day at 09:00, UTC"
    assert Schedule(rrule="FREQ=WEEKLY").describe() == f"every week, UTC {no_start}"
    both = Schedule(
        rrule=["FREQ=DAILY", "FREQ=WEEKLY;BYHOUR=18"], rdates=["2027-01-05"], exdates=["2027-01-06"], **START
    )
    text = (
        "every day at 09:00; and every Monday at 18:00, "
        "first on Monday 4 January 2027, extra on 2027-01-05 at 09:00, except 2027-01-06, Europe/Paris"
    )
    assert both.describe() == text
    assert Schedule(**START).describe() == "once, on 2027-01-04 at 09:00, Europe/Paris"


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
        assert f" at 09:00{words}," in other.describe()
        said += changes
    assert said > 200


def test_without_a_start_the_day_on_which_weeks_begin_may_matter() -> None:
    """The start is not known yet, so that is said."""
    schedule = Schedule(rrule="FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU")
    assert schedule.describe().startswith("every 2 weeks on Tuesday and Sunday (weeks begin on Sunday), UTC")


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


@try_each(
    "fields, text, leaves_out",
    [
        (
            {"rrule": "FREQ=DAILY;INTERVAL=2;BYMONTHDAY=13;BYDAY=FR"},
            (
                "every 2 days at 09:00, first on Friday 13 October 2028, Europe/Paris "
                "(a summary, which leaves out a limit to some of these days)"
            ),
            ("a limit to some of these days",),
        ),
        (
            {"rrule": "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13"},
            "every month on the 13th if it is a Friday at 09:00, first on Friday 13 August 2027, Europe/Paris",
            (),
        ),
        (
            {"rrule": "FREQ=YEARLY;BYYEARDAY=-366;UNTIL=20280128T120000Z", "dtstart": "2027-01-01T09:00:00"},
            (
                "every year at 09:00, first on Saturday 1 January 2028, until 2028-01-28 at 13:00, Europe/Paris "
                "(a summary, which leaves out a limit to some of these days)"
            ),
            ("a limit to some of these days",),
        ),
        (
            {"rrule": "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD;COUNT=4", "dtstart": "2026-04-14T09:00:00"},
            None,
            ("from when it counts",),
        ),
        (
            {
                "rrule": "FREQ=HOURLY;INTERVAL=3;BYMONTH=1;BYMINUTE=0,30",
                "dtstart": "2027-05-27T22:00:00",
                "timezone": "Australia/Lord_Howe",
            },
            None,
            ("from when it counts",),
        ),
        ({"rrule": "FREQ=DAILY;BYHOUR=9", "gap": "skip"}, None, ("what happens when clocks change",)),
        (
            {"rrule": "FREQ=DAILY", "exdates": [f"2027-02-{day:02}" for day in range(1, 12)]},
            None,
            ("some of its single dates",),
        ),
        ({"rrule": ["FREQ=DAILY;COUNT=3", "FREQ=WEEKLY;COUNT=3;BYHOUR=7"]}, None, ("when each rule ends",)),
    ],
)
def test_nothing_false_is_said(fields: dict[str, object], text: str | None, leaves_out: tuple[str, ...]) -> None:
    """What a text cannot say is left out and named: no part of a rule gets lost."""
    description = describe(Schedule.model_validate({**START, **fields}))
    assert description.leaves_out == leaves_out
    assert description.is_exact == (not leaves_out)
    assert all(part in description.text for part in leaves_out)
    assert text in {None, description.text}


@try_each(
    "expression, text, german",
    [
        ("* * * * *", "every minute on the clock", "jede Minute nach der Uhr"),
        ("*/5 * * * *", "every 5 minutes on the clock", "alle 5 Minuten nach der Uhr"),
        ("0 */6 * * *", "every 6 hours on the clock", "alle 6 Stunden nach der Uhr"),
        (
            "*/5 9-17 * * 1-5",
            "every 5 minutes on the clock in hour 9 to 17 on weekdays",
            "alle 5 Minuten nach der Uhr in Stunde 9 bis 17 an Werktagen",
        ),
        ("0,20,50 * * * *", "every hour at minute 0, 20 and 50", "jede Stunde zur Minute 0, 20 und 50"),
        ("0 9 1-7 * *", "every month on the 1st to 7th at 09:00", "jeden Monat am 1. bis 7. um 09:00"),
        (
            "0 9 16-18 9 *",
            "every year on the 16th to 18th of September at 09:00",
            "jedes Jahr am 16., 17. und 18. September um 09:00",
        ),
    ],
)
def test_lists_of_minutes_and_days_are_steps_and_ranges(expression: str, text: str, german: str) -> None:
    """What cron writes as a step reads as one, in both languages, and a region makes no difference."""
    schedule = Schedule.parse(expression)
    assert schedule.describe() == f"{text}, UTC"
    assert schedule.describe("de-AT") == f"{german}, UTC"
    assert schedule.describe("fr") == schedule.describe()


def test_a_first_occurrence_that_is_left_out_is_no_first_one() -> None:
    """The rule counts from it, so that it is its start."""
    schedule = Schedule(rrule="FREQ=WEEKLY;INTERVAL=2", exdates=["2027-01-04"], **START)
    assert ", starting Monday 4 January 2027, except 2027-01-04, " in schedule.describe()


ALL_HOURS, ALL_SIXTY = ",".join(map(str, range(24))), ",".join(map(str, range(60)))


def test_the_times_of_a_day_are_never_listed() -> None:
    """A day has 86,400 seconds, and a schedule twenty rules: what it costs does not depend on how many they name."""
    seconds = f"BYHOUR={ALL_HOURS};BYMINUTE={ALL_SIXTY};BYSECOND={ALL_SIXTY}"
    rules = [f"FREQ=MONTHLY;BYMONTHDAY={day};{seconds}" for day in range(1, 21)]
    for rrule in (rules, [f"FREQ=DAILY;{seconds}"] * 20, [f"FREQ=DAILY;{seconds};BYSETPOS=1,-1"]):
        schedule = Schedule(rrule=rrule, dtstart="2027-01-01T09:00:00", timezone="Europe/Paris")
        with count_calls() as calls:
            describe(schedule)
        assert calls.count < 20_000, rrule[0][:20]


def test_a_window_of_seconds_is_told_as_one() -> None:
    """Rules whose times are evenly spaced together are a window; with one more time, or one less, they are not."""
    start = {"dtstart": "2027-01-01T00:00:00", "timezone": "UTC"}
    hours = f"BYHOUR=9,10;BYMINUTE={ALL_SIXTY};BYSECOND={ALL_SIXTY}"
    both = [f"FREQ=DAILY;{hours}", "FREQ=DAILY;BYHOUR=11;BYMINUTE=0;BYSECOND=0"]
    assert "every second from 09:00 to 11:00" in describe(Schedule(rrule=both, **start)).text
    less = hours.replace("BYSECOND=0,1,", "BYSECOND=0,")
    assert "from 09:00" not in describe(Schedule(rrule=[f"FREQ=DAILY;{less}"], **start)).text


def test_weeks_of_another_begin_count_from_where_the_rules_start() -> None:
    """Where another rule runs first, weeks that begin on Friday are not those of the day on which that is."""
    rules = ["FREQ=WEEKLY;INTERVAL=4;BYDAY=FR;BYHOUR=9;WKST=FR", "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9"]
    told = describe(Schedule(rrule=rules, dtstart="2026-09-18T21:45:00"))
    assert told.leaves_out == ("from when it counts",)
    assert describe(Schedule(rrule=rules, dtstart="2026-09-18T08:45:00")).leaves_out == ()
