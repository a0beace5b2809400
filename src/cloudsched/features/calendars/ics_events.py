"""The days that the events of a calendar take, as RFC 5545 repeats, moves and cancels them.

* An event takes each day of which it has a part, on the clock of its DTSTART. One that has no end takes one
  day.
* All occurrences have the same length: DTEND gives it in elapsed time, while the days of a DURATION are those
  of the clock.
* DTSTART is an occurrence, whatever the rule says. EXDATE as a date leaves out the occurrences that begin on
  that day.
* Of several versions of an event, or of one of its occurrences, the one with the highest SEQUENCE counts and,
  of equal ones, the last DTSTAMP (RFC 5546, section 2.1.5).
* RECURRENCE-ID with RANGE=THISANDFUTURE moves all later occurrences as far, until the next one.
* An event in UTC takes its days on the clock of X-WR-TIMEZONE, if the calendar has it.
* UNTIL, EXDATE and RECURRENCE-ID of an event of whole days may be in UTC. They mean a day: see `Event.align`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.expand import DAY
from cloudsched.domain.recurrence.icalendar import Component, read_observance
from cloudsched.domain.recurrence.iso8601 import Moment
from cloudsched.domain.recurrence.recurrence_set import RuleStream
from cloudsched.domain.recurrence.rrule import Until, parse_rule
from cloudsched.domain.recurrence.vtimezone import build_zone, find_windows_zone, find_zone
from cloudsched.domain.recurrence.wall_clock import WallClock, wall_clock
from cloudsched.errors import InvalidInput, InvalidSchedule
from cloudsched.features.calendars.ics_files import Length, iter_moments, parse_duration, refuse, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cloudsched.domain.recurrence.time_zones import Zone

MAX_DAYS: Final = 3661
"""The most days of one occurrence: ten years."""
_MAX_DIGITS: Final = 9
_NEXT_DAY: Final = 11 * 3600
"""The first time of a day in UTC that is taken for the midnight after it, if the calendar has no zone."""
_MINUTE: Final = 60


class Time(NamedTuple):
    """A date or time as it is written."""

    wall: int
    """The time that the clock shows, in seconds since 1970."""
    clock: WallClock | None
    """The clock that the time is on. None for a date, and for a time that is on everybody's clock."""
    is_date: bool

    def instant_on(self, clock: WallClock) -> int:
        """Return the instant, in seconds since 1970 UTC. A time without a zone is read on another clock."""
        return (self.clock or clock).instants(self.wall)[0]


