"""A schedule's description, read again, means the same instants."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from tests.cases import try_each
from tests.language import random_schedules
from tests.language.collected_phrases import CASES, parse_now

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.schedules.words import LANGUAGES
from cloudsched.engine.tasks.read_back import read_back_schedule
from cloudsched.errors import InvalidSchedule
from cloudsched.language import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.language import Reading

COUNT = 30


def collect_schedules(reading: Reading) -> list[Schedule]:
    return [reading.schedule] if reading.schedule is not None else [one.schedule for one in reading.readings]


def check(schedule: Schedule, now: datetime) -> None:
    """Check that the description of a schedule, read in another time zone, means the same instants."""
    text = schedule.describe()
    again = read(text, now=now, timezone="Pacific/Apia")
    assert again.kind == "schedule", (text, again)
    assert again.title is None, text
    assert again.schedule is not None
    if schedule.is_now:
        assert again.schedule.is_now
        return
    assert again.schedule.upcoming(now, COUNT) == schedule.upcoming(now, COUNT), text
    assert again.schedule.describe() == text


def test_collected_phrases_read_back() -> None:
    """The description of every collected phrase means the same instants."""
    for case in CASES:
        now = parse_now(case)
        for schedule in collect_schedules(read(case["phrase"], now=now, timezone=case["zone"])):
            check(schedule, now)


def test_each_rule_keeps_the_day_on_which_its_weeks_begin() -> None:
    """Of several rules, one may have it and another not, or another one."""
    now, times = datetime(2027, 1, 1, tzinfo=UTC), ("BYHOUR=9;BYMINUTE=0", "BYHOUR=17;BYMINUTE=30")
    starts = ("", ";WKST=SU", ";WKST=SA")
    for first, second in product(starts, repeat=2):
        rules = [
            f"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;{time}{start}"
            for time, start in zip(times, (first, second), strict=True)
        ]
        check(Schedule(rrule=rules, dtstart="2027-01-05T09:00:00"), now)
    check(
        Schedule(rrule="FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO;BYHOUR=9;BYMINUTE=0;WKST=SU", dtstart="2027-01-04T09:00:00"),
        now,
    )


@pytest.mark.timeout(7200)
def test_descriptions_of_schedules_of_every_kind_are_never_false(phrases: int) -> None:
    """In English and German: what is read back is the same schedule, or the text says that it is a summary.

    Most are not summaries, and those of one rule with plain days and times never are.
    """
    total = phrases // 2
    counts, wrong = random_schedules.check_many(total, seed=37)
    assert wrong == []
    for locale in random_schedules.LANGUAGES:
        assert counts[f"{locale} exact"] > total * 0.6


JUDGED = Path(__file__).parent / "judged"
OWN = (
    *(
        "jeden zweiten Dienstag um 10",
        "am letzten Werktag jedes Monats um 18 Uhr",
        "alle 90 Minuten",
        "jetzt",
        "in 36 Stunden",
    ),
    *(
        "alle 2 Wochen montags und freitags um 10 Uhr ab 3. Mai 2027 bis 1. Juni 2028 außer am 24. Dezember",
        "jeden 31. um 9",
    ),
    *(
        "jeden 5. Montag im Monat um 9",
        "werktags um 9 und 17:30 Uhr, 10 Mal",
        "am 1. und 15. jedes Monats um 9 New York Zeit",
    ),
    *("jedes Jahr am 29. Februar um 12", "alle 3 Monate am 1. um 8", "wochentags alle 15 Minuten von 9 bis 17 Uhr"),
    *("am 3. und 7. August um 9 Uhr", "jeden Samstag und Sonntag im Juli um 11", "am 100. Tag jedes Jahres um 9"),
)
"""Phrases in German beside the judged ones: intervals, ends, exceptions, months, zones, single times."""


def list_told(phrase: str, now: datetime, zone: str, language: str) -> Iterator[tuple[Schedule, str]]:
    """Yield each schedule of a phrase with its descriptions: whole, and from its next occurrence on."""
    reading = read(phrase, now=now, timezone=zone, locale=language)
    for schedule in collect_schedules(reading):
        yield schedule, schedule.describe(language)
        if not schedule.is_now:
            yield schedule, schedule.describe_next(schedule.anchor(now).next_after(now), language).text


def load_german() -> Iterator[tuple[str, datetime, str]]:
    for row in json.loads((JUDGED / "de.json").read_text("utf-8")):
        yield row["phrase"], datetime.fromisoformat(row["now"]).replace(tzinfo=ZoneInfo(row["zone"])), row["zone"]
    for phrase in OWN:
        yield phrase, datetime(2027, 4, 30, 8, 15, tzinfo=ZoneInfo("Europe/Berlin")), "Europe/Berlin"


def list_words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text))


def test_what_german_phrases_mean_is_told_in_german_and_read_back() -> None:
    """The same instants come of it, without a question or a title, and no word of it is English."""
    english, german = LANGUAGES["en"], LANGUAGES["de"]
    both = {*english.months} & {*german.months} | {"in"}
    told = 0
    for phrase, now, zone in load_german():
        for schedule, text in list_told(phrase, now, zone, "de"):
            again = read(text, now=now, timezone="Pacific/Apia", locale="de")
            assert again.schedule is not None, (phrase, text, again)
            assert again.title is None, (phrase, text)
            assert again.schedule.anchor(now).upcoming(now, COUNT) == schedule.anchor(now).upcoming(now, COUNT), text
            own = list_words(text) - list_words(schedule.timezone) - both
            assert own.isdisjoint(list_words(schedule.describe())), (phrase, text)
            told += 1
    assert told > 150


@try_each(
    "phrase, told",
    [
        ("jeden zweiten Dienstag um 10", "alle 2 Wochen am Dienstag um 10:00"),
        ("am 31. jedes Monats um 9", "oder am letzten Tag davor, wo dieser Tag fehlt"),
        ("jeden Montga um 4", "jeden Montag um 16:00"),
        ("am 3.4. um 5", "einmal, am 3. April 2028 um 05:00"),
    ],
)
def test_the_readings_of_a_question_are_told_in_its_language(phrase: str, told: str) -> None:
    """Whichever question it is: which of two meanings, a slip, a title."""
    reading = read(phrase, now=datetime(2027, 6, 10, 8, tzinfo=UTC), timezone="UTC", locale=None)
    assert reading.kind == "question"
    assert reading.language == "de"
    assert any(told in each.description for each in reading.readings), reading.readings


_FIRST = re.compile(r"first on \w+ (\d+ \w+ \d{4})")


def draw_schedule(random: Random, now: datetime) -> Schedule | None:
    """Return a schedule with a start that may be past; None if what was drawn is none."""
    parts = {
        "FREQ": random.choice(["DAILY", "WEEKLY", "MONTHLY", "YEARLY", "HOURLY", "MINUTELY"]),
        "INTERVAL": str(random.choice([1, 1, 2, 3, 5, 14, 90])),
    }
    if random.random() < 0.3:
        parts["BYDAY"] = ",".join(random.sample(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], random.randint(1, 3)))
    if random.random() < 0.2:
        parts["BYMONTHDAY"] = str(random.choice([1, 15, 28, 31, -1]))
    if random.random() < 0.6:
        parts |= {"BYHOUR": str(random.randrange(24)), "BYMINUTE": str(random.choice([0, 30, 59]))}
    start = (now + timedelta(hours=random.uniform(-90 * 24, 20))).replace(microsecond=0, tzinfo=None)
    rule = ";".join(f"{name}={value}" for name, value in parts.items())
    zone = random.choice(["UTC", "Europe/Paris", "America/New_York", "Pacific/Auckland"])
    with suppress(InvalidSchedule):
        return Schedule(rrule=rule, dtstart=start.isoformat(), timezone=zone)
    return None


def test_what_is_told_as_the_first_run_is_the_next(*, everything: bool) -> None:
    """Whatever the schedule and however late in the day: no instant is named that has passed."""
    random, named = Random(7), 0  # noqa: S311 - repeatable cases
    for _ in range(20_000 if everything else 2_000):
        now = datetime(2027, 1, 1, 20, tzinfo=UTC) + timedelta(
            days=random.randrange(700), minutes=random.randrange(400)
        )
        schedule = draw_schedule(random, now)
        times = [] if schedule is None else schedule.upcoming(now, 1)
        told = None if schedule is None or not times else read_back_schedule(schedule, iter(times))
        first = None if told is None else _FIRST.search(told.description)
        if told is not None and first is not None:
            assert first[1] == f"{told.next[0]:%-d %B %Y}", (told, schedule, now)
            named += 1
    assert named > 100
