"""Parse numbers, ordinals and lengths of time, in words and digits, and lists."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.language.nodes import Length, Unit
from cloudsched.language.rows import ANY, RULES, Rule

if TYPE_CHECKING:
    from cloudsched.language.lexicon import Cursor

MOST_ITEMS = 62
WEEKDAYS, MONTHS = range(7), range(1, 13)


def list_around(first: int, last: int, names: range) -> list[int]:
    """Return the numbers from one to another, around the end of all: Saturday to Monday."""
    return [names[(first - names[0] + step) % len(names)] for step in range((last - first) % len(names) + 1)]


class List:
    """Parses what a rule parses, several times, with words of the classes `joints` between them.

    Before each but the first, one word of each class of `leads` may stand.
    """

    def __init__(self, item: str, joints: str = "", leads: str = "", *, is_joined: bool = False) -> None:
        self.item, self.joints, self.leads, self.is_joined = item, joints.split(), leads.split(), is_joined

    @property
    def first(self) -> set[str]:
        """The classes that can begin it."""
        return getattr(RULES[self.item], "first", {ANY})

    def __call__(self, c: Cursor) -> tuple[Any, ...] | None:
        """Return what the rule parsed. None if there is nothing."""
        result: list[Any] = []
        while len(result) < MOST_ITEMS:
            before = c.at
            if result:
                joined = c.skip(*self.joints)
                if not joined and (self.is_joined or c.skip(*self.leads)):
                    c.at = before
                    break
                for kind in self.leads:
                    c.take(kind)
            one = RULES[self.item](c)
            if one is None:
                c.at = before
                break
            result.append(one)
        return tuple(result) or None


def list_numbers(name: str, item: str, joints: str, leads: str = "", *, is_joined: bool = False) -> None:
    """Name a rule for lists of numbers, and ranges of them: ``9 to 12 and 17``."""
    Rule(
        item + "_run",
        (f"first=@{item} to|dash last=@{item}", lambda first, last: range(first, last + 1) if first < last else None),
        (f"first=@{item}", lambda first: (first,)),
    )
    RULES[name + "_runs"] = List(item + "_run", joints, leads, is_joined=is_joined)
    Rule(name, (f"runs=@{name}_runs", lambda runs: tuple(number for run in runs for number in run)[:MOST_ITEMS]))


Rule("digit", ("digit=number", lambda digit: digit if 0 < digit < 10 else None))
Rule(
    "hundreds",
    ("tens=tens [[dash] digit=@digit]", lambda tens, digit: tens + (digit or 0)),
    ("count=number", lambda count: count if count < 1000 else None),
)
Rule(
    "number",  # 12, twelve, twenty-one, two thousand and thirty two
    ("thousands=number thousand [[and] rest=@hundreds]", lambda thousands, rest: thousands * 1000 + (rest or 0)),
    "count=@hundreds",
    "count=number",
)


def _count(nth: int, tens: int | None, back: int | None) -> int | None:
    return None if tens and nth > 9 else (nth + (tens or 0)) * (-1 if back else 1)


Rule(
    "ordinal",  # 3rd, twenty-third, last (-1), second to last (-2), 4th last (-4), but "first on" is a start
    "!start nth=ordinal-end",
    ("!start [tens=tens [dash]] nth=ordinal [[dash] back=to-last]", _count),
)

_FINER = {
    Unit.MINUTE: (Unit.SECOND, 60),
    Unit.HOUR: (Unit.MINUTE, 60),
    Unit.DAY: (Unit.HOUR, 24),
    Unit.YEAR: (Unit.MONTH, 12),
    Unit.FORTNIGHT: (Unit.WEEK, 2),
    Unit.QUARTER: (Unit.MONTH, 3),
}
"""The number of the next smaller units in a unit."""
_Amounts = tuple[tuple[Unit, int], ...]


def _measure(unit: Unit, count: int | str = 0, part: int = 0) -> _Amounts | None:
    """Return a number of units, and sixtieths of one, as whole units of this kind or of the next smaller one."""
    amount = Fraction(count) + Fraction(part, 60)
    if unit in _FINER and (amount.denominator > 1 or unit in {Unit.FORTNIGHT, Unit.QUARTER}):
        unit, many = _FINER[unit]
        amount *= many
    return None if amount.denominator > 1 else ((unit, int(amount)),)


def _parse_decimal(c: Cursor) -> str | None:
    """Return ``2.5``, ``1/2``, or ``2,5`` with a point."""
    for size in (1, 3):
        used = c.tokens[c.at : c.at + size]
        text = "".join(token.text for token in used).replace(",", ".")
        if re.fullmatch(r"\d+(\.\d+|/0*[1-9]\d*)", text) and used[-1].end - used[0].start == len(text):
            c.at += len(used)
            return text
    return None


Rule("unit", ("value=unit", Unit), ("&unit-short &@is_glued value=unit-short", Unit))
Rule("count", "count=a !number|tens", "[a] count=@number")
Rule(
    "amount",
    ("part=fraction unit:2", partial(_measure, Unit.HOUR)),
    ("&number|pair count=@decimal unit=@unit", _measure),
    ("halves=halves unit=@unit", lambda halves, unit: _measure(unit, part=30 * halves)),
    ("count=@number part=and-half unit=@unit", _measure),
    ("[a] part=minute-unit", lambda part: ((Unit.MINUTE, part),)),
    ("count=@count unit=@unit part=and-half !of|a|unit", _measure),
    ("count=@count unit=@unit", _measure),
)


def _join(amounts: tuple[_Amounts, ...]) -> Length | None:
    found = tuple(each for some in amounts for each in some)
    return Length(found) if len(dict(found)) == len(found) else None


Rule(
    "length",  # 2 weeks, an hour and a half, 1h30m, half an hour, 2.5 hours
    (
        "&clock &@has_h token=@token clock",
        lambda token: Length(((Unit.HOUR, token.value[0]), (Unit.MINUTE, token.value[1]))),
    ),
    ("amounts=@amounts", _join),
)
RULES.update(
    amounts=List("amount", "and comma"),
    decimal=_parse_decimal,
    has_h=lambda c: "h" in c.tokens[c.at].text or None,
    is_glued=lambda c: (c.token is not None and c.token.glued) or None,
    token=lambda c: c.token,
)
list_numbers("numbers", "number", "comma and or")
list_numbers("ordinals", "ordinal", "comma and or also", "on article", is_joined=True)