@dataclass(frozen=True)
class Event:
    """A VEVENT."""

    component: Component
    zones: FileZones
    is_cancelled: bool = False
    """True if it does not take place."""

    @cached_property
    def start(self) -> Time:
        """Its start. A change of one occurrence may leave it to its RECURRENCE-ID."""
        times = self._read_times("DTSTART") or self._read_times("RECURRENCE-ID")
        if not times:
            raise refuse(self.component, "has no DTSTART", "Write DTSTART:20270714T090000Z.")
        return times[0][0]

    @cached_property
    def clock(self) -> WallClock:
        """The clock on which it recurs."""
        return self.start.clock or (not self.start.is_date and self.zones.home) or wall_clock("UTC")

    @cached_property
    def shown(self) -> WallClock:
        """The clock on which it takes its days."""
        return (self.clock is wall_clock("UTC") and not self.start.is_date and self.zones.shown) or self.clock

    @cached_property
    def recurrence_id(self) -> Time | None:
        """The occurrence that it changes, if it does."""
        return next((time for time, _ in self._read_times("RECURRENCE-ID")), None)

    @property
    def changes_following(self) -> bool:
        """True if it changes all later occurrences, too."""
        ids = self.component.find("RECURRENCE-ID")
        return any((each.parameter("RANGE") or "").upper() == "THISANDFUTURE" for each in ids)

    @cached_property
    def version(self) -> tuple[int, int]:
        """What is larger in a later version."""
        number = text_of(self.component, "SEQUENCE")
        stamps = [time.instant_on(wall_clock("UTC")) for time, _ in self._read_times("DTSTAMP")]
        return int(number) if number.isdecimal() and len(number) <= _MAX_DIGITS else 0, max(stamps, default=0)

    @cached_property
    def length(self) -> Length | None:
        """Its length, or None if it does not say so. DTEND gives it in elapsed time."""
        for found in self.component.find("DURATION"):
            return self._check_length(parse_duration(self.component, found.value.strip().upper(), found.line))
        ends = self.times("DTEND")
        return self._length_between(self.start, ends[0][0]) if ends else None

    def has(self, name: str) -> bool:
        """Return whether it has a property."""
        return bool(self.component.find(name))

    def times(self, name: str) -> list[tuple[Time, Length | None]]:
        """Return the times of a property, those of periods with their lengths."""
        return [(self.align(time), length) for time, length in self._read_times(name)]

    def align(self, time: Time) -> Time:
        """Return a time that belongs to the event. A time in UTC means a day if the event is of whole days.

        The day is that in UTC if it is midnight there, or the last second of a day, and else that in the
        calendar's zone. Without one it is the day whose midnight is near, west of Greenwich or east.
        """
        if not self.start.is_date or time.is_date or time.clock is not wall_clock("UTC"):
            return time
        home = self.zones.home
        day = time.wall // DAY
        if 0 < time.wall % DAY < DAY - 1:
            if home:
                day = (time.wall + home.zone.offset_at(time.wall)) // DAY
            else:
                is_end = time.wall % _MINUTE == _MINUTE - 1
                day = (time.wall + is_end + DAY - _NEXT_DAY) // DAY - is_end
        return Time(day * DAY, None, is_date=True)

    def streams(self, name: str, clock: WallClock) -> list[RuleStream]:
        """Return the instants of its rules on a clock: of RRULE, or of RFC 2445's EXRULE."""
        streams = list[RuleStream]()
        for found in self.component.find(name):
            try:
                rule = parse_rule(found.value.strip())
                if rule.until and rule.until.is_utc:
                    until = self.align(Time(rule.until.seconds, wall_clock("UTC"), is_date=False))
                    rule = replace(rule, until=Until(until.wall, is_utc=not until.is_date))
                streams.append(RuleStream(rule, self.start.wall, clock, "ELAPSED"))
            except InvalidSchedule as error:
                problem = f"has a rule that cannot be read: {error.problem}"
                raise refuse(self.component, problem, error.hint, found.line) from error
        return streams

    def _read_times(self, name: str) -> list[tuple[Time, Length | None]]:
        times = list[tuple[Time, Length | None]]()
        for begin, end, tzid in iter_moments(self.component, name):
            clock = None if tzid is None else self.zones.find(tzid)
            time = _to_time(begin, clock)
            if isinstance(end, Moment):
                times.append((time, self._length_between(time, _to_time(end, clock))))
            else:
                times.append((time, end))
        return times

    def _length_between(self, begin: Time, end: Time) -> Length:
        if begin.clock is None:  # as written, too
            return self._check_length(Length(seconds=end.wall - begin.wall))
        return self._check_length(Length(seconds=end.instant_on(begin.clock) - begin.instant_on(begin.clock)))

    def _check_length(self, length: Length) -> Length:
        seconds = length.days * DAY + length.seconds
        if seconds > MAX_DAYS * DAY:
            raise refuse(self.component, f"has {seconds // DAY} days", "At most ten years each.")
        return Length() if seconds < 0 else length


class FileZones:
    """The zones that the times of a calendar may name."""

    def __init__(self, calendar: Component) -> None:
        self._defined = {text_of(each, "TZID"): each for each in reversed(calendar.parts) if each.name == "VTIMEZONE"}
        self._clocks: dict[str, WallClock | None] = {}
        name = text_of(calendar, "X-WR-TIMEZONE")
        self.shown: WallClock | None = self.find(name) if name else None
        """The clock on which the calendar shows its events."""

    @cached_property
    def home(self) -> WallClock | None:
        """The clock of the calendar's author, if it is known."""
        places = self._defined.keys() - {"UTC"}
        return self.shown or (self.find(*places) if len(places) == 1 else None)

    def find(self, tzid: str) -> WallClock | None:
        """Return the clock of a zone, or None if nobody knows it."""
        if tzid not in self._clocks:
            self._clocks[tzid] = None  # its own DTSTART may name it
            self._clocks[tzid] = self._make(tzid)
        return self._clocks[tzid]

    def _make(self, tzid: str) -> WallClock | None:
        name = find_zone(tzid)
        if tzid in self._defined and (name is None or "/" not in name):  # EST is what the file takes it for
            return WallClock(self._build(self._defined[tzid]), "SHIFT", "FIRST")
        name = name or find_windows_zone(tzid)
        return None if name is None else wall_clock(name)

    def _build(self, defined: Component) -> Zone:
        parts = [each for each in defined.parts if each.name in {"STANDARD", "DAYLIGHT"}]
        if not parts:
            raise refuse(defined, "has neither STANDARD nor DAYLIGHT", "Add one, with its offset.")
        try:
            return build_zone(text_of(defined, "TZID"), list(map(read_observance, parts)))
        except (InvalidSchedule, ValueError) as error:
            hint = "Write +0200."
            raise refuse(defined, f"has an offset, a date or a rule that cannot be read: {error}", hint) from error


