"""The days that iCalendar files take: those of their events, as RFC 5545 repeats, moves and cancels them.

* An event takes each day of which it has a part, on the clock of its DTSTART. One that has no end takes one day.
* All occurrences have the same length: DTEND gives it in elapsed time, while the days of a DURATION are those of the
  clock.
* DTSTART is an occurrence, whatever the rule says. EXDATE as a date leaves out the occurrences that begin on that day.
* Of several versions of an event, or of one of its occurrences, that with the highest SEQUENCE counts.
* RECURRENCE-ID with RANGE=THISANDFUTURE moves all later occurrences as far, until the next one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final, NamedTuple

from cloudsched.domain.recurrence.allowance import DISPATCH_STEPS, limit_search, spend_steps
from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND
from cloudsched.domain.recurrence.icalendar import find_windows_zone, find_zone
from cloudsched.domain.recurrence.iso8601 import EPOCH, utc_seconds, wall_seconds
from cloudsched.domain.recurrence.recurrence_set import RuleStream
from cloudsched.domain.recurrence.rrule import parse_rule
from cloudsched.domain.recurrence.time_zones import Zone
from cloudsched.domain.recurrence.wall_clock import WallClock, wall_clock
from cloudsched.domain.schedules.calendar_days import MAX_INTERVALS, to_date, to_day
from cloudsched.errors import InvalidInput, InvalidSchedule, SearchLimitReached

MAX_EVENTS: Final = 3_000
"""The most events and rules of a file."""
MAX_DATES: Final = 10_000
"""The most dates that a file may add or leave out, in its lines RDATE and EXDATE."""
MAX_DAYS: Final = 3661
"""The most days of one occurrence: ten years."""
_MAX_CHANGES: Final = 1_000
"""The most clock changes that are followed in a zone that a file defines."""
_LAST_CHANGE: Final = wall_seconds(datetime(2100, 1, 1))  # noqa: DTZ001 - on any clock
_EVENT: Final = ("VCALENDAR", "VEVENT")
_ZONE: Final = ("VCALENDAR", "VTIMEZONE")
_OBSERVANCES: Final = {(*_ZONE, "STANDARD"), (*_ZONE, "DAYLIGHT")}
_READ: Final = {
    *("DTSTART", "DTEND", "DURATION", "RRULE", "EXRULE", "RDATE", "EXDATE", "RECURRENCE-ID"),
    *("UID", "SEQUENCE", "STATUS", "SUMMARY", "TZID", "TZOFFSETFROM", "TZOFFSETTO"),
}
_LAST_YEAR: Final = 9900
_BYTE_ORDER_MARK: Final = "\ufeff"
_MAX_DIGITS: Final = 9
_MAX_DEPTH: Final = 10
_MAX_PARAMETERS: Final = 100
"""The most parameters of a line. RFC 5545 names two for a date."""
_MAX_UNUSUAL: Final = 200_000
"""The most characters of lines with unusual parameters that are read. The package looks at each several times."""
_LEAST_UNUSUAL: Final = 100
"""The least number of characters that such a line counts as."""
_FOLD: Final = re.compile(r"(?<![\r\n])\r*\n(?:\r?\n)*[ \t]")
"""The break between two lines that are really one. The search begins at the first of several ends of lines in a row."""
_NEW_LINE: Final = re.compile(r"\r?\n")
_PARAMETER = r';([A-Za-z-]+)=(?:([\w./+-]+)|"([\w ./+-]+)")'
_USUAL: Final = re.compile(rf"[A-Za-z-]+((?:{_PARAMETER})*):(.*)", re.DOTALL)
"""A line that needs no package to be read: each parameter has one value, and nothing in it is escaped."""
_PLAIN_MOMENT: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z?))?")
"""A date or time that needs no package to be read."""


class Time(NamedTuple):
    """A date or time as it is written."""

    wall: int
    """The time that the clock shows, in seconds since 1970."""
    clock: WallClock | None
    """The clock that the time is on. None for a date, and for a time that is on everybody's clock."""
    is_date: bool

    def instant_on(self, clock: WallClock) -> int:
        """Return the instant, in seconds since 1970 UTC. Read a time without a zone of its own on another clock."""
        return (self.clock or clock).instants(self.wall)[0]


