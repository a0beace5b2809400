"""The ways to read a whole phrase: every word is in a clause, joins clauses, or has a price as part of the title.

    phrase = [intro] {clause} [outro] [title] {clause} [end]

A phrase has one title, which may stand before, between or behind its clauses. All places that it may have compete: the
words that are least like a schedule cost least. A way whose title costs more than `MOST` is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.language.grammar_clauses import parse_lead
from cloudsched.language.languages import find_languages, says_how_often
from cloudsched.language.lexicon import CLOCK, HARMLESS, MARK, NUMBER, PAIR, PLAIN, QUOTE, WORD, is_plain
from cloudsched.language.nodes import (
    Clause,
    Days,
    Grid,
    Mark,
    Part,
    Phrase,
    Place,
    Relative,
    Repeat,
    Span,
    Times,
    Unit,
    Window,
    Within,
)
from cloudsched.language.places import find_place
from cloudsched.language.result import HINTS
from cloudsched.language.typing_errors import is_misspelt

if TYPE_CHECKING:
    from cloudsched.language.grammar import Parser
    from cloudsched.language.lexicon import Token

MOST: Final = 1.75
"""The highest price of a reading."""

_PLAIN, _FUNCTION, _WEAK, _STRONG, _NEVER = 0.06, 0.08, 2.0, 2.5, 9.0
"""The prices of a word of a title: one that is not about time, one such as "of", one that names a day or a number, one
that only a schedule has, and one that is not known to be no time."""
_MISSPELT: Final = 1.7
"""The price of a word that is probably one of the lexicon with a typing error."""
_BACK: Final = 1.75
"""What a weak word costs less if a plain one follows: "Friday drinks"."""
_BETWEEN: Final = 1.2
"""The price of a weak word behind a plain one: "ring April about the bill"."""
_COUNT: Final = 0.45
"""The price of a number, and of its unit, within a title: "skip rope 20 minutes"."""
_BARE, _NO_DAY, _EDGE, _NO_WORD = 0.3, 0.4, 1.0, 2.0
"""What it costs if a day stands bare before the title, if no day is said, if a title begins or ends with a word such as
"of" beside a clause, and if it has no plain word."""
_UNTIMED: Final = 1.7
"""What it costs if the schedule before a title says no time of day: "The 5th wave"."""
_DIVIDED: Final = 0.35
"""What it costs more if the clauses stand within the title: "dinner at 8 with Bob"."""
_SHOWN: Final = 0.35
"""The most that a word of time costs in a title that words such as "remind me to" introduce."""
_LONGEST_NAME: Final = 4
"""The most words of the name of a place, with the word for a time."""
_NO_LEAD: Final = 0.5
"""What it costs more if a frequency that begins a title says nothing of when: "weekly report"."""

_WEAK_KINDS: Final = frozenset(
    """
    weekday weekdays month part parts number tens ordinal ordinal-end unit feast named-time adverb bi tri part-adverb
    dayset daysets twice recurring holiday fraction half hours-said hour-number minute-number week-number day-number
    second-number day-word the-hour unit-short oclock hour-mark halfday-short noon-mark edge edge-noun pair next
    clock-minute minute-unit shift day-end some possessive
    """.split()  # noqa: SIM905 -- easier to read
)
_FUNCTIONS: Final = (HARMLESS | {"start", "repeat", "other", "closest", "hence"}) - _WEAK_KINDS
_CALENDAR: Final = frozenset(
    {
        "weekday",
        "weekdays",
        "month",
        "feast",
        "adverb",
        "bi",
        "tri",
        "dayset",
        "daysets",
        "pair",
        "date",
        "relday",
        "possessive",
    }
)
"""The kinds of words that name days or a frequency of days."""
_BEFORE_TIMES: Final = frozenset({"at", "each", "before", "after", "until", "from", "on", "in", "by"})
_BEFORE_DAYS: Final = frozenset({"on", "ordinal", "ordinal-end", "each", "next"})
_LEFT_OPEN: Final = frozenset({"and", "or", "until", "before", "after", "past", "than", "from"})
"""The kinds of words behind which a title cannot end."""
_OF_CLOCKS: Final = frozenset({"oclock", "halfday", "named-time", "half", "past", "hours-said"})
"""The kinds of words of a time of day."""
_OPEN: Final = frozenset({"condition", "occasion", "hedge", "only"})
"""The kinds of words behind a schedule that say that it depends on something."""
_COUNTED: Final = frozenset({"at", "on", "in", "from", "to", "until", "before", "after", "past"})
_LOOSE_ENDS: Final = frozenset(
    {
        "at",
        "on",
        "in",
        "from",
        "by",
        "of",
        "to",
        "and",
        "or",
        "article",
        "the",
        "until",
        "before",
        "after",
        "past",
        "than",
    }
)
_VERBS: Final = frozenset({"skip", "start", "repeat", "verb-intro", "relocate", "make", "add-more", "postpone"})
"""The kinds of verbs that a change may begin with, and a title, too."""
_BEFORE_PARTS: Final = frozenset(
    {"article", "in", "on", "at", "each", "next", "relday", "weekday", "weekdays", "part-of", "the", "of", "about"}
)
"""The kinds of words behind which a part of the day belongs to the schedule: "in the morning", "Monday morning"."""
_INTROS: Final = frozenset({"intro", "remind"})
_CLOSING: Final = frozenset({"stop", "polite"})
_GOVERNING: Final = frozenset({"at", "from", "to", "until", "before", "after", "past", "than"})
"""The kinds of words that say when together with the time behind them."""
_SIGNS: Final = frozenset({"comma", "dash", "colon", "stop", "by"})
_BEGINS_NO_TITLE: Final = frozenset({"condition", "after", "before", "at", "by", "until", "from", "between"})


def find_covers(parser: Parser) -> list[Phrase]:
    """Return the ways to read a phrase, the cheapest first."""
    covers = sorted(_Covers(parser).find(), key=lambda each: each.price)
    seen: dict[tuple[object, ...], Phrase] = {}
    for each in covers:
        seen.setdefault((each.title, *map(repr, each.clauses)), each)
    return list(seen.values())


_Start = tuple[int, tuple[Clause, ...], float, bool]
"""A token at which a title may begin, the clauses before it, their price, and whether words show that one follows."""


class _Covers:
    def __init__(self, parser: Parser) -> None:
        self._parser, self._tokens, self._matches = parser, parser.tokens, parser.matches
        self._end = self._find_end()
        self._is_asked = False
        self._noun: Span | None = None
        self._compounds = self._find_compounds()
        self._prices = [self._price(at) for at in range(self._end)]
        self._rest: dict[int, tuple[Clause, ...] | None] = {}

    def _find_end(self) -> int:
        """Return the token behind the last one that counts: an intro such as "trag … ein" has a closing word."""
        end = len(self._tokens)
        while end and not _CLOSING.isdisjoint(self._matches[end - 1]):
            end -= 1
        is_closed = end and "closer" in self._matches[end - 1] and not _INTROS.isdisjoint(self._matches[0])
        return end - 1 if is_closed else len(self._tokens)

    def find(self) -> Iterator[Phrase]:
        """Yield all ways."""
        for start, clauses, extra, is_shown in self._list_starts():
            if start == self._end:
                if clauses:
                    yield Phrase(self._noun, clauses, extra, 0, self._is_asked)
                continue
            if self._parser.allows_title:
                yield from self._find_titled(start, clauses, extra, is_shown=is_shown)

    def _find_titled(self, begin: int, before: tuple[Clause, ...], extra: float, *, is_shown: bool) -> Iterator[Phrase]:
        c = self._parser.cursor
        c.at = begin
        c.take("article")
        lead = c.attempt(parse_lead)
        after = c.at
        if lead and (c.ended or not {"outro", "comma"}.isdisjoint(self._matches[after])):
            lead = None
        spared = sum(self._prices[begin:after]) if lead else 0.0
        is_sure = any(_is_timed(each) or _is_sure_day(each) for each in before)
        if is_shown and is_sure and "for" not in self._matches[begin - 1]:
            yield from self._find_shown(begin, before, extra)
        price = extra + self._price_start(begin, before)
        words = 0
        for end in range(begin + 1, self._end + 1):
            price += self._prices[end - 1]
            words += self._is_word(end - 1) or end - 1 in self._compounds
            if price - spared > MOST:
                return
            rest = self._read_rest(end)
            if rest is None and words and not (is_shown and before):
                yield from self._find_divided(begin, end, before, price + self._price_end(begin, end), words)
            if rest is None or not (before or rest or lead):
                continue
            whole = price + self._price_end(begin, end) + (0 if words else _NO_WORD)
            if before and any(isinstance(each, Within) or self._is_bare_part(each, end) for each in rest):
                whole += _WEAK
            if before and not is_shown and not any(map(_is_timed, (*before, *rest))):
                says_each = any("each" in here or "adverb" in here for here in self._matches[:begin])
                is_sure = any(map(_is_sure_day, before)) and not any(map(self._is_of_clock, range(begin, end)))
                whole += _BARE if says_each or is_sure else _UNTIMED
                if words == 1 and not rest and not any(isinstance(each, Relative) for each in before):
                    whole += _UNTIMED  # a single unknown word may have been meant as a time
            if rest and isinstance(rest[0], Mark) and end < self._end and "verb-intro" in self._matches[end]:
                whole += _BARE  # "10k run | on Saturday"
            title = self._find_span(begin, end)
            if title is None or self._moves(begin, end):
                continue
            if lead and end > after and _may_lead(lead, (*before, *rest)):
                clauses = (*lead, *before, *rest)
                yield from self._price_whole(title, clauses, whole - spared, words)
                whole += _NO_LEAD
            yield from self._price_whole(title, (*before, *rest), whole, words)
            names_one = any(_names_day(each) and not _repeats(each) for each in rest)
            if is_shown and before and names_one and not any(map(_names_day, before)):
                # "remind me at noon that rent is due | on Friday": that may be what, and not when
                rival = self._find_span(begin, self._end)
                yield Phrase(rival, before, whole + _PLAIN, words, self._is_asked, is_rival=True)

    def _find_shown(self, begin: int, before: tuple[Clause, ...], price: float) -> Iterator[Phrase]:
        """Yield the way in which all words behind "to" are the title: "remind me on Friday at 5 to | plan Monday"."""
        prices = self._prices[begin : self._end]
        words = sum(map(self._is_word, range(begin, self._end)))
        title = self._find_span(begin, self._end)
        repeats = any("each" in self._matches[at] and self._names_time(at + 1) for at in range(begin, self._end - 1))
        if words and title is not None and _NEVER not in prices and not repeats:
            price += _price_days(before) + sum(min(each, _SHOWN) for each in prices)
            yield Phrase(title, before, price, words, self._is_asked)

    def _find_divided(
        self, begin: int, end: int, first: tuple[Clause, ...], price: float, words: int
    ) -> Iterator[Phrase]:
        """Yield the ways in which a title goes on behind the clauses: "dinner | at 8 | with Bob"."""
        title = self._find_span(begin, end)
        has_word = any(self._is_word(at) and at not in self._compounds for at in range(begin, end))
        is_whole = has_word and {*_LOOSE_ENDS, "for", "then", "greeting"}.isdisjoint(self._matches[end - 1])
        if title is None or not is_whole or self._moves(begin, end) or "for" in self._matches[end]:
            return
        if first and not (self._may_be_object(begin) and self._find_stop(begin) >= end):
            return
        for _, at, before, found in self._walk(end):
            clauses = (*first, *before, *found)
            if isinstance(found[-1], Mark) or not any(_is_timed(each) or _is_sure_day(each) for each in clauses):
                continue
            between = self._may_stand_between(at) if at < self._end else False
            for stop in range(at + 1, self._find_stop(at) + 1):
                if not self._ends_title(at, stop) or not (between or stop == self._end):
                    continue
                last = self._read_rest(stop)
                rest = self._find_span(at, stop)
                if last is None or rest is None:
                    continue
                whole = price + _DIVIDED + sum(self._prices[at:stop])
                for way in self._price_whole(title, (*clauses, *last), whole, words):
                    yield replace(way, rest=rest)

    def _find_stop(self, begin: int) -> int:
        """Return the token behind the words that may be the rest of a title: none is about time, or a condition."""
        starts_days = "on" in self._matches[begin] if begin < self._end else False  # "on match days"
        if begin >= self._end or self._tokens[begin].glued or self._names_zone(begin):
            return begin
        at = begin
        while at < self._end and _OPEN.isdisjoint(self._matches[at]) and self._tokens[at].kind != NUMBER:
            if self._prices[at] > _FUNCTION and "on" not in self._matches[at]:
                break
            at += 1
        return min(at, begin + 1) if starts_days else at

    def _may_stand_between(self, at: int) -> bool:
        """Return whether words may be of the title although clauses follow: "with Bob", or a verb that comes last."""
        begins_another = not {"and", "or", "then"}.isdisjoint(self._matches[at])
        return not begins_another and (self._parser.cursor.language.verbs_last or bool(self._matches[at]))

    def _ends_title(self, begin: int, end: int) -> bool:
        return any(map(self._is_word, range(begin, end))) and _LEFT_OPEN.isdisjoint(self._matches[end - 1])

    def _names_time(self, at: int) -> bool:
        return not _WEAK_KINDS.isdisjoint(self._matches[at])

    def _is_of_clock(self, at: int) -> bool:
        """Return whether a token may be of a time of day."""
        return self._tokens[at].kind == CLOCK or not _OF_CLOCKS.isdisjoint(self._matches[at])

    def _price_whole(
        self, title: Span | None, clauses: tuple[Clause, ...], price: float, words: int
    ) -> Iterator[Phrase]:
        no_day = _price_days(clauses)
        price += no_day
        if no_day and title is not None and self._names_days(title):
            price += _WEAK  # "Monday gym | at 7": the day is no title
        event = 0 if title is None else self._find_event(title)  # "sunset walk": when that is, nobody knows here
        if event and not (any(map(_names_day, clauses)) and (event > 1 or any(map(_is_timed, clauses)))):
            return
        if any(isinstance(each, Within) for each in clauses) and any(map(_repeats, clauses)):
            price += _WEAK  # "plan next week every day at 9": what "next week" belongs to is not known
        if clauses and price <= MOST:
            yield Phrase(title, clauses, price, words, self._is_asked)

    def _moves(self, begin: int, end: int) -> bool:
        """Return whether words move a task of before: "move gym | from monday to friday"."""
        verb = self._matches[begin].keys() & {"relocate", "postpone"}
        return bool(verb) and end < self._end and "from" in self._matches[end]

    def _names_days(self, title: Span) -> bool:
        """Return whether a title has words that name days."""
        tokens = [at for at, token in enumerate(self._tokens) if title[0] <= token.start < title[1]]
        return any(not _CALENDAR.isdisjoint(self._matches[at]) and at not in self._compounds for at in tokens)

    def _find_event(self, title: Span) -> int:
        """Return 1 if a title has words such as "sunset", which need a day and a time, 2 for "my birthday", else 0."""
        tokens = [at for at, token in enumerate(self._tokens) if title[0] <= token.start < title[1]]
        return next((match.value for at in tokens if (match := self._matches[at].get("half-known"))), 0)

    def _find_loose(self, begin: int, end: int) -> int | None:
        """Return the token in a clause from which on it may belong to the title: "at 10:00 | morning pages"."""
        last = end - 1
        if last > begin and (self._stands_bare(last) or self._is_minute(last)):
            return last
        if last > begin + 2 and self._is_second_amount(last - 1):
            return last - 1
        if not self._is_asked:
            return None
        return next((at for at in range(begin + 1, end) if "to" in self._matches[at]), None)  # "remind me … | to …"

    def _list_starts(self) -> Iterator[_Start]:
        """Yield each token at which a title may begin, with the clauses before it and their price."""
        parser, c = self._parser, self._parser.cursor
        at = self._skip_intro()
        yield from self._start_at(at, (), 0.0)
        c.at = at
        c.skip("intro", "polite", "comma", "colon", "verb-intro")
        behind = c.at
        if behind > at:
            yield behind, (), 0.3, True
        extra = 0.0
        for begin, end, before, found in self._walk(behind):
            cut = self._find_loose(begin, end)
            shorter = None if cut is None else parser.parse_between(begin, cut)
            if cut is not None and shorter is not None:
                yield from self._start_at(cut, (*before, *shorter), extra)
                extra += _BARE
            yield from self._start_at(end, (*before, *found), extra)

    def _walk(self, at: int) -> Iterator[tuple[int, int, tuple[Clause, ...], Sequence[Clause]]]:
        """Yield the clauses from a token on, one by one: where each begins and ends, those before it, and itself."""
        parser = self._parser
        clauses: list[Clause] = []
        while at < self._end:
            joined = parser.parse_joint(at) if clauses else None
            here = parser.cursor.at if joined is not None else at
            found = parser.parse_clause(here)
            if found is None and joined is not None:
                here = at
                found, joined = parser.parse_clause(at), None
            if found is None:
                break
            if joined is not None:
                clauses.append(joined)
            at = found[1]
            parser.furthest = max(parser.furthest, at)
            yield here, at, tuple(clauses), found[0]
            clauses += found[0]

    def _start_at(self, at: int, clauses: tuple[Clause, ...], extra: float) -> Iterator[_Start]:
        yield (min(self._parser.skip_end(at), self._end) if clauses else at), clauses, extra, False
        if not clauses:
            return
        c = self._parser.cursor
        c.at = at
        c.skip("comma", "colon", "dash", "polite", "then", "filler", "intro-behind")
        is_asked = c.skip("remind")
        outro = c.take("outro")
        c.skip("comma")
        if c.at == at or c.at >= self._end:
            return
        self._is_asked = self._is_asked or is_asked or bool(outro and outro.value)
        is_shown = self._is_asked or "colon" in self._matches[c.at - 1] or "dash" in self._matches[c.at - 1]
        yield c.at, clauses, extra + (0.0 if is_shown or outro is None else 0.2), is_shown

    def _skip_intro(self) -> int:
        c = self._parser.cursor
        c.at = 0
        while not c.ended:
            if c.take("remind") is not None:
                self._is_asked = True
            elif (asked := c.take("intro-noun")) is not None:  # "set an alarm" is the title if there is no other
                noun = self._tokens[asked.end - 1]
                self._noun = noun.start, noun.end
                c.take("for")
            elif c.take("polite", "intro", "comma", "colon") is None:
                break
        return c.at

    def _read_rest(self, at: int) -> tuple[Clause, ...] | None:
        """Return the clauses from a token behind the title to the end. None if they do not reach it."""
        return () if at == self._end else self._join(at)

    def _join(self, at: int) -> tuple[Clause, ...] | None:
        """Return what joins the clauses before a token and from there on, and these clauses."""
        joined = self._parser.parse_joint(at)
        if joined is not None:
            rest = self._follow(self._parser.cursor.at)
            if rest is not None:
                return (joined, *rest)
        return self._follow(at)

    def _follow(self, at: int) -> tuple[Clause, ...] | None:
        """Return the clauses from a token to the end, at least one. None if they do not reach it."""
        if at not in self._rest:
            found = self._parser.parse_clause(at)
            self._rest[at] = None
            if found is not None:
                self._parser.furthest = max(self._parser.furthest, found[1])
                rest = self._continue(found[1])
                self._rest[at] = None if rest is None else (*found[0], *rest)
        return self._rest[at]

    def _continue(self, at: int) -> tuple[Clause, ...] | None:
        """Return the clauses from a token behind a clause to the end. None if they do not reach it."""
        return () if self._parser.skip_end(at) >= self._end else self._join(at)

    def _price(self, at: int) -> float:
        """Return the price of a word within a title."""
        token, here = self._tokens[at], self._matches[at]
        if token.kind == QUOTE:
            return 0.0
        if "half-known" in here:
            self._parser.block(at, "half-known")
            around = here.keys() | (self._matches[at - 1].keys() if at else set())
            is_subject = _BEFORE_TIMES.isdisjoint(around)
            return _WEAK - _BACK if is_subject else _NEVER
        if at in self._compounds:
            return _PLAIN
        is_within = 0 < at < self._end - 1 and self._is_word(at - 1) and self._is_word(at + 1)
        if _is_written_time(token) and not is_within:
            return _STRONG  # "standup 9.15"
        if "stop-reminding" in here:
            return _NEVER
        if token.kind == MARK:
            return _PLAIN if here.keys() <= HARMLESS else _STRONG
        if here.keys() <= PLAIN:
            return self._price_plain(at)
        if not here.keys() - _FUNCTIONS - PLAIN:
            return _FUNCTION
        if here.keys() - _FUNCTIONS - PLAIN <= _WEAK_KINDS:
            is_counted = at and not _COUNTED.isdisjoint(self._matches[at - 1])
            if "number" in here and is_counted:
                return _WEAK
            behind = max(match.end for match in here.values())
            if behind < self._end and self._is_like_a_word(behind):
                return _WEAK - _BACK
            if "number" in here and at + 2 < self._end and "unit" in self._matches[at + 1] and self._is_word(at + 2):
                return _WEAK - _BACK  # "24 hour fitness"
            if at and (here.keys() & {"number", "tens"} or "number" in self._matches[at - 1]):
                return _COUNT
            if "unit" in here and at > 1 and "article" in self._matches[at - 1] and self._is_word(at - 2):
                return _COUNT  # "plan the week"
            return _BETWEEN if at and self._is_word(at - 1) else _WEAK
        is_between = 0 < at < self._end - 1 and self._is_word(at - 1) and self._may_be_object(at + 1)
        return _FUNCTION if "to" in here and is_between else _STRONG  # "walk through the park"

    def _find_compounds(self) -> set[int]:
        """Return the tokens written together with a word that is not about time: "7-minute-workout", "5k"."""
        found: set[int] = set()
        starts = [at for at in range(len(self._tokens)) if not at or not self._is_glued(at)]
        for first, end in pairwise([*starts, len(self._tokens)]):
            parts = range(first, end)
            if len(parts) > 1 and any(self._tokens[at].kind == WORD and not self._matches[at] for at in parts):
                found.update(parts)
        return found

    def _is_glued(self, at: int) -> bool:
        """Return whether a token is one word with the token before it."""
        token, before = self._tokens[at], self._tokens[at - 1]
        is_hyphen = "-" in {token.text, before.text}
        return token.glued and (is_hyphen or (before.kind == NUMBER and token.kind == WORD))

    def _price_plain(self, at: int) -> float:
        word, language = self._tokens[at].text, self._parser.cursor.language
        is_day = at > 0 and not _BEFORE_DAYS.isdisjoint(self._matches[at - 1]) and word.endswith(language.day_endings)
        if (is_day and not self._matches[at]) or says_how_often(word) or find_languages(word, language):
            self._parser.block(at)
            return _NEVER
        return _MISSPELT if not self._matches[at] and is_misspelt(word, language) else _PLAIN

    def _price_start(self, begin: int, before: Sequence[Clause]) -> float:
        here = self._matches[begin]
        price = 0.0
        is_compound = begin + 1 < self._end and self._tokens[begin + 1].text == "-"
        if not is_compound and not _BEGINS_NO_TITLE.isdisjoint(here) and self._tokens[begin].kind != QUOTE:
            self._parser.block(begin, hint=HINTS["half-known"])
            price += _WEAK
        elif before and begin + 1 < self._end and "only" in self._matches[begin + 1]:
            price += _WEAK  # "every day at 8am | summer only"
        elif before and not here.keys().isdisjoint({"and", "or"}):
            price += _WEAK  # "at 8am | and in the evening"
        elif before and here and not here.keys() - _FUNCTIONS and not here.keys() & PLAIN and "article" not in here:
            price += _EDGE
        is_verb = not _VERBS.isdisjoint(here) and begin + 1 < self._end and self._may_be_object(begin + 1)
        if is_verb:
            price = _FUNCTION - self._prices[begin]
        last = before[-1] if before else None
        if _is_bare(last):
            price += _BARE
        if before and self._belongs_behind(begin - 1):
            price += _WEAK
        if begin == 1 and isinstance(last, Part) and not last.each:
            price += _EDGE  # "morning pages at 9"
        if isinstance(last, Times) and find_place(self._tokens, begin) is not None:
            price += _DIVIDED  # a city behind a time may be its zone
        if isinstance(last, Times) and self._names_zone(begin):
            self._parser.block(begin)
            price += _WEAK
        return price

    def _names_zone(self, at: int) -> bool:
        """Return whether words behind a time of day name a place that is not known: "9:00 Narnia time"."""
        for place in range(at, min(at + _LONGEST_NAME, self._end)):
            here = self._matches[place]
            if "zone-of" in here:
                return True
            if "zone-time" in here:
                behind = self._matches[place + 1] if place + 1 < self._end else {}
                return place > at and "to" not in behind and "for" not in behind
            if not self._is_word(place):
                return False
        return False

    def _belongs_behind(self, at: int) -> bool:
        """Return whether the last word of a schedule may belong to the title behind it: a verb, a second weekday."""
        here, before = self._matches[at], self._matches[at - 1] if at else {}
        is_second = "weekday" in here and not {"weekday", "weekdays", "dayset", "daysets"}.isdisjoint(before)
        return not _VERBS.isdisjoint(here) or is_second or (at > 0 and self._stands_bare(at))

    def _is_minute(self, at: int) -> bool:
        """Return whether a number stands behind "o'clock", so that it may also count the things of a title."""
        is_behind = at > 0 and self._is_number(at) and "oclock" in self._matches[at - 1]
        return is_behind and not self._tokens[at].glued

    def _is_second_amount(self, at: int) -> bool:
        """Return whether a number and a unit follow others at once: "every 2 hours | 5 minutes stretching"."""
        return self._is_number(at) and "unit" in self._matches[at - 1] and "unit" in self._matches[at + 1]

    def _is_number(self, at: int) -> bool:
        return not self._matches[at].keys().isdisjoint({"number", "tens"})

    def _is_bare_part(self, clause: Clause, at: int) -> bool:
        """Return whether a part of the day behind the title rather belongs to it: "parents evening"."""
        return isinstance(clause, Part) and self._tokens[at].start == clause.span[0] and "part" in self._matches[at]

    def _stands_bare(self, at: int) -> bool:
        """Return whether a part of the day stands behind a time without a word that joins them: "10:00 morning"."""
        before = self._matches[at - 1] if at else {}
        if "relday" in self._matches[at]:  # "morgen" is tomorrow, too
            return False
        if "and" in before and at > 1 and not self._matches[at - 2].keys().isdisjoint({"part", "parts"}):
            return False  # "morning and evening"
        return "part" in self._matches[at] and at > 0 and _BEFORE_PARTS.isdisjoint(self._matches[at - 1])

    def _may_be_object(self, at: int) -> bool:
        """Return whether a token may follow a verb: "skip rope", "start the dishwasher", but not "skip Friday"."""
        here = self._matches[at]
        return self._is_word(at) or ("article" in here and at + 1 < self._end and self._is_word(at + 1))

    def _price_end(self, begin: int, end: int) -> float:
        last = end - 1
        while last > begin and not _SIGNS.isdisjoint(self._matches[last]):
            last -= 1
        here = self._matches[last]
        price = 0.0
        is_loose = not here.keys().isdisjoint(_LOOSE_ENDS) and not here.keys() & {"generic", "own"}
        if is_loose and end < self._end and not here.keys().isdisjoint(_GOVERNING):
            price += _WEAK  # "an hour before | 6pm", "move gym to | 6am"
        elif is_loose and "hence" not in here:
            price += _EDGE
        following = self._matches[end] if end < self._end else {}
        if "number" in here and "unit" in following:  # "watch 60 | minutes"
            price += _WEAK
        is_letter = here == {} and len(self._tokens[last].text) == 1 and last not in self._compounds
        if end < self._end and is_letter:  # "à 10:15"
            price += _WEAK
        if self._prices[last] == _WEAK - _BACK:  # the word that made it cheap is not in the title
            price += _BACK
        return price

    def _is_word(self, at: int) -> bool:
        token = self._tokens[at]
        return token.kind == QUOTE or (token.kind == WORD and is_plain(self._matches[at]) and len(token.text) > 1)

    def _is_like_a_word(self, at: int) -> bool:
        """Return whether a word is not about time, or a verb of a change, which may be a noun: "night shift"."""
        return self._is_word(at) or (bool(self._matches[at]) and self._matches[at].keys() <= PLAIN | _VERBS)

    def _find_span(self, begin: int, end: int) -> Span | None:
        while end > begin and not _SIGNS.isdisjoint(self._matches[end - 1]):
            end -= 1
        while begin < end - 1 and "comma" in self._matches[begin]:
            begin += 1
        return (self._tokens[begin].start, self._tokens[end - 1].end) if end > begin else None


def _is_bare(clause: Clause | None) -> bool:
    """Return whether a day, a frequency or noon alone says when, so that it may belong to the title behind it."""
    match clause:
        case Days():
            return not clause.marked and not clause.on
        case Repeat():
            return clause.adverb
        case Times():
            return any(clock.named for clock in clause.clocks)
    return False


def _is_written_time(token: Token) -> bool:
    """Return whether a token is written as a time is: 9:15 or 9.15."""
    if token.kind != PAIR or len(token.value) != 2 or token.text[-3] != ".":
        return token.kind == CLOCK
    hour, minute = token.value
    return hour <= 23 and minute <= 59


def _is_sure_day(clause: Clause) -> bool:
    """Return whether a clause names a day with a word that no title has behind it: "tomorrow", "on Friday"."""
    match clause:
        case Days():
            return clause.marked or clause.on
        case Part():
            return clause.today
    return isinstance(clause, Relative)


def _is_timed(clause: Clause) -> bool:
    """Return whether a clause says at what time of day it is."""
    match clause:
        case Times() | Window() | Grid():
            return True
        case Relative():
            return clause.length is not None
        case Repeat():
            return clause.unit <= Unit.HOUR
    return False


def _repeats(clause: Clause) -> bool:
    return isinstance(clause, Repeat) or (isinstance(clause, Days) and (clause.marked or clause.plural))


def _names_day(clause: Clause) -> bool:
    match clause:
        case Days() | Repeat():
            return True
        case Relative():
            return clause.length is None
        case Part():
            return clause.each or clause.today
    return False


def _may_lead(lead: Sequence[Clause], others: Sequence[Clause]) -> bool:
    """Return whether a frequency before a title is the schedule's: not if the rest says how often, or when it is once.

    "Recurring" says nothing alone.
    """
    if any(isinstance(each, Mark) for each in lead):
        return True
    return not any(
        isinstance(each, Repeat | Relative | Within)
        or (isinstance(each, Part) and (each.each or each.today))
        or (isinstance(each, Days) and each.marked and not each.plural)
        for each in others
    )


def _price_days(clauses: Sequence[Clause]) -> float:
    """Return the price of a schedule that names times of day alone."""
    named = [each for each in clauses if not isinstance(each, Place | Mark)]
    is_timed = all(
        isinstance(each, Times | Window) or (isinstance(each, Part) and not each.today and not each.each)
        for each in named
    )
    return _NO_DAY if is_timed else 0.0
