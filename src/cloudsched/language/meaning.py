"""Build the schedule of a phrase from its clauses: rules if it repeats, and else one or more single instants."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language.dates import (
    ONE_DAY,
    add_length,
    ask_day,
    find_first_day,
    find_next_weekday,
    find_range,
    make_local_time,
    resolve_relative_day,
)
from cloudsched.language.exceptions import list_added
from cloudsched.language.grammar_days import WEEKEND
from cloudsched.language.grammar_points import count_days
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.messages import say, say_all, say_day
from cloudsched.language.nights import find_shift, move_weekdays
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    NOWHERE,
    REGULARLY,
    REPEATS,
    Clause,
    Date,
    Days,
    Except,
    Length,
    Period,
    Pick,
    Point,
    Relative,
    Repeat,
    Unit,
)
from cloudsched.language.phrase_context import NOON, Context, is_bare
from cloudsched.language.recurrences import ask_window, build_recurring, find_times
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def build_schedule(clauses: Sequence[Clause], context: Context) -> Schedule:
    """Return the schedule that the clauses mean."""
    plan = build_plan(clauses)
    if plan.marks & {REPEATS, REGULARLY}:
        _mark_repeated(plan)
    for group in plan.groups:
        _repeat_counted(group, context)
    _settle_bounds(plan, plan.groups[0])
    _leave_out_special_days(plan, context)
    if "forever" in plan.marks and plan.ends:
        raise Refused("contradiction", plan.ends[0].span)
    settle_context(plan, context)
    kinds = {"or"} if plan.recurs else {"or", "weekend"}
    for group in plan.groups:
        _choose_days(group, kinds, context)
    if _is_recurring(plan, context):
        for group in plan.groups:
            for node in group.relatives:
                raise Refused("contradiction", node.span)
        if "once" in plan.marks:
            raise Refused("contradiction")
        return build_recurring(plan, context)
    if plan.calendars:
        raise Refused("no-recurrence")
    for days in plan.days:
        if days.business and context.calendar is not None:
            raise Refused("inexpressible", days.span, "give the date: which days are holidays is not known here")
    return build_once(plan, context)


def _mark_repeated(plan: Plan) -> None:
    """Let a plan repeat because of a word such as "always": on its days, or every day."""
    for group in plan.groups:
        group.days = [replace(days, marked=True) for days in group.days]
    if plan.recurs:
        return
    if REPEATS not in plan.marks:
        raise Refused("no-recurrence")
    plan.groups[0].repeat = Repeat(1, Unit.DAY)


def _repeat_counted(group: Group, context: Context) -> None:
    """Find the days that are counted from one of each month: "2 days after the 2nd Tuesday"."""
    repeat = group.repeat
    for node in [node for node in group.relatives if node.kind == "length"]:
        base = node.base
        if isinstance(base, Date) and repeat:
            raise Refused("inexpressible", node.span)
        if not isinstance(base, Days) or base.dates:
            continue
        if repeat or base.marked or _is_repeated(replace(base, span=node.span), context):
            period = base.period or Period(interval=repeat.interval if repeat is not None else 1)
            group.days.append(replace(count_days(node, base, period), period=base.period))
            group.relatives.remove(node)


def _choose_days(group: Group, kinds: Collection[str], context: Context) -> None:
    """Ask which days are meant, if it is a choice such as "Monday or Tuesday" or "this weekend"."""
    chosen: list[Days] = []
    for days in group.days:
        if days.either not in kinds:
            chosen.append(days)
            continue
        parts = [replace(days, picks=(pick,)) for pick in days.picks]
        parts += [replace(days, dates=(date,)) for date in days.dates]
        options = [Option(say("only number {nth} of them", nth=nth), [part]) for nth, part in enumerate(parts, 1)]
        if days.is_weekly and not days.marked:
            options.append(Option("each of them once", parts))
        options.append(Option("all of them", [days]))
        picked = context.pick("which-of-month", days.span, options)
        chosen += picked
    group.days = chosen
    for node in [node for node in group.relatives if node.kind == "weekend"]:
        both = [replace(node, kind="weekday", weekday=day) for day in WEEKEND]
        halves = (Option("Saturday", both[:1]), Option("Sunday", both[1:]), Option("both", both))
        group.relatives.remove(node)
        meant = context.pick("which-of-month", node.span, halves)
        group.relatives += meant


def _leave_out_special_days(plan: Plan, context: Context) -> None:
    """Leave days with a time of their own out of a rule for more days: "every day at 9, on Sundays at 10".

    "All other days" are those that no other part of the phrase names. After "and", both times may be meant.
    """
    for general in plan.groups:
        special = [group for group in plan.groups if group is not general]
        usual, is_rest = _find_weekdays(general), any(days.others for days in general.days)
        named = [*map(_find_weekdays, special)]
        if is_rest:
            if not (named and all(named) and usual.difference(*named)):
                hint = "name the days, for example: every Monday and Tuesday"
                raise Refused("inexpressible", general.days[0].span, hint)
            general.days, general.repeat = [], Repeat(1, Unit.DAY)
        for group, own in zip(special, named, strict=True):
            if not own or not own < usual or group.joined == "also":
                continue
            only = [Except(tuple(group.days))]
            if "and" in (group.joined, general.joined) and not is_rest:
                both = Option[list[Except]]("both times on those days", [])
                instead = Option("those days only at their own time", only)
                only = context.pick("special-days", group.days[0].span, (instead, both))
            elif not is_rest:
                context.assume("Days with a time of their own run only at that time.")
            general.exceptions += only


def _find_weekdays(group: Group) -> frozenset[int]:
    """Return the weekdays on which a group repeats by the day or the week, none if anything else limits it."""
    repeat = group.repeat
    unit = Unit.WEEK if group.days else Unit.DAY
    is_other = (repeat.interval > 1 or repeat.unit != unit) if repeat is not None else not group.days
    if is_other or group.months or not all(days.is_weekly for days in group.days):
        return frozenset()
    return frozenset(pick.what for days in group.days for pick in days.picks) or frozenset(range(DAY))


def _settle_bounds(plan: Plan, only: Group) -> None:
    """Settle what the start, the end and the number of times mean for the first group of a phrase."""
    repeat, clocks = only.repeat, only.clocks
    if len(clocks) > 1:  # "every day 2 times at 8 and 20"
        plan.ends = [end for end in plan.ends if end.count != len(clocks) or end.span > clocks[0].span]
    lasts = any(end.length is not None and end.length.finest >= Unit.DAY for end in plan.ends)
    if lasts and clocks and not (only.has_days or only.months):  # "at 8am for 7 days"
        only.repeat = Repeat(1, Unit.DAY)
    if only.days or not repeat or not plan.start or len(plan.ends) != 1:
        return
    first, last = _to_date(plan.start.point), _to_date(plan.ends[0].point)
    if first is None or last is None or repeat.unit != (Unit.YEAR if first.month else Unit.MONTH):
        return
    # "every month from the 1st to the 5th", "every year from July 1 to July 5"
    begin, end = first.day or 0, last.day or 0
    if last.month != first.month or not 0 < begin < end:
        raise Refused("inexpressible", last.span, "make two schedules of it")
    picks = tuple(Pick(day, DAY) for day in range(begin, end + 1))
    period = Period(Unit.YEAR, months=(first.month,)) if first.month else None
    only.days = [Days(picks, period, marked=True, on=True, plural=True, span=last.span)]
    plan.start, plan.ends = None, []


def _to_date(point: Point | None) -> Date | None:
    """Return a point that is a date of each year, or the day of each month, as a date without a year."""
    if isinstance(point, Days) and not point.dates and not point.period and point.picks[0].what == DAY:
        return Date(day=point.picks[0].nth, span=point.span)
    return point if isinstance(point, Date) and not point.year else None


def settle_context(plan: Plan, context: Context) -> None:
    """Set the zone that the phrase names, whether it follows its owner, and whether its clock has 24 hours."""
    clocks = [each.clock for each in (plan.start, *plan.ends) if each is not None and each.clock is not None]
    for group in plan.groups:
        clocks += group.clocks
        if group.window:
            clocks += group.window.first, group.window.last
    context.clock24 = any(each.exact and each.half is None and not each.named for each in clocks)
    context.follows = FOLLOWING in plan.marks
    if plan.place:
        context.is_placed = True
        names, code = plan.place.names, "zone"
        if plan.place.is_loose and context.is_titled:  # "meet Bob in London" may be where, and no zone
            names, code = tuple(dict.fromkeys((context.timezone, *names))), "place"
        options = [Option(name, name) for name in names]
        context.timezone = names[0] if len(names) == 1 else context.pick(code, plan.place.span, options)


def _is_recurring(plan: Plan, context: Context) -> bool:
    if plan.recurs:
        return True
    decided = [_is_repeated(days, context) for group in plan.groups for days in group.days]
    if not any(decided):
        return False
    is_weekly = all(days.is_weekly for days in plan.days)
    if any(group.relatives for group in plan.groups) or not (all(decided) or is_weekly):
        raise Refused("contradiction", plan.days[0].span)
    if not all(decided):
        context.assume("It is in every week.")
    return True


def _is_repeated(days: Days, context: Context) -> bool:
    """Return whether days without "every" or a plural still mean a repetition. Ask if it is unclear."""
    period = days.period
    may_be_yearly = context.is_yearly or len(days.dates) >= _MANY_DATES
    if not (may_be_yearly and days.dates and all(date.year is None and date.month for date in days.dates)):
        if days.dates or (period and (period.year is not None or period.ahead is not None)):
            return False
        several = len(days.picks) > 1 and not days.only
        is_business = days.business and context.calendar is not None
        if period and period.months and not is_business:
            return several or len(period.months) > 1 or days.plural
        if several or is_business or (period and not period.definite):
            unit = period.unit if period is not None else Unit.MONTH if days.is_counted else Unit.WEEK
            context.assume(f"It is in every {unit.name.lower()}.")
            return True
        if not days.is_counted or (not period and days.picks[0].what == DAY):
            return False
    options = (Option("every time", True), Option("only the next time", False))
    return context.pick("once-or-repeat", days.span, options)


_MANY_DATES = 3
"""The number of dates without a year from which on they may well be meant for every year."""


def build_once(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of a phrase that names one or more single instants."""
    for bound in (*plan.ends, *plan.exceptions, plan.start):
        if bound is not None:
            raise Refused("no-recurrence", bound.span)
    found: set[datetime] = set()
    for group in plan.groups:
        if plan.within:
            _place_within(group, plan.within, context)
        if group.window:
            group.clocks, group.window = ask_window(group.window, context), None
        if group.grid or group.months:
            raise Refused("too-vague")
        found.update(_find_instants(group, context))
    result = sorted(found)
    if result == [context.now]:  # "in 0 minutes"
        return Schedule.after(timedelta(0), timezone=context.timezone)
    if plan.added:  # if a date before the others is over, it is left out
        result = [at for at in result if at > context.now]
    elif result[0] <= context.now:
        raise Refused("past")
    elif len(result) == 1:
        is_local = not any(_is_delay(node) for group in plan.groups for node in group.relatives)
        return build_at(result[0], context, is_local=is_local)
    local = [context.to_local(at).isoformat() for at in result] + list_added(plan.added, context)
    return Schedule(dtstart=local[0], rdates=local[1:], timezone=context.timezone)