class Length(NamedTuple):
    """A duration: days on the clock, and then seconds."""

    days: int = 0
    seconds: int = 0


class Property(NamedTuple):
    """A line of a component."""

    value: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Event:
    """A VEVENT, or an observance of a VTIMEZONE."""

    properties: dict[str, list[Property]]
    zones: FileZones

    def text(self, name: str) -> str:
        """Return the first value of a property, or an empty text if there is none."""
        found = self.properties.get(name)
        return found[0].value.strip() if found else ""

    @cached_property
    def start(self) -> Time:
        """Its start. A change of one occurrence may leave it to its RECURRENCE-ID."""
        times = self.times("DTSTART") or self.times("RECURRENCE-ID")
        if not times:
            raise InvalidInput("ics", "has an event whose DTSTART is empty", "Write DTSTART:20270714T090000Z.")
        return times[0][0]

    @property
    def clock(self) -> WallClock:
        """The clock on which it recurs."""
        return self.start.clock or wall_clock("UTC")

    @cached_property
    def recurrence_id(self) -> Time | None:
        """The occurrence that it changes, if it does."""
        return next((time for time, _ in self.times("RECURRENCE-ID")), None)

    @property
    def changes_following(self) -> bool:
        """True if it changes all later occurrences, too."""
        ids = self.properties.get("RECURRENCE-ID", ())
        return any(each.parameters.get("RANGE", "").upper() == "THISANDFUTURE" for each in ids)

    @property
    def is_cancelled(self) -> bool:
        """True if it does not take place."""
        return self.text("STATUS").upper() == "CANCELLED"

    @property
    def sequence(self) -> int:
        """The number of this version."""
        value = self.text("SEQUENCE")
        return int(value) if value.isdecimal() and len(value) <= _MAX_DIGITS else 0

    @cached_property
    def length(self) -> Length | None:
        """Its length, or None if it does not say so. DTEND gives it in elapsed time."""
        if duration := self.text("DURATION"):
            return _parse_duration(duration)
        ends = self.times("DTEND")
        return _length_between(self.start, ends[0][0]) if ends else None

    def times(self, name: str) -> list[tuple[Time, Length | None]]:
        """Return the times of a property, those of periods with their lengths."""
        found = self.properties.get(name)
        if not found:
            return []
        return [
            self._parse_time(value.strip(), each.parameters.get("TZID"))
            for each in found
            for value in each.value.split(",")
            if value.strip()
        ]

    def streams(self, name: str, clock: WallClock) -> list[RuleStream]:
        """Return the instants of its rules on a clock: of RRULE, or of RFC 2445's EXRULE."""
        rules = [parse_rule(each.value.strip()) for each in self.properties.get(name, ())]
        return [RuleStream(rule, self.start.wall, clock, "elapsed") for rule in rules]

    def _parse_time(self, value: str, tzid: str | None) -> tuple[Time, Length | None]:
        begin, _, end = value.partition("/")
        clock = None if tzid is None else self.zones.find(tzid.strip())
        time = _parse_moment(begin, clock)
        if not end:
            return time, None
        is_duration = end.upper().startswith(("P", "+P", "-P"))
        return time, _parse_duration(end) if is_duration else _length_between(time, _parse_moment(end, clock))


