"""The ways to read a whole phrase: every word is in a clause, joins clauses, or has a price as part of the title.

    phrase = [intro] {clause} [outro] [title] {clause} [end]

A phrase has one title, which may stand before, between or behind its clauses. All places that it may have compete: the
words that are least like a schedule cost least. A way whose title costs more than `MOST` is none.

What a title costs is said by tables. A row names what stands where, and its price: ``weak -1:plain`` is a word of the
class "weak" behind one of the class "plain". ``|`` is "or", ``!`` is "none of".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar
from unicodedata import category

from cloudsched.language.grammar_clauses import parse_lead
from cloudsched.language.languages import find_languages, says_how_often
from cloudsched.language.lexicon import HARMLESS, NUMBER, PLAIN, WORD
from cloudsched.language.nodes import Clause, Period, Phrase, Repeat, Span, Unit
from cloudsched.language.typing_errors import is_misspelt

if TYPE_CHECKING:
    from cloudsched.language.grammar import Parser

MOST: Final = 1.75
"""The highest price of a reading."""
_NEVER: Final = 9.0
"""The price of a word that no title has, whatever shows that it is one."""
_VERB: Final = 0.08
"""The price of a verb such as "start" that begins a title with its object."""
_SHOWN: Final = 0.35
"""The most that a word of time costs in a title that words such as "remind me to" introduce."""
_DIVIDED: Final = 0.35
"""What it costs more if the clauses stand within the title: "dinner at 8 with Bob"."""
_DAY_ALONE: Final = 0.05
"""What it costs more if a frequency that begins a title says nothing of when, or a day at its end: "weekly report"."""
_NO_CUT: Final = 0.3
"""What it costs more if the last words of a clause are not left to the title: "at 10:00 | morning pages"."""

_FEW: Final = 6
"""The hours that were meant as a length rather than as a time of day: "2h workout"."""
_AMOUNTS: Final = frozenset(range(1000, 2400)) - frozenset(range(1900, 2100))
"""Times of day without a colon that may be an amount or a name: "flight LH 1830"."""

T = TypeVar("T")
_Condition = tuple[str, bool, frozenset[str]]
_Rows = list[tuple[list[_Condition], T]]


def _compile(table: Mapping[str, T]) -> _Rows[T]:
    """Return the rows of a table: what must, or must not, stand where. A word itself stands at ``0``."""

    def parse(condition: str) -> _Condition:
        place, _, kinds = condition.rpartition(":")
        return place or "0", kinds.startswith("!"), frozenset(kinds.strip("!").split("|"))

    return [(list(map(parse, pattern.split())), value) for pattern, value in table.items()]


def _find(rows: _Rows[T], said: Mapping[str, AbstractSet[str]]) -> Iterator[T]:
    """Yield the values of the rows that hold, given the kinds of what stands where."""
    for conditions, value in rows:
        for place, is_absent, kinds in conditions:
            if said[place].isdisjoint(kinds) is not is_absent:
                break
        else:
            yield value


_PLACES: Final = ("-2", "-1", "0", "1", "2", "3", "4")
"""The places around a word that a row may name."""

_FUNCTIONS: Final = HARMLESS | {"start", "repeat", "other", "hence"}
_WEAK: Final = frozenset(
    """
    weekday weekdays month part parts number tens ordinal ordinal-end unit feast named-time adverb bi tri part-adverb
    dayset daysets twice recurring holiday fraction half hours-said hour-number minute-number week-number day-number
    second-number day-word the-hour unit-short oclock hour-mark halfday-short noon-mark edge edge-noun pair next
    clock-minute minute-unit shift day-end some possessive night-from night-to
    """.split()  # noqa: SIM905 -- easier to read
)
_CHANGES: Final = frozenset({"skip", "start", "repeat", "verb-intro", "relocate", "make", "add-more", "postpone"})
"""The classes of verbs that a change may begin with, and a title, too."""
_LEVELS: Final = {
    "no-time": PLAIN,
    "verb": PLAIN | _CHANGES,
    "function": _FUNCTIONS - PLAIN - _WEAK,
    "half-plain": _FUNCTIONS - _WEAK | PLAIN,
    "weak": _FUNCTIONS | _WEAK,
}
"""How little a word says about time: nothing, as "of", or as the name of a day or a number."""

_KINDS: Final = _compile(
    {
        "quote": "plain",
        "word no-time !letter": "plain",
        "relocate -1:part|ordinal -2:!article|in|relday 1:!article|own": "plain",  # "night shift"
        "plain|verb|compound": "subject",
        "part|halfday-short leads": "subject",  # "Friday night magic"
        "plain": "object",
        "article 1:plain": "object",
        "skip|start|repeat|verb-intro|relocate|make|add-more|postpone": "change",
        "part !relday -1:!article|in|on|at|each|next|relday|weekday|weekdays|part-of|the|of|about|and|rim": "bare-part",
        "bare-part": "loose",
        "number|tens !glued -1:oclock": "loose",
        "feast leads": "loose",  # "except April 2 | Christmas cards"
        "part|unit|day-word 1:of 2:plain|own": "leads",  # "night of the museums"
        "number|tens|a -1:unit 1:unit|unit-short": "loose",  # "every 2 hours | 5 minutes stretching"
        "few 1:hour-mark": "lasting",
        "lasting 2:plain": "loose",
        "comma|dash|colon|stop|by": "sign",
        "!unknown|and|or|then": "inner",
        "condition|occasion|hedge|only": "open",
        "each 1:weak": "recurs",
        "zone-of": "zone",
        "plain 1:zone-time 2:!to|for": "zone",
    }
)
"""More classes of a word, by its neighbours: the object of a verb, one that may begin the title within a clause."""

_WORDS: Final = _compile(
    {
        "ordinal-end leads": 0.25,  # "last call"
        "next|ordinal-end 1:possessive 2:plain": 0.25,  # "last week's numbers"
        "strong !half-known|to": 2.5,
        "quote": 0.0,
        "half-known -1:at|each|before|after|until|from|on|in|by": _NEVER,
        "half-known at|each|before|after|until|from|on|in|by": _NEVER,
        "half-known": 0.25,
        "compound": 0.06,
        "written -1:!plain": 2.5,  # "standup 9.15"
        "written 1:!plain": 2.5,
        "stop-reminding": 2.5,
        "foreign": _NEVER,
        "like-a-day -1:on|ordinal|ordinal-end|each|next": _NEVER,
        "misspelt": 1.7,
        "mark|no-time": 0.06,
        "function|half-plain|verb": 0.08,
        "month -1:rim|clause|clock|oclock|halfday|weekday|to 1:for 2:plain": 0.45,  # "March for science"
        "weak number -1:at|on|in|from|to|until|before|after|past": 2.0,
        "weak leads": 0.25,  # "Friday drinks"
        "weak number 1:unit|hour-mark 2:plain": 0.25,  # "24 hour fitness"
        "month|weekday -1:greeting": 0.08,  # "Mr Friday"
        "month|weekday -1:about|of|with|for -2:plain": 0.45,  # "lunch with June"
        "weak number|tens -1:!rim": 0.45,  # "skip rope 20 minutes"
        "weak -1:number": 0.45,
        "weak unit -1:article -2:plain": 0.45,  # "plan the week"
        "part -1:plain 1:!and|comma": 0.4,  # "movie night"
        "adverb -1:plain": 2.0,
        "weak -1:plain": 1.2,  # "ring April about the bill"
        "!rim": 2.5,
    }
)
"""The price of a word of a title: that of the first row that holds."""

_BEGINNINGS: Final = _compile(
    {
        "condition|after|before|at|by|until|from|between 1:!dash": _NEVER,
        "last:clause glued number|pair|ordinal|clock|date": _NEVER,  # "at 9,30"
        "last:clause 1:only": 2.0,  # "every day at 8am | summer only"
        "last:clause and|or": 2.0,  # "at 8am | and in the evening"
        "last:clause function !article": 1.0,
        "last:bare": 0.3,
        "last:clause -1:change": 2.0,  # the last word of the schedule may belong to the title
        "last:clause -1:bare-part": 2.0,
        "last:clause -1:compound compound": 2.0,
        "last:days last:bare -1:ordinal -1:word": 2.0,  # "second | opinion"
        "last:times -1:hour-mark -2:lasting": 0.45,  # "2h | workout"
        "last:clause relocate -1:part -2:!article|in|relday 1:!article|own": 2.0,  # "Monday night | shift"
        "last:clause -1:amount": 0.25,  # "1000 | euros"
        "last:part last:each -1:part-adverb": 0.25,  # "nightly | backup"
        "last:part last:!each -2:rim": 1.0,  # "morning pages at 9"
        "last:times zone": 2.0,  # "9:00 Narnia time"
    }
)
"""What the word costs more that begins a title, also by the clause before it."""

_LOOSE: Final = "at|on|in|from|by|of|to|and|or|article|the|until|before|after|past|than"
_CALENDAR: Final = "weekday|weekdays|month|feast|adverb|bi|tri|dayset|daysets|pair|date|relday|possessive"
_WAYS: Final = _compile(
    {
        # "an hour before | 6pm", "move gym to | 6am"
        "last:at|from|to|until|before|after|past|than last:!generic|own end:!rim before:!whole": 2.0,
        f"last:{_LOOSE} last:!generic|own|hence before:!whole": 1.0,
        "last:number|pair|clock end:glued end:number|pair|clock": 2.0,
        "last:number end:unit": 2.0,  # "watch 60 | minutes"
        "last:letter end:!rim": 2.0,  # "à 10:15"
        "last:half-known|leads last:!no-time before:!whole": 1.75,  # the word that made it cheap is not in the title
        "title:!plain|compound": 2.0,
        "title:recurs before:whole": 2.0,
        "before:divided rest:!timed|sure": 2.0,
        "before:divided rest:days rest:bare rest:!timed": 2.0,
        "before:divided rest:end rest:before": 2.0,
        "all:!dated": 0.4,  # the schedule names times of day alone
        # "Monday gym | at 7": the day is no title
        f"all:!dated before:!whole title:!greeting title:{_CALENDAR}": 2.0,
        "all:!day before:!whole title:half-known": 9.0,  # "sunset walk": when that is, nobody knows here
        "all:!timed before:!whole title:event": 9.0,
        "all:within all:repeats": 2.0,  # "plan next week every day at 9": what "next week" belongs to is not known
        "before:clause rest:within": 2.0,
        "next:part end:part": 0.45,
        "next:part end:part all:!timed|dated": 9.0,  # "date | night"
        "next:bare next:days second:days second:repeats": 2.0,  # "Taco | Tuesday every Monday"
        "before:days rest:days next:!mark": 2.0,  # "weekday | alarm | every day"
        "before:days rest:days end:change": 2.0,
        "next:times end:amount last:plain": 0.4,  # "flight LH | 1830"
        "end:of next:start": 1.5,  # "birthday of | Jan"
        "last:edge": 2.0,
        "last:greeting end:weekday|month": 9.0,
        "last:weekday|article end:number|tens|ordinal|article": 2.0,  # "on Friday | the 15th"
        "before:clause before:!shown last:weekday": 0.2,
        "all:several": 1.2,  # "football | Sunday every two weeks on Monday"
        "before:bare rest:repeats|each": 0.25,  # "month end | review | every evening"
        "before:clause next:part end:part": 2.0,  # "parents evening"
        "before:clause before:!shown all:!timed title:!amount|lasting": 0.3,
        "before:clause before:!shown|says-each|sure all:!timed title:!amount|lasting": 1.4,  # "The 5th wave"
        "before:sure before:!shown|says-each all:!timed title:clock|oclock|halfday|named-time|hours-said": 1.4,
        # a single unknown word may have been meant as a time
        "before:clause before:!shown|relative rest:!clause all:!timed title:single": 1.7,
        "next:mark end:verb-intro": 0.3,  # "10k run | on Saturday"
        "first:relocate|postpone end:from": 9.0,  # "move gym | from monday to friday"
    }
)
"""What a title costs together with the clauses."""

_OPEN_ENDS: Final = frozenset([*_LOOSE.split("|"), "for", "then", "greeting"])
"""The kinds of words that no title has before clauses in its midst."""
_COMPOUND: Final = frozenset({"compound"})
_WRITTEN_TIME: Final = re.compile(r"([01]?\d|2[0-3])\.[0-5]\d")
"""A time of day that might be another number: 9.15."""

_CLAUSES: Final = _compile(
    {
        "times|window|grid": "timed",
        "relative|repeat length": "timed",
        "relative": "sure settled",
        "relative !length": "day single-day date",
        "repeat": "day repeats settled",
        "repeat adverb": "bare",
        "days": "day date",
        "days marked|on": "sure",
        "days !marked|on": "bare",
        "days marked|plural": "repeats",
        "days !marked|plural": "single-day",
        "days marked !plural": "settled",
        "part each|today": "day single-day settled dated",
        "part today": "sure",
        "within": "settled",
        "!times|window|part|place|mark": "dated",
    }
)
"""What clauses say, by their class and what they have."""


_LATER: Final = {"leads", *(kind for _, kind in _KINDS)}
"""The kinds that a word has by those of its neighbours."""


@lru_cache(maxsize=8192)
def _look_up(classes: frozenset[str], facts: frozenset[str]) -> tuple[Any, ...]:
    """Return the kinds that a word has by itself, and of each table the rows that it may have, without what holds."""
    own = facts.union(classes, [next((name for name, some in _LEVELS.items() if classes <= some), "strong")])

    def may_hold(row: tuple[list[_Condition], Any]) -> bool:
        return all(
            place != "0" or not kinds.isdisjoint(_LATER) or own.isdisjoint(kinds) is is_absent
            for place, is_absent, kinds in row[0]
        )

    return own, *(list(filter(may_hold, rows)) for rows in (_KINDS, _WORDS, _BEGINNINGS))


def find_covers(parser: Parser) -> list[Phrase]:
    """Return the ways to read a phrase, the cheapest first."""
    return sorted(_Covers(parser).find(), key=lambda each: each.price)


class _Covers:
    def __init__(self, parser: Parser) -> None:
        self._parser, self._tokens, self._matches = parser, parser.tokens, parser.matches
        self._end = self._find_end()
        self._is_asked = False
        self._noun: Span | None = None
        self._words = [_look_up(frozenset(self._matches[at]), self._classify(at)) for at in range(self._end)]
        self._join_compounds()
        self._kinds = [set(word[0]) for word in self._words] + [{"rim"}] * len(_PLACES)
        padded = [{"rim"}, {"rim"}, *self._kinds]
        self._around = [dict(zip(_PLACES, padded[at:], strict=False)) for at in range(self._end)]
        for at in reversed(range(self._end)):
            behind = max(self._matches[at].values(), default=(at,))[0]
            if "subject" in self._kinds[behind]:
                self._kinds[at].add("leads")
            self._kinds[at].update(_find(self._words[at][1], self._around[at]))
        self._prices = [next(_find(word[2], around)) for word, around in zip(self._words, self._around, strict=True)]
        for at, price in enumerate(self._prices):
            if price == _NEVER:
                parser.furthest = max(parser.furthest, at)
            if price > _VERB:
                self._kinds[at].add("open")
        self._rest: dict[int, tuple[Clause, ...] | None] = {}

    def _find_end(self) -> int:
        """Return the token behind the last one that counts: an intro such as "trag … ein" has a closing word."""
        end = len(self._tokens)
        while end and not {"stop", "polite"}.isdisjoint(self._matches[end - 1]):
            end -= 1
        is_closed = end and "closer" in self._matches[end - 1] and not {"intro", "remind"}.isdisjoint(self._matches[0])
        return end - 1 if is_closed else len(self._tokens)

    def _classify(self, at: int) -> frozenset[str]:
        """Return the kinds that a word has besides its classes."""
        token, before, here = self._tokens[at], self._tokens[at - 1], self._matches[at]
        word, language = token.text, self._parser.cursor.language
        is_number, is_unknown = token.kind == NUMBER, token.kind == WORD and not here
        facts = {
            token.kind: True,
            "glued": token.glued,
            "joined": token.glued and ("-" in {word, before.text} or (before.kind, token.kind) == (NUMBER, WORD)),
            "letter": not here and len(word) == 1 and category(word) not in {"Sc", "So"},
            "few": is_number and token.value[0] < _FEW,
            "amount": is_number and token.value[0] in _AMOUNTS,
            "event": "half-known" in here and here["half-known"].value == 1,
            "written": _WRITTEN_TIME.fullmatch(word),
            "unknown": is_unknown,
            "inner": is_unknown and language.verbs_last,
            "foreign": is_unknown and (says_how_often(word) or find_languages(word, language)),
            "like-a-day": is_unknown and word.endswith(language.day_endings),
            "misspelt": is_unknown and is_misspelt(word, language),
        }
        return frozenset(name for name, holds in facts.items() if holds)

    def _join_compounds(self) -> None:
        """Give words one class that are written together with one outside the lexicon: "7-minute-workout", "5k"."""
        starts = [at for at, word in enumerate(self._words) if "joined" not in word[0]]
        for first, end in pairwise([*starts, self._end]):
            some = [word[0] for word in self._words[first:end]]
            said = frozenset().union(*some)
            is_before = end < self._end and "no-time" in self._words[end][0]
            if end - first > 1 and ("unknown" in said or ({"dash", "unit"} <= said and is_before)):
                self._words[first:end] = [_look_up(each & {"dash"}, _COMPOUND) for each in some]

    def _unite(self, begin: int, end: int) -> set[str]:
        return set().union(*self._kinds[begin:end])

    def find(self) -> Iterator[Phrase]:
        """Yield all ways, by each token at which a title may begin, with the clauses before it and their price."""
        parser, c = self._parser, self._parser.cursor
        at = self._skip_intro()
        yield from self._find_titled(at)
        c.at = at
        c.skip("intro", "polite", "comma", "colon", "verb-intro")
        behind = c.at
        if behind > at:
            yield from self._find_titled(behind, extra=0.3, is_shown=True)  # "run | the nightly backup"
        extra = 0.0
        for begin, end, before, found in parser.walk(behind):
            loose = {"loose", "to"} if self._is_asked else {"loose"}  # "remind me … | to …"
            cut = next((at for at in range(begin + 1, end) if self._kinds[at] & loose), end)
            shorter = parser.parse_between(begin, cut) if cut < end else None
            if shorter is not None:
                yield from self._find_behind(cut, (*before, *shorter), extra)
                extra += _NO_CUT
            yield from self._find_behind(end, (*before, *found), extra)

    def _find_titled(
        self, begin: int, before: tuple[Clause, ...] = (), extra: float = 0.0, *, is_shown: bool = False
    ) -> Iterator[Phrase]:
        """Yield the ways with a title from a token on. It is shown if words say that it begins there."""
        if begin == self._end:
            if before:
                yield Phrase(self._noun, before, extra)
            return
        if not self._parser.allows_title:
            return
        shown = {"shown"} if is_shown else set()
        c = self._parser.cursor
        c.at = begin
        c.take("article")
        lead = tuple(parse_lead(c) or ())
        after = c.at
        spared = sum(self._prices[begin:after]) if lead else 0.0
        said = _describe_all(before) | shown
        if shown and said & {"timed", "sure"} and "for" not in self._kinds[begin - 1]:
            # "remind me on Friday at 5 to | plan Monday": all words behind "to" are the title
            prices = [each if each == _NEVER else min(each, _SHOWN) for each in self._prices[begin : self._end]]
            yield from self._make(begin, self._end, extra + sum(prices), {"whole"}, before)
        if self._unite(0, begin) & {"each", "adverb"}:
            said.add("says-each")
        price = extra + self._price_beginning(begin, before)
        for end in range(begin + 1, self._end + 1):
            price += self._prices[end - 1]
            if price - spared > MOST:
                return
            rest = self._read_rest(end)
            if rest is None:
                if not before:
                    yield from self._find_divided(begin, end, price)
                continue
            whole = price
            if lead and "settled" not in _describe_all((*before, *rest)):
                yield from self._make(begin, end, price - spared, said, (*lead, *before), rest)
                whole += _DAY_ALONE - spared
            for way in self._make(begin, end, whole, said, before, rest):
                yield way
                if {"shown", "clause"} <= said and "day" not in said and "single-day" in _describe_all(rest):
                    # "remind me at noon that rent is due | on Friday": that may be what, and not when
                    title = way.title and (way.title[0], self._tokens[self._end - 1].end)
                    yield replace(way, title=title, clauses=before, price=way.price + _DAY_ALONE)

    def _make(
        self,
        begin: int,
        end: int,
        price: float,
        said_before: set[str],
        before: tuple[Clause, ...],
        rest: tuple[Clause, ...] = (),
    ) -> Iterator[Phrase]:
        """Yield the way with this title if it is not too dear."""
        inner, clauses = self._trim(begin, end), (*before, *rest)
        if not inner or not clauses:
            return
        words = sum(not each.isdisjoint({"plain", "compound"}) for each in self._kinds[begin:end])
        title = self._unite(begin, end) | ({"single"} if words == 1 else set())
        said = {"title": title, "first": self._kinds[begin], "last": self._kinds[inner[-1]], "end": self._kinds[end]}
        every = [_describe(each) for each in clauses]
        days = [each for each in every if "date" in each]
        several = {"several"} if len(days) > 1 and not any("mark" in each for each in every) else set()
        said |= {"before": said_before, "all": several.union(*every), "rest": _describe_all(rest)}
        price += sum(_find(_WAYS, said | {"next": _describe_all(rest[:1]), "second": _describe_all(rest[1:2])}))
        if price <= MOST:
            span = self._tokens[inner[0]].start, self._tokens[inner[-1]].end
            yield Phrase(span, clauses, price, words, self._is_asked)

    def _find_divided(self, begin: int, end: int, price: float) -> Iterator[Phrase]:
        """Yield the ways in which a title goes on behind the clauses: "dinner | at 8 | with Bob"."""
        is_open = not self._kinds[end - 1].isdisjoint(_OPEN_ENDS) or "for" in self._kinds[end]
        if is_open or "plain" not in self._unite(begin, end):
            return
        for _, at, before, found in self._parser.walk(end):
            if "mark" in _describe(found[-1]):
                continue
            for stop in range(at + 1, self._find_stop(at) + 1):
                if "plain" not in self._unite(at, stop) or (stop < self._end and "inner" not in self._kinds[at]):
                    continue
                last = self._read_rest(stop)
                if last is None:
                    continue
                whole = price + _DIVIDED + sum(self._prices[at:stop])
                for way in self._make(begin, end, whole, {"divided"}, (), (*before, *found, *last)):
                    yield replace(way, rest=(self._tokens[at].start, self._tokens[self._trim(at, stop)[-1]].end))

    def _trim(self, begin: int, end: int) -> list[int]:
        return [at for at in range(begin, end) if "sign" not in self._kinds[at]]

    def _find_stop(self, begin: int) -> int:
        """Return the token behind the words that may be the rest of a title: none is about time, or a condition."""
        if self._kinds[begin].isdisjoint({"glued", "zone"}):
            while self._kinds[begin].isdisjoint({"open", "rim"}):
                begin += 1
        return begin

    def _find_behind(self, at: int, clauses: tuple[Clause, ...], extra: float) -> Iterator[Phrase]:
        """Yield the ways with a title, or the end, behind clauses."""
        yield from self._find_titled(min(self._parser.skip_end(at), self._end), clauses, extra)
        c = self._parser.cursor
        c.at = at
        c.skip("comma", "colon", "dash")
        outro = c.take("outro")
        if c.at == at or c.at >= self._end or "compound" in self._kinds[at]:
            return
        self._is_asked = self._is_asked or bool(outro and outro.value)
        is_shown = self._is_asked or not self._kinds[c.at - 1].isdisjoint({"colon", "dash"})
        price = extra if is_shown or outro is None else extra + 0.2
        yield from self._find_titled(c.at, clauses, price, is_shown=is_shown)

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
        if at not in self._rest:
            end, self._rest[at] = at, ()
            for _, reached, before, found in self._parser.walk(at, is_behind=True):
                end, self._rest[at] = self._parser.skip_end(reached), (*before, *found)
            if end < self._end:
                self._rest[at] = None
        return self._rest[at]

    def _price_beginning(self, begin: int, before: Sequence[Clause]) -> float:
        last = _describe_all(before[-1:])
        said = {**self._around[begin], "last": last}
        price: float = sum(_find(self._words[begin][3], said))
        if "change" in said["0"] and "object" in said["1"]:
            price += _VERB - self._prices[begin]
        return price


def _describe(clause: Clause) -> set[str]:
    """Return the class of a clause, what it has, and what it says."""
    parts: tuple[str, ...] = clause.__match_args__
    names = [name for name in parts if getattr(clause, name)]
    if isinstance(clause, Repeat) and clause.unit <= Unit.HOUR:
        names.append("length")
    elif isinstance(clause, Period) and clause.unit < Unit.YEAR:
        names.append("within")
    return _say_kinds("clause", type(clause).__name__.lower(), *names)


@lru_cache(maxsize=1024)
def _say_kinds(*names: str) -> set[str]:
    said = set(names)
    return said.union(*(kinds.split() for kinds in _find(_CLAUSES, {"0": said})))


def _describe_all(clauses: Iterable[Clause]) -> set[str]:
    return set().union(*map(_describe, clauses))