def _is_delay(node: Relative) -> bool:
    """Return whether a node is an instant by its distance from now."""
    return node.length is not None and (node.from_moment or node.length.finest < Unit.DAY)


def _place_within(group: Group, within: Period, context: Context) -> None:
    """Put the day of a group into a period: "next month on the 3rd"."""
    if within.unit == Unit.YEAR:
        raise Refused("too-vague", within.span)
    if not group.has_days:
        first, then = find_range(within, context, context.today)
        if within.ahead and within.unit != Unit.QUARTER:  # the first day of "next week", or the one after a week
            then = add_length(context.today, Length(((within.unit, within.ahead),)))
        options = [Option(say_day(day), day) for day in ((first, then) if within.ahead else (then,))]
        chosen = context.pick("which-of-month", within.span, options)
        group.relatives.append(Relative("day", (chosen - context.today).days, span=within.span))
        return
    are_free = all(days.is_counted and not (days.dates or days.period) for days in group.days)
    if group.relatives or within.unit == Unit.WEEK or not are_free:
        raise Refused("contradiction", within.span)
    group.days = [replace(days, period=Period(within.unit, ahead=within.ahead)) for days in group.days]


def build_at(at: datetime, context: Context, *, is_local: bool = True) -> Schedule:
    """Return the schedule of an instant. If it was named by the clock, it is stored as a local time."""
    shown = context.to_local(at)
    by_clock = Schedule.once_at(shown, context.timezone) if is_local else None
    return by_clock if by_clock is not None and by_clock.at == at else Schedule.once(at, timezone=context.timezone)


