"""The meaning of a phrase's parts, before any calendar is asked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Span = tuple[int, int]
"""Where something stands in the phrase: the places of its first character and of the one after its last."""

NOWHERE: Span = (0, 0)


class Unit(IntEnum):
    """Units of time, numbered as in the lexicon."""

    SECOND = 0
    MINUTE = 1
    HOUR = 2
    DAY = 3
    WEEK = 4
    MONTH = 5
    QUARTER = 6
    YEAR = 7
    FORTNIGHT = 8
    HALF_YEAR = 9


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day as it was said.

    Attributes:
        hour: As it was said.
        minute: Minutes after the hour; negative before it.
        second: Seconds.
        half: 0 for the morning, 1 for the afternoon, None where nothing says it.
        exact: It was written as on a clock of 24 hours.
        part: The part of the day named with it: 0 morning, 1 afternoon, 2 evening, 3 night.
        named: It is noon or midnight, by name.
        span: Where it stands.
    """

    hour: int
    minute: int = 0
    second: int = 0
    half: int | None = None
    exact: bool = False
    part: int | None = None
    named: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time: of each unit how many; ``minutes`` is what fractions of an hour come to."""

    amounts: tuple[tuple[Unit, int], ...]
    span: Span = NOWHERE

    @property
    def finest(self) -> Unit:
        """The finest unit named."""
        return min(unit for unit, _ in self.amounts)


@dataclass(frozen=True, slots=True)
class Repeat:
    """How often: every ``interval`` units. ``rate`` is how many times in one (twice a week), 1 where it was not said.

    Attributes:
        loose: The interval may be meant otherwise: ``bi`` for biweekly and its like, ``nth`` for an ordinal.
    """

    interval: int
    unit: Unit
    rate: int = 1
    loose: str = ""
    adverb: bool = False
    span: Span = NOWHERE


DAY, WORKDAY, WEEKENDDAY = 7, 8, 9
"""What a `Pick` may pick besides a weekday, 0 to 6."""


class Pick(NamedTuple):
    """One kind of day of a period: its nth such day; every one where ``nth`` is 0."""

    nth: int
    what: int


@dataclass(frozen=True, slots=True)
class Period:
    """What the days are counted in.

    Attributes:
        unit: Month, quarter or year.
        interval: Every how many of them.
        months: These months only.
        quarter_months: Of a quarter, which months: 1 to 3.
        year: This year only.
        ahead: 0 is the current one, 1 the next; None where every one is meant.
        each: It was said that every one is meant.
        definite: "the month": the current one, or every one.
    """

    unit: Unit = Unit.MONTH
    interval: int = 1
    months: tuple[int, ...] = ()
    quarter_months: tuple[int, ...] = ()
    year: int | None = None
    ahead: int | None = None
    each: bool = False
    definite: bool = False


@dataclass(frozen=True, slots=True)
class Date:
    """A date as it was said; what is missing follows from today.

    Attributes:
        swapped: The other way to read it, where day and month can be exchanged.
        clock: A time on that day, where only this is meant.
    """

    month: int | None = None
    day: int | None = None
    year: int | None = None
    weekday: int | None = None
    swapped: tuple[int, int] | None = None
    clock: Clock | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Relative:
    """A day, or an instant, counted from another.

    Attributes:
        kind: ``day`` (``count`` days from today), ``weekday`` (the one that ``ahead`` says), ``length`` (from ``base``,
            or now), ``weekdays`` (``count`` such weekdays from ``base``), ``edge`` (of a period), ``closest``.
    """

    kind: str
    count: int = 0
    weekday: int | None = None
    ahead: int | None = None
    length: Length | None = None
    base: Relative | Date | Days | None = None
    unit: Unit | None = None
    back: bool = False
    from_moment: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Days:
    """Days by name, number or date, in a period.

    Attributes:
        picks: The days of the period.
        dates: Dates, if days are named by these.
        weeks: Numbers of weeks of the year, to which the days are limited.
        marked: It was said that they repeat: every, plural.
        on: They were joined by a preposition.
        loose: The ordinal may be an interval.
        plural: Several days are named.
    """

    picks: tuple[Pick, ...] = ()
    period: Period | None = None
    dates: tuple[Date, ...] = ()
    weeks: tuple[int, ...] = ()
    marked: bool = False
    on: bool = False
    loose: bool = False
    plural: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Times:
    """One or more times of day."""

    clocks: tuple[Clock, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the day; ``each`` where it is said to repeat."""

    part: int
    each: bool = False
    today: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Window:
    """From one time of day to another."""

    first: Clock | None
    last: Clock | None
    open_first: bool = False
    open_last: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Grid:
    """Minutes and hours by number: "at minute 0 and 30 in hour 9 to 17"."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Months:
    """A limit to months."""

    months: tuple[int, ...]
    doubtful: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Year:
    """A limit to one year: its number, or how many ahead of this one."""

    year: int | None = None
    ahead: int | None = None
    span: Span = NOWHERE


Point = Date | Relative | Days | Months | Year


@dataclass(frozen=True, slots=True)
class Start:
    """From when on."""

    point: Point | None
    clock: Clock | None = None
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class End:
    """Until when, how often, or for how long.

    Attributes:
        before: The day itself is out.
        clock: The last moment on that day.
        utc: The clock is in UTC.
    """

    point: Point | None = None
    count: int | None = None
    length: Length | None = None
    clock: Clock | None = None
    before: bool = False
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Except:
    """What to leave out."""

    points: tuple[Point, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Place:
    """A time zone; several names where the word is ambiguous."""

    names: tuple[str, ...]
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class Mark:
    """A word with a bearing on the whole: ``and``, ``synchronised``, ``once``, ``skip-back``, ``skip-forward``."""

    kind: str
    span: Span = NOWHERE


Clause = (
    Repeat | Days | Date | Relative | Times | Part | Window | Grid | Months | Year | Start | End | Except | Place | Mark
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """A whole phrase: the place of its title, its clauses in order, and the number of the token they begin with."""

    title: Span | None
    clauses: tuple[Clause, ...]
    begin: int = 0