def _to_time(moment: Moment, clock: WallClock | None) -> Time:
    if moment.offset is not None:
        clock = wall_clock("UTC")
    return Time(moment.wall, None if moment.is_date else clock, moment.is_date)


def list_series(calendars: Iterable[Component]) -> list[Series]:
    """Return the events of calendars by UID, in their newest versions. One without a UID is alone."""
    by_uid: dict[str, list[Event]] = defaultdict(list)
    for calendar in calendars:
        method = text_of(calendar, "METHOD").upper()
        if method not in {"", "PUBLISH", "REQUEST", "CANCEL"}:
            hint = "Give the calendar itself, or an invitation."
            raise InvalidInput(
                "ics",
                f"line {calendar.line}: METHOD:{method[:20]} is an answer or a proposal",
                hint,
            )
        zones = FileZones(calendar)
        for each in calendar.parts:
            if each.name == "VEVENT":
                is_cancelled = method == "CANCEL" or text_of(each, "STATUS").upper() == "CANCELLED"
                by_uid[text_of(each, "UID") or f" {each.line}"].append(Event(each, zones, is_cancelled))
    return [_choose_versions(versions) for versions in by_uid.values()]


def _choose_versions(versions: list[Event]) -> Series:
    if len(versions) == 1 and not versions[0].has("RECURRENCE-ID"):
        return Series(versions, ())
    ordered = sorted(versions, key=lambda each: (each.version, each.is_cancelled))
    whole = [each for each in ordered if each.recurrence_id is None]
    newest = [
        each for each in whole if whole[-1].version == each.version and whole[-1].is_cancelled <= each.is_cancelled
    ]
    by_instant: dict[int, Event] = {}
    for each in ordered:
        if each.recurrence_id is not None:  # on any clock
            recurring = next((one for one in reversed(whole) if one.has("DTSTART")), each)
            by_instant[recurring.align(each.recurrence_id).instant_on(recurring.clock)] = each
    changes = list(by_instant.values())
    for event in newest:
        if any(each.version < event.version for each in changes):  # some may be of what it no longer has
            has = () if event.is_cancelled else _Occurrences(event, ())
            changes = [each for each in changes if each.version >= event.version or each in has]
    return Series(newest, changes)


class Days(NamedTuple):
    """Days from one to another, both included, counted from 1970-01-01, and their name."""

    first: int
    last: int
    name: str


