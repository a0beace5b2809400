"""The syntax tree of a phrase: the meaning of its parts, before any calendar arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")

Span = tuple[int, int]
"""A part of the phrase: start and end offset in characters, end excluded."""

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


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(kind: type[T]) -> type[T]:
    """Make a class of nodes: what was said is a value that nothing changes."""
    return dataclass(frozen=True, slots=True)(kind)


@node
class Node:
    """What was said, and its place in the phrase."""

    span: Span = field(default=NOWHERE, kw_only=True)


@node
class Clock(Node):
    """A time of day as written.

    Attributes:
        minute: Minutes after the hour, or if negative, before it.
        half: 0 for the morning, 1 for the afternoon, None if not given.
        exact: It is written on the 24-hour clock.
        part: The part of the day given with it: 0 morning, 1 afternoon, 2 evening, 3 night, 4 midday.
        named: It is the word "noon" or "midnight".
        day_end: It is the end of the day (1) or of the working day (2), which has no time of its own.
        oclock: It has a word such as "Uhr", which fits the 24-hour clock and a part of the day: "abends um 8 Uhr".
        about: It is said to be rough: "around 9".
    """

    hour: int
    minute: int = 0
    second: int = 0
    half: int | None = None
    exact: bool = False
    part: int | None = None
    named: bool = False
    day_end: int = 0
    oclock: bool = False
    about: bool = False


@node
class Length(Node):
    """A length of time: an amount for each unit. Fractions are in the next smaller unit."""

    amounts: tuple[tuple[Unit, int], ...]

    @property
    def finest(self) -> Unit:
        """Return the smallest unit in it."""
        return min(unit for unit, _ in self.amounts)

    @property
    def seconds(self) -> int:
        """Return the seconds of a length of hours, minutes and seconds alone."""
        return sum(count * {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600}[unit] for unit, count in self.amounts)


@node
class Repeat(Node):
    """A frequency: every ``interval`` units, ``rate`` times in each (2 for twice a week, and 1 if not given).

    Attributes:
        loose: It may also be every ``rate`` units, as "biweekly" may.
    """

    interval: int
    unit: Unit
    rate: int = 1
    loose: bool = False
    adverb: bool = False


FOLLOWING = "following"
"""The kind of the mark for times that follow their owner from zone to zone."""

REPEATS = "repeats"
"""The kind of the mark for a repetition: "always on Tuesday"."""

REGULARLY = "regularly"
"""The kind of the mark for a repetition without a frequency: "regularly", "recurring"."""

DAY, WORKDAY, WEEKENDDAY = 7, 8, 9
"""The picks of a `Pick` besides a weekday, 0 to 6."""


class Pick(NamedTuple):
    """One kind of day in a period: the nth such day, or every one if ``nth`` is 0."""

    nth: int
    what: int


@node
class Period(Node):
    """The period in which days are counted, or within which all happens: "in 2027", "next week".

    Attributes:
        unit: Month, quarter or year. A single one may be a week.
        quarter_months: The months within a quarter, 1 to 3.
        ahead: 0 is the current one, 1 the next. None for every period.
        each: The phrase says "every".
        definite: The phrase says "the month", which is the current one or every one.
    """

    unit: Unit = Unit.MONTH
    interval: int = 1
    months: tuple[int, ...] = ()
    quarter_months: tuple[int, ...] = ()
    year: int | None = None
    ahead: int | None = None
    each: bool = False
    definite: bool = False


@node
class Date(Node):
    """A date as written. Missing parts follow from the current date.

    Attributes:
        swapped: The other way to read it, if day and month are interchangeable.
        clock: The time on that day, for an exception that names a single occurrence.
        is_leap_day: It is called the leap day, which other years do not have.
    """

    month: int | None = None
    day: int | None = None
    year: int | None = None
    weekday: int | None = None
    swapped: tuple[int, int] | None = None
    clock: Clock | None = None
    is_leap_day: bool = False


@node
class Relative(Node):
    """A day or an instant relative to another.

    Attributes:
        kind: ``day`` (``count`` days from today), ``weekday`` (``ahead`` is 0 for "this", 1 for "next",
            None for the coming one), ``weekend`` (likewise, one day of it or both), ``week`` (a weekday of
            the week ``ahead`` weeks from now), ``length`` (from ``base``, or now), ``weekdays`` (``count``
            such weekdays from ``base``), ``weeks-on`` (a weekday ``count`` weeks on), ``business`` (``count``
            business days from today), ``edge`` (``base``, the start or end of a period), ``now``.
    """

    kind: str
    count: int = 0
    weekday: int | None = None
    ahead: int | None = None
    length: Length | None = None
    base: Point | None = None
    back: bool = False
    from_moment: bool = False


@node
class Days(Node):
    """Days by name, number or date, in a period.

    Attributes:
        weeks: The week numbers to which the days are limited.
        marked: The phrase says that they repeat: "every", or a plural.
        on: A preposition introduces them.
        loose: The ordinal may also mean an interval.
        either: Why only one of them may be meant: ``or`` between them, or a ``weekend`` in the singular.
        business: They are named as business days or the like, which a calendar of holidays may change.
        positions: The positions of the days among those picked in a week, month or year: the first, the last.
        others: They are the days of the week that no other part of the phrase names.
        only: The weekdays to which days of the month are limited: the 13th if it is a Friday.
        moved: ``before`` or ``after``: on a day that is no business day, they move to the last before, or the next.
    """

    picks: tuple[Pick, ...] = ()
    period: Period | None = None
    dates: tuple[Date, ...] = ()
    weeks: tuple[int, ...] = ()
    marked: bool = False
    on: bool = False
    loose: bool = False
    plural: bool = False
    either: str = ""
    business: bool = False
    positions: tuple[int, ...] = ()
    moved: str = ""
    others: bool = False
    only: tuple[int, ...] = ()

    @property
    def is_counted(self) -> bool:
        """Return whether they have numbers: the first, the 15th."""
        return any(pick.nth for pick in self.picks)

    @property
    def is_each(self) -> bool:
        """Return whether they are meant in each period, if they are left out."""
        period = self.period
        return period is None or not self.is_counted or period.each or (period.definite and not period.months)

    @property
    def is_weekly(self) -> bool:
        """Return whether they are days of every week, and nothing limits them."""
        return not (self.dates or self.weeks or self.period or self.positions or self.is_counted)


@node
class Times(Node):
    """One or more times of day."""

    clocks: tuple[Clock, ...]


@node
class Part(Node):
    """A part of the day.

    Attributes:
        each: The phrase says that it repeats.
        is_ending: It is a night, and named by the day on which it ends.
        is_adverb: It is an adverb such as "abends", which repeats nothing beside a single day.
    """

    part: int
    each: bool = False
    today: bool = False
    is_ending: bool = False
    is_adverb: bool = False


@node
class Window(Node):
    """A window from one time of day to another. ``open_first`` and ``open_last`` exclude its ends.

    Attributes:
        spoken: The time that "10 to 5" may mean as well, which is ten minutes before it.
    """

    first: Clock
    last: Clock
    spoken: Clock | None = None
    open_first: bool = False
    open_last: bool = False


@node
class Grid(Node):
    """Minutes, hours and seconds by number: "at minute 0 and 30 in hour 9 to 17"."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    seconds: tuple[int, ...] = ()


