"""Tell a schedule in words, for people who do not read RRULE: ``every weekday at 09:00, Europe/Paris``.

A description is never false. It is exact, so that its language's reader understands the same schedule, or it
is a summary, which says so and names what is missing.

- A rule is told with the days and times that it takes from its start, and from its first occurrence on. A
  start in 1970 is not mentioned where nothing depends on it, as in schedules made from cron expressions.
- A rule that has a simpler equal is told as that one: ``FREQ=MONTHLY;BYDAY=FR`` is every Friday.
- One instant is told to the second, as clocks show it: that of a task that runs now has microseconds.
- ``UNTIL``, added and excluded dates are told on the schedule's own clock.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.recurrence.expand import TimesOfDay
from cloudsched.domain.recurrence.iso8601 import EPOCH, UTC_EPOCH, parse_moment
from cloudsched.domain.recurrence.recurrence_set import Recurrence, compile_recurrence
from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Rule, parse_rule
from cloudsched.domain.recurrence.time_zones import load_shown
from cloudsched.domain.schedules.rare_days import find_missing, name_days
from cloudsched.domain.schedules.words import WEEKEND, WORKING_DAYS, English, find_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cloudsched.domain.recurrence.recurrence_set import SubDaily
    from cloudsched.domain.recurrence.wall_clock import Fold, Gap

_MAX_TIMES = 12
_MAX_DATES = 10
_MAX_LENGTH = 500
"""The longest phrase that the reader takes, in characters."""
_MIN_WINDOW_TIMES = 5
_BEGINNING = EPOCH + timedelta(days=1)
_EVERY_DAY = tuple(range(7))
_DAY = 86_400
_HOUR = 3600
_MINUTE = 60
_LAST_DAYS = (28, 29, 30, 31)
_LONGEST_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
_MOST_OF_A_MONTH = 5
_UNIT_SECONDS = {Frequency.HOURLY: _HOUR, Frequency.MINUTELY: _MINUTE, Frequency.SECONDLY: 1}
_UTC_NAMES = frozenset({"UTC", "Etc/UTC"})


class Description(NamedTuple):
    """A schedule in words.

    Attributes:
        text: One line.
        leaves_out: The parts that the text lacks, and names as missing, in its language. Empty if it says
            everything.
    """

    text: str
    leaves_out: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Return whether the text says everything."""
        return not self.leaves_out


def describe(schedule: Describable, locale: str = "en", *, has_begun: bool = False) -> Description:
    """Return a schedule in words, in the language of a locale such as ``de-AT``, or else in English.

    The start of one that has begun is no first time.
    """
    words = find_words(locale)
    told = _Teller(schedule, words, has_begun=has_begun)
    parts = told.tell()
    parts.append(told.zone)
    text = ", ".join(part for part in parts if part)
    if len(text) > _MAX_LENGTH and not told.left_out:
        told.left_out["rules"] = None
        text = ", ".join([*told.describe_briefly(), told.zone])
    left_out = tuple(words.left_out[part] for part in told.left_out)
    if left_out:
        text += f" ({words.summary.format(words.join(left_out))})"
    return Description(text, left_out)