class Series(NamedTuple):
    """An event in all its occurrences."""

    events: Sequence[Event]
    """The event that recurs, or several if they do not say which of them is newer."""
    changes: Sequence[Event]
    """The events that replace some occurrences."""

    def iter_days(self, first: int, last: int) -> Iterator[Days]:
        """Yield the days of its occurrences. Those of recurring events are from the first day to the last."""
        for event in self.events:
            if event.has("DTSTART") or not event.is_cancelled:
                yield from self._iter_recurring(event, first, last)
        for change in self.changes:
            if not change.is_cancelled:
                yield self._take(change, change.start.instant_on(change.clock), change.clock)

    def _iter_recurring(self, event: Event, first: int, last: int) -> Iterator[Days]:
        """Yield the days of an event's occurrences that no change replaces."""
        spend_steps(len(self.changes))
        clock = event.clock
        later = sorted(
            (
                _Later(
                    since := _wall_of(event.align(time), clock),
                    _wall_of(change.start, clock) - since,
                    change,
                )
                for change in self.changes
                if change.changes_following and (time := change.recurrence_id)
            ),
            key=lambda each: each.since,
        )
        occurrences = _Occurrences(event, self.changes)
        lengths = [event.length, *occurrences.periods.values(), *(each.event.length for each in later)]
        reach = max((length.days * DAY + length.seconds for length in lengths if length), default=DAY)
        reach += max((abs(each.shift) for each in later), default=0) + 2 * DAY
        for at in occurrences.iter_between(first * DAY - reach, last * DAY + reach):
            wall = at + clock.zone.offset_at(at)
            number = bisect_right(later, wall, key=lambda each: each.since)
            if not number:
                if not event.is_cancelled:
                    yield self._take(event, at, clock, occurrences.periods.get(at))
                continue
            change = later[number - 1]
            moved = wall + change.shift
            if not change.event.is_cancelled and moved < (last + 1) * DAY:
                yield self._take(change.event, clock.instants(moved)[0], clock)

    def _take(self, event: Event, begin: int, clock: WallClock, length: Length | None = None) -> Days:
        """Return the days of an occurrence, one at least."""
        if length is None and event.has("DTSTART"):
            length = event.length
        elif length is None and self.events:  # it changes neither the time nor the length
            length = event.length or self.events[0].length
        if length is None:
            length = Length(days=1 if event.start.is_date else 0)
        wall = begin + clock.zone.offset_at(begin)
        end = clock.instants(wall + length.days * DAY)[0] + length.seconds
        if clock is event.clock:
            clock = event.shown
        first = _day_of(begin, clock)
        last = _day_of(end - 1, clock)
        names = (text_of(each.component, "SUMMARY") for each in (event, *self.events[:1]))
        return Days(first, max(first, last), next(filter(None, names), ""))


class _Later(NamedTuple):
    """A change of all occurrences from a time on."""

    since: int
    shift: int
    """The time by which they move, on the clock."""
    event: Event


class _Occurrences:
    """When an event begins: DTSTART, RDATE and RRULE, less what EXDATE, EXRULE or a change leaves out."""

    def __init__(self, event: Event, changes: Sequence[Event]) -> None:
        self._event = event
        self.periods = {time.instant_on(event.clock): length for time, length in event.times("RDATE")}
        """The lengths of the dates that have their own."""
        self._dates = {event.start.instant_on(event.clock), *self.periods}
        self._rules = event.streams("RRULE", event.clock)
        self._left_out_rules = event.streams("EXRULE", event.clock)
        times = [time for time, _ in event.times("EXDATE")]
        times += [event.align(time) for change in changes if (time := change.recurrence_id)]
        self._left_out_days = {time.wall // DAY for time in times if time.is_date or event.start.is_date}
        self._left_out = {time.instant_on(event.clock) for time in times if not time.is_date}

    def __contains__(self, change: Event) -> bool:
        """Return whether one of them is what another event changes."""
        time = self._event.align(change.recurrence_id or change.start)
        begin = time.instant_on(self._event.clock)
        end = begin + (DAY - 1 if time.is_date else 0)
        return any(at <= end for at in self.iter_between(begin, end))

    def iter_between(self, begin: int, end: int) -> Iterator[int]:
        """Yield those of dates from `begin` on, and those of rules from there to `end`, each once."""
        spend_steps(len(self._dates))
        known = {at for at in self._dates if at >= begin}
        yield from filter(self._is_on, known)
        for stream in self._rules:
            at = stream.first_from(begin)
            while at is not None and at <= end:
                spend_steps(3)
                if at not in known and self._is_on(at):
                    yield at
                known.add(at)
                at = stream.first_from(at + 1)

    def _is_on(self, at: int) -> bool:
        if at in self._left_out or _day_of(at, self._event.shown) in self._left_out_days:
            return False
        return not any(stream.first_from(at) == at for stream in self._left_out_rules)


def _day_of(instant: int, clock: WallClock) -> int:
    return (instant + clock.zone.offset_at(instant)) // DAY


def _wall_of(time: Time, clock: WallClock) -> int:
    if time.is_date or time.clock is None:
        return time.wall
    at = time.instant_on(clock)
    return at + clock.zone.offset_at(at)
