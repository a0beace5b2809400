"""Build the schedule of a phrase that repeats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Final

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.language.dates import ONE_DAY, add_length, find_first_day, find_period, find_range, make_local_time
from cloudsched.language.exceptions import add_calendars, apply_exceptions, list_added
from cloudsched.language.groups import Group, Plan
from cloudsched.language.left_out import move_exdates
from cloudsched.language.messages import say
from cloudsched.language.nights import find_shift, move_weekdays
from cloudsched.language.nodes import (
    DAY,
    NOWHERE,
    Clock,
    Date,
    Days,
    Grid,
    Length,
    Months,
    Pick,
    Relative,
    Repeat,
    Start,
    Unit,
    Window,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.result import Option, Refused
from cloudsched.language.rules import (
    MONTH_ENDS,
    SKIPS,
    Draft,
    build_day_rules,
    fill_days,
    lacks_days,
)


def resolve_rate(group: Group, repeat: Repeat, context: Context) -> Group:
    """Resolve "twice a week" by the days or times that the phrase names, or ask. "Biweekly" may be every two weeks."""
    often = replace(group, repeat=replace(repeat, rate=1))
    if repeat.loose:
        unit = repeat.unit.name.lower()
        interval, rate = ("two", "twice") if repeat.rate == 2 else ("three", "three times")
        rarely = replace(group, repeat=replace(repeat, interval=repeat.rate, rate=1))
        options = [Option(f"every {interval} {unit}s", rarely)]
        if repeat.unit != Unit.HOUR and not group.days:
            options.append(Option(f"{rate} a {unit}", _spread_evenly(often, repeat)))
        return context.pick("bi", repeat.span, options)
    named = len(group.clocks) if repeat.unit == Unit.DAY else sum(len(d.picks) + len(d.dates) for d in group.days)
    if repeat.unit >= Unit.DAY and named:
        if named != repeat.rate or repeat.interval > 1:
            template = "it says {rate} times but names {named}; make them agree"
            raise Refused("contradiction", repeat.span, say(template, rate=repeat.rate, named=named))
        return often
    if repeat.unit < Unit.DAY or repeat.rate > 12 or group.window:
        raise Refused("too-vague", repeat.span)
    return context.pick("rate", repeat.span, (Option("spread evenly", _spread_evenly(often, repeat)),))


def _spread_evenly(group: Group, repeat: Repeat) -> Group:
    """Return the group with its days or times spread evenly, to offer as a suggestion."""
    count, steps = repeat.rate, range(repeat.rate)
    if repeat.unit == Unit.DAY:
        return replace(group, clocks=[Clock(9 + round(step * 9 / (count - 1)), exact=True) for step in steps])
    if repeat.unit == Unit.MONTH:
        days = Days(tuple(Pick(1 + step * 28 // count, DAY) for step in steps), plural=True)
    elif repeat.unit > Unit.MONTH:
        days = Days(dates=tuple(Date(1 + step * 12 // count, 1) for step in steps), plural=True)
    else:
        days = Days(tuple(Pick(0, step * 7 // count) for step in steps), plural=True)
    return replace(group, days=[days])


_MOST_TIMES = 1441


def build_recurring(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of a phrase that repeats."""
    _check_times(plan)
    drafts = []
    for group in plan.groups:
        own = build_rules(group, plan, context)
        apply_exceptions(own, group.exceptions, context, context.today)
        drafts += own
    return Builder(context, drafts, context.today).build(plan)


def _check_times(plan: Plan) -> None:
    """Refuse a plan in which a time of day is missing or would have to be dropped."""
    is_fine = any(group.is_fine for group in plan.groups)
    timed = any(group.has_times for group in plan.groups)
    if len(plan.groups) > 1 and not all(group.has_times or group.is_fine for group in plan.groups):
        raise Refused("incomplete")
    start = plan.start or Start(None)
    is_exact = isinstance(start.point, Date) and start.point.year is not None
    if start.clock is not None and timed and not is_exact:
        raise Refused("contradiction", start.span)
    for end in plan.ends:
        if end.clock is not None and not (timed or is_fine or start.clock):
            raise Refused(
                "contradiction",
                end.span,
                "give the time of day before the end, for example: every day at 9:00 until Friday at 17:00",
            )


