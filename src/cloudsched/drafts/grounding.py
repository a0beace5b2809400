"""The grounding of a model's answer: the user's own words support it, without contradiction or omission.

Words are compared as facts: a number with its unit, an hour apart from a day of the month, exclusions, and
the end. The user's words must support each fact of the answer, and no time that they name may be missing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from cloudsched.drafts.said_numbers import LENGTHS, SIGN_WORDS, read_numbers
from cloudsched.language.english import ENGLISH
from cloudsched.language.languages import (
    EXCLUSIONS,
    LANGUAGES,
    TOMORROW,
    find_names,
)
from cloudsched.language.lexicon import (
    CLOCK,
    DATE,
    PAIR,
    PATH,
    Language,
    classify,
    tokenise,
)
from cloudsched.language.nodes import Unit

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    (
        r"twice|fortnight(?:ly)?|bi-?weekly|bi-?monthly|couple|zweimal|every other|every second",
        [("number", 2)],
    ),
    (r"an?|once|one|eine?[nmrs]?|einmal|every|each|jede[nmrs]?", [("number", 1)]),
    (r"weekends?|wochenenden?", [("weekday", 5), ("weekday", 6)]),
    (
        r"weekdays?|workdays?|working days?|business days?|werktags?|werktagen",
        [("weekday", day) for day in range(5)],
    ),
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


def find_ungrounded(
    canonical: str,
    said: str,
    assumptions: Iterable[str],
    timezone: str,
    referred: Iterable[str] = (),
    text: str | None = None,
) -> list[Fact]:
    """Return the facts of a schedule in canonical English that are not grounded, and those that it omits.

    `said` has all of the user's words, and `text` only the last ones, of which nothing may be missing.
    The model's assumptions add to the words, and replace none of them. The zone need not be said.
    """
    referred = tuple(referred)
    said = _space(said)
    last = _space(text) if text is not None else said

    known = _find_said_facts(canonical, said)
    known |= {fact for each in referred for fact in _find_facts(each, ENGLISH)}
    known.add(("zone", timezone.casefold()))
    numbers = {value for kind, value in known if kind == "number" and isinstance(value, int)}
    if ("half", "pm") in known:
        numbers |= {number + 12 for number in numbers if number < _NOON}
        known |= {("number", number) for number in numbers}
    if any(_NOON <= number <= 2 * _NOON for number in numbers):
        known.add(("half", "pm"))
    assumed = {fact for each in assumptions for fact in _find_facts_in_any_language(each)}
    known |= {fact for fact in assumed if not _is_date(fact)}

    ungrounded = _find_facts(canonical, ENGLISH, exact=True) - known
    if canonical.strip():
        ungrounded |= _find_misplaced(canonical, "\n".join((said, *referred)))
        ungrounded |= _find_omitted(canonical, last)
        ungrounded |= _find_turned(canonical, said, last)
    return sorted(ungrounded, key=str)


def _find_facts_in_any_language(text: str) -> set[Fact]:
    return {fact for language in LANGUAGES.values() for fact in _find_facts(text, language)}


def _find_said_facts(canonical: str, said: str) -> set[Fact]:
    """Return the facts of the user's words, also as the answer puts them: weekdays of a range, other units."""
    facts = _find_facts_in_any_language(said) | _find_converted(canonical, said)
    facts |= {(kind, value) for kind in ("month", "number") for value in find_names(kind, said)}
    facts |= {("weekday", day) for day in _find_ranges(said)}
    days = find_names("weekday", said)
    if TOMORROW in days:
        facts.add(("day", "tomorrow"))
    return facts | {("weekday", day) for day in days - {TOMORROW}}


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
            if not exact:
                facts |= {("month", part) for part in token.value if 1 <= part <= 12}  # noqa: PLR2004
        elif token.kind == PATH:
            facts.add(("zone", token.text.casefold()))
        facts |= {(_COUNTED[kind], match.value) for kind, match in matches.items() if kind in _COUNTED}

    for pattern, found in _PATTERNS:
        if pattern.search(text) and (not exact or found[0][0] in {"day", "half", "zone"}):
            facts |= set(found)
    if exact:
        facts.discard(("number", 1))
    return facts


_DAY: Final = 86_400
_WITHIN_DAY: Final = frozenset({Unit.SECOND, Unit.MINUTE, Unit.HOUR})


