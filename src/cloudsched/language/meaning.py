"""Build the schedule of a phrase from its clauses: rules if it repeats, and else one or more single instants."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import permutations
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language.dates import (
    ONE_DAY,
    add_length,
    find_first_day,
    find_next_weekday,
    find_nth_day,
    find_within,
    make_local_time,
    resolve_date,
    resolve_relative_day,
)
from cloudsched.language.exceptions import list_added
from cloudsched.language.grammar_days import WEEKEND
from cloudsched.language.grammar_points import count_date, count_days
from cloudsched.language.groups import Group, Plan, build_plan
from cloudsched.language.messages import say, say_all, say_day
from cloudsched.language.nights import DAYS, find_shift, move_weekdays
from cloudsched.language.nodes import (
    DAY,
    FOLLOWING,
    REGULARLY,
    REPEATS,
    WEEKENDDAY,
    Clause,
    Clock,
    Date,
    Days,
    Length,
    Period,
    Pick,
    Relative,
    Repeat,
    Unit,
    Window,
    Within,
)
from cloudsched.language.phrase_context import NOON, Context, TimeOfDay, is_bare
from cloudsched.language.recurrences import build_recurring
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def build_schedule(clauses: Sequence[Clause], context: Context) -> Schedule:
    """Return the schedule that the clauses mean."""
    plan = build_plan(clauses)
    if plan.marks & {REPEATS, REGULARLY}:
        plan.groups = [_mark_repeated(group, is_daily=REPEATS in plan.marks) for group in plan.groups]
    plan.groups = [_repeat_counted(group, context) for group in plan.groups]
    _repeat_dates(plan)
    _fill_others(plan)
    _replace_special_days(plan, context)
    _drop_count_of_a_day(plan)
    if _lasts_days(plan):
        plan.groups[0].repeat = Repeat(1, Unit.DAY)
    if "forever" in plan.marks and plan.ends:
        raise Refused("contradiction", plan.ends[0].span)
    resolve_zone(plan, context)
    context.clock24 = any(is_24_hour(clock) for clock in list_clocks(plan))
    kinds = {"or"} if plan.recurs else {"or", "weekend"}
    plan.groups = [_choose_days(group, kinds, context) for group in plan.groups]
    if _is_recurring(plan, context):
        plan.groups = [move_weekdays(group, find_shift(group, context), context) for group in plan.groups]
        if "once" in plan.marks:
            raise Refused("contradiction")
        if any(group.relatives for group in plan.groups):
            raise Refused("contradiction", plan.groups[0].relatives[0].span if plan.groups[0].relatives else None)
        return build_recurring(plan, context)
    if plan.calendars:
        raise Refused("no-recurrence")
    counted = next((days for group in plan.groups for days in group.days if days.business), None)
    if counted is not None and context.calendar is not None:
        raise Refused("inexpressible", counted.span, "give the date: which days are holidays is not known here")
    return _build_dates(plan, context) if plan.added else build_once(plan, context)


def _mark_repeated(group: Group, *, is_daily: bool) -> Group:
    """Return a group that repeats because of a word such as "always": on its days, or every day."""
    if group.days or group.repeat is not None:
        return replace(group, days=[replace(days, marked=True) for days in group.days])
    if group.relatives or (group.part is not None and group.part.each):
        return group
    if not is_daily:
        raise Refused("too-vague", hint="say how often: every day, every Monday")
    return replace(group, repeat=Repeat(1, Unit.DAY, span=(0, 0)))


def _repeat_counted(group: Group, context: Context) -> Group:
    """Return a group with days that are counted from one of each month: "2 days after the 2nd Tuesday"."""
    for node in [node for node in group.relatives if node.kind == "length"]:
        base, repeat = node.base, group.repeat
        is_edge = isinstance(base, Relative) and base.kind == "edge" and base.unit == Unit.MONTH and not base.ahead
        if isinstance(base, Relative) and is_edge and repeat is not None:
            base = Days((Pick(base.count, DAY),), span=base.span)
        if isinstance(base, Date) and repeat is not None and repeat.unit == Unit.YEAR:
            moved = Days(dates=(count_date(node, base),), marked=True, on=True, span=node.span)
            relatives = [each for each in group.relatives if each is not node]
            group = replace(group, relatives=relatives, days=[*group.days, moved])
            continue
        if not isinstance(base, Days) or base.dates:
            continue

        named = replace(base, span=node.span)
        period = base.period or Period(interval=repeat.interval if repeat is not None else 1)
        is_monthly = repeat is not None and repeat.unit == Unit.MONTH
        is_yearly = repeat is not None and repeat.unit == Unit.YEAR and period.months
        if repeat is not None and not (is_monthly or is_yearly):
            raise Refused("contradiction", node.span)
        if repeat is None and not (base.marked or _is_repeated(named, context, bounded=False, is_range=True)):
            continue

        days, only_if = count_days(replace(node, base=base), period)
        days = replace(days, period=base.period)
        if group.only_if is not None:
            raise Refused("contradiction", node.span)
        relatives = [each for each in group.relatives if each is not node]
        group = replace(group, relatives=relatives, days=[*group.days, days], only_if=only_if)
    return group


def _choose_days(group: Group, kinds: Collection[str], context: Context) -> Group:
    """Return a group without a choice of days, such as "Monday or Tuesday": ask which is meant."""
    chosen: list[Days] = []
    for days in group.days:
        if days.either not in kinds:
            chosen.append(days)
            continue
        parts = [replace(days, picks=(pick,), either="") for pick in days.picks]
        parts += [replace(days, dates=(date,), either="") for date in days.dates]
        options = [Option(say("only number {nth} of them", nth=nth), [part]) for nth, part in enumerate(parts, 1)]
        is_week = not days.period and not days.dates and all(not pick.nth for pick in days.picks)
        if is_week and not days.marked:
            options.append(Option("each of them once", parts))
        options.append(Option("all of them", [replace(days, either="")]))
        picked: list[Days] = context.choices.pick("which-of-month", days.span, tuple(options))
        chosen += picked
    relatives = [each for node in group.relatives for each in _choose_of_weekend(node, context)]
    return replace(group, days=chosen, relatives=relatives)


def _choose_of_weekend(node: Relative, context: Context) -> list[Relative]:
    """Return the days that "this weekend" means. Other days are returned as they are."""
    if node.kind != "weekend":
        return [node]
    both = [replace(node, kind="weekday", weekday=day) for day in WEEKEND]
    options = (Option("Saturday", both[:1]), Option("Sunday", both[1:]), Option("both", both))
    return context.choices.pick("which-of-month", node.span, options)


def _lasts_days(plan: Plan) -> bool:
    """Return whether a phrase is daily since it names times and a number of days: "at 8am for 7 days"."""
    only, *others = plan.groups
    lasts = any(end.length is not None and end.length.finest >= Unit.DAY for end in plan.ends)
    is_limited = only.has_days or plan.within or plan.year or only.months
    return lasts and not others and bool(only.clocks) and not is_limited


def _list_days_of_month(first: Days, last: Days) -> Days:
    """Return the days of "every month from the 1st to the 5th"."""
    ends = (*first.picks, *last.picks)
    days = range(ends[0].nth, ends[-1].nth + 1)
    is_plain = len(ends) == 2 and all(pick.what == DAY and pick.nth > 0 for pick in ends) and len(days) > 1
    if not is_plain or first.period or last.period:
        raise Refused("inexpressible", last.span, "name the days, for example: every month on the 1st to 5th")
    return Days(tuple(Pick(day, DAY) for day in days), marked=True, on=True, plural=True, span=last.span)


def _fill_others(plan: Plan) -> None:
    """Replace "all other days" by the days of the week that no other part of the phrase names."""
    all_days = [days for group in plan.groups for days in group.days]
    others = [days for days in all_days if days.others]
    if not others:
        return
    named = [days for days in all_days if not days.others]
    are_weekdays = all(days.picks and not days.period for days in named)
    are_weekdays = are_weekdays and not any(pick.nth for days in named for pick in days.picks)
    left = set(range(DAY)) - {pick.what for days in named for pick in days.picks}
    if len(others) > 1 or not named or not are_weekdays or not left:
        raise Refused("inexpressible", others[0].span, "name the days, for example: every Monday and Tuesday")
    filled = replace(others[0], picks=tuple(Pick(0, day) for day in sorted(left)), others=False)
    for group in plan.groups:
        group.days = [filled if days.others else days for days in group.days]


def _replace_special_days(plan: Plan, context: Context) -> None:
    """Take days with a time of their own out of a rule for more days: "every day at 9, on Sundays at 10".

    After "and", both times may be meant.
    """
    for general, special in permutations(plan.groups, 2):
        usual, named = _find_weekdays(general), _find_weekdays(special)
        if not named or not named < usual or not (general.has_times and special.has_times) or special.joined == "also":
            continue
        left = tuple(Pick(0, day) for day in sorted(usual - named))
        instead = Option("those days only at their own time", left)
        if special.joined == "and" or general.joined == "and":
            both = Option[tuple[Pick, ...]]("both times on those days", ())
            left = context.choices.pick("special-days", special.days[0].span, (instead, both))
        else:
            context.choices.assume("Days with a time of their own run only at that time.")
        if left:
            span = special.days[0].span
            general.days, general.repeat = [Days(left, marked=True, plural=True, span=span)], None


def _find_weekdays(group: Group) -> frozenset[int]:
    """Return the weekdays on which a group repeats by the day or the week, none if anything else limits it."""
    repeat = group.repeat
    is_daily = repeat is not None and repeat.unit == Unit.DAY and repeat.interval == 1
    is_weekly = repeat is None or (repeat.unit == Unit.WEEK and repeat.interval == 1)
    if group.months or group.only_if or group.relatives or (group.days and not is_weekly):
        return frozenset()
    if not group.days:
        return frozenset(range(DAY)) if is_daily else frozenset()
    are_plain = all(
        (days.marked or days.plural) and not (days.dates or days.period or days.weeks or days.others or days.positions)
        for days in group.days
    )
    picks = [pick for days in group.days for pick in days.picks]
    if not are_plain or any(pick.nth or pick.what > WEEKENDDAY for pick in picks):
        return frozenset()
    return frozenset(day for pick in picks for day in DAYS.get(pick.what, (pick.what,)))


def _drop_count_of_a_day(plan: Plan) -> None:
    """Drop the number of times in "every day 2 times at 8 and 20": it is that of each day, and no end."""
    only, *others = plan.groups
    counted = [end for end in plan.ends if end.count is not None and end.count == len(only.clocks) > 1]
    if others or only.repeat is None or only.repeat.unit != Unit.DAY or not counted:
        return
    plan.ends = [end for end in plan.ends if end not in counted or end.span > only.clocks[0].span]


def _repeat_dates(plan: Plan) -> None:
    """Turn the start and the end of "every year from July 1 to July 5" into days of each year."""
    repeat = plan.groups[0].repeat
    if len(plan.groups) > 1 or plan.groups[0].days or repeat is None:
        return
    first = plan.start.point if plan.start is not None else None
    last = plan.ends[0].point if len(plan.ends) == 1 else None
    if repeat.unit == Unit.MONTH and isinstance(first, Days) and isinstance(last, Days):
        plan.groups[0].days = [_list_days_of_month(first, last)]
        plan.start, plan.ends = None, []
    if repeat.unit != Unit.YEAR:
        return
    if not (isinstance(first, Date) and isinstance(last, Date)) or first.year or last.year:
        return
    if first.month != last.month or not first.month or not first.day or not last.day or first.day > last.day:
        raise Refused("inexpressible", last.span, "make two schedules, each with days of one month")
    picks = tuple(Pick(day, DAY) for day in range(first.day, last.day + 1))
    period = Period(Unit.YEAR, months=(first.month,))
    plan.groups[0].days = [Days(picks, period, marked=True, on=True, plural=True, span=last.span)]
    plan.start, plan.ends = None, []


def _build_dates(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of several single dates. If the first one is over, it is left out."""
    dates = list_added(plan.added, context)
    try:
        once = build_once(plan, context)
    except Refused as refused:
        if refused.code != "past":
            raise
    else:
        local = (once.at or context.now).astimezone(load_tzinfo(once.timezone)).replace(tzinfo=None)
        dates = [local.isoformat(), *dates]
    return Schedule(dtstart=dates[0], rdates=dates[1:], timezone=context.timezone)


