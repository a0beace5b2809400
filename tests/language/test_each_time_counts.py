"""No time, day or number of a phrase is dropped or joined to another in silence."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.language import read

ZONE = "Europe/Berlin"
NOW = datetime(2027, 6, 10, 8, 15, tzinfo=ZoneInfo(ZONE))  # a Thursday


@try_each(
    "phrase, locale, runs",
    [
        ("pills daily at 8 in the morning and evening", "en", "Thu 20:00, Fri 08:00, Fri 20:00"),
        ("pills at 8 every morning and evening", "en", "Thu 20:00, Fri 08:00, Fri 20:00"),
        ("Tabletten täglich um 8 Uhr morgens und abends", "de", "Thu 20:00, Fri 08:00, Fri 20:00"),
        ("every day at 3pm, sundays at 4pm", "en", "Thu 15:00, Fri 15:00, Sat 15:00, Sun 16:00, Mon 15:00"),
        ("every day at 3pm, sundays also at 4pm", "en", "Thu 15:00, Fri 15:00, Sat 15:00, Sun 15:00, Sun 16:00"),
        ("weekdays at 9, fridays at 10 gym", "en", "Thu 09:00, Fri 10:00, Mon 09:00"),
        ("every day at 3pm except sundays at 4pm", "en", "Thu 15:00, Fri 15:00, Sat 15:00, Sun 16:00, Mon 15:00"),
        ("every evening except weekends at 9:30am", "en", "Thu 18:00, Fri 18:00, Sat 09:30, Sun 09:30, Mon 18:00"),
        ("mornings except sundays at 10", "en", "Thu 09:00, Fri 09:00, Sat 09:00, Sun 10:00, Mon 09:00"),
        ("every 3 days at 9 except sundays at 10", "en", "Thu 09:00, Sun 10:00, Wed 09:00"),
        ("gym tuesday and thursday at 6pm and saturday at 10am", "en", "Thu 18:00, Sat 10:00, Tue 18:00"),
        ("meds every 6 hours starting at 8am tomorrow", "en", "Fri 08:00, Fri 14:00"),
        ("montags bis freitags um 8, freitags um 10 Tee", "de", "Fri 10:00, Mon 08:00"),
        ("every day 2 times at 8 and 20 drink", "en", "Thu 20:00, Fri 08:00, Fri 20:00, Sat 08:00"),
        ("jeden Tag 2 Mal um 8 und 20 Uhr Tropfen", "de", "Thu 20:00, Fri 08:00, Fri 20:00, Sat 08:00"),
        ("um 8,15 Uhr täglich Tee", "de", "Fri 08:15, Sat 08:15"),
        ("jeden Tag am Morgen um 8", "de", "Fri 08:00, Sat 08:00"),
        ("jeden Montag am Morgen um 8", "de", "Mon 08:00, Mon 08:00"),
        ("acht Uhr dreißig täglich Tee", "de", "Thu 08:30, Fri 08:30"),
        ("weekdays at 6am saturdays at 9am gym", "en", "Fri 06:00, Sat 09:00"),
        ("in der Nacht zum 12. Juni um 1 Uhr Feuerwerk", "de", "Sat 01:00"),
    ],
)
def test_each_is_kept(phrase: str, locale: str, runs: str) -> None:
    schedule = read(phrase, now=NOW, timezone=ZONE, locale=locale).schedule
    assert schedule is not None
    found = schedule.anchor(NOW).upcoming(NOW, runs.count(",") + 1)
    assert ", ".join(at.astimezone(NOW.tzinfo).strftime("%a %H:%M") for at in found) == runs


@try_each(
    "phrase, locale",
    [
        ("every monday or tuesday at 9 gym", "en"),
        ("jeden Montag oder Dienstag um 9 Sport", "de"),
        ("every day at 9 and sundays at 10", "en"),
        ("every 2 hours 5 minutes stretch", "en"),
        ("alle 2 Stunden 5 Minuten dehnen", "de"),
        ("in einer Stunde 10 Minuten joggen", "de"),
        ("remind me at noon that rent is due on friday", "en"),
        ("at 8am and in the evening pills", "en"),
        ("um 15 Uhr 30 Tee", "de"),
        ("every monday at 9am london standup", "en"),
        ("meds at 9am and 9 daily", "en"),
        ("remind me at 6pm about the exam on sunday", "en"),
        ("dentist 3pm friday 5pm", "en"),
        ("every day at 9 and at 12 on sundays tea", "en"),
        ("every day at 8am summer only pack lunch", "en"),
        ("since may every day at 9 tea", "en"),
        ("seit Mai täglich um 9 Uhr Tee", "de"),
        ("every last Friday night of the month at 1 am", "en"),
        ("Friday night at 11 pm and 1 am", "en"),
        ("am letzten Freitag im Monat nachts um 1 Uhr", "de"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_asked_or_refused(phrase: str, locale: str) -> None:
    assert read(phrase, now=NOW, timezone=ZONE, locale=locale).schedule is None
