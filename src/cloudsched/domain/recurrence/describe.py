"""A schedule in English, for people who do not read RRULE: ``every weekday at 09:00, Europe/Paris``."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.iso8601 import EPOCH, Moment, parse_moment
from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Rule, parse_rule
from cloudsched.domain.recurrence.time_zones import load_tzinfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.recurrence.schedule_fields import ScheduleFields

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_WORKING_DAYS = frozenset(range(5))
_MAX_TIMES_LISTED = 12


def describe(schedule: ScheduleFields) -> str:
    """Return what a schedule means, in one line."""
    if schedule.at is not None:
        local = schedule.at.astimezone(load_tzinfo(schedule.timezone))
        return (
            f"once, on {local:%Y-%m-%d} at {_format_time(local.hour, local.minute, local.second)}, {schedule.timezone}"
        )
    start = None
    if schedule.dtstart is not None:
        start = _to_datetime(parse_moment(schedule.dtstart, "dtstart"))
    texts = [_describe_rule(parse_rule(rule), start) for rule in schedule.rules]
    if not texts and start is not None:
        texts = [f"on {start:%Y-%m-%d} at {_format_time(start.hour, start.minute, start.second)}"]
    text = "; and ".join(texts)
    if schedule.rdates:
        text += f", plus {_pluralize(len(schedule.rdates), 'date')}"
    if schedule.exdates:
        text += f", except {_pluralize(len(schedule.exdates), 'date')}"
    return f"{text}, {schedule.timezone}"


def _describe_rule(rule: Rule, start: datetime | None) -> str:
    text = _describe_days(rule, start)
    if rule.months and not _is_yearly_date(rule):
        text += f" in {_join_words(_MONTHS[month - 1] for month in rule.months)}"
    text += _describe_times(rule, start)
    if rule.positions:
        text = f"the {_join_words(map(_ordinal, rule.positions))} of {text}"
    if rule.skip != "OMIT":
        neighbour = "last day before" if rule.skip == "BACKWARD" else "first day after"
        text += f" (or the {neighbour}, where there is no such day)"
    if rule.count is not None:
        text += f", {_pluralize(rule.count, 'time')}"
    if rule.until is not None:
        until = _to_datetime(Moment(rule.until.seconds, None, is_date=False))
        zone = " UTC" if rule.until.is_utc else ""
        text += f", until {until:%Y-%m-%d %H:%M}{zone}"
    return text


def _is_yearly_date(rule: Rule) -> bool:
    """Return whether days and months read best as one: "on 24 December"."""
    return rule.frequency == Frequency.YEARLY and not (rule.weekdays or rule.year_days or rule.week_numbers)


def _describe_days(rule: Rule, start: datetime | None) -> str:
    weekdays, month_days, months = rule.weekdays, rule.month_days, rule.months
    named = weekdays or month_days or rule.year_days or rule.week_numbers
    if start is not None and not named:
        if rule.frequency == Frequency.WEEKLY:
            weekdays = (NthDay(0, start.weekday()),)
        elif rule.frequency <= Frequency.MONTHLY:
            month_days = (start.day,)
            months = months or (start.month,)
    every = _describe_interval(rule)
    if rule.frequency in {Frequency.WEEKLY, Frequency.DAILY} and weekdays and rule.interval == 1:
        every = _describe_weekdays(weekdays)
    elif weekdays:
        every += f" on {_join_words(map(_describe_weekday, weekdays))}"
    if month_days:
        days = _join_words(map(_describe_month_day, month_days))
        if _is_yearly_date(rule) and months:
            every += f" on {days} of {_join_words(_MONTHS[month - 1] for month in months)}"
        else:
            every += f" on {days}" + (" of the month" if rule.frequency != Frequency.MONTHLY else "")
    if rule.year_days:
        every += f" on the {_join_words(map(_ordinal, rule.year_days))} day of the year"
    if rule.week_numbers:
        every += f" in week {_join_words(map(str, rule.week_numbers))}"
    return every


def _describe_interval(rule: Rule) -> str:
    unit = _UNITS[rule.frequency]
    return f"every {unit}" if rule.interval == 1 else f"every {rule.interval} {unit}s"


def _describe_weekdays(weekdays: Sequence[NthDay]) -> str:
    days = frozenset(day.weekday for day in weekdays)
    if len(days) == len(_WEEKDAYS):
        return "every day"
    if days == _WORKING_DAYS:
        return "every weekday"
    return f"every {_join_words(_WEEKDAYS[day] for day in sorted(days))}"


def _describe_weekday(day: NthDay) -> str:
    name = _WEEKDAYS[day.weekday]
    return f"the {_ordinal(day.nth)} {name}" if day.nth else name


def _describe_month_day(number: int) -> str:
    if number == -1:
        return "the last day"
    return f"the {_ordinal(number)}" + (" day" if number < 0 else "")


def _describe_times(rule: Rule, start: datetime | None) -> str:
    """Return the times of day; for rules finer than a day only what limits them."""
    if rule.frequency <= Frequency.DAILY:
        hours = rule.hours or ((start.hour,) if start else ())
        minutes = rule.minutes or ((start.minute,) if start else (0,) if rule.hours else ())
        seconds = rule.seconds or ((start.second,) if start else (0,))
        if hours and minutes and len(hours) * len(minutes) * len(seconds) <= _MAX_TIMES_LISTED:
            times = (_format_time(hour, minute, second) for hour in hours for minute in minutes for second in seconds)
            return f" at {_join_words(times)}"
    text = ""
    if rule.minutes:
        text += f" at minute {_join_words(_merge_spans(rule.minutes))}"
    if rule.hours:
        text += f" in hour {_join_words(_merge_spans(rule.hours))}"
    if rule.seconds and rule.seconds != (0,):
        text += f" at second {_join_words(_merge_spans(rule.seconds))}"
    return text


def _format_time(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def _merge_spans(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers with runs of three or more drawn together: ``9 to 17``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans: list[str] = []
    for run in runs:
        spans += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)  # noqa: PLR2004 -- two are a list
    return spans


def _ordinal(number: int) -> str:
    if number < 0:
        return "last" if number == -1 else f"{_ordinal(-number)} last"
    teens = number % 100 in range(11, 14)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _pluralize(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _join_words(items: Iterable[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def _to_datetime(moment: Moment) -> datetime:
    return EPOCH + timedelta(seconds=moment.wall)
