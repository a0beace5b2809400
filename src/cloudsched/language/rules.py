"""Build recurrence rules from groups of clauses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

from cloudsched.language.dates import resolve_date_order
from cloudsched.language.messages import say
from cloudsched.language.nodes import DAY, WEEKENDDAY, WORKDAY, Days, OnlyIf, Period, Pick, Repeat, Unit
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.language.groups import Group
    from cloudsched.language.phrase_context import Context, TimeOfDay

CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WORKING = (0, 1, 2, 3, 4)
ALL_MONTHS = tuple(range(1, 13))
_FINE = {Unit.SECOND: "SECONDLY", Unit.MINUTE: "MINUTELY", Unit.HOUR: "HOURLY"}
_QUARTER = {1: (1, 4, 7, 10), 2: (2, 5, 8, 11), 3: (3, 6, 9, 12)}
MAX_RULES = 20
MONTH_ENDS = (
    Option("only in months that have that day", ""),
    Option("on the last day of shorter months", "BACKWARD"),
)
"""The answers to what happens in months without such a day: the values of SKIP."""
_LEAP, _FEBRUARY = 4, 2
_LONGEST = {_FEBRUARY: 29, 4: 30, 6: 30, 9: 30, 11: 30}
"""The days that the shorter months have at most."""


@dataclass
class Draft:
    """A recurrence rule under construction."""

    freq: str
    interval: int = 1
    weekdays: list[tuple[int, int]] = field(default_factory=list)
    month_days: list[int] = field(default_factory=list)
    year_days: list[int] = field(default_factory=list)
    weeks: list[int] = field(default_factory=list)
    months: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    times: list[TimeOfDay] = field(default_factory=list)
    skip: str = ""
    week_start: int = 0
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    """The limit of a rule finer than a day, with hours and minutes. Other rules have ``times``."""
    says_seconds: bool = False
    """True if second 0 is named, too, because another rule's start has other seconds."""

    @property
    def names_times(self) -> bool:
        """Return whether a rule finer than a day runs at times that depend on no start."""
        named = {"HOURLY": self.minutes, "MINUTELY": self.seconds}.get(self.freq, ())
        return self.interval == 1 and bool(named)

    def differs_only_in(self, part: str, other: Draft) -> bool:
        """Return whether two rules are the same but for one part."""
        return {**vars(self), part: None} == {**vars(other), part: None}

    def to_rrules(self) -> list[str]:
        """Return the rule as RRULE values: several if its times of day are not a product of hours and minutes."""
        base = f"FREQ={self.freq}"
        if self.interval > 1:
            base += f";INTERVAL={self.interval}"
        base += _format_part("BYMONTH", sorted(set(self.months)))
        base += _format_part("BYWEEKNO", self.weeks) + _format_part("BYYEARDAY", self.year_days)
        base += _format_part("BYMONTHDAY", sorted(set(self.month_days)))
        weekdays = sorted(set(self.weekdays))
        base += _format_part("BYDAY", [f"{nth or ''}{CODES[day]}" for nth, day in weekdays])
        # BYSETPOS would pick among the times of a day as well, so that each of them needs a rule of its own.
        parts = [[time] for time in self.times] if self.positions else [self.times]
        blocks = [block for part in parts for block in _group_times(part)]
        zero = ";BYSECOND=0" if self.says_seconds else ""
        times = [f";BYHOUR={hours};BYMINUTE={minutes}{seconds or zero}" for hours, minutes, seconds in blocks] or [
            _format_part("BYHOUR", self.hours)
            + _format_part("BYMINUTE", self.minutes)
            + _format_part("BYSECOND", self.seconds)
        ]
        after = _format_part("BYSETPOS", sorted(set(self.positions))) + (f";SKIP={self.skip}" if self.skip else "")
        after += f";WKST={CODES[self.week_start]}" if self.week_start else ""
        return [base + time + after for time in times]


def _format_part(name: str, values: Iterable[object]) -> str:
    text = ",".join(map(str, values))
    return f";{name}={text}" if text else ""


