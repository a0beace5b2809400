"""The instants of a schedule: the union of its rules and RDATEs without its EXDATEs (RFC 5545, section 3.8.5).

Everything is compared as instants. COUNT and UNTIL apply to their own rule. An EXDATE removes an instant that COUNT has
already counted. An instant produced twice is one occurrence. DTSTART is an occurrence only if a rule produces it, or if
there is no rule.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from typing_extensions import override

from cloudsched.domain.recurrence.allowance import spend_steps
from cloudsched.domain.recurrence.expand import DAY, LAST_SECOND, StepBudget
from cloudsched.domain.recurrence.iso8601 import Moment, parse_moment
from cloudsched.domain.recurrence.rrule import parse_rule
from cloudsched.domain.recurrence.rule_streams import RuleStream, Stream, SubDaily, first_instant
from cloudsched.domain.recurrence.wall_clock import Fold, Gap, WallClock, clock_of

if TYPE_CHECKING:
    from cloudsched.domain.recurrence.time_zones import Zone, ZoneData

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
        """The seconds between any two instants that follow each other, or None if they are not always the same."""
        only = self.streams[0] if len(self.streams) == 1 and not (self.excluded or self.excluded_days) else None
        return None if only is None else only.interval

    def first_from(self, instant: int) -> int | None:
        """Return the first instant that is not before ``instant``, or None if there is none.

        Raises InvalidSchedule if the search uses up its steps.
        """
        first: int | None = self.__dict__.get("first")
        if first is not None and instant <= first:  # its search is not repeated
            return first
        work: StepBudget | None = None
        while True:
            spend_steps(len(self.streams))
            only = self.streams[0] if len(self.streams) == 1 else None
            result = self._earliest_from(instant) if only is None else only.first_from(instant)
            if result is None or result > LAST_SECOND:  # west of Greenwich the last day extends into the next year
                return None
            if self.excluded_days:
                zone = self.clock.zone
                day = (result + zone.offset_at(result)) // DAY
                if day in self.excluded_days:
                    instant = max(result + 1, (day + 1) * DAY - zone.largest)
                    work = work or StepBudget()
                    work.consume()
                    continue
            if result not in self.excluded:
                return result
            instant = result + 1

    def walls_of(self, instant: int) -> tuple[int, ...]:
        """Return the wall-clock times that an occurrence stands for, ascending.

        Usually that is the time that the clock shows. After a gap 03:30 may stand for 02:30, for itself, or for both.
        """
        shown = instant + self.clock.zone.offset_at(instant)
        if len(self.clock.walls_at(instant)) <= 1:
            return (shown,)
        having = [stream for stream in self.streams if stream.first_from(instant) == instant]
        return tuple(sorted({wall for stream in having for wall in stream.walls_of(instant, shown)})) or (shown,)

    @cached_property
    def is_local(self) -> bool:
        """Return whether all are wall-clock times: none is an instant of its own, and no rule steps in real time."""
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

        None if it is known by its own instant. Of several times that meet at one instant, the last one names it.
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


class Dates(Stream):
    """Instants that are listed one by one, with the wall-clock times that were written."""

    def __init__(self, instants: dict[int, set[int]], *, is_local: bool = True) -> None:
        self.is_local = is_local
        self._instants = sorted(instants)
        self._walls = instants

    @override
    def first_from(self, instant: int) -> int | None:
        at = bisect_left(self._instants, instant)
        return self._instants[at] if at < len(self._instants) else None

    @override
    def walls_of(self, instant: int, shown: int) -> tuple[int, ...]:
        return tuple(self._walls[instant])


def list_rules(rrule: str | tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the RRULE values of a schedule, which may have one, several or none."""
    if rrule is None:
        return ()
    return (rrule,) if isinstance(rrule, str) else rrule


@lru_cache(maxsize=1024)
def compile_recurrence(  # noqa: PLR0913, PLR0917 -- the arguments are the parts of a schedule, and together the cache's key
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
    clock = clock_of(_find(data, timezone), gap, fold)
    start, begin = parse_moment(dtstart, "dtstart").wall, None
    if start_zone is not None:
        begin = first_instant(clock_of(_find(data, start_zone), gap, fold), start)
        start = begin + clock.zone.offset_at(begin)
    streams: list[Stream] = [RuleStream(parse_rule(rule), start, clock, sub_daily, begin) for rule in rules]
    dates: dict[int, set[int]] = {} if rules else {each: {start} for each in clock.instants(start)}
    absolute: dict[int, set[int]] = {}
    for number, text in enumerate(rdates):
        moment = parse_moment(text, f"rdates.{number}")
        for each in list_instants(moment, clock, start % DAY):
            wall = moment.wall + (start % DAY if moment.is_date else 0)
            if moment.offset is None:
                dates.setdefault(each, set()).add(wall)
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


def _find(data: ZoneData, name: str) -> Zone:
    return data.zone(name) if data.knows(name) else data.stand_in(name)


def list_instants(moment: Moment, clock: WallClock, time_of_day: int) -> tuple[int, ...]:
    """Return the instants that one date or time of a list means. A date is taken at a time of day, in seconds."""
    if moment.offset is not None:
        return (moment.wall - moment.offset,)
    return clock.instants(moment.wall + (time_of_day if moment.is_date else 0))
