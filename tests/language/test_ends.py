"""The last day of a schedule that ends with a month or a year."""

from __future__ import annotations

from calendar import month_name
from datetime import date, datetime
from itertools import product

from tests.cases import try_each
from tests.instants import DAY
from tests.language.test_cases import HERE
from tests.language.walk import NOW, ZONE

from cloudsched.language import read

_MONTHS = ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober"]
_MONTHS += ["November", "Dezember"]


def find_last(phrase: str, locale: str) -> date:
    """Return the last day on which a phrase runs."""
    schedule = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale).schedule
    assert schedule is not None, phrase
    days = [
        at.astimezone(HERE).date()
        for at in schedule.between(NOW.replace(tzinfo=HERE), datetime(2032, 1, 1, tzinfo=HERE))
    ]
    return days[-1]


def find_first_of_next(month: int, year: int | None = None) -> date:
    """Return the day behind a month: of a year, or else of the next such month, or the present one."""
    year = year or NOW.year + (month < NOW.month)
    return date(year + month // 12, month % 12 + 1, 1)


_LEADS = [("every day at 9:00", "en", month_name[1:]), ("jeden Tag um 9 Uhr", "de", _MONTHS)]
_THROUGH = {
    "en": ("through", "until and including", "up to and including"),
    "de": ("bis einschließlich", "bis inklusive"),
}


@try_each("month, lead", product(range(1, 13), _LEADS))
def test_through_a_month_includes_it_and_until_does_not(month: int, lead: tuple[str, str, list[str]]) -> None:
    """That holds with a year, too, and in the month itself, which "through" means and "until" does not."""
    said, locale, names = lead
    name = names[month - 1]
    behind, behind_2029 = find_first_of_next(month), find_first_of_next(month, 2029)
    for through in _THROUGH[locale]:
        assert find_last(f"{said} {through} {name}", locale) == behind - DAY
        assert find_last(f"{said} {through} {name} 2029", locale) == behind_2029 - DAY
    until, after = ("bis", "einschließlich") if locale == "de" else ("until", "inclusive")
    assert find_last(f"{said} {until} {name} {after}", locale) == behind - DAY
    first = date(2029, month, 1)
    assert find_last(f"{said} {until} {name} 2029", locale) == first - DAY


@try_each(
    "phrase, locale, last",
    [
        ("every day at 9:00 from April through June 2027", "en", "2027-06-30"),
        ("every day at 9:00 from April to June 2027", "en", "2027-06-30"),
        ("every day at 9:00 from April until June 2027", "en", "2027-05-31"),
        ("every day at 9 through 2027", "en", "2027-12-31"),
        ("every day at 9:00 until 2028", "en", "2027-12-31"),
        ("every day at 9:00 through next month", "en", "2026-12-31"),
        ("every day at 9:00 through next week", "en", "2026-11-29"),
        ("every day at 9:00 through 15 June", "en", "2027-06-15"),
        ("jeden Tag um 9 Uhr von April bis Juni 2027", "de", "2027-06-30"),
        ("jeden Tag um 9 Uhr bis 2028", "de", "2027-12-31"),
        ("jeden Tag um 9 Uhr bis einschließlich 15. Juni", "de", "2027-06-15"),
    ],
)
def test_a_period_at_the_end(phrase: str, locale: str, last: str) -> None:
    """A year behind a time of day is none, and a range from one month to another has both."""
    assert str(find_last(phrase, locale)) == last


@try_each(
    "phrase, locale",
    [
        ("every day at 9 from April through June", "en"),
        ("täglich um 9 von April bis Juni", "de"),
    ],
)
def test_a_range_of_months_without_a_year_includes_the_last(phrase: str, locale: str) -> None:
    """It is asked whether it is each year's; the answer has all three."""
    reading = read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)
    schedule = reading.readings[0].schedule
    days = schedule.between(datetime(2027, 1, 1, tzinfo=HERE), datetime(2028, 1, 1, tzinfo=HERE))
    assert {at.month for at in days} == {4, 5, 6}