def _group_times(times: list[TimeOfDay]) -> list[tuple[str, str, str]]:
    """Group times of day into BYHOUR, BYMINUTE and BYSECOND: hours that share the same minutes and seconds."""
    if not times:
        return []
    named = [sorted(set(part)) for part in zip(*times, strict=True)]
    if len(set(times)) == prod(map(len, named)):
        hours_text, minutes_text, seconds_text = (",".join(map(str, part)) for part in named)
        return [(hours_text, minutes_text, "" if seconds_text == "0" else f";BYSECOND={seconds_text}")]
    of_hour: dict[int, list[tuple[int, int]]] = {}
    for hour, minute, second in sorted(set(times)):
        of_hour.setdefault(hour, []).append((minute, second))
    hours_of: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for hour, minutes in of_hour.items():
        by_second: dict[int, list[int]] = {}
        for minute, second in minutes:
            by_second.setdefault(second, []).append(minute)
        for second, some in by_second.items():
            hours_of.setdefault(tuple((minute, second) for minute in some), []).append(hour)
    return [
        (
            ",".join(map(str, hours)),
            ",".join(str(minute) for minute, _ in minutes),
            f";BYSECOND={minutes[0][1]}" if minutes[0][1] else "",
        )
        for minutes, hours in hours_of.items()
    ]


def build_subdaily_rules(group: Group, repeat: Repeat) -> list[Draft]:
    """Return the rule of a group that repeats within the day, limited to its days."""
    draft = Draft(_FINE[repeat.unit], repeat.interval)
    if group.months:
        draft.months = list(group.months.months)
    for days in group.days:
        if days.dates or days.weeks:
            raise Refused("inexpressible", days.span)
        period = days.period
        if period is not None and (period.unit != Unit.MONTH or period.interval > 1 or period.ahead is not None):
            if not period.months or period.year is not None:
                raise Refused("inexpressible", days.span)
            draft.months = list(period.months)
        for pick in days.picks:
            if pick.nth and pick.what != DAY:
                raise Refused("inexpressible", days.span)
            if pick.what == DAY:
                draft.month_days.append(pick.nth)
            else:
                draft.weekdays.append((0, pick.what))
        if draft.month_days and draft.weekdays:
            raise Refused("inexpressible", days.span)
    if group.only_if is not None:
        _limit_weekdays(draft, group.only_if)
    return [draft]


def _limit_weekdays(draft: Draft, only_if: OnlyIf) -> None:
    if draft.weekdays or not draft.month_days:
        hint = "name days of the month, for example: on the 13th if it is a Friday"
        raise Refused("inexpressible", only_if.span, hint)
    draft.weekdays = [(0, day) for day in only_if.weekdays]


def build_day_rules(group: Group, context: Context, *, settled: bool = False) -> list[Draft]:
    """Return the rules for a group's days, without times of day yet."""
    repeat = group.repeat
    months = list(group.months.months) if group.months else []
    if repeat is None:
        drafts = [draft for days in group.days for draft in _build_from_days(days, context)]
    elif repeat.unit == Unit.DAY:
        drafts = _build_daily(group, repeat, context)
    elif repeat.unit in (Unit.WEEK, Unit.FORTNIGHT):
        drafts = _build_weekly(group, repeat)
    elif repeat.unit == Unit.YEAR:
        drafts = _build_yearly(group, repeat, months, context)
    else:
        drafts = _build_monthly(group, repeat, context)
    if months:
        for draft in drafts:
            if draft.months and sorted(draft.months) != sorted(months):
                raise Refused("contradiction")
            draft.months = months
    if group.only_if is not None and len(group.days) > 1:
        raise Refused("inexpressible", group.only_if.span, "make two schedules: one for each kind of day")
    for draft in drafts:
        if group.only_if is not None:
            _limit_weekdays(draft, group.only_if)
        _check_days(draft, group, settled=settled)
        if not settled:
            _ask_month_end(draft, group, context)
    return _merge_weekdays(drafts)


def _merge_weekdays(drafts: list[Draft]) -> list[Draft]:
    """Merge rules that differ only in their weekdays."""
    merged: list[Draft] = []
    for draft in drafts:
        twin = next((one for one in merged if one.weekdays and one.differs_only_in("weekdays", draft)), None)
        twin = twin if draft.weekdays and not draft.positions else None
        if twin is not None:
            twin.weekdays += draft.weekdays
        elif draft not in merged:
            merged.append(draft)
    if len(merged) > MAX_RULES:
        raise Refused("too-many")
    return merged