class FileZones:
    """The zones that the times of a file may name."""

    def __init__(self) -> None:
        self._observances: dict[str, list[Event]] = {}
        self._clocks: dict[str, WallClock | None] = {}

    def add(self, tzid: str, observances: list[Event]) -> None:
        """Add a VTIMEZONE."""
        if observances and all("DTSTART" in each.properties for each in observances):
            self._observances.setdefault(tzid, observances)

    def find(self, tzid: str) -> WallClock | None:
        """Return the clock of a zone, or None if nobody knows it."""
        if tzid not in self._clocks:
            self._clocks[tzid] = self._make(tzid)
        return self._clocks[tzid]

    def _make(self, tzid: str) -> WallClock | None:
        name = find_zone(tzid)
        observances = self._observances.pop(tzid, None)
        if observances and (name is None or "/" not in name):  # EST is what the file takes it for
            return WallClock(_build_zone(tzid, observances), "shift", "first")
        name = name or find_windows_zone(tzid)
        return None if name is None else wall_clock(name)


def iter_files(text: str) -> Iterator[list[Event]]:
    """Yield the events of each VCALENDAR of a text."""
    file, has_calendar = _File(), False
    for line in _NEW_LINE.split(_FOLD.sub("", text.removeprefix(_BYTE_ORDER_MARK))):
        name = line.partition(":")[0].partition(";")[0].strip().upper()
        if name in {"BEGIN", "END"}:
            component = line.partition(":")[2].strip().upper()
            has_calendar = has_calendar or component == _EVENT[0]
            if file.move(name, component):
                yield file.events
                file = _File()
        elif name in _READ and file.path:
            file.add(name, line)
    if not has_calendar:
        raise InvalidInput("ics", "has no line BEGIN:VCALENDAR", "Give the whole file.")
    if file.path:
        raise InvalidInput("ics", f"is cut off: there is no END:{file.path[-1][:20]}", "Give the whole file.")


class _File:
    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.events: list[Event] = []
        self._zones = FileZones()
        self._tzid = ""
        self._observances: list[Event] = []
        self._current: Event | None = None
        self._count = self._dates = self._unusual = 0

    def move(self, verb: str, component: str) -> bool:
        """Begin or end a component, and return whether the file has ended."""
        if verb == "BEGIN":
            self.path = (*self.path, component)
            self._begin()
            return False
        while component in self.path:  # parts inside it without an end of their own end with it
            ended, self.path = self.path, self.path[:-1]
            if ended == _ZONE:
                self._zones.add(self._tzid, self._observances)
            if ended[-1] == component:
                return not self.path
        return False

    def add(self, name: str, line: str) -> None:
        if self.path == _ZONE and name == "TZID":
            self._tzid = self._parse(line).value.strip()
        elif self._current is not None and (self.path == _EVENT or self.path in _OBSERVANCES):
            self._current.properties[name].append(self._parse(line))
            if name in {"RRULE", "EXRULE"}:
                self._count_one()
            elif name in {"RDATE", "EXDATE"}:
                self._count_dates(line.count(",") + 1)

    def _parse(self, line: str) -> Property:
        if line.count(";", 0, line.find(":")) > _MAX_PARAMETERS:  # each is searched for in all of the line
            raise InvalidInput("ics", f"has more than {_MAX_PARAMETERS} parameters in {line[:40]!r}", "Give fewer.")
        found = parse_usual(line)
        if found is not None:
            return found
        self._unusual += max(len(line), _LEAST_UNUSUAL)
        if self._unusual > _MAX_UNUSUAL:
            hint = (
                f"At most {_MAX_UNUSUAL // _LEAST_UNUSUAL} such lines are read, and {_MAX_UNUSUAL} characters of them."
            )
            raise InvalidInput("ics", f"has many or long lines with unusual parameters: {line[:40]!r}", hint)
        return _parse_line(line)

    def _begin(self) -> None:
        if len(self.path) > _MAX_DEPTH:
            raise InvalidInput("ics", f"has more than {_MAX_DEPTH} components in each other", "Give fewer.")
        if self.path == _ZONE:
            self._tzid, self._observances = "", []
        elif self.path == _EVENT or self.path in _OBSERVANCES:
            self._current = Event(defaultdict(list), self._zones)
            (self.events if self.path == _EVENT else self._observances).append(self._current)
            self._count_one()

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MAX_EVENTS:
            raise InvalidInput("ics", f"has more than {MAX_EVENTS} events and rules", "Give fewer.")

    def _count_dates(self, number: int) -> None:
        self._dates += number
        if self._dates > MAX_DATES:
            raise InvalidInput("ics", f"has more than {MAX_DATES} dates in RDATE and EXDATE", "Give fewer, or a rule.")