def build_rules(group: Group, plan: Plan, context: Context) -> list[Draft]:
    """Return the rules of one group, including their times of day."""
    if not group.repeat and not group.days:
        if not group.part or not group.part.each:
            raise Refused("no-recurrence")
        group.repeat = Repeat(1, Unit.DAY)
    move_weekdays(group, find_shift(group, context), context)
    repeat = group.repeat
    if group.months and group.months.doubtful:
        context.assume("It applies to these months every year.")
        if not repeat or not group.days:
            context.pick("months-or-span", group.months.span, (Option("in these months of every year", None),))
    if repeat and repeat.rate > 1:
        group = resolve_rate(group, repeat, context)
    repeat, step = group.repeat, 0
    if repeat and repeat.unit <= Unit.HOUR:
        if group.part or group.clocks:
            hint = "give a window (from 9:00 to 17:00) or a start (starting at 9:00)"
            raise Refused("contradiction", repeat.span, hint)
        if not group.window:
            return _build_interval(group, repeat, context, is_on_the_clock="synchronised" in plan.marks)
        step = Length(((repeat.unit, repeat.interval),)).seconds
        group = replace(group, repeat=None if group.days else Repeat(1, Unit.DAY))
    elif group.months and repeat and repeat.unit == Unit.YEAR and not group.days:
        on_first = replace(group, days=[Days((Pick(1, DAY),))])
        daily = replace(group, repeat=Repeat(1, Unit.DAY))
        choices = (Option("on the first day of the month", on_first), Option("on every day of the month", daily))
        group = context.pick("which-of-month", group.months.span, choices)
    settled = bool(plan.marks & SKIPS.keys())
    drafts = build_day_rules(group, context, settled=settled)
    times = find_times(group, context, plan.start, step)
    for draft in drafts:
        draft.times = times
        draft.week_start = group.week_start.weekday if group.week_start else 0
    return drafts


def ask_window(window: Window, context: Context, repeatedly: str = "") -> list[Clock]:
    """Ask what "from 3pm to 4pm" means: the start of that time, or times during it, which are none here."""
    first, _ = context.resolve_window(window)
    options = [Option(say("once, at {first}", first=first), [Clock(*first, exact=True)])]
    if repeatedly:
        options.append(Option(repeatedly, []))
    if window.spoken is not None:
        options.append(Option("minutes before the hour", [window.spoken]))
    return context.pick("window", window.span, options)


def find_times(group: Group, context: Context, start: Start | None = None, step: int = 0) -> list[TimeOfDay]:
    """Return the times of day of a group, or of the start.

    Those in a window are so many seconds apart, unless the phrase names them.
    """
    part = group.part.part if group.part else None
    if group.window:
        window = context.resolve_window(group.window)
        if group.grid:
            raise Refused("contradiction", group.grid.span)
        if not step:
            repeatedly = say("every hour from {first} to {last}", first=window[0], last=window[1])
            chosen = ask_window(group.window, context, repeatedly)
            if chosen:
                return context.resolve_times(chosen, None)
        is_daily = group.repeat is not None and group.repeat.unit == Unit.DAY and not group.days
        return _list_steps(window, step or 3600, group.window, is_daily=is_daily)
    if group.grid:
        grid = group.grid
        return [
            TimeOfDay(*each) for each in product(grid.hours or range(24), grid.minutes or (0,), grid.seconds or (0,))
        ]
    if group.clocks:
        if group.midnight and not (group.relatives or group.part):
            context.assume("Midnight is the start of the day.")
        return context.resolve_times(group.clocks, part)
    if start is not None and start.clock is not None:
        return [context.resolve_time(start.clock)]
    if part is not None:
        return [context.assume_part_of_day(part)]
    return [context.assume_default_time()]


