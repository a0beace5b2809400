"""Group the clauses of a phrase. Each group becomes its own rules. Start, end and exceptions apply to all groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, Final

from cloudsched.language.nodes import (
    DAY,
    Added,
    Clause,
    Clock,
    Days,
    End,
    Except,
    Grid,
    Mark,
    Months,
    NamedCalendars,
    OnlyIf,
    Part,
    Period,
    Place,
    Relative,
    Repeat,
    Start,
    Times,
    Unit,
    WeekStart,
    Window,
)
from cloudsched.language.result import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Group:
    """The frequency, the days and the times of one part of a schedule, which may have several."""

    repeat: Repeat | None = None
    days: list[Days] = field(default_factory=list)
    relatives: list[Relative] = field(default_factory=list)
    clocks: list[Clock] = field(default_factory=list)
    window: Window | None = None
    grid: Grid | None = None
    part: Part | None = None
    months: Months | None = None
    week_start: WeekStart | None = None
    exceptions: list[Except] = field(default_factory=list)
    """Days on which only this group does not run, since they have a time of their own."""
    joined: str = ""
    """The mark that joins it to the group before, ``beside`` without one: "weekdays at 6am Saturday at 9am"."""

    @property
    def has_days(self) -> bool:
        """Return whether the group names days."""
        return bool(self.days or self.relatives or self.repeat)

    @property
    def has_times(self) -> bool:
        """Return whether the group names a time of day."""
        return bool(self.clocks or self.window or self.part or self.grid)

    @property
    def is_fine(self) -> bool:
        """Return whether the group repeats within the day."""
        return self.repeat is not None and self.repeat.unit <= Unit.HOUR

    @property
    def midnight(self) -> Clock | None:
        """Return the time of day that is the word "midnight", if one is."""
        return next((clock for clock in self.clocks if clock.named and clock.hour == 0), None)


@dataclass
class Plan:
    """The whole content of a phrase."""

    groups: list[Group] = field(default_factory=lambda: [Group()])
    start: Start | None = None
    ends: list[End] = field(default_factory=list)
    exceptions: list[Except] = field(default_factory=list)
    added: list[Added] = field(default_factory=list)
    calendars: list[NamedCalendars] = field(default_factory=list)
    place: Place | None = None
    within: Period | None = None
    marks: set[str] = field(default_factory=set)

    @property
    def days(self) -> list[Days]:
        """Return the days of all groups."""
        return [days for group in self.groups for days in group.days]

    @property
    def recurs(self) -> bool:
        """Return whether any part of the phrase says that it repeats."""
        is_each = any(group.repeat or (group.part and group.part.each) for group in self.groups)
        return is_each or any(days.marked for days in self.days)


def build_plan(clauses: Sequence[Clause]) -> Plan:
    """Sort the clauses of a phrase into groups."""
    plan = Plan()
    joined = ""
    before: Clause | None = None
    for clause in clauses:
        joint, joined = joined, ""
        if isinstance(clause, Mark):
            if clause.kind in {"and", "comma", "also"}:
                joined = clause.kind
            elif clause.kind != "only":  # "every Monday only on Tuesdays" is a contradiction
                plan.marks.add(clause.kind)
        elif isinstance(clause, Times) and isinstance(before, Except) and plan.groups[-1].has_times:
            # "every day at 3pm except Sundays at 4pm"
            special = [replace(point, marked=True) for point in before.points if isinstance(point, Days)]
            if len(special) < len(before.points):
                raise Refused("contradiction", clause.span)
            plan.groups[-1].exceptions.append(plan.exceptions.pop())
            plan.groups.append(Group(days=special, clocks=list(clause.clocks)))
        elif (name := _FIELDS.get(type(clause), "")) in vars(plan):
            _put(plan, name, clause)
        else:
            _place_in_group(plan, clause, joint)
        before = clause
    for timed, bare in permutations(plan.groups, 2):  # "at 8 every morning and evening", "morning and evening at 8"
        if bare.part and not (bare.has_days or bare.clocks) and timed.part and timed.clocks:
            is_behind = plan.groups.index(timed) < plan.groups.index(bare)
            if (timed.clocks[-1].span < timed.part.span) == is_behind:
                bare.clocks = list(timed.clocks)
    for group in plan.groups:
        if group.joined == "beside" and not (group.has_days and group.has_times):
            raise Refused("contradiction", (group.days or group.clocks)[0].span)
        is_single = bool(group.days or group.relatives) and not any(days.marked or days.plural for days in group.days)
        if group.part and group.part.is_adverb and is_single:  # "abends" repeats nothing beside a day
            group.part = replace(group.part, each=False)
    return plan


_FIELDS: Final = {
    Start: "start",
    Place: "place",
    Period: "within",
    End: "ends",
    Except: "exceptions",
    Added: "added",
    NamedCalendars: "calendars",
    Repeat: "repeat",
    Relative: "relatives",
    Days: "days",
    Window: "window",
    Grid: "grid",
    Part: "part",
    Months: "months",
    WeekStart: "week_start",
}
"""The part of a plan, or else of a group, that holds a clause."""


def _put(holder: Plan | Group, name: str, clause: Clause) -> None:
    held = getattr(holder, name)
    if isinstance(held, list):
        held.append(clause)
    elif held:
        raise Refused("contradiction", clause.span)
    else:
        setattr(holder, name, clause)


def _place_in_group(plan: Plan, clause: Clause, joined: str) -> None:
    group = plan.groups[-1]
    full = group.has_days and group.has_times
    if joined == "also":
        group.joined = joined
    is_other_day = isinstance(clause, Days | Relative) and (group.days or not group.is_fine)
    if joined and full and (is_other_day or isinstance(clause, Times | Window | Grid)):
        group = _start_group(plan, joined)
    elif full and group.clocks and isinstance(clause, Times | Days) and not group.repeat and not joined:
        group = _start_group(plan, "beside")
    clash: object = None
    match clause:
        case Repeat():
            if joined and group.has_days and (joined in {"and", "also"} or any(days.marked for days in group.days)):
                group = _start_group(plan, joined)
        case Relative() if not joined:
            clash = group.relatives
        case Days() if not joined:
            last, repeat = group.days[-1:], group.repeat
            if repeat:
                last = [days for days in last if days.on == clause.on or (days.period and clause.period)]
            # "every day at 9 and at 12 on Sundays"
            is_daily = repeat is not None and repeat.unit == Unit.DAY and len(group.clocks) > 1
            clash = last or (is_daily and clause.span > group.clocks[-1].span and len(clause.picks) == 1)
        case OnlyIf():
            last_days = group.days[-1] if group.days else Days()
            if not last_days.dates and {pick.what for pick in last_days.picks} != {DAY}:
                raise Refused("inexpressible", clause.span)
            group.days[-1] = replace(last_days, only=clause.weekdays)
            return
        case Times():
            clash = (group.clocks and not joined) or group.window or group.grid
        case Window() | Grid():
            clash = group.clocks
        case Part():
            clock = group.clocks[-1] if joined and group.clocks else None
            if clock and (clock.part is not None or (clause.is_adverb and clock.half is not None)):
                # "at 8 in the morning and evening"
                group.clocks.append(replace(clock, part=clause.part, half=None, span=clause.span))
                return
            if joined and (group.part or (full and not group.clocks)):
                clause = replace(clause, each=clause.each or (group.part is not None and group.part.each))
                group = _start_group(plan, joined)
    if clash:
        raise Refused("contradiction", clause.span)
    if isinstance(clause, Times):
        group.clocks += clause.clocks
    else:
        _put(group, _FIELDS[type(clause)], clause)


def _start_group(plan: Plan, joined: str) -> Group:
    plan.groups.append(Group(joined=joined))
    return plan.groups[-1]