def _find_instants(group: Group, context: Context) -> list[datetime]:
    if len(group.relatives) == 1 and not (group.days or group.has_times):
        [node] = group.relatives
        if node.kind == "now" or _is_delay(node):
            return [_find_moment(node, context)]
    for node in group.relatives:
        if node.length and node.length.finest < Unit.DAY:
            raise Refused("contradiction", node.span)
        if node.kind == "now":
            raise Refused("too-vague", node.span)
    shift = find_shift(group, context)
    if all(days.is_weekly for days in group.days):
        move_weekdays(group, shift, context)
        shift = 0 if group.days else shift
    days = _find_days(group, context, shift)
    if not days:
        return _find_next_times(group, context)
    part = group.part
    if part is not None and part.today and days != [context.today]:
        raise Refused("contradiction", part.span)
    if shift and part is not None and part.is_adverb and days[0] > context.today and part.span > group.clocks[-1].span:
        # "morgen um 3 Uhr nachts" may be early tomorrow, or late in tomorrow's night
        options = [Option(say_day(days[0] + timedelta(days=more)), more) for more in (0, shift)]
        shift = context.pick("this-or-next", part.span, options)
    if shift:
        days = [day + timedelta(days=shift) for day in days]
        context.assume(say("That is on {days}, in the night.", days=say_all([say_day(day) for day in days])))
    return [context.to_instant(local) for day in days for local in _build_times(day, group, context)]


