"""Random words neither break the reading nor slow it; a changed phrase is not read as if nothing had changed."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from random import Random

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each
from tests.instants import DAY
from tests.language import paraphrases
from tests.language.collected_phrases import CASES, parse_now
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidInput
from cloudsched.language import read, read_schedule
from cloudsched.language.english import ENGLISH
from cloudsched.language.schedule_text import read_new_time, read_until

WORDS = ENGLISH.words
VOCABULARY = sorted({word for entries in ENGLISH.entries.values() for words, _, _ in entries for word in words})
OTHERS = ["banana", "mum", "report", "9", "17", "3", "9:30", "5pm", "1/2", "2027-01-31", "12/7/2026", "30th", "2nd"]
OTHERS += ["Europe/Paris", "-", ":", '"x y"', "(", ")", "é", "\u0301", "😀", "99999999999", "'", "a.m.", "1-7", "17.30"]
OTHERS += [
    "2026-13-45",
    "0000-00-00",
    "99/99/9999",
    "0",
    "00:00",
    "24:00",
    "31/2/2027",
    "1.1.1",
    "9998-12-31",
    "29.2.2027",
]
MOST_CALLS = 200_000  # take about 20 ms
FOREIGN = ("banana", "xyzzy", "kangaroo")


@pytest.mark.timeout(7200)
def test_random_words(phrases: int) -> None:
    """They neither crash nor take long, and every reading is complete."""
    random, now = Random(5), NOW.replace(tzinfo=load_tzinfo(ZONE))  # noqa: S311 -- repeatable
    words = VOCABULARY + OTHERS * 3
    for _ in range(phrases):
        text = " ".join(random.choices(words, k=random.choice((1, 2, 3, 4, 5, 6, 8, 12, 20, 60))))[:500]
        with count_calls() as calls:
            reading = read(text, now=now, timezone=ZONE)
        assert calls.count < MOST_CALLS, text
        assert (reading.schedule is not None) == (reading.kind == "schedule"), text
        assert bool(reading.problems) == (reading.kind != "schedule"), text
        for problem in reading.problems:
            assert 0 <= problem.span[0] <= problem.span[1] <= len(text), text
            assert problem.hint, text
        for one in reading.readings:
            assert one.schedule.next_after(now) is not None, text


BEYOND = [
    "for the next quarter",
    "every Monday for the next quarter",
    "every day from 31.12.9998 until the 2nd Tuesday of the month",
    "100 Tuesdays after 31.12.9998 at 9",
    "every Monday until a second before the end of the month",
]
"""Phrases that count beyond the calendar, or in a unit of which nothing is known."""


def test_doors_refuse_what_they_do_not_read(phrases: int) -> None:
    """They raise nothing but what they promise: for a new time, an end, a schedule and its change."""
    random, now = Random(7), NOW.replace(tzinfo=load_tzinfo(ZONE))  # noqa: S311 -- repeatable
    cron, counted = (Schedule.parse(text, timezone=ZONE, now=now) for text in ("0 9 * * 1", "FREQ=DAILY;COUNT=9"))
    kinds = ("skip", "relocate", "make", "for", "add-more")
    heads = [text.split("|")[0] for kind in kinds for text in ENGLISH.list_words(kind).values()]
    texts = [
        "also on Saturdays",
        *BEYOND,
        *(f"make it {each}" for each in BEYOND),
        "15 at 8:00",
        "Let's discuss the work for the next quarter.",
        "99999999 hours later",
        "9999 years later",
    ]
    texts += [
        " ".join([random.choice(heads), *random.choices(VOCABULARY + OTHERS * 3, k=random.randrange(1, 6))])
        for _ in range(phrases // 10)
    ]
    for text in texts:
        for one in (cron, counted, Schedule.once(now + DAY, ZONE), None):
            with suppress(InvalidInput):
                read_schedule(text, now=now, timezone=ZONE, current=one)
        for door in (read_until, partial(read_new_time, occurrence=now + DAY)):
            with suppress(InvalidInput):
                door(text, now=now, timezone=ZONE)


@pytest.mark.parametrize(
    "word", ["every day ", "monday and ", "1 ", "the 3rd ", "at 9 ", "call ", "except may ", "a-", "to "]
)
def test_long_phrases_take_no_longer_than_their_length(word: str) -> None:
    """The worst phrases of 500 characters are read in time."""
    text = (word * 500)[:500]
    now = NOW.replace(tzinfo=load_tzinfo(ZONE))
    with count_calls() as calls:
        read(text, now=now, timezone=ZONE)
    assert calls.count < MOST_CALLS


def test_a_foreign_word_is_never_dropped(phrases: int) -> None:
    """A word outside the lexicon ends up in the title, or the phrase is refused."""
    random, now = Random(9), NOW.replace(tzinfo=load_tzinfo(ZONE))  # noqa: S311 -- repeatable
    for made in paraphrases.make(random, min(phrases, 10_000) // 2, ["en"]):
        words, foreign = made.text.split(), random.choice(FOREIGN)
        words.insert(random.randrange(len(words) + 1), foreign)
        reading = read(" ".join(words), now=now, timezone=ZONE)
        assert reading.kind != "schedule" or foreign in str(reading.title), words


def test_a_changed_phrase_is_not_read_as_before() -> None:
    """A foreign word added or put in another's place changes the reading or ends it, wherever it stands."""
    random = Random(13)  # noqa: S311 -- repeatable
    for case in CASES:
        now = parse_now(case)
        words = case["phrase"].split()
        before = read(case["phrase"], now=now, timezone=case["zone"])
        if before.schedule is None or len(words) < 2:
            continue
        place, foreign = random.randrange(len(words)), random.choice(FOREIGN)
        changed = [*words[:place], foreign, *words[place + (random.random() < 0.5) :]]
        reading = read(" ".join(changed), now=now, timezone=case["zone"])
        assert reading.kind != "schedule" or foreign in str(reading.title), changed


@try_each("phrase, place", [(phrase, place) for phrase, places in {
        "every Monday at 9:15 except in August": (1, 3, 4, 6),
        "every 2 weeks on Tuesday at 10am until June": (1, 2, 4, 6, 7, 8),
        "the last Friday of every month at 17:00": (1, 2, 5, 7),
        "every 15 minutes from 9 to 17 on weekdays": (1, 2, 4, 6, 8),
        "weekdays at 7:00 and weekends at 9:30": (0, 2, 4, 6),
        "tomorrow at 5pm New York time": (0, 2),
        "every day at 8:00 for 10 times": (3, 5, 6),
    }.items() for place in places])  # fmt: skip
def test_a_word_with_a_meaning_cannot_be_left_out(phrase: str, place: int) -> None:
    """Without it the phrase means something else, or nothing."""
    now = NOW.replace(tzinfo=load_tzinfo(ZONE))
    words = phrase.split()
    before = read(phrase, now=now, timezone=ZONE)
    assert before.schedule is not None
    after = read(" ".join(words[:place] + words[place + 1 :]), now=now, timezone=ZONE)
    far = now + 900 * DAY
    if after.schedule is not None:
        assert (after.schedule.upcoming(now, 400), after.schedule.between(far, far + 20 * DAY)) != (
            before.schedule.upcoming(now, 400),
            before.schedule.between(far, far + 20 * DAY),
        )
