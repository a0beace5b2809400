"""The check that a model's answer has a ground: the user's own words, without contradiction or omission.

Words are compared as facts: a number with its unit, an hour apart from a day of the month, exclusions, and the end. A
fact of the answer needs a ground, and no time that the user named may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cloudsched.language.english import ENGLISH
from cloudsched.language.grammar_numbers import parse_number
from cloudsched.language.languages import EXCLUSIONS, LANGUAGES, SIGNS, TOMORROW, UNITS, find_names, guess_language
from cloudsched.language.lexicon import (
    CLOCK,
    DATE,
    ORDINAL,
    PAIR,
    PATH,
    WORD,
    Cursor,
    Language,
    Token,
    classify,
    tokenise,
)
from cloudsched.language.nodes import Unit

Fact = tuple[str, str | int]

_COUNTED: Final = {
    **dict.fromkeys(("number", "tens", "ordinal"), "number"),
    **dict.fromkeys(("weekday", "weekdays"), "weekday"),
    "month": "month",
}
_REPEATED: Final = frozenset(
    {"each", "adverb", "bi", "weekdays", "daysets", "parts", "part-adverb", "always", "recurring"}
)
"""The kinds of words that express repetition."""
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
_NOON: Final = 12


def find_unfounded(
    canonical: str,
    said: str,
    assumptions: Iterable[str],
    timezone: str,
    referred: Iterable[str] = (),
    text: str | None = None,
) -> list[Fact]:
    """Return the facts of a schedule in canonical English that have no ground, and those of the user's that it omits.

    `said` has all of the user's words, and `text` only the last ones, of which nothing may be missing. The model's
    assumptions add to the words, and replace none of them. The zone need not be said.
    """
    referred, said = tuple(referred), _space(said)
    text = said if text is None else _space(text)
    grounds = {fact for language in LANGUAGES.values() for fact in _find_facts(said, language)}
    grounds |= {fact for text in referred for fact in _find_facts(text, ENGLISH)}
    grounds |= {("day", "tomorrow") if day == TOMORROW else ("weekday", day) for day in find_names("weekday", said)}
    grounds |= {(kind, value) for kind in ("month", "number") for value in find_names(kind, said)}
    grounds |= {("weekday", day) for day in _find_ranges(said)} | _find_converted(canonical, said)
    grounds |= {("zone", timezone.casefold())}
    numbers = {value for kind, value in grounds if kind == "number" and isinstance(value, int)}
    if ("half", "pm") in grounds:
        numbers |= {number + 12 for number in numbers if number < _NOON}
        grounds |= {("number", number) for number in numbers}
    evening = {("half", "pm")} if any(_NOON <= number <= 2 * _NOON for number in numbers) else set()
    declared = {
        fact
        for text in assumptions
        for language in LANGUAGES.values()
        for fact in _find_facts(text, language)
        if not _is_date(fact)
    }
    unfounded = _find_facts(canonical, ENGLISH, exact=True) - grounds - evening - declared
    if canonical.strip():
        unfounded |= _find_misplaced(canonical, "\n".join((said, *referred)))
        unfounded |= _find_omitted(canonical, text)
        unfounded |= _find_turned(canonical, said, text)
    return sorted(unfounded, key=str)


def _space(text: str) -> str:
    """Return a text with spaces before numbers in scripts that have none: "午前9時"."""
    return re.sub(r"(?<=[\u3040-\u9fff\uac00-\ud7af])(?=\d)", " ", text)


def says_repeated(text: str) -> bool:
    """Return whether words of a text express repetition, in any of the languages."""
    return any(
        not _REPEATED.isdisjoint(matches)
        for language in LANGUAGES.values()
        for matches in classify(tokenise(text, language), language)
    )


def _is_date(fact: Fact) -> bool:
    kind, value = fact
    return kind == "date" or (kind == "number" and isinstance(value, int) and value >= _FIRST_YEAR)


def _find_facts(text: str, language: Language, *, exact: bool = False) -> set[Fact]:
    """Return the facts of a text. With `exact`, only literal ones, and not those that its words may stand for."""
    tokens = tokenise(text, language)
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


@dataclass
class _Numbers:
    """The numbers of a text by their kinds: hours, days of the month, amounts of a unit, or anything.

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
        name, length = _LENGTHS[Unit(unit)]
        self.amounts.add((name, number * length))
        self.counted.add(number)
        self.add_unit(unit)

    def add_unit(self, unit: int) -> None:
        """Add a unit, of which there may be any number."""
        self.units.add(_FAMILIES.get(Unit(unit), Unit(unit)))