def _check_days(draft: Draft, group: Group, *, settled: bool) -> None:
    span = group.days[0].span if group.days else None
    if draft.month_days and draft.months:
        most = max(_LONGEST.get(month, 31) for month in draft.months)
        if all(abs(day) > most for day in draft.month_days):
            raise Refused("never", span)
    if any(abs(day) > 31 or not day for day in draft.month_days):
        raise Refused("no-such-date", span)
    if not settled and draft.freq == "MONTHLY" and draft.weekdays and all(nth == -5 for nth, _ in draft.weekdays):
        raise Refused("inexpressible", span, "most months do not have a fifth such weekday")
    if draft.freq == "MONTHLY" and any(abs(nth) > 5 for nth, _ in draft.weekdays):
        raise Refused("never", span)


def lacks_days(draft: Draft) -> bool:
    """Return whether some month of a rule does not have one of its days, in a year that the rule names."""
    if draft.freq not in {"MONTHLY", "YEARLY"} or (draft.freq == "YEARLY" and not draft.interval % _LEAP):
        return False
    months = draft.months or ALL_MONTHS
    return any(day > _LONGEST.get(month, 31) - (month == _FEBRUARY) for day in draft.month_days for month in months)


def _ask_month_end(draft: Draft, group: Group, context: Context) -> None:
    """Ask how to treat day 29, 30 or 31 in shorter months, and 29 February in other years."""
    if not lacks_days(draft):
        return
    span = group.days[0].span if group.days else (0, 0)
    if group.days and all(days.plural for days in group.days):
        return
    if any(date.is_leap_day for days in group.days for date in days.dates):
        return
    draft.skip = context.choices.pick("month-end", span, MONTH_ENDS)


def _build_from_days(days: Days, context: Context) -> list[Draft]:
    if days.positions:
        raise Refused(
            "incomplete", days.span, "say of what, for example: every month on the last of Monday and Tuesday"
        )
    if days.dates:
        return _build_from_dates(days, 1, context)
    if days.loose:
        return _ask_nth(days, context)
    period = days.period or Period()
    if days.weeks:
        if any(pick.nth for pick in days.picks):
            raise Refused("inexpressible", days.span)
        return [Draft("YEARLY", weeks=sorted(days.weeks), weekdays=[(0, pick.what) for pick in days.picks])]
    return _build_from_picks(days.picks, period, 1, days)


def _ask_nth(days: Days, context: Context) -> list[Draft]:
    nths = [pick.nth for pick in days.picks]
    nth = nths[0]
    monthly = _build_from_picks(days.picks, Period(), 1, days)
    if len(set(nths)) > 1:
        return monthly
    weekly = [Draft("WEEKLY", nth, [(0, pick.what) for pick in days.picks])]
    options = (Option("one such day each month", monthly), Option(say("every {nth} weeks", nth=nth), weekly))
    if nth > 5:
        return weekly
    chosen = context.choices.pick("nth-or-interval", days.span, options)
    return [replace(draft, weekdays=list(draft.weekdays)) for draft in chosen]


def _build_from_dates(days: Days, interval: int, context: Context) -> list[Draft]:
    months_of: dict[int, list[int]] = {}
    for one in days.dates:
        node = resolve_date_order(one, context)
        if node.year is not None or node.weekday is not None:
            raise Refused("contradiction", node.span)
        if node.month == 0:
            raise Refused("inexpressible", node.span)
        if node.month is None or node.day is None:
            raise Refused("not-understood", node.span)
        months_of.setdefault(node.day, []).append(node.month)
    of_months: dict[tuple[int, ...], list[int]] = {}
    for day, months in months_of.items():
        of_months.setdefault(tuple(sorted(months)), []).append(day)
    return [Draft("YEARLY", interval, months=list(months), month_days=result) for months, result in of_months.items()]