def _find_moment(node: Relative, context: Context) -> datetime:
    """Return the instant of "in 20 minutes"."""
    amounts = node.length.amounts if node.length else ()
    if node.base:
        raise Refused("not-understood", node.span)
    if not any(count for _, count in amounts):
        return context.now
    if context.follows:
        raise Refused("contradiction", node.span)
    now = context.now.replace(microsecond=0)
    for amount in sorted(amounts, reverse=True):
        step = Length((amount,))
        if amount[0] < Unit.DAY:
            now = add_length(now, step)
        else:
            now = context.to_instant(add_length(context.to_local(now), step))
    return now


def _find_days(group: Group, context: Context, shift: int) -> list[date]:
    """Return the days that a group names. None are returned if it names only a time."""
    today = context.today
    if group.relatives and group.days:
        raise Refused("contradiction", group.days[0].span)
    result = [resolve_relative_day(node, context, today) for node in group.relatives]
    for days in group.days:
        result += _resolve_days(days, group, context, shift)
    if len({bool(days.dates) for days in group.days}) > 1:
        raise Refused("contradiction", group.days[-1].span)
    if not result and group.part is not None and group.part.today:
        return [today]
    return sorted(set(result))


def _resolve_days(days: Days, group: Group, context: Context, shift: int) -> list[date]:
    today = context.today
    if days.weeks or (len(days.picks) > 1 and not days.dates):
        raise Refused("no-recurrence", days.span, "add 'every' if it repeats, or list the dates")
    if not (days.dates or days.picks[0].nth or days.period):
        coming = find_next_weekday(days.picks[0].what, today)
        is_weekday = coming.weekday() == today.weekday()
        may_be_today = is_weekday and not _has_passed(group, context, shift) and group.has_times
        return [ask_day((today, coming), days.span, context) if may_be_today else coming]
    result: list[date] = []
    for base in (today, today + ONE_DAY):
        result = [find_first_day(point, context, base) for point in days.dates or (days,)]
        if today not in result or group.midnight or not _has_passed(group, context, shift):
            break
    return result


def _has_passed(group: Group, context: Context, shift: int) -> bool:
    """Return whether the times of a group are over today."""
    day = context.today + timedelta(days=shift)
    return all(context.to_instant(local) <= context.now for local in _build_times(day, group, context))


def _build_times(day: date, group: Group, context: Context) -> list[datetime]:
    if not group.has_times and day == context.today and make_local_time(day, *context.default) <= context.local:
        span = group.relatives[0].span if group.relatives else NOWHERE
        raise Refused("too-vague", span, "the default time has passed today; give a time")
    return [make_local_time(day, *time) for time in find_times(group, context)]


def _find_next_times(group: Group, context: Context) -> list[datetime]:
    """Return the next instant for each time of day that has no day."""
    part = group.part.part if group.part is not None else None
    only, now = group.clocks[0] if group.clocks else None, context.local
    is_open = len(group.clocks) == 1 and part is None and not context.clock24
    if only is None:
        if part is None:
            raise Refused("no-time")
        times = [context.assume_part_of_day(part)]
    elif is_open and is_bare(only) and only.hour < NOON and (only.hour, only.minute) <= (now.hour, now.minute):
        times = [context.ask_half(only)]  # "call Tom at 9", said after 9: this evening, or tomorrow
    else:
        times = context.resolve_times(group.clocks, part)
    today = [make_local_time(context.today, *time) for time in times]
    return [
        context.to_instant(local if context.to_instant(local) > context.now else local + ONE_DAY) for local in today
    ]
