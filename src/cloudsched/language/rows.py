"""Parse by rows: a rule of the grammar is a table of patterns, each with what it means.

    parse_nearest = Rule(
        "nearest",
        ("[on] [article] closest weekday=weekday to base=@point", lambda weekday, base: Relative("closest", ...)),
        ("[on|for] coming dayset:1|dayset:2", lambda: Relative("weekend", ahead=0)),
        "day=@day",
    )

The first row that matches counts. Its function gets the named values, None for those of a part that is left out. If it
returns None, the row does not match: it is a guard, too. A pattern alone means the value that it names, or True. A
`Refused` may be raised or returned. Nodes and refusals without a span get that of the row. A pattern is read from left
to right and never tried again in another way:

    class  a|b  unit:5     the longest match of a class, of the first of several, or one with this value
    @rule  @a|@b           the first result that is not None of rules, or of functions in `RULES`
    name=...               the value of one of these, for the function
    [a]  [a b]             all of it or nothing
    &a  !a|b  &[a b]       it is here, or it is not. Nothing is consumed

A function for a pattern depends on the cursor's place alone, since its results are kept. It may consume nothing:
``!@is_in_series`` is a guard, and ``start=@at`` a value. Rows are compiled when they are first used. A row is only
tried at words that can begin it, so begin it with classes: ``&number|tens`` before a function.
"""

from __future__ import annotations

import re
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from cloudsched.language.nodes import NOWHERE
from cloudsched.language.result import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.language.lexicon import Cursor
    from cloudsched.language.nodes import Span

RULES: dict[str, Callable[[Cursor], Any]] = {}
"""What a pattern may call, by name: every `Rule`, and functions."""
_ELEMENT = re.compile(r"\[[^\s\[\]]+\]|[&!]?\[|\]|[^\s\[\]]+")
ANY = "any"


class Rule:
    """Parses what the first of its rows that matches does. Leaves the cursor where it was if none does."""

    def __init__(self, name: str, *rows: str | tuple[str, Callable[..., Any]]) -> None:
        self.patterns = [(row, _find_value) if isinstance(row, str) else row for row in rows]
        self._chosen: dict[frozenset[str], Any] = {}  # the rows that words of these classes can begin
        RULES[name] = self

    def __call__(self, c: Cursor) -> Any:  # noqa: ANN401 -- what the function of a row returns
        """Return what a row means. None if no row matches. Raises `Refused` if the row does."""
        start = c.at
        here = c.kinds[start]
        rows = self._chosen.get(here)
        if rows is None:
            rows = self._chosen[here] = [row for row in self._rows if not row[1].isdisjoint({*here, ANY})]
        for steps, _, names, build in rows:
            values = _take_all(steps, c)
            try:
                result = None if values is None else build(**(names | values))
            except Refused as refused:
                result = refused
            if result is not None:
                return _place(result, c.span(start))
            c.at = start
        return None

    @cached_property
    def _rows(self) -> list[Any]:
        return [
            (*_compile(iter(_ELEMENT.findall(pattern))), dict.fromkeys(re.findall(r"(\w+)=", pattern)), build)
            for pattern, build in self.patterns
        ]

    @cached_property
    def first(self) -> set[str]:
        """The classes that can begin it."""
        return {kind for _, first, *_ in self._rows for kind in first}


def _find_value(**values: Any) -> Any:  # noqa: ANN401 -- the named one of a row
    return next(iter(values.values()), True)


def _compile(elements: Iterator[str]) -> tuple[list[Any], set[str]]:
    """Return the steps of a pattern, or of a group up to its end, and the classes that can begin it."""
    steps = []
    first = set()
    is_open = True
    for element in elements:
        if element == "]":
            break
        sign = element[0] if element[0] in "&![" else ""
        options: list[tuple[str, int | None]] = []
        take: Any = None
        name, _, text = element.strip("&![]").rpartition("=")
        if not text:
            inner, kinds = _compile(elements)
            name, take = "[", partial(_take_all, inner)
        elif text[0] == "@":
            rules = [RULES[rule] for rule in text[1:].split("|@")]
            kinds = {kind for rule in rules if is_open for kind in getattr(rule, "first", {ANY})}
            take = partial(_call, rules)
        else:
            for option in text.split("|"):
                kind, _, value = option.partition(":")
                options.append((kind, int(value) if value else None))
            kinds = {kind for kind, _ in options}
        steps.append((sign, name, options, take))
        if is_open and sign != "!":
            first |= kinds
            is_open = sign == "["
    return steps, first | {ANY} if is_open else first


def _take_all(steps: list[Any], c: Cursor) -> Any:  # noqa: ANN401 -- the values by name, or None
    values: dict[str, Any] = {}
    for sign, name, options, take in steps:
        before = c.at
        found = None
        if take:
            found = take(c)
        else:
            here = c.matches[before]
            for kind, value in options:
                match = here.get(kind)
                if match and (value is None or value == match.value):
                    c.at, found = match
                    break
        if found is None or sign in {"&", "!"}:
            c.at = before
        if sign != "[" and (found is None) != (sign == "!"):
            return None
        if name == "[":
            values.update(found or {})
        elif name:
            values[name] = found
    return values


def _call(rules: list[Callable[[Cursor], Any]], c: Cursor) -> Any:  # noqa: ANN401 -- what any of them returns
    start, memo = c.at, c.memo[c.at]
    for rule in rules:
        found = memo.get(rule)
        if found is None:
            c.at = start
            found = memo[rule] = rule(c), c.at
        if found[0] is not None:
            c.at = found[1]
            return found[0]
    return None


def _place(result: Any, span: Span) -> Any:  # noqa: ANN401 -- nodes, or values for other rows
    if isinstance(result, list):
        return [_place(each, span) for each in result]
    is_placed = getattr(result, "span", span) not in {None, NOWHERE}
    if isinstance(result, Refused):
        result.span = result.span if is_placed else span
        raise result
    if is_placed:
        return result
    return type(result)(*[getattr(result, name) for name in result.__slots__], span=span)  # `replace` is slow
