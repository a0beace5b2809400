"""Build recurrence rules from groups of clauses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cloudsched.domain.schedules.words import English
from cloudsched.language.dates import resolve_date_order
from cloudsched.language.grammar_days import list_weekdays
from cloudsched.language.messages import say
from cloudsched.language.nodes import DAY, NOWHERE, WEEKENDDAY, WORKDAY, Days, Period, Pick, Repeat, Unit
from cloudsched.language.result import Option, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from cloudsched.language.groups import Group
    from cloudsched.language.phrase_context import Context, TimeOfDay

CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ALL_MONTHS = tuple(range(1, 13))
_PERIODS = {
    **{unit: (f"{unit.name}LY", 1) for unit in Unit},
    Unit.DAY: ("DAILY", 1),
    Unit.FORTNIGHT: ("WEEKLY", 2),
    Unit.QUARTER: ("MONTHLY", 3),
}
"""The frequency of a unit, and the number of periods in it."""
MONTH_ENDS = (
    Option("only in months that have that day", ""),
    Option("on the last day of shorter months", "BACKWARD"),
)
"""The answers to what happens in months without such a day: the values of SKIP."""
SKIPS = {"skip-back": "BACKWARD", "skip-forward": "FORWARD", "skip-omit": ""}
"""The values of SKIP that a mark says."""
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

    @property
    def is_fixed(self) -> bool:
        """Return whether the rule runs at times that depend on no start."""
        named = {"HOURLY": self.minutes, "MINUTELY": self.seconds, "SECONDLY": ()}.get(self.freq, (0,))
        return self.interval == 1 and bool(named)

    def differs_only_in(self, part: str, other: Draft) -> bool:
        """Return whether two rules are the same but for one part."""
        return {**vars(self), part: None} == {**vars(other), part: None}

    def to_rrules(self, *, says_zero: bool = False) -> list[str]:
        """Return the rule as RRULE values: several if its times of day are not a product of hours and minutes.

        It says second 0, too, if another rule's start has other seconds.
        """
        # BYSETPOS would pick among the times of a day as well, so that each of them needs a rule of its own.
        parts = [[time] for time in self.times] if self.positions else [self.times]
        blocks = [block for part in parts for block in _group_times(part)] or [(self.hours, self.minutes, self.seconds)]
        says_zero = says_zero or not self.times
        rules: list[dict[str, Iterable[object]]] = [
            {
                "FREQ": [self.freq],
                "INTERVAL": [self.interval] if self.interval > 1 else [],
                "BYMONTH": sorted({*self.months}),
                "BYWEEKNO": self.weeks,
                "BYYEARDAY": self.year_days,
                "BYMONTHDAY": sorted({*self.month_days}),
                "BYDAY": [f"{nth or ''}{CODES[day]}" for nth, day in sorted({*self.weekdays})],
                "BYHOUR": hours,
                "BYMINUTE": minutes,
                "BYSECOND": seconds if says_zero or any(seconds) else [],
                "BYSETPOS": sorted({*self.positions}),
                "SKIP": [self.skip] if self.skip else [],
                "WKST": [CODES[self.week_start]] if self.week_start else [],
            }
            for hours, minutes, seconds in blocks
        ]
        return [
            ";".join(f"{name}={','.join(map(str, values))}" for name, values in rule.items() if values)
            for rule in rules
        ]


_Numbers = tuple[int, ...]


def _group_times(times: Iterable[TimeOfDay]) -> list[tuple[_Numbers, ...]]:
    """Group times of day into hours, minutes and seconds of which each combination is meant."""
    blocks: list[tuple[_Numbers, ...]] = [tuple((number,) for number in time) for time in sorted({*times})]
    for place in (1, 2, 0):
        joined: dict[tuple[_Numbers, ...], _Numbers] = {}
        for block in blocks:
            rest = block[:place] + block[place + 1 :]
            joined[rest] = joined.get(rest, ()) + block[place]
        blocks = [(*rest[:place], numbers, *rest[place:]) for rest, numbers in joined.items()]
    return blocks


def _limit_days(draft: Draft, all_days: Sequence[Days]) -> None:
    """Limit a rule to weekdays, or days of the month, as in "Mondays in January"."""
    for days in all_days:
        draft.month_days += [pick.nth for pick in days.picks if pick.what == DAY]
        draft.weekdays += [pick for pick in days.picks if pick.what != DAY]
        is_mixed = draft.month_days and (draft.weekdays or draft.freq == "WEEKLY")
        if days.dates or days.weeks or is_mixed or any(nth for nth, _ in draft.weekdays):
            raise Refused("contradiction" if draft.freq == "WEEKLY" else "inexpressible", days.span)
        period = days.period or Period()
        is_limit = period.months or (period.unit == Unit.MONTH and period.interval == 1)
        if not is_limit or period.year is not None or period.ahead is not None:
            raise Refused("contradiction", days.span)
        draft.months += period.months
        draft.weekdays += [(0, day) for day in days.only]


def build_day_rules(group: Group, context: Context, *, settled: bool = False) -> list[Draft]:
    """Return the rules for a group's days, without times of day yet."""
    months = list(group.months.months) if group.months else []
    drafts = _build_days(group, months, context)
    span = group.days[0].span if group.days else NOWHERE
    is_leap_day = any(date.is_leap_day for days in group.days for date in days.dates)
    is_told = settled or is_leap_day or (group.days and all(days.plural for days in group.days))
    for draft in drafts:
        if months and draft.months and sorted(draft.months) != sorted(months):
            raise Refused("contradiction")
        draft.months = months or draft.months
        longest = max(_LONGEST.get(month, 31) for month in draft.months or ALL_MONTHS)
        if draft.months and draft.month_days and all(abs(day) > longest for day in draft.month_days):
            raise Refused("never", span)
        if any(abs(day) > 31 or not day for day in draft.month_days):
            raise Refused("no-such-date", span)
        if not is_told and lacks_days(draft):
            draft.skip = context.pick("month-end", span, MONTH_ENDS)
    return merge(drafts, "weekdays")