_SIGNS: Final = {kind: frozenset(words.split()) for kind, words in SIGNS.items()}
_LENGTHS: Final = {
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
_DAY: Final = 86_400
_WITHIN_DAY: Final = frozenset({Unit.SECOND, Unit.MINUTE, Unit.HOUR})
_FAMILIES: Final = {Unit.FORTNIGHT: Unit.WEEK, Unit.QUARTER: Unit.MONTH, Unit.HALF_YEAR: Unit.MONTH}
_BY_WORD: Final = {word: unit for unit, words in UNITS.items() for word in words.split()}
_UNSPACED: Final = sorted((word for word in _BY_WORD if ord(word[0]) > 0x3000), key=len, reverse=True)  # noqa: PLR2004


def _find_unit(word: str) -> int | None:
    """Return the unit of a word, or of its beginning without spaces, in a language without a lexicon."""
    unit = _BY_WORD.get(word)
    if unit is not None or word.isascii():
        return unit
    return next((_BY_WORD[each] for each in _UNSPACED if word.startswith(each)), None)


def _read_numbers(text: str) -> _Numbers:
    found = _Numbers()
    for line in text.splitlines():
        first = tokenise(line, ENGLISH)
        language = guess_language(first, LANGUAGES.values())
        _read_line(found, first if language is ENGLISH else tokenise(line, language), language)
    return found


def _read_line(found: _Numbers, tokens: Sequence[Token], language: Language) -> None:
    c = Cursor(tokens, classify(tokens, language), language)
    while (token := c.token) is not None:
        start, here = c.at, c.matches[c.at]
        if token.kind in {CLOCK, DATE}:
            (found.hours if token.kind == CLOCK else found.days).add(token.value[0 if token.kind == CLOCK else 2])
        elif token.kind == PAIR:
            found.open |= set(token.value)
        elif token.kind == ORDINAL or ("ordinal" in here and "unit" not in here):
            number = token.value[0] if token.kind == ORDINAL else here["ordinal"].value
            found.days.add(number)
            if token.kind != ORDINAL or c.sees("weekday", "weekdays", "unit", ahead=1):
                found.open.add(number)  # "every second Tuesday" is every 2 weeks as well
        elif (counted := parse_number(c)) is not None:
            _place_number(found, counted, c, start)
            continue
        elif token.kind == WORD:
            _read_unit(found, c)
        c.at = max(start + 1, c.at)


def _read_unit(found: _Numbers, c: Cursor) -> None:
    """Read a word that names a unit without a number: "daily", "every week", "biweekly", "every other day"."""
    start, token = c.at, c.tokens[c.at]
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


def _place_number(found: _Numbers, number: int, c: Cursor, start: int) -> None:
    """Add a number that ends at the cursor as the kind that its neighbours determine."""
    before = c.tokens[start - 1].text if start else ""
    behind = c.token.text if c.token is not None else ""
    is_glued = c.token is not None and c.token.glued
    is_hour = c.sees("halfday", "oclock", "hours-said") or (is_glued and c.sees("hour-mark", "halfday-short"))
    is_at = before in _SIGNS["at"] or (start > 0 and "at" in c.matches[start - 1])
    is_of_month = c.sees("month") or (start > 0 and "month" in c.matches[start - 1])
    taken = c.take("unit") or (c.take("unit-short") if is_glued and not is_hour else None)
    unit = _find_unit(behind) if taken is None else taken.value
    says_hour = behind in _SIGNS["oclock"] or behind[:1] in _SIGNS["oclock"]
    if c.sees("times") or behind in _SIGNS["times"] or behind[:1] in _SIGNS["times"]:
        found.amounts.add(("times", number))
        found.counted.add(number)
    elif taken is None and (is_hour or (says_hour and (unit is None or is_at))):
        found.hours.add(number)
    elif unit is not None and not (behind[:1] in _DATE_MARKS and behind[1:2] not in _LENGTH_MARKS):
        found.add_amount(number, unit)
        found.open |= {number} if says_hour else set()  # "9 uur" is an hour, too
    elif is_of_month:
        found.days.add(number)
    elif is_at:
        found.hours.add(number)
    else:
        found.open.add(number)


_DATE_MARKS: Final = frozenset("日일")
_LENGTH_MARKS: Final = frozenset("間ご後お毎마간후뒤")
"""After the sign for a day, these make a number of it a length: the 3rd is "3日", three days are "3日間"."""


def _find_misplaced(canonical: str, text: str) -> set[Fact]:
    """Return numbers and units that the user said as another kind: 3 days for 3 weeks, the 5th for 5 pm."""
    answer, said = _read_numbers(canonical), _read_numbers(text)
    found: set[Fact] = set()
    for name, amount in answer.amounts - said.amounts:
        numbers = {number for number in answer.counted if _may_be(number, name, amount)}
        if numbers & (said.counted | said.hours | said.days) and not numbers & said.open:
            found.add(("amount", f"{amount} {name}"))
    for hour in answer.hours:
        others = {number % 12 for number in said.days | said.counted}
        if hour % 12 in others and hour % 12 not in {number % 12 for number in said.hours | said.open}:
            found.add(("hour", hour))
    found |= {
        ("day", day) for day in answer.days if day in said.hours | said.counted and day not in said.days | said.open
    }
    implied = {Unit.WEEK} if _find_weekdays(text) else set()
    implied |= {Unit.MONTH, Unit.YEAR} if said.days or answer.days & said.open else set()
    known = {unit for unit in said.units if unit >= Unit.DAY}
    if known:
        found |= {("unit", unit.name) for unit in answer.units - known - implied if unit >= Unit.DAY}
    return found


def _may_be(number: int, name: str, amount: int) -> bool:
    return any(unit == name and number * length == amount for unit, length in _LENGTHS.values())


def _find_converted(canonical: str, said: str) -> set[Fact]:
    """Return the numbers of amounts that were said in another unit: 2 weeks for 14 days."""
    answer, own = _read_numbers(canonical), _read_numbers(said)
    same = answer.amounts & own.amounts
    return {("number", number) for number in answer.counted for name, amount in same if _may_be(number, name, amount)}


def _find_ranges(text: str) -> set[int]:
    """Return the weekdays between others: "maandag tot vrijdag"."""
    words, found = _list_words(text), set[int]()
    for first, middle, last in zip(words, words[1:], words[2:], strict=False):
        begin, end = _find_weekdays(first), _find_weekdays(last)
        if len(begin) == len(end) == 1 and middle in _SIGNS["end"] | _SIGNS["to"]:
            found |= {(min(begin) + step) % 7 for step in range((min(end) - min(begin)) % 7 + 1)}
    return found


def _find_omitted(canonical: str, text: str) -> set[Fact]:
    text = _drop_replaced(text)
    wanted, given = _read_numbers(text), _read_numbers(canonical)
    hours = {hour % 12 for hour in given.hours | given.open}
    hours |= {0} if re.search(r"\b(?:noon|midday|midnight)\b", canonical, re.IGNORECASE) else set()
    found: set[Fact] = {("hour", hour) for hour in wanted.hours if hour % 12 not in hours}
    # Less than a day is how long the work takes ("walk for 20 minutes"), unless it is done several times a day.
    shortest = 0 if says_repeated(canonical) and not _WITHIN_DAY.isdisjoint(given.units) else _DAY
    found |= {
        ("amount", f"{amount} {name}")
        for name, amount in wanted.amounts - given.amounts - _ONE
        if name != "seconds" or amount >= shortest
    }
    days = _find_weekdays(canonical)
    excluded = _find_excluded(text)
    kept = set() if excluded & days else excluded
    return found | {("weekday", day) for day in _find_weekdays(text) - days - kept}


def _find_weekdays(text: str) -> set[int]:
    """Return the weekdays of a text in any language. Words of three letters are words of too many languages."""
    found = find_names("weekday", text) - {TOMORROW}
    for word in set(re.findall(r"[^\W\d_]{4,}", text.casefold())):
        found |= {
            value
            for language in LANGUAGES.values()
            for words, kind, value in language.entries.get(word, ())
            if kind in {"weekday", "weekdays"} and len(words) == 1
        }
    for pattern, facts in _PATTERNS:
        days = {int(value) for kind, value in facts if kind == "weekday"}
        found |= days if days and pattern.search(text) else set()
    return found


def _find_turned(canonical: str, said: str, text: str) -> set[Fact]:
    """Return the contradictions of exclusions: missing ones, or unfounded ones. Likewise a missing end."""
    found: set[Fact] = set()
    days, excluded = _find_weekdays(canonical), _find_excluded(text)
    is_kept = bool(days and excluded) and not days & excluded  # "every weekday" is every day but at weekends
    if _leaves_out(text) and not _leaves_out(canonical) and not is_kept:
        found.add(("except", "not said"))
    if _leaves_out(canonical) and not _leaves_out(said, anything=True):
        found.add(("except", "said"))
    is_open = re.search(r"\b(?:until|till|to|through|for|before|ending|times?|-)\b", canonical, re.IGNORECASE) is None
    if _ends(text) and is_open:
        found.add(("end", "not said"))
    return found


_ONE: Final = {("seconds", 86_400), ("seconds", 604_800), ("months", 1), ("months", 12)}
"""One of a unit, which is a frequency rather than a length."""


def _drop_replaced(text: str) -> str:
    """Return a text without the words for a replaced value, and all words after them: "10 instead of 9"."""
    for language in LANGUAGES.values():
        tokens = tokenise(text, language)
        for token, matches in zip(tokens, classify(tokens, language), strict=True):
            if "instead-of" in matches and token.start and token.text not in _SIGNS["except"]:
                return text[: token.start]
    return text


def _list_words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['\u2019](?:[^\W_]+)?)*", text.casefold())


def _list_exclusions(text: str, *, anything: bool = False) -> list[tuple[str, str, str]]:
    """Return the words around each word of exclusion: the one before, and two after."""
    words = ["", *_list_words(text), "", ""]
    return [
        (words[at - 1], words[at + 1], words[at + 2])
        for at, word in enumerate(words[:-2])
        if word in _SIGNS["except"] or (word == "no" and (anything or words[at - 1] in _SIGNS["but"]))
    ]


def _leaves_out(text: str, *, anything: bool = False) -> bool:
    """Return whether a text excludes a day or a date, or `anything`: "never on Mondays", "月曜以外"."""
    return any(part in text for part in EXCLUSIONS) or any(
        anything or _is_day(first) or _is_day(second) or bool(_find_weekdays(before))
        for before, first, second in _list_exclusions(text, anything=anything)
    )


def _find_excluded(text: str) -> set[int]:
    return {day for around in _list_exclusions(text) for word in around for day in _find_weekdays(word)}


def _ends(text: str) -> bool:
    words = _list_words(text)
    is_until = any(
        word in _SIGNS["end"]
        and any(each.isdigit() or _is_day(each) for each in words[at + 1 : at + 3])
        and not (at and _find_weekdays(words[at - 1]))  # "maandag tot vrijdag" are days
        for at, word in enumerate(words)
    )
    return is_until or "まで" in text or "까지" in text


def _is_day(word: str) -> bool:
    return bool(_find_weekdays(word)) or any(
        kind in _DATED and len(words) == 1
        for language in LANGUAGES.values()
        for words, kind, _ in language.entries.get(word, ())
    )


_DATED: Final = frozenset({"month", "relday", "daysets", "feast", "holiday"})
