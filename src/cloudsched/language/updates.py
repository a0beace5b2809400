"""Apply a change to a schedule: "make it 10 instead", "not on Fridays", "also Saturdays", "9 rather than 17".

A change is an operation and the clauses of a fragment. It affects only what these name: days, times, months, the time
zone, the start, the end, or single occurrences. With ``add``, what they name is added to what the schedule has. With
``remove``, it is taken away. Otherwise it replaces all of that, or only what the change names as old.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.rrule import Frequency, Rule, parse_rule
from cloudsched.language.dates import make_local_time, to_relativedelta
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.meaning import build_at, build_schedule, settle_context
from cloudsched.language.nodes import DAY, FOLLOWING, Clause, Clock, Length, Pick, Times, Unit
from cloudsched.language.phrase_context import NOON, Context, TimeOfDay, is_bare, list_times
from cloudsched.language.recurrences import BEGINNING, Builder, build_rules, find_times, keep_policies
from cloudsched.language.result import Refused
from cloudsched.language.rules import SKIPS, Draft, fill_days, merge
from cloudsched.language.single_moves import list_on, move_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.schedules.schedule import Schedule


def anchor(current: Schedule, context: Context) -> Schedule:
    """Return a schedule that repeats, with its start."""
    if current.is_single_time:
        raise Refused("no-update")
    return current.anchor(context.now)


def take_apart(current: Schedule, context: Context) -> Builder:
    """Return a builder with the rules, the start and the end of a schedule."""
    anchored = anchor(current, context)
    rules = [parse_rule(rule) for rule in anchored.rules]
    ends = {(rule.until, rule.count) for rule in rules}
    until, count = ends.pop() if ends else (None, None)
    if anchored.dtstart is None or not rules or ends or (until is not None and until.is_utc):
        raise Refused("no-update", hint="describe the whole schedule again")
    dtstart = datetime.fromisoformat(anchored.dtstart)
    last = None if until is None else BEGINNING + timedelta(seconds=until.seconds)
    drafts = merge([_build_draft(rule, dtstart) for rule in rules], "times")
    start, has_start = max(dtstart.date(), context.today), dtstart > context.local
    kept = None if dtstart == BEGINNING else dtstart
    return Builder(context, drafts, start, has_start, last, count, kept, anchored)


def _build_draft(rule: Rule, dtstart: datetime) -> Draft:
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
    if rule.positions and len(rule.hours) > 1:
        raise Refused("no-update", hint="describe the whole schedule again")
    if rule.frequency > Frequency.DAILY:
        draft.hours, draft.minutes, draft.seconds = rule.hours, rule.minutes, rule.seconds
    else:
        hours, minutes = rule.hours or (dtstart.hour,), rule.minutes or (dtstart.minute,)
        seconds = rule.seconds or (dtstart.second,)
        draft.times = [TimeOfDay(*time) for time in product(hours, minutes, seconds)]
    fill_days(draft, dtstart)
    return draft


def list_picks(drafts: Sequence[Draft]) -> set[tuple[int, int]]:
    """Return the weekdays and the days of the month on which rules run."""
    return {pick for draft in drafts for pick in (*draft.weekdays, *(Pick(day, DAY) for day in draft.month_days))}


def shift_schedule(current: Schedule, context: Context, by: Length, direction: int) -> Schedule:
    """Return the schedule with all its times earlier or later by a length of time."""
    length = direction * to_relativedelta(by)
    if current.at is not None:
        at = context.to_instant(context.to_local(current.at) + length)
        if at <= context.now:
            raise Refused("past")
        return build_at(at, context)
    edit = take_apart(current, context)
    for draft in edit.drafts:
        moved = [make_local_time(context.today, *time) + length for time in draft.times]
        if {time.date() for time in moved} != {context.today}:
            raise Refused("no-update", by.span, "that moves it to another day; give the new days and times")
        draft.times = [TimeOfDay(*time.timetuple()[3:6]) for time in moved]
    edit.shift = timedelta(seconds=direction * by.seconds)
    return edit.build()


def change_schedule(
    current: Schedule, context: Context, read: Sequence[Clause], operation: str = "", old: Group | None = None
) -> Schedule:
    """Return the schedule changed by what clauses name. An `old` group names the part that they replace."""
    if operation == "remove" and not all(isinstance(clause, Times) for clause in read):
        raise Refused("no-update")
    if current.at is not None and operation in {"", "only"}:
        return move_once(current.at, read, context)
    plan = build_plan(read)
    if not (operation or old) and _is_whole(plan, current):
        return _replace_whole(current, context, read, plan)
    if plan.within and plan.within.unit < Unit.YEAR:
        raise Refused("too-vague", plan.within.span)
    settle_context(plan, context)
    anchored = anchor(current.change_zone(context.timezone), context)
    edit = take_apart(anchored, context)
    [group, *others] = plan.groups
    if others:
        raise Refused("no-update", hint="describe the whole schedule again")
    if group.relatives and not group.has_times:
        raise Refused("too-vague", group.relatives[0].span)
    if group.relatives or plan.within or (plan.marks - SKIPS.keys() - {FOLLOWING}):
        raise Refused("no-update")
    for draft in edit.drafts:
        if group.week_start:
            draft.week_start = group.week_start.weekday
        if group.months and not group.has_days and (draft.months or operation != "add"):
            draft.months = [*(draft.months if operation == "add" else ()), *group.months.months]
    if group.has_days:
        _change_days(edit, plan, operation, old or Group())
    elif group.has_times:
        _change_times(edit, plan, operation, old or Group())
    changed = edit.build(plan)
    days = {date.fromisoformat(text[:10]) for text in edit.exdates}
    is_same = changed.model_copy(update={"exdates": anchored.exdates}) == anchored
    if is_same and operation in {"remove", "except"} and not any(list_on(anchored, context, day) for day in days):
        context.assume("The schedule does not run then, so nothing changes.")
    return changed


def _is_whole(plan: Plan, current: Schedule) -> bool:
    """Return whether a phrase has a whole schedule, which replaces any other and needs nothing of it."""
    if plan.recurs:
        return all(
            group.is_fine or (group.has_days and bool(group.clocks or group.window or group.grid))
            for group in plan.groups
        )
    group = plan.groups[0]
    if plan.ends or plan.start or plan.exceptions:
        return False
    if any(each.length is not None and each.length.finest < Unit.DAY for each in group.relatives):
        return True
    is_yearly = any("YEARLY" in rule for rule in current.rules)
    dates = [date for days in group.days for date in days.dates]
    is_dated = any(date.year or plan.within or (date.month and not is_yearly) for date in dates)
    return bool(group.clocks) and (bool(group.relatives) or is_dated)


def _replace_whole(current: Schedule, context: Context, read: Sequence[Clause], plan: Plan) -> Schedule:
    """Return the schedule of clauses in the place of another one, whose rhythm it goes on in if it has the same."""
    built = build_schedule(read, context)
    if not built.rules or not current.rules:
        return built
    rules = [parse_rule(rule) for rule in (*current.rules, *built.rules)]
    is_same = len({(rule.frequency, rule.interval, rule.count) for rule in rules}) == 1 and not rules[0].count
    has_rhythm = rules[0].interval > 1 or not rules[-1].hours  # "every day at 10:00" is the same from any day on
    if is_same and has_rhythm and not plan.start and str(current.dtstart) < context.local.isoformat():
        begin = built if rules[-1].hours else current  # a time of day that is said has its own seconds
        built = built.model_copy(update={"dtstart": f"{current.dtstart}"[:10] + f"{begin.dtstart}"[10:]})
    return keep_policies(built, current, plan, context)


def _change_times(edit: Builder, plan: Plan, operation: str, old: Group) -> None:
    context, group = edit.context, plan.groups[0]
    if group.part and not group.clocks and operation != "add":
        raise Refused("too-vague", group.part.span)
    if group.window or group.grid or not all(draft.times for draft in edit.drafts):
        raise Refused("no-update", hint="describe the whole schedule again")
    own = {time for draft in edit.drafts for time in draft.times}
    if old.clocks:
        gone, named = _match_times(old.clocks, group.clocks, own, context)
    else:
        gone, named = own, {*find_times(group, context, plan.start)}
    nothing: set[TimeOfDay] = set()
    gone, added = {"add": (nothing, named), "remove": (named, nothing)}.get(operation, (gone, named))
    for draft in edit.drafts:
        times = {*draft.times}
        if not gone or times & gone:
            draft.times = sorted(times - gone | added)
        if not draft.times:
            raise Refused("never")


def _match_times(
    old: Sequence[Clock], new: Sequence[Clock], own: set[TimeOfDay], context: Context
) -> tuple[set[TimeOfDay], set[TimeOfDay]]:
    """Return the times of a schedule that clocks name, and those that replace them.

    A bare hour is as near as possible to the time that it replaces, if that was not said on the 24-hour clock.
    """
    gone = [found[0] for clock in old if (found := [time for time in list_times(clock) if time in own])]
    if len(gone) < len(old):
        raise Refused("no-update", old[0].span, "it does not run at this time; say at which it should run")
    is_near = all(clock.hour <= NOON for clock in old)
    added = {
        min(list_times(clock), key=lambda time: abs(time.hour - gone[0].hour))
        if is_near and is_bare(clock)
        else context.resolve_time(clock)
        for clock in new
    }
    return {*gone}, added


def _change_days(edit: Builder, plan: Plan, operation: str, old: Group) -> None:
    fine = not all(draft.times for draft in edit.drafts)
    if fine or plan.groups[0].is_fine:
        raise Refused("no-update", hint="describe the whole schedule again")
    gone = {pick for days in old.days for pick in days.picks}
    own = list_picks(edit.drafts)
    if not gone <= own:
        raise Refused("no-update", hint="it runs on other days than these; say on which it should run")
    drafts = _build_new_days(edit, plan)
    if operation != "add" and gone in (set(), own):
        edit.drafts = drafts
        if plan.groups[0].repeat or edit.has_start:
            edit.dtstart = None
        return
    for draft in edit.drafts:
        draft.weekdays = [pick for pick in draft.weekdays if pick not in gone]
        draft.month_days = [day for day in draft.month_days if (day, DAY) not in gone]
    kept = [draft for draft in edit.drafts if not gone or list_picks([draft])]
    merged = merge([*kept, *drafts], "weekdays")
    is_rhythm = any(draft.interval > 1 for draft in edit.drafts)
    if is_rhythm and len(merged) > len(edit.drafts) and drafts[0].freq == "WEEKLY":
        raise Refused("no-update", hint="describe the whole schedule again")
    edit.drafts = merged


def _build_new_days(edit: Builder, plan: Plan) -> list[Draft]:
    context, group, old = edit.context, plan.groups[0], edit.drafts[0]
    repeat = group.repeat
    context.keeps_time = True
    drafts = build_rules(replace(group, days=[replace(days, marked=True) for days in group.days]), plan, context)
    names_days = group.days or any(draft.weekdays or draft.month_days for draft in drafts)
    if repeat and repeat.unit > Unit.DAY and not names_days:
        freq, interval = drafts[0].freq, drafts[0].interval
        if any(draft.freq != freq or draft.interval == interval for draft in edit.drafts):
            raise Refused("no-update", repeat.span)
        return [replace(draft, interval=interval) for draft in edit.drafts]
    if not group.has_times and any(draft.times != old.times for draft in edit.drafts):
        raise Refused("no-update", hint="describe the whole schedule again")
    for draft in drafts:
        draft.week_start = old.week_start
        if not group.has_times and len(draft.times) in {1, len(old.times)}:  # "twice a day" has its own
            draft.times = list(old.times)
        if not repeat and len(edit.drafts) == 1 and draft.freq == old.freq and draft.interval == 1:
            draft.interval = old.interval  # what the change does not name, such as the interval and the months
            draft.months = draft.months or (list(old.months) if draft.freq != "YEARLY" else [])
    return drafts