def _find_misplaced(canonical: str, text: str) -> set[Fact]:
    """Return numbers and units that the user said as another kind: 3 days for 3 weeks, the 5th for 5 pm."""
    answer = read_numbers(canonical)
    said = read_numbers(text)
    found: set[Fact] = set()

    for name, amount in answer.amounts - said.amounts:
        numbers = {number for number in answer.counted if _may_be(number, name, amount)}
        if numbers & (said.counted | said.hours | said.days) and not numbers & said.open:
            found.add(("amount", f"{amount} {name}"))

    hours = {number % 12 for number in said.hours | said.open}
    others = {number % 12 for number in said.days | said.counted} - hours
    found |= {("hour", hour) for hour in answer.hours if hour % 12 in others}
    misplaced = answer.days & (said.hours | said.counted) - said.days - said.open
    found |= {("day", day) for day in misplaced}

    known = {unit for unit in said.units if unit >= Unit.DAY}
    if not known:
        return found
    if _find_weekdays(text):
        known.add(Unit.WEEK)
    if said.days or answer.days & said.open:
        known |= {Unit.MONTH, Unit.YEAR}
    return found | {("unit", unit.name) for unit in answer.units - known if unit >= Unit.DAY}


def _may_be(number: int, name: str, amount: int) -> bool:
    return any(unit == name and number * length == amount for unit, length in LENGTHS.values())


def _find_converted(canonical: str, said: str) -> set[Fact]:
    """Return the numbers of amounts that were said in another unit: 2 weeks for 14 days."""
    answer = read_numbers(canonical)
    same = answer.amounts & read_numbers(said).amounts
    return {
        ("number", number) for number in answer.counted if any(_may_be(number, name, amount) for name, amount in same)
    }


def _find_ranges(text: str) -> set[int]:
    """Return the weekdays between others: "maandag tot vrijdag"."""
    words = _list_words(text)
    found: set[int] = set()
    for first, middle, last in zip(words, words[1:], words[2:], strict=False):
        begin = _find_weekdays(first)
        end = _find_weekdays(last)
        if len(begin) == len(end) == 1 and middle in SIGN_WORDS["end"] | SIGN_WORDS["to"]:
            found |= {(min(begin) + step) % 7 for step in range((min(end) - min(begin)) % 7 + 1)}
    return found


def _find_omitted(canonical: str, text: str) -> set[Fact]:
    """Return the hours, amounts and weekdays of the user's words that the answer does not have."""
    text = _drop_replaced(text)
    wanted = read_numbers(text)
    given = read_numbers(canonical)
    hours = {hour % 12 for hour in given.hours | given.open}
    if re.search(r"\b(?:noon|midday|midnight)\b", canonical, re.IGNORECASE):
        hours.add(0)
    found: set[Fact] = {("hour", hour) for hour in wanted.hours if hour % 12 not in hours}

    # Less than a day is how long the work takes ("walk for 20 minutes"), unless it is done several times
    # a day.
    shortest = _DAY
    if says_repeated(canonical) and not _WITHIN_DAY.isdisjoint(given.units):
        shortest = 0
    found |= {
        ("amount", f"{amount} {name}")
        for name, amount in wanted.amounts - given.amounts - _ONE
        if name != "seconds" or amount >= shortest
    }

    days = _find_weekdays(canonical)
    omitted = _find_weekdays(text) - days
    excluded = _find_excluded(text)
    if not excluded & days:
        omitted -= excluded
    return found | {("weekday", day) for day in omitted}


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
        if days and pattern.search(text):
            found |= days
    return found


def _find_turned(canonical: str, said: str, text: str) -> set[Fact]:
    """Return an exclusion that is missing or was not said, and an end that is missing."""
    found: set[Fact] = set()
    days = _find_weekdays(canonical)
    excluded = _find_excluded(text)
    is_kept = bool(days and excluded) and not days & excluded  # "every weekday" is every day but at weekends
    if _leaves_out(text) and not _leaves_out(canonical) and not is_kept:
        found.add(("except", "not said"))
    if _leaves_out(canonical) and not _leaves_out(said, anything=True):
        found.add(("except", "said"))
    if _ends(text) and not _END.search(canonical):
        found.add(("end", "not said"))
    return found


_ONE: Final = {("seconds", 86_400), ("seconds", 604_800), ("months", 1), ("months", 12)}
"""One of a unit, which is a frequency rather than a length."""


def _drop_replaced(text: str) -> str:
    """Return a text without the words for a replaced value, and all words after them: "10 instead of 9"."""
    for language in LANGUAGES.values():
        tokens = tokenise(text, language)
        for token, matches in zip(tokens, classify(tokens, language), strict=True):
            if "instead-of" in matches and token.start and token.text not in SIGN_WORDS["except"]:
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
        if word in SIGN_WORDS["except"] or (word == "no" and (anything or words[at - 1] in SIGN_WORDS["but"]))
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
        word in SIGN_WORDS["end"]
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


_END: Final = re.compile(r"\b(?:until|till|to|through|for|before|ending|times?|-)\b", re.IGNORECASE)
_DATED: Final = frozenset({"month", "relday", "daysets", "feast", "holiday"})