class _Teller:
    """Tells one schedule. It notes the parts that it cannot tell in ``left_out``."""

    def __init__(self, schedule: Describable, words: English, *, has_begun: bool) -> None:
        self._schedule = schedule
        self._words = words
        self._has_begun = has_begun
        self.zone = schedule.timezone
        if schedule.follows_owner:
            self.zone = words.following.format(schedule.timezone)
        self.left_out: dict[str, None] = {}
        """The parts that the text lacks, each once: keys of the wording's ``left_out``."""
        self._tzinfo = load_shown(schedule.timezone)
        self._start: datetime | None = None
        if schedule.dtstart is not None:
            self._start = _to_local(parse_moment(schedule.dtstart, "dtstart").wall)

    def tell(self) -> list[str]:
        """Return the parts of the description, without the zone."""
        schedule = self._schedule
        words = self._words
        if schedule.at is not None:
            return [words.once.format(self._describe_instant(schedule.at))]
        if schedule.delay is not None:
            self.zone = ""
            if schedule.delay.microseconds:
                self.left_out["fractions"] = None
            return [words.delayed(schedule.delay)]

        if schedule.policies and schedule.timezone not in _UTC_NAMES:
            self.left_out["clock changes"] = None
        if not schedule.rules and self._start is not None:
            parts = [words.once.format(_format_moment(self._start, words))]
            if schedule.exdates:
                self.left_out["dates"] = None
        else:
            parts = self._describe_rules([parse_rule(rule) for rule in schedule.rules])

        if schedule.rdates:
            parts.append(words.added.format(words.join(self._describe_dates(schedule.rdates, timed=True))))
        if schedule.exdates and schedule.rules:
            parts.append(
                words.excepted.format(words.join(self._describe_dates(schedule.exdates, timed=False))),
            )
        parts += [words.adjusted(kind, names) for kind, names in schedule.effects]
        return parts

    def describe_briefly(self) -> list[str]:
        rules = self._schedule.rules
        if not rules:
            return []
        return [_describe_rule(parse_rule(rules[0]), self._start, self._words, self.left_out)]

    def _describe_instant(self, at: datetime) -> str:
        local = at.astimezone(self._tzinfo)
        if local.fold:  # this local time occurs twice: parsed again, the text would mean the first
            local = at
            self.zone = "UTC"
        return _format_moment(local, self._words)

    def _describe_dates(self, dates: Sequence[str], *, timed: bool) -> list[str]:
        if len(dates) > _MAX_DATES:
            self.left_out["dates"] = None
        told = []

        # Whole days come last: beside them, a time at the end of a list would seem to be that of all.
        moments = [parse_moment(text, "date") for text in dates[:_MAX_DATES]]
        for moment in sorted(moments, key=lambda each: each.is_date):
            local = _to_local(moment.wall)
            if moment.is_date and not timed:
                told.append(self._words.moment(local, ""))
                continue
            if moment.is_date and self._start is not None:
                local = local.replace(
                    hour=self._start.hour,
                    minute=self._start.minute,
                    second=self._start.second,
                )
            if moment.offset is not None:
                local = self._to_local_time(
                    UTC_EPOCH + timedelta(seconds=moment.wall - moment.offset),
                    "dates",
                )
            told.append(_format_moment(local, self._words))

        return told

    def _to_local_time(self, instant: datetime, part: str) -> datetime:
        """Return an instant on the schedule's clock.

        If the clock shows that time twice, the text lacks the part.
        """
        local = instant.astimezone(self._tzinfo)
        if local.fold:
            self.left_out[part] = None
        return local.replace(tzinfo=None, fold=0)

    def _describe_rules(self, rules: Sequence[Rule]) -> list[str]:
        words = self._words
        start = self._start
        simple = [_simplify(rule, start) for rule in rules]
        text = None
        if start is not None:
            text = _describe_window(simple, start, words)
        if text is None:
            text = words.union(_describe_rule(rule, start, words, self.left_out) for rule in simple)
            if len(simple) > 1:
                self._check_union(simple)
        parts = [text, self._describe_start(rules, simple), self._describe_end(rules)]
        return [part for part in parts if part]

    def _check_union(self, rules: Sequence[Rule]) -> None:
        """Note the parts of several rules that words cannot give to only one of them."""
        is_limited = any(rule.frequency > Frequency.DAILY for rule in rules) or any(
            rule.frequency == Frequency.DAILY and rule.interval > 1 and rule.weekdays for rule in rules
        )
        if is_limited or len({rule.skip for rule in rules}) > 1:
            self.left_out["rules"] = None

    def _describe_start(self, rules: Sequence[Rule], simple: Sequence[Rule]) -> str:
        schedule = self._schedule
        words = self._words
        start = self._start
        is_free = all(rule.interval == 1 and rule.count is None and _names_times(rule) for rule in rules)
        if start is None:
            if not (is_free and all(_names_days(rule) and _names_hours(rule) for rule in rules)):
                self.left_out["start"] = None
            return ""

        # Perhaps, before they come.
        is_over = bool(schedule.rdates) and any(rule.until is not None for rule in rules)
        if is_free and start < _BEGINNING and not is_over:
            return ""
        if self._has_begun and not is_over and all(_is_unmoved(rule, start) for rule in rules):
            return ""

        base = self._compile((), ())
        if base.first is None:  # only its added dates ever come
            self.left_out["rules"] = None
            return ""

        instant = UTC_EPOCH + timedelta(seconds=base.first)
        first = self._to_local_time(instant, "phase")
        begin = int(start.replace(tzinfo=self._tzinfo).timestamp())
        if not all(_keeps_phase(rule, start, first, base.first - begin) for rule in rules):
            self.left_out["phase"] = None

        time = first.hour * _HOUR + first.minute * _MINUTE + first.second
        said = ""
        if _needs_time(simple, start, time):
            said = _format_time(time)
        is_first = not (schedule.is_adjusted or self._has_begun)
        if is_first and (schedule.exdates or schedule.rdates):
            is_first = self._compile(schedule.rdates, schedule.exdates).first == base.first
        if is_first:
            return words.first_on(first, said)
        return words.starting(first, said)

    def _compile(self, rdates: tuple[str, ...], exdates: tuple[str, ...]) -> Recurrence:
        schedule = self._schedule
        return compile_recurrence(
            time_zones.in_use,
            schedule.rules,
            schedule.dtstart or "",
            schedule.timezone,
            rdates,
            exdates,
            schedule.gap,
            schedule.fold,
            schedule.sub_daily,
        )

    def _describe_end(self, rules: Sequence[Rule]) -> str:
        words = self._words
        ends = {(rule.count, rule.until) for rule in rules}
        if len(ends) > 1 or (len(rules) > 1 and rules[0].count is not None):
            self.left_out["ends"] = None
            return ""
        count, until = ends.pop()
        if count is not None:
            if any(_picks_times(rule) and _DayTimes(rule, self._start).count > 1 for rule in rules):
                self.left_out["ends"] = None  # such times need several rules, of which each would count
            return words.count(count)
        if until is None:
            return ""
        local = _to_local(until.seconds)
        if until.is_utc:
            local = self._to_local_time(UTC_EPOCH + timedelta(seconds=until.seconds), "ends")
        time = local.hour * _HOUR + local.minute * _MINUTE + local.second
        if time == _DAY - 1:  # the whole day
            return words.until.format(words.moment(local, ""))
        return words.until.format(words.moment(local, _format_time(time)))


