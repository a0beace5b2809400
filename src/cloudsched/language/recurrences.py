"""Build the schedule of a phrase that repeats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.schedules.words import English
from cloudsched.language.dates import ONE_DAY, add_length, find_first_day, find_last_day, find_within, make_local_time
from cloudsched.language.exceptions import add_calendars, apply_exceptions, list_added
from cloudsched.language.messages import say
from cloudsched.language.nodes import (
    DAY,
    NOWHERE,
    Clock,
    Date,
    Days,
    End,
    Grid,
    Length,
    Pick,
    Relative,
    Repeat,
    Start,
    Unit,
    Window,
    Within,
    Year,
)
from cloudsched.language.phrase_context import Context, TimeOfDay
from cloudsched.language.result import Option, Refused
from cloudsched.language.rules import MONTH_ENDS, Draft, build_day_rules, build_interval_rule, lacks_days

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.language.groups import Group, Plan


def resolve_bi(group: Group, repeat: Repeat, context: Context) -> Group:
    """Resolve "biweekly" and "triweekly", which are ambiguous: every two weeks, or twice a week."""
    unit = repeat.unit.name.lower()
    interval, rate = ("two", "twice") if repeat.interval == 2 else ("three", "three times")
    options = [Option(f"every {interval} {unit}s", replace(group, repeat=replace(repeat, loose="")))]
    if repeat.unit != Unit.HOUR and not group.days:
        often = _spread_evenly(group, replace(repeat, interval=1, rate=repeat.interval, loose=""))
        options.append(Option(f"{rate} a {unit}", often))
    return context.choices.pick("bi", repeat.span, options)


def resolve_rate(group: Group, repeat: Repeat, context: Context) -> Group:
    """Resolve "twice a week": use the days or times that the phrase names, or ask for them."""
    named = len(group.clocks) if repeat.unit == Unit.DAY else sum(len(d.picks) + len(d.dates) for d in group.days)
    if repeat.unit >= Unit.DAY and named:
        if named != repeat.rate or repeat.interval > 1:
            template = "it says {rate} times but names {named}; make them agree"
            raise Refused("contradiction", repeat.span, say(template, rate=repeat.rate, named=named))
        return replace(group, repeat=replace(repeat, rate=1))
    if repeat.unit < Unit.DAY or repeat.rate > 12 or group.window:
        raise Refused("too-vague", repeat.span, "list the times")
    return context.choices.pick("rate", repeat.span, (Option("spread evenly", _spread_evenly(group, repeat)),))


def _spread_evenly(group: Group, repeat: Repeat) -> Group:
    """Return the group with its days or times spread evenly, to offer as a suggestion."""
    count, steps = repeat.rate, range(repeat.rate)
    spread = replace(group, repeat=replace(repeat, rate=1))
    if repeat.unit == Unit.DAY:
        spread.clocks = [Clock(9 + round(step * 9 / max(count - 1, 1)), exact=True) for step in steps]
        return spread
    picks: tuple[Pick, ...] = ()
    dates: tuple[Date, ...] = ()
    if repeat.unit in (Unit.WEEK, Unit.FORTNIGHT):
        picks = tuple(Pick(0, step * 7 // count) for step in steps)
    elif repeat.unit == Unit.MONTH:
        picks = tuple(Pick(1 + step * 28 // count, DAY) for step in steps)
    else:
        dates = tuple(Date(1 + step * 12 // count, 1) for step in steps)
    spread.days = [Days(picks, dates=dates, on=True, plural=True)]
    return spread


_MOST_TIMES = 1441
_SECONDS = {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600}


def build_recurring(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of a phrase that repeats."""
    _check_times(plan)
    drafts, today = [], context.today
    for group in plan.groups:
        own = build_rules(group, plan, context)
        apply_exceptions(own, group.exceptions, context, today)
        drafts += own
    start = today
    if plan.start and plan.start.point is not None:
        start = find_first_day(plan.start.point, context, today)
    until = None
    named: list[Within | Year | None] = [plan.year, plan.within]
    for period in named:
        if not period:
            continue
        first, until = find_within(period, context)
        if until < today:
            raise Refused("past", period.span)
        start = max(start, first)
    if plan.within:
        context.choices.assume(say("It is from {start:%Y-%m-%d} to {until:%Y-%m-%d}.", start=start, until=until))
    is_bound = bool(plan.start or plan.year or (plan.within and start > today))
    bounds = Bounds(start, has_start=is_bound, until=until)
    exdates = apply_exceptions(drafts, plan.exceptions, context, start)
    schedule = Builder(plan, context, drafts, bounds).build(exdates)
    if rdates := list_added(plan.added, context):
        schedule = schedule.model_copy(update={"rdates": rdates})
    return add_calendars(schedule, plan, context)


