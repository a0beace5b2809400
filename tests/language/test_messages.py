"""What the reader says is in the language of the phrase."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

from tests.cases import try_each

from cloudsched import drafts, language
from cloudsched.language import read
from cloudsched.language.german_messages import GERMAN_MESSAGES
from cloudsched.language.reader import QUESTIONS
from cloudsched.language.result import HINTS

NOW = datetime(2027, 6, 10, 8, 15, tzinfo=UTC)


def list_names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_every_hint_and_question_is_said_in_german() -> None:
    assert {*HINTS.values(), *QUESTIONS.values()} <= GERMAN_MESSAGES.keys()


def list_sentences() -> Iterator[str]:
    """Yield what the code of reader and drafts says: templates, hints, assumptions, and the names of answers."""
    folders = [Path(str(each.__file__)).parent for each in (language, drafts)]
    for path in (path for folder in folders for path in folder.glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        for call in calls:
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            hints = [*call.args[2:], *(each.value for each in call.keywords if each.arg == "hint")]
            said = {
                "say": call.args[:1],
                "tell": call.args[1:2],
                "assume": call.args[:1],
                "Option": call.args[:1],
                "Refused": hints,
            }
            for each in said.get(name, ()):
                if isinstance(each, ast.Constant) and re.search("[a-z]", re.sub(r"\{.*?\}", "", str(each.value))):
                    yield str(each.value)


def test_every_sentence_is_said_in_german() -> None:
    sentences = set(list_sentences())
    assert len(sentences) > 50
    assert sentences - GERMAN_MESSAGES.keys() == set()


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
        ("Samstag nachts um 1 Uhr", "Das ist am Sonntag, in der Nacht."),
        ("nächsten Freitag um 9 Uhr Zahnarzt", "einmal, am 18. Juni 2027 um 09:00, Europe/Berlin"),
        ("nächsten Freitag um 9 Uhr Zahnarzt", "Freitag, 18.06.2027"),
        ("jeden Tag um 25 Uhr joggen", "diese Uhrzeit gibt es nicht"),
        ("monatlich um 9 Uhr", "Es läuft am 10. des Monats."),
        (
            "tous les lundis à 9h",
            "nach Französisch aus; schreib auf Englisch, Deutsch oder Niederländisch",
        ),
        ("every Monday at nine", "nach Englisch aus"),
    ],
)
def test_german_phrases_are_answered_in_german(phrase: str, said: str) -> None:
    reading = read(phrase, now=NOW, timezone="Europe/Berlin", locale="de")
    labels = [each.label for each in reading.readings]
    assert said in " ".join((str(reading), *reading.assumptions, *labels)), reading
