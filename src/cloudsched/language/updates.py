"""Apply what a change says to a schedule: "make it 10 instead", "not on Fridays", "also Saturdays".

A change affects only what it names: days, times, the time zone, the start, the end, or single occurrences.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.language.dates import make_local_time, to_relativedelta
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.meaning import build_at, build_once, build_schedule, settle_context
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    Clause,
    Date,
    Days,
    Except,
    Length,
    Point,
    Relative,
    Stretch,
    Unit,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.recurrences import BEGINNING, Builder, build_rules, find_times, keep_policies
from cloudsched.language.result import Refused
from cloudsched.language.rules import SKIPS, Draft, fill_days, merge
from cloudsched.language.single_moves import list_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule


def anchor(current: Schedule, context: Context) -> Schedule:
    """Return a schedule that repeats, with its start."""
    if current.is_single_time:
        raise Refused("no-update", hint="it runs once only")
    return current.anchor(context.now)


def take_apart(current: Schedule, context: Context) -> Builder:
    """Return a builder with the rules, the start and the end of a schedule."""
    anchored = anchor(current, context)
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
    drafts = merge([_build_draft(rule, dtstart) for rule in rules], "times")
    start, has_start = max(dtstart.date(), context.today), dtstart > context.local
    kept = None if dtstart == BEGINNING else dtstart
    return Builder(context, drafts, start, has_start, last, count, kept, anchored)


def leave_out(edit: Builder, *points: Point | Stretch) -> Schedule:
    """Return the schedule without some days."""
    current, context = edit.current, edit.context
    changed = edit.build(Plan(exceptions=[Except(points)]))
    days = {date.fromisoformat(text[:10]) for text in edit.exdates}
    if current and changed.rules == current.rules and not any(list_on(current, context, day) for day in days):
        context.assume("The schedule does not run then, so nothing changes.")
    return changed


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
    fill_days(draft, dtstart)
    return draft


def remove(current: Schedule, context: Context, read: Sequence[Clause], *, single: bool) -> Schedule:
    """Return the schedule without the days or the times that clauses name. A `single` day is the coming one."""
    edit, plan = take_apart(current, context), build_plan(read)
    group = plan.groups[-1]
    first, last = plan.start and plan.start.point, plan.ends and plan.ends[0].point
    if (
        isinstance(first, Date | Relative)
        and isinstance(last, Date | Relative)
        and not (group.has_days or group.has_times)
    ):
        return leave_out(edit, Stretch(first, last))
    part = None if group.part is None or group.part.today else group.part.part
    if group.clocks and not group.days and not group.relatives:
        gone = context.resolve_times(group.clocks, part)
        if not any(time in gone for draft in edit.drafts for time in draft.times):
            context.assume("The schedule does not run then, so nothing changes.")
        for draft in edit.drafts:
            draft.times = [time for time in draft.times if time not in gone]
            if not draft.times:
                raise Refused("never")
        return edit.build()
    days = [clause for clause in read if isinstance(clause, Days | Relative)]
    points: list[Point] = [_pick_single(point) if single else point for point in days]
    if group.months and not points:
        points = [group.months]
    if not points or len(plan.groups) > 1 or group.has_times or group.repeat or plan.ends or plan.start:
        raise Refused("no-update")
    return leave_out(edit, *points)


def _pick_single(point: Days | Relative) -> Point:
    """Narrow "skip Friday" to the coming Friday instead of every Friday, and "the 24th" to the coming one."""
    if not isinstance(point, Days) or point.marked or len(point.picks) != 1:
        return point
    [pick] = point.picks
    if not pick.nth:
        return Relative("weekday", weekday=pick.what, span=point.span)
    if pick.what == DAY and pick.nth > 0 and (point.period is None or not point.period.each):
        return Date(day=pick.nth, span=point.span)
    return point


def _build_once_at(local: datetime, context: Context) -> Schedule:
    at = context.to_instant(local)
    if at <= context.now:
        raise Refused("past")
    return build_at(at, context)


def shift_schedule(current: Schedule, context: Context, by: Length, direction: int) -> Schedule:
    """Return the schedule with all its times earlier or later by a length of time."""
    length = direction * to_relativedelta(by)
    if current.at is not None:
        return _build_once_at(context.to_local(current.at) + length, context)
    if any(unit >= Unit.DAY for unit, _ in by.amounts):
        raise Refused("no-update", by.span, "a repeating schedule cannot be moved by days; give the new days")
    edit = take_apart(current, context)
    for draft in edit.drafts:
        moved = [make_local_time(context.today, *time) + length for time in draft.times]
        if not moved:
            raise Refused("no-update", by.span)
        if any(time.date() != context.today for time in moved):
            raise Refused("no-update", by.span, "that moves it to another day; give the new days and times")
        draft.times = [TimeOfDay(*time.timetuple()[3:6]) for time in moved]
    edit.shift = timedelta(seconds=direction * by.seconds)
    return edit.build()


def change_schedule(
    current: Schedule, context: Context, read: Sequence[Clause], *, adds: bool = False, limits: bool = False
) -> Schedule:
    """Return the schedule with what clauses name, or what they add, or `limits` of it."""
    plan = build_plan(read)
    if not (adds or limits) and _is_whole(plan, current):
        built = build_schedule(read, context)
        if not built.rules or not current.rules:
            return built
        if plan.start or not _goes_on(current, built, context):
            return keep_policies(built, current, plan, context)
        begin = built if "BYHOUR" in built.rules[0] else current  # a time of day that is said has its own seconds
        dtstart = f"{current.dtstart}"[:10] + f"{begin.dtstart}"[10:]
        return keep_policies(built, current, plan, context, dtstart=dtstart)
    if plan.within and plan.within.unit < Unit.YEAR:
        raise Refused("too-vague", plan.within.span, "say on which day, and at what time")
    local = None if current.at is None else context.to_local(current.at)
    settle_context(plan, context)
    if local is not None:
        return _change_once(local, plan, read, context, adds=adds)
    edit = take_apart(current.change_zone(context.timezone), context)
    if len(plan.groups) > 1:
        raise Refused("no-update", hint="describe the whole schedule again")
    group = plan.groups[0]
    if group.relatives and not group.has_times:
        raise Refused("too-vague", group.relatives[0].span, "say at what time it should run once")
    if group.relatives or plan.within or (plan.marks - SKIPS.keys() - {FOLLOWING}):
        raise Refused("no-update", group.relatives[0].span if group.relatives else None)
    return apply_group(edit, plan, adds=adds)


def _is_whole(plan: Plan, current: Schedule) -> bool:
    """Return whether a phrase has a whole schedule, which replaces any other and needs nothing of it."""
    if plan.recurs:
        return all(
            group.is_fine or (group.has_days and bool(group.clocks or group.window or group.grid))
            for group in plan.groups
        )
    if current.is_single_time or len(plan.groups) > 1 or plan.exceptions or plan.ends or plan.start:
        return False
    group = plan.groups[0]
    lengths = [each.length for each in group.relatives if each.length is not None]
    if lengths and all(length.finest < Unit.DAY for length in lengths):
        return True
    dates = [date for days in group.days for date in days.dates]
    is_yearly = any("YEARLY" in rule for rule in current.rules)
    is_dated = bool(dates) and all(date.year or plan.within or (date.month and not is_yearly) for date in dates)
    return bool(group.clocks) and (bool(group.relatives) or is_dated)


def _goes_on(current: Schedule, built: Schedule, context: Context) -> bool:
    """Return whether a schedule has begun in the rhythm of a new one, so that this counts on from its start."""
    rules = [parse_rule(rule) for rule in (*current.rules, *built.rules)]
    is_same = len({(rule.frequency, rule.interval, rule.count) for rule in rules}) == 1 and not rules[0].count
    has_rhythm = rules[0].interval > 1 or not rules[-1].hours  # "every day at 10:00" is the same from any day on
    return is_same and has_rhythm and str(current.dtstart) < context.local.isoformat()


def _change_once(local: datetime, plan: Plan, read: Sequence[Clause], context: Context, *, adds: bool) -> Schedule:
    """Return what runs once, at a local time, with another day, time or zone, or repeated."""
    own = TimeOfDay(*local.timetuple()[3:6])
    if plan.recurs and not adds:
        context.default = own  # "every Tuesday" keeps the time
        return build_schedule(read, context)
    if adds or len(plan.groups) > 1 or plan.exceptions or plan.ends or plan.start:
        raise Refused("no-update")
    group = plan.groups[0]
    if group.has_days:
        context.default, context.keeps_time = own, True
        return build_once(plan, context)
    times = context.resolve_times(group.clocks, group.part.part if group.part else None) if group.clocks else [own]
    names_time = group.clocks if group.has_times else plan.place or context.follows
    if not names_time or len(times) > 1:
        raise Refused("no-update")
    return _build_once_at(make_local_time(local.date(), *times[0]), context)


def apply_group(edit: Builder, plan: Plan, *, adds: bool) -> Schedule:
    """Return the schedule with what a plan of one group names, or adds."""
    context, group = edit.context, plan.groups[0]
    fine = any(not draft.times for draft in edit.drafts)
    for draft in edit.drafts:
        if group.week_start:
            draft.week_start = group.week_start.weekday
        if group.months and not group.has_days:
            draft.months = list(group.months.months)
    if group.has_times and not group.has_days:
        if group.part and not group.clocks and not adds:
            raise Refused("too-vague", group.part.span, "say at what time of day it should run")
        if group.window or group.grid or fine:
            raise Refused("no-update", hint="describe the whole schedule again")
        named = find_times(group, context, plan.start)
        for draft in edit.drafts:
            draft.times = sorted({*draft.times, *named}) if adds else named
    if not group.has_days:
        return edit.build(plan)
    if fine or group.is_fine:
        raise Refused("no-update", hint="describe the whole schedule again")
    drafts = _build_new_days(edit, group, plan, context)
    if adds:
        merged = merge([*edit.drafts, *drafts], "weekdays")
        is_rhythm = any(draft.interval > 1 for draft in edit.drafts)
        if is_rhythm and len(merged) > len(edit.drafts) and drafts[0].freq == "WEEKLY":
            raise Refused("no-update", hint="describe the whole schedule again")
        edit.drafts = merged
    else:
        edit.drafts = drafts
        if group.repeat or edit.has_start:
            edit.dtstart = None
    return edit.build(plan)


def _build_new_days(edit: Builder, group: Group, plan: Plan, context: Context) -> list[Draft]:
    old, repeat = edit.drafts[0], group.repeat
    context.keeps_time = True
    drafts = build_rules(replace(group, days=[replace(days, marked=True) for days in group.days]), plan, context)
    names_days = group.days or any(draft.weekdays or draft.month_days for draft in drafts)
    if repeat and repeat.unit > Unit.DAY and not names_days:
        freq, interval = drafts[0].freq, drafts[0].interval
        if any(draft.freq != freq or draft.interval == interval for draft in edit.drafts):
            raise Refused("no-update", repeat.span, "say on which days it should run")
        return [replace(draft, interval=interval) for draft in edit.drafts]
    if not group.has_times and any(draft.times != old.times for draft in edit.drafts):
        raise Refused("no-update", hint="it has different times on different days; describe the whole schedule again")
    for draft in drafts:
        draft.week_start = old.week_start
        if not group.has_times and len(draft.times) in {1, len(old.times)}:  # "twice a day" has its own
            draft.times = list(old.times)
        if not repeat and len(edit.drafts) == 1 and draft.freq == old.freq and draft.interval == 1:
            draft.interval = old.interval  # what the change does not name, such as the interval and the months
            draft.months = draft.months or (list(old.months) if draft.freq != "YEARLY" else [])
    return drafts
