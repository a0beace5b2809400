"""Days that some months or years do not have."""

from __future__ import annotations

from calendar import month_name, monthrange
from datetime import date
from itertools import product

from tests.cases import try_each
from tests.language.test_cases import HERE, list_local_times
from tests.language.walk import NOW, ZONE, walk

from cloudsched.language import Reading, read


def ask(phrase: str, locale: str = "en") -> Reading:
    return read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)


@try_each("month, day", product(range(1, 13), range(27, 32)))
def test_a_day_of_a_year_is_asked_about_if_some_years_lack_it(month: int, day: int) -> None:
    """29 February is: it may mean leap years alone, or the 28th of the others. No year has 30 February."""
    reading = ask(f"every year on {month_name[month]} {day} at 9:00")
    if day <= monthrange(2027, month)[1]:
        assert reading.kind == "schedule"
    else:
        assert reading.kind == ("question" if day <= monthrange(2028, month)[1] else "refusal")


def test_each_answer_is_what_it_says() -> None:
    only, also = (each.schedule for each in ask("every year on feb 29 leap party at 9:00").readings)
    assert only is not None
    assert also is not None
    assert [at.year for at in only.upcoming(NOW.replace(tzinfo=HERE), 3)] == [2028, 2032, 2036]
    days = [at.date() for at in also.upcoming(NOW.replace(tzinfo=HERE), 3)]
    assert days == [date(2027, 2, 28), date(2028, 2, 29), date(2029, 2, 28)]


@try_each(
    "phrase, locale",
    [
        ("every leap day at 9:00", "en"),
        ("every year on feb 29 at 9:00 only in leap years", "en"),
        ("every 4 years on feb 29 at 9:00", "en"),
        ("jedes Jahr am Schalttag um 9 Uhr", "de"),
        ("jedes Jahr am 29. Februar um 9 Uhr nur in Schaltjahren", "de"),
    ],
)
def test_the_leap_day_by_its_name_is_asked_about_no_more(phrase: str, locale: str) -> None:
    leaps = walk(lambda day: (day.month, day.day) == (2, 29), ["09:00"], 2)
    assert list_local_times(ask(phrase, locale), 2) == leaps


@try_each("phrase", ["jedes Jahr am 29. Februar um 9 Uhr", "jährlich am 29.2. um 9 Uhr"])
def test_it_is_asked_about_in_german(phrase: str) -> None:
    assert len(ask(phrase, "de").readings) == 2
