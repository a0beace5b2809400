"""The instants of a schedule: the union of its rules and RDATEs without its EXDATEs (RFC 5545, 3.8.5).

Everything is compared as instants. COUNT and UNTIL apply to their own rule. An EXDATE removes an instant that
COUNT has already counted. An instant produced twice is one occurrence. DTSTART is an occurrence only if a
rule produces it, or if there is no rule.

Rules of a day or longer produce wall-clock times, which `cloudsched.domain.recurrence.wall_clock` converts to
instants.

A rule finer than a day can be read in two ways (``subDaily``):

- ``elapsed``: its periods are real hours, minutes or seconds after DTSTART, across clock changes, so that an
  hourly task fires once every real hour. Its BYxxx parts filter by what the clock shows at each instant.
- ``wall``: its periods are those of the clock face, converted like a daily rule's times: every six hours
  stays at 2, 8, 14 and 20, and an instant that two of them map to fires once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, Protocol

from typing_extensions import override

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.days import DayFilter
from cloudsched.domain.recurrence.expand import (
    CALENDAR_DAYS,
    DAY,
    LAST_SECOND,
    MINUTE,
    DatedTimes,
    PeriodGrid,
    Periods,
    StepLimit,
    WallTimes,
    refuse_sparse,
)
from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.recurrence.time_zones import find_zone
from cloudsched.domain.recurrence.wall_clock import Fold, Gap, WallClock, clock_of
from cloudsched.errors import InvalidSchedule

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.time_zones import Zone, ZoneData

SubDaily = Literal["elapsed", "wall"]
MAX_RULE_COUNT = 100_000
_CYCLE = CALENDAR_DAYS * DAY
_DISTANT_PAST = -(10**11)
_MOST_READ = 50


@dataclass(frozen=True)
class Recurrence:
    """The instants of a schedule, in seconds since 1970 UTC."""

    streams: tuple[Stream, ...]
    excluded: frozenset[int]
    excluded_days: frozenset[int]
    clock: WallClock

    @cached_property
    def first(self) -> int | None:
        """The first instant of all, or None if there is none. It is searched once."""
        return self.first_from(_DISTANT_PAST)

    @property
    def interval(self) -> int | None:
        """The seconds between any two consecutive instants, or None if they vary."""
        if len(self.streams) != 1 or self.excluded or self.excluded_days:
            return None
        return self.streams[0].interval

    def first_from(self, instant: int) -> int | None:
        """Return the first instant that is not before ``instant``, or None if there is none.

        Raises InvalidSchedule if the search uses up its steps.
        """
        first: int | None = self.__dict__.get("first")
        if first is not None and instant <= first:  # its search is not repeated
            return first

        work: StepLimit | None = None
        while True:
            spend_steps(len(self.streams))
            if len(self.streams) == 1:
                result = self.streams[0].first_from(instant)
            else:
                result = self._earliest_from(instant)
            # West of Greenwich the last day extends into the next year.
            if result is None or result > LAST_SECOND:
                return None
            if self.excluded_days:
                zone = self.clock.zone
                day = (result + zone.offset_at(result)) // DAY
                if day in self.excluded_days:
                    instant = max(result + 1, (day + 1) * DAY - zone.largest)
                    work = work or StepLimit()
                    work.consume()
                    continue
            if result not in self.excluded:
                return result
            instant = result + 1

    def walls_of(self, instant: int) -> tuple[int, ...]:
        """Return the wall-clock times that an occurrence stands for, ascending.

        Usually that is the time that the clock shows. After a gap 03:30 may stand for 02:30, for itself, or
        for both.
        """
        shown = instant + self.clock.zone.offset_at(instant)
        if len(self.clock.walls_at(instant)) <= 1:
            return (shown,)
        having = [stream for stream in self.streams if stream.first_from(instant) == instant]
        walls = {wall for stream in having for wall in stream.walls_of(instant, shown)}
        return tuple(sorted(walls)) or (shown,)

    @cached_property
    def is_local(self) -> bool:
        """Return whether all are wall-clock times: no instants of their own, and no steps in real time."""
        return all(each.is_local for each in self.streams)

    @cached_property
    def has_local(self) -> bool:
        """Return whether some are wall-clock times."""
        return any(each.is_local for each in self.streams)

    @cached_property
    def parts(self) -> tuple[Recurrence, Recurrence]:
        """Its wall-clock times alone, and the instants that are known by their instant alone."""
        kinds = ([each for each in self.streams if each.is_local is kind] for kind in (True, False))
        local, others = (replace(self, streams=tuple(kind)) for kind in kinds)
        return local, others

    def read(self, instant: int) -> tuple[int, bool] | None:
        """Return the wall-clock time that names an occurrence, and whether it is the second one of that time.

        None if it is known by its own instant. Of several times that meet at one instant, the last one names
        it.
        """
        known: tuple[int, bool] | str | None = self._latest_read.get(instant, "")
        if not isinstance(known, str):
            return known
        if len(self._latest_read) >= _MOST_READ:
            self._latest_read.clear()
        found = self._latest_read[instant] = self._read(instant)
        return found

    @cached_property
    def _latest_read(self) -> dict[int, tuple[int, bool] | None]:
        """The readings of instants, since the few of a plan are read again and again."""
        return {}

    def _read(self, instant: int) -> tuple[int, bool] | None:
        if self.is_local:
            wall = self.walls_of(instant)[-1]
        else:
            shown = instant + self.clock.zone.offset_at(instant)
            local = (each for each in self.streams if each.is_local and each.first_from(instant) == instant)
            walls = [wall for each in local for wall in each.walls_of(instant, shown)]
            if not walls:
                return None
            wall = max(walls)
        return wall, self.clock.is_second(instant, wall)

    def _earliest_from(self, instant: int) -> int | None:
        each = (stream.first_from(instant) for stream in self.streams)
        return min((result for result in each if result is not None), default=None)


def list_rules(rrule: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the RRULE values of a schedule, which may have one, several or none."""
    if rrule is None:
        return ()
    return (rrule,) if isinstance(rrule, str) else rrule


