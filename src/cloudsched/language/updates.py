"""Changes to a schedule: "make it 10 instead", "not on Fridays", "also Saturdays", "skip the next one".

A change affects only what it names: days, times, the time zone, the start, the end, or single occurrences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.language.dates import find_first_day, make_local_time, resolve_relative_day, to_relativedelta
from cloudsched.language.exceptions import add_calendars, apply_exceptions
from cloudsched.language.grammar_numbers import parse_length
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.left_out import move_exdates
from cloudsched.language.meaning import build_at, build_once, build_schedule, is_24_hour, list_clocks, resolve_zone
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    Clause,
    Date,
    Days,
    End,
    Except,
    Length,
    Relative,
    Repeat,
    Stretch,
    Unit,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.recurrences import BEGINNING, Bounds, Builder, build_rules
from cloudsched.language.result import Option, Refused
from cloudsched.language.rules import Draft, build_subdaily_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.language.grammar import Parser
    from cloudsched.language.lexicon import Cursor


@dataclass
class Edit:
    """A recurring schedule that is being edited.

    Attributes:
        current: The schedule before the change, anchored.
        until: Its end, in local time.
        exdates: The days and times that the change leaves out. Those that were left out before move along.
        shift: The time by which all its times of day move.
        moved: The days have changed, so intervals count from a new start.
    """

    current: Schedule
    drafts: list[Draft]
    dtstart: datetime
    until: datetime | None = None
    count: int | None = None
    exdates: list[str] = field(default_factory=list)
    shift: timedelta = timedelta(0)
    moved: bool = False

    @property
    def times(self) -> list[TimeOfDay]:
        """Return the times of day that all rules share."""
        first = self.drafts[0].times
        if any(draft.times != first for draft in self.drafts):
            raise Refused(
                "no-update", hint="it has different times on different days; describe the whole schedule again"
            )
        return list(first)

    def build(self, plan: Plan, context: Context) -> Schedule:
        """Build the edited schedule."""
        own_start = self.dtstart.isoformat() != BEGINNING
        begin = max(self.dtstart.date(), context.today) if own_start else context.today
        bounds = Bounds(begin, has_start=own_start and self.dtstart > context.local)
        if plan.start is not None:
            bounds.start, bounds.has_start = find_start(plan, context), True
        if not plan.ends:
            bounds.count = self.count
            if self.until is not None:
                bounds.until, bounds.until_clock = self.until.date(), TimeOfDay(*self.until.timetuple()[3:6])
        if own_start and plan.start is None and not self.moved:
            first = min((time for draft in self.drafts for time in draft.times), default=None)
            kept = self.dtstart if first is None else datetime.combine(self.dtstart.date(), datetime.min.time())
            if first is not None:
                kept = kept.replace(hour=first.hour, minute=first.minute, second=first.second)
            bounds.dtstart = kept.isoformat()
        move = partial(move_exdates, self.current, self.shift)
        built = Builder(plan, context, self.drafts, bounds).build(self.exdates, move)
        days = {} if any(group.days for group in plan.groups) else {"business_day": self.current.business_day}
        return _keep_policies(built, self.current, plan, context, **days, rdates=self.current.rdates)

    def leave_out(self, exceptions: list[Except], context: Context) -> Schedule:
        """Build the schedule without some days."""
        dates = apply_exceptions(self.drafts, exceptions, context, context.today)
        changed = self.leave_out_dates(dates, context)
        if changed.upcoming(context.now, 40) == self.current.upcoming(context.now, 40):
            context.choices.assume("The schedule does not run then, so nothing changes.")
        return changed

    def leave_out_dates(self, dates: list[str], context: Context) -> Schedule:
        """Build the schedule without some more dates or local times."""
        self.exdates += dates
        return self.build(Plan(), context)


_POLICIES = ("gap", "fold", "sub_daily", "calendars")
"""The fields of a schedule that words seldom name, so that new words keep them."""


def _keep_policies(built: Schedule, current: Schedule, plan: Plan, context: Context, **more: object) -> Schedule:
    kept = {name: getattr(current, name) for name in _POLICIES}
    return add_calendars(built.model_copy(update={**kept, **more}), plan, context)


def find_start(plan: Plan, context: Context) -> date:
    """Return the first day of a plan."""
    if plan.start is None or plan.start.point is None:
        return context.today
    return find_first_day(plan.start.point, context, context.today)


def take_apart(current: Schedule, context: Context) -> Edit:
    """Split a schedule into an `Edit`."""
    if current.is_single_time:
        raise Refused("no-update", hint="it runs once only")
    anchored = current.anchor(context.now)
    if anchored.dtstart is None or not anchored.rules:
        raise Refused("no-update", hint="describe the whole schedule again")
    dtstart = datetime.fromisoformat(anchored.dtstart)
    rules = [parse_rule(rule) for rule in anchored.rules]
    ends = {(rule.until, rule.count) for rule in rules}
    if len(ends) > 1:
        raise Refused("no-update", hint="its rules end at different times; describe the whole schedule again")
    until, count = ends.pop()
    last = None
    if until is not None:
        if until.is_utc:
            raise Refused("no-update", hint="its end is given in UTC; describe the whole schedule again")
        last = datetime(1970, 1, 1) + timedelta(seconds=until.seconds)  # noqa: DTZ001 -- on the zone's clock
    drafts = _merge_drafts([_build_draft(rule, dtstart) for rule in rules])
    return Edit(anchored, drafts, dtstart, last, count)


def _build_draft(rule: Rule, dtstart: datetime) -> Draft:
    fine = rule.frequency > Frequency.DAILY
    if (fine and (rule.hours or rule.minutes or rule.seconds)) or (rule.positions and len(rule.hours) > 1):
        raise Refused("no-update", hint="describe the whole schedule again")
    draft = Draft(
        rule.frequency.name,
        rule.interval,
        [(day.nth, day.weekday) for day in rule.weekdays],
        list(rule.month_days),
        list(rule.year_days),
        list(rule.week_numbers),
        list(rule.months),
        list(rule.positions),
        skip="" if rule.skip == "OMIT" else rule.skip,
        week_start=rule.week_start,
    )
    if not fine:
        hours, minutes = rule.hours or (dtstart.hour,), rule.minutes or (dtstart.minute,)
        seconds = rule.seconds or (dtstart.second,)
        draft.times = [TimeOfDay(*time) for time in product(hours, minutes, seconds)]
    if draft.freq == "WEEKLY" and not draft.weekdays:
        draft.weekdays = [(0, dtstart.weekday())]
    named = draft.weekdays or draft.month_days or draft.year_days or draft.weeks
    if draft.freq in {"MONTHLY", "YEARLY"} and not named:
        draft.month_days = [dtstart.day]
        if draft.freq == "YEARLY":
            draft.months = draft.months or [dtstart.month]
    return draft


def _merge_drafts(drafts: list[Draft]) -> list[Draft]:
    """Join rules that differ only in their times of day."""
    joined: list[Draft] = []
    for draft in drafts:
        twin = next((one for one in joined if one.differs_only_in("times", draft)), None)
        if twin is not None:
            twin.times = sorted(set(twin.times) | set(draft.times))
        else:
            joined.append(draft)
    return joined


_DAY_SECONDS = 86_400
_PERIODS = {
    Unit.WEEK: ("WEEKLY", 1),
    Unit.FORTNIGHT: ("WEEKLY", 2),
    Unit.MONTH: ("MONTHLY", 1),
    Unit.QUARTER: ("MONTHLY", 3),
    Unit.HALF_YEAR: ("MONTHLY", 6),
    Unit.YEAR: ("YEARLY", 1),
}


def find_edit(parser: Parser) -> Callable[[Schedule, Context], Schedule] | None:
    """Return the change that a phrase asks for. None if the phrase is not a change."""
    c = parser.cursor
    c.at = 0
    return parse_shift(c) or _parse_same_time(c) or parse_edit(parser, len(parser.tokens))


def parse_shift(c: Cursor) -> Callable[[Schedule, Context], Schedule] | None:
    """Parse ``an hour later``, ``make it 30 minutes earlier``, ``postpone it by an hour``."""
    c.at = 0
    c.take("polite")
    postponed = c.take("postpone")
    if postponed is None:
        c.take("make")
    c.take("by")
    by = parse_length(c)
    direction = postponed.value if postponed is not None else None
    if by is not None and direction is None:
        result = c.take("shift")
        direction = result.value if result is not None else None
    c.skip("polite", "stop")
    if by is None or direction is None or not c.ended:
        return None
    return lambda current, context: _shift_schedule(current, context, by, direction)


def _parse_same_time(c: Cursor) -> Callable[[Schedule, Context], Schedule] | None:
    c.at = 0
    c.take("make")
    same = c.take("same-time") is not None
    ahead, unit = c.take("next"), c.take("unit")
    has_ending = c.skip("polite", "stop", "same-time", "instead", "comma") or same
    if not has_ending or ahead is None or ahead.value != 1 or unit is None or unit.value != Unit.WEEK or not c.ended:
        return None
    return _move_to_next_week


def parse_edit(parser: Parser, end: int) -> Callable[[Schedule, Context], Schedule] | None:
    """Parse the parts to set, add or leave out. `end` is the token after the last one."""
    c = parser.cursor
    is_part = end < len(parser.tokens)
    end = _find_end(parser, end, "instead", "also", "polite", "stop", "only")
    tail = parser.matches[end] if end < len(parser.tokens) else {}
    adds_after = "also" in tail
    instead = any("instead" in parser.matches[at] for at in range(end, len(parser.tokens)))
    for kind in ("same-time", "make", "only", "add-more", "no-more", "skip", ""):
        c.at = 0
        c.take("polite")
        head = c.take(kind) if kind else None
        if kind and head is None:
            continue
        begin = c.at
        if begin >= end:
            continue
        read = parser.parse_between(begin, end, bare=kind in {"make", "only"} or instead or is_part)
        if read is None or (kind == "only" and any(isinstance(clause, End) for clause in read)):
            continue
        if kind in {"no-more", "skip"}:
            return _build_removal(read, single=kind == "skip")
        return make_change(read, adds=kind == "add-more" or adds_after, limits=kind == "only")
    return None


def make_change(
    read: Sequence[Clause], *, adds: bool = False, limits: bool = False
) -> Callable[[Schedule, Context], Schedule]:
    """Return the change that sets the content of the clauses, or `adds` it, or `limits` the schedule to it."""
    return partial(_change_schedule, read=read, adds=adds, limits=limits)


def _find_end(parser: Parser, end: int, *kinds: str) -> int:
    while end:
        last = next(
            (
                at
                for at in range(end - 1, max(end - 3, -1), -1)
                if any(kind in parser.matches[at] and parser.matches[at][kind].end == end for kind in kinds)
            ),
            None,
        )
        if last is None:
            return end
        end = last
    return end


def _find_stretch(plan: Plan) -> Stretch | None:
    """Return the days of "from 14 to 16 June", if a plan says nothing else."""
    group = plan.groups[-1]
    if plan.start is None or len(plan.ends) != 1 or group.has_days or group.has_times:
        return None
    first, last = plan.start.point, plan.ends[0].point
    if isinstance(first, Date | Relative) and isinstance(last, Date | Relative):
        return Stretch(first, last, plan.start.span)
    return None


def _build_removal(read: Sequence[Clause], *, single: bool) -> Callable[[Schedule, Context], Schedule]:
    points = [clause for clause in read if isinstance(clause, Days | Relative)]

    def change(current: Schedule, context: Context) -> Schedule:
        edit = take_apart(current, context)
        plan = build_plan(read)
        group = plan.groups[-1]
        stretch = _find_stretch(plan)
        if stretch is not None:
            return edit.leave_out([Except((stretch,))], context)
        if group.clocks and not group.days and not group.relatives:
            gone = context.resolve_times(group.clocks, None)
            for draft in edit.drafts:
                draft.times = [time for time in draft.times if time not in gone]
                if not draft.times:
                    raise Refused("never")
            return edit.build(Plan(), context)
        months = [group.months] if group.months is not None and not points else []
        chosen = [_pick_single(point) if single else point for point in points] + months
        if not chosen or len(plan.groups) > 1 or group.has_times or group.repeat or plan.ends or plan.start:
            raise Refused("no-update")
        return edit.leave_out([Except(tuple(chosen))], context)

    return change


def _pick_single(point: Days | Relative) -> Date | Days | Relative:
    """Narrow "skip Friday" to the coming Friday instead of every Friday, and "the 24th" to the coming one."""
    if not isinstance(point, Days) or point.marked or len(point.picks) != 1:
        return point
    [pick] = point.picks
    if not pick.nth:
        return Relative("weekday", weekday=pick.what, span=point.span)
    if pick.what == DAY and pick.nth > 0 and (point.period is None or not point.period.each):
        return Date(day=pick.nth, span=point.span)
    return point


def _move_to_next_week(current: Schedule, context: Context) -> Schedule:
    if current.at is None:
        raise Refused("no-update", hint="it already repeats; say which occurrence to skip")
    local = current.at.astimezone(load_tzinfo(current.timezone)).replace(tzinfo=None) + timedelta(weeks=1)
    return _build_once_at(local, context)


def _build_once_at(local: datetime, context: Context) -> Schedule:
    at = context.to_instant(local)
    if at <= context.now:
        raise Refused("past")
    return build_at(at, context)


def _shift_schedule(current: Schedule, context: Context, by: Length, direction: int) -> Schedule:
    if current.at is not None:
        local = current.at.astimezone(load_tzinfo(current.timezone)).replace(tzinfo=None)
        return _build_once_at(local + to_relativedelta(by) if direction > 0 else local - to_relativedelta(by), context)
    if by.finest >= Unit.DAY or any(unit >= Unit.DAY for unit, _ in by.amounts):
        raise Refused("no-update", by.span, "a repeating schedule cannot be moved by days; give the new days")
    edit = take_apart(current, context)
    if not all(draft.times for draft in edit.drafts):
        raise Refused("no-update", by.span)
    edit.shift = timedelta(seconds=direction * by.seconds)
    for draft in edit.drafts:
        draft.times = [_shift_time(time, direction * by.seconds, by) for time in draft.times]
    return edit.build(Plan(), context)


def _shift_time(time: TimeOfDay, seconds: int, by: Length) -> TimeOfDay:
    at = time.hour * 3600 + time.minute * 60 + time.second + seconds
    if not 0 <= at < _DAY_SECONDS:
        raise Refused("no-update", by.span, "that moves it to another day; give the new days and times")
    return TimeOfDay(at // 3600, at // 60 % 60, at % 60)


def _change_schedule(
    current: Schedule, context: Context, read: Sequence[Clause], *, adds: bool, limits: bool
) -> Schedule:
    plan = build_plan(read)
    context.timezone = current.timezone
    if not (adds or limits) and _is_whole(plan, current):
        built = build_schedule(read, context)
        return _keep_policies(built, current, plan, context) if built.rules and current.rules else built
    if plan.within is not None:
        raise Refused("too-vague", plan.within.span, "say on which day, and at what time")
    resolve_zone(plan, context)
    context.clock24 = any(is_24_hour(clock) for clock in list_clocks(plan))
    if current.at is not None:
        return _change_once(current, plan, read, context, adds=adds)
    edit = take_apart(current.change_zone(context.timezone), context)
    if len(plan.groups) > 1:
        raise Refused("no-update", hint="describe the whole schedule again")
    group = plan.groups[0]
    if group.relatives and not group.has_times:
        raise Refused("too-vague", group.relatives[0].span, "say at what time it should run once")
    if group.relatives or plan.year is not None or (plan.marks - {"skip-back", "skip-forward", "skip-omit", FOLLOWING}):
        raise Refused("no-update", group.relatives[0].span if group.relatives else None)
    if plan.exceptions:
        edit.exdates += apply_exceptions(edit.drafts, plan.exceptions, context, context.today)
    _apply_group(edit, group, plan, context, adds=adds)
    return edit.build(plan, context)


def _is_whole(plan: Plan, current: Schedule) -> bool:
    """Return whether a phrase has a whole schedule, which replaces any other and needs nothing of it."""
    if plan.recurs:
        return all(_says_when(group) for group in plan.groups)
    if current.is_single_time or len(plan.groups) > 1 or plan.exceptions or plan.ends or plan.start:
        return False
    group = plan.groups[0]
    lengths = [each.length for each in group.relatives if each.length is not None]
    if lengths and all(length.finest < Unit.DAY for length in lengths):
        return True
    dates = [date for days in group.days for date in days.dates]
    is_yearly = any("YEARLY" in rule for rule in current.rules)
    is_dated = bool(dates) and all(date.year or plan.year or (date.month and not is_yearly) for date in dates)
    return bool(group.clocks) and (bool(group.relatives) or is_dated)


def _says_when(group: Group) -> bool:
    """Return whether a group that repeats names its times."""
    is_fine = group.repeat is not None and group.repeat.unit <= Unit.HOUR
    return group.has_days and (is_fine or bool(group.clocks or group.window or group.grid))


def _change_once(current: Schedule, plan: Plan, read: Sequence[Clause], context: Context, *, adds: bool) -> Schedule:
    if current.at is None:
        raise Refused("no-update")
    local = current.at.astimezone(load_tzinfo(current.timezone)).replace(tzinfo=None)
    if plan.recurs and not adds:
        context.default = TimeOfDay(local.hour, local.minute, local.second)  # "every Tuesday" keeps the time
        return build_schedule(read, context)
    if adds or len(plan.groups) > 1 or plan.exceptions or plan.ends or plan.start:
        raise Refused("no-update")
    group = plan.groups[0]
    if not group.has_days and not group.has_times:
        if plan.place is None and not context.follows:
            raise Refused("no-update")
        return _build_once_at(local, context)
    if not group.has_times:
        if len(group.relatives) == 1 and group.relatives[0].kind != "length":
            day = resolve_relative_day(group.relatives[0], context, context.today)
            return _build_once_at(make_local_time(day, local.hour, local.minute, local.second), context)
        context.default = TimeOfDay(local.hour, local.minute, local.second)
        result = build_once(plan, context)
        context.choices.notes = [note for note in context.choices.notes if "No time was given" not in note]
        return result
    if not group.has_days:
        times = context.resolve_times(group.clocks, group.part.part if group.part else None) if group.clocks else []
        if len(times) != 1:
            raise Refused("no-update")
        return _build_once_at(make_local_time(local.date(), *times[0]), context)
    return build_once(plan, context)


def _apply_group(edit: Edit, group: Group, plan: Plan, context: Context, *, adds: bool) -> None:
    if group.week_start is not None:
        for draft in edit.drafts:
            draft.week_start = group.week_start.weekday
    if group.repeat is not None and group.repeat.unit <= Unit.HOUR:
        if adds:
            raise Refused("no-update", group.repeat.span)
        edit.drafts, edit.moved = build_rules(group, plan, context), True
        return
    fine = any(not draft.times for draft in edit.drafts)
    if group.has_times and not group.has_days and group.months is None:
        if group.part is not None and not group.clocks and not adds:
            raise Refused("too-vague", group.part.span, "say at what time of day it should run")
        if group.window is not None or group.grid is not None or fine:
            raise Refused("no-update", hint="describe the whole schedule again")
        named = build_rules(replace(group, days=[Days(marked=True)]), plan, context, times_only=True)[0].times
        for draft in edit.drafts:
            draft.times = sorted({*draft.times, *named}) if adds else named
        return
    if group.months is not None and not group.has_days and not group.has_times:
        for draft in edit.drafts:
            draft.months = list(group.months.months)
        return
    if not group.has_days:
        return
    if fine:
        if adds or group.repeat is not None or group.has_times or len(edit.drafts) > 1:
            raise Refused("no-update")
        only = build_subdaily_rules(group, Repeat(1, Unit.HOUR))[0]
        edit.drafts[0].weekdays, edit.drafts[0].month_days = only.weekdays, only.month_days
        return
    times = None if group.has_times else edit.times
    drafts = _build_new_days(edit, group, plan, context, times)
    if adds:
        _add_rules(edit, drafts)
    else:
        edit.drafts = drafts
    edit.moved = True


def _build_new_days(
    edit: Edit, group: Group, plan: Plan, context: Context, times: list[TimeOfDay] | None
) -> list[Draft]:
    repeat = group.repeat
    if repeat is not None and not group.days and repeat.unit != Unit.DAY:
        return _change_interval(edit, repeat, context)
    marked = [replace(days, marked=True) for days in group.days]
    drafts = build_rules(replace(group, days=marked), plan, context)
    if times is not None:
        context.choices.notes = [note for note in context.choices.notes if "No time was given" not in note]
        for draft in drafts:
            draft.times = list(times)
    old = edit.drafts[0]
    for draft in drafts:
        draft.week_start = old.week_start
    if repeat is None and all(
        (one.freq, one.interval, one.months) == (old.freq, old.interval, old.months) for one in edit.drafts
    ):
        for draft in drafts:  # keep what the change does not name, such as the interval and the months
            if draft.freq == old.freq and draft.interval == 1:
                draft.interval = old.interval
                draft.months = draft.months or (list(old.months) if draft.freq != "YEARLY" else [])
    return drafts


def _change_interval(edit: Edit, repeat: Repeat, context: Context) -> list[Draft]:
    """Return the rules with a new interval, if they already count in the same period."""
    freq, count = _PERIODS[repeat.unit]
    interval = repeat.interval * count
    if repeat.loose == "bi":
        context.choices.pick("bi", repeat.span, (Option(f"every two {repeat.unit.name.lower()}s", True),))
    same = all(one.freq == freq for one in edit.drafts)
    if not same or repeat.rate > 1 or all(one.interval == interval for one in edit.drafts):
        raise Refused("no-update", repeat.span, "say on which days it should run")
    return [replace(draft, interval=interval) for draft in edit.drafts]


def _add_rules(edit: Edit, drafts: list[Draft]) -> None:
    for draft in drafts:
        twin = next((one for one in edit.drafts if one.weekdays and one.differs_only_in("weekdays", draft)), None)
        if twin is not None and not twin.positions:
            twin.weekdays = sorted({*twin.weekdays, *draft.weekdays})
        elif any(one.interval > 1 for one in edit.drafts) and draft.freq == "WEEKLY":
            raise Refused("no-update", hint="describe the whole schedule again")
        else:
            edit.drafts.append(draft)