def merge(drafts: Iterable[Draft], part: str) -> list[Draft]:
    """Merge rules that differ only in one part, of which each has something."""
    merged: list[Draft] = []
    for draft in drafts:
        own = getattr(draft, part)
        may_join = own and not (draft.positions and part == "weekdays")
        for one in merged:
            if one == draft or (may_join and getattr(one, part) and one.differs_only_in(part, draft)):
                setattr(one, part, [*dict.fromkeys([*getattr(one, part), *own])])
                break
        else:
            merged.append(draft)
    return merged


def fill_days(draft: Draft, start: date) -> str:
    """Fill in the days that a rule takes from its start, and return the sentence about them. Empty if it names days.

    "Every month" uses the day of the month of the start.
    """
    if draft.weekdays or draft.month_days or draft.year_days or draft.weeks:
        return ""
    if draft.freq == "WEEKLY":
        draft.weekdays = [(0, start.weekday())]
        return say("It runs on {weekday}.", weekday=say(English.weekdays[start.weekday()]))
    if draft.freq == "MONTHLY":
        draft.month_days = [start.day]
        return say("It runs on day {day} of the month.", day=start.day)
    if draft.freq == "YEARLY":
        draft.months, draft.month_days = draft.months or [start.month], [start.day]
        return say("It runs on {month} {day}.", month=say(English.months[start.month - 1]), day=start.day)
    return ""


def lacks_days(draft: Draft) -> bool:
    """Return whether some month of a rule does not have one of its days, in a year that the rule names."""
    if draft.freq not in {"MONTHLY", "YEARLY"} or (draft.freq == "YEARLY" and not draft.interval % _LEAP):
        return False
    months = draft.months or ALL_MONTHS
    return any(day > _LONGEST.get(month, 31) - (month == _FEBRUARY) for day in draft.month_days for month in months)


def _build_days(group: Group, months: Sequence[int], context: Context) -> list[Draft]:
    """Return the rules for a group's days. `months` limit them."""
    all_days, repeat = group.days, group.repeat
    is_daily = repeat is not None and repeat.unit == Unit.DAY and repeat.interval == 1
    are_runs = all(days.plural and days.is_counted and days.picks[0].what == DAY for days in all_days)
    if repeat and not (all_days and are_runs and is_daily):  # "daily from the 1st to the 5th"
        freq, count = _PERIODS[repeat.unit]
        draft = Draft(freq, repeat.interval * count)
        if not all_days:
            return [draft]
        days, *others = all_days
        if days.positions or any(each.positions for each in others):  # "every month on the last of Monday and Tuesday"
            if others:
                raise Refused("contradiction", others[0].span)
            return [replace(draft, weekdays=list(days.picks), positions=list(days.positions))]
        if draft.freq not in {"MONTHLY", "YEARLY"}:
            if freq == "DAILY":
                if draft.interval % 7 and not (is_daily and all(each.on or each.plural for each in all_days)):
                    raise Refused("contradiction", days.span)
                draft.freq, draft.interval = "WEEKLY", draft.interval // 7 or 1
            _limit_days(draft, all_days)
            return [draft]
        if freq == "MONTHLY":
            all_days = [_count_in_months(each, repeat, draft.interval, context) for each in all_days]
        else:
            all_days = [_count_in_years(each, draft.interval, months) for each in all_days]
    return [draft for days in all_days for draft in _build_from_days(days, context)]


