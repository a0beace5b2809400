"""Read a phrase: tokens, grammar and interpretation in one call."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.time_zones import require_zone
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.language.changes import find_change, find_open_time, find_order
from cloudsched.language.covers import find_covers
from cloudsched.language.grammar import Parser
from cloudsched.language.languages import LANGUAGES, find_language, guess_language, name_language
from cloudsched.language.lexicon import CLASS, Cursor, Language, Token, classify, tokenise
from cloudsched.language.meaning import build_schedule
from cloudsched.language.messages import load_messages, say, translate
from cloudsched.language.nodes import Phrase, Place, Span
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.result import Alternative, Choices, Problem, Reading, Refused, Unclear, refuse_impossible
from cloudsched.language.typing_errors import SHORTEST, find_corrections, is_close

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule

_MOST_WAYS = 8
"""The number of ways to read a phrase that are tried."""
_EQUAL, _AS_GOOD, _SECOND_BEST = 0.055, 0.3, 1.3
"""By how much the price of another way may differ, to be as good as the cheapest if it says less, or else, or to be
tried if that contradicts itself."""
_MOST_SHOWN = 60
"""The number of characters of the words at fault that are shown."""


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
    "shared-time": "should both run at the same time?",
}


def ask(
    unclear: Unclear, build: Callable[[Choices], Schedule], title: str | None, text: str, clauses: int = 4
) -> Reading:
    """Return a question that lists the schedule for each answer. Return a refusal if no answer gives a schedule.

    Each question is answered to the end before the next answer is tried. So a phrase with many questions, with more
    answers than can be listed, costs no more than others. One with too many is refused. `build` interprets so many
    `clauses` with some answers.
    """
    readings: list[Alternative] = []
    refused: Refused | None = None
    problems: dict[tuple[str, Span], Problem] = {}
    tried: list[tuple[dict[tuple[str, Span], int], str]] = []

    def open_question(at: Unclear, taken: dict[tuple[str, Span], int], label: str) -> None:
        problems.setdefault((at.code, at.span), Problem(at.span, at.code, QUESTIONS[at.code]))
        for number in reversed(range(len(at.options))):
            name = at.options[number].name
            shown = say("{first}, {then}", first=label, then=name) if label else name
            tried.append(({**taken, (at.code, at.span): number}, shown))

    open_question(unclear, {}, "")
    for _ in range(min(_MOST_BUILT, _MOST_CLAUSES // clauses)):
        if not tried or len(readings) >= MOST_READINGS:
            break
        chosen, name = tried.pop()
        try:
            with refuse_impossible():
                schedule = build(Choices(chosen))
        except Unclear as deeper:
            open_question(deeper, chosen, name)
        except Refused as error:
            refused = error
        else:
            readings.append(Alternative(schedule, name))
    if not readings:
        return _refuse(refused or Refused("too-open"), text)
    return Reading("question", None, title, (), tuple(readings), tuple(problems.values()))


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
    return read_after(
        text,
        now=now,
        timezone=timezone,
        locale=locale,
        current=current,
        default_time=default_time,
        default_calendar=default_calendar,
        has_title=has_title,
    )


def read_after(  # noqa: PLR0913 -- each is named
    text: str,
    *,
    lead: Sequence[tuple[str, int]] = (),
    now: datetime,
    timezone: str,
    locale: str | None = None,
    current: Schedule | None = None,
    default_time: tuple[int, int] = (9, 0),
    default_calendar: str | None = None,
    has_title: bool = True,
) -> Reading:
    """Return the meaning of a phrase as `read` does, after what is said without words, such as ``skip``.

    That is the lead: classes of the lexicon with their values.
    """
    if now.tzinfo is None:
        raise ValueError("now has no time zone; give an aware datetime")
    require_zone(timezone)
    if len(text) > MAX_LENGTH:
        return _refuse(Refused("too-long", (MAX_LENGTH, len(text))), text)
    if not text.strip() and not lead:
        return _refuse(Refused("empty", (0, len(text))), text)
    context = Context(now, timezone, TimeOfDay(*default_time), calendar=default_calendar)
    languages = LANGUAGES.values() if locale is None else (find_language(locale),)
    return _Reader(text, context, languages, current, has_title=has_title, lead=lead).read()


_LINKS = frozenset({"on", "at", "in", "of", "for", "from", "by", "article", "outro"})
"""Classes of words that mean nothing without the words after them."""


class _Titled(NamedTuple):
    """The effect of a phrase's title on its schedule.

    Attributes:
        is_yearly: The subject happens every year, such as a birthday.
        open_time: The place of a time that is an event, which is no time of day: "before the meeting".
    """

    is_there: bool = False
    is_yearly: bool = False
    open_time: Span | None = None


class _Reader:
    """Reads one phrase. A question interprets it once for each answer."""

    def __init__(
        self,
        text: str,
        context: Context,
        languages: Collection[Language],
        current: Schedule | None,
        *,
        has_title: bool,
        lead: Iterable[tuple[str, int]],
    ) -> None:
        self._text, self._context, self._current, self._allow_title = text, context, current, has_title
        self._languages = languages
        self._lead = [Token(CLASS, kind, -1, 0, (value,)) for kind, value in lead]
        self._language = next(iter(languages))

    def read(self) -> Reading:
        """Return the meaning of the phrase, with what is said about it in its language."""
        try:
            reading = self._read()
        except Refused as refused:
            reading = _refuse(refused, self._text)
        code = self._language.code
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
        tokens = tokenise(self._text, self._language)
        guessed = guess_language(tokens, self._languages) if len(self._languages) > 1 else self._language
        if guessed is not self._language:
            self._language = guessed
            reading = self._read_tokens(tokenise(self._text, guessed))
            note = say("The words were read as {language}.", language=say(guessed.name))
            return replace(reading, assumptions=(note, *reading.assumptions)) if reading.schedule else reading
        return self._read_tokens(tokens)

    def _read_tokens(self, typed: list[Token]) -> Reading:
        tokens = [*self._lead, *typed]
        parser = Parser(tokens, self._language, allow_title=self._allow_title)
        if self._current is not None:
            changed = self._read_change(parser, self._current)
            if (changed is None or changed.schedule is None) and (now := self._read_now(tokens)) is not None:
                return now
            return changed if changed is not None else self._refuse_unread(parser, "no-update")
        phrases = find_covers(parser)
        if not phrases:
            return self._read_slip(parser, None) or self._refuse_unread(parser, "not-understood")
        phrase, reading = self._choose(phrases)
        return (self._read_slip(parser, phrase) if phrase.title is not None else None) or reading

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
                problem = Problem((0, len(self._text)), "title", QUESTIONS["title"])
                return phrase, Reading("question", None, found.title, (), tuple(readings), (problem,))
        return best, found

    def _read_now(self, tokens: list[Token]) -> Reading | None:
        """Return the reading of a phrase that says "now", which replaces any schedule."""
        phrases = find_covers(Parser(tokens, self._language, allow_title=self._allow_title))
        reading = self._interpret(phrases[0]) if phrases else None
        return reading if reading is not None and reading.schedule is not None and reading.schedule.is_now else None

    def _refuse_unread(self, parser: Parser, code: str) -> Reading:
        """Return the refusal of an unread phrase: by a rule's reason, another language, or the first unknown word."""
        if parser.refused is not None and code != "no-update":
            return _refuse(parser.refused, self._text)
        name = name_language(parser.tokens, self._language)
        if name is None:
            furthest, blocked = self._find_furthest(parser), parser.blocked
            is_before = blocked is not None and blocked.span is not None and blocked.span[0] < furthest[0]
            is_known = is_before and blocked is not None and blocked.code != "half-known"
            return _refuse(Refused(code, furthest) if is_known or blocked is None else blocked, self._text)
        known = [say(language.name) for language in LANGUAGES.values()]
        hint = say(
            "this looks like {name}; write when it runs in one of the languages {known}, "
            "and put a title that is meant so in quotes",
            name=say(name),
            known=reduce(lambda first, then: say("{first}, {then}", first=first, then=then), known),
        )
        if say(name) in known:
            hint = say(
                "this looks like {name}; say so by the locale {locale!r}, and put a title that is meant so in quotes",
                name=say(name),
                locale=[*LANGUAGES][known.index(say(name))],
            )
        span = next(
            (each.start, each.end) for each in parser.tokens if name_language([each], self._language) is not None
        )
        return _refuse(Refused("other-language", span, hint), self._text)

    def _read_change(self, parser: Parser, current: Schedule) -> Reading | None:
        try:
            change = find_change(parser)
        except Refused as error:
            return _refuse(error, self._text)
        if change is None:
            return None

        def build(choices: Choices) -> Schedule:
            context = replace(self._context, timezone=current.timezone, choices=choices, stretched=set())
            changed = change(current.as_fixed(), context)
            follows = context.follows or (current.follows_owner and not context.is_placed)
            return changed.follow_owner() if follows else changed

        return self._build_reading(build, None)

    def _read_slip(self, parser: Parser, phrase: Phrase | None) -> Reading | None:
        """Return a question if correcting a typo in one unknown word turns the phrase into a schedule."""
        as_typed = self._interpret(phrase).schedule if phrase is not None else None
        readings: list[Alternative] = []
        sure: list[Reading] = []
        span = (0, len(self._text))
        for tokens in find_corrections(parser.tokens, parser.matches, self._language):
            corrected = next(iter(find_covers(Parser(tokens, self._language, allow_title=self._allow_title))), None)
            slips = [(new.text, old) for new, old in zip(tokens, parser.tokens, strict=True) if new != old]
            are_close = all(is_close(old.text, meant) for meant, old in slips)
            if corrected is None or (phrase is not None and not (are_close and corrected.words < phrase.words)):
                continue
            reading = self._interpret(corrected)
            if reading.schedule is not None and reading.schedule == as_typed:
                continue  # the letter makes no difference
            meant, typed = slips[0]
            span = typed.start, typed.end
            readings += reading.readings
            if reading.schedule is not None:
                label = say("{meant}, not {typed}", meant=meant, typed=typed.text)
                readings.append(Alternative(reading.schedule, label))
                if phrase is None and are_close and all(len(old.text) > SHORTEST for _, old in slips):
                    fixes = [say("{typed!r} is read as {meant!r}.", typed=old.text, meant=word) for word, old in slips]
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
        return (parser.tokens[begin].start, parser.tokens[at].end) if at >= 0 else (0, len(self._text))

    def _interpret(self, phrase: Phrase) -> Reading:
        if phrase.title is None:
            return self._build_reading(self._make_builder(phrase, _Titled()), None, len(phrase.clauses))
        begin, end = phrase.title
        typed = self._text[begin:end]
        title = typed.strip('"“”„«»` ')
        behind = "" if phrase.rest is None else f" {self._text[slice(*phrase.rest)]}"
        tokens = tokenise(title + behind, self._language)
        matches = classify(tokens, self._language)
        titled = _Titled(is_there=True, is_yearly=any("yearly-event" in each for each in matches))
        if title == typed:
            order = find_order(title + behind, Cursor(tokens, matches, self._language))
            if order is not None and (order.is_task or order.is_timing) and not phrase.is_asked:
                return _refuse(Refused("no-new-task", phrase.title), self._text)
            is_whole = not self._text[:begin].strip()
            is_question = is_whole and self._text.rstrip().endswith("?")  # "could you call Bob at 9?" is none
            is_question = is_question or bool(matches and "question-word" in matches[0])
            if is_question and not phrase.is_asked:
                return _refuse(Refused("no-task", phrase.title), self._text)
            if (span := find_open_time(tokens, matches, ["condition"])) is not None:
                return _refuse(Refused("half-known", (begin + span[0], begin + span[1])), self._text)
            if (span := find_open_time(tokens, matches)) is not None:
                titled = titled._replace(open_time=(begin + span[0], begin + span[1]))
        place = next((each.span for each in phrase.clauses if isinstance(each, Place) and each.is_loose), None)
        if place is not None and place[1] <= begin and not self._text[place[1] : begin].strip():
            # It may be where, and no zone: "at 9am | London office call".
            title = f"{self._text[slice(*place)]} {title}"
        elif place is not None:
            behind = f" {self._text[slice(*place)]}{behind}"
        reading = self._build_reading(self._make_builder(phrase, titled), title + behind, len(phrase.clauses))
        done = not phrase.is_asked and re.match(self._language.past, title + behind)
        if not done or reading.schedule is None or not reading.schedule.is_single_time:
            return reading
        problem = Problem(phrase.title, "past", QUESTIONS["past"])
        return Reading(
            "question", None, reading.title, (), (Alternative(reading.schedule, title + behind),), (problem,)
        )

    def _build_reading(self, build: Callable[[Choices], Schedule], title: str | None, clauses: int = 4) -> Reading:
        choices = Choices()
        try:
            with refuse_impossible():
                schedule = build(choices)
        except Unclear as unclear:
            return ask(unclear, build, title, self._text, clauses)
        except Refused as refused:
            return _refuse(refused, self._text)
        notes = (*choices.notes, *list_surprises(schedule, self._language.code))
        return Reading("schedule", schedule, title, notes)

    def _make_builder(self, phrase: Phrase, titled: _Titled) -> Callable[[Choices], Schedule]:
        def build(choices: Choices) -> Schedule:
            spend_steps(_STEPS * len(phrase.clauses))
            context = replace(
                self._context,
                choices=choices,
                is_titled=titled.is_there,
                is_yearly=titled.is_yearly,
                stretched=set(),
            )
            schedule = build_schedule(phrase.clauses, context)
            if titled.open_time is not None and not choices.is_timed:
                raise Refused("half-known", titled.open_time)
            return schedule.follow_owner() if context.follows else schedule

        return build


def _contradicts(reading: Reading) -> bool:
    return any(each.code in {"contradiction", "inexpressible"} for each in reading.problems)


def _refuse(refused: Refused, text: str) -> Reading:
    span = refused.span if refused.span is not None else (0, len(text))
    words = text[slice(*span)].strip()
    shown = "" if words == text.strip() else words[:_MOST_SHOWN]
    return Reading("refusal", problems=(Problem(span, refused.code, refused.hint, shown),))
