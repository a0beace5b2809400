"""The context of a phrase: the current time, the time zone, and the default times of day."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language.messages import say
from cloudsched.language.result import Option, Refused, T, Unclear

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date, datetime

    from cloudsched.language.nodes import Clock, Span, Window

_PART_HOURS = (9, 15, 18, 21, 12)
NOON = 12
HOURS_OF_PART = (
    range(13),
    range(12, 20),
    range(16, 24),
    (*range(18, 24), *range(9)),
    range(10, 17),
)
"""The hours that a part of the day may have, by its number."""


class TimeOfDay(NamedTuple):
    """A time of day on the 24-hour clock."""

    hour: int
    minute: int = 0
    second: int = 0

    def __str__(self) -> str:
        """Return it as ``9:00``."""
        return f"{self.hour}:{self.minute:02}" + (f":{self.second:02}" if self.second else "")


@dataclass
class Context:
    """The current time and the time zone of a phrase, and the decisions made so far.

    Attributes:
        timezone: The IANA time zone of all local times.
        default: The time of day to use if the phrase gives none.
        calendar: The id of the default calendar, which defines holidays. None if there is none.
        clock24: At least one time in the phrase is clearly written on the 24-hour clock.
        follows: The phrase says that its times are in the owner's present zone.
        is_placed: The phrase names a time zone.
        is_titled: The phrase has a title, to which a place may belong.
        stretched: Dates to leave out that were not named one by one. Those without a run need no exception.
        is_yearly: The subject of the phrase happens every year, such as a birthday.
        keeps_time: A schedule keeps its own time of day if the phrase gives none.
        taken: The index of the chosen option, by code and span.
        notes: The assumptions made, one sentence each.
        is_timed: The phrase names a time of day, or a frequency within one day.
    """

    now: datetime
    timezone: str
    default: TimeOfDay = field(default_factory=lambda: TimeOfDay(9))
    calendar: str | None = None
    clock24: bool = False
    follows: bool = False
    is_placed: bool = False
    is_titled: bool = False
    is_yearly: bool = False
    keeps_time: bool = False
    stretched: set[str] = field(default_factory=set)
    taken: dict[tuple[str, Span], int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    is_timed: bool = True

    def pick(self, code: str, span: Span, options: Sequence[Option[T]]) -> T:
        """Return the value of the option that was chosen. Raises Unclear before one is."""
        chosen = self.taken.get((code, span))
        if chosen is None:
            raise Unclear(code, span, options)
        return options[chosen].value

    def assume(self, sentence: str) -> None:
        """Record an assumption, unless it is recorded already."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    @property
    def local(self) -> datetime:
        """Return the current local time, without microseconds."""
        return self.to_local(self.now).replace(microsecond=0)

    @property
    def today(self) -> date:
        """Return the current local date."""
        return self.local.date()

    def to_local(self, instant: datetime) -> datetime:
        """Return the local time of an instant."""
        return instant.astimezone(load_tzinfo(self.timezone)).replace(tzinfo=None)

    def to_instant(self, local: datetime) -> datetime:
        """Return the instant of a local time: the first of a repeated one. A time in a gap moves later by the gap."""
        zone = load_tzinfo(self.timezone)
        return local.replace(tzinfo=zone).astimezone(load_tzinfo("UTC"))

    def assume_part_of_day(self, part: int) -> TimeOfDay:
        """Return the default time of a part of the day, and record the assumption."""
        time = TimeOfDay(_PART_HOURS[part])
        self.assume(say("No time was given, so it is {time}.", time=time))
        return time

    def assume_default_time(self) -> TimeOfDay:
        """Return the default time of day, and record the assumption."""
        if not self.keeps_time:
            self.assume(say("No time was given, so it is {time}.", time=self.default))
        self.is_timed = False
        return self.default

    def resolve_times(self, clocks: Sequence[Clock], part: int | None) -> list[TimeOfDay]:
        """Return times of day in order, without duplicates."""
        half = next((clock.half for clock in reversed(clocks) if clock.half is not None), None)
        is_open = half == 1 and part is None and not self.clock24
        result = [
            self.ask_half(clock)
            if is_open and is_bare(clock) and 0 < clock.hour < NOON
            else self.resolve_time(clock, part)
            for clock in clocks
        ]
        if len({*result}) < len(result) and any(map(is_bare, clocks)):  # "at 9am and 9"
            raise Refused("contradiction", clocks[-1].span)
        return sorted(set(result))

    def resolve_time(self, clock: Clock, part: int | None = None) -> TimeOfDay:
        """Return one time of day. The part of the day decides about a bare hour, or else it is assumed or asked."""
        said = clock.part if clock.part is not None else part
        time = self._resolve_exactly(clock, said)
        if said is not None and not clock.named and time.hour not in HOURS_OF_PART[said]:
            raise Refused("contradiction", clock.span)  # "tomorrow morning at 5pm"
        if clock.about:
            self.assume(say("About {time} is {time}.", time=time))
        return time

    def _resolve_exactly(self, clock: Clock, said: int | None) -> TimeOfDay:
        hour = clock.hour
        time = TimeOfDay(hour, clock.minute, clock.second)
        if clock.day_end:
            ends = (TimeOfDay(17), TimeOfDay(23, 59, 59)) if clock.day_end == 1 else (TimeOfDay(17), TimeOfDay(18))
            return self._ask("day-end", clock, ends)
        if clock.half is not None and not (clock.exact and hour > NOON):
            return time._replace(hour=hour % NOON + NOON * clock.half)
        if not 0 < hour <= NOON:
            return time
        if said is not None:
            late = time._replace(hour=(hour + NOON) % 24)
            if hour == NOON and said == 0:  # "12 in the morning"
                return self._ask("bare-hour", clock, (late, time))
            if late.hour not in HOURS_OF_PART[said]:
                return time
            is_either = clock.exact and hour < NOON and not clock.oclock  # "in the evening at 09:00"
            return self.ask_half(clock) if is_either else late
        if clock.exact or self.clock24:
            return time
        if hour < 7:
            return self.ask_half(clock)
        self.assume(say("{time} is noon.", time=time) if hour == NOON else say("{time} is in the morning.", time=time))
        return time

    def resolve_window(self, window: Window) -> tuple[TimeOfDay, TimeOfDay]:
        """Return the first and the last time of a window."""
        first, last = window.first, window.last
        if is_bare(first) and last.half is not None:
            end = self.resolve_time(last)
            likely, *_ = times = list_times(first)
            start = max((time for time in times if time < end), default=likely)
            self.assume(say("It begins at {start}.", start=start))
            return start, end
        start = self.resolve_time(first)
        if not is_bare(last) or self.clock24 or last.hour == NOON:
            return start, self.resolve_time(last)
        likely, *_ = times = list_times(last)
        end = min((time for time in times if time > start), default=likely)
        if end != likely:
            self.assume(say("It ends at {end}.", end=end))
        return start, end

    def _ask(self, code: str, clock: Clock, times: tuple[TimeOfDay, ...]) -> TimeOfDay:
        return self.pick(code, clock.span, [Option(say("at {time}", time=time), time) for time in times])

    def ask_half(self, clock: Clock) -> TimeOfDay:
        """Ask in which half of the day an hour is."""
        morning = TimeOfDay(clock.hour, clock.minute, clock.second)
        afternoon = morning._replace(hour=clock.hour + NOON)
        options = (
            Option(say("{time} in the morning", time=morning), morning),
            Option(say("{time} in the afternoon", time=afternoon), afternoon),
        )
        return self.pick("bare-hour", clock.span, options)


def list_times(clock: Clock) -> list[TimeOfDay]:
    """Return the times of day that a clock may mean, the likeliest first."""
    hour = clock.hour if clock.half is None else clock.hour % NOON + NOON * clock.half
    hours = (hour, hour + NOON) if clock.half is None and not clock.exact else (hour,)
    return [TimeOfDay(each % 24, clock.minute, clock.second) for each in hours]


def is_bare(clock: Clock) -> bool:
    """Return whether an hour does not say in which half of the day it is."""
    return clock.half is None and not clock.exact and clock.part is None and clock.hour <= NOON
