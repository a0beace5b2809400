"""A phrase as a whole: a title, and clauses one after the other.

    phrase  = [intro] [title] clause {[","|"and"] clause} [outro title]
    clause  = repeat | days | times | window | part | limit | start | end | except | zone | relative day

What a clause can be is decided where it begins, without looking back, and remembered: each place is read once, so that
the work grows with the length of the phrase and no faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.language import grammar_clauses as clauses
from cloudsched.language import grammar_clocks as clocks
from cloudsched.language import grammar_points as points
from cloudsched.language.cursor import Cursor
from cloudsched.language.grammar_days import days
from cloudsched.language.grammar_periods import months
from cloudsched.language.lexicon import Language, Matches, classify, may_be_title
from cloudsched.language.nodes import Clause, Days, Mark, Months, Phrase, Span
from cloudsched.language.refusals import Refused
from cloudsched.language.tokens import QUOTE, WORD, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Read = tuple[tuple[Clause, ...], int]
_COUNTED = frozenset({"at", "on", "from", "to", "until", "before", "after", "in", "past", "for"})
_NO_TITLE_ENDS = frozenset({"comma", "dash", "colon", "for", "stop"})


def _one(rule: Callable[[Cursor], Clause | None]) -> Callable[[Cursor], list[Clause] | None]:
    def read(c: Cursor) -> list[Clause] | None:
        found = rule(c)
        return None if found is None else [found]

    return read


def _days(c: Cursor) -> Days | None:
    start = c.at
    c.take("only")
    on = c.take("on", "for") is not None
    c.take("only")
    found = days(c)
    if found is None or not on:
        return found
    return Days(
        found.picks, found.period, found.dates, found.weeks, found.marked, on, found.loose, found.plural, c.span(start)
    )


def _months(c: Cursor) -> Months | None:
    start = c.at
    c.take("only")
    if c.take("in") is None:
        return None
    found = months(c)
    return Months(found, span=c.span(start)) if found else None


_RULES: tuple[Callable[[Cursor], list[Clause] | None], ...] = (
    clauses.except_clause,
    clauses.each,
    clauses.adverb,
    _one(points.relative),
    _one(clocks.window),
    clauses.start_clause,
    clauses.end_clause,
    _one(clocks.times),
    _one(points.edge),
    _one(clocks.part),
    _one(_days),
    _one(points.repeated_edge),
    _one(clocks.grid),
    _one(points.year_limit),
    _one(_months),
    clauses.place_clause,
    clauses.mark,
)


class Parser:
    """Reads one phrase.

    Attributes:
        tokens: Its tokens.
        matches: What each can be.
        furthest: How far any reading came: where the first word is that nobody understood.
        refused: The first refusal that a rule raised.
    """

    def __init__(self, tokens: Sequence[Token], language: Language) -> None:
        self.tokens = tokens
        self.matches: list[Matches] = classify(tokens, language)
        self.furthest = 0
        self.refused: Refused | None = None
        self.cursor = Cursor(tokens, self.matches, language)
        self._memo: dict[int, tuple[list[Clause], int] | None] = {}

    def parse(self) -> Phrase | None:
        """Return the phrase; None if some words belong to nothing."""
        begin = self._after_intro()
        for start in dict.fromkeys((0, begin, *range(begin, len(self.tokens)))):
            title = None
            if start > begin:
                if not self._can_go_on(start):
                    return None
                if not self._is_title(begin, start):
                    continue
                title = self._place(begin, start)
            found = self._clauses(start)
            if found is None:
                continue
            read, end = found
            if end == len(self.tokens):
                return Phrase(title, read, start)
            after = self._outro(end) if title is None else None
            if after is not None:
                return Phrase(after, read, start)
        return None

    def clauses_between(self, start: int, end: int, *, bare: bool = False) -> tuple[Clause, ...] | None:
        """Return the clauses between two places, without a title; None if they do not fill them.

        Args:
            start: Where they begin.
            end: Where they end.
            bare: A plain number is an hour, as in "make it 10".
        """
        part = Parser(self.tokens[start:end], self.cursor.language)
        part.cursor.bare = bare
        found = part._clauses(0)
        return found[0] if found is not None and found[1] == end - start else None

    def _after_intro(self) -> int:
        c = self.cursor
        c.at = 0
        while not c.ended and c.take("polite", "intro", "comma", "colon") is not None:
            pass
        return c.at

    def _clauses(self, start: int) -> _Read | None:
        found: list[Clause] = []
        at = start
        while at < len(self.tokens):
            before = at
            joined = self._joint(at) if found else None
            if joined is not None:
                at = joined.end
            clause = self._clause(at)
            if clause is None and joined is not None:
                at = before
                clause = self._clause(at)  # "plus" and its like may begin a clause themselves
                joined = None
            if clause is None:
                break
            if joined is not None and joined.and_:
                found.append(Mark("and"))
            elif joined is not None:
                found.append(Mark("comma"))
            found += clause[0]
            at = clause[1]
        self.furthest = max(self.furthest, at)
        if not found:
            return None
        return tuple(found), self._skip_end(at)

    def _joint(self, at: int) -> _Joint | None:
        c = self.cursor
        c.at = at
        anded = False
        while True:
            if c.take("comma", "polite") is not None:
                continue
            if c.take("then", "and") is not None:
                anded = True
                continue
            if c.take("filler", "repeat", "only") is not None:
                continue
            break
        return _Joint(c.at, anded) if c.at > at else None

    def _skip_end(self, at: int) -> int:
        c = self.cursor
        c.at = at
        c.skip("comma", "stop", "polite", "filler", "also", "only")
        return c.at

    def _clause(self, at: int) -> tuple[list[Clause], int] | None:
        if at not in self._memo:
            self._memo[at] = self._read_clause(at)
        return self._memo[at]

    def _read_clause(self, at: int) -> tuple[list[Clause], int] | None:
        c = self.cursor
        for rule in _RULES:
            c.at = at
            try:
                found = rule(c)
            except Refused as refused:
                self.refused = self.refused or refused
                continue
            if found is not None and c.at > at:
                return found, c.at
        return None

    def _can_go_on(self, start: int) -> bool:
        """Return whether the word before a place may belong to a title."""
        before = start - 1
        if self.tokens[before].kind == QUOTE:
            return True
        following = self.matches[start] if start < len(self.matches) else None
        if "number" in self.matches[before] and before and not _COUNTED.isdisjoint(self.matches[before - 1]):
            return False  # "at 10" is of no title
        return may_be_title(self.matches[before], following)

    def _is_title(self, begin: int, end: int) -> bool:
        end = self._trimmed(begin, end)
        if end <= begin:
            return False
        last = self.tokens[end - 1]
        if last.kind == QUOTE:
            return True
        unknown = any(self._is_unknown(at) for at in range(max(begin, end - 3), end))
        return unknown and self._is_unknown(end - 1)

    def _is_unknown(self, at: int) -> bool:
        token = self.tokens[at]
        return token.kind == QUOTE or (token.kind == WORD and not self.matches[at] and len(token.text) > 1)

    def _trimmed(self, begin: int, end: int) -> int:
        while end > begin and any(kind in _NO_TITLE_ENDS for kind in self.matches[end - 1]):
            end -= 1
        return end

    def _place(self, begin: int, end: int) -> Span:
        end = self._trimmed(begin, end)
        return self.tokens[begin].start, self.tokens[end - 1].end

    def _outro(self, at: int) -> Span | None:
        """Return the title that follows the schedule: after a colon or dash, in quotes, or as "remind me to …"."""
        c = self.cursor
        c.at = at
        shown = c.take("colon", "dash") is not None
        shown = c.take("outro") is not None or shown
        if c.ended or not (shown or self.tokens[c.at].kind == QUOTE):
            return None
        begin, end = c.at, len(self.tokens)
        for place in range(begin, end):
            following = self.matches[place + 1] if place + 1 < end else None
            if self.tokens[place].kind != QUOTE and not may_be_title(self.matches[place], following):
                return None
        return self._place(begin, end) if self._is_title(begin, end) else None


class _Joint:
    """What joins two clauses."""

    __slots__ = ("and_", "end")

    def __init__(self, end: int, and_: bool) -> None:  # noqa: FBT001 -- a pair
        self.end, self.and_ = end, and_
