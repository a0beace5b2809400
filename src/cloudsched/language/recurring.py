"""From what a phrase says to a schedule that repeats."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.schedule import Schedule
from cloudsched.errors import InvalidSchedule
from cloudsched.language.calendar import at_time, first_day, last_day, later
from cloudsched.language.context import TimeOfDay
from cloudsched.language.exceptions import leave_out
from cloudsched.language.nodes import DAY, Clock, Date, Days, End, Length, Pick, Relative, Repeat, Unit, Window
from cloudsched.language.refusals import Option, Refused
from cloudsched.language.rules import MAX_RULES, Draft, day_rules, fine_rule

if TYPE_CHECKING:
    from cloudsched.language.context import Context
    from cloudsched.language.groups import Group, Plan

BEGINNING = "1970-01-01T00:00:00"
"""DTSTART of a schedule that means the same whenever it begins, as for cron expressions."""
_DAY_SECONDS = 86_400
_MOST_TIMES = 1440
_SECONDS = {Unit.SECOND: 1, Unit.MINUTE: 60, Unit.HOUR: 3600}


def recurring(plan: Plan, context: Context) -> Schedule:
    """Return the schedule of a phrase that repeats.

    Raises:
        Refused: It cannot be.
        Unclear: It can be read in several ways.
    """
    _check_times(plan)
    drafts = [draft for group in plan.groups for draft in rules_of(group, plan, context)]
    today = context.today
    start = today
    if plan.start is not None and plan.start.point is not None:
        start = first_day(plan.start.point, context, today)
    until = None
    if plan.year is not None:
        year = plan.year.year if plan.year.year is not None else today.year + (plan.year.ahead or 0)
        if year < today.year:
            raise Refused("past", plan.year.span)
        start = max(start, date(year, 1, 1))
        until = date(year, 12, 31)
    bounded = plan.start is not None or plan.year is not None
    exdates = leave_out(drafts, plan.exceptions, context, start)
    return Builder(plan, context, drafts, start, until, bounded=bounded).build(exdates)


def _check_times(plan: Plan) -> None:
    """Refuse where one time of day would have to be dropped, or is missing."""
    fine = [group.repeat is not None and group.repeat.unit <= Unit.HOUR for group in plan.groups]
    timed = any(group.has_times for group in plan.groups)
    if len(plan.groups) > 1 and any(not (group.has_times or is_fine) for group, is_fine in zip(plan.groups, fine, strict=True)):
        raise Refused("incomplete", hint="say the time of day of each")
    start = plan.start
    exact = start is not None and isinstance(start.point, Date) and start.point.year is not None
    if start is not None and start.clock is not None and timed and not exact:
        raise Refused("contradiction", start.span)
    for end in plan.ends:
        named = isinstance(end.point, Date | Relative) or (isinstance(end.point, Days) and end.point.dates)
        if end.clock is not None and not (named and (timed or any(fine) or (start is not None and start.clock))):
            raise Refused("contradiction", end.span, "say the time of day before the end")


def rules_of(group: Group, plan: Plan, context: Context, *, times_only: bool = False) -> list[Draft]:
    """Return the rules of one group, with their times of day."""
    if times_only:
        return [Draft("DAILY", times=_times(group, plan, context, []))]
    repeat = group.repeat
    if group.months is not None and group.months.doubtful:
        context.choices.assume("The months are those of every year.")
        if repeat is None or not group.days:
            options = (Option("in these months of every year", True), Option("only once, the coming ones", False))
            if not context.choices.pick("months-or-span", group.months.span, options):
                raise Refused("incomplete", group.months.span, "write from 1 June 2027 until 31 August 2027")
    if repeat is not None and repeat.loose == "bi":
        group = _bi(group, repeat, context)
        repeat = group.repeat
    if repeat is not None and repeat.rate > 1:
        group = _rated(group, repeat, context)
        repeat = group.repeat
    if repeat is not None and repeat.unit <= Unit.HOUR:
        return _within_days(group, repeat, plan, context)
    if repeat is None and group.months is not None and not group.days and group.has_times:
        group = replace(group, repeat=Repeat(1, Unit.DAY))
    if repeat is None and not group.days:
        if group.part is None or not group.part.each:
            raise Refused("no-recurrence")
        group = replace(group, repeat=Repeat(1, Unit.DAY))
    if group.months is not None and repeat is not None and repeat.unit == Unit.YEAR and not group.days:
        options = (Option("on the first day of the month", 1), Option("on every day of the month", 0))
        chosen = context.choices.pick("which-of-month", group.months.span, options)
        days = [Days((Pick(1, DAY),), on=True)] if chosen else []
        group = replace(group, days=days, repeat=repeat if chosen else Repeat(1, Unit.DAY))
    settled = bool(plan.marks & {"skip-back", "skip-forward", "skip-omit"})
    drafts = day_rules(group, context, settled=settled)
    if not drafts:
        raise Refused("no-recurrence")
    times = _times(group, plan, context, drafts)
    for draft in drafts:
        draft.times = times
    return drafts


def _times(group: Group, plan: Plan, context: Context, drafts: list[Draft]) -> list[TimeOfDay]:
    part = group.part.part if group.part is not None else None
    if group.window is not None:
        first, last = context.window(group.window)
        options = (Option(f"once, at {first}", False), Option(f"every hour from {first} to {last}", True))
        hourly = context.choices.pick("window", group.window.span, options)
        return _steps(first, last, 3600, group.window) if hourly else [first]
    if group.grid is not None:
        hours = group.grid.hours or range(24)
        return [TimeOfDay(hour, minute) for hour in hours for minute in group.grid.minutes or (0,)]
    if group.clocks:
        midnight = next((clock for clock in group.clocks if clock.named and clock.hour == 0), None)
        if midnight is not None and any(draft.weekdays and not draft.month_days for draft in drafts):
            _ask_midnight(midnight, context, drafts)
        elif midnight is not None:
            context.choices.assume("Midnight is the one that begins the day.")
        return context.times(group.clocks, part)
    if plan.start is not None and plan.start.clock is not None:
        return [context.time(plan.start.clock)]
    if part is not None:
        return [context.part_of_day(part)]
    return [context.default_time()]


def _ask_midnight(clock: Clock, context: Context, drafts: list[Draft]) -> None:
    if all(len(set(draft.weekdays)) == 7 for draft in drafts):  # noqa: PLR2004 -- every day is no named day
        return
    plain = all(nth == 0 for draft in drafts for nth, _ in draft.weekdays) and not any(d.positions for d in drafts)
    options = [Option("the midnight with which the day begins", False)]
    if plain:
        options.append(Option("the midnight with which the day ends", True))
    if context.choices.pick("midnight", clock.span, tuple(options)):
        for draft in drafts:
            draft.weekdays = [(0, (day + 1) % 7) for _, day in draft.weekdays]


def _bi(group: Group, repeat: Repeat, context: Context) -> Group:
    unit = repeat.unit.name.lower()
    every = replace(group, repeat=replace(repeat, loose=""))
    twice = replace(group, repeat=replace(repeat, interval=1, rate=2, loose=""))
    names = (f"every two {unit}s", f"twice a {unit}")
    options = (Option(names[0], every), Option(names[1], _spread(twice, twice.repeat, context)))
    if repeat.unit == Unit.HOUR or group.days:
        options = options[:1]
    chosen = context.choices.pick("bi", repeat.span, options)
    assert isinstance(chosen, type(group))  # noqa: S101 -- one of those above
    return chosen


def _rated(group: Group, repeat: Repeat, context: Context) -> Group:
    """Return the group of "twice a week", if its days or times are named; else ask which are meant."""
    once = replace(group, repeat=replace(repeat, rate=1))
    named = len(group.clocks) if repeat.unit == Unit.DAY else sum(len(d.picks) + len(d.dates) for d in group.days)
    if repeat.unit >= Unit.DAY and named:
        if named != repeat.rate or repeat.interval > 1:
            raise Refused("contradiction", repeat.span, f"{repeat.rate} were announced and {named} named")
        return once
    if repeat.unit < Unit.DAY or repeat.rate > 12 or group.window:  # noqa: PLR2004 -- no suggestion makes sense
        raise Refused("too-vague", repeat.span, "name the times")
    spread = _spread(group, repeat, context)
    chosen = context.choices.pick("rate", repeat.span, (Option("spread evenly", spread),))
    assert isinstance(chosen, type(group))  # noqa: S101 -- the one above
    return chosen


def _spread(group: Group, repeat: Repeat | None, context: Context) -> Group:
    if repeat is None:
        return group
    count = repeat.rate
    once = replace(repeat, rate=1)
    if repeat.unit == Unit.DAY:
        hours = [9 + round(step * 9 / max(count - 1, 1)) for step in range(count)]
        return replace(group, repeat=once, clocks=[Clock(hour, exact=True) for hour in hours])
    if repeat.unit in (Unit.WEEK, Unit.FORTNIGHT):
        picks = tuple(Pick(0, day * 7 // count) for day in range(min(count, 7)))
    elif repeat.unit == Unit.MONTH:
        picks = tuple(Pick(1 + step * 28 // count, DAY) for step in range(count))
    else:
        months = tuple(1 + step * 12 // count for step in range(count))
        from cloudsched.language.nodes import Months  # noqa: PLC0415 -- rare

        return replace(group, repeat=once, months=Months(months), days=[Days((Pick(1, DAY),), on=True)])
    return replace(group, repeat=once, days=[Days(picks, on=True, plural=True)])


def _within_days(group: Group, repeat: Repeat, plan: Plan, context: Context) -> list[Draft]:
    """Return the rules of what repeats within the day: on a grid of its own, or between two times of day."""
    if group.part is not None or group.clocks:
        raise Refused("contradiction", repeat.span, "say from what time to what time, or starting at which")
    step = repeat.interval * _SECONDS[repeat.unit]
    if "synchronised" in plan.marks:
        if _DAY_SECONDS % step:
            raise Refused("inexpressible", repeat.span)
        group = replace(group, window=Window(Clock(0, exact=True), Clock(23, 59, 59, exact=True)))
    if group.window is None:
        drafts = fine_rule(group, repeat, context)
        if group.grid is not None:
            raise Refused("contradiction", group.grid.span)
        return drafts
    window = group.window
    first, last = context.window(window)
    times = _steps(first, last, step, window)
    dated = replace(group, repeat=None if group.days else Repeat(1, Unit.DAY), window=None)
    if any(days.period and not days.marked and not days.on for days in group.days):
        raise Refused("not-understood", group.days[0].span)
    drafts = day_rules(dated, context)
    if last < first and not all(draft.freq == "DAILY" for draft in drafts):
        raise Refused("inexpressible", window.span, "a window past midnight needs every day")
    for draft in drafts:
        draft.times = times
    return drafts


def _steps(first: TimeOfDay, last: TimeOfDay, step: int, window: Window) -> list[TimeOfDay]:
    begin, end = (time.hour * 3600 + time.minute * 60 + time.second for time in (first, last))
    if end <= begin:
        if end == begin:
            raise Refused("never", window.span)
        end += _DAY_SECONDS
    if (end - begin) // step > _MOST_TIMES:
        raise Refused("too-many", window.span)
    found = [second % _DAY_SECONDS for second in range(begin, end + 1, step)]
    if window.open_first:
        found.remove(begin)
    if window.open_last and found and found[-1] == end:
        found.pop()
    if not found:
        raise Refused("never", window.span)
    return [TimeOfDay(second // 3600, second // 60 % 60, second % 60) for second in found]


class Builder:
    """Bounds the rules of a plan and anchors them."""

    def __init__(
        self, plan: Plan, context: Context, drafts: list[Draft], start: date, until: date | None, *, bounded: bool
    ) -> None:
        self.plan, self.context, self.drafts = plan, context, drafts
        self.start, self.until, self.bounded = start, until, bounded
        self.until_clock = TimeOfDay(23, 59, 59)
        self.count: int | None = None
        self.kept: str | None = None
        self.finished: date | None = None

    def build(self, exdates: list[str]) -> Schedule:
        """Return the schedule."""
        for draft in self.drafts:
            self._fill(draft)
            if "skip-back" in self.plan.marks:
                draft.skip = "BACKWARD"
            if "skip-forward" in self.plan.marks:
                draft.skip = "FORWARD"
        for end in self.plan.ends:
            self._end(end)
        if self.count is not None and self.until is not None:
            raise Refused("contradiction", self.plan.ends[-1].span, "keep either the number of times or the end")
        texts = [text for draft in self.drafts for text in draft.texts()]
        if len(texts) > MAX_RULES:
            raise Refused("too-many")
        if self.count is not None and len(texts) > 1:
            raise Refused("inexpressible", self.plan.ends[0].span, "give an end as a date")
        dtstart = self.kept or self._dtstart()
        suffix = ""
        if self.count is not None:
            suffix = f";COUNT={self.count}"
        elif self.until is not None:
            suffix = f";UNTIL={at_time(self.until, *self.until_clock):%Y%m%dT%H%M%S}"
        try:
            schedule = Schedule(
                rrule=[text + suffix for text in texts],
                dtstart=dtstart,
                timezone=self.context.timezone,
                exdates=exdates,
            )
        except InvalidSchedule as error:
            raise Refused("never", hint=str(error)) from None
        if schedule.after(self.context.now) is None:
            raise Refused("past")
        return schedule

    @property
    def _needs_phase(self) -> bool:
        fine = any(draft.freq in {"HOURLY", "MINUTELY", "SECONDLY"} for draft in self.drafts)
        open_ended = self.count is None and self.until is None and not self.bounded
        return fine or not open_ended or any(draft.interval > 1 for draft in self.drafts)

    def _fill(self, draft: Draft) -> None:
        """Name the days that a rule leaves to its beginning: "every month" is on today's day of the month."""
        if draft.freq == "WEEKLY" and not draft.weekdays:
            draft.weekdays = [(0, self.start.weekday())]
            self.context.choices.assume(f"It is on {self.start:%A}.")
        elif draft.freq == "MONTHLY" and not (draft.weekdays or draft.month_days):
            draft.month_days = [self.start.day]
            self.context.choices.assume(f"It is on day {self.start.day} of the month.")
            if self.start.day > 28:  # noqa: PLR2004 -- every month has 28
                options = (Option("only in months that have that day", ""), Option("on the last day else", "BACKWARD"))
                draft.skip = str(self.context.choices.pick("month-end", (0, 0), options))
        elif draft.freq == "YEARLY" and not (draft.weekdays or draft.month_days or draft.year_days or draft.weeks):
            draft.months, draft.month_days = draft.months or [self.start.month], [self.start.day]
            self.context.choices.assume(f"It is on {self.start:%B} {self.start.day}.")
        else:
            return
        self.floating = True

    floating = False

    def _end(self, end: End) -> None:
        if end.count is not None:
            if self.count is not None:
                raise Refused("contradiction", end.span)
            if end.before and not self.drafts[0].freq.endswith(("HOURLY", "MINUTELY", "SECONDLY")):
                options = (Option(f"{end.count} times in all", end.count),)
                self.context.choices.pick("count-or-rate", end.span, options)
            self.count = end.count
            return
        if end.length is not None:
            self._lasting(end.length)
            return
        if end.point is None or self.until is not None:
            raise Refused("contradiction", end.span)
        base = max(self.start, self.context.today)
        self.until = last_day(end.point, self.context, base)
        if end.before and any(pick.nth for group in self.plan.groups for days in group.days for pick in days.picks):
            raise Refused("inexpressible", end.span)  # "the last Thursday before Christmas"
        if end.before:
            self.until = first_day(end.point, self.context, base) - timedelta(days=1)
        if end.clock is not None:
            self.until_clock = self.context.time(end.clock)
        if self.until < self.start:
            raise Refused("never" if self.bounded else "past", end.span)
        self.context.choices.assume(f"The last day is {self.until:%Y-%m-%d}.")

    def _lasting(self, length: Length) -> None:
        """End after a length of time: by the number of occurrences where that is exact, else by a date."""
        draft = self.drafts[0]
        unit, amount = length.amounts[0]
        single = len(self.drafts) == 1 and len(length.amounts) == 1 and len(draft.texts()) == 1
        a_day = max(len(draft.times), 1)
        plain = single and draft.interval == 1 and not (draft.months or draft.positions or self.plan.exceptions)
        if plain and draft.freq == "DAILY" and unit in (Unit.DAY, Unit.WEEK):
            self.count = amount * (7 if unit == Unit.WEEK else 1) * a_day
        elif plain and draft.freq == "WEEKLY" and unit == Unit.WEEK:
            self.count = amount * len(set(draft.weekdays)) * a_day
        elif plain and draft.freq == "MONTHLY" and unit == Unit.MONTH and len(draft.month_days) == 1:
            self.count = amount * a_day
        elif length.finest < Unit.DAY:
            step = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}.get(draft.freq)
            if not single or step is None:
                raise Refused("inexpressible", length.span)
            self.count = max(amount * _SECONDS[unit] // (step * draft.interval), 1)
        else:
            self.until = later(self.start, length) - timedelta(days=1)
            self.context.choices.assume(f"The last day is {self.until:%Y-%m-%d}.")

    def _dtstart(self) -> str:
        if not self._needs_phase:
            return BEGINNING
        context = self.context
        fine = next((draft for draft in self.drafts if draft.freq in {"HOURLY", "MINUTELY", "SECONDLY"}), None)
        clock = self.plan.start.clock if self.plan.start is not None else None
        if fine is not None:
            return self._fine_start(clock)
        first = min(time for draft in self.drafts for time in draft.times)
        phase = at_time(self.start, *first)
        if self.floating and not (self.count is not None and phase <= context.local and not self.bounded):
            return phase.isoformat()
        daily = all(draft.freq == "DAILY" and draft.interval > 1 for draft in self.drafts)
        if daily and not self.bounded and self.count is None and not any(d.weekdays or d.months for d in self.drafts):
            return phase.isoformat()
        return self._first_occurrence().isoformat()

    def _fine_start(self, clock: Clock | None) -> str:
        context = self.context
        if self.bounded:
            time = context.time(clock) if clock is not None else TimeOfDay(0)
            begin = at_time(self.start, *time)
            return begin.isoformat()
        context.choices.assume("It is counted from now.")
        return context.local.isoformat()

    def _first_occurrence(self) -> datetime:
        """Return the first local time that the rules name, from the start on and, if there is none, after now."""
        context = self.context
        texts = [text for draft in self.drafts for text in replace(draft, interval=1).texts()]
        begin = datetime(self.start.year, self.start.month, self.start.day)  # noqa: DTZ001 -- on the zone's clock
        if not self.bounded:
            begin = max(begin, context.local + timedelta(seconds=1))
        day = datetime(begin.year, begin.month, begin.day)  # noqa: DTZ001 -- see above
        try:
            free = Schedule(rrule=texts, dtstart=day.isoformat(), timezone="UTC")
        except InvalidSchedule as error:
            raise Refused("never", hint=str(error)) from None
        clock = self.plan.start.clock if self.plan.start is not None else None
        if clock is not None and self.bounded:
            begin = at_time(self.start, *context.time(clock))
        moment = begin - timedelta(seconds=1)
        found = free.after(moment.replace(tzinfo=UTC))
        if found is None:
            raise Refused("never")
        return found.replace(tzinfo=None)
