"""A rule whose day some months or years do not have says so, in the answer and in its description, however written."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched import App, Schedule
from cloudsched.domain.schedules.rare_days import tell_missing
from cloudsched.errors import InvalidSchedule
from cloudsched.language.reader import read
from cloudsched.language.schedule_text import read_schedule
from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 12, tzinfo=UTC)
IS_TOLD = re.compile(r"^It runs.* only in (?:months|years) that have |^Es läuft nur in |^In (?:Monaten|Jahren) ohne ")
LEAP_DAY = 'It runs only in years that have a 29 February. To run in each, say "the last day of February".'
LEAP_DAY_IN_GERMAN = (
    "Es läuft nur in Jahren, die einen 29. Februar haben. Damit es in jedem läuft, sag „am letzten Tag im Februar“."
)
FIFTH = 'It runs only in months that have a 5th Monday. To run in each, say "the last Monday of each month".'
LAST = 'It runs only in months that have a {} day. To run in each, say "the last day of each month".'
OTHERS = 'It runs on a {} day only in months that have one. For one that each has, say "the last day of each month".'
WEEK = "It runs only in years that have a week 53. To run in each, write BYWEEKNO=-1."

RARE = {
    "every leap day at 9:00": LEAP_DAY,
    "jedes Jahr am Schalttag um 9:00": LEAP_DAY_IN_GERMAN,
    "0 9 29 2 *": LEAP_DAY,
    "*/5 * 29 FEB *": LEAP_DAY,
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9": LEAP_DAY,
    "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9": LEAP_DAY,
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9": LEAP_DAY,
    "DTSTART:20280229T090000\nRRULE:FREQ=YEARLY": LEAP_DAY,
    "0 9 31 * *": LAST.format("31st"),
    "0 9 30 * *": LAST.format("30th"),
    "0 9 1,29 * *": OTHERS.format("29th"),
    "0 9 */2 * *": OTHERS.format("29th"),
    "0 9 31 * 1": OTHERS.format("31st"),
    "30 * 31 * *": LAST.format("31st"),
    "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9": LAST.format("31st"),
    "FREQ=MONTHLY;INTERVAL=2;BYMONTHDAY=31;BYHOUR=9": LAST.format("31st"),
    "FREQ=YEARLY;BYMONTH=1,4;BYMONTHDAY=31;BYHOUR=9": LAST.format("31st"),
    "DTSTART:20270131T090000\nRRULE:FREQ=MONTHLY": LAST.format("31st"),
    "every month on the 31st at 9:00 (only in months that have that day)": LAST.format("31st"),
    "on the fifth Monday of each month at 9:00": FIFTH,
    "jeden fünften Montag im Monat um 9:00": "Es läuft nur in Monaten, die einen 5. Montag haben. Damit es in jedem",
    "am ersten und fünften Montag jedes Monats um 9:00": "In Monaten ohne einen 5. Montag läuft es an diesem nicht.",
    "0 9 * * 1#5": FIFTH,
    "FREQ=MONTHLY;BYDAY=5MO;BYHOUR=9": FIFTH,
    "FREQ=MONTHLY;BYDAY=1MO,5MO;BYHOUR=9": "It runs on a 5th Monday only in months that have one.",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=5;BYHOUR=9": "It runs only in months that have a 5th Monday.",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=23;BYHOUR=9": "It runs only in months that have a 23rd such day.",
    "FREQ=YEARLY;BYMONTH=5;BYDAY=5MO;BYHOUR=9": FIFTH.replace("months", "years").replace("each month", "May"),
    "FREQ=YEARLY;BYDAY=53MO;BYHOUR=9": "It runs only in years that have a 53rd Monday.",
    "FREQ=YEARLY;BYYEARDAY=366;BYHOUR=9": "It runs only in years that have a day 366.",
    "FREQ=YEARLY;BYYEARDAY=-366;BYHOUR=9": 'It runs only in years that have a day -366. To run in each, say "the first',
    "FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;BYHOUR=9": WEEK,
    "FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO;BYHOUR=9": "It runs in a week 53 only in years that have one.",
    "every year on Monday in week 53 at 9:00": WEEK,
}
COMMON = (
    *("every day at 9:00", "0 9 28 * *", "0 9 L * *", "0 9 31 1,3 *", "0 9 * * 1#4", "0 9 * * 1L", "0 9 26-31 * *"),
    *("on the last day of February at 9:00 every year", "every day except the 1st of the month at 9:00"),
    *("FREQ=MONTHLY;BYMONTHDAY=31,-1;BYHOUR=9", "FREQ=MONTHLY;BYDAY=5MO,-1MO;BYHOUR=9"),
    *("FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD;BYHOUR=9", "FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1;BYHOUR=9"),
    *("DTSTART:20280229T090000\nRRULE:FREQ=YEARLY;INTERVAL=4", "FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO;BYHOUR=9"),
    *("DTSTART:20270131T090000\nRRULE:FREQ=MONTHLY;INTERVAL=12", "on the 13th of each month at 9:00 if it is a Friday"),
)


@try_each("text, sentence", RARE.items())
def test_a_rule_that_runs_rarely_says_so(text: str, sentence: str) -> None:
    """Once, with what runs in each month or year. Its description says so in English and in German."""
    found = read_schedule(text, now=NOW, timezone="UTC")
    told = [each for each in found.assumptions if IS_TOLD.search(each)]
    assert len(told) == 1
    assert told[0].startswith(sentence)
    for locale, said in (("en", "(only in "), ("de", "(nur in ")):
        words = found.schedule.describe(locale)
        assert said in words
        again = read(words, now=NOW, timezone="UTC", locale=locale).schedule
        assert again is not None
        assert again.upcoming(NOW, 5) == found.schedule.upcoming(NOW, 5)


@try_each("text", COMMON)
def test_a_rule_that_runs_in_each_month_or_year_says_nothing(text: str) -> None:
    assert not [each for each in read_schedule(text, now=NOW).assumptions if IS_TOLD.search(each)]


@try_each(
    "words",
    [
        *("on the last day of each month at 9:00", "on the last Monday of each month at 9:00"),
        *("every year on the last day of February at 9:00", "every year on the last Monday of May at 9:00"),
        *("every year on the last Monday of the year at 9:00", "every year on the last day of the year at 9:00"),
        *("am letzten Tag jedes Monats um 9:00", "am letzten Montag jedes Monats um 9:00"),
        *("jedes Jahr am letzten Tag im Februar um 9:00", "jedes Jahr am letzten Montag im Mai um 9:00"),
        *("jedes Jahr am letzten Montag des Jahres um 9:00", "jedes Jahr am letzten Tag des Jahres um 9:00"),
    ],
)
def test_what_is_offered_instead_is_understood(words: str) -> None:
    """It runs in each month or year, and assumes nothing more."""
    found = read_schedule(words, now=NOW)
    assert not [each for each in found.assumptions if IS_TOLD.search(each)]
    assert len(found.schedule.upcoming(NOW, 10)) == 10


@given(
    st.sampled_from(["YEARLY", "MONTHLY"]),
    st.sampled_from([(), (2,), (4,), (1, 3), (2, 8), (4, 6)]),
    st.one_of(
        st.integers(1, 31).map(lambda day: f"BYMONTHDAY={day}"),
        st.integers(-31, -1).map(lambda day: f"BYMONTHDAY={day}"),
        st.sampled_from([-5, -4, -1, 1, 4, 5]).map(lambda nth: f"BYDAY={nth}WE"),
    ),
)
def test_it_is_said_of_those_rules_alone_that_leave_months_out(freq: str, months: tuple[int, ...], days: str) -> None:
    """Counted over 28 years, in which every pattern of leap years and weekdays has its turn."""
    if freq == "YEARLY" and not months and days.startswith("BYDAY"):
        return
    by_month = f";BYMONTH={','.join(map(str, months))}" if months else ""
    try:
        schedule = Schedule(rrule=f"FREQ={freq}{by_month};{days}", dtstart="2027-01-01T09:00:00")
    except InvalidSchedule:  # it never runs
        return
    runs = schedule.between(datetime(2027, 1, 1, tzinfo=UTC), datetime(2055, 1, 1, tzinfo=UTC))
    is_whole = len({(at.year, at.month) for at in runs}) == 28 * (len(months) or 12)
    assert bool(tell_missing(schedule)) != is_whole


@try_each(
    "schedule",
    [
        "every year on 29 February at 9:00 (only in years that have that day)",
        "0 9 29 2 *",
        {"cron": "0 9 29 2 *"},
        {"rrule": "FREQ=YEARLY", "dtstart": "2028-02-29T09:00:00"},
        Schedule(rrule="FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9"),
    ],
)
def test_a_created_task_says_it(schedule: str | dict[str, Any]) -> None:
    """Once, whatever the schedule was given as. An edit of something else does not repeat it."""
    app = App()
    app.handler("h")(lambda: None)
    with Simulation(app, start=NOW):
        task = app.create(id="d", owner="ada", handler="h", schedule=schedule)
        assert task.assumed.count(LEAP_DAY) == 1
        assert LEAP_DAY not in app.update("d", title="Leap").assumed


def test_a_business_day_that_some_months_do_not_have_is_said() -> None:
    """Every month has twenty days from Monday to Friday."""
    fields = {"rrule": "FREQ=MONTHLY;BYMONTHDAY=1", "dtstart": "2027-01-01T09:00:00", "calendars": [{"id": "weekends"}]}
    told = {day: tell_missing(Schedule.model_validate({**fields, "businessDay": day})) for day in (20, 21, -23)}
    assert [bool(told[day]) for day in (20, 21, -23)] == [False, True, True]
