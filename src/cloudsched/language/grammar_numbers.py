"""Parse numbers, ordinals and lengths of time, in words and digits, and lists."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import chain

from cloudsched.language.nodes import Length, Unit
from cloudsched.language.rows import RULES, Rule

WEEKDAYS, MONTHS = range(7), range(1, 13)
_LONGEST_RUN = 62


def list_around(first: int, last: int, names: range) -> list[int]:
    """Return the numbers from one to another, around the end of all: Saturday to Monday."""
    return [names[(first - names[0] + step) % len(names)] for step in range((last - first) % len(names) + 1)]


def list_numbers(name: str, item: str, lead: str = "") -> None:
    """Name a rule for lists of numbers, and ranges of them: ``9 to 12 and 17``. A lead may stand before each next."""
    Rule(
        item + "_run",
        (
            f"first=@{item} to|dash last=@{item}",
            lambda first, last: range(first, last + 1) if first < last < first + _LONGEST_RUN else None,
        ),
        (f"first=@{item}", lambda first: (first,)),
    )
    run = f"runs+=@{item}_run"
    Rule(name, (run + " {comma|and|or|also {comma|and|or|also} " + lead + run + "}", lambda runs: (*chain(*runs),)))


Rule(
    "hundreds",
    ("tens=tens [[dash] digit=number:1..9]", lambda tens, digit: tens + (digit or 0)),
    "count=number:0..999",
)
Rule(
    "number",  # 12, twelve, twenty-one, two thousand and thirty two
    ("thousands=number thousand [[and] rest=@hundreds]", lambda thousands, rest: thousands * 1000 + (rest or 0)),
    "count=@hundreds",
    "count=number",
)
Rule(
    "ordinal",  # 3rd, twenty-third, last (-1), second to last (-2), 4th last (-4), but "first on" is a start
    "!start nth=ordinal-end",
    ("!start tens=tens [dash] nth=ordinal:1..9 ![[dash] to-last]", lambda tens, nth: tens + nth),
    ("!start nth=ordinal [dash] to-last", lambda nth: -nth),
    "!start nth=ordinal",
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
_Amount = tuple[Unit, int]


def _measure(unit: Unit, count: int | str = 0, part: int = 0) -> _Amount | None:
    """Return a number of units, and sixtieths of one, as whole units of this kind or of the next smaller one."""
    amount = Fraction(count) + Fraction(part, 60)
    if unit in _FINER and (amount.denominator > 1 or unit in {Unit.FORTNIGHT, Unit.QUARTER}):
        unit, many = _FINER[unit]
        amount *= many
    return None if amount.denominator > 1 else (unit, int(amount))


Rule(
    "decimal",  # 2.5, 1/2, 2,5
    r"&pair text=/\d+(\.\d+|/0*[1-9]\d*)/",
    (
        r"&number whole=/\d+/ &@is_glued comma &@is_glued part=/\d+/",
        lambda whole, part: whole + "." + part,
    ),
)
Rule("unit", ("value=unit", "&unit-short &@is_glued value=unit-short", Unit))
Rule("count", "count=a !number|tens", "[a] count=@number")
Rule(
    "amount",
    ("part=fraction unit:2", partial(_measure, Unit.HOUR)),
    ("halves=halves unit=@unit", lambda halves, unit: _measure(unit, part=30 * halves)),
    ("[a] part=minute-unit", lambda part: (Unit.MINUTE, part)),
    (
        "&number|pair count=@decimal unit=@unit",
        "count=@number part=and-half unit=@unit",
        "count=@count unit=@unit part=and-half !of|a|unit",
        "count=@count unit=@unit",
        _measure,
    ),
)


def _join(amounts: tuple[_Amount, ...]) -> Length | None:
    return Length(amounts) if len(dict(amounts)) == len(amounts) else None


Rule(
    "length",  # 2 weeks, an hour and a half, 1h30m, half an hour, 2.5 hours
    (
        r"&clock text=/\d+h\d+/",
        lambda text: Length((*zip((Unit.HOUR, Unit.MINUTE), map(int, text.split("h")), strict=True),)),
    ),
    ("amounts+=@amount {{and|comma} amounts+=@amount}", _join),
)
RULES["is_glued"] = lambda c: (c.token is not None and c.token.glued) or None
list_numbers("numbers", "number")
list_numbers("ordinals", "ordinal", "{on|article} ")