def _names_times(rule: Rule) -> bool:
    """Return whether the times of a rule depend on no start, even for a rule finer than a day."""
    match rule.frequency:
        case Frequency.HOURLY:
            return bool(rule.minutes)
        case Frequency.MINUTELY:
            return bool(rule.seconds)
        case _:
            return True


def _is_unmoved(rule: Rule, start: datetime) -> bool:
    """Return whether the start of a rule, once it is over, says nothing about what is to come."""
    if rule.interval > 1 or rule.count is not None:
        return False
    if rule.frequency == Frequency.HOURLY and not rule.minutes:
        return not (start.minute or start.second)
    if rule.frequency == Frequency.MINUTELY and not rule.seconds:
        return not start.second
    return True


def _names_days(rule: Rule) -> bool:
    named = rule.weekdays or rule.month_days or rule.year_days
    return bool(named) or rule.frequency >= Frequency.DAILY


def _names_hours(rule: Rule) -> bool:
    return bool(rule.hours) or rule.frequency > Frequency.DAILY


def _needs_time(rules: Sequence[Rule], start: datetime, time: int) -> bool:
    """Return whether the first occurrence is told with its time, as it is not the first one of its day."""
    named = [_DayTimes(rule, start) for rule in rules if rule.frequency <= Frequency.DAILY]
    if len(named) < len(rules):
        return True
    named = [times for times in named if times.count]
    return any(times.has(time) for times in named) and time != min(times.at(0) for times in named)


