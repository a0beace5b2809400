"""The days that iCalendar files take: those of their events, as RFC 5545 repeats, moves and cancels them.

* An event takes each day of which it has a part, on the clock of its DTSTART. One that has no end takes one day.
* All occurrences last as long: in elapsed time if DTEND says how long, while the days of a DURATION are those of the
  clock.
* DTSTART is an occurrence, whatever the rule says. EXDATE as a date leaves out what begins on that day.
* Of several versions of an event, or of one of its occurrences, that with the highest SEQUENCE counts.
* RECURRENCE-ID with RANGE=THISANDFUTURE moves what follows as far, until the next one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.calendars.days import MAX_INTERVALS, to_date, to_day
from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search, spend_steps
from cloudsched.domain.recurrence.expand import DAY
from cloudsched.domain.schedules.ics_events import Event, Length, iter_files
from cloudsched.errors import InvalidInput, InvalidSchedule, SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cloudsched.domain.recurrence.rule_streams import RuleStream
    from cloudsched.domain.recurrence.wall_clock import WallClock
    from cloudsched.domain.schedules.ics_events import Time

MAX_TEXT: Final = 2_000_000
"""How many characters of iCalendar are read."""
YEARS_AHEAD: Final = 10
"""How far ahead an event that recurs is followed."""
_RECURRING: Final = frozenset({"RRULE", "RDATE", "EXRULE", "EXDATE"})
"""What an event has that may take place more than once, or not at all."""


def read_ics_days(text: str, today: date) -> list[tuple[date, date, str]]:
    """Return the intervals of days of a calendar's events, from the year before today on.

    Raises:
        InvalidInput: It is no iCalendar file, has too many events, or rules that take too long to follow.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput("ics", f"has {len(text)} characters", f"At most {MAX_TEXT}.")
    if "BEGIN:VCALENDAR" not in text[:2000].upper():
        raise InvalidInput("ics", "is no iCalendar text", "It begins with BEGIN:VCALENDAR.")
    first, last = to_day(date(today.year - 1, 1, 1)), to_day(date(today.year + YEARS_AHEAD, 12, 31))
    found = set[_Days]()
    try:
        with limit_search(DISPATCH_STEPS):
            for events in iter_files(text):
                for series in _group(events):
                    found.update(days for days in series.iter_days(first, last) if days.last >= first)
    except SearchLimitReached as error:
        raise InvalidInput("ics", "has rules that take too long to follow", "Give fewer events that recur.") from error
    except InvalidSchedule as error:
        raise InvalidInput("ics", f"has a rule that cannot be read: {error.problem}", error.hint) from error
    joined = _join(sorted(found))
    if len(joined) > MAX_INTERVALS:
        raise InvalidInput("ics", f"has more than {MAX_INTERVALS} days and intervals", "Give fewer.")
    return [(to_date(each.first), to_date(each.last), each.name) for each in joined]


class _Days(NamedTuple):
    """Days from one to another, both included, counted from 1970-01-01, and what they are."""

    first: int
    last: int
    name: str


class _Series(NamedTuple):
    """The events with one UID."""

    events: Sequence[Event]
    """What recurs; several if they do not say which of them is newer."""
    changes: Sequence[Event]
    """What some occurrences are instead."""

    def iter_days(self, first: int, last: int) -> Iterator[_Days]:
        """Yield the days of its occurrences: of what recurs, those from the first day to the last."""
        for event in self.events:
            if self.changes or not _RECURRING.isdisjoint(event.properties):
                yield from self._iter_recurring(event, first, last)
            elif not event.is_cancelled:
                yield self._take(event, event.start.instant_on(event.clock), event.clock)
        for change in self.changes:
            if not change.is_cancelled:
                yield self._take(change, change.start.instant_on(change.clock), change.clock)

    def _iter_recurring(self, event: Event, first: int, last: int) -> Iterator[_Days]:
        """Yield the days of an event's occurrences that no change replaces."""
        spend_steps(len(self.changes))
        clock = event.clock
        later = sorted(
            (
                _Later(_wall_of(time, clock), _wall_of(change.start, clock), change)
                for change in self.changes
                if change.changes_following and (time := change.recurrence_id)
            ),
            key=lambda each: each.since,
        )
        periods = {time.instant_on(clock): length for time, length in event.times("RDATE")}
        lengths = [event.length, *periods.values(), *(each.event.length for each in later)]
        reach = max(length.days * DAY + length.seconds for length in lengths if length) if any(lengths) else DAY
        reach += max((abs(each.shift) for each in later), default=0) + 2 * DAY
        left_out = _LeftOut(event, self.changes)
        dates = {event.start.instant_on(clock), *periods}
        for at in _iter_instants(event.streams("RRULE", clock), dates, first * DAY - reach, last * DAY + reach):
            wall = at + clock.zone.offset_at(at)
            if left_out.has(at, wall):
                continue
            number = bisect_right(later, wall, key=lambda each: each.since)
            if not number:
                if not event.is_cancelled:
                    yield self._take(event, at, clock, periods.get(at))
                continue
            change = later[number - 1]
            moved = wall + change.shift
            if not change.event.is_cancelled and moved < (last + 1) * DAY:
                yield self._take(change.event, clock.instants(moved)[0], clock)

    def _take(self, event: Event, begin: int, clock: WallClock, length: Length | None = None) -> _Days:
        """Return the days of an occurrence, on its clock; one at least."""
        if length is None and "DTSTART" in event.properties:
            length = event.length
        elif length is None and self.events:  # what it changes is neither when it is nor how long it lasts
            length = event.length or self.events[0].length
        if length is None:
            length = Length(days=1 if event.start.is_date else 0)
        wall = begin + clock.zone.offset_at(begin)
        end = clock.instants(wall + length.days * DAY)[0] + length.seconds
        first, last = wall // DAY, (end + clock.zone.offset_at(end) - 1) // DAY
        name = event.text("SUMMARY") or (self.events[0].text("SUMMARY") if self.events else "")
        return _Days(first, max(first, last), name)


