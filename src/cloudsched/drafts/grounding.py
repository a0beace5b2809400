"""The guard on a model's answer: the user's own words, read without the model, give the same schedule.

The model quotes the user's words for each facet of the schedule. They are translated here, word by word, and
the grammar reads the translation. So a word that is not known in them, or a word of time outside them, stands out:
it is a day, an exception or an end that the model may have left out.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.rrule import parse_rule
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.drafts.phrases import refers_to_past
from cloudsched.drafts.translation import (
    FACETS,
    STRONG,
    Mark,
    NotKnown,
    guess_glossary,
    normalise,
    read_marks,
    translate,
)
from cloudsched.errors import InvalidSchedule, SearchLimitReached
from cloudsched.language.glossary import GLOSSARY
from cloudsched.language.languages import LANGUAGES
from cloudsched.language.messages import tell
from cloudsched.language.result import UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.drafts.situation import Situation
    from cloudsched.language.nodes import Span
    from cloudsched.language.result import Reading

_MOST_GUESSED: Final = 4_000
"""The number of the last characters by which the language is guessed."""
_IDLE: Final = frozenset({"glue", "and", "at"})
"""The meanings that may be left out: they add nothing of their own."""


def find_ungrounded(
    situation: Situation,
    schedule: str,
    said: Mapping[str, Sequence[str]],
    values: Sequence[str] = (),
    current: Schedule | None = None,
    referred: Sequence[Schedule] = (),
    *,
    assumes: bool = False,
) -> tuple[str, ...] | None:
    """Return the user's words that a schedule in plain English does not agree with. None if it is grounded.

    `said` has the quoted words of each facet, and `values` the title and the fields, which may have some of the
    others. `current` is the schedule that is changed, and `referred` are those of the tasks that are referred to.
    With `assumes`, the time of day may be another if the user named none.
    """
    request = situation.request
    turns = [normalise(turn.content) for turn in request.conversation if turn.role == "user"]
    text = normalise(request.text)
    code = (request.locale or "").partition("-")[0].lower()
    language = code if code in GLOSSARY else guess_glossary("\n".join((*turns, text))[-_MOST_GUESSED:])

    taken: dict[int, list[Span]] = {}
    found: list[tuple[int, Span, str]] = []
    for facet in FACETS:
        for piece in said.get(facet, ()):
            place = _find_place([*turns, text], normalise(piece).strip(), taken)
            if place is None:
                return (piece,)
            taken.setdefault(place[0], []).append(place[1])
            found.append((*place, facet))

    last = len(turns)
    if not schedule.strip():  # values may be of any words
        places = [find_piece(text, normalise(value), ()) for value in values if value]
        taken.setdefault(last, []).extend(place for place in places if place is not None)
        return tuple(find_uncovered(text, language, taken[last], values)) or None

    # What the grammar reads of the whole text needs no quotes.
    meant = _read_answer(situation, schedule, current)
    if current is None and language in LANGUAGES and taken.keys() <= {last} and not refers_to_past(text):
        whole = situation.read(text)
        if whole.kind != "refusal":
            return None if _is_equal(meant, whole, situation.now, assumes=assumes) else (request.text,)

    found.sort()
    words = tuple(([*turns, text])[at][start:end] for at, (start, end), _ in found) or (request.text,)
    uncovered = find_uncovered(text, language, taken.get(last, ()), values)
    if uncovered or not found:
        return tuple(uncovered) or words
    own = _read_pieces(situation, [*turns, text], found, language, meant, (current, *referred))
    is_same = any(_is_equal(meant, each, situation.now, assumes=assumes) for each in own)
    return None if is_same else words


def _find_place(texts: Sequence[str], piece: str, taken: Mapping[int, Sequence[Span]]) -> tuple[int, Span] | None:
    """Return where a piece stands, the last text first."""
    for number in reversed(range(len(texts))):
        place = find_piece(texts[number], piece, taken.get(number, ()))
        if piece and place is not None:
            return number, place
    return None


def _read_answer(situation: Situation, schedule: str, current: Schedule | None) -> Reading:
    if current is None:
        return situation.read(schedule, locale="en")
    changed = situation.read(schedule, current, "en")
    return changed if changed.kind != "refusal" else situation.read(schedule, locale="en")


def _read_pieces(
    situation: Situation,
    texts: Sequence[str],
    found: Sequence[tuple[int, Span, str]],
    language: str,
    meant: Reading,
    bases: Iterable[Schedule | None],
) -> list[Reading]:
    """Return the readings of the quoted pieces alone: of a new schedule, or of a change of one that there is."""
    locale = language if language in LANGUAGES else "en"
    kept = [(at, span, facet) for at, span, facet in found if facet != "replaced"]
    if language in LANGUAGES:
        phrase = " ".join(texts[at][start:end] for at, (start, end), _ in kept)
    else:
        pieces: dict[str, list[tuple[str, ...]]] = {}
        zone = meant.schedule.timezone if meant.schedule is not None else situation.request.timezone
        for at, (start, end), facet in kept:
            marks = read_marks(texts[at], language)
            inside = [mark for mark in marks if start <= mark.start < end]
            if not all(mark.meanings for mark in inside):
                return []
            if facet == "zone":
                if not _is_zone(texts[at][start:end], inside, zone):
                    return []
                inside = []
            codes = tuple(code for mark in inside for code in mark.meanings if code != "glue")
            if codes == ("every",):
                return []  # the word between it and its day is not quoted
            pieces.setdefault(facet, []).append(codes)
        try:
            phrase = translate(pieces, zone if "zone" in pieces else None)
        except NotKnown:
            return []

    readings = [situation.read(phrase, base, locale) for base in bases if base is not None]
    readings += [situation.read(f"make it {phrase}", base, "en") for base in bases if base is not None]
    return [*readings, situation.read(phrase, locale=locale)]


def _is_zone(piece: str, marks: Sequence[Mark], zone: str) -> bool:
    """Return whether a piece names a zone by its path or its city, and nothing else."""
    named = [mark for mark in marks if "zone" in mark.meanings]
    others = {code for mark in marks if mark not in named for code in mark.meanings}
    words = piece.casefold().replace(" ", "_")
    plain = zone.casefold()
    is_meant = plain in words or plain.rpartition("/")[2] in words
    return is_meant and len(named) == 1 and others <= {*_IDLE, "oclock", "u2"}


def _is_equal(meant: Reading, own: Reading, now: datetime, *, assumes: bool) -> bool:
    """Return whether two readings are of the same schedule, or ask or refuse the same."""
    codes = [each.code for each in meant.problems]
    if "refusal" in {meant.kind, own.kind}:
        is_read = UNREAD.isdisjoint(codes)
        return is_read and meant.kind == own.kind and codes == [each.code for each in own.problems]
    if meant.title is not None:
        return False
    if meant.schedule is None:
        return {each.description for each in meant.readings} == {each.description for each in own.readings}
    if own.schedule is None:
        return assumes and any(_is_same(meant.schedule, each.schedule, now) for each in own.readings)
    untimed = tell(own.language, "No time was given, so {part} is {time}.", part="\0", time="\0").partition("\0")[0]
    is_open = assumes and any(note.startswith(untimed) for note in own.assumptions)
    return _is_same(meant.schedule, own.schedule, now, is_open=is_open)


_COMPARED: Final = 40
"""The number of the next occurrences that are compared."""
_STRIDE: Final = timedelta(days=8)
_STRIDES: Final = 46
_COMPARED_AFTER: Final = 2
"""Within a year, some occurrences from many later days on: "but not in July" is seen in July alone."""


def _is_same(one: Schedule, other: Schedule, now: datetime, *, is_open: bool = False) -> bool:
    """Return whether two schedules have the same next occurrences and ends. If `is_open`, the same days suffice."""
    if one == other:
        return True
    if one.timezone != other.timezone or _list_ends(one) != _list_ends(other):
        return False
    first = _list_next(one, now, is_open=is_open)
    return bool(first) and first == _list_next(other, now, is_open=is_open)


def _list_next(schedule: Schedule, now: datetime, *, is_open: bool) -> list[object]:
    zone = load_tzinfo(schedule.timezone)
    if schedule.at is not None:
        return [schedule.at.astimezone(zone).date() if is_open else schedule.at]
    if is_open:
        now = datetime.combine(now.astimezone(zone).date() + timedelta(days=1), time(0), zone)
    try:
        found = schedule.upcoming(now, _COMPARED)
        for stride in range(1, _STRIDES):
            found += schedule.upcoming(now + stride * _STRIDE, _COMPARED_AFTER)
    except SearchLimitReached:
        raise
    except InvalidSchedule:  # too rare to be found
        return []
    return [each.astimezone(zone).date() if is_open else each for each in found]


def _list_ends(schedule: Schedule) -> list[tuple[object, object]]:
    rules = [parse_rule(each) for each in schedule.rules]
    return [(each.count, each.until) for each in rules if each.count or each.until]


def find_piece(text: str, piece: str, taken: Iterable[Span]) -> Span | None:
    """Return where a quoted piece stands in a text, beside those that are taken. It begins and ends with a word."""
    for each in re.finditer(re.escape(piece), text, re.IGNORECASE):
        start, end = each.span()
        is_free = all(end <= first or last <= start for first, last in taken)
        is_cut = any(
            0 < at < len(text) and text[at - 1].isascii() and text[at - 1].isalnum() and text[at].isalnum()
            for at in (start, end)
        )
        if is_free and not is_cut:
            return start, end
    return None


def find_uncovered(text: str, language: str, covered: Sequence[Span], values: Iterable[str]) -> list[str]:
    """Return the words about time that no piece covers, and no title or value that may have them.

    Those may have a number, a length of less than a day ("walk for 20 minutes"), a city, and a "not" that is
    far from any time. Other words of time in a title stand in quotes.
    """
    marks = read_marks(text, language)
    quoted = [each.span() for each in re.finditer(r"[\"“„«「][^\"“”„»」]*[\"”»」]", text)]
    is_open = [not any(start <= mark.start < end for start, end in (*covered, *quoted)) for mark in marks]
    values = [normalise(value).casefold() for value in values]

    uncovered = []
    for at, mark in enumerate(marks):
        is_hour = (
            mark.meanings == ("oclock",)
            and bool(at)
            and re.match(r"n\d|c\d", " ".join(marks[at - 1].meanings)) is not None
        )
        is_reply = at == 0 and mark.meanings == ("except",) and text[mark.end :].startswith(",")  # "no, on Friday"
        if not is_open[at] or is_reply or is_hour or set(mark.meanings) <= _IDLE or not _is_about_time(marks, at):
            continue
        word = text[mark.start : mark.end]
        is_named = any(re.search(rf"(?<!\w){re.escape(word.casefold())}", value) for value in values)
        if not (is_named and _may_be_title(marks, at, is_open)):
            uncovered.append(word)
    return uncovered


def _is_strong(mark: Mark) -> bool:
    return any(STRONG.fullmatch(each) for each in mark.meanings)


def _run(marks: Sequence[Mark], at: int) -> range:
    """Return the marks around one, up to the next plain words."""
    first = last = at
    while first and marks[first - 1].meanings:
        first -= 1
    while last + 1 < len(marks) and marks[last + 1].meanings:
        last += 1
    return range(first, last + 1)


def _is_about_time(marks: Sequence[Mark], at: int) -> bool:
    return any(_is_strong(marks[each]) or "zone" in marks[each].meanings for each in _run(marks, at))


def _may_be_title(marks: Sequence[Mark], at: int, is_open: Sequence[bool]) -> bool:
    """Return whether a mark can belong to a title: a number or a short length that nothing else makes a time."""
    run = _run(marks, at)
    meanings = {each for number in run for each in marks[number].meanings}
    if marks[at].meanings == ("except",):
        near = range(max(at - 2, 0), min(at + 5, len(marks)))
        return not any(_is_strong(marks[each]) for each in near if each != at)
    if "zone" in marks[at].meanings:
        return True
    is_short = all(re.fullmatch(r"n\d+|u[012]|glue|and", each) for each in meanings)
    is_report = bool(re.fullmatch(r"u\d", " ".join(marks[at].meanings))) and len(run) == 1
    return (is_short or is_report) and all(is_open[each] for each in run)