@lru_cache(maxsize=1024)
def compile_recurrence(  # noqa: PLR0913, PLR0917 -- a schedule's parts, and the cache's key
    data: ZoneData,
    rrule: str | tuple[str, ...] | None,
    dtstart: str,
    timezone: str,
    rdates: tuple[str, ...],
    exdates: tuple[str, ...],
    gap: Gap,
    fold: Fold,
    sub_daily: SubDaily,
    start_zone: str | None = None,
) -> Recurrence:
    """Compile the parts of a schedule once, so that each search costs only the search.

    With a `start_zone`, DTSTART is a local time there, and rules of elapsed time step from its instant.

    A zone that the data do not know is taken for UTC. The planner knows the clock's offset from it.
    """
    spend_steps(len(rdates) + len(exdates))
    rules = list_rules(rrule)
    clock = clock_of(find_zone(timezone, data), gap, fold)
    start = parse_moment(dtstart, "dtstart").wall
    begin = None
    if start_zone is not None:
        begin = first_instant(clock_of(find_zone(start_zone, data), gap, fold), start)
        start = begin + clock.zone.offset_at(begin)

    streams: list[Stream] = [RuleStream(parse_rule(rule), start, clock, sub_daily, begin) for rule in rules]
    dates: dict[int, set[int]] = {}
    if not rules:
        dates = {each: {start} for each in clock.instants(start)}
    absolute: dict[int, set[int]] = {}
    for number, text in enumerate(rdates):
        moment = parse_moment(text, f"rdates.{number}")
        for each in list_instants(moment, clock, start % DAY):
            if moment.offset is None:
                dates.setdefault(each, set()).add(_wall_of(moment, start % DAY))
            else:
                absolute.setdefault(each, set()).add(each + clock.zone.offset_at(each))
    if dates or not (streams or absolute):
        streams.append(Dates(dates))
    if absolute:
        streams.append(Dates(absolute, is_local=False))

    excluded: set[int] = set()
    excluded_days: set[int] = set()
    for number, text in enumerate(exdates):
        moment = parse_moment(text, f"exdates.{number}")
        if moment.is_date:
            excluded_days.add(moment.wall // DAY)
        else:
            excluded.update(list_instants(moment, clock, 0))
    return Recurrence(tuple(streams), frozenset(excluded), frozenset(excluded_days), clock)


def list_instants(moment: Moment, clock: WallClock, time_of_day: int) -> tuple[int, ...]:
    """Return the instants that one date or time of a list means.

    A date is taken at a time of day, in seconds.
    """
    if moment.offset is not None:
        return (moment.wall - moment.offset,)
    return clock.instants(_wall_of(moment, time_of_day))


def _wall_of(moment: Moment, time_of_day: int) -> int:
    if moment.is_date:
        return moment.wall + time_of_day
    return moment.wall


class Stream(Protocol):
    """Ascending instants, in seconds since 1970 UTC."""

    is_local: bool = False
    """True if they are wall-clock times, rather than instants of their own or steps in elapsed time."""
    interval: int | None = None
    """The seconds between any two consecutive ones, or None if they vary."""

    def first_from(self, instant: int) -> int | None:
        """Return the first instant that is not before ``instant``, or None if there is none."""

    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        """Return the wall-clock times that produce one of its instants, or the one shown if none do."""
        del instant
        return (shown,)


class Dates(Stream):
    """Instants that are listed one by one, with the wall-clock times that were written."""

    def __init__(self, instants: dict[int, set[int]], *, is_local: bool = True) -> None:
        self.is_local = is_local
        self._instants = sorted(instants)
        self._walls = instants

    @override
    def first_from(self, instant: int) -> int | None:
        at = bisect_left(self._instants, instant)
        if at < len(self._instants):
            return self._instants[at]
        return None

    @override
    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        return tuple(self._walls[instant])


class RuleStream(Stream):
    """The instants of one rule."""

    def __init__(
        self,
        rule: Rule,
        start: int,
        clock: WallClock,
        sub_daily: SubDaily,
        begin: int | None = None,
    ) -> None:
        self.is_local: bool = rule.frequency <= Frequency.DAILY or sub_daily == "wall"
        self._count = rule.count
        self._counted = (-LAST_SECOND, 0)
        """The latest instant that was counted, and its number. It is one value, since threads share it."""
        self._last = _last_instant(rule, clock)

        self._unbounded = _build_stream(rule, start, clock, sub_daily, self._last, begin)
        self.interval: int | None = self._unbounded.interval
        is_counted = not isinstance(self._unbounded, FixedInterval)
        if is_counted and (rule.count or 0) > MAX_RULE_COUNT:
            hint = f"at most {MAX_RULE_COUNT}; use UNTIL instead"
            raise InvalidSchedule("rrule", f"COUNT is {rule.count}", hint)

    @override
    def first_from(self, instant: int) -> int | None:
        if instant > self._last:
            return None
        result = self._unbounded.first_from(instant)
        if result is None:
            return None

        if self._count is not None:
            if result == self._unbounded.first_from(-LAST_SECOND):
                return result
            self._count_up_to(result, self._count)  # which may find out that the rule ends before
        if result > self._last:
            return None
        return result

    @override
    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        return self._unbounded.walls_of(instant, shown)

    def _count_up_to(self, wanted: int, count: int) -> None:
        """Count the instants up to one that is wanted. Those that were counted before are known.

        If COUNT ends on the way, the stream ends there from then on.
        """
        if isinstance(self._unbounded, FixedInterval):
            self._last = self._unbounded.at(count - 1)
            self._count = None
            return
        last, counted = self._counted
        try:
            while last < wanted and counted < count:
                spend_steps()
                following = self._unbounded.first_from(last + 1)
                if following is None:
                    break
                last = following
                counted = counted + 1
        finally:
            self._counted = (last, counted)
        if counted == count:
            self._last = last
            self._count = None


class FixedInterval(Stream):
    """A rule in elapsed time whose instants have a fixed distance, in seconds."""

    def __init__(self, start: int, step: int) -> None:
        self._start = start
        self._step = step
        self.interval: int = step

    def at(self, number: int) -> int:
        """Return the instant of a zero-based number."""
        return self._start + number * self._step

    @override
    def first_from(self, instant: int) -> int | None:
        if instant <= self._start:
            return self._start
        result = instant + (self._start - instant) % self._step
        return result if result <= LAST_SECOND else None


class WallClockStream(Stream):
    """Wall-clock times, converted to instants by a clock with its policies."""

    def __init__(self, times: WallTimes, clock: WallClock) -> None:
        self._times = times
        self._clock = clock

    @override
    def first_from(self, instant: int) -> int | None:
        return self._clock.first_from(self._times, instant)

    @override
    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        return tuple(wall for wall in self._clock.walls_at(instant) if self._times.first_from(wall) == wall)


class ElapsedPeriods(Stream):
    """A rule finer than a day whose periods are elapsed time."""

    def __init__(self, periods: Periods, days: DayFilter, zone: Zone, first_period: int, until: int) -> None:
        self._periods = periods
        self._days = days
        self._zone = zone
        self._first_period = first_period
        self._until = until

    @override
    def first_from(self, instant: int) -> int | None:
        work = StepLimit()
        horizon = instant + _CYCLE
        reached = instant
        while reached <= min(horizon, self._until):
            result, following = self._search_interval(reached, work)
            if following is None:
                return result
            reached = following
        if reached <= self._until:
            refuse_sparse()
        return None

    def _search_interval(self, instant: int, work: StepLimit) -> tuple[int | None, int | None]:
        """Search up to the next clock change.

        Return the instant found, or else where to continue, if at all.
        """
        table = self._zone.table_for(instant)
        at = bisect_right(table.changes, instant)
        end = table.end
        if at < len(table.changes):
            end = table.changes[at]
        offset = table.offsets[at]
        last = int(min(LAST_SECOND, self._until + offset, end - 1 + offset))
        grid = self._grid(offset)
        wall = grid.first_from(instant + offset, last, work)
        if wall is not None:
            return wall - offset, None
        if last == LAST_SECOND or (
            grid.is_empty and all(self._grid(later).is_empty for later in {*table.offsets[at:]})
        ):
            return None, None
        work.consume()
        day = self._days.first_from((int(min(end, self._until)) + self._zone.smallest) // DAY)
        if day is None:
            return None, None
        return None, max(int(min(end, self._until + 1)), day * DAY - self._zone.largest)

    def _grid(self, offset: int) -> PeriodGrid:
        return self._periods.grid_at(self._first_period + offset)


class WallPeriods(Stream):
    """A rule finer than a day whose periods are those of the wall clock."""

    def __init__(self, periods: Periods, first_period: int, last: int) -> None:
        self._grid = periods.grid_at(first_period)
        self._last = last

    @override
    def first_from(self, wall: int) -> int | None:
        return self._grid.first_from(wall, self._last, StepLimit())


class SetPositionFilter(Stream):
    """The instants that BYSETPOS picks from each period of a rule finer than a day."""

    def __init__(
        self,
        members: Stream,
        periods: Periods,
        first_period: int,
        positions: tuple[int, ...],
    ) -> None:
        self._members = members
        self._periods = periods
        self._first_period = first_period
        self._positions = positions
        self._never = min(abs(place) for place in positions) > len(periods.members(first_period))
        self._known: tuple[int | None, tuple[int, ...]] = (None, ())

    @override
    def first_from(self, instant: int) -> int | None:
        if self._never:
            return None
        work = StepLimit(1000)
        probe = self._period_start(instant)
        while True:
            member = self._members.first_from(probe)
            if member is None:
                return None
            period = self._period_start(member)
            picked = self._select_in_period(period)
            at = bisect_left(picked, instant)
            if at < len(picked):
                return picked[at]
            probe = period + self._periods.step
            work.consume()

    def _period_start(self, instant: int) -> int:
        return instant - (instant - self._first_period) % self._periods.step

    def _select_in_period(self, period: int) -> tuple[int, ...]:
        known, picked = self._known  # read together: another thread may be at another period
        if known == period:
            return picked
        members = []
        member = self._members.first_from(period)
        while member is not None and member < period + self._periods.unit:
            spend_steps()
            members.append(member)
            member = self._members.first_from(member + 1)
        places = {place - 1 if place > 0 else len(members) + place for place in self._positions}
        picked = tuple(members[place] for place in sorted(places) if 0 <= place < len(members))
        self._known = (period, picked)
        return picked


class StartingAt(Stream):
    """A stream from a start on."""

    def __init__(self, stream: Stream, start: int) -> None:
        self._stream = stream
        self._start = start

    @override
    def first_from(self, instant: int) -> int | None:
        return self._stream.first_from(max(instant, self._start))

    @override
    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        return self._stream.walls_of(instant, shown)


def _last_instant(rule: Rule, clock: WallClock) -> int:
    """Return the latest instant that UNTIL allows.

    A local time in a gap, which never shows it, counts as well.
    """
    if rule.until is None:
        return LAST_SECOND
    if rule.until.is_utc:
        return rule.until.seconds
    ends = clock.instants(rule.until.seconds)
    return max(ends, default=rule.until.seconds - clock.zone.smallest)


def first_instant(clock: WallClock, start: int) -> int:
    """Return the instant from which rules of elapsed time count."""
    starts = clock.instants(start)
    if starts:
        return starts[0]
    return start - clock.zone.offset_at(start - clock.zone.largest)


def _build_stream(
    rule: Rule, start: int, clock: WallClock, sub_daily: SubDaily, until: int, begin: int | None
) -> Stream:
    """Return a rule's instants from DTSTART on, whatever its COUNT.

    `start` is DTSTART as the clock shows it. If a gap shifts it, the times just after the gap come before
    DTSTART although they read later: 03:00 is before 02:30, which means 03:30. `begin` is the instant that
    DTSTART means to rules of elapsed time, if the clock does not say.
    """
    starts = clock.instants(start)
    if rule.frequency <= Frequency.DAILY:
        return _not_before(WallClockStream(DatedTimes(rule, start), clock), starts)

    time = start % DAY
    days = DayFilter(rule, weekdays=[day.weekday for day in rule.weekdays])
    periods = Periods(rule, time // 60 % 60, time % 60, days)
    into_period = time % periods.unit
    if sub_daily == "wall":
        first_period = start - into_period
        times: Stream = WallPeriods(periods, first_period, min(LAST_SECOND, until + clock.zone.largest + DAY))
        if rule.positions:
            times = SetPositionFilter(times, periods, first_period, rule.positions)
        return _not_before(WallClockStream(StartingAt(times, start), clock), starts)

    if begin is None:
        begin = first_instant(clock, start)
    first_period = begin - into_period
    if days.is_unrestricted and not (rule.hours or rule.positions):
        steady = _find_steady_start(rule, periods, first_period, begin, clock.zone)
        if steady is not None:
            return FixedInterval(steady, periods.step)
    stream: Stream = ElapsedPeriods(periods, days, clock.zone, first_period, until)
    if rule.positions:
        stream = SetPositionFilter(stream, periods, first_period, rule.positions)
    return StartingAt(stream, begin)


def _find_steady_start(rule: Rule, periods: Periods, first_period: int, begin: int, zone: Zone) -> int | None:
    """Return the first instant of a rule that has one in each period, always as far into it.

    None for others.
    """
    if not rule.minutes and not rule.seconds:
        return begin
    is_filter = periods.unit == 1 or (periods.unit == MINUTE and rule.minutes)
    shown = first_period + zone.offset_at(begin)
    is_aligned = shown % periods.unit == 0 and zone.changes_by(periods.unit, begin)
    members = periods.members(0)
    if is_filter or not is_aligned or len(members) != 1:
        return None
    first = first_period + members[0]
    if first < begin:
        first += periods.step
    return first


def _not_before(stream: Stream, starts: tuple[int, ...]) -> Stream:
    """Cut off the instants before DTSTART. A DTSTART that a gap skips is no instant, and bounds nothing."""
    if not starts:
        return stream
    return StartingAt(stream, starts[0])
