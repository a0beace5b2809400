"""Parse by rows: a rule of the grammar is a table of patterns, each with what it means.

    parse_nearest = Rule(
        "nearest",
        ("[on] weekday=weekday [comma] [of|in] ahead=next unit:4", lambda weekday, ahead: Relative("week", ...)),
        ("[on|for] coming dayset:1..2", "this dayset:1..2", lambda: Relative("weekend", ahead=0)),
        "day=@day",
    )

The first row that matches counts. Its function gets the named values, None for those of a part that is left out. If it
returns None, the row does not match: it is a guard, too. Several patterns may share a function, and a pattern alone
means the value that it names, or True. A `Refused` may be raised or returned. Nodes and refusals get the span of the
row, those in a list only if they have none. A pattern is read from left to right and never tried again in another way:

    class  a|b              the longest match of a class, or of the first of several
    @rule  @a|@b            the first result that is not None of rules, or of functions in `RULES`
    unit:5  @number:1..31   one with this value, or with one of these. ``1..`` has no end
    /regex/                 the text of a token, if it matches
    <class  <a|b            the word before is of one of these classes. Nothing is consumed
    name=...                the value of one of these, for the function
    name+=...               the values of all that are so named, in a tuple
    [a]  [a b]              all of it or nothing
    {a}  {a b}              all of it, as often as it is there
    &a  !a|b  &[a b]        it is here, or it is not. Nothing is consumed

A function for a pattern depends on the cursor's place alone, since its results are kept. It may consume nothing:
``!@is_glued`` is a guard, and ``language=@language`` a value. Rows are compiled when they are first used. A row is only
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
_ELEMENT = re.compile(r"[^\s\[\]{}]*/\S+/|\[[^\s\[\]{}]+\]|[&!]?\[|[]{}]|[^\s\[\]{}]+")
_MOST = 10**9
"""The end of values without one."""
ANY = "any"


class Rule:
    """Parses what the first of its rows that matches does. Leaves the cursor where it was if none does."""

    def __init__(self, name: str, *rows: str | tuple[Any, ...]) -> None:
        self.patterns: list[tuple[str, Callable[..., Any]]] = []
        for row in rows:
            *patterns, build = (row, _find_value) if isinstance(row, str) else row
            self.patterns += [(pattern, build) for pattern in patterns]
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
            values = _take_all(steps, c, names)
            try:
                result = None if values is None else build(**values)
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
        if element in {"]", "}"}:
            break
        sign = element[0] if element[0] in "&![{" else ""
        name, _, text = element.strip("&![]{").rpartition("=")
        options: list[tuple[str, range | None]] = []
        take: Any = None
        if not text:
            inner, kinds = _compile(elements)
            name, take = "[", partial(_take_many if sign == "{" else _take_all, inner)
        elif text[0] == "/":
            take, kinds = partial(_take_text, re.compile(text[1:-1])), {ANY}
        else:
            options = _read_options(text.removeprefix("<"))
            kinds = {kind for kind, _ in options}
            if text[0] == "<":
                take, kinds = partial(_look_back, kinds), {ANY}
            elif text[0] == "@":
                rules = [(RULES[kind[1:]], values) for kind, values in options]
                kinds = {kind for rule, _ in rules if is_open for kind in getattr(rule, "first", {ANY})}
                take = partial(_call, rules)
        steps.append((sign, name, options, take))
        if is_open and sign != "!":
            first |= kinds
            is_open = sign in {"[", "{"}
    return steps, first | {ANY} if is_open else first


def _read_options(text: str) -> list[tuple[str, range | None]]:
    """Return classes or rules, each with the values that it may have."""
    options = []
    for option in text.split("|"):
        kind, _, values = option.partition(":")
        bounds = values.split("..")
        options.append((kind, range(int(bounds[0]), int(bounds[-1] or _MOST) + 1) if values else None))
    return options


def _take_all(steps: list[Any], c: Cursor, values: dict[str, Any]) -> dict[str, Any] | None:
    """Return the values by name, with those of these steps. None if they do not match."""
    values = values.copy()
    for sign, name, options, take in steps:
        before = c.at
        found = None
        if name == "[":
            found = take(c, values)
        elif take:
            found = take(c)
        else:
            here = c.matches[before]
            for kind, allowed in options:
                match = here.get(kind)
                if match and (allowed is None or match.value in allowed):
                    c.at, found = match
                    break
        if found is None or sign in {"&", "!"}:
            c.at = before
        if sign != "[" and (found is None) != (sign == "!"):
            return None
        if name == "[":
            values = found or values
        elif name[-1:] == "+":
            values[name[:-1]] = (*values.get(name[:-1], ()), found)
        elif name:
            values[name] = found
    return values


def _take_many(steps: list[Any], c: Cursor, values: dict[str, Any]) -> dict[str, Any]:
    while True:
        start = c.at
        found = _take_all(steps, c, values)
        if found is None:
            c.at = start
            return values
        values = found


def _take_text(pattern: re.Pattern[str], c: Cursor) -> str | None:
    token = c.token
    if token is None or pattern.fullmatch(token.text) is None:
        return None
    c.at += 1
    return token.text


def _look_back(kinds: set[str], c: Cursor) -> bool | None:
    return (c.at > 0 and not kinds.isdisjoint(c.matches[c.at - 1])) or None


def _call(rules: list[tuple[Callable[[Cursor], Any], range | None]], c: Cursor) -> Any:  # noqa: ANN401 -- any result
    start, memo = c.at, c.memo[c.at]
    for rule, allowed in rules:
        found = memo.get(rule)
        if found is None:
            c.at = start
            found = memo[rule] = rule(c), c.at
        if found[0] is not None and (allowed is None or found[0] in allowed):
            c.at = found[1]
            return found[0]
    return None


def _place(result: Any, span: Span) -> Any:  # noqa: ANN401 -- nodes, or values for other rows
    if isinstance(result, list):
        return [each if getattr(each, "span", span) != NOWHERE else _place(each, span) for each in result]
    if isinstance(result, Refused):
        result.span = result.span or span
        raise result
    if getattr(result, "span", span) == span:
        return result
    return type(result)(*[getattr(result, name) for name in result.__slots__], span=span)  # `replace` is slow
