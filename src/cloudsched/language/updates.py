"""Apply what a change says to a schedule: "make it 10 instead", "not on Fridays", "also Saturdays".

A change affects only what it names: days, times, the time zone, the start, the end, or single occurrences.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.language.dates import find_first_day, make_local_time, to_relativedelta
from cloudsched.language.exceptions import add_calendars, apply_exceptions
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.left_out import move_exdates
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
    Repeat,
    Stretch,
    Unit,
    Within,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.recurrences import BEGINNING, Bounds, Builder, build_rules, find_times
from cloudsched.language.result import Refused
from cloudsched.language.rules import Draft, build_interval_rule, merge
from cloudsched.language.single_moves import list_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule

_NOTHING: Final = Plan()


@dataclass
class Edit:
    """A recurring schedule that is being edited.

    Attributes:
        current: The schedule before the change, anchored.
        until: Its end, in local time.
        exdates: The days and times that the change leaves out. Those that were left out before move along.
        shift: The time by which all its times of day move.
        restarts: Its rhythm is another one, which counts from a new start.
    """

    current: Schedule
    drafts: list[Draft]
    dtstart: datetime
    until: datetime | None = None
    count: int | None = None
    exdates: list[str] = field(default_factory=list)
    shift: timedelta = timedelta(0)
    restarts: bool = False

    def build(self, context: Context, plan: Plan = _NOTHING) -> Schedule:
        """Build the edited schedule."""
        bounds = Bounds(max(self.dtstart.date(), context.today), has_start=self.dtstart > context.local)
        if plan.start:
            bounds.start, bounds.has_start = context.today, True
            if plan.start.point:
                bounds.start = find_first_day(plan.start.point, context, context.today)
        elif self.dtstart.isoformat() != BEGINNING and not self.restarts:
            begin, times = self.dtstart, [time for draft in self.drafts for time in draft.times]
            if plan.ends and plan.ends[0].point is None and (following := self.current.next_after(context.now)):
                begin = context.to_local(following)  # "10 times" counts from now
                times = [] if begin.timetuple()[3:6] in times else times
            bounds.dtstart = (make_local_time(begin.date(), *min(times)) if times else begin).isoformat()
        if not plan.ends:
            bounds.count = self.count
            if self.until is not None:
                bounds.until, bounds.until_clock = self.until.date(), TimeOfDay(*self.until.timetuple()[3:6])
        move = partial(move_exdates, self.current, self.shift)
        built = Builder(plan, context, self.drafts, bounds).build(self.exdates, move)
        days = {} if any(group.days for group in plan.groups) else {"business_day": self.current.business_day}
        return _keep_policies(built, self.current, plan, context, **days, rdates=self.current.rdates)

    def apply(self, plan: Plan, context: Context, *, adds: bool) -> Schedule:
        """Build the schedule with what a plan of one group names, or adds."""
        if plan.exceptions:
            self.exdates += apply_exceptions(self.drafts, plan.exceptions, context, context.today)
        _apply_group(self, plan.groups[0], plan, context, adds=adds)
        return self.build(context, plan)

    def leave_out(self, context: Context, *points: Point | Stretch | Within) -> Schedule:
        """Build the schedule without some days."""
        self.exdates += apply_exceptions(self.drafts, [Except(points)], context, context.today)
        changed = self.build(context)
        days = {date.fromisoformat(text[:10]) for text in self.exdates}
        if changed.rules == self.current.rules and not any(list_on(self.current, context, day) for day in days):
            context.choices.assume("The schedule does not run then, so nothing changes.")
        return changed


def _keep_policies(built: Schedule, current: Schedule, plan: Plan, context: Context, **more: object) -> Schedule:
    """Return a schedule with what words seldom name, so that new words keep it."""
    kept = {name: getattr(current, name) for name in ("gap", "fold", "sub_daily", "calendars")}
    return add_calendars(built.model_copy(update={**kept, **more}), plan, context)


def anchor(current: Schedule, context: Context) -> Schedule:
    """Return a schedule that repeats, with its start."""
    if current.is_single_time:
        raise Refused("no-update", hint="it runs once only")
    return current.anchor(context.now)


def take_apart(current: Schedule, context: Context) -> Edit:
    """Split a schedule into an `Edit`."""
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


def remove(current: Schedule, context: Context, read: Sequence[Clause], *, single: bool) -> Schedule:
    """Return the schedule without the days or the times that clauses name. A `single` day is the coming one."""
    edit, plan = take_apart(current, context), build_plan(read)
    group = plan.groups[-1]
    first, last = plan.start and plan.start.point, plan.ends and plan.ends[0].point
    if (
        not (group.has_days or group.has_times)
        and isinstance(first, Date | Relative)
        and isinstance(last, Date | Relative)
    ):
        return edit.leave_out(context, Stretch(first, last))
    part = None if group.part is None or group.part.today else group.part.part
    if group.clocks and not group.days and not group.relatives:
        gone = context.resolve_times(group.clocks, part)
        if not any(time in gone for draft in edit.drafts for time in draft.times):
            context.choices.assume("The schedule does not run then, so nothing changes.")
        for draft in edit.drafts:
            draft.times = [time for time in draft.times if time not in gone]
            if not draft.times:
                raise Refused("never")
        return edit.build(context)
    days = [clause for clause in read if isinstance(clause, Days | Relative)]
    points: list[Point] = [_pick_single(point) if single else point for point in days]
    if group.months and not points:
        points = [group.months]
    if not points or len(plan.groups) > 1 or group.has_times or group.repeat or plan.ends or plan.start:
        raise Refused("no-update")
    return edit.leave_out(context, *points)


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
    if current.at is not None:
        return _build_once_at(_shift(context.to_local(current.at), by, direction), context)
    if any(unit >= Unit.DAY for unit, _ in by.amounts):
        raise Refused("no-update", by.span, "a repeating schedule cannot be moved by days; give the new days")
    edit = take_apart(current, context)
    for draft in edit.drafts:
        moved = [_shift(make_local_time(context.today, *time), by, direction) for time in draft.times]
        if not moved:
            raise Refused("no-update", by.span)
        if any(time.date() != context.today for time in moved):
            raise Refused("no-update", by.span, "that moves it to another day; give the new days and times")
        draft.times = [TimeOfDay(*time.timetuple()[3:6]) for time in moved]
    edit.shift = timedelta(seconds=direction * by.seconds)
    return edit.build(context)


def _shift(local: datetime, by: Length, direction: int) -> datetime:
    try:
        return local + direction * to_relativedelta(by)
    except (ValueError, OverflowError):
        raise Refused("never", by.span) from None


def change_schedule(
    current: Schedule, context: Context, read: Sequence[Clause], *, adds: bool = False, limits: bool = False
) -> Schedule:
    """Return the schedule with what clauses name, or what they add, or `limits` of it."""
    plan = build_plan(read)
    context.timezone = current.timezone
    if not (adds or limits) and _is_whole(plan, current):
        built = build_schedule(read, context)
        if not built.rules or not current.rules:
            return built
        if plan.start or not _goes_on(current, built, context):
            return _keep_policies(built, current, plan, context)
        begin = built if "BYHOUR" in built.rules[0] else current  # a time of day that is said has its own seconds
        dtstart = f"{current.dtstart}"[:10] + f"{begin.dtstart}"[10:]
        return _keep_policies(built, current, plan, context, dtstart=dtstart)
    if plan.within:
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
    if group.relatives or plan.year or (plan.marks - {"skip-back", "skip-forward", "skip-omit", FOLLOWING}):
        raise Refused("no-update", group.relatives[0].span if group.relatives else None)
    return edit.apply(plan, context, adds=adds)


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
    is_dated = bool(dates) and all(date.year or plan.year or (date.month and not is_yearly) for date in dates)
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
    names_time = group.has_times or plan.place is not None or context.follows
    if not names_time or len(times) > 1 or (group.has_times and not group.clocks):
        raise Refused("no-update")
    return _build_once_at(make_local_time(local.date(), *times[0]), context)


def _apply_group(edit: Edit, group: Group, plan: Plan, context: Context, *, adds: bool) -> None:
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
        return
    if group.is_fine and not adds:
        edit.drafts, edit.restarts = build_rules(group, plan, context), True
        return
    if fine or group.is_fine:
        if adds or group.repeat or group.has_times or len(edit.drafts) > 1:
            raise Refused("no-update")
        only = build_interval_rule(group, Repeat(1, Unit.HOUR))
        edit.drafts[0].weekdays, edit.drafts[0].month_days = only.weekdays, only.month_days
        return
    drafts = _build_new_days(edit, group, plan, context)
    if adds:
        _add_rules(edit, drafts)
    else:
        edit.drafts, edit.restarts = drafts, group.repeat is not None or edit.dtstart > context.local


def _build_new_days(edit: Edit, group: Group, plan: Plan, context: Context) -> list[Draft]:
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


def _add_rules(edit: Edit, drafts: list[Draft]) -> None:
    for draft in drafts:
        twin = next((one for one in edit.drafts if one.weekdays and one.differs_only_in("weekdays", draft)), None)
        if twin is not None and not twin.positions:
            twin.weekdays = sorted({*twin.weekdays, *draft.weekdays})
        elif any(one.interval > 1 for one in edit.drafts) and draft.freq == "WEEKLY":
            raise Refused("no-update", hint="describe the whole schedule again")
        else:
            edit.drafts.append(draft)
