"""Lengths of time and numbers of days."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

from tests.cases import try_each
from tests.language.test_cases import HERE, list_local_times
from tests.language.walk import FR, MO, NOW, SA, SU, WE, ZONE, any_day, but, dom, every, walk, wd

from cloudsched.language import Reading, read


def ask(phrase: str, locale: str) -> Reading:
    return read(phrase, now=NOW.replace(tzinfo=HERE), timezone=ZONE, locale=locale)


@try_each("tenths, form", product((5, 10, 15, 25, 45, 120, 125), ("en", "de", "de.")))
def test_tenths_of_hours_and_days(tenths: int, form: str) -> None:
    """A comma is as good as a point, and a length that is no whole number counts the next smaller unit."""
    number = f"{tenths / 10:g}".replace(".", "," if form == "de" else ".")
    hours, days = ("hours", "days") if form == "en" else ("Stunden", "Tagen")
    after = NOW + timedelta(hours=tenths / 10)
    assert list_local_times(ask(f"in {number} {hours}", form[:2]), 2) == [after.isoformat()]
    if tenths % 10:
        after = NOW + timedelta(days=tenths / 10)
        assert list_local_times(ask(f"in {number} {days}", form[:2]), 2) == [after.isoformat()]


@try_each(
    "phrase, locale, minutes",
    [
        ("every 1½ hours", "en", 90),
        ("every 2½ hours", "en", 150),
        ("every ½ hour", "en", 30),
        ("alle 1½ Stunden", "de", 90),
        ("alle 2,5 Stunden", "de", 150),
        ("alle anderthalb Stunden", "de", 90),
    ],
)
def test_halves_of_hours(phrase: str, locale: str, minutes: int) -> None:
    assert list_local_times(ask(phrase, locale), 6) == every(minutes=minutes, count=6)


@try_each("phrase, locale", [("every 3,15 of the month at 9:00", "en"), ("am 3,15 des Monats um 9", "de")])
def test_a_comma_between_days_is_no_decimal(phrase: str, locale: str) -> None:
    assert list_local_times(ask(phrase, locale), 4) == walk(dom(3, 15), ["09:00"], 4)


_MONDAYS, _FRIDAYS = (walk(wd(day), ["09:00"], 5) for day in (MO, FR))


@try_each(
    "phrase, locale, expected",
    [
        ("5 mondays in a row at 9:00 pottery class", "en", _MONDAYS),
        ("on 5 consecutive mondays at 9:00", "en", _MONDAYS),
        ("the next 5 Fridays at 9:00", "en", _FRIDAYS),
        ("for the next 5 fridays at 9:00", "en", _FRIDAYS),
        ("every friday at 9:00 for a total of 5 times", "en", _FRIDAYS),
        ("next 2 fridays at 9:00 and 17:00", "en", walk(wd(FR), ["09:00", "17:00"], 4)),
        ("the next three days at 9:00", "en", walk(any_day, ["09:00"], 3)),
        ("every day at 9:00 for the next 3 days", "en", walk(any_day, ["09:00"], 3)),
        ("take pills at 8am and 8pm for 2 days", "en", walk(any_day, ["08:00", "20:00"], 4)),
        ("die nächsten 5 Freitage um 9 Uhr", "de", _FRIDAYS),
        ("an den nächsten 5 Freitagen um 9 Uhr", "de", _FRIDAYS),
        ("fünf Montage hintereinander um 9 Uhr", "de", _MONDAYS),
        ("5 Montage in Folge um 9 Uhr", "de", _MONDAYS),
        ("jeden Freitag um 9 Uhr 5 mal", "de", _FRIDAYS),
        ("jeden Freitag um 9 Uhr insgesamt 5 Mal", "de", _FRIDAYS),
        ("um 9 Uhr 3 Tage lang Tabletten nehmen", "de", walk(any_day, ["09:00"], 3)),
    ],
)
def test_a_number_of_days_ends_with_the_last_of_them(phrase: str, locale: str, expected: list[str]) -> None:
    assert list_local_times(ask(phrase, locale), len(expected) + 1) == expected


@try_each("phrase, locale", [("Montage der Küche am Freitag um 9", "de"), ("zwei Montage am Freitag um 9", "de")])
def test_an_assembly_is_no_monday(phrase: str, locale: str) -> None:
    """The plural of a weekday is one only if a number of them follows each other."""
    assert list_local_times(ask(phrase, locale), 2) == walk(wd(FR), ["09:00"], 1)


@try_each(
    "phrase, locale, at",
    [
        ("a week on wednesday at 9:00", "en", "2026-12-02"),
        ("two weeks on monday at 9:00", "en", "2026-12-07"),
        ("saturday in a week at 9:00", "en", "2026-11-28"),
        ("in 2 weeks on saturday at 9:00 follow up", "en", "2026-12-05"),
        ("Samstag in einer Woche um 9 Uhr", "de", "2026-11-28"),
        ("in zwei Wochen am Sonntag um 9 Uhr", "de", "2026-12-06"),
        ("heute in einer Woche um 9 Uhr", "de", "2026-11-27"),
        ("übernächsten Montag um 9 Uhr", "de", "2026-11-30"),
        ("Montag übernächster Woche um 9 Uhr", "de", "2026-11-30"),
        ("im übernächsten Monat am 3. um 9 Uhr", "de", "2027-01-03"),
    ],
)
def test_a_weekday_some_weeks_on(phrase: str, locale: str, at: str) -> None:
    assert list_local_times(ask(phrase, locale), 2) == [f"{at}T09:00:00"]


@try_each("phrase, locale", [("in 2 weeks on wednesday at 9:00", "en"), ("Mittwoch in zwei Wochen um 9", "de")])
def test_it_is_asked_if_weeks_and_weekdays_count_to_different_days(phrase: str, locale: str) -> None:
    """On a Friday, the Wednesday of the week after the next is not the next Wednesday and two weeks."""
    found = [list_local_times(Reading("schedule", each.schedule), 2) for each in ask(phrase, locale).readings]
    assert found == [["2026-12-02T09:00:00"], ["2026-12-09T09:00:00"]]


@try_each(
    "phrase, locale, named",
    [
        ("on fridays at 9:00 and on all other days at 9:00", "en", (FR,)),
        ("friday at 10:00, all other days at 9:00", "en", (FR,)),
        ("at 10:00 on weekends and at 9:00 on all other days", "en", (SA, SU)),
        ("freitags um 10 Uhr, an allen anderen Tagen um 9 Uhr", "de", (FR,)),
        ("mittwochs und freitags um 10 Uhr, alle anderen Tage um 9 Uhr", "de", (WE, FR)),
    ],
)
def test_all_other_days_are_those_not_named(phrase: str, locale: str, named: tuple[int, ...]) -> None:
    first = "09:00" if "fridays at 9" in phrase else "10:00"
    expected = sorted(walk(wd(*named), [first]) + walk(but(wd(*named)), ["09:00"]))[:6]
    assert list_local_times(ask(phrase, locale), 6) == expected


@try_each("phrase", ["on all other days at 9:00", "every day at 10:00 and all other days at 9:00"])
def test_all_other_days_alone_are_refused(phrase: str) -> None:
    """They were every second day."""
    assert ask(phrase, "en").kind == "refusal"