def _keeps_phase(rule: Rule, start: datetime, first: datetime, elapsed: int) -> bool:
    """Return whether a rule counts the same periods from a later occurrence as from its start."""
    if rule.skip == "FORWARD" and first.day == 1 and 1 not in rule.month_days:
        return False  # it was moved out of the month in which it counts
    if rule.interval == 1:
        return True

    match rule.frequency:
        case Frequency.YEARLY:
            periods = first.year - start.year
        case Frequency.MONTHLY:
            periods = (first.year - start.year) * 12 + first.month - start.month
        case Frequency.WEEKLY:
            days = {day.weekday for day in rule.weekdays} or {start.weekday()}
            # When the weeks of what is read back begin.
            read = rule.week_start if _has_own_weeks(rule, start) else 0
            written_days = _list_days(start, days, rule.week_start, 7 * rule.interval)
            return written_days == _list_days(first, days, read, 7 * rule.interval)
        case Frequency.DAILY:
            periods = first.toordinal() - start.toordinal()
        case _:
            unit = _UNIT_SECONDS[rule.frequency]
            into = [(time.minute * _MINUTE + time.second) % unit for time in (start, first)]
            return not _names_times(rule) or (elapsed - into[1] + into[0]) % (unit * rule.interval) == 0

    return periods % rule.interval == 0


def _list_days(begin: datetime, weekdays: set[int], week_start: int, cycle: int) -> set[int]:
    """Return the days of the week that has a day, as numbers within a cycle of several weeks."""
    first = begin.toordinal() - (begin.weekday() - week_start) % 7
    return {(first + (weekday - week_start) % 7) % cycle for weekday in weekdays}


def _simplify(rule: Rule, start: datetime | None) -> Rule:
    """Return an equal rule that names its days, and whose period is the shortest of those that have them."""
    rule = name_days(rule, start)
    if rule.month_days == _LAST_DAYS and rule.positions == (-1,) and not (rule.weekdays or rule.year_days):
        rule = replace(rule, month_days=(-1,), positions=())
    if _counts_one_weekday(rule) and _DayTimes(rule, start).count == 1:
        [day] = rule.weekdays
        rule = replace(rule, weekdays=tuple(NthDay(nth, day.weekday) for nth in rule.positions), positions=())
    if rule.frequency > Frequency.DAILY or rule.interval > 1 or rule.positions or rule.skip != "OMIT":
        return rule
    if rule.year_days or rule.week_numbers or any(day.nth for day in rule.weekdays):
        return rule
    if rule.month_days:
        if rule.months:
            frequency = Frequency.YEARLY
        else:
            frequency = Frequency.MONTHLY
        return replace(rule, frequency=frequency)
    if not rule.weekdays:
        return rule
    if len(rule.weekdays) == len(_EVERY_DAY):
        return replace(rule, frequency=Frequency.DAILY, weekdays=())
    return replace(rule, frequency=Frequency.WEEKLY)


def _counts_one_weekday(rule: Rule) -> bool:
    """Return whether BYSETPOS counts one weekday in each month, or in a year."""
    if not rule.positions or len(rule.weekdays) != 1 or _has_nth(rule):
        return False
    if rule.month_days or rule.year_days or rule.week_numbers:
        return False
    if rule.frequency == Frequency.YEARLY:
        return len(rule.months) <= 1
    return rule.frequency == Frequency.MONTHLY


