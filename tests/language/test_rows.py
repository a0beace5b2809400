"""Rows: a pattern takes all of a group or nothing, and no row names a class or a rule that does not exist."""

from __future__ import annotations

import re

import pytest

from cloudsched.language.grammar import Parser
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.lexicon import tokenise
from cloudsched.language.nodes import Months
from cloudsched.language.result import Refused
from cloudsched.language.rows import RULES, Rule

_MARKS = {"comma", "dash", "slash", "open", "close", "clock", "date", "pair", "quote", "path"}
_KNOWN = _MARKS | {kind for language in LANGUAGES.values() for kind in {**language.words, **language.requests}}


def test_every_class_and_rule_of_a_row_exists() -> None:
    for rule in list(RULES.values()):
        if isinstance(rule, Rule):
            assert rule.first  # which compiles its rows
            for pattern, _ in rule.patterns:
                names = re.sub(r"\w+=|@\w+|:-?\d+|[&!\[\]|]", " ", pattern).split()
                assert _KNOWN.issuperset(names), pattern


def _read(pattern: str, text: str) -> object:
    language = LANGUAGES["en"]
    cursor = Parser(tokenise(text, language), language).cursor
    try:
        return Rule("tried", (pattern, lambda **values: values))(cursor), cursor.at
    finally:
        del RULES["tried"]


@pytest.mark.parametrize(
    ("pattern", "text", "values", "at"),
    [
        ("first=weekday [to last=weekday]", "Monday to Friday", {"first": 0, "last": 4}, 3),
        ("first=weekday [to last=weekday]", "Monday to 5", {"first": 0, "last": None}, 1),
        ("[day=weekday !to] [on] first=weekday", "Monday to Friday", {"day": None, "first": 0}, 1),
        ("&number|tens count=@ordinal|@number", "0 Mondays", {"count": 0}, 1),
        ("ahead=next unit:5|unit:4", "next week", {"ahead": 1}, 2),
        ("ahead=next unit:5", "next week", None, 0),
        ("weekday &[to weekday]", "Monday to Friday", {}, 1),
        ("weekday ![to weekday]", "Monday to Friday", None, 0),
    ],
)
def test_a_pattern_takes_words_from_left_to_right(
    pattern: str, text: str, values: dict[str, int | None] | None, at: int
) -> None:
    assert _read(pattern, text) == (values, at)


def test_what_a_row_makes_gets_its_span() -> None:
    language = LANGUAGES["en"]
    cursor = Parser(tokenise("in May", language), language).cursor
    made = Rule("made", ("in month=month", lambda month: [Months((month,))]))
    refusing = Rule("refusing", ("in month", lambda: Refused("never")))
    try:
        assert made(cursor) == [Months((5,), span=(0, 6))]
        cursor.at = 0
        with pytest.raises(Refused) as refused:
            refusing(cursor)
        assert refused.value.span == (0, 6)
    finally:
        del RULES["made"], RULES["refusing"]
