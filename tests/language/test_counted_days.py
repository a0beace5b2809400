"""Days that are counted from another one of each month, and ranges of days of each month."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from itertools import product

from tests.cases import try_each
from tests.language.test_cases import HERE, list_local_times
from tests.language.walk import NOW, ZONE, any_day, both, but, dom, month, walk, wd

from cloudsched.language import read

Find = Callable[[int, int], date]
"""Returns the day of a year and a month from which others are counted."""


def find_nth(nth: int, weekday: int) -> Find:
    def find(year: int, month: int) -> date:
        days = [date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)]
        return [day for day in days if day.weekday() == weekday][nth - 1 if nth > 0 else nth]

    return find


def find_day(day: int) -> Find:
    return lambda year, month: date(year, month, day if day > 0 else monthrange(year, month)[1] + 1 + day)


def count_from(find: Find, days: int) -> list[str]:
    """Return the next times at 9:00 on the days that lie so far behind one of each month."""
    months = [divmod(NOW.year * 12 + NOW.month - 2 + step, 12) for step in range(14)]
    found = [find(year, at + 1) + timedelta(days=days) for year, at in months]
    return [f"{day}T09:00:00" for day in sorted(found) if f"{day}T09:00:00" > NOW.isoformat()][:8]


_BASES: dict[str, tuple[str, str, Find]] = {
    "2nd tuesday": ("the second Tuesday", "dem zweiten Dienstag", find_nth(2, 1)),
    "1st monday": ("the first monday", "dem ersten Montag", find_nth(1, 0)),
    "last friday": ("the last friday", "dem letzten Freitag", find_nth(-1, 4)),
    "15th": ("the 15th", "dem 15.", find_day(15)),
    "1st": ("the 1st", "dem 1.", find_day(1)),
    "last day": ("the last day", "dem letzten Tag", find_day(-1)),
}
_STEPS = [("the day", "am Tag", 1), ("2 days", "zwei Tage", 2), ("a week", "eine Woche", 7)]
_STEPS += [("10 days", "10 Tage", 10)]


@try_each("base, step, sign", product(_BASES, _STEPS, (-1, 1)))
def test_a_day_counted_from_one_of_each_month_repeats(base: str, step: tuple[str, str, int], sign: int) -> None:
    """It is that day of every month, in either order of words and in either language."""
    english, german, find = _BASES[base]
    expected = count_from(find, sign * step[2])
    said = f"{step[0]} {'before' if sign < 0 else 'after'} {english}"
    gesagt = f"{step[1]} {'vor' if sign < 0 else 'nach'} {german}"
    for phrase, locale in (
        (f"{said} of each month at 9:00", "en"),
        (f"at 9:00 every month {said}", "en"),
        (f"{gesagt} jedes Monats um 9 Uhr", "de"),
        (f"jeden Monat {gesagt} um 9 Uhr", "de"),
    ):
        reading = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)
        assert list_local_times(reading, 8) == expected, phrase


@try_each(
    "phrase",
    [
        "2 days after the 30th of each month at 9:00",
        "2 days after the fifth friday of each month at 9:00",
        "a month after the 15th of each month at 9:00",
        "2 hours before the 15th of each month",
        "the second friday after the 25th of each month at 9:00",
        "2 days before the first working day of each month at 9:00",
        "every day from the 10th of each month at 9:00",
        "every friday at 9:00 until the 15th of each month",
        "daily at 9:00 from the 25th to the 5th of each month",
        "every year from december 24 to january 2 at 9:00",
        "every year the day after february 29 at 9:00",
        "every year 3 days before march 2 at 9:00",
        "every year 999999999 days before christmas at 9:00",
        "999999999 days after the 15th of each month at 9:00",
        "the day after february 30 at 9:00",
        "plan the weekend on friday at 5pm",
        "on monday on tuesday at 5pm",
    ],
)
def test_what_no_rule_can_say_exactly_is_not_read_as_something_near(phrase: str) -> None:
    """A day that some months do not have is refused, and never becomes a single time or another day."""
    assert read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE).kind == "refusal"


_ONE_MONTH = [("3 days before the end of the month at 9:00", "en"), ("drei Tage vor Monatsende", "de")]


@try_each("phrase, locale", _ONE_MONTH)
def test_a_month_without_each_is_asked_or_this_one(phrase: str, locale: str) -> None:
    reading = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)
    shown = reading.readings[-1].schedule if reading.kind == "question" else reading.schedule
    assert shown is not None
    assert [f"{at:%Y-%m-%d}" for at in shown.upcoming(NOW.replace(tzinfo=HERE), 3)] == ["2026-11-27"]


_FIRST_FIVE = walk(dom(*range(1, 6)), ["09:00"])
_JULY = walk(both(month(7), dom(*range(1, 6))), ["09:00"])


@try_each(
    "phrase, locale, expected",
    [
        ("daily from the 1st to the 5th of every month at 9:00", "en", _FIRST_FIVE),
        ("every day at 9:00 between the 1st and 5th of each month", "en", _FIRST_FIVE),
        ("every day until the 5th of each month at 9:00", "en", _FIRST_FIVE),
        ("täglich vom 1. bis zum 5. jedes Monats um 9 Uhr", "de", _FIRST_FIVE),
        ("täglich bis zum 5. jedes Monats um 9 Uhr", "de", _FIRST_FIVE),
        (
            "every day at 9:00 except from the 1st to the 5th of each month",
            "en",
            walk(but(dom(*range(1, 6))), ["09:00"]),
        ),
        ("every month from the 1st to the 5th at 9:00", "en", _FIRST_FIVE),
        ("jeden Monat vom 1. bis zum 5. um 9 Uhr", "de", _FIRST_FIVE),
        ("täglich vom 1. bis 5. um 9 Uhr", "de", _FIRST_FIVE[:5]),
        ("every year from the 1st to the 5th of july at 9:00", "en", _JULY),
        ("every year from july 1 to july 5 at 9:00", "en", _JULY),
        ("jedes Jahr vom 1. bis 5. Juli um 9 Uhr", "de", _JULY),
        ("daily at 9:00 from july 1 to 5", "en", walk(any_day, ["09:00"], 5, start=date(2027, 7, 1))),
        ("vom 1. bis 5. Juli täglich um 9 Uhr", "de", walk(any_day, ["09:00"], 5, start=date(2027, 7, 1))),
        (
            "on the day after the first monday in november every year at 9:00",
            "en",
            walk(both(month(11), wd(1), dom(*range(2, 9))), ["09:00"]),
        ),
    ],
)
def test_days_from_one_to_another_are_all_of_them(phrase: str, locale: str, expected: list[str]) -> None:
    """They repeat in each month or year that is named, and else they are once."""
    reading = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)
    assert list_local_times(reading, len(expected) + (len(expected) < 8)) == expected


@try_each(
    "phrase, locale, day",
    [
        ("on the working day before christmas at 9:00", "en", "2026-12-24"),
        ("2 working days before 1 december at 9:00", "en", "2026-11-27"),
        ("the working day after new year's day at 9:00", "en", "2027-01-04"),
        ("am Werktag vor dem 30. November um 9 Uhr", "de", "2026-11-27"),
        ("the day after christmas at 9:00", "en", "2026-12-26"),
        ("am Tag vor Weihnachten um 9 Uhr", "de", "2026-12-24"),
    ],
)
def test_a_day_counted_from_a_date_is_once(phrase: str, locale: str, day: str) -> None:
    """A single working day before a date is not every working day until then."""
    reading = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)
    assert list_local_times(reading, 2) == [f"{day}T09:00:00"]