def _build_interval(group: Group, repeat: Repeat, context: Context, *, is_on_the_clock: bool) -> list[Draft]:
    """Return the rule of an interval shorter than a day, around the clock.

    On the clock, it counts from the full hour or from midnight, of which it has to be a part.
    """
    grid = group.grid or Grid((), ())
    if is_on_the_clock:
        is_hourly = repeat.unit == Unit.HOUR
        whole = 24 if is_hourly else 60
        if grid.minutes or grid.seconds or repeat.unit == Unit.SECOND or whole % repeat.interval:
            raise Refused("inexpressible", repeat.span)
        steps = tuple(range(0, whole, repeat.interval))
        if is_hourly:
            grid = Grid((0,), steps if repeat.interval > 1 else grid.hours)
        else:
            grid = Grid(steps, grid.hours)
        repeat = Repeat(1, Unit.HOUR)
    [draft] = build_day_rules(replace(group, repeat=repeat), context)
    draft.hours, draft.minutes, draft.seconds = grid.hours, grid.minutes, grid.seconds
    if repeat.unit == Unit.HOUR and grid.minutes:
        draft.seconds = grid.seconds or (0,)
    elif repeat.unit == Unit.HOUR and grid.seconds:
        raise Refused("inexpressible", grid.span)
    return [draft]