def resolve_zone(plan: Plan, context: Context) -> None:
    """Set the context to the time zone that the phrase names, if any, and to whether it follows its owner."""
    context.follows = FOLLOWING in plan.marks
    if plan.place is not None:
        context.is_placed = True
        names = plan.place.names
        is_doubtful = plan.place.is_loose and context.is_titled
        if is_doubtful:  # "meet Bob in London" may be where, and no zone
            names = tuple(dict.fromkeys((context.timezone, *names)))
        options = tuple(Option(name, name) for name in names)
        code = "place" if is_doubtful else "zone"
        chosen = context.choices.pick(code, plan.place.span, options) if len(options) > 1 else names[0]
        context.timezone = str(chosen)


def list_clocks(plan: Plan) -> list[Clock]:
    """Return all times of day in a phrase."""
    result = [clock for group in plan.groups for clock in group.clocks]
    for group in plan.groups:
        if group.window is not None:
            result += [clock for clock in (group.window.first, group.window.last) if clock is not None]
    if plan.start is not None and plan.start.clock is not None:
        result.append(plan.start.clock)
    return result + [end.clock for end in plan.ends if end.clock is not None]


def is_24_hour(clock: Clock) -> bool:
    """Return whether a time is clearly written on the 24-hour clock."""
    return clock.exact and clock.half is None and not clock.named


