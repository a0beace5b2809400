"""The numbers of a text, each as what its neighbours make of it: an hour, a day of the month, an amount of a unit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cloudsched.language.english import ENGLISH
from cloudsched.language.grammar_numbers import parse_number
from cloudsched.language.languages import (
    LANGUAGES,
    SIGNS,
    UNITS,
    guess_language,
)
from cloudsched.language.lexicon import (
    CLOCK,
    DATE,
    ORDINAL,
    PAIR,
    WORD,
    Cursor,
    Language,
    Token,
    classify,
    tokenise,
)
from cloudsched.language.nodes import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class SaidNumbers:
    """The numbers of a text by their kinds.

    Attributes:
        hours: Hours, as they are said: 5 for "5 pm".
        days: Days of the month, and other ordinals.
        amounts: Amounts, each in the smallest unit that can express all of them: "2 weeks" is 14 days.
        counted: The numbers of the amounts, as they are said.
        open: Numbers of an unknown kind.
    """

    hours: set[int] = field(default_factory=set)
    days: set[int] = field(default_factory=set)
    amounts: set[tuple[str, int]] = field(default_factory=set)
    counted: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    units: set[Unit] = field(default_factory=set)

    def add_amount(self, number: int, unit: int) -> None:
        """Add an amount of a unit."""
        name, length = LENGTHS[Unit(unit)]
        self.amounts.add((name, number * length))
        self.counted.add(number)
        self.add_unit(unit)

    def add_unit(self, unit: int) -> None:
        """Add a unit, of which there may be any number."""
        self.units.add(_FAMILIES.get(Unit(unit), Unit(unit)))


SIGN_WORDS: Final = {kind: frozenset(words.split()) for kind, words in SIGNS.items()}
LENGTHS: Final = {
    Unit.SECOND: ("seconds", 1),
    Unit.MINUTE: ("seconds", 60),
    Unit.HOUR: ("seconds", 3_600),
    Unit.DAY: ("seconds", 86_400),
    Unit.WEEK: ("seconds", 604_800),
    Unit.FORTNIGHT: ("seconds", 1_209_600),
    Unit.MONTH: ("months", 1),
    Unit.QUARTER: ("months", 3),
    Unit.HALF_YEAR: ("months", 6),
    Unit.YEAR: ("months", 12),
}
_FAMILIES: Final = {Unit.FORTNIGHT: Unit.WEEK, Unit.QUARTER: Unit.MONTH, Unit.HALF_YEAR: Unit.MONTH}
_BY_WORD: Final = {word: unit for unit, words in UNITS.items() for word in words.split()}
_UNSPACED: Final = sorted((word for word in _BY_WORD if ord(word[0]) > 0x3000), key=len, reverse=True)  # noqa: PLR2004


def _find_unit(word: str) -> int | None:
    """Return the unit of a word, or of its beginning without spaces, in a language without a lexicon."""
    unit = _BY_WORD.get(word)
    if unit is not None or word.isascii():
        return unit
    return next((_BY_WORD[each] for each in _UNSPACED if word.startswith(each)), None)


def read_numbers(text: str) -> SaidNumbers:
    """Return the numbers of a text. Each line may be in another language."""
    found = SaidNumbers()
    for line in text.splitlines():
        tokens = tokenise(line, ENGLISH)
        language = guess_language(tokens, LANGUAGES.values())
        if language is not ENGLISH:
            tokens = tokenise(line, language)
        _read_line(found, tokens, language)
    return found


def _read_line(found: SaidNumbers, tokens: Sequence[Token], language: Language) -> None:
    c = Cursor(tokens, classify(tokens, language), language)
    while (token := c.token) is not None:
        start = c.at
        here = c.matches[start]
        if token.kind == CLOCK:
            found.hours.add(token.value[0])
        elif token.kind == DATE:
            found.days.add(token.value[2])
        elif token.kind == PAIR:
            found.open |= set(token.value)
        elif token.kind == ORDINAL:
            found.days.add(token.value[0])
            if c.sees("weekday", "weekdays", "unit", ahead=1):
                found.open.add(token.value[0])
        elif "ordinal" in here and "unit" not in here:
            found.days.add(here["ordinal"].value)
            found.open.add(here["ordinal"].value)  # "every second Tuesday" is every 2 weeks as well
        elif (counted := parse_number(c)) is not None:
            _place_number(found, counted, c, start)
            continue
        elif token.kind == WORD:
            _read_unit(found, c)
        c.at = max(start + 1, c.at)


def _read_unit(found: SaidNumbers, c: Cursor) -> None:
    """Read a word that names a unit without a number: "daily", "every week", "biweekly", "every other day"."""
    start = c.at
    token = c.tokens[start]
    if (other := c.take("other")) is not None and (unit := c.take("unit")) is not None:
        found.add_amount(other.value, unit.value)
        return
    c.at = start

    here = c.matches[start]
    for kind, count in (("adverb", 1), ("bi", 2), ("unit", 1)):
        if kind in here:
            if count > 1:
                found.add_amount(count, here[kind].value)
            found.add_unit(here[kind].value)
    foreign = _find_unit(token.text)
    if foreign is not None and not here:
        found.add_unit(foreign)


def _place_number(found: SaidNumbers, number: int, c: Cursor, start: int) -> None:
    """Add a number that ends at the cursor as the kind that its neighbours determine."""
    before = ""
    meanings = {}
    if start:
        before = c.tokens[start - 1].text
        meanings = c.matches[start - 1]
    behind = ""
    is_glued = False
    if c.token is not None:
        behind = c.token.text
        is_glued = c.token.glued
    is_hour = c.sees("halfday", "oclock", "hours-said") or (is_glued and c.sees("hour-mark", "halfday-short"))
    is_at = before in SIGN_WORDS["at"] or "at" in meanings
    is_of_month = c.sees("month") or "month" in meanings

    taken = c.take("unit")
    if not taken and is_glued and not is_hour:
        taken = c.take("unit-short")
    unit = taken.value if taken is not None else _find_unit(behind)
    says_hour = not SIGN_WORDS["oclock"].isdisjoint({behind, behind[:1]})
    if c.sees("times") or not SIGN_WORDS["times"].isdisjoint({behind, behind[:1]}):
        found.amounts.add(("times", number))
        found.counted.add(number)
    elif taken is None and (is_hour or (says_hour and (unit is None or is_at))):
        found.hours.add(number)
    elif unit is not None and not (behind[:1] in _DATE_MARKS and behind[1:2] not in _LENGTH_MARKS):
        found.add_amount(number, unit)
        if says_hour:
            found.open.add(number)  # "9 uur" is an hour, too
    elif is_of_month:
        found.days.add(number)
    elif is_at:
        found.hours.add(number)
    else:
        found.open.add(number)


_DATE_MARKS: Final = frozenset("日일")
_LENGTH_MARKS: Final = frozenset("間ご後お毎마간후뒤")
"""After the sign for a day, these make a number of it a length: the 3rd is "3日", three days are "3日間"."""
