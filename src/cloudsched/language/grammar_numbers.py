"""Parse numbers, ordinals and lengths of time, in words and digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from cloudsched.language.lexicon import CLOCK, NUMBER, PAIR, Cursor
from cloudsched.language.nodes import Length, Unit
from cloudsched.language.rows import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

MOST_ITEMS = 62


def parse_number(c: Cursor) -> int | None:
    """Parse a whole number: ``12``, ``twelve``, ``twenty-one``, ``two thousand and thirty two``."""
    tens = c.take("tens")
    if tens is not None:
        start = c.at
        c.take("dash")
        unit = c.take("number")
        if unit is not None and 0 < unit.value < 10:
            return tens.value + unit.value
        c.at = start
        return tens.value
    result = c.take("number")
    if result is None:
        return None
    if c.sees("thousand"):
        c.take("thousand")
        start = c.at
        c.take("and")
        rest = parse_number(c)
        if rest is None or rest > 999:
            c.at = start
            rest = 0
        return result.value * 1000 + rest
    return result.value


def parse_ordinal(c: Cursor) -> int | None:
    """Parse one ordinal: ``3rd``, ``twenty-third``, ``last`` (-1), ``second to last`` (-2), ``4th last`` (-4)."""
    if c.sees("start"):
        return None  # "first on" begins another clause
    end = c.take("ordinal-end")
    if end is not None:
        return end.value
    start = c.at
    tens = c.take("tens")
    if tens is not None:
        c.take("dash")
    result = c.take("ordinal")
    if result is None or (tens is not None and result.value > 9):
        c.at = start
        return None
    value = result.value + (tens.value if tens else 0)
    before = c.at
    c.take("dash")
    if c.take("to-last"):
        return -value
    c.at = before
    return value


def parse_list(
    c: Cursor, item: Callable[[Cursor], T | None], *joints: str, is_joined: bool = False, leads: Sequence[str] = ()
) -> list[T]:
    """Parse items with words of these classes between them.

    Before each item but the first, one word of each class of `leads` may stand.
    """
    result: list[T] = []
    while len(result) < MOST_ITEMS:
        before = c.at
        if result:
            if not c.skip(*joints) and is_joined:
                break
            for kind in leads:
                c.take(kind)
        one = item(c)
        if one is None:
            c.at = before
            break
        result.append(one)
    return result


def parse_run(c: Cursor, parse: Callable[[Cursor], int | None], most: int) -> Sequence[int] | None:
    """Parse one number, or a range up to `most`: ``9 to 12``."""
    value = parse(c)
    if value is None:
        return None
    middle = c.at
    last = parse(c) if c.take("to", "dash") is not None else None
    if last is not None and 0 <= value < last <= most:
        return range(value, last + 1)
    c.at = middle
    return (value,)


def list_around(first: int, last: int, names: range) -> list[int]:
    """Return the numbers from one to another, around the end of all: Saturday to Monday."""
    return [names[(first - names[0] + step) % len(names)] for step in range((last - first) % len(names) + 1)]


WEEKDAYS, MONTHS = range(7), range(1, 13)


def parse_ordinals(c: Cursor) -> list[int]:
    """Parse a list of ordinals, and ranges of them: ``1st, 2nd and last``."""
    joints = ("comma", "and", "or", "also")
    runs = parse_list(c, lambda c: parse_run(c, parse_ordinal, 31), *joints, is_joined=True, leads=("on", "article"))
    return [number for run in runs for number in run]


def parse_numbers(c: Cursor) -> tuple[int, ...]:
    """Parse numbers and ranges of them: ``2, 15 and 27``, ``9 to 12 and 17``."""
    runs = parse_list(c, lambda c: parse_run(c, parse_number, MOST_ITEMS), "comma", "and", "or")
    return tuple(number for run in runs for number in run)


def parse_length(c: Cursor) -> Length | None:
    """Parse a length of time: ``2 weeks``, ``an hour and a half``, ``1h30m``, ``half an hour``, ``2.5 hours``."""
    start = c.at
    amounts: list[tuple[Unit, int]] = []
    token = c.token
    if token is not None and token.kind == CLOCK and "h" in token.text:
        c.at += 1
        return Length(((Unit.HOUR, token.value[0]), (Unit.MINUTE, token.value[1])), c.span(start))
    while len(amounts) < MOST_ITEMS:
        before = c.at
        more = _parse_more(c, amounts[-1][0]) if amounts and c.sees("and-half") else None
        if more is not None:
            amounts.append(more)
            break
        c.at = before
        if amounts:
            c.take("and", "comma")
        result = _parse_amount(c)
        if result is None or any(unit == result[0] for unit, _ in amounts):
            c.at = before
            break
        amounts.append(result)
    if not amounts:
        c.at = start
        return None
    return Length(tuple(amounts), c.span(start))


_PARTS_OF = {
    Unit.MINUTE: (Unit.SECOND, 60),
    Unit.HOUR: (Unit.MINUTE, 60),
    Unit.DAY: (Unit.HOUR, 24),
    Unit.YEAR: (Unit.MONTH, 12),
}
"""The number of the next smaller units in a unit."""


def _parse_more(c: Cursor, unit: Unit) -> tuple[Unit, int] | None:
    """Parse ``and a half``, which is of the unit before: the value is in sixtieths."""
    found = c.take("and-half")
    if found is None or unit not in _PARTS_OF or c.sees("of", "a", "unit"):
        return None
    finer, count = _PARTS_OF[unit]
    amount, rest = divmod(found.value * count, 60)
    return None if rest else (finer, amount)


def _parse_amount(c: Cursor) -> tuple[Unit, int] | None:
    start = c.at
    token = c.token
    fraction = c.take("fraction")
    if fraction is not None:
        unit = c.take("unit")
        if unit is not None and unit.value == Unit.HOUR:
            return Unit.MINUTE, fraction.value
        c.at = start
    if token is not None and (token.kind == PAIR or _sees_decimal_comma(c)):
        result = _parse_fraction(c, *_take_fraction(c))
        if result is not None:
            return result
        c.at = start
        return None
    mixed = _parse_mixed(c)
    if mixed is not None:
        return mixed
    before = c.at
    if c.take("a") is not None or c.sees("minute-unit"):
        short = c.take("minute-unit")
        if short is not None:
            return Unit.MINUTE, short.value
        c.at = before
    a = c.take("a")
    count = a.value if a is not None and not c.sees("number", "tens") else parse_number(c)
    unit = c.take("unit")
    if unit is None and c.token is not None and c.token.glued:
        unit = c.take("unit-short")
    if count is None or unit is None:
        c.at = start
        return None
    return _normalize_unit(Unit(unit.value), count)


def _parse_mixed(c: Cursor) -> tuple[Unit, int] | None:
    """Parse ``two and a half hours``, ``anderthalb Stunden``: a number of halves of a unit."""
    start = c.at
    halves = c.take("halves")
    sixtieths = 30 * halves.value if halves is not None else None
    if sixtieths is None:
        count = parse_number(c)
        more = c.take("and-half") if count is not None else None
        sixtieths = 60 * count + more.value if count is not None and more is not None else None
    unit = c.take("unit") if sixtieths is not None else None
    if unit is None or sixtieths is None or Unit(unit.value) not in _PARTS_OF:
        c.at = start
        return None
    finer, per_unit = _PARTS_OF[Unit(unit.value)]
    amount, rest = divmod(sixtieths * per_unit, 60)
    if rest:
        c.at = start
        return None
    return finer, amount


def _normalize_unit(unit: Unit, count: int) -> tuple[Unit, int]:
    if unit == Unit.FORTNIGHT:
        return Unit.WEEK, 2 * count
    if unit == Unit.QUARTER:
        return Unit.MONTH, 3 * count
    return unit, count


def _sees_decimal_comma(c: Cursor) -> bool:
    """Return whether a number such as "2,5" begins here, without a space."""
    three = c.tokens[c.at : c.at + 3]
    is_one = len(three) == 3 and three[1].text == "," and three[1].glued and three[2].glued
    return is_one and three[0].kind == three[2].kind == NUMBER


def _take_fraction(c: Cursor) -> tuple[str, tuple[int, ...]]:
    """Consume "2.5", "2,5" or "1/2". Return it with a point, and its numbers."""
    start = c.at
    c.at += 1 if c.tokens[start].kind == PAIR else 3
    used = c.tokens[start : c.at]
    text = "".join(token.text for token in used).replace(",", ".")
    return text, tuple(number for token in used for number in token.value)


def _parse_fraction(c: Cursor, text: str, value: tuple[int, ...]) -> tuple[Unit, int] | None:
    """Parse ``2.5 hours`` and ``1/2 hour``, if the result is a whole number of the next smaller unit."""
    unit = c.take("unit")
    if unit is None and c.token is not None and c.token.glued:
        unit = c.take("unit-short")
    if unit is None or Unit(unit.value) not in _PARTS_OF or len(value) != 2:
        return None
    finer, count = _PARTS_OF[Unit(unit.value)]
    if "/" in text:
        whole, rest = divmod(count * value[0], value[1]) if value[1] else (0, 1)
    elif "." not in text:
        return None
    else:
        whole, rest = divmod(count * int(text.replace(".", "")), 10 ** len(text.split(".")[1]))
    return None if rest else (finer, whole)


RULES.update(length=parse_length, number=parse_number, ordinal=parse_ordinal)