def _is_recurring(plan: Plan, context: Context) -> bool:
    if plan.recurs:
        return True
    all_days = [days for group in plan.groups for days in group.days]
    if not all_days:
        return False
    bounded = bool(plan.ends or plan.exceptions or plan.calendars or plan.start)
    decided = [
        _is_repeated(days, context, bounded=bounded, is_range=group.only_if is not None)
        for group in plan.groups
        for days in group.days
    ]
    if all(decided) and not any(group.relatives for group in plan.groups):
        return True
    if not any(decided):
        return False
    undecided = [days for days, is_decided in zip(all_days, decided, strict=True) if not is_decided]
    are_weekdays = all(days.picks and not (days.dates or days.period) for days in all_days)
    if (
        any(group.relatives for group in plan.groups)
        or not are_weekdays
        or any(pick.nth for days in undecided for pick in days.picks)
    ):
        raise Refused("contradiction", all_days[0].span)
    context.choices.assume("It is in every week.")
    return True


def _is_repeated(days: Days, context: Context, *, bounded: bool, is_range: bool) -> bool:
    """Return whether days without "every" or a plural still mean a repetition. Ask if it is unclear."""
    period = days.period
    is_open = bool(days.dates) and all(date.year is None and date.month for date in days.dates)
    if is_open and (context.is_yearly or len(days.dates) >= _MANY_DATES):
        return _ask_repeat(days, context)
    if days.dates or (period is not None and (period.year is not None or period.ahead is not None)):
        return False
    if days.business and context.calendar is not None and any(pick.nth for pick in days.picks):
        context.choices.assume(f"It is in every {(period or Period()).unit.name.lower()}.")
        return True
    several = len(days.picks) > 1 and not is_range
    if period is not None and period.months:
        return several or len(period.months) > 1 or days.plural
    if period is not None and (not period.definite or several):
        context.choices.assume(f"It is in every {period.unit.name.lower()}.")
        return True
    if all(not pick.nth for pick in days.picks):
        if several:
            context.choices.assume("It is in every week.")
        return several
    if period is None and not several and all(pick.what == DAY for pick in days.picks):
        return False
    if several:
        context.choices.assume("It is in every month.")
        return True
    return True if bounded else _ask_repeat(days, context)


