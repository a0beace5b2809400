"""The user's words about time, word by word: what each means by the glossary, and the English that they amount to."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import available_timezones

from cloudsched.domain.schedules.words import English
from cloudsched.language.glossary import GLOSSARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

FACETS: Final = ("days", "time", "interval", "start", "end", "count", "exceptions", "zone", "replaced")
"""The facets for which a model quotes the user's words. ``replaced`` is what shall not count: "instead of 10"."""


class Mark(NamedTuple):
    """A word or number of a text: where it stands, and its meanings in the glossary. Plain words have none."""

    start: int
    end: int
    meanings: tuple[str, ...]
    is_digit: bool = False


_DATE: Final = r"\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|\d{1,2}/\d{1,2}"
_CLOCK: Final = r"\d{1,2}\s?[:hHu.]\s?\d{2}(?!\d)"
_ORDINAL: Final = r"\d{1,2}(?:st|nd|rd|th|ste|de|e|er|re|ème|:e|:a|º|ª|°)(?![^\W_])"
_UNSPACED: Final = frozenset({"ja", "zh", "ko"})
_TELLING: Final = 5
"""The least length of a word that means the same in a text of another language: "lunes" in a Dutch one."""
STRONG: Final = re.compile(
    r"[wWmunocd]-?\d.*|date|every|open|except|noon|midnight|today|tomorrow|overmorrow|work.*|weekend"
)
"""The meanings that are about time wherever they stand. Others, such as "in" and "to", are so beside these alone."""


def normalise(text: str) -> str:
    """Return a text with composed letters and plain apostrophes, so that equal words are equal."""
    return unicodedata.normalize("NFC", text).replace("\u2019", "'")


@lru_cache(maxsize=len(GLOSSARY))
def _open_glossary(language: str) -> tuple[re.Pattern[str], dict[str, tuple[str, ...]]]:
    """Return a language's pattern for one word or number, and the meanings of its words."""
    known = {
        word.replace("_", " ").casefold(): tuple(meaning.split())
        for meaning, words in GLOSSARY[language].items()
        for word in words.split()
    }
    plain = r"[^\W\d_]" if language in _UNSPACED else r"[^\W\d_]+"

    words = []
    written = {word.replace("_", " ") for row in GLOSSARY[language].values() for word in row.split()}
    for word in sorted(written, key=len, reverse=True):
        before = r"(?<!\d)" if word[0].isdigit() else ""
        after = ""
        if language not in _UNSPACED and word[0].isalpha():
            before = r"(?<![^\W\d_])"
        if language not in _UNSPACED and word[-1].isalnum():
            after = r"(?![^\W_])"
        escaped = re.escape(word).replace(r"\ ", r"\s+")
        words.append(f"{before}(?-i:{escaped}){after}" if word != word.lower() else before + escaped + after)
    cities = "|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in _list_cities() if " " in each)
    zones = rf"(?P<city>{cities})|(?P<zone>[A-Z][a-z]+/[A-Z]\w+|UTC|GMT)"
    numbers = rf"{zones}|(?P<date>{_DATE})|(?P<clock>{_CLOCK})|(?P<ordinal>{_ORDINAL})"
    pattern = rf"{numbers}|(?P<word>{'|'.join(words)})|(?P<number>\d+)|(?P<plain>{plain})"
    return re.compile(pattern, re.IGNORECASE), known


@lru_cache(maxsize=1)
def _list_foreign() -> frozenset[str]:
    """Return words that are about time in any language."""
    return frozenset(
        word
        for rows in GLOSSARY.values()
        for meaning, words in rows.items()
        for word in words.split()
        if len(word) >= _TELLING and "_" not in word and (STRONG.fullmatch(meaning) or meaning == "until")
    )


@lru_cache(maxsize=1)
def _list_cities() -> frozenset[str]:
    return frozenset(name.rpartition("/")[2].replace("_", " ").casefold() for name in available_timezones())


def read_marks(text: str, language: str) -> list[Mark]:
    """Return the words and numbers of a text in order."""
    pattern, known = _open_glossary(language)
    cities = _list_cities()
    foreign = _list_foreign()
    found: list[Mark] = []
    for each in pattern.finditer(text):
        word = " ".join(each[0].casefold().split())
        if each.lastgroup == "word":
            meanings = known[word]
        elif each.lastgroup == "clock":
            hour, minute = re.findall(r"\d+", word)
            meanings = (f"c{int(hour)}:{minute}",)
        elif each.lastgroup in {"number", "ordinal"}:
            digits = re.findall(r"\d+", word)[0]
            meanings = (f"{each.lastgroup[0]}{int(digits)}",)
        elif each.lastgroup in {"zone", "date"}:
            meanings = (each.lastgroup,)
        elif each.lastgroup == "city" or word in cities:
            meanings = ("zone",)
        else:
            meanings = ("every",) if word in foreign else ()
        found.append(Mark(*each.span(), meanings, word[0].isdigit()))
    if language in _UNSPACED:
        return [_require_company(found, at) for at in range(len(found))]
    return found