def _values() -> Any:  # noqa: ANN401 - their methods have no types
    from icalendar import prop  # noqa: PLC0415 - as above

    return prop


def parse_usual(line: str) -> Property | None:
    """Return the result of `_parse_line`, or None for a line that only the package can read."""
    found = _USUAL.fullmatch(line)
    if found is None:
        return None
    parameters, value = found[1], found[5]
    if "\\" in value:
        from icalendar.parser.property import unescape_backslash  # noqa: PLC0415 - as above

        value = unescape_backslash(value)
    return Property(
        value, {name.upper(): plain or quoted for name, plain, quoted in re.findall(_PARAMETER, parameters)}
    )


def _parse_line(line: str) -> Property:
    from icalendar.parser import Contentline  # noqa: PLC0415 - slow to import, and few lines need it

    try:
        _, parameters, value = Contentline(line).parts()  # type: ignore[no-untyped-call]  # as most of it
    except ValueError as error:
        raise InvalidInput("ics", f"has the line {line[:40]!r}, which cannot be read", "Write NAME:value.") from error
    return Property(
        value, {name: each if isinstance(each, str) else ",".join(each) for name, each in parameters.items()}
    )


def _parse_moment(value: str, clock: WallClock | None) -> Time:
    found = parse_plain_moment(value)
    if found is None:
        try:
            found = _values().vDDDTypes.from_ical(value)
        except ValueError:
            found = None
    if not isinstance(found, date) or found.year > _LAST_YEAR:
        raise InvalidInput("ics", f"has the date {value[:20]!r}", "Write 20270714, or 20270714T090000Z.")
    if not isinstance(found, datetime):
        return Time((found - EPOCH.date()).days * DAY, None, is_date=True)
    if found.tzinfo is not None:
        return Time(utc_seconds(found), wall_clock("UTC"), is_date=False)
    return Time(wall_seconds(found), clock, is_date=False)


def parse_plain_moment(value: str) -> date | None:
    """Return a usual date or time, naive or in UTC, or None if only the package can read it."""
    found = _PLAIN_MOMENT.fullmatch(value)
    if found is None:
        return None
    year, month, day, hour, minute, second, is_utc = found.groups()
    try:
        if hour is None:
            return date(int(year), int(month), int(day))
        zone = UTC if is_utc else None
        return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=zone)
    except ValueError:
        return None


def _parse_duration(value: str) -> Length:
    """Return a duration: `PT24H` are 24 hours, and `P1D` is a day of the clock, which may have 23 or 25."""
    read = _values().vDuration.from_ical
    day_part, _, time_part = value.strip().upper().partition("T")
    try:
        days = read(day_part) if day_part.strip("+-") != "P" else timedelta(0)
        seconds = read(f"PT{time_part}") if time_part else timedelta(0)
    except (ValueError, OverflowError):
        raise InvalidInput("ics", f"has the duration {value[:20]!r}", "Write P3D or PT8H.") from None
    return _check_length(Length(days.days, int(seconds.total_seconds())))


def _length_between(begin: Time, end: Time) -> Length:
    if begin.clock is None:  # as written, too
        return _check_length(Length(seconds=end.wall - begin.wall))
    return _check_length(Length(seconds=end.instant_on(begin.clock) - begin.instant_on(begin.clock)))


def _check_length(length: Length) -> Length:
    seconds = length.days * DAY + length.seconds
    if seconds > MAX_DAYS * DAY:
        raise InvalidInput("ics", f"has an event of {seconds // DAY} days", "At most ten years each.")
    return Length() if seconds < 0 else length