class _Later(NamedTuple):
    """What all occurrences from a time on are instead."""

    since: int
    start: int
    event: Event

    @property
    def shift(self) -> int:
        """The time by which they move, on the clock."""
        return self.start - self.since


class _LeftOut:
    """The occurrences of an event that EXDATE, EXRULE or a change leaves out."""

    def __init__(self, event: Event, changes: Sequence[Event]) -> None:
        clock = event.clock
        times = [time for time, _ in event.times("EXDATE")]
        times += [time for change in changes if (time := change.recurrence_id)]
        as_days = event.start.is_date
        self._days = {time.wall // DAY for time in times if time.is_date or as_days}
        self._instants = {time.instant_on(clock) for time in times if not time.is_date}
        self._streams = event.streams("EXRULE", clock)

    def has(self, at: int, wall: int) -> bool:
        """Return whether an occurrence is left out."""
        if at in self._instants or wall // DAY in self._days:
            return True
        return any(stream.first_from(at) == at for stream in self._streams)


def _group(events: Iterable[Event]) -> Iterator[_Series]:
    """Return the events of a file by UID, in their newest versions; one without a UID is alone."""
    by_uid: dict[str, list[Event]] = defaultdict(list)
    for number, event in enumerate(events):
        if "DTSTART" in event.properties or "RECURRENCE-ID" in event.properties:
            by_uid[event.text("UID") or f" {number}"].append(event)
    for some in by_uid.values():
        if len(some) == 1 and "RECURRENCE-ID" not in some[0].properties:
            yield _Series(some, ())
            continue
        changes: dict[Time, Event] = {}
        whole = list[Event]()
        for event in sorted(some, key=lambda each: each.sequence):
            changed = event.recurrence_id
            if changed is None:
                whole.append(event)
            else:
                changes[changed] = event
        newest = max((event.sequence for event in whole), default=0)
        yield _Series([event for event in whole if event.sequence == newest], list(changes.values()))


def _iter_instants(streams: Sequence[RuleStream], dates: set[int], begin: int, end: int) -> Iterator[int]:
    """Yield the instants of dates from one on, and of rules up to another, each once."""
    known = {at for at in dates if at >= begin}
    yield from known
    for stream in streams:
        at = stream.first_from(begin)
        while at is not None and at <= end:
            spend_steps(3)
            if at not in known:
                known.add(at)
                yield at
            at = stream.first_from(at + 1)


def _wall_of(time: Time, clock: WallClock) -> int:
    """Return what a clock shows at a time."""
    if time.is_date or time.clock is None:
        return time.wall
    at = time.instant_on(clock)
    return at + clock.zone.offset_at(at)


def _join(found: Iterable[_Days]) -> list[_Days]:
    """Join what has the same name and is next to each other, in the order of days."""
    joined = list[_Days]()
    open_ends: dict[str, int] = {}
    for days in found:
        at = open_ends.get(days.name)
        if at is not None and days.first <= joined[at].last + 1:
            joined[at] = joined[at]._replace(last=max(joined[at].last, days.last))
        else:
            open_ends[days.name] = len(joined)
            joined.append(days)
    return joined