def _require_company(marks: Sequence[Mark], at: int) -> Mark:
    """Return a mark, which is plain if it is a sign without the one that it needs: "회" in "회의" counts nothing."""
    mark = marks[at]
    if mark.end - mark.start > 1 or not mark.meanings:
        return mark
    kind = mark.meanings[0]
    before = marks[at - 1].meanings if at and marks[at - 1].end == mark.start else ()
    behind = marks[at + 1].meanings if at + 1 < len(marks) and marks[at + 1].start == mark.end else ()
    is_counter = bool(re.fullmatch(r"u\d|times|day|oclock", kind))
    is_number = bool(re.fullmatch(r"n\d+", kind)) and not mark.is_digit
    if (is_counter and not before) or (is_number and not behind):
        return Mark(mark.start, mark.end, ())
    return mark


def guess_glossary(text: str) -> str:
    """Return the language whose glossary knows the most of a text."""

    def count(language: str) -> float:
        marks = [mark for mark in read_marks(text, language) if mark.meanings and _list_known(text, mark, language)]
        return sum((mark.end - mark.start) * (0.5 if mark.meanings == ("glue",) else 1) for mark in marks)

    return max(GLOSSARY, key=count)


def _list_known(text: str, mark: Mark, language: str) -> bool:
    _, known = _open_glossary(language)
    return " ".join(text[mark.start : mark.end].casefold().split()) in known


_UNITS: Final = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
_WEEKDAYS: Final = English.weekdays
_MONTHS: Final = English.months
_PARTS: Final = frozenset({"morning", "afternoon", "evening", "night"})
_NOON: Final = 12
_NIGHT: Final = 6
_DAY: Final = 3
_WEEK: Final = 4
_MONTH: Final = 5
_YEAR: Final = 7
_DAY_WORDS: Final = {
    "overmorrow": "the day after tomorrow",
    "workdays": "every weekday",
    "weekend": "every Saturday and Sunday",
}


class NotKnown(Exception):
    """Quoted words that have no translation here."""


@dataclass
class _Days:
    """The days that some words name, as far as they are understood."""

    every: bool = False
    next: bool = False
    amount: tuple[int, int] | None = None
    units: set[int] = field(default_factory=set)
    weekdays: list[int] = field(default_factory=list)
    plurals: list[int] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    months: list[int] = field(default_factory=list)
    years: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    named: set[int] = field(default_factory=set)
    """The units that the words for the days include: a week those of weekdays."""


def _spread(found: re.Match[str]) -> str:
    """Return the weekdays of a range, one by one."""
    first = int(found[1])
    return "".join(f"w{(first + step) % 7} " for step in range((int(found[2]) - first) % 7 + 1))


def _add_amount(days: _Days, found: re.Match[str]) -> None:
    if days.amount is not None:
        raise NotKnown
    is_other = found[1] is None
    unit = found[2] or found[3]
    days.amount = (int(found[1] or 2), int(unit) if unit else _WEEK)
    days.every |= is_other


_STEPS: Final[tuple[tuple[re.Pattern[str], Callable[[_Days, re.Match[str]], None]], ...]] = (
    (re.compile(r"[no](\d+) u(\d) |other u(\d) |other (?=[wW]\d)"), _add_amount),
    (re.compile(r"w(\d) "), lambda days, found: days.weekdays.append(int(found[1]))),
    (re.compile(r"W(\d) "), lambda days, found: days.plurals.append(int(found[1]))),
    (re.compile(r"n(\d{4}) "), lambda days, found: days.years.append(int(found[1]))),
    (re.compile(r"n(\d+) (?:day )?"), lambda days, found: days.numbers.append(int(found[1]))),
    (re.compile(r"o(-?\d+) "), lambda days, found: days.ordinals.append(int(found[1]))),
    (re.compile(r"m(\d+) "), lambda days, found: days.months.append(int(found[1]))),
    (re.compile(r"u(\d) "), lambda days, found: days.units.add(int(found[1]))),
    (re.compile(r"(every|next) "), lambda days, found: setattr(days, found[1], True)),
    (re.compile(r"(today|tomorrow|overmorrow|workdays|weekend) "), lambda days, found: days.words.append(found[1])),
)