def _describe_window(rules: Sequence[Rule], start: datetime | None, words: English) -> str | None:
    """Return "every 15 minutes from 09:00 to 17:00 on …" if the rules amount to just that, else None."""
    bare = {replace(rule, hours=(), minutes=(), seconds=(), until=None) for rule in rules}
    rule = bare.pop()
    is_plain = rule.frequency in {Frequency.DAILY, Frequency.WEEKLY} and rule.interval == 1
    if bare or not is_plain or rule.count is not None:
        return None
    if rule.positions or rule.month_days or rule.year_days or rule.week_numbers:
        return None
    if (rule.frequency == Frequency.WEEKLY) != bool(rule.weekdays) or any(day.nth for day in rule.weekdays):
        return None

    bits = reduce(or_, (_DayTimes(one, start).to_bits() for one in rules))
    count = bits.bit_count()
    begin = (bits & -bits).bit_length() - 1
    end = bits.bit_length() - 1
    if count < _MIN_WINDOW_TIMES or not all(rule.hours for rule in rules):
        return None

    step = (end - begin) // (count - 1)
    if bits != _repeat(1, step, count) << begin:
        return None

    unit = next(unit for unit, size in _UNIT_SECONDS.items() if step % size == 0)
    days = [day.weekday for day in rule.weekdays]
    span = words.from_to.format(_format_time(begin), _format_time(end))
    text = f"{words.every(unit, step // _UNIT_SECONDS[unit])} {span}"
    if days:
        text += f" {words.on_weekdays(days)}"
    return text + _describe_months(rule, words)


def _describe_rule(rule: Rule, start: datetime | None, words: English, left_out: dict[str, None]) -> str:
    if rule.frequency > Frequency.DAILY:
        return _describe_fine_rule(rule, start, words, left_out)
    text = _describe_days(rule, words, left_out)
    times = _DayTimes(rule, start)
    if rule.positions and not _picks_times(rule) and times.count > 1:
        left_out["times"] = None
    if start is not None and not times.count:
        left_out["times"] = None
    if times.count <= _MAX_TIMES:
        told = [_format_time(times.at(number)) for number in range(times.count)]
        if told:
            text += f" {words.at.format(words.join(told))}"
    elif rule.positions:
        left_out["times"] = None
    else:
        seconds = () if times.seconds == (0,) else times.seconds
        text += f" {words.at_numbers(times.hours, times.minutes, seconds)}"

    text += _describe_missing_days(rule, start, words)
    if _has_own_weeks(rule, start):
        text += f" ({words.weeks_begin_on.format(words.weekdays[rule.week_start])})"
    return text


def _describe_missing_days(rule: Rule, start: datetime | None, words: English) -> str:
    if rule.skip != "OMIT":
        return f" ({words.where_missing(rule.skip)})"
    # The reader asks about each rule of months, also about one that only comes to months that have the day.
    if rule.frequency == Frequency.MONTHLY:
        rule = replace(rule, interval=1)
    missing = next(find_missing(rule, start, words), None)
    if missing is None:
        return ""
    return f" ({words.only_where[missing.period]})"


def _picks_times(rule: Rule) -> bool:
    """Return whether BYSETPOS picks from the times of one day."""
    if rule.frequency == Frequency.WEEKLY and len(rule.weekdays) != 1:
        return False
    return bool(rule.positions) and rule.frequency in {Frequency.WEEKLY, Frequency.DAILY}


def _describe_days(rule: Rule, words: English, left_out: dict[str, None]) -> str:
    if rule.positions and not _picks_times(rule):
        if rule.weekdays and not (rule.month_days or rule.year_days or rule.week_numbers or _has_nth(rule)):
            return _describe_positions(rule, words)
        left_out["days"] = None
    if rule.year_days or rule.week_numbers:
        return _describe_days_of_year(rule, words, left_out)
    if rule.month_days:
        return _describe_days_of_month(rule, words, left_out)
    if rule.weekdays:
        return _describe_weekdays(rule, words, left_out)
    return words.every(rule.frequency, rule.interval) + _describe_months(rule, words)


def _describe_positions(rule: Rule, words: English) -> str:
    days = sorted(
        (day.weekday for day in rule.weekdays),
        key=lambda day: (day - rule.week_start) % len(_EVERY_DAY),
    )
    positions = sorted(rule.positions, key=lambda each: (each < 0, each))
    is_counted = rule.frequency < Frequency.WEEKLY and tuple(sorted(days)) in {WORKING_DAYS, WEEKEND}
    if is_counted and len(rule.months) < 2:  # noqa: PLR2004 -- of several months, it would be one in each
        return _join_days(rule, words.on_counted_days(positions, sorted(days)), words)
    return _join_days(rule, words.on_positions(positions, days), words)


