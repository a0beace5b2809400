"""Parse the clauses of a phrase.

    clause  = repeat | days | times | window | part | limit | start | end | except | zone | relative day

The clause at a position depends only on the tokens from there on, so it is parsed once and cached. `covers` finds the
clauses that cover a phrase together with its title.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from cloudsched.language import grammar_clauses, grammar_clocks, grammar_points  # noqa: F401 -- they name rules
from cloudsched.language.lexicon import Cursor, Language, Matches, Token, classify
from cloudsched.language.nodes import (
    DAY,
    Clause,
    Days,
    Mark,
    Months,
    NamedCalendars,
    Part,
    Period,
    Pick,
    Unit,
    WeekStart,
)
from cloudsched.language.result import Refused
from cloudsched.language.rows import ANY, RULES, Rule

_SURE_DAYS = 28
"""The number of days that every month has."""

_BUSINESS = "[each] [on|for] [article] [edge=@ordinal] business [ &included=on-or ] side=on-or|before|after"

Rule(
    "named_calendars",  # by their ids, in quotes: moved to before days of "closed"
    ("on=moved days-of ids=@ids", lambda on, ids: NamedCalendars(ids, "BEFORE" if on < 0 else "AFTER")),
    (
        "moved-to [article] business_day=@ordinal day-word of [article] unit:5 [comma] not-on ids=@ids",
        NamedCalendars,
    ),
)


def _move_day(edge: int | None, included: int | None, side: int, day: int, period: Period | None) -> Days | None:
    limits = period or Period()
    if edge not in {side, None} or (edge is None and limits.months and not limits.each):
        return None  # "the working day before the 30th of November" is one
    if not limits.months and (limits.unit != Unit.MONTH or limits.ahead is not None):
        raise Refused("inexpressible")
    target = day + (0 if included else side)
    if (target == 0 and limits.months) or (side > 0 and target > _SURE_DAYS):
        raise Refused("inexpressible", hint="name a day that every month has")
    return Days(
        (Pick(target or -1, DAY),),
        period,
        marked=True,
        on=True,
        business=True,
        moved="before" if side < 0 else "after",
    )


Rule("day_number", "day-number day=@number:1..31", "day=@ordinal:1..31")
Rule(
    "moved_days",  # the last business day before the 25th, the first working day on or after the 10th of each month
    (
        _BUSINESS + " [article] day=@day_number !business|dayset|weekday|day-word|unit [period=@period]",
        _move_day,
    ),
)
Rule(
    "night_to",
    "night-to",
    "night-from weekday|weekdays onto|to|on",
)
Rule(
    "night",  # in der Nacht auf Samstag, the night from Friday to Saturday
    (
        "each @night_to [article] days=@each_days",
        "@night_to [article] days=@days",
        lambda days: [replace(days, on=True), Part(3, is_ending=True)] if days.dates or days.is_weekly else None,
    ),
)
Rule(
    "on_days",
    "on|for",
    "at &[[article] feast|dayset|daysets]",
)
Rule(
    "days_on",
    (
        "[only] &[the number|tens] days=@days",
        "[only] @on_days [only] days=@days",
        lambda days: replace(days, on=True),
    ),
    "[only] days=@days",
)
Rule(
    "months_in",
    ("[only] in months=@months", Months),
)
Rule(
    "week_start",
    ("[open] week-start weekday=weekday [close]", WeekStart),
)

_CLAUSES = [
    RULES[name]
    for name in (
        "named_calendars",
        "night",
        "except",
        "added",
        "moved_days",
        "shifted",
        "rest",
        "each",
        "counted_days",
        "adverb",
        "relative",
        "window",
        "start",
        "end",
        "hour_point",
        "times",
        "edge",
        "part",
        "days_on",
        "edge_noun",
        "repeated_edge",
        "grid",
        "year_limit",
        "within",
        "months_in",
        "week_start",
        "only_if",
        "place",
        "mark",
    )
]
"""The rules of clauses, in order."""


@cache
def _find_rules(kinds: frozenset[str]) -> list[Callable[[Cursor], Clause | list[Clause] | None]]:
    """Return the rules for clauses that words of these classes can begin, in order."""
    return [rule for rule in _CLAUSES if not getattr(rule, "first", {ANY}).isdisjoint({*kinds, ANY})]


class Parser:
    """Parses one phrase.

    Attributes:
        matches: The word classes that begin at each token.
        furthest: The furthest token that any attempt reached: the first word that was not understood.
        refused: The first refusal that a rule raised.
    """

    def __init__(self, tokens: Sequence[Token], language: Language, *, allow_title: bool = True) -> None:
        self.tokens = tokens
        self.allows_title = allow_title
        self.matches: list[Matches] = classify(tokens, language)
        self.furthest: int = 0
        self.refused: Refused | None = None
        self.cursor: Cursor = Cursor(tokens, self.matches, language)
        self._memo: dict[int, tuple[list[Clause], int] | None] = {}

    def parse_between(self, start: int, end: int, *, bare: bool = False) -> tuple[Clause, ...] | None:
        """Return the clauses between two tokens, without a title. None if they do not cover all tokens.

        If `bare`, a plain number that is nothing else is an hour, as in "make it 10".
        """
        for is_bare in (False, True)[: 1 + bare]:
            part = Parser(self.tokens[start:end], self.cursor.language)
            part.cursor.bare = is_bare
            for _, at, before, found in part.walk(0):
                if part.skip_end(at) == end - start:
                    return (*before, *found)
        return None

    def walk(
        self, at: int, *, is_behind: bool = False
    ) -> Iterator[tuple[int, int, tuple[Clause, ...], Sequence[Clause]]]:
        """Yield the clauses from a token on, one by one: where each begins and ends, those before it, and itself.

        If they are behind others, words may join the first.
        """
        clauses: tuple[Clause, ...] = ()
        while at < len(self.tokens):
            joined = self.parse_joint(at) if clauses or is_behind else None
            here = self.cursor.at if joined else at
            if self.parse_clause(here) is None:
                here, joined = at, None  # words such as "plus" may begin a clause themselves
            found = self.parse_clause(here)
            if found is None or "vague" in self.matches[here]:
                return
            if joined is not None:
                clauses = (*clauses, joined)
            at = found[1]
            self.furthest = max(self.furthest, at)
            yield here, at, clauses, found[0]
            clauses = (*clauses, *found[0])

    def parse_joint(self, at: int) -> Mark | None:
        """Parse the words that join two clauses, and whether "and" or "also" is among them."""
        c = self.cursor
        c.at = at
        kind = "comma"
        while (token := c.token) is not None:
            if token.text == ";":
                kind = "also"  # descriptions put it between schedules that hold side by side
            if c.take("comma", "polite") is not None:
                continue
            if c.take("also") is not None:
                kind = "also"
            elif c.take("then", "and") is not None:
                kind = kind if kind == "also" else "and"
            elif c.take("only") is not None:
                kind = "only" if kind == "comma" else kind
            elif c.take("filler", "repeat", "remind") is None:
                break
        return Mark(kind) if c.at > at else None

    def skip_end(self, at: int) -> int:
        """Return the token behind words that may end a phrase."""
        c = self.cursor
        c.at = at
        c.skip("comma", "stop", "polite", "filler", "also", "only")
        return c.at

    def parse_clause(self, at: int) -> tuple[list[Clause], int] | None:
        """Return the clauses that one rule reads at a token, and the token behind them. None if there are none."""
        if at not in self._memo:
            self._memo[at] = self._try_rules(at)
        return self._memo[at]

    def _try_rules(self, at: int) -> tuple[list[Clause], int] | None:
        c = self.cursor
        for rule in _find_rules(c.kinds[at]):
            c.at = at
            try:
                result = rule(c)
            except Refused as refused:
                self.refused = self.refused or refused
                continue
            if result is not None and c.at > at:
                return result if isinstance(result, list) else [result], c.at
        return None
