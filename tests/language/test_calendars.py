"""Plain words about calendars: "except holidays", "business days", and business days by number."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from tests.cases import try_each

from cloudsched.domain.schedules.calendar_days import WEEKENDS, format_days
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language import read

NOW = datetime(2026, 12, 20, 9, 17, tzinfo=UTC)
HOLIDAYS = {date(2026, 12, 25), date(2026, 12, 24), date(2027, 1, 1), date(2027, 1, 6), date(2027, 2, 1)}
DAYS = format_days((), [(day, day, "Feast") for day in HOLIDAYS])
YEAR = [date(2026, 12, 20) + timedelta(days) for days in range(365)]


def is_business_day(day: date) -> bool:
    return day.weekday() < 5 and day not in HOLIDAYS


def find_days(phrase: str, locale: str = "en") -> list[date]:
    """Return the days of the next year on which a phrase runs, with `HOLIDAYS` as the default calendar."""
    reading = read(phrase, now=NOW, timezone="UTC", locale=locale, default_calendar="hd")
    assert reading.schedule is not None, str(reading)
    assert reading.title is None
    known = with_days(reading.schedule)
    return [each.date() for each in known.between(NOW, datetime(2027, 12, 20, tzinfo=UTC))]


def with_days(schedule: Schedule) -> Schedule:
    rules = tuple(rule.with_content(rule.content or DAYS) for rule in schedule.calendars)
    return schedule.model_copy(update={"calendars": rules})


def of_each_month(number: int) -> list[date]:
    """Return the business day of each month by number, by a plain walk."""
    found = []
    for month in [(2026, 12), *((2027, month) for month in range(1, 13))]:
        days = [date(*month, 1) + timedelta(each) for each in range(31)]
        business = [day for day in days if (day.year, day.month) == month and is_business_day(day)]
        found.append(business[number - 1 if number > 0 else number])
    return [day for day in found if day in YEAR]


def before_or_on(number: int) -> list[date]:
    """Return the last business day of each month up to a day of the month, by a plain walk."""
    found = []
    for month in [(2026, 12), *((2027, month) for month in range(1, 13))]:
        day = date(*month, number)
        while not is_business_day(day):
            day -= timedelta(1)
        found.append(day)
    return [day for day in found if day in YEAR]


WORKING = [day for day in YEAR if is_business_day(day)]


@try_each(
    "locale, phrase, days",
    [
        ("en", "every day at 9:30 except holidays", [day for day in YEAR if day not in HOLIDAYS]),
        ("de", "jeden Tag um 9:30 außer an Feiertagen", [day for day in YEAR if day not in HOLIDAYS]),
        ("en", "on business days at 9:30", WORKING),
        ("en", "every weekday at 9:30 except bank holidays", WORKING),
        ("de", "an jedem Arbeitstag um 9:30", WORKING),
        ("en", "third working day of the month at 9:30", of_each_month(3)),
        ("de", "am letzten Werktag jeden Monats um 9:30", of_each_month(-1)),
        ("en", "the last business day before the 25th at 9:30", before_or_on(24)),
        ("en", "on the last working day on or before the 25th of each month at 9:30", before_or_on(25)),
        ("de", "am letzten Arbeitstag vor dem 25. um 9:30", before_or_on(24)),
    ],
)
def test_days_of_the_default_calendar(locale: str, phrase: str, days: list[date]) -> None:
    """They are left out, make business days of the others, and count in each month, as a plain walk finds."""
    assert find_days(phrase, locale) == days


@try_each("calendar", [None, "hd"])
def test_weekdays_are_monday_to_friday_with_and_without_holidays(calendar: str | None) -> None:
    """A default calendar changes nothing for those who say "weekdays"."""
    reading = read("every weekday at 9:30", now=NOW, timezone="UTC", default_calendar=calendar)
    assert reading.schedule is not None
    assert reading.schedule.calendars == ()


@try_each(
    "phrase, code",
    [
        ("every business day at 9:30 and Sundays at 10:30", "inexpressible"),
        ("every day at 9:30 except thanksgiving", "holidays"),
        ("tomorrow at 9:30 except holidays", "no-recurrence"),
        ("on the third business day of next month at 9:30", "inexpressible"),
        ("the first business day after the 30th at 9:30", "inexpressible"),
        ('every day at 9:30 except on days of "a b"', "not-understood"),
    ],
)
def test_what_calendars_cannot_express_is_refused(phrase: str, code: str) -> None:
    """No calendar is dropped, and none is applied to days that it is not meant for."""
    reading = read(phrase, now=NOW, timezone="UTC", default_calendar="hd")
    assert reading.kind == "refusal", reading
    assert reading.problems[0].code == code


@try_each(
    "locale, phrase",
    [
        ("en", "the first and last business day of the month at 9:30"),
        ("de", "am ersten und am letzten Werktag des Monats um 9:30"),
        ("de", "am ersten Arbeitstag um 9:30 und am letzten Arbeitstag des Monats um 17 Uhr"),
    ],
)
def test_two_business_days_in_one_phrase_are_refused_with_what_to_do(locale: str, phrase: str) -> None:
    """A schedule counts to one business day of the month, so the refusal says to make two schedules."""
    reading = read(phrase, now=NOW, timezone="UTC", locale=locale, default_calendar="hd")
    assert reading.kind == "refusal", reading
    assert {"en": "make two schedules", "de": "mach zwei Zeitpläne"}[locale] in str(reading)


@try_each(
    "phrase",
    [
        "every day at 9:30 except holidays",
        "on business days at 9:30 until June",
        "third working day of the month at 9:30",
        "the last business day before the 25th at 9:30",
        "first business day on or after the 10th of each month at 9:30",
        "every 15 minutes from 9:00 to 17:00 on business days",
        'every Monday at 9:30 except on days of "hd" and "weekends"',
        'every Monday at 9:30, moved after days of "hd", except 2027-01-04',
        'every Monday at 9:30, moved to the 2nd last day of the month that is not on "hd", starting 2027-01-04',
    ],
)
def test_a_description_reads_back_without_the_default(phrase: str) -> None:
    """The description names the calendars, so that it means the same instants wherever it is read."""
    schedule = read(phrase, now=NOW, timezone="Europe/Paris", default_calendar="hd").schedule
    assert schedule is not None
    assert schedule.calendars
    again = read(schedule.describe(), now=NOW, timezone="Pacific/Apia")
    assert again.schedule is not None, str(again)
    assert again.title is None
    assert again.schedule.describe() == schedule.describe()
    assert with_days(again.schedule).upcoming(NOW, 50) == with_days(schedule).upcoming(NOW, 50)


def change(schedule: Schedule, words: str) -> Schedule:
    reading = read(words, now=NOW, timezone="UTC", current=schedule, default_calendar="hd")
    assert reading.schedule is not None, str(reading)
    return reading.schedule


def test_a_change_keeps_the_calendars_and_policies() -> None:
    """Words that change the time leave everything else as it was."""
    rules = [{"id": "hd", "on": "after"}]
    fields = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2026-12-01T09:00:00", "gap": "skip", "calendars": rules}
    before = with_days(Schedule.model_validate(fields))
    after = change(before, "make it 10:30 instead")
    assert (after.calendars, after.gap) == (before.calendars, "SKIP")
    assert [each.hour for each in after.upcoming(NOW, 2)] == [10, 10]


def test_a_change_can_add_holidays() -> None:
    """The words "not on holidays" add the default calendar."""
    before = read("every day at 9:30", now=NOW, timezone="UTC").schedule
    assert before is not None
    after = with_days(change(before, "not on holidays"))
    assert date(2026, 12, 25) not in [each.date() for each in after.upcoming(NOW, 10)]


def test_skipping_the_next_one_skips_one_that_a_calendar_moved() -> None:
    """The occurrence that is next is the one left out, on whatever day it was before."""
    rules = [{"id": "hd", "on": "after"}]
    fields = {"rrule": "FREQ=WEEKLY;BYDAY=FR;BYHOUR=9", "dtstart": "2026-12-01T09:00:00", "calendars": rules}
    before = with_days(Schedule.model_validate(fields))
    moved, following = before.upcoming(NOW, 2)
    assert moved.date() == date(2026, 12, 26)
    assert change(before, "skip the next one").next_after(NOW) == following


@try_each(
    "phrase, first",
    [
        ("the working day before the 15th", date(2027, 1, 14)),
        ("the first working day after the 1st of each month", date(2027, 1, 4)),
        ('every day except on days of "weekends"', date(2026, 12, 21)),
        ('every Sunday, moved after days of "weekends"', date(2026, 12, 21)),
    ],
)
def test_a_schedule_knows_the_days_of_built_in_calendars(phrase: str, first: date) -> None:
    """A schedule that names one can be asked for its times as it is, also after its way through JSON."""
    schedule = read(phrase, now=NOW, timezone="UTC").schedule
    assert schedule is not None
    assert schedule.calendars[0].id == WEEKENDS
    again = Schedule.model_validate_json(schedule.model_dump_json(by_alias=True))
    for each in (schedule, again, Schedule.model_validate(schedule.model_dump(exclude_defaults=True))):
        assert each.upcoming(NOW, 1)[0].date() == first
        assert each == schedule


@try_each(
    "locale, phrase, ids",
    [
        ("en", "every day at 9:30 except Bavarian and US holidays", ["DE-BY", "US"]),
        ("en", "every day at 9:30, but not on French, Dutch and Scottish public holidays", ["FR", "NL", "GB-SCT"]),
        ("en", "every day at 9:30 except holidays in Bavaria and the US", ["DE-BY", "US"]),
        ("en", "every day at 9:30 except holidays and US holidays", ["hd", "US"]),
        ("en", "every day at 9:30 except Saxony-Anhalt's or Saxon holidays", None),
        ("en", "every day at 9:30 except Lower Saxon, Saxon and Saxony-Anhalt holidays", ["DE-NI", "DE-SN", "DE-ST"]),
        ("en", 'every day at 9:30 except on days of "closed" or US holidays', ["closed", "US"]),
        ("en", "every day at 9:30 except my and US holidays", None),
        ("en", "every day at 9:30 except holidays in UK time", ["hd"]),
        ("de", "jeden Tag um 9:30 außer an bayerischen und US-Feiertagen", ["DE-BY", "US"]),
        (
            "de",
            "jeden Tag um 9:30 außer an sächsischen, österreichischen und Schweizer Feiertagen",
            ["DE-SN", "AT", "CH"],
        ),
        ("de", "jeden Tag um 9:30 außer an Feiertagen in Bayern und in den USA", ["DE-BY", "US"]),
        ("de", "jeden Tag um 9:30 außer an nordrhein-westfälischen Feiertagen", ["DE-NW"]),
        ("nl", "elke dag om 9:30 behalve op Nederlandse en Belgische feestdagen", ["NL", "BE"]),
    ],
)
def test_holidays_of_several_places_are_said_together(locale: str, phrase: str, ids: list[str] | None) -> None:
    """Each place is a calendar of its code in ISO 3166, beside the default one if that is said; others are refused."""
    reading = read(phrase, now=NOW, timezone="UTC", locale=locale, default_calendar="hd", has_title=False)
    if ids is None:
        assert reading.kind == "refusal"
        return
    assert reading.schedule is not None, str(reading)
    assert [(each.id, each.on) for each in reading.schedule.calendars] == [(each, "SKIP") for each in ids]
    again = read(reading.schedule.describe(locale), now=NOW, timezone="UTC", locale="de" if locale == "de" else "en")
    assert again.schedule == reading.schedule


def test_a_change_can_add_the_holidays_of_two_places() -> None:
    """They stand beside the calendars that the schedule has already, whatever calendar is the default."""
    before = read("every day at 9:30 except holidays", now=NOW, timezone="UTC", default_calendar="hd").schedule
    assert before is not None
    after = change(before, "not on Bavarian and US holidays")
    assert [each.id for each in after.calendars] == ["hd", "DE-BY", "US"]