def _build_from_picks(picks: Iterable[Pick], period: Period, interval: int, days: Days) -> list[Draft]:
    if period.ahead is not None or period.year is not None:
        raise Refused("contradiction", days.span)
    picks = list(picks)
    interval *= period.interval
    months = list(period.months)
    freq = "MONTHLY"
    if period.unit == Unit.QUARTER:
        return _build_quarterly(picks, period, interval, days)
    if period.unit == Unit.YEAR and (not months or interval > 1):
        freq = "YEARLY"
    if all(not pick.nth for pick in picks):
        if freq == "YEARLY" and interval > 1:
            raise Refused("inexpressible", days.span)
        if interval > 1:
            return [Draft("MONTHLY", interval, [(0, pick.what) for pick in picks], months=months)]
        return [Draft("WEEKLY", 1, [(0, pick.what) for pick in picks], months=months)]
    drafts = [Draft(freq, interval, months=list(months)) for _ in range(4)]
    by_weekday, by_day, by_workday, by_weekend = drafts
    if months:
        by_weekday.freq = by_day.freq = "YEARLY"
    for nth, what in picks:
        if what == WORKDAY:
            by_workday.positions.append(nth)
            by_workday.weekdays = [(0, day) for day in WORKING]
        elif what == WEEKENDDAY:
            by_weekend.positions.append(nth)
            by_weekend.weekdays = [(0, 5), (0, 6)]
        elif what != DAY:
            by_weekday.weekdays.append((nth, what))
        elif freq == "YEARLY" and not months:
            by_day.year_days.append(nth)
        else:
            by_day.month_days.append(nth)
    if freq == "YEARLY" and len(months) > 1 and (by_workday.positions or by_weekend.positions):
        raise Refused("inexpressible", days.span)
    if any(abs(day) > 366 for day in by_day.year_days) or any(abs(nth) > 53 for nth, _ in by_weekday.weekdays):
        raise Refused("never", days.span)
    return [draft for draft in drafts if draft.weekdays or draft.month_days or draft.year_days]


def _build_quarterly(picks: list[Pick], period: Period, interval: int, days: Days) -> list[Draft]:
    if interval > 1 or not all(pick.nth for pick in picks):
        raise Refused("inexpressible", days.span)
    if period.quarter_months:
        chosen = [month for which in period.quarter_months for month in _QUARTER[which]]
        return _build_from_picks(picks, Period(Unit.YEAR, months=tuple(sorted(chosen))), 1, days)
    drafts: list[Draft] = []
    for pick in picks:
        most = {DAY: 28, WORKDAY: 20, WEEKENDDAY: 8}.get(pick.what, 4)
        if abs(pick.nth) > most:
            raise Refused(
                "inexpressible",
                days.span,
                "say which month of the quarter, for example: the 15th of the second month of each quarter",
            )
        months = _QUARTER[1 if pick.nth > 0 else 3]
        drafts += _build_from_picks([pick], Period(Unit.YEAR, months=months), 1, days)
    return drafts


def _build_positions(group: Group, freq: str, interval: int) -> list[Draft]:
    """Return the rules of "every month on the last of Monday and Tuesday"."""
    if len(group.days) > 1:
        raise Refused("contradiction", group.days[1].span)
    days = group.days[0]
    return [Draft(freq, interval, [(0, pick.what) for pick in days.picks], positions=list(days.positions))]


def _collect_weekdays(group: Group) -> list[tuple[int, int]]:
    result: list[tuple[int, int]] = []
    for days in group.days:
        if days.dates or days.weeks or any(pick.nth for pick in days.picks):
            raise Refused("contradiction", days.span)
        result += [(0, pick.what) for pick in days.picks]
    return result


def _collect_months(group: Group) -> list[int]:
    """Return the months that limit plain weekdays, as in "Mondays in January"."""
    result: list[int] = []
    for days in group.days:
        period = days.period
        if period is not None and period.months and period.year is None:
            result += period.months
        elif period is not None and (period.unit != Unit.MONTH or period.interval > 1 or period.ahead is not None):
            raise Refused("contradiction", days.span)
    return result


