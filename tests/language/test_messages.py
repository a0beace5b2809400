"""What the reader says is in the language of the phrase."""

from __future__ import annotations

from datetime import UTC, datetime
from string import Formatter

from tests.cases import try_each

from cloudsched.language import read
from cloudsched.language.german_messages import GERMAN_MESSAGES
from cloudsched.language.reader import QUESTIONS
from cloudsched.language.result import HINTS

NOW = datetime(2027, 6, 10, 8, 15, tzinfo=UTC)


def list_names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_every_hint_and_question_is_said_in_german() -> None:
    assert {*HINTS.values(), *QUESTIONS.values()} <= GERMAN_MESSAGES.keys()


def test_a_sentence_names_the_same_values_in_both_languages() -> None:
    """One that named others would fail for those who write German alone."""
    for english, german in GERMAN_MESSAGES.items():
        assert list_names(german) <= list_names(english), english


@try_each(
    "phrase, said",
    [
        ("morgen um 4 Zahnarzt", "16:00 am Nachmittag"),
        ("jeden zweiten Dienstag um 10", "alle 2 Wochen"),
        ("jeden Tag um 25 Uhr", "Uhrzeit"),
        ("gestern um 9", "vorbei"),
        ("tägich um 9 Uhr joggen", "wird als"),
        ("werktags", "Ohne Uhrzeit"),
    ],
)
def test_german_phrases_are_answered_in_german(phrase: str, said: str) -> None:
    reading = read(phrase, now=NOW, timezone="Europe/Berlin", locale="de")
    labels = [each.label for each in reading.readings]
    assert said in " ".join((reading.explain(), *reading.assumptions, *labels)), reading
