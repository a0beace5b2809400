"""The parts of a reading besides its schedule: titles, assumptions, questions and problems; and invalid arguments."""

from __future__ import annotations

from datetime import datetime
from random import Random

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each
from tests.language.walk import NOW, ZONE

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.errors import InvalidSchedule
from cloudsched.language import Reading, read
from cloudsched.language.reader import MAX_LENGTH

NOW_AWARE = NOW.replace(tzinfo=load_tzinfo(ZONE))


def ask(text: str, locale: str | None = "en") -> Reading:
    return read(text, now=NOW_AWARE, timezone=ZONE, locale=locale)


@try_each(
    "phrase, title",
    [
        ("remind me to call mum every Sunday at 6pm", "call mum"),
        ('"Monday report" every Friday at 16:30', "Monday report"),
        ("remind me on Monday at 9am to pay the rent", "pay the rent"),
        ("every Monday at 9am", None),
        ("à la carte dinner tomorrow at 19:00", "à la carte dinner"),
        ("Set an alarm for next Tuesday at 11pm", "alarm"),
    ],
)
def test_the_title(phrase: str, title: str | None) -> None:
    """Words that are not part of the schedule are its title, as typed."""
    reading = ask(phrase)
    assert reading.kind == "schedule", reading
    if title == "alarm":
        assert str(reading.title).endswith("alarm")
    else:
        assert reading.title == title


@try_each(
    "phrase, assumption",
    [
        ("every day", "No time was given, so it is 9:00."),
        ("every day at 9", "9:00 is in the morning."),
        ("tomorrow evening", "No time was given, so it is 18:00."),
        ("every 15 minutes", "The interval counts from now."),
        ("every Monday until March", "The last day is 2027-02-28."),
    ],
)
def test_what_is_assumed_is_said(phrase: str, assumption: str) -> None:
    """Every assumption is reported."""
    assert assumption in ask(phrase).assumptions


@try_each(
    "phrase, code, descriptions",
    [
        (
            "every second Tuesday at 10:00",
            "nth-or-interval",
            [
                "every month on the 2nd Tuesday at 10:00, Europe/Paris",
                "every 2 weeks on Tuesday at 10:00, first on Tuesday 24 November 2026, Europe/Paris",
            ],
        ),
        (
            "on 03/04 at 9am",
            "date-order",
            ["once, on 2027-03-04 at 09:00, Europe/Paris", "once, on 2027-04-03 at 09:00, Europe/Paris"],
        ),
    ],
)
def test_a_question_has_its_readings(phrase: str, code: str, descriptions: list[str]) -> None:
    """Each answer is a schedule, and its description reads back without another question."""
    reading = ask(phrase)
    assert reading.kind == "question"
    assert reading.schedule is None
    assert reading.problems[0].code == code
    assert reading.readings
    for one in reading.readings:
        assert one.description == one.schedule.describe()
        again = ask(one.description)
        assert again.schedule is not None, one.description
        assert again.schedule.upcoming(NOW_AWARE, 20) == one.schedule.upcoming(NOW_AWARE, 20)
    assert [one.description for one in reading.readings] == descriptions
    assert code in str(reading)
    assert reading.readings[0].description in str(reading)


CLAUSES = (
    *("every third friday at 5", "every monday at 9", "on 3/4 at 5", "every second tuesday", "biweekly at 8"),
    *("at noon every day", "next friday at 7", "the 31st of every month", "twice a day", "between 9 and 5"),
    *(
        "tomorrow at 6",
        "every other day until june",
        "in london at 9",
        "every mondy at 9",
        "except holidays",
        "call mum",
    ),
)
LINKS = (" and ", " or ", ", ", " ", "; ", " then ")
MOST_CALLS = 250_000
"""How many functions are called for a phrase at most: they take some forty milliseconds. The dearest of these has
twenty clauses, three of them misspelt, each of which is tried: 225,000. What grew faster would be far beyond it."""


def test_no_phrase_costs_more_than_a_blink(*, everything: bool) -> None:
    """Composed of clauses that are repeated, or of several, up to the longest: what asks too much is refused."""
    rng = Random(58)  # noqa: S311 - phrases of a test
    phrases = [" and ".join(["every third friday at 5"] * 18)]
    for _ in range(10_000 if everything else 200):
        some = rng.choices(CLAUSES, k=1 if rng.random() < 0.5 else 20)
        phrases.append(rng.choice(LINKS).join(some[at % len(some)] for at in range(rng.randint(1, 20)))[:MAX_LENGTH])
    dear = []
    for phrase in phrases:
        locale = rng.choice(["en", None])
        with count_calls() as calls:
            ask(phrase, locale)
        if calls.count > MOST_CALLS:
            dear.append((calls.count, phrase))
    assert not dear
    assert ask(phrases[0]).problems[0].code == "too-open"


@try_each(
    "phrase, code, place",
    [
        ("", "empty", ""),
        ("every Monday sproing", "not-understood", "sproing"),
        ("every other week on Monday (weeks begin on Sunday) (weeks begin on Monday)", "contradiction", None),
        ("weeks begin on Sunday", "no-time", None),
        ("x" * 501, "too-long", None),
    ],
)
def test_a_refusal_says_why_and_where(phrase: str, code: str, place: str | None) -> None:
    """A refusal has a code, a hint and a span in the phrase."""
    reading = ask(phrase)
    assert reading.kind == "refusal"
    assert not reading.readings
    (problem,) = reading.problems
    assert problem.code == code
    assert problem.hint in str(reading)
    if place is not None:
        assert phrase[slice(*problem.span)] == place


@try_each(
    "phrase",
    [
        "every day at 9am or 10am",
        "every monday at 9am and friday",
        "the last Thursday of every month before Christmas",
        "every day at 9am on the 5th",
        "2026-13-45",
    ],
)
def test_no_part_of_a_schedule_is_dropped(phrase: str) -> None:
    """A phrase is not read as a schedule if a time, a day or a bound would have to be dropped."""
    assert ask(phrase).schedule is None


def test_a_region_settles_the_order_of_day_and_month() -> None:
    """03/04 is the 4th of March in the United States, and the 3rd of April in Britain."""
    american, british = ask("on 03/04 at 9am", "en-US"), ask("on 03/04 at 9am", "en_GB")
    assert american.schedule is not None
    assert british.schedule is not None
    assert american.schedule.describe() == "once, on 2027-03-04 at 09:00, Europe/Paris"
    assert british.schedule.describe() == "once, on 2027-04-03 at 09:00, Europe/Paris"


def test_a_title_is_no_change_of_a_schedule() -> None:
    """An update refuses words that are not part of a change."""
    current = ask("every weekday at 9am").schedule
    reading = read("call mum at 10am", now=NOW_AWARE, timezone=ZONE, current=current)
    assert reading.kind == "refusal"


def test_what_the_caller_must_give() -> None:
    """`read` rejects a naive time, an unknown time zone and an unsupported language."""
    with pytest.raises(ValueError, match="no time zone"):
        read("daily", now=datetime(2026, 1, 1), timezone=ZONE)  # noqa: DTZ001 -- that is the mistake
    with pytest.raises(InvalidSchedule):
        read("daily", now=NOW_AWARE, timezone="Mars/Olympus")
    with pytest.raises(ValueError, match="locale 'xx' is not supported"):
        read("daily", now=NOW_AWARE, timezone=ZONE, locale="xx")