def _count_in_months(days: Days, repeat: Repeat, interval: int, context: Context) -> Days:
    """Return days that are counted in the months, or the quarters, of a repetition."""
    period, picks = days.period or Period(), days.picks
    if days.dates or days.weeks or period.interval > 1 or (period.months and interval > 1) or period.year:
        raise Refused("contradiction", days.span)
    within = Period(interval=interval, months=period.months)
    if not days.is_counted:
        if not days.marked or days.plural:
            first = tuple(Pick(1, pick.what) for pick in picks)
            options = (Option("the first of each month", first), Option("every one", picks))
            picks = context.pick("which-of-month", days.span, options)
    elif repeat.unit == Unit.QUARTER and repeat.interval == 1 and any(p.nth <= 1 or p.what != DAY for p in picks):
        within = Period(Unit.QUARTER)
    return replace(days, picks=picks, period=within, loose=False)


def _count_in_years(days: Days, interval: int, months: Sequence[int]) -> Days:
    """Return days that are counted in the years of a repetition, or in some months of them."""
    if days.period:
        if days.period.unit == Unit.MONTH and not months:
            raise Refused("contradiction", days.span)
        months = months or days.period.months
    if not (days.dates or days.weeks or months or days.is_counted):
        raise Refused("too-vague", days.span)
    return replace(days, period=Period(Unit.YEAR, interval, tuple(months)), loose=False)


def _build_from_days(days: Days, context: Context) -> list[Draft]:
    if days.positions:
        raise Refused("incomplete", days.span)
    found = _build_from_dates(days, context) or _build_from_picks(days)
    for draft in found if days.only else ():
        draft.weekdays = [(0, day) for day in days.only]
    numbers = {pick.nth for pick in days.picks}
    if not days.loose or len(numbers) > 1:
        return found
    [nth] = numbers  # "every third Thursday"
    weekly = [Draft("WEEKLY", nth, [(0, pick.what) for pick in days.picks])]
    options = (Option("one such day each month", found), Option(say("every {nth} weeks", nth=nth), weekly))
    return weekly if nth > 5 else context.pick("nth-or-interval", days.span, options)


def _build_from_dates(days: Days, context: Context) -> list[Draft]:
    """Return the rules of dates, or of weeks by number. None are returned for other days."""
    interval = days.period.interval if days.period else 1
    if days.weeks:
        if days.is_counted:
            raise Refused("inexpressible", days.span)
        return [Draft("YEARLY", interval, list(days.picks), weeks=sorted(days.weeks))]
    drafts = []
    for one in days.dates:
        node = resolve_date_order(one, context)
        if node.year is not None or node.weekday is not None:
            raise Refused("contradiction", node.span)
        if not node.month or not node.day:
            raise Refused("inexpressible", node.span)
        drafts.append(Draft("YEARLY", interval, months=[node.month], month_days=[node.day]))
    drafts.sort(key=lambda draft: draft.months)
    return merge(merge(drafts, "months"), "month_days")


def _build_from_picks(days: Days) -> list[Draft]:
    picks, period = days.picks, days.period or Period()
    if period.ahead is not None or period.year is not None:
        raise Refused("contradiction", days.span)
    interval, months, is_quarter = period.interval, list(period.months), period.unit == Unit.QUARTER
    freq = "YEARLY" if period.unit == Unit.YEAR and (not months or interval > 1) else "MONTHLY"
    if is_quarter and (interval > 1 or not all(pick.nth for pick in picks)):
        raise Refused("inexpressible", days.span)
    if not any(pick.nth for pick in picks):
        return [Draft(freq if interval > 1 else "WEEKLY", interval, list(picks), months=months)]
    drafts = []
    for pick in picks:
        if is_quarter:
            named = period.quarter_months
            if not named and abs(pick.nth) > {DAY: 28, WORKDAY: 20, WEEKENDDAY: 8}.get(pick.what, 4):
                raise Refused("inexpressible", days.span)
            named = named or (1 if pick.nth > 0 else 3,)
            months = [month for month in ALL_MONTHS if (month - 1) % 3 + 1 in named]
        draft = Draft("YEARLY" if months and pick.what <= DAY else freq, interval, months=months)
        if pick.what > DAY:
            draft.positions, draft.weekdays = [pick.nth], [(0, day) for day in list_weekdays(pick)]
            if freq == "YEARLY" and len(months) > 1:
                raise Refused("inexpressible", days.span)
        elif pick.what < DAY:
            draft.weekdays = [pick]
        elif freq == "YEARLY" and not months:
            draft.year_days = [pick.nth]
        else:
            draft.month_days = [pick.nth]
        drafts.append(draft)
    for part in ("weekdays", "month_days", "year_days", "positions"):
        drafts = merge(drafts, part)
    return drafts
