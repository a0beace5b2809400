"""Schedules in English."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

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
        (
            "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9,17;BYSETPOS=-1",
            "every week on the last of Monday to Friday at 09:00 and 17:00, first on Friday 8 January 2027 at 17:00 (a summary, which leaves out a limit to some of these times)",  # noqa: E501 -- one sentence
        ),
        ("FREQ=WEEKLY;BYDAY=TU;BYHOUR=9,17;BYSETPOS=2", "every Tuesday at 17:00, first on Tuesday 5 January 2027"),
        ("FREQ=DAILY;BYHOUR=9,12,17;BYSETPOS=1,-1", "every day at 09:00 and 17:00, first on Monday 4 January 2027"),
    ],
)
def test_a_rule(rule: str, text: str) -> None:
    """The text has the first occurrence, and the times and days that the rule takes from its start."""
    assert Schedule(rrule=rule, **START).describe().replace(", Europe/Paris", "") == text


def test_the_second_of_two_equal_local_times_is_given_in_utc() -> None:
    """The local time alone would mean the first."""
    at = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert Schedule.once(at, timezone="Europe/Paris").describe() == "once, on 2026-10-25 at 01:30, UTC"


@try_each("locale", ["en", "de"])
def test_an_instant_is_told_to_the_second_and_a_delay_whole(locale: str) -> None:
    """What runs now has microseconds, and is no summary for that; "in 1 second" would be false for one and a half."""
    at = datetime(2027, 1, 4, 8, 0, 30, 999_999, tzinfo=UTC)
    told = describe(Schedule.once(at, timezone="Europe/Paris"), locale)
    assert told == describe(Schedule.once(at.replace(microsecond=0), timezone="Europe/Paris"), locale)
    assert told.is_exact
    assert not describe(Schedule.after(timedelta(seconds=1.5)), locale).is_exact


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
            {"rrule": "FREQ=MONTHLY;BYMONTHDAY=31;SKIP=FORWARD;COUNT=4", "dtstart": "2026-04-14T09:00:00"},
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
        (
            "*/5 9-17 * * 1-5",
            "every 5 minutes on the clock in hour 9 to 17 on weekdays",
            "alle 5 Minuten nach der Uhr in Stunde 9 bis 17 an Werktagen",
        ),
        ("0,20,50 * * * *", "every hour at minute 0, 20 and 50", "jede Stunde zur Minute 0, 20 und 50"),
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