def _read_days(codes: Sequence[str]) -> _Days:
    """Return the days of some meanings. Raises NotKnown for a meaning that says nothing of days."""
    text = "".join(f"{code} " for code in codes if code != "and")
    text = re.sub(r"(?:from )?[wW](\d) (?:to|until) [wW](\d) (?:until )?", _spread, text)
    text = re.sub(r"n(\d+) day every ", r"n\1 u3 every ", text)

    days = _Days()
    while text:
        add, found = next(((add, found) for step, add in _STEPS if (found := step.match(text))), (None, None))
        if add is None or found is None:
            raise NotKnown
        add(days, found)
        text = text[found.end() :]
    return days


def _join(names: Iterable[str]) -> str:
    return " and ".join(dict.fromkeys(names))


def _name_number(number: int) -> str:
    if number == -1:
        return "last"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number // 10 != 1 else 0, "th")
    return f"{number}{ending}"


def _write_days(codes: Sequence[str], *, is_bare: bool = False) -> str:
    """Return days in English, `is_bare` without words for how often. Raises NotKnown."""
    days = _read_days(codes)
    if len(days.years) > 1 or (days.numbers and (days.weekdays or days.plurals) and not days.months):
        raise NotKnown  # a number beside a weekday may be an hour
    if days.amount is not None and not days.every:
        raise NotKnown

    said = _write_words(days) if days.words else _write_dates(days) or _write_weekdays(days)
    if is_bare:
        said = re.sub(r"^(?:on|every) ", "", said)
    units = set() if said and days.units <= days.named else days.units - days.named
    if units and (len(units) > 1 or days.amount is not None or not days.every):
        raise NotKnown

    often = "".join(f"every {_UNITS[unit]} " for unit in units)
    if days.amount is not None:
        often = f"every {days.amount[0]} {_UNITS[days.amount[1]]}s "
        said = said.replace("every ", "on ", 1)
    if not (often or said):
        if not days.every:
            raise NotKnown
        said = "every day"
    return (often + said).strip()


def _write_words(days: _Days) -> str:
    """Return days that one word names."""
    if days.weekdays or days.plurals or days.numbers or days.ordinals or days.months or len(days.words) > 1:
        raise NotKnown
    days.named = {_DAY}
    return _DAY_WORDS.get(days.words[0], days.words[0])


def _write_dates(days: _Days) -> str:
    """Return dates, days of the month, and ordinals. Empty if there are none."""
    numbers = [*days.ordinals, *days.numbers]
    names = _join(_WEEKDAYS[day] for day in days.weekdays)
    if not numbers:
        return ""
    if days.months:
        days.named = {_DAY}
        date = f"{_join(_MONTHS[each - 1] for each in days.months)} {_join(_name_number(each) for each in numbers)}"
        year = "".join(f" {each}" for each in days.years)
        return f"on {names} {date}{year}".replace("  ", " ") + (" every year" if days.every else "")

    days.named = {_DAY, _MONTH, _YEAR}
    places = f"on {_join(f'the {_name_number(each)}' for each in numbers)} {names}".rstrip()
    if not days.every:
        return places
    return f"{places} of every {'year' if _YEAR in days.units else 'month'}"


def _write_weekdays(days: _Days) -> str:
    """Return weekdays and months without a number. Empty if there are none."""
    names = _join(_WEEKDAYS[day] for day in (*days.weekdays, *days.plurals))
    months = _join(_MONTHS[month - 1] for month in days.months)
    months = f"in {months}" + "".join(f" {each}" for each in days.years) if months else ""
    if not names:
        return months
    days.named = {_WEEK}
    is_each = days.every or bool(days.plurals)
    start = "next" if days.next else "every" if is_each else "on"
    return f"{start} {names} {months}".rstrip()


_HOUR: Final = re.compile(
    r"(?:(?P<before>morning|afternoon|evening|night) )?(?:(?P<shift>half-to|quarter-past|quarter-to|half) )?"
    r"(?:n(?P<hour>\d+)|c(?P<clock>\d+:\d+)|(?P<noon>noon)|(?P<midnight>midnight)) "
    r"(?:(?:oclock|u2) )?(?:(?P<more>half|quarter|minus-quarter) |n(?P<minutes>\d+) (?:u1 )?)?"
    r"(?:(?P<after>morning|afternoon|evening|night) )?(?:and )?"
)
_SHIFTS: Final = {"half-to": -30, "quarter-past": 15, "quarter-to": -15, "half": 30, "quarter": 15}
_MOST_MINUTES: Final = 60


