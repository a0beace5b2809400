"""A title may have the schedule in its midst: "dinner at 8 with Bob"."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.language import read

ZONE = "Europe/Berlin"
NOW = datetime(2027, 6, 10, 8, 15, tzinfo=ZoneInfo(ZONE))  # a Thursday


@try_each(
    "phrase, locale, first, title",
    [
        ("dinner at 8 tonight with Bob", "en", "06-10 20:00", "dinner with Bob"),
        ("lunch tomorrow at noon with Sue", "en", "06-11 12:00", "lunch with Sue"),
        ("pick up the kids every weekday at 3pm from school", "en", "06-10 15:00", "pick up the kids from school"),
        ("call tomorrow at 9am bob", "en", "06-11 09:00", "call bob"),
        ("Tabletten täglich um 15 Uhr nehmen", "de", "06-10 15:00", "Tabletten nehmen"),
        ("Oma am Montag um 15 Uhr anrufen", "de", "06-14 15:00", "Oma anrufen"),
        ("Oma am Montag anrufen", "de", "06-14 09:00", "Oma anrufen"),
        ("Oma am Montag anrufen um 15 Uhr", "de", "06-14 15:00", "Oma anrufen"),
        ("Oma sonntags anrufen um 15 Uhr", "de", "06-13 15:00", "Oma anrufen"),
        ("Oma am 5.7. anrufen um 15 Uhr", "de", "07-05 15:00", "Oma anrufen"),
        ("um 15 Uhr UTC morgen Anna anrufen", "de", "06-11 17:00", "Anna anrufen"),
        ("tomorrow call mum", "en", "06-11 09:00", "call mum"),
        ("on friday buy milk", "en", "06-11 09:00", "buy milk"),
        ("remind me on friday at 5pm to prepare for monday", "en", "06-11 17:00", "prepare for monday"),
        ("remind me at 6pm to record the 8pm show", "en", "06-10 18:00", "record the 8pm show"),
        ("erinnere mich am Sonntag an die Prüfung am Montag", "de", "06-13 09:00", "Prüfung am Montag"),
        ("ruf morgen um 9 Oma an", "de", "06-11 09:00", "ruf Oma an"),
        ("bring den Müll morgen um 9 raus", "de", "06-11 09:00", "bring den Müll raus"),
        ("erinnere mich daran, Oma am Montag um 15 Uhr anzurufen", "de", "06-14 15:00", "Oma anzurufen"),
    ],
)
def test_both_parts_of_a_title_are_kept(phrase: str, locale: str, first: str, title: str) -> None:
    reading = read(phrase, now=NOW, timezone=ZONE, locale=locale)
    assert reading.schedule is not None, reading
    assert reading.schedule.upcoming(NOW, 1)[0].astimezone(NOW.tzinfo).strftime("%m-%d %H:%M") == first
    assert reading.title == title


@try_each(
    "phrase, locale",
    [
        ("gym every day at 9 when it rains", "en"),
        ("gym every day at 9 on match days", "en"),
        ("gym every day at 9 maybe", "en"),
        ("gym every day at 9 summer only", "en"),
        ("gym tomorrow at 9 Narnia time", "en"),
        ("call Bob tomorrow once I arrive", "en"),
        ("call Bob tomorrow at 7ampm", "en"),
        ("water plants every 3 days at 8 until done", "en"),
        ("cancel my monday 9am alarm", "en"),
        ("dont remind me tomorrow at 9am to call paul", "en"),
        ("watch the 5th wave with bob", "en"),
        ("remind me to walk every Monday banana at 9am", "en"),
        ("standup 9.15 weekdays from monday", "en"),
        ("every monday only on tuesdays at 9am bins", "en"),
        ("remind me tomorrow at 9am to take a break every hour", "en"),
        ("hat die Apotheke am Sonntag um 10 offen?", "de"),
        ("Guten Morgen sagen um 9 Uhr", "de"),
        ("Ticket für morgen kaufen um 15 Uhr", "de"),
        ("morgen 16 oder 17 Uhr Tee", "de"),
        ("Sport täglich um 9 bei Regen", "de"),
        ("Tropfen täglich um 9 nach Bedarf nehmen", "de"),
        ("Bob anrufen morgen gleich", "de"),
        ("Tisch für 20 Uhr reservieren", "de"),
    ],
)
def test_what_a_schedule_depends_on_is_no_part_of_a_title(phrase: str, locale: str) -> None:
    assert read(phrase, now=NOW, timezone=ZONE, locale=locale).schedule is None