_MANY_DATES = 3
"""The number of dates without a year from which on they may well be meant for every year."""


def _ask_repeat(days: Days, context: Context) -> bool:
    options = (Option("every time", True), Option("only the next time", False))
    return bool(context.choices.pick("once-or-repeat", days.span, options))


def build_once(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of a phrase that names one or more single instants."""
    if _is_now(plan):
        return Schedule.after(timedelta(0), timezone=context.timezone)
    if plan.ends or plan.exceptions:
        raise Refused("no-recurrence", (plan.ends or plan.exceptions)[0].span)
    if plan.start is not None:
        raise Refused("no-recurrence", plan.start.span)
    result: list[datetime] = []
    if plan.within is not None:
        plan.groups = [_place_within(group, plan.within, context) for group in plan.groups]
    for said in plan.groups:
        group = said if said.window is None else _ask_start_of_window(said, said.window, context)
        if group.grid is not None or group.months is not None or plan.year is not None:
            raise Refused("too-vague")
        result += _find_instants(group, context)
    result = sorted(set(result))
    if not result:
        raise Refused("no-time")
    if result[0] <= context.now:
        raise Refused("past")
    if len(result) == 1:
        return build_at(result[0], context, is_local=all(_names_local_time(group) for group in plan.groups))
    local = [at.astimezone(load_tzinfo(context.timezone)).replace(tzinfo=None).isoformat() for at in result]
    return Schedule(dtstart=local[0], rdates=local[1:], timezone=context.timezone)


def _ask_start_of_window(group: Group, window: Window, context: Context) -> Group:
    """Ask whether "tomorrow from 3pm to 4pm" runs at the start of that time."""
    first, _ = context.resolve_window(window)
    options = [Option(say("once, at {first}", first=first), Clock(*first, exact=True))]
    if window.spoken is not None:
        options.append(Option("minutes before the hour", window.spoken))
    return replace(group, window=None, clocks=[context.choices.pick("window", window.span, tuple(options))])


def _place_within(group: Group, within: Within, context: Context) -> Group:
    """Return a group whose day is in a period: "next month on the 3rd", "Friday at 9 next week"."""
    if group.relatives or len(group.days) > 1 or (group.days and (group.days[0].dates or group.days[0].period)):
        raise Refused("contradiction", within.span)
    if not group.days:
        return replace(group, relatives=[_ask_day_within(within, context)])
    days = group.days[0]
    if len(days.picks) == 1 and not days.picks[0].nth and within.unit == Unit.WEEK:
        relative = Relative("week", weekday=days.picks[0].what, ahead=within.ahead, span=days.span)
        return replace(group, days=[], relatives=[relative])
    if within.unit == Unit.WEEK or not all(pick.nth for pick in days.picks):
        raise Refused("too-vague", within.span)
    return replace(group, days=[replace(days, period=Period(within.unit, ahead=within.ahead))])


def _ask_day_within(within: Within, context: Context) -> Relative:
    """Ask for the day of "next week": its first, or the one after as many weeks."""
    first, last = find_within(within, context)
    length = Length(((within.unit, within.ahead),), within.span) if within.unit != Unit.QUARTER else None
    options = [Option(say_day(first), first)] if within.ahead else []
    if length is not None and within.ahead:
        then = add_length(context.today, length)
        options.append(Option(say_day(then), then))
    else:
        options.append(Option(say_day(last), last))
    chosen = context.choices.pick("which-of-month", within.span, tuple(options))
    return Relative("day", (chosen - context.today).days, span=within.span)


def _is_now(plan: Plan) -> bool:
    """Return whether a phrase says "now" or "in 0 minutes", and names no other time."""
    only = plan.groups[0]
    if len(plan.groups) > 1 or len(only.relatives) != 1 or only.days or only.has_times:
        return False
    if plan.ends or plan.exceptions or plan.start is not None:
        return False
    node = only.relatives[0]
    is_zero = node.length is not None and not any(count for _, count in node.length.amounts)
    return node.kind == "now" or (is_zero and node.base is None)


def build_at(at: datetime, context: Context, *, is_local: bool = True) -> Schedule:
    """Return the schedule of an instant. If it was named by the clock, it is stored as a local time."""
    shown = at.astimezone(load_tzinfo(context.timezone)).replace(tzinfo=None)
    by_clock = Schedule.once_at(shown, context.timezone) if is_local and not shown.microsecond else None
    return by_clock if by_clock is not None and by_clock.at == at else Schedule.once(at, timezone=context.timezone)


def _names_local_time(group: Group) -> bool:
    """Return whether a group names a day or a time, rather than a delay such as "in 20 minutes"."""
    return not any(
        node.kind == "now" or (node.length is not None and (node.from_moment or node.length.finest < Unit.DAY))
        for node in group.relatives
    )


def _find_instants(group: Group, context: Context) -> list[datetime]:
    if len(group.relatives) == 1 and not group.days and not group.has_times:
        moment = _find_moment(group.relatives[0], context)
        if moment is not None:
            return [moment]
    for node in group.relatives:
        if node.length is not None and node.length.finest < Unit.DAY:
            raise Refused("contradiction", node.span)
        if node.kind == "now":
            raise Refused("too-vague", node.span)
    shift = find_shift(group, context)
    if shift and group.days and not any(days.dates for days in group.days):
        group = move_weekdays(group, shift, context)
        shift = 0
    days = _find_days(group, context)
    if days is None:
        return _find_next_times(group, context)
    if group.part is not None and group.part.today and days != [context.today]:
        raise Refused("contradiction", group.part.span)
    part = group.part
    is_adverb = part is not None and part.is_adverb and days[0] > context.today
    if shift and part is not None and is_adverb and part.span > group.clocks[-1].span:
        # "morgen um 3 Uhr nachts" may be early tomorrow, or late in tomorrow's night
        options = tuple(Option(f"{day:%A, %Y-%m-%d}", more) for more in (0, shift) for day in _shift(days[:1], more))
        shift = context.choices.pick("this-or-next", part.span, options)
    if shift:
        days = _shift(days, shift)
        context.choices.assume(say("That is on {days}, in the night.", days=say_all([say_day(day) for day in days])))
    return [context.to_instant(local) for day in days for local in _build_times(day, group, context)]


def _shift(days: Sequence[date], more: int) -> list[date]:
    return [day + timedelta(days=more) for day in days]


def _find_moment(node: Relative, context: Context) -> datetime | None:
    """Return the instant of "in 20 minutes". None if the length is counted in whole days."""
    if node.length is None or (node.length.finest >= Unit.DAY and not node.from_moment):
        return None
    if node.base is not None:
        raise Refused("not-understood", node.span)
    if context.follows:
        raise Refused("contradiction", node.span, "a delay is the same everywhere; give a time of day, or leave it out")
    coarse = tuple((unit, count) for unit, count in node.length.amounts if unit >= Unit.DAY)
    fine = Length(tuple((unit, count) for unit, count in node.length.amounts if unit < Unit.DAY))
    local = context.local
    now = context.now.replace(microsecond=0)
    if coarse:
        day = add_length(local.date(), Length(coarse, node.span))
        now = context.to_instant(datetime.combine(day, local.time()))
    try:
        return now + timedelta(seconds=fine.seconds)
    except OverflowError:
        raise Refused("never", node.span) from None


def _find_days(group: Group, context: Context) -> list[date] | None:
    """Return the days that a group names. None if it names only a time."""
    today = context.today
    result = [resolve_relative_day(node, context, today) for node in group.relatives]
    for days in group.days:
        if result and not days.on and len(group.days) == 1 and group.relatives:
            raise Refused("contradiction", days.span)
        result += _resolve_days(days, group, context)
    if len({bool(days.dates) for days in group.days}) > 1:
        raise Refused("contradiction", group.days[-1].span)
    if group.relatives and group.days:
        raise Refused("contradiction", group.days[0].span)
    if result:
        return sorted(set(result))
    if group.part is not None and (group.part.today or not group.clocks):
        return [today] if group.part.today else [today + (ONE_DAY if _has_part_passed(group, context) else timedelta())]
    return None


def _has_part_passed(group: Group, context: Context) -> bool:
    part = group.part
    return part is not None and context.local >= make_local_time(context.today, *context.assume_part_of_day(part.part))


def _resolve_days(days: Days, group: Group, context: Context) -> list[date]:
    today = context.today
    if days.dates:
        return [_skip_past_date(resolve_date(node, context, today), group, context, days) for node in days.dates]
    if len(days.picks) > 1:
        raise Refused("no-recurrence", days.span, "add 'every' if it repeats, or list the dates")
    pick = days.picks[0]
    if not pick.nth and days.period is None:
        return [_resolve_weekday(pick.what, days, group, context)]
    if days.weeks:
        raise Refused("too-vague", days.span)
    result = find_nth_day(days, context, today)
    if result == today and _has_day_passed(today, group, context) and (days.period is None or not days.period.year):
        result = find_nth_day(days, context, today + ONE_DAY)
    return [result]


def _skip_past_date(result: date, group: Group, context: Context, days: Days) -> date:
    if result == context.today and _has_day_passed(result, group, context):
        return find_first_day(days.dates[0], context, result + ONE_DAY) if days.dates[0].year is None else result
    return result


def _has_day_passed(day: date, group: Group, context: Context) -> bool:
    return all(context.to_instant(local) <= context.now for local in _build_times(day, group, context))


def _resolve_weekday(weekday: int, days: Days, group: Group, context: Context) -> date:
    today = context.today
    coming = find_next_weekday(weekday, today)
    if today.weekday() == weekday and not _has_day_passed(today, group, context) and group.has_times:
        options = (Option(say("today, {day:%Y-%m-%d}", day=today), today), Option(say_day(coming), coming))
        return context.choices.pick("this-or-next", days.span, options)
    return coming


def _build_times(day: date, group: Group, context: Context) -> list[datetime]:
    part = group.part.part if group.part is not None else None
    if group.clocks:
        midnight = next((clock for clock in group.clocks if clock.named and clock.hour == 0), None)
        if midnight is not None:
            return _resolve_midnight(day, midnight, group, context)
        return [make_local_time(day, *time) for time in context.resolve_times(group.clocks, part)]
    if part is not None:
        return [make_local_time(day, *context.assume_part_of_day(part))]
    if day == context.today and make_local_time(day, *context.default) <= context.local:
        span = group.relatives[0].span if group.relatives else (0, 0)
        raise Refused("too-vague", span, "the default time has passed today; give a time")
    return [make_local_time(day, *context.assume_default_time())]


def _resolve_midnight(day: date, clock: Clock, group: Group, context: Context) -> list[datetime]:
    begins, ends = make_local_time(day, 0, 0), make_local_time(day, 0, 0) + ONE_DAY
    if len(group.clocks) > 1:
        raise Refused("too-vague", clock.span, "write 00:00 and say on which day")
    if day == context.today:
        return [ends]
    is_eve = any((date.month, date.day) == (12, 31) for days in group.days for date in days.dates)
    if not is_eve and any(days.dates or any(pick.what == DAY for pick in days.picks) for days in group.days):
        context.choices.assume("Midnight is the start of the day.")
        return [begins]
    options = tuple(Option(say("{day} at 00:00", day=say_day(each)), each) for each in (begins, ends))
    chosen = context.choices.pick("midnight", clock.span, options)
    return [chosen]


def _find_next_times(group: Group, context: Context) -> list[datetime]:
    """Return the next instant for each time of day that has no day."""
    if not group.clocks:
        raise Refused("no-time")
    part = group.part.part if group.part is not None else None
    only = group.clocks[0]
    is_open = len(group.clocks) == 1 and part is None and is_bare(only) and not context.clock24 and 0 < only.hour < NOON
    if is_open and TimeOfDay(only.hour, only.minute) <= TimeOfDay(context.local.hour, context.local.minute):
        times = [context.ask_half(only)]  # "call Tom at 9", said after 9: this evening, or tomorrow
    else:
        times = context.resolve_times(group.clocks, part)

    result = []
    for time in times:
        local = make_local_time(context.today, *TimeOfDay(*time))
        if context.to_instant(local) <= context.now:
            local += ONE_DAY
        result.append(context.to_instant(local))
    return result