def _write_time(codes: Sequence[str]) -> str:
    """Return times of day in English. Raises NotKnown."""
    text = "".join(f"{code} " for code in codes if code not in {"at", "and"})
    times = []
    while text:
        found = _HOUR.match(text)
        if found is None:
            raise NotKnown
        text = text[found.end() :]
        hour, minute = map(int, (found["clock"] or f"{found['hour'] or (12 if found['noon'] else 0)}:0").split(":"))
        minute += int(found["minutes"] or 0)
        minute += _SHIFTS.get(found["shift"] or found["more"] or "", 0) - 15 * (found["more"] == "minus-quarter")
        part = found["before"] or found["after"]
        if minute >= _MOST_MINUTES or hour > 2 * _NOON or (part and found["before"] and found["after"]):
            raise NotKnown

        # The hour that is shifted is the one that was said: "half twaalf 's middags" is 11:30.
        total = hour * 60 + minute
        if part == "night" and (hour == _NOON or hour < _NIGHT):
            total %= _NOON * 60
        elif part in {"afternoon", "evening", "night"} and total < _NOON * 60:
            total += _NOON * 60
        half = ""
        if part and total < 13 * 60 and hour <= _NOON:
            half = " am" if part == "morning" or total < _NOON * 60 else " pm"
        times.append(f"{total // 60 % 24}:{total % 60:02}{half}")
    if not times:
        raise NotKnown
    return "at " + " and ".join(times)


def _write_length(codes: Sequence[str]) -> str:
    """Return a length in English. Raises NotKnown."""
    found = re.fullmatch(r"(?:n(\d+) )?u(\d)", " ".join(codes).replace("oclock", "u2"))
    if found is None:
        raise NotKnown
    number = int(found[1] or 1)
    return f"{number} {_UNITS[int(found[2])]}{'s' if number > 1 else ''}"


def _write_bounded(codes: Sequence[str], sign: str, english: str, length: str) -> str:
    """Return a start or an end in English: a length with its word, or days with theirs. Raises NotKnown."""
    rest = [code for code in codes if code not in {sign, length, "at", "and"}]
    if any(code[0] == "u" or code == "oclock" for code in rest[1:] or rest) and length in codes:
        return f"{english if sign == length else {'in': 'in', 'for': 'for'}[length]} {_write_length(rest)}"
    if sign not in codes:
        raise NotKnown
    clock = [code for code in rest if code[0] == "c"]
    days = [code for code in rest if code[0] != "c"]
    at = f" {_write_time(clock)}" if clock else ""
    return f"{english} {_write_days(days, is_bare=True)}{at}"


def translate(pieces: Mapping[str, Sequence[tuple[str, ...]]], zone: str | None) -> str:
    """Return the schedule that the meanings of quoted pieces amount to, in English. Raises NotKnown.

    `pieces` has the meanings of each facet's pieces, in the text's order, without glue. `zone` is the one that is said.
    """
    codes = {facet: [code for piece in pieces.get(facet, ()) for code in piece] for facet in FACETS}
    days = [*("u2" if code == "oclock" else code for code in codes["interval"]), *codes["days"]]
    time = [*codes["time"]]
    start = codes["start"]
    if start and not {"in", "from"} & set(start):
        days, start = [*days, *start], []
    time = [*(code for code in days if code in _PARTS), *time]
    days = [code for code in days if code not in _PARTS | {"at"}]

    parts = [_write_days(days)] if days else []
    if set(time) <= _PARTS and time:
        parts.append(f"in the {time[0]}" if time[0] != "night" else "at night")
    elif time:
        parts.append(_write_time(time))
    if start:
        parts.append(_write_bounded(start, "from", "starting", "in"))
    if codes["end"]:
        parts.append(_write_bounded(codes["end"], "until", "until", "for"))
    parts += [_write_count(codes["count"])] if codes["count"] else []
    parts += [_write_exceptions(codes["exceptions"])] if codes["exceptions"] else []
    return " ".join([*parts, f"in {zone}"] if zone else parts)


def _write_count(codes: Sequence[str]) -> str:
    found = re.fullmatch(r"n(\d+) times", " ".join(code for code in codes if code != "for"))
    if found is None:
        raise NotKnown
    return f"{found[1]} times"


def _write_exceptions(codes: Sequence[str]) -> str:
    left_out = [code for code in codes if code != "except"]
    if left_out == codes or not left_out:
        raise NotKnown
    return f"except {_write_days(left_out, is_bare=True)}"