def _build_daily(group: Group, repeat: Repeat, context: Context) -> list[Draft]:
    if repeat.interval == 1 and group.days and all(_is_run(days) for days in group.days):
        return [draft for days in group.days for draft in _build_from_days(days, context)]
    chosen = _collect_weekdays(group)
    if not chosen:
        return [Draft("DAILY", repeat.interval)]
    if repeat.interval > 1 and not repeat.interval % 7:
        return [Draft("WEEKLY", repeat.interval // 7, chosen, months=_collect_months(group))]
    if repeat.interval > 1 or not all(days.on or days.plural for days in group.days):
        raise Refused("contradiction", group.days[0].span, "use either an interval in days or days of the week")
    return [Draft("WEEKLY", 1, chosen, months=_collect_months(group))]


def _is_run(days: Days) -> bool:
    """Return whether days are those from one day of the month to another: "daily from the 1st to the 5th"."""
    return days.plural and len(days.picks) > 1 and all(pick.what == DAY and pick.nth for pick in days.picks)


def _build_weekly(group: Group, repeat: Repeat) -> list[Draft]:
    interval = repeat.interval * (2 if repeat.unit == Unit.FORTNIGHT else 1)
    if any(days.positions for days in group.days):
        return _build_positions(group, "WEEKLY", interval)
    return [Draft("WEEKLY", interval, _collect_weekdays(group), months=_collect_months(group))]


def _build_monthly(group: Group, repeat: Repeat, context: Context) -> list[Draft]:
    interval = repeat.interval * {Unit.MONTH: 1, Unit.QUARTER: 3}.get(repeat.unit, 1)
    if not group.days:
        return [Draft("MONTHLY", interval)]
    if any(days.positions for days in group.days):
        return _build_positions(group, "MONTHLY", interval)
    drafts: list[Draft] = []
    for days in group.days:
        if days.dates or days.weeks or (days.period and days.period.interval > 1):
            raise Refused("contradiction", days.span)
        if days.period and days.period.months:
            if interval > 1 or repeat.unit != Unit.MONTH or days.period.year or not all(p.nth for p in days.picks):
                raise Refused("contradiction", days.span)
            drafts += _build_from_picks(days.picks, Period(Unit.YEAR, months=days.period.months), 1, days)
            continue
        if all(not pick.nth for pick in days.picks):
            if not days.marked or days.plural:
                first = [(1, pick.what) for pick in days.picks]
                every = [(0, pick.what) for pick in days.picks]
                options = (Option("the first of each month", first), Option("every one", every))
                chosen = context.choices.pick("which-of-month", days.span, options)
            else:
                chosen = [(0, pick.what) for pick in days.picks]
            freq = "WEEKLY" if interval == 1 and not any(nth for nth, _ in chosen) else "MONTHLY"
            drafts.append(Draft(freq, interval, list(chosen)))
            continue
        if (
            repeat.unit == Unit.QUARTER
            and repeat.interval == 1
            and not all(p.what == DAY and p.nth > 1 for p in days.picks)
        ):
            drafts += _build_from_picks(days.picks, Period(Unit.QUARTER), 1, days)
        else:
            drafts += _build_from_picks(days.picks, Period(), interval, days)
    return drafts


def _build_yearly(group: Group, repeat: Repeat, months: list[int], context: Context) -> list[Draft]:
    if not group.days:
        return [Draft("YEARLY", repeat.interval)]
    if any(days.positions for days in group.days):
        return _build_positions(group, "YEARLY", repeat.interval)
    drafts: list[Draft] = []
    for days in group.days:
        if days.dates:
            drafts += _build_from_dates(days, repeat.interval, context)
            continue
        of = days.period.months if days.period else ()
        if days.period is not None and days.period.unit == Unit.MONTH and not months:
            raise Refused("contradiction", days.span)
        if days.weeks:
            weekdays = [(0, pick.what) for pick in days.picks if not pick.nth]
            drafts.append(Draft("YEARLY", repeat.interval, weekdays, weeks=sorted(days.weeks)))
            continue
        in_months = tuple(months) or of
        period = Period(Unit.YEAR, months=in_months)
        if all(not pick.nth for pick in days.picks):
            if not in_months:
                raise Refused("too-vague", days.span)
            drafts.append(Draft("YEARLY", repeat.interval, [(0, p.what) for p in days.picks], months=list(in_months)))
        else:
            drafts += _build_from_picks(days.picks, period, repeat.interval, days)
    return drafts