def _list_steps(within: tuple[TimeOfDay, TimeOfDay], step: int, window: Window, *, is_daily: bool) -> list[TimeOfDay]:
    begin, end = (time.hour * 3600 + time.minute * 60 + time.second for time in within)
    if end < begin:
        if not is_daily:
            raise Refused("inexpressible", window.span)
        end += 86_400
    times = range(begin + step * window.open_first, end + 1 - window.open_last, step)
    if end == begin or not times:
        raise Refused("never", window.span)
    if len(times) > _MOST_TIMES:
        raise Refused("too-many", window.span)
    return [TimeOfDay(second // 3600 % 24, second // 60 % 60, second % 60) for second in times]


BEGINNING = datetime(1970, 1, 1)  # noqa: DTZ001 -- on the zone's clock
"""DTSTART of a schedule whose meaning does not depend on its start, like a cron expression."""
END_OF_DAY = TimeOfDay(23, 59, 59)
_NOTHING: Final = Plan()
_STEPS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}


def keep_policies(built: Schedule, current: Schedule, plan: Plan, context: Context, **more: object) -> Schedule:
    """Return a schedule with what words seldom name, so that new words keep it."""
    kept = {name: getattr(current, name) for name in ("gap", "fold", "sub_daily", "calendars")}
    return add_calendars(built.model_copy(update={**kept, **more}), plan, context)


@dataclass
class Builder:
    """Makes a schedule of rules, with their start and their end: a new one, or one that words change.

    Attributes:
        start: The first day.
        has_start: Somebody has chosen it. Otherwise the rules begin now.
        until: The last moment, in local time.
        count: The number of times after which the rules end.
        dtstart: The local time that the rules keep counting from.
        current: The schedule before the change, anchored.
        exdates: The days and times that the change leaves out. Those that were left out before move along.
        shift: The time by which all its times of day move.
        is_floating: The rules take their days from their start.
    """

    context: Context
    drafts: list[Draft]
    start: date
    has_start: bool = False
    until: datetime | None = None
    count: int | None = None
    dtstart: datetime | None = None
    current: Schedule | None = None
    exdates: list[str] = field(default_factory=list)
    shift: timedelta = timedelta(0)
    is_floating: bool = False

    def build(self, plan: Plan = _NOTHING) -> Schedule:
        """Return the schedule of the rules with the start, the end and the exceptions of a plan."""
        context = self.context
        self._apply_start(plan)
        base = context.today if self.current else self.start
        self.exdates += apply_exceptions(self.drafts, plan.exceptions, context, base)
        for draft in self.drafts:
            self._fill_days(draft)
            for mark in plan.marks & SKIPS.keys():
                draft.skip = SKIPS[mark]
        if plan.ends:
            self._apply_end(plan)
        says_zero = any(time.second for draft in self.drafts for time in draft.times)
        rules = [text for draft in self.drafts for text in draft.to_rrules(says_zero=says_zero)]
        dtstart = self.dtstart or self._find_start(plan)
        if self.count is not None:
            if len(rules) > 1:
                span = plan.ends[-1].span if plan.ends else None
                raise Refused("inexpressible", span, "give an end date instead of a number of times")
            rules = [f"{rules[0]};COUNT={self.count}"]
        elif self.until is not None:
            rules = [f"{text};UNTIL={self.until:%Y%m%dT%H%M%S}" for text in rules]
        full = Schedule(rrule=rules, dtstart=dtstart.isoformat(), timezone=context.timezone)
        moved = move_exdates(self.current, self.shift, full) if self.current else []
        kept = [each for each in dict.fromkeys([*moved, *self.exdates]) if self._is_needed(each, full)]
        schedule = full.model_copy(update={"exdates": kept}) if kept else full
        following = schedule.next_after(context.now)
        if following is None and not plan.added:
            raise Refused("past" if plan.ends else "never")
        if following and not self.has_start and not self.dtstart and (schedule.first() or following) < context.now:
            schedule = schedule.continue_from(following)
        rdates = [*(self.current.rdates if self.current else ()), *list_added(plan.added, context)]
        if rdates:
            schedule = schedule.model_copy(update={"rdates": rdates})
        if self.current is None:
            return add_calendars(schedule, plan, context)
        number = None if any(group.days for group in plan.groups) else self.current.business_day
        return keep_policies(schedule, self.current, plan, context, business_day=number)

    def _apply_start(self, plan: Plan) -> None:
        context, today = self.context, self.context.today
        if plan.start:
            self.start, self.has_start, self.dtstart = today, True, None
            if plan.start.point is not None:
                self.start = find_first_day(plan.start.point, context, today)
        elif self.dtstart and self.current:
            times = [time for draft in self.drafts for time in draft.times]
            if plan.ends and plan.ends[0].point is None and (following := self.current.next_after(context.now)):
                self.dtstart = context.to_local(following)  # "10 times" counts from now
                times = [] if self.dtstart.timetuple()[3:6] in times else times
            if times:
                self.dtstart = make_local_time(self.dtstart.date(), *min(times))
        if plan.within:
            first, until = find_range(plan.within, context, today)
            if until < today:
                raise Refused("past", plan.within.span)
            self.start, self.until = max(self.start, first), make_local_time(until, *END_OF_DAY)
            is_year = plan.within.unit == Unit.YEAR
            if not is_year:
                said = say("It is from {start:%Y-%m-%d} to {until:%Y-%m-%d}.", start=self.start, until=until)
                context.assume(said)
            self.has_start = self.has_start or self.start > today or is_year

    def _is_needed(self, text: str, full: Schedule) -> bool:
        """Return whether an exception leaves something out: on the days of a stretch, nothing may run."""
        if text not in self.context.stretched:
            return True
        day = datetime.fromisoformat(text)
        following = full.next_after(self.context.to_instant(day) - timedelta(seconds=1))
        return following is not None and following < self.context.to_instant(day + ONE_DAY)

    def _fill_days(self, draft: Draft) -> None:
        """Fill in the days that a rule takes from its start: "every month" uses the day of the month of the start."""
        said = fill_days(draft, self.start)
        if not said:
            return
        self.context.assume(said)
        if lacks_days(draft):
            draft.skip = self.context.pick("month-end", NOWHERE, MONTH_ENDS)
        self.is_floating = True

    def _apply_end(self, plan: Plan) -> None:
        context, end = self.context, plan.ends[-1]
        if len(plan.ends) > 1:
            raise Refused("contradiction", end.span)
        if plan.within:
            raise Refused("contradiction", end.span)
        self.until = None
        if end.count is not None and end.before and self.drafts[0].freq not in _STEPS:
            options = (Option(say("{count} times in total", count=end.count), end.count),)
            context.pick("count-or-rate", end.span, options)
        self.count = self._count_times(plan, end.length) if end.length else end.count
        if self.count is not None:
            return
        base = max(self.start, context.today)
        if end.before and any(days.is_counted for days in plan.days):
            raise Refused("inexpressible", end.span)  # "the last Thursday before Christmas"
        if end.point:
            if isinstance(end.point, Months) and not end.through:
                _, base = find_period(Unit.MONTH, base)  # said in June, "until June" is not over
            first, last = find_range(end.point, context, base)
            is_excluded = end.before or (first < last and not end.through)
            until = first - ONE_DAY if is_excluded else last
        elif end.length:
            until = add_length(self.start, end.length) - ONE_DAY
        else:
            raise Refused("contradiction", end.span)
        if until < self.start:
            raise Refused("never" if self.has_start else "past", end.span)
        self.until = make_local_time(until, *(context.resolve_time(end.clock) if end.clock else END_OF_DAY))
        context.assume(say("The last day is {until:%Y-%m-%d}.", until=until))

    def _count_times(self, plan: Plan, length: Length) -> int | None:
        """Return the number of occurrences in a length of time. None if it is not exact, so that a date ends it."""
        draft, (unit, amount) = self.drafts[0], length.amounts[0]
        single = len(self.drafts) == 1 and len(length.amounts) == 1 and len(draft.to_rrules()) == 1
        counts = {
            ("DAILY", Unit.DAY): 1,
            ("DAILY", Unit.WEEK): 7,
            ("WEEKLY", Unit.WEEK): len(set(draft.weekdays)),
            ("MONTHLY", Unit.MONTH): len(draft.month_days) == 1,
        }
        count = counts.get((draft.freq, unit), 0)
        if count and single and draft.interval == 1 and not (draft.months or draft.positions or plan.exceptions):
            return amount * count * len(draft.times)
        if length.finest >= Unit.DAY:
            return None
        if not single or draft.freq not in _STEPS:
            raise Refused("inexpressible", length.span)
        return max(length.seconds // (_STEPS[draft.freq] * draft.interval), 1)

    def _find_start(self, plan: Plan) -> datetime:
        """Return the first local time of the rules: from the start if the phrase sets one, otherwise after now."""
        context = self.context
        start = plan.start or Start(None)
        is_open = self.count is None and not self.has_start
        if is_open and all(draft.is_fixed for draft in self.drafts):
            return BEGINNING
        begin = make_local_time(self.start, *(context.resolve_time(start.clock) if start.clock else TimeOfDay(0)))
        if any(draft.freq in _STEPS for draft in self.drafts):
            if isinstance(start.point, Relative) and start.point.kind == "now":
                return context.local
            if self.has_start:
                return begin
            context.assume("The interval counts from now.")
            step = max(draft.interval * _STEPS.get(draft.freq, 0) for draft in self.drafts)
            # With a number of times, the first one is one interval from now.
            return context.local if is_open else context.local + timedelta(seconds=step)
        phase = make_local_time(self.start, *min(time for draft in self.drafts for time in draft.times))
        has_passed = self.count is not None and phase <= context.local and not self.has_start
        if self.is_floating and not has_passed:
            return phase
        is_plain = all(draft.freq == "DAILY" and not (draft.weekdays or draft.months) for draft in self.drafts)
        if is_open and is_plain:
            return phase

        texts = [text for draft in self.drafts for text in replace(draft, interval=1).to_rrules()]
        if not self.has_start:
            begin = max(begin, context.local + timedelta(seconds=1))
        free = Schedule(rrule=texts, dtstart=f"{begin:%Y-%m-%d}T00:00:00", timezone="UTC")
        result = free.next_after(begin.replace(tzinfo=UTC) - timedelta(seconds=1))
        if result is None:
            raise Refused("never")
        return result.replace(tzinfo=None)
