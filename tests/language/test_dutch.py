"""What Dutch has and neither English nor German: "om de dag", "over een uur", "'s avonds", "de 15e", "half negen"."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from tests.cases import try_each

from cloudsched.language import Reading, read

ZONE = ZoneInfo("Europe/Amsterdam")
NOW = datetime(2027, 6, 10, 8, 15, tzinfo=ZONE)  # a Thursday


def ask(phrase: str) -> Reading:
    return read(phrase, now=NOW, timezone="Europe/Amsterdam", locale="nl")


@try_each(
    "phrase, times, title",
    [
        ("om de dag om 9:00 pillen", "10 09:00, 12 09:00, 14 09:00", "pillen"),
        ("om de drie dagen om 9:00 pillen", "10 09:00, 13 09:00, 16 09:00", "pillen"),
        ("om de zondag om 10:00 oma bezoeken", "13 10:00, 27 10:00", "oma bezoeken"),
        ("om het half uur van 9:00 tot 10:00 drinken", "10 09:00, 10 09:30, 10 10:00", "drinken"),
        ("elke zondagavond om 8 uur oma bellen", "13 20:00, 20 20:00", "oma bellen"),
        ("elke dag om 8 uur 's avonds pillen", "10 20:00, 11 20:00", "pillen"),
        ("savonds om 8 uur elke dag pillen", "10 20:00, 11 20:00", "pillen"),
        ("morgen om vijf voor half negen bus", "11 08:25", "bus"),
        ("dinsdag 18u30 hardlopen", "15 18:30", "hardlopen"),
        ("op de 15e om 9:00 huur", "15 09:00", "huur"),
        ("ma t/m wo 9:00 stand-up", "14 09:00, 15 09:00, 16 09:00, 21 09:00", "stand-up"),
        ("over anderhalf uur thee", "10 09:45", "thee"),
        ("vrijdag over een week om 9:00 keuring", "18 09:00", "keuring"),
        ("bellen over de offerte maandag om 9:00", "14 09:00", "bellen over de offerte"),
        ("werken in de tuin zaterdag 10:00", "12 10:00", "werken in de tuin"),
        ("de wet lezen zaterdag 10:00", "12 10:00", "de wet lezen"),
    ],
)
def test_it_runs_as_it_is_said(phrase: str, times: str, title: str) -> None:
    reading = ask(phrase)
    assert reading.schedule is not None, reading
    wanted = times.split(", ")
    found = reading.schedule.anchor(NOW).upcoming(NOW, len(wanted))
    assert [f"{at.astimezone(ZONE):%d %H:%M}" for at in found] == wanted
    assert reading.title == title


@try_each(
    "phrase",
    [
        "elke keer dat het regent paraplu meenemen",
        "elke dag om 9:00 zwemmen tot ik 10 keer ben geweest",
        "over een dag of drie mama bellen",
        "voor vrijdag 17:00 rapport inleveren",
        "elke schooldag om 8:00 brood smeren",
        "gisteravond om 8 uur",
        "yoga moet naar 19:00",
        "elke dag na het eten om 19:00 wandelen",
    ],
)
def test_what_nobody_can_know_makes_no_schedule(phrase: str) -> None:
    assert ask(phrase).schedule is None