def _describe_days_of_year(rule: Rule, words: English, left_out: dict[str, None]) -> str:
    every = words.every(rule.frequency, rule.interval)
    days = [day.weekday for day in rule.weekdays]
    is_yearly = rule.frequency == Frequency.YEARLY and not rule.months and not rule.month_days
    if is_yearly and rule.year_days and not (rule.week_numbers or days):
        return f"{every} {words.on_days_of_year(rule.year_days)}"
    if is_yearly and not rule.year_days and days and not _has_nth(rule) and min(rule.week_numbers) > 0:
        return f"{every} {words.on_weekdays(days)} {words.in_weeks(rule.week_numbers)}"
    left_out["days"] = None
    return every + _describe_months(rule, words)


def _describe_days_of_month(rule: Rule, words: English, left_out: dict[str, None]) -> str:
    every = words.every(rule.frequency, rule.interval)
    longest = max((_LONGEST_MONTHS.get(month, 31) for month in rule.months), default=31)
    if all(abs(day) > longest for day in rule.month_days):
        left_out["rules"] = None  # it never runs, beside others that do
    is_in_any_month = rule.frequency == Frequency.YEARLY and not rule.months
    if rule.frequency > Frequency.MONTHLY or is_in_any_month or _has_nth(rule):
        left_out["days"] = None
        return every + _describe_months(rule, words)
    if rule.frequency == Frequency.YEARLY:
        text = f"{every} {words.on_dates(rule.month_days, rule.months)}"
    else:
        text = _join_days(rule, words.on_days_of_month(rule.month_days, of_month=False), words)
    if rule.weekdays:
        text += f" {words.if_weekdays([day.weekday for day in rule.weekdays])}"
    return text


def _describe_weekdays(rule: Rule, words: English, left_out: dict[str, None]) -> str:
    every = words.every(rule.frequency, rule.interval)
    days = [day.weekday for day in rule.weekdays]
    if rule.frequency == Frequency.WEEKLY and not _has_nth(rule):
        if rule.interval == 1:
            text = words.every_weekday(days)
        else:
            text = f"{every} {words.on_weekdays(days)}"
        return text + _describe_months(rule, words)
    if rule.frequency == Frequency.DAILY and not _has_nth(rule):
        if rule.interval == 1:
            return words.every_weekday(days) + _describe_months(rule, words)
        text = every + _describe_months(rule, words)
        missing = [day for day in _EVERY_DAY if day not in days]
        if missing:
            text += f" {words.except_weekdays(missing)}"
        return text

    nths = {abs(day.nth) for day in rule.weekdays}
    is_yearly = rule.frequency == Frequency.YEARLY
    if rule.frequency > Frequency.MONTHLY:
        left_out["days"] = None
    if max(nths) > _MOST_OF_A_MONTH and (rule.months or not is_yearly):
        left_out["days"] = None
        return every + _describe_months(rule, words)
    if is_yearly and not _has_nth(rule) and rule.months:
        return _join_days(rule, words.on_weekdays(days), words)

    if is_yearly and 0 in nths:
        left_out["days"] = None
    return _join_days(
        rule,
        words.on_nth_weekdays(rule.weekdays, of_year=is_yearly and not rule.months),
        words,
    )


def _join_days(rule: Rule, days: str, words: English) -> str:
    """Return how often, on which days and in which months.

    The months come first where they limit an interval.
    """
    every = words.every(rule.frequency, rule.interval)
    months = _describe_months(rule, words)
    is_date = bool(rule.month_days) and len(rule.months) == 1  # "on the 7th in June" would be one in a year
    is_mixed = len({day.nth == 0 for day in rule.weekdays}) > 1
    if rule.interval > 1 or is_date or is_mixed:
        return f"{every}{months} {days}"
    return f"{every} {days}{months}"


