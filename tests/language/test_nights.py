"""Nights, which begin on one day and end on the next."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.language import read

ZONE = "Europe/Berlin"
NOW = datetime(2027, 6, 10, 8, 15, tzinfo=ZoneInfo(ZONE))  # a Thursday


def find_first(phrase: str, locale: str, count: int = 2) -> list[str]:
    schedule = read(phrase, now=NOW, timezone=ZONE, locale=locale).schedule
    assert schedule is not None
    found = schedule.upcoming(NOW, count)
    return [at.astimezone(ZoneInfo(ZONE)).strftime("%a %d %H:%M") for at in found]


@try_each(
    "phrase, locale, first",
    [
        ("Friday night at 1 am lock the club", "en", ["Sat 12 01:00"]),
        ("every Friday night at 1", "en", ["Sat 12 01:00", "Sat 19 01:00"]),
        ("every Friday night at 11", "en", ["Fri 11 23:00", "Fri 18 23:00"]),
        ("Sunday night at 12:30", "en", ["Mon 14 00:30"]),
        ("tonight at 1am", "en", ["Fri 11 01:00"]),
        ("tomorrow night at 2 am", "en", ["Sat 12 02:00"]),
        ("every weekday night at 1 am", "en", ["Fri 11 01:00", "Sat 12 01:00"]),
        ("every night at 3", "en", ["Fri 11 03:00", "Sat 12 03:00"]),
        ("in the night from Saturday to Sunday at 3", "en", ["Sun 13 03:00"]),
        ("freitags nachts um 1 Uhr Club abschließen", "de", ["Sat 12 01:00", "Sat 19 01:00"]),
        ("Samstag Nacht um halb eins", "de", ["Sun 13 00:30"]),
        ("heute Nacht um 2 Backup prüfen", "de", ["Fri 11 02:00"]),
        ("heute Nacht um 23 Uhr", "de", ["Thu 10 23:00"]),
        ("in der Nacht auf Samstag um 2 Uhr Server neu starten", "de", ["Sat 12 02:00"]),
        ("in der Nacht auf Samstag um 23 Uhr", "de", ["Fri 11 23:00"]),
        ("in der Nacht von Samstag auf Sonntag um 3 Uhr", "de", ["Sun 13 03:00"]),
        ("Samstag um 3 Uhr nachts", "de", ["Sun 13 03:00"]),
        ("jede Nacht um 3 Backup", "de", ["Fri 11 03:00", "Sat 12 03:00"]),
    ],
)
def test_a_time_after_midnight_belongs_to_the_night_of_the_day_before(
    phrase: str, locale: str, first: list[str]
) -> None:
    assert find_first(phrase, locale, len(first)) == first


@try_each("phrase", ["morgen um 3 Uhr nachts", "Taxi am 11. Juni um 3 Uhr nachts"])
def test_an_hour_at_night_of_a_date_is_asked_about(phrase: str) -> None:
    """It may be early on that day, or in the night that begins on it."""
    readings = read(phrase, now=NOW, timezone=ZONE, locale="de").readings
    found = [each.schedule.upcoming(NOW, 1)[0].astimezone(NOW.tzinfo) for each in readings]
    assert [f"{at:%d %H:%M}" for at in found] == ["11 03:00", "12 03:00"]


@try_each(
    "phrase, first",
    [
        ("Samstag abends um 20 Uhr Kino", ["Sat 12 20:00"]),
        ("12. Juni abends um 8 Kino", ["Sat 12 20:00"]),
        ("am Freitag morgens um 7 joggen", ["Fri 11 07:00"]),
        ("samstags abends um 20 Uhr Kino", ["Sat 12 20:00", "Sat 19 20:00"]),
        ("morgens um 9 Tabletten", ["Thu 10 09:00", "Fri 11 09:00"]),
    ],
)
def test_a_german_part_of_the_day_repeats_only_where_no_single_day_is_named(phrase: str, first: list[str]) -> None:
    assert find_first(phrase, "de") == first
