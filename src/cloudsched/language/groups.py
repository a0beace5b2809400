"""Group the clauses of a phrase. Each group becomes its own rules. Start, end and exceptions apply to all groups."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.language.nodes import (
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
    Place,
    Relative,
    Repeat,
    Span,
    Start,
    Times,
    Unit,
    WeekStart,
    Window,
    Within,
    Year,
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
    only_if: OnlyIf | None = None
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
    def lacks_time(self) -> bool:
        """Return whether the group is a part of the day and nothing else: "mornings"."""
        return self.part is not None and not (self.has_days or self.clocks or self.window or self.grid)

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
    year: Year | None = None
    within: Within | None = None
    marks: set[str] = field(default_factory=set)

    @property
    def recurs(self) -> bool:
        """Return whether any part of the phrase says that it repeats."""
        return any(
            group.repeat or (group.part and group.part.each) or any(days.marked for days in group.days)
            for group in self.groups
        )


def build_plan(clauses: Sequence[Clause]) -> Plan:
    """Sort the clauses of a phrase into groups."""
    plan = Plan()
    joined = ""
    before: Clause | None = None
    for clause in clauses:
        if isinstance(clause, Mark) and clause.kind in {"and", "comma", "also"}:
            joined = clause.kind
        elif isinstance(clause, Mark) and clause.kind == "only":
            joined = ""  # "every Monday only on Tuesdays" is a contradiction
        elif isinstance(clause, Times) and (special := _find_special_days(plan, before)):
            plan.groups[-1].exceptions.append(plan.exceptions.pop())
            plan.groups.append(Group(days=special, clocks=list(clause.clocks)))
        else:
            _place_clause(plan, clause, joined)
            joined = ""
        before = clause
    for group in plan.groups:
        if group.joined == "beside" and not (group.has_days and group.has_times):
            raise Refused("contradiction", (group.days or group.clocks)[0].span)
    for one, other in pairwise(plan.groups):
        if other.lacks_time and one.part is not None and one.clocks and one.clocks[-1].span < one.part.span:
            other.clocks = list(one.clocks)  # "at 8 every morning and evening"
    for group in plan.groups:
        is_single = bool(group.days or group.relatives) and not any(days.marked or days.plural for days in group.days)
        if group.part is not None and group.part.is_adverb and is_single:  # "abends" repeats nothing beside a day
            group.part = replace(group.part, each=False)
    return plan


_ONCE: Final = {Start: "start", Place: "place", Year: "year", Within: "within"}
"""The parts of a plan that a phrase names at most once."""
_LISTED: Final = {End: "ends", Except: "exceptions", Added: "added", NamedCalendars: "calendars"}
_ONCE_A_GROUP: Final = {Months: "months", WeekStart: "week_start", OnlyIf: "only_if"}


def _place_clause(plan: Plan, clause: Clause, joined: str) -> None:
    kind = type(clause)
    if kind in _ONCE:
        _set_once(plan, _ONCE[kind], clause)
    elif kind in _LISTED:
        getattr(plan, _LISTED[kind]).append(clause)
    elif isinstance(clause, Mark):
        plan.marks.add(clause.kind)
    else:
        _place_in_group(plan, clause, joined)


def _find_special_days(plan: Plan, before: Clause | None) -> list[Days]:
    """Return the days of an exception that have a time of their own: "every day at 3pm except Sundays at 4pm"."""
    if not isinstance(before, Except) or not plan.groups[-1].has_times:
        return []
    named = [replace(point, marked=True) for point in before.points if isinstance(point, Days)]
    return named if len(named) == len(before.points) else []


def _set_once(holder: Plan | Group, name: str, clause: Clause) -> None:
    _require_unset(getattr(holder, name), clause.span)
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
    match clause:
        case Repeat():
            if joined and group.has_days and (joined in {"and", "also"} or any(days.marked for days in group.days)):
                group = _start_group(plan, joined)
            _require_unset(group.repeat, clause.span)
            group.repeat = clause
        case Relative():
            _require_unset(group.relatives and not joined, clause.span)
            group.relatives.append(clause)
        case Days():
            last_day = group.days[-1] if group.days else None
            is_of_last = len(group.clocks) > 1 and clause.span > group.clocks[-1].span and len(clause.picks) == 1
            if group.repeat is None:
                clashes = last_day is not None
            elif last_day is not None and (last_day.on == clause.on or (last_day.period and clause.period)):
                clashes = True
            else:  # "every day at 9 and at 12 on Sundays"
                clashes = group.repeat.unit == Unit.DAY and is_of_last
            _require_unset(clashes and not joined, clause.span)
            group.days.append(clause)
        case Times():
            for before in plan.groups[:-1]:
                if before.lacks_time and group.part is not None and not joined:
                    before.clocks = list(clause.clocks)  # "in the morning and in the evening at 8"
            _require_unset((group.clocks and not joined) or group.window or group.grid, clause.span)
            group.clocks += clause.clocks
        case Window():
            _require_unset(group.window or group.clocks or (group.grid and not _is_minute(group.grid)), clause.span)
            group.window = clause
        case Grid():
            is_set = (group.window and not _is_minute(clause)) or group.clocks or group.grid
            _require_unset(is_set, clause.span)
            group.grid = clause
        case Part():
            last = group.clocks[-1] if joined and group.clocks else None
            if last is not None and (last.part is not None or (last.half is not None and clause.is_adverb)):
                # "at 8 in the morning and evening"
                group.clocks.append(replace(last, part=clause.part, half=None, span=clause.span))
                return
            if joined and group.part is not None:
                clause = replace(clause, each=clause.each or group.part.each)
                group = _start_group(plan, joined)
            elif joined and full and not group.clocks:
                group = _start_group(plan, joined)
            _require_unset(group.part, clause.span)
            group.part = clause
        case _:
            _set_once(group, _ONCE_A_GROUP[type(clause)], clause)


def _is_minute(grid: Grid) -> bool:
    """Return whether a grid names minutes of each hour alone, so that a window may limit the hours."""
    return bool(grid.minutes) and not grid.hours and not grid.seconds


def _start_group(plan: Plan, joined: str) -> Group:
    plan.groups.append(Group(joined=joined))
    return plan.groups[-1]


def _require_unset(held: object, span: Span) -> None:
    if held:
        raise Refused("contradiction", span)