def _describe_months(rule: Rule, words: English) -> str:
    if not rule.months:
        return ""
    return f" {words.in_months(rule.months)}"


def _has_nth(rule: Rule) -> bool:
    return any(day.nth for day in rule.weekdays)


def _describe_fine_rule(rule: Rule, start: datetime | None, words: English, left_out: dict[str, None]) -> str:
    if rule.positions:
        left_out["times"] = None
    if rule.year_days or rule.week_numbers or any(day.nth for day in rule.weekdays):
        left_out["days"] = None
    text = _describe_steps(rule, start, words, left_out)
    days = sorted({day.weekday for day in rule.weekdays if not day.nth})
    if rule.month_days:
        text += f" {words.on_days_of_month(rule.month_days, of_month=True)}"
        if days:
            text += f" {words.if_weekdays(days)}"
    elif days:
        text += f" {words.on_weekdays(days)}"
    return text + _describe_months(rule, words) + _describe_missing_days(rule, start, words)


def _describe_steps(rule: Rule, start: datetime | None, words: English, left_out: dict[str, None]) -> str:
    """Return how often a rule finer than a day runs, and the limits of its hours, minutes and seconds."""
    hours = rule.hours
    minutes = rule.minutes
    seconds = rule.seconds or (start.second if start else 0,)
    every = words.every(rule.frequency, rule.interval)
    if rule.frequency == Frequency.SECONDLY or not _names_times(rule):
        is_hourly = rule.frequency == Frequency.HOURLY
        if is_hourly and start is not None and seconds != (start.second,):
            left_out["times"] = None
        if rule.frequency == Frequency.SECONDLY:
            limits = rule.seconds
        else:
            limits = ()
        return " ".join((every, words.at_numbers(hours, minutes, limits))).rstrip()
    if seconds == (0,) and rule.interval == 1:
        step = _find_step(minutes, 60)
        if rule.frequency == Frequency.MINUTELY and not minutes:
            step = 1
        if minutes == (0,) and (not hours or _find_step(hours, 24)):
            return f"{words.every(Frequency.HOURLY, _find_step(hours, 24) or 1)} {words.on_the_clock}"
        if step:
            clock = f"{words.every(Frequency.MINUTELY, step)} {words.on_the_clock}"
            return " ".join((clock, words.at_numbers(hours, (), ()))).rstrip()
        return f"{words.every(Frequency.HOURLY, 1)} {words.at_numbers(hours, minutes, ())}"

    if seconds == (0,) and rule.frequency != Frequency.MINUTELY:
        seconds = ()
    return f"{every} {words.at_numbers(hours, minutes, seconds)}"


def _find_step(numbers: Sequence[int], size: int) -> int:
    """Return the step of numbers that go from 0 around a dial of this size: 5 for 0, 5, … 55.

    Return 0 for others.
    """
    if len(numbers) <= 1 or not numbers[1] or size % numbers[1]:
        return 0
    step = numbers[1]
    if tuple(numbers) != tuple(range(0, size, step)):
        return 0
    return step


class _DayTimes:
    """The times of day of a rule that is not finer than a day, in seconds. None if its start would say them.

    They are never listed: a day has 86,400.
    """

    def __init__(self, rule: Rule, start: datetime | None) -> None:
        self.hours = rule.hours
        self.minutes = rule.minutes or (start.minute if start else 0,)
        self.seconds = rule.seconds or (start.second if start else 0,)
        if start is not None:
            self.hours = rule.hours or (start.hour,)
        self._all = TimesOfDay(self.hours or (0,), self.minutes, self.seconds)
        self.count = self._all.count if self.hours else 0
        self._places: Sequence[int] = range(self.count)
        if _picks_times(rule):
            places = {place - 1 if place > 0 else self.count + place for place in rule.positions}
            self._places = [place for place in sorted(places) if 0 <= place < self.count]
            self.count = len(self._places)

    def at(self, number: int) -> int:
        return self._all.at(self._places[number])

    def has(self, time: int) -> bool:
        if isinstance(self._places, range):
            return self.count > 0 and self._all.first_from(time) == time
        return any(self.at(number) == time for number in range(self.count))

    def to_bits(self) -> int:
        """Return a number that has a bit for each of them, if BYSETPOS picks none."""
        minute = sum(1 << second for second in self.seconds)
        hour = sum(minute << _MINUTE * each for each in self.minutes)
        return sum(hour << _HOUR * each for each in self.hours)