def _build_zone(tzid: str, observances: list[Event]) -> Zone:
    """Return the zone of a VTIMEZONE, whose observances begin at their DTSTART, at their RDATEs and by their rules."""
    found: set[tuple[int, int]] = set()
    for each in observances:
        before, after = (_parse_offset(each.text(name)) for name in ("TZOFFSETFROM", "TZOFFSETTO"))
        clock = WallClock(Zone(tzid, [], [before], None, 0), "shift", "first")
        onsets = {time.wall - before for name in ("DTSTART", "RDATE") for time, _ in each.times(name)}
        for stream in each.streams("RRULE", clock):
            onset = stream.first_from(-LAST_SECOND)
            while onset is not None and onset < _LAST_CHANGE and len(onsets) < _MAX_CHANGES:
                onsets.add(onset)
                onset = stream.first_from(onset + 1)
        found |= {(onset, after) for onset in onsets}
    changes = sorted(found)
    first = min(observances, key=lambda each: each.start.wall)
    offsets = [_parse_offset(first.text("TZOFFSETFROM")), *(after for _, after in changes)]
    return Zone(tzid, [onset for onset, _ in changes], offsets, None, changes[-1][0])


def _parse_offset(value: str) -> int:
    try:
        return int(_values().vUTCOffset.from_ical(value).total_seconds())
    except ValueError:
        raise InvalidInput("ics", f"has the offset {value[:20]!r}", "Write +0200.") from None


MAX_TEXT: Final = 2_000_000
"""The most characters of iCalendar that are read."""
YEARS_AHEAD: Final = 10
"""The number of years ahead for which an event that recurs is followed."""
_RECURRING: Final = frozenset({"RRULE", "RDATE", "EXRULE", "EXDATE"})
"""The properties of events that may take place more than once, or not at all."""


def read_ics_days(text: str, today: date) -> list[tuple[date, date, str]]:
    """Return the intervals of days of a calendar's events, from the year before today on."""
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
    """Days from one to another, both included, counted from 1970-01-01, and their name."""

    first: int
    last: int
    name: str


class _Series(NamedTuple):
    events: Sequence[Event]
    """The event that recurs, or several if they do not say which of them is newer."""
    changes: Sequence[Event]
    """The events that replace some occurrences."""

    def iter_days(self, first: int, last: int) -> Iterator[_Days]:
        """Yield the days of its occurrences. Those of recurring events are from the first day to the last."""
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
        """Return the days of an occurrence, on its clock, one at least."""
        if length is None and "DTSTART" in event.properties:
            length = event.length
        elif length is None and self.events:  # it changes neither the time nor the length
            length = event.length or self.events[0].length
        if length is None:
            length = Length(days=1 if event.start.is_date else 0)
        wall = begin + clock.zone.offset_at(begin)
        end = clock.instants(wall + length.days * DAY)[0] + length.seconds
        first, last = wall // DAY, (end + clock.zone.offset_at(end) - 1) // DAY
        name = event.text("SUMMARY") or (self.events[0].text("SUMMARY") if self.events else "")
        return _Days(first, max(first, last), name)


class _Later(NamedTuple):
    """A change of all occurrences from a time on."""

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
        if at in self._instants or wall // DAY in self._days:
            return True
        return any(stream.first_from(at) == at for stream in self._streams)


def _group(events: Iterable[Event]) -> Iterator[_Series]:
    """Return the events of a file by UID, in their newest versions. One without a UID is alone."""
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
    """Yield the instants of dates from `begin` on, and those of rules from there to `end`, each once."""
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
    if time.is_date or time.clock is None:
        return time.wall
    at = time.instant_on(clock)
    return at + clock.zone.offset_at(at)


def _join(found: Iterable[_Days]) -> list[_Days]:
    """Join days of the same name that are next to each other, in the order of days."""
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
