"""The guard on a model's answer: the user's own words decide what it may say."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest
from tests.cases import try_each
from tests.drafts.guard_cases import READ, RIGHT, WRONG

from cloudsched.drafts.grounding import find_ungrounded
from cloudsched.drafts.request import DraftRequest, Turn
from cloudsched.drafts.situation import Situation
from cloudsched.drafts.translation import guess_glossary
from cloudsched.language.languages import LANGUAGES

NOW = datetime(2027, 1, 6, 8, tzinfo=UTC)


def read_quotes(quotes: str) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for each in filter(None, quotes.split("|")):
        facet, _, words = each.partition(":")
        said.setdefault(facet.strip(), []).append(words.strip())
    return said


def check(
    text: str, quotes: str, schedule: str, title: str = "", *turns: str, assumes: bool = False
) -> tuple[str, ...] | None:
    conversation = tuple(Turn(role="user", content=each) for each in turns)
    request = DraftRequest(text=text, timezone="Europe/Paris", conversation=conversation)
    situation = Situation(request, NOW, [], list, time(9))
    return find_ungrounded(situation, schedule, read_quotes(quotes), (title,), assumes=assumes)


def leave_title(text: str, quotes: str) -> str:
    """Return the words of a text that no facet quotes."""
    for words in read_quotes(quotes).values():
        for each in words:
            text = text.replace(each, "")
    return text.strip(" ,")


@try_each("text, quotes, schedule", [*RIGHT, *READ])
def test_a_right_answer_is_used(text: str, quotes: str, schedule: str) -> None:
    """In twelve languages, each word of time quoted and known."""
    assert check(text, quotes, schedule, leave_title(text, quotes)) is None


@try_each("text, quotes, schedule", WRONG)
def test_a_wrong_answer_is_not_used(text: str, quotes: str, schedule: str) -> None:
    """Also if the title has all of the words that the schedule leaves out, or if the model assumes something."""
    assert check(text, quotes, schedule, text) is not None
    assert check(text, quotes, schedule, text, assumes=True) is not None


TRANSLATED = [each for each in RIGHT if guess_glossary(each[0]) not in LANGUAGES]
"""Those in languages that the grammar does not read. What it reads needs no quotes."""


@pytest.mark.parametrize("number", range(len(TRANSLATED)))
def test_no_facet_may_be_left_out(number: int) -> None:
    """A right schedule for which the model quotes less than the user said."""
    text, quotes, schedule = TRANSLATED[number]
    pieces = quotes.split("|")
    for left_out in range(len(pieces)):
        rest = "|".join(pieces[:left_out] + pieces[left_out + 1 :])
        assert check(text, rest, schedule, text) is not None, pieces[left_out]


@try_each(
    "text, quotes, schedule",
    [
        ("elke maandag mama bellen", "days: elke maandag", "every Monday at 19:00"),
        ("chaque lundi", "days: chaque lundi", "every Monday at 8:00"),
    ],
)
def test_an_assumption_may_add_a_time_of_day_alone(text: str, quotes: str, schedule: str) -> None:
    """It is shown. A day that was not said is none, and a time that was said stays."""
    assert check(text, quotes, schedule, assumes=True) is None
    assert check(text, quotes, schedule) is not None
    assert check(text, quotes, schedule.replace("Monday", "Tuesday"), assumes=True) is not None
    assert check(f"{text} 9:30", f"{quotes} | time: 9:30", schedule, assumes=True) is not None


@try_each(
    "text, title",
    [
        ("koop 3 kaartjes elke maandag om 9 uur", "3 kaartjes kopen"),
        ("appeler Paris chaque lundi à 9h", "Appeler Paris"),
        ('lees "het nieuws van vrijdag" elke maandag om 9 uur', "het nieuws van vrijdag"),
    ],
)
def test_a_title_may_have_numbers_and_cities_and_quoted_words(text: str, title: str) -> None:
    """They are no part of the schedule, as long as the title shows them."""
    quotes = "days: chaque lundi | time: à 9h" if "lundi" in text else "days: elke maandag | time: om 9 uur"
    assert check(text, quotes, "every Monday at 9:00", title) is None


def test_words_of_earlier_messages_may_be_quoted() -> None:
    """The last message alone has to be covered."""
    quotes = "days: elke maandag | time: om 10 uur"
    assert check("om 10 uur", quotes, "every Monday at 10:00", "", "elke maandag") is None
    assert check("nee, om 10 uur", quotes, "every Monday at 10:00", "", "elke maandag om 9 uur") is None
    assert check("op vrijdag om 10 uur", quotes, "every Monday at 10:00", "", "elke maandag") is not None