def _repeat(bits: int, step: int, count: int) -> int:
    """Return the bits repeated `count` times, each time a step further on."""
    repeated = 0
    done = 0
    for digit in f"{count:b}":
        repeated |= repeated << step * done
        done *= 2
        if digit == "1":
            repeated = repeated << step | bits
            done += 1
    return repeated


def _has_own_weeks(rule: Rule, start: datetime | None) -> bool:
    """Return whether the rule runs on other days than if its weeks began on Monday."""
    if not rule.week_start:
        return False
    if rule.week_numbers:
        return True
    if rule.frequency == Frequency.WEEKLY and rule.positions and not _picks_times(rule):
        order = [(day.weekday - rule.week_start) % len(_EVERY_DAY) for day in rule.weekdays]
        return order != sorted(order) or rule.interval > 1
    if rule.frequency != Frequency.WEEKLY or rule.interval == 1 or not rule.weekdays:
        return False
    if start is None:
        return True
    here = _list_days_of_first_week(rule, start, rule.week_start)
    return here != _list_days_of_first_week(rule, start, 0)


def _list_days_of_first_week(rule: Rule, start: datetime, week_start: int) -> set[int]:
    """Return the weekdays of a rule that its first week still has.

    Later weeks that count are as far apart.
    """
    first = (start.weekday() - week_start) % len(_EVERY_DAY)
    return {day.weekday for day in rule.weekdays if (day.weekday - week_start) % len(_EVERY_DAY) >= first}


def _format_time(time: int) -> str:
    minute, second = divmod(time, _MINUTE)
    text = f"{minute // 60:02}:{minute % 60:02}"
    return f"{text}:{second:02}" if second else text


def _format_moment(local: datetime, words: English) -> str:
    return words.moment(local, _format_time(local.hour * _HOUR + local.minute * _MINUTE + local.second))


def _to_local(wall: int) -> datetime:
    return EPOCH + timedelta(seconds=wall)


class Describable(Protocol):
    """The fields needed to format a schedule. `Schedule` documents them."""

    @property
    def at(self) -> datetime | None:
        """The one instant of a schedule that fires once."""

    @property
    def delay(self) -> timedelta | None:
        """The time after its task's creation at which a schedule fires once."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The RRULE values."""

    @property
    def dtstart(self) -> str | None:
        """The local time from which the rules count."""

    @property
    def timezone(self) -> str:
        """The IANA name of the zone of all local times."""

    @property
    def rdates(self) -> tuple[str, ...]:
        """The added occurrences."""

    @property
    def exdates(self) -> tuple[str, ...]:
        """The excluded occurrences."""

    @property
    def gap(self) -> Gap:
        """The policy for local times that a clock change skips."""

    @property
    def fold(self) -> Fold:
        """The instant that a repeated local time means: the first, the second or both."""

    @property
    def sub_daily(self) -> SubDaily:
        """The way in which rules finer than a day step."""

    @property
    def is_adjusted(self) -> bool:
        """Return whether some of its occurrences may be moved or skipped."""

    @property
    def effects(self) -> Sequence[tuple[str, Sequence[str | int]]]:
        """What moves its occurrences or leaves them out."""

    @property
    def follows_owner(self) -> bool:
        """Return whether the time zone is the owner's."""

    @property
    def policies(self) -> Mapping[str, str]:
        """The policies for clock changes that are not the defaults, by field."""