@node
class Months(Node):
    """A limit to months."""

    months: tuple[int, ...]
    doubtful: bool = False


@node
class WeekStart(Node):
    """The day on which weeks begin, which decides the weeks of "every 2 weeks". 0 is Monday."""

    weekday: int


@node
class OnlyIf(Node):
    """A limit of days of the month to some weekdays: "on the 13th if it is a Friday"."""

    weekdays: tuple[int, ...]


@node
class Added(Node):
    """Single dates besides the others, each with its time."""

    dates: tuple[Date, ...]


@node
class Stretch(Node):
    """All days from one to another."""

    first: Date | Relative
    last: Date | Relative


Point = Date | Relative | Days | Months | Period


@node
class Start(Node):
    """The start of the schedule."""

    point: Point | None
    clock: Clock | None = None


@node
class End(Node):
    """The end of the schedule: a point, a count or a length of time.

    Attributes:
        before: The day itself is excluded.
        through: A month or a year is included, as "through June" says. "Until June" ends before it.
        clock: The last moment on that day.
    """

    point: Point | None = None
    count: int | None = None
    length: Length | None = None
    clock: Clock | None = None
    before: bool = False
    through: bool = False


@node
class Except(Node):
    """Exceptions, besides those of calendars."""

    points: tuple[Point | Stretch, ...]


@node
class NamedCalendars(Node):
    """Calendars by their ids, the default one by "", and the effect of their days: ``SKIP``, ``BEFORE`` or ``AFTER``.

    Attributes:
        business_day: The number of the free day of their month to which the occurrences move. None if they do not.
    """

    ids: tuple[str, ...]
    on: str = "SKIP"
    business_day: int | None = None


@node
class Place(Node):
    """A time zone. It has several names if the word is ambiguous.

    Attributes:
        is_loose: It is named as any place is, as in "in London". Beside a title, it may be the place of the subject.
    """

    names: tuple[str, ...]
    is_loose: bool = False


@node
class Mark(Node):
    """A word that applies to the whole phrase.

    These are ``and``, ``synchronised``, ``once``, ``skip-back``, ``skip-forward``, ``skip-omit``, ``following``,
    ``repeats`` (every day, if no other is named), ``regularly`` (on days that have to be named) and ``forever``.
    """

    kind: str


Clause = Node
"""A part of a phrase that one rule of the grammar reads."""


@node
class Phrase:
    """One way to read a whole phrase.

    Attributes:
        title: The span of its title.
        price: How unlikely the way is, from 0.
        words: The number of words of the title that are not about time.
        is_asked: Words such as "remind me to" introduce the title, so that it is the subject, whatever its words.
        rest: The span of what belongs to the title behind the clauses: "dinner at 8 with Bob".
    """

    title: Span | None
    clauses: tuple[Clause, ...]
    price: float = 0.0
    words: int = 0
    is_asked: bool = False
    rest: Span | None = None
