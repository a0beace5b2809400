"""Whether a schedule in canonical words says only what the user said.

A model may put what was said into other words; it may not add to it. Each number, weekday, month, half of the day,
relative day and time zone of its words has to stand in what the user said, or in an assumption that is shown. A date
with its year is never an assumption: the grammar computes dates, not the model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cloudsched.language.english import ENGLISH
from cloudsched.language.german import GERMAN
from cloudsched.language.lexicon import classify
from cloudsched.language.tokens import CLOCK, DATE, PAIR, PATH, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.language.lexicon import Language

Fact = tuple[str, str | int]

_COUNTED: Final = {"number": "number", "tens": "number", "ordinal": "number", "weekday": "weekday", "month": "month"}
_WORDS: Final = (
    (r"noon|midday|mittags?", [("number", 12)]),
    (r"midnight|mitternachts?", [("number", 0), ("number", 24)]),
    (r"half|halb\w*", [("number", 30)]),
    (r"quarter|viertel", [("number", 15), ("number", 45)]),
    (r"quarterly|quarters?|vierteljährlich", [("number", 3)]),
    (r"twice|fortnight(?:ly)?|bi-?weekly|bi-?monthly|couple|zweimal|every other|every second", [("number", 2)]),
    (r"an?|once|one|eine?[nmrs]?|einmal|every|each|jede[nmrs]?", [("number", 1)]),
    (r"weekends?|wochenenden?", [("weekday", 5), ("weekday", 6)]),
    (r"weekdays?|workdays?|working days?|business days?|werktags?|werktagen", [("weekday", day) for day in range(5)]),
    (r"today|tonight|this (?:morning|afternoon|evening)|heute", [("day", "today")]),
    (r"tomorrow|morgen", [("day", "tomorrow")]),
    (r"tonight|evening|afternoon|night|abends?|nachmittags?", [("half", "pm")]),
    (r"morning|morgens|vormittags?|früh", [("half", "am")]),
    (r"p\.?\s?m\b\.?", [("half", "pm")]),
    (r"a\.?\s?m\b\.?", [("half", "am")]),
    (r"utc|gmt", [("zone", "utc")]),
)
_PATTERNS: Final = tuple(
    (re.compile(rf"(?<![^\W\d])(?:{words})(?![^\W_])", re.IGNORECASE), facts) for words, facts in _WORDS
)
_FIRST_YEAR: Final = 1900


def find_unfounded(canonical: str, said: str, assumptions: Iterable[str], timezone: str) -> list[Fact]:
    """Return what a schedule in canonical English says without a ground.

    Args:
        canonical: The model's words for the grammar.
        said: All that the user said themselves.
        assumptions: What the model declares as assumed.
        timezone: The request's zone, which need not be said.
    """
    grounds = _find_facts(said, ENGLISH) | _find_facts(said, GERMAN)
    grounds |= {("zone", timezone.casefold())}
    hours = [value for kind, value in grounds if kind == "number" and isinstance(value, int) and value < 12]  # noqa: PLR2004
    if ("half", "pm") in grounds:
        grounds |= {("number", hour + 12) for hour in hours}
    evening = {("half", "pm")} if any(kind == "number" and _is_evening(value) for kind, value in grounds) else set()
    declared = {
        fact
        for text in assumptions
        for fact in _find_facts(text, ENGLISH) | _find_facts(text, GERMAN)
        if not _is_date(fact)
    }
    return sorted(_find_facts(canonical, ENGLISH, exact=True) - grounds - evening - declared, key=str)


def _is_evening(value: str | int) -> bool:
    return isinstance(value, int) and 12 <= value <= 24  # noqa: PLR2004 - hours of the 24-hour clock


def _is_date(fact: Fact) -> bool:
    kind, value = fact
    return kind == "date" or (kind == "number" and isinstance(value, int) and value >= _FIRST_YEAR)


def _find_facts(text: str, language: Language, *, exact: bool = False) -> set[Fact]:
    """Return what a text says; with `exact` only what it says itself, and not what its words may stand for."""
    tokens = tokenise(text, ordinal_dot=language.ordinal_dot, splits=language.splits)
    facts: set[Fact] = set()
    for token, matches in zip(tokens, classify(tokens, language), strict=True):
        if token.kind == CLOCK:
            hour, *rest = token.value
            facts |= {("number", hour), *(("number", part) for part in rest if part)}
        elif token.kind == DATE:
            year, month, day = token.value
            facts |= {("number", year), ("month", month), ("number", day), ("date", token.text)}
        elif token.kind == PAIR:
            facts |= {("number", part) for part in token.value} | {("date", token.text)}
            facts |= set() if exact else {("month", part) for part in token.value if 1 <= part <= 12}  # noqa: PLR2004
        elif token.kind == PATH:
            facts.add(("zone", token.text.casefold()))
        facts |= {(_COUNTED[kind], match.value) for kind, match in matches.items() if kind in _COUNTED}
    for pattern, found in _PATTERNS:
        if pattern.search(text) and (not exact or found[0][0] in {"day", "half", "zone"}):
            facts |= set(found)
    return facts - {("number", 1)} if exact else facts
