"""Read a phrase: tokens, grammar and interpretation in one call."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.time_zones import require_zone
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.language.changes import find_change, find_open_time, find_order
from cloudsched.language.covers import find_covers
from cloudsched.language.grammar import Parser
from cloudsched.language.languages import LANGUAGES, find_language, guess_language, name_language
from cloudsched.language.lexicon import CLASS, Cursor, Token, classify, tokenise
from cloudsched.language.meaning import build_schedule
from cloudsched.language.messages import load_messages, say, translate
from cloudsched.language.nodes import Phrase, Place, Span
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.result import (
    Alternative,
    Option,
    Problem,
    Reading,
    Refused,
    Unclear,
    refuse_impossible,
)
from cloudsched.language.typing_errors import SHORTEST, find_corrections, is_close

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule

_MOST_WAYS = 8
"""The number of ways to read a phrase that are tried."""
_EQUAL, _AS_GOOD, _SECOND_BEST = 0.055, 0.3, 1.3
"""By how much the price of another way may differ, to be as good as the cheapest if it says less, or else, or to be
tried if that contradicts itself."""


MOST_READINGS = 8
_MOST_BUILT, _MOST_CLAUSES = 24, 160
"""The numbers of answers that are tried, and of clauses that are interpreted for all of them together. A phrase that
asks the same again and again has hundreds."""
_STEPS = 200
"""The number of steps of a search for the interpretation of a clause."""
QUESTIONS = {
    "nth-or-interval": "is that the nth such day of each month, or an interval in weeks?",
    "bare-hour": "is that in the morning or in the afternoon?",
    "day-end": "when does the day end for that?",
    "bi": "is that once every two periods, or twice in each period?",
    "date-order": "which number is the month?",
    "this-or-next": "which day do you mean?",
    "zone": "which time zone do you mean?",
    "place": "is that only where it happens, or does the time of day count there?",
    "month-end": "what should happen in months that do not have this day?",
    "rate": "on which days or at what times should it run?",
    "midnight": "is that the midnight at the start of the day or at its end?",
    "window": "should it run once, at the start of this period, or repeatedly during it?",
    "once-or-repeat": "should it run every time, or only the next time?",
    "which-of-month": "which of these days do you mean?",
    "months-or-span": "is that every year in these months, or only this once?",
    "count-or-rate": "is that how often in total, or how often each time?",
    "slip": "is this a typo?",
    "past": "has that happened already, or is it still to be done?",
    "title": "which of these words say when, and which say what?",
    "special-days": "which time counts on those days?",
}


MAX_LENGTH = 500


def read(  # noqa: PLR0913 -- each is named
    text: str,
    *,
    now: datetime,
    timezone: str,
    locale: str | None = "en",
    current: Schedule | None = None,
    default_time: tuple[int, int] = (9, 0),
    default_calendar: str | None = None,
    has_title: bool = True,
) -> Reading:
    """Return the meaning of a phrase: a schedule, a question or a refusal. Every assumption is reported.

    Args:
        text: The phrase, at most 500 characters.
        now: The current time, aware. "Tomorrow" and "in 20 minutes" count from it.
        timezone: The IANA time zone of the phrase, unless the phrase names one.
        locale: The language, such as ``en``, ``en-US`` or ``de``. A region decides the order of day and month. If it is
            None, the language is detected from the words.
        current: The schedule to change. With it, the phrase is an update such as "make it 10 instead".
        default_time: Hour and minute to use if the phrase gives no time.
        default_calendar: The id of the calendar that "except holidays" and "business days" mean. None if there is none.
        has_title: The phrase may have a title. Without, it is refused if a word belongs to no schedule.

    Raises:
        InvalidSchedule: The time zone does not exist.
        ValueError: ``now`` is naive, or the language is not supported.
    """
    return Reader(text, now, timezone, locale, current, default_time, default_calendar, has_title).read()


_LINKS = frozenset({"on", "at", "in", "of", "for", "from", "by", "article", "outro"})
"""Classes of words that mean nothing without the words after them."""


@dataclass
class Reader:
    """Reads one phrase. A question interprets it once for each answer.

    Attributes:
        lead: What is said before the phrase without words, such as ``skip``: classes of the lexicon with their values.

    All others are arguments of `read`.
    """

    text: str
    now: datetime
    timezone: str
    locale: str | None = None
    current: Schedule | None = None
    default_time: tuple[int, int] = (9, 0)
    default_calendar: str | None = None
    has_title: bool = True
    lead: Sequence[tuple[str, int]] = ()

    def __post_init__(self) -> None:
        if self.now.tzinfo is None:
            raise ValueError("now has no time zone; give an aware datetime")
        require_zone(self.timezone)
        self.context = Context(self.now, self.timezone, TimeOfDay(*self.default_time), calendar=self.default_calendar)
        self.languages = list(LANGUAGES.values()) if self.locale is None else [find_language(self.locale)]
        self.language = self.languages[0]

    def read(self) -> Reading:
        """Return the meaning of the phrase, with what is said about it in its language."""
        try:
            reading = self._read()
        except Refused as refused:
            reading = _refuse(refused, self.text)
        code = self.language.code
        messages = load_messages(code)

        def tell(one: Alternative) -> Alternative:
            return Alternative(one.schedule, translate(one.label, messages), one.schedule.describe(code))

        return replace(
            reading,
            assumptions=tuple(translate(each, messages) for each in reading.assumptions),
            readings=tuple(map(tell, reading.readings)),
            problems=tuple(replace(each, hint=translate(each.hint, messages)) for each in reading.problems),
            language=code,
        )

    def _read(self) -> Reading:
        if len(self.text) > MAX_LENGTH:
            raise Refused("too-long", (MAX_LENGTH, len(self.text)))
        if not self.text.strip() and not self.lead:
            raise Refused("empty")
        tokens = tokenise(self.text, self.language)
        self.language = guess_language(tokens, self.languages)
        if self.language is self.languages[0]:
            return self._read_tokens(tokens)
        reading = self._read_tokens(tokenise(self.text, self.language))
        note = say("The words were read as {language}.", language=say(self.language.name))
        return replace(reading, assumptions=(note, *reading.assumptions)) if reading.schedule else reading

    def _read_tokens(self, typed: list[Token]) -> Reading:
        tokens = [*(Token(CLASS, kind, -1, 0, (value,)) for kind, value in self.lead), *typed]
        parser = self._parse(tokens)
        if self.current is not None:
            changed = self._read_change(parser, self.current)
            if changed is None or changed.schedule is None:
                phrases = find_covers(self._parse(tokens))
                whole = self._interpret(phrases[0]) if phrases else None
                if whole and whole.schedule and whole.schedule.is_now:  # "now" replaces any schedule
                    return whole
            if changed is None:
                raise self._refuse_unread(parser, "no-update")
            return changed
        phrases = find_covers(parser)
        phrase, reading = self._choose(phrases) if phrases else (None, None)
        if phrase is None or phrase.title is not None:
            reading = self._read_slip(parser, phrase, reading) or reading
        if reading is None:
            raise self._refuse_unread(parser, "not-understood")
        return reading

    def _parse(self, tokens: Sequence[Token]) -> Parser:
        return Parser(tokens, self.language, allow_title=self.has_title)

    def _choose(self, phrases: Sequence[Phrase]) -> tuple[Phrase, Reading]:
        """Return the cheapest way to read a phrase that has a schedule, or a question if another is as good."""
        best, found = phrases[0], self._interpret(phrases[0])
        for phrase in phrases[1:_MOST_WAYS]:
            is_refused = _contradicts(found)
            if phrase.price > best.price + (_SECOND_BEST if is_refused else _AS_GOOD):
                break
            reading = self._interpret(phrase)
            if is_refused and not _contradicts(reading):
                best, found = phrase, reading
            elif (
                reading.schedule is not None
                and found.schedule not in {None, reading.schedule}
                and (
                    (best.title and phrase.price <= best.price + _EQUAL) or not set(phrase.clauses) <= set(best.clauses)
                )
            ):
                ways = found, reading
                readings = [Alternative(each.schedule, each.title or "") for each in ways if each.schedule is not None]
                problem = Problem((0, len(self.text)), "title", QUESTIONS["title"])
                return phrase, Reading("question", None, found.title, (), tuple(readings), (problem,))
        return best, found

    def _refuse_unread(self, parser: Parser, code: str) -> Refused:
        """Return the refusal of an unread phrase: by a rule's reason, another language, or the first unknown word."""
        if parser.refused is not None and code != "no-update":
            return parser.refused
        name = name_language(parser.tokens, self.language)
        if name is None:
            for at, here in enumerate(parser.matches):
                if "half-known" in here:
                    parser.cursor.at = here["half-known"].end
                    return Refused("half-known", parser.cursor.span(at))
            return Refused(code, self._find_furthest(parser))
        hint = say(
            "this looks like {name}; write when it runs in English, German or Dutch, give its locale, or put a "
            "title that is meant so in quotes",
            name=say(name),
        )
        span = next((each.start, each.end) for each in parser.tokens if name_language([each], self.language))
        return Refused("other-language", span, hint)

    def _read_change(self, parser: Parser, current: Schedule) -> Reading | None:
        change = find_change(parser)
        if change is None:
            return None

        def build(context: Context) -> Schedule:
            context.timezone = current.timezone
            changed = change(current.as_fixed(), context)
            follows = context.follows or (current.follows_owner and not context.is_placed)
            return changed.follow_owner() if follows else changed

        return self._build_reading(build, None)

    def _read_slip(self, parser: Parser, phrase: Phrase | None, typed: Reading | None) -> Reading | None:
        """Return a question if correcting a typo in one unknown word turns the phrase into a schedule."""
        as_typed = typed.schedule if typed is not None else None
        readings: list[Alternative] = []
        sure: list[Reading] = []
        span = (0, len(self.text))
        for tokens, slips in find_corrections(parser.tokens, parser.matches, self.language):
            phrases = find_covers(self._parse(tokens))
            are_close = all(is_close(old.text, meant) for old, meant in slips)
            if not phrases or (phrase is not None and not (are_close and phrases[0].words < phrase.words)):
                continue
            reading = self._interpret(phrases[0])
            if reading.schedule is not None and reading.schedule == as_typed:
                continue  # the letter makes no difference
            old, meant = slips[0]
            span = old.start, old.end
            readings += reading.readings
            if reading.schedule is not None:
                label = say("{meant}, not {typed}", meant=meant, typed=old.text)
                readings.append(Alternative(reading.schedule, label))
                if phrase is None and are_close and all(len(old.text) > SHORTEST for old, _ in slips):
                    fixes = [say("{typed!r} is read as {meant!r}.", typed=old.text, meant=word) for old, word in slips]
                    sure.append(replace(reading, assumptions=(*fixes, *reading.assumptions)))
        if not readings:
            return None
        if len(sure) == len(readings) and len({str(each.schedule) for each in sure}) == 1:
            return sure[0]  # there is only one thing that it can have been meant to be
        if as_typed is not None:
            readings.append(Alternative(as_typed, "as it was typed"))
        problem = Problem(span, "slip", QUESTIONS["slip"])
        return Reading("question", None, None, (), tuple(readings[:MOST_READINGS]), (problem,))

    def _find_furthest(self, parser: Parser) -> tuple[int, int]:
        """Return the span of the first words that were not understood. After "on" and the like, it goes on."""
        begin = at = min(parser.furthest, len(parser.tokens) - 1)
        while at < len(parser.tokens) - 1 and not _LINKS.isdisjoint(parser.matches[at]):
            at += 1
        return (parser.tokens[begin].start, parser.tokens[at].end) if at >= 0 else (0, len(self.text))

    def _interpret(self, phrase: Phrase) -> Reading:
        begin, end = phrase.title or (0, 0)
        places = [each.span for each in phrase.clauses if isinstance(each, Place) and each.is_loose]
        if places and places[0][1] + 1 == begin:  # it may be where, and no zone: "at 9am | London office call"
            begin = places.pop()[0]
        spans = filter(None, ((begin, end), *places[:1], phrase.rest)) if phrase.title else ()
        typed = [self.text[slice(*each)] for each in spans]
        title = " ".join(each.strip('"“”„«»` ') for each in typed)
        is_free = title == " ".join(typed) != ""
        tokens = tokenise(title, self.language)
        matches = classify(tokens, self.language)

        def build(context: Context) -> Schedule:
            spend_steps(_STEPS * len(phrase.clauses))
            open_time = None
            if is_free:
                if not phrase.is_asked:
                    self._require_task((begin, end), title, Cursor(tokens, matches, self.language))
                if (span := find_open_time(tokens, matches, ["condition"])) is not None:
                    raise Refused("half-known", (begin + span[0], begin + span[1]))
                open_time = find_open_time(tokens, matches)
            context.is_titled = bool(typed)
            context.is_yearly = any("yearly-event" in each for each in matches)
            schedule = build_schedule(phrase.clauses, context)
            if open_time is not None and not context.is_timed:
                raise Refused("half-known", (begin + open_time[0], begin + open_time[1]))
            is_new = phrase.is_asked or context.taken or not schedule.is_single_time
            if not is_new and re.match(self.language.past, title):
                raise Unclear("past", (begin, end), [Option(title, None)])
            return schedule.follow_owner() if context.follows else schedule

        return self._build_reading(build, title if typed else None, len(phrase.clauses))

    def _require_task(self, span: Span, title: str, c: Cursor) -> None:
        """Refuse a title that orders something about another task, or is a question."""
        order = find_order(title, c)
        if order is not None and (order.is_task or order.is_timing):
            raise Refused("no-new-task", span)
        is_question = self.text.rstrip().endswith("?") and not self.text[: span[0]].strip()
        if is_question or "question-word" in c.matches[0]:  # "could you call Bob at 9?" is none
            raise Refused("no-task", span)

    def _build_reading(self, build: Callable[[Context], Schedule], title: str | None, clauses: int = 4) -> Reading:
        """Return the schedule, or a question that lists the one of each answer, or a refusal if no answer gives one.

        Each question is answered to the end before the next answer is tried. So a phrase with many questions, with more
        answers than can be listed, costs no more than others. One with too many is refused. `build` interprets so many
        `clauses` with some answers.
        """
        readings: list[Alternative] = []
        refused: Refused | None = None
        problems: dict[tuple[str, Span], Problem] = {}
        tried: list[tuple[dict[tuple[str, Span], int], str]] = [({}, "")]
        for _ in range(1 + min(_MOST_BUILT, _MOST_CLAUSES // clauses)):
            if not tried or len(readings) >= MOST_READINGS:
                break
            taken, label = tried.pop()
            context = replace(self.context, taken=taken, notes=[], stretched=set())
            try:
                with refuse_impossible():
                    schedule = build(context)
            except Unclear as open_:
                asked = open_.code, open_.span
                problems.setdefault(asked, Problem(open_.span, open_.code, QUESTIONS[open_.code]))
                for number, option in reversed([*enumerate(open_.options)]):
                    shown = say("{first}, {then}", first=label, then=option.name) if label else option.name
                    tried.append(({**taken, asked: number}, shown))
            except Refused as error:
                refused = error
            else:
                if not problems:
                    notes = (*context.notes, *list_surprises(schedule, self.language.code))
                    return Reading("schedule", schedule, title, notes)
                readings.append(Alternative(schedule, label))
        if not readings:
            return _refuse(refused or Refused("too-open"), self.text)
        return Reading("question", None, title, (), tuple(readings), tuple(problems.values()))


def _contradicts(reading: Reading) -> bool:
    return any(each.code in {"contradiction", "inexpressible"} for each in reading.problems)


def _refuse(refused: Refused, text: str) -> Reading:
    span = refused.span if refused.span is not None else (0, len(text))
    words = text[slice(*span)].strip()
    shown = "" if words == text.strip() else words
    return Reading("refusal", problems=(Problem(span, refused.code, refused.hint, shown),))