def _check_times(plan: Plan) -> None:
    """Refuse a plan in which a time of day is missing or would have to be dropped."""
    is_fine = any(group.is_fine for group in plan.groups)
    timed = any(group.has_times for group in plan.groups)
    if len(plan.groups) > 1 and not all(group.has_times or group.is_fine for group in plan.groups):
        raise Refused("incomplete", hint="give a time for each group of days")
    start = plan.start or Start(None)
    is_exact = isinstance(start.point, Date) and start.point.year is not None
    if start.clock is not None and timed and not is_exact:
        raise Refused("contradiction", start.span)
    for end in plan.ends:
        named = isinstance(end.point, Date | Relative) or (isinstance(end.point, Days) and end.point.dates)
        if end.clock is not None and not (named and (timed or is_fine or start.clock)):
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
    repeat = group.repeat
    if group.months and group.months.doubtful:
        context.choices.assume("It applies to these months every year.")
        if not repeat or not group.days:
            context.choices.pick("months-or-span", group.months.span, (Option("in these months of every year", None),))
    if repeat and repeat.unit == Unit.HOUR and group.clocks and not repeat.interval % 24:
        repeat = Repeat(repeat.interval // 24, Unit.DAY, span=repeat.span)
        group = replace(group, repeat=repeat)  # "every 24 hours at 9" is every day at 9
    if repeat and repeat.loose == "bi":
        group = resolve_bi(group, repeat, context)
    if group.repeat and group.repeat.rate > 1:
        group = resolve_rate(group, group.repeat, context)
    repeat, step = group.repeat, 0
    if repeat and repeat.unit <= Unit.HOUR:
        if group.part or group.clocks:
            hint = "give a window (from 9:00 to 17:00) or a start (starting at 9:00)"
            raise Refused("contradiction", repeat.span, hint)
        step = repeat.interval * _SECONDS[repeat.unit]
        if not group.window:
            return _build_interval(group, repeat, step, is_on_the_clock="synchronised" in plan.marks)
        group = replace(group, repeat=None if group.days else Repeat(1, Unit.DAY))
    elif group.months and repeat and repeat.unit == Unit.YEAR and not group.days:
        on_first = replace(group, days=[Days((Pick(1, DAY),), on=True)])
        daily = replace(group, repeat=Repeat(1, Unit.DAY))
        choices = (Option("on the first day of the month", on_first), Option("on every day of the month", daily))
        group = context.choices.pick("which-of-month", group.months.span, choices)
    settled = bool(plan.marks & {"skip-back", "skip-forward", "skip-omit"})
    drafts = build_day_rules(group, context, settled=settled)
    times = find_times(group, context, plan.start, drafts, step)
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
    return context.choices.pick("window", window.span, options)


def find_times(
    group: Group, context: Context, start: Start | None = None, drafts: Sequence[Draft] = (), step: int = 0
) -> list[TimeOfDay]:
    """Return the times of day of a group, or of the start. They may change the days of its rules.

    Those in a window are so many seconds apart, unless the phrase names them.
    """
    part = group.part.part if group.part else None
    if group.window:
        window, grid = context.resolve_window(group.window), group.grid
        if grid:  # some minutes of each hour
            times = [TimeOfDay(hour, minute) for hour in range(24) for minute in sorted(grid.minutes)]
            times = [time for time in times if window[0] <= time <= window[1]]
            if grid.hours or grid.seconds or not times or step not in {0, _SECONDS[Unit.HOUR]}:
                raise Refused("contradiction", grid.span, "list the times")
            return times
        if not step:
            repeatedly = say("every hour from {first} to {last}", first=window[0], last=window[1])
            chosen = ask_window(group.window, context, repeatedly)
            if chosen:
                return context.resolve_times(chosen, None)
        return _list_steps(window, step or 3600, group.window, drafts)
    if group.grid:
        grid = group.grid
        return [
            TimeOfDay(*each) for each in product(grid.hours or range(24), grid.minutes or (0,), grid.seconds or (0,))
        ]
    if group.clocks:
        midnight = group.midnight
        if midnight and any(0 < len(set(draft.weekdays)) < 7 and not draft.month_days for draft in drafts):
            _ask_midnight(midnight, context, drafts)
        elif midnight:
            context.choices.assume("Midnight is the start of the day.")
        return context.resolve_times(group.clocks, part)
    if start is not None and start.clock is not None:
        return [context.resolve_time(start.clock)]
    if part is not None:
        return [context.assume_part_of_day(part)]
    return [context.assume_default_time()]


def _ask_midnight(clock: Clock, context: Context, drafts: Sequence[Draft]) -> None:
    plain = all(nth == 0 for draft in drafts for nth, _ in draft.weekdays) and not any(d.positions for d in drafts)
    options = [Option("the midnight at the start of the day", False)]
    if plain:
        options.append(Option("the midnight at the end of the day", True))
    if context.choices.pick("midnight", clock.span, options):
        for draft in drafts:
            draft.weekdays = [(0, (day + 1) % 7) for _, day in draft.weekdays]


def _build_interval(group: Group, repeat: Repeat, step: int, *, is_on_the_clock: bool) -> list[Draft]:
    """Return the rule of an interval shorter than a day, around the clock.

    On the clock, it counts from the full hour or from midnight, of which it has to be a part.
    """
    grid = group.grid or Grid((), ())
    if is_on_the_clock:
        minutes, hours = step // 60, step // 3600
        if grid.minutes or grid.seconds or (hours > 1 and grid.hours):
            raise Refused("contradiction", grid.span)
        if step % 60 or (hours and step % 3600) or (24 % hours if hours else 60 % minutes):
            raise Refused("inexpressible", repeat.span)
        repeat = Repeat(1, Unit.HOUR if minutes > 1 else Unit.MINUTE)
        named = tuple(range(0, 24, hours)) if hours > 1 else grid.hours
        grid = Grid(tuple(range(0, 60, minutes)) if minutes > 1 else (), named, (0,))
    draft = build_interval_rule(group, repeat)
    draft.hours, draft.minutes, draft.seconds = grid.hours, grid.minutes, grid.seconds
    if repeat.unit == Unit.HOUR and grid.minutes:
        draft.seconds = grid.seconds or (0,)
    elif repeat.unit == Unit.HOUR and grid.seconds:
        raise Refused("inexpressible", grid.span, "name the minutes as well")
    return [draft]


def _list_steps(
    within: tuple[TimeOfDay, TimeOfDay], step: int, window: Window, drafts: Sequence[Draft]
) -> list[TimeOfDay]:
    begin, end = (time.hour * 3600 + time.minute * 60 + time.second for time in within)
    if end < begin:
        if not all(draft.freq == "DAILY" for draft in drafts):
            raise Refused("inexpressible", window.span, "a window that crosses midnight must apply to every day")
        end += 86_400
    times = range(begin + step * window.open_first, end + 1 - window.open_last, step)
    if end == begin or not times:
        raise Refused("never", window.span)
    if len(times) > _MOST_TIMES:
        raise Refused("too-many", window.span)
    return [TimeOfDay(second // 3600 % 24, second // 60 % 60, second % 60) for second in times]


BEGINNING = "1970-01-01T00:00:00"
"""DTSTART of a schedule whose meaning does not depend on its start, like a cron expression."""
END_OF_DAY = TimeOfDay(23, 59, 59)
_STEPS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}


@dataclass(slots=True)
class Bounds:
    """The start and the end of a plan's rules, as far as they are known."""

    start: date
    """The first day."""
    has_start: bool
    """True if somebody has chosen it. Otherwise the rules begin now."""
    until: date | None = None
    """The last day."""
    until_clock: TimeOfDay = END_OF_DAY
    """The time at which the last day ends."""
    count: int | None = None
    """The number of times after which the rules end."""
    dtstart: str | None = None
    """The local time that the rules keep counting from, if an edit leaves it as it is."""


@dataclass
class Builder:
    """Gives the rules of a plan their start and their end."""

    plan: Plan
    context: Context
    drafts: list[Draft]
    bounds: Bounds
    floating: bool = False
    """The rules take their days from their start."""

    def build(self, exdates: list[str], move: Callable[[Schedule], list[str]] = lambda _: []) -> Schedule:
        """Return the schedule without some days and local times, and without those that `move` finds in all of it."""
        bounds = self.bounds
        for draft in self.drafts:
            self._fill_days(draft)
            if "skip-back" in self.plan.marks:
                draft.skip = "BACKWARD"
            if "skip-forward" in self.plan.marks:
                draft.skip = "FORWARD"
        for end in self.plan.ends:
            self._apply_end(end)
        span = self.plan.ends[-1].span if self.plan.ends else None
        if len(self.plan.ends) > 1:
            raise Refused("contradiction", span, "keep either the number of times or the end date")
        says_zero = any(time.second for draft in self.drafts for time in draft.times)
        texts = [text for draft in self.drafts for text in draft.to_rrules(says_zero=says_zero)]
        if bounds.count is not None and len(texts) > 1:
            raise Refused("inexpressible", span, "give an end date instead of a number of times")
        dtstart = bounds.dtstart or self._find_start().isoformat()
        suffix = ""
        if bounds.count is not None:
            suffix = f";COUNT={bounds.count}"
        elif bounds.until is not None:
            suffix = f";UNTIL={make_local_time(bounds.until, *bounds.until_clock):%Y%m%dT%H%M%S}"
        rules = [text + suffix for text in texts]
        full = Schedule(rrule=rules, dtstart=dtstart, timezone=self.context.timezone)
        kept = [each for each in dict.fromkeys([*move(full), *exdates]) if self._is_needed(each, full)]
        schedule = full.model_copy(update={"exdates": kept}) if kept else full
        following = schedule.next_after(self.context.now)
        if following is None and not self.plan.added:
            raise Refused("past" if self.plan.ends else "never")
        if following is None or bounds.has_start or bounds.dtstart is not None:
            return schedule
        first = schedule.first()
        return schedule if first is None or first >= self.context.now else schedule.continue_from(following)

    def _is_needed(self, text: str, full: Schedule) -> bool:
        """Return whether an exception leaves something out: on the days of a stretch, nothing may run."""
        if text not in self.context.stretched:
            return True
        day = datetime.fromisoformat(text)
        following = full.next_after(self.context.to_instant(day) - timedelta(seconds=1))
        return following is not None and following < self.context.to_instant(day + ONE_DAY)

    def _fill_days(self, draft: Draft) -> None:
        """Fill in the days that a rule takes from its start: "every month" uses the day of the month of the start."""
        start = self.bounds.start
        if draft.weekdays or draft.month_days or draft.year_days or draft.weeks:
            return
        if draft.freq == "WEEKLY":
            draft.weekdays = [(0, start.weekday())]
            said = say("It runs on {weekday}.", weekday=say(English.weekdays[start.weekday()]))
        elif draft.freq == "MONTHLY":
            draft.month_days = [start.day]
            said = say("It runs on day {day} of the month.", day=start.day)
        elif draft.freq == "YEARLY":
            draft.months, draft.month_days = draft.months or [start.month], [start.day]
            said = say("It runs on {month} {day}.", month=say(English.months[start.month - 1]), day=start.day)
        else:
            return
        self.context.choices.assume(said)
        if lacks_days(draft):
            draft.skip = self.context.choices.pick("month-end", NOWHERE, MONTH_ENDS)
        self.floating = True

    def _apply_end(self, end: End) -> None:
        bounds, context = self.bounds, self.context
        if bounds.until is not None:
            raise Refused("contradiction", end.span)
        if end.count is not None and end.before and self.drafts[0].freq not in _STEPS:
            options = (Option(say("{count} times in total", count=end.count), end.count),)
            context.choices.pick("count-or-rate", end.span, options)
        bounds.count = self._count_times(end.length) if end.length else end.count
        if bounds.count is not None:
            return
        base = max(bounds.start, context.today)
        if end.before and any(days.is_counted for days in self.plan.days):
            raise Refused("inexpressible", end.span)  # "the last Thursday before Christmas"
        if end.point:
            until = find_last_day(end.point, context, base, through=end.through)
            if end.before:
                until = find_first_day(end.point, context, base) - ONE_DAY
        elif end.length:
            until = add_length(bounds.start, end.length) - ONE_DAY
        else:
            raise Refused("contradiction", end.span)
        if end.clock is not None:
            bounds.until_clock = context.resolve_time(end.clock)
        if until < bounds.start:
            raise Refused("never" if bounds.has_start else "past", end.span)
        context.choices.assume(say("The last day is {until:%Y-%m-%d}.", until=until))
        bounds.until = until

    def _count_times(self, length: Length) -> int | None:
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
        if count and single and draft.interval == 1 and not (draft.months or draft.positions or self.plan.exceptions):
            return amount * count * len(draft.times)
        if length.finest >= Unit.DAY:
            return None
        if not single or draft.freq not in _STEPS:
            raise Refused("inexpressible", length.span)
        return max(amount * _SECONDS[unit] // (_STEPS[draft.freq] * draft.interval), 1)

    def _find_start(self) -> datetime:
        """Return the first local time of the rules: from the start if the phrase sets one, otherwise after now."""
        context, bounds = self.context, self.bounds
        start = self.plan.start or Start(None)
        is_open = bounds.count is None and not bounds.has_start
        if is_open and all(draft.is_fixed for draft in self.drafts):
            return datetime.fromisoformat(BEGINNING)
        begin = make_local_time(bounds.start, *(context.resolve_time(start.clock) if start.clock else TimeOfDay(0)))
        if any(draft.freq in _STEPS for draft in self.drafts):
            if isinstance(start.point, Relative) and start.point.kind == "now":
                return context.local
            if bounds.has_start:
                return begin
            context.choices.assume("The interval counts from now.")
            step = max(draft.interval * _STEPS.get(draft.freq, 0) for draft in self.drafts)
            # With a number of times, the first one is one interval from now.
            return context.local if is_open else context.local + timedelta(seconds=step)
        phase = make_local_time(bounds.start, *min(time for draft in self.drafts for time in draft.times))
        has_passed = bounds.count is not None and phase <= context.local and not bounds.has_start
        if self.floating and not has_passed:
            return phase
        is_plain = all(draft.freq == "DAILY" and not (draft.weekdays or draft.months) for draft in self.drafts)
        if is_open and is_plain and all(draft.interval > 1 for draft in self.drafts):
            return phase

        texts = [text for draft in self.drafts for text in replace(draft, interval=1).to_rrules()]
        if not bounds.has_start:
            begin = max(begin, context.local + timedelta(seconds=1))
        free = Schedule(rrule=texts, dtstart=f"{begin:%Y-%m-%d}T00:00:00", timezone="UTC")
        result = free.next_after(begin.replace(tzinfo=UTC) - timedelta(seconds=1))
        if result is None:
            raise Refused("never")
        return result.replace(tzinfo=None)
