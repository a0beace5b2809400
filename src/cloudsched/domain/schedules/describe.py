"""Describe a schedule in English, for people who do not read RRULE: ``every weekday at 09:00, Europe/Paris``.

The text covers everything in the schedule, including its start, its end and its exceptions. A start in 1970 is left
out: it belongs to schedules that do not depend on their start, such as cron expressions.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from cloudsched.domain.calendars.notes import describe_calendars
from cloudsched.domain.recurrence.iso8601 import EPOCH, Moment, parse_moment
from cloudsched.domain.recurrence.rrule import Frequency, NthDay, Rule, parse_rule
from cloudsched.domain.recurrence.time_zones import load_tzinfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.schedules.schedule_fields import ScheduleFields

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_WORKING_DAYS = frozenset(range(5))
_MAX_TIMES = 12
_MIN_WINDOW_TIMES = 5
_BEGINNING = EPOCH + timedelta(days=1)
_EVERY_DAY = frozenset(range(7))
_DAY = 86_400
_SHORTEST_MONTH = 28
_DAY_GROUPS = {_WORKING_DAYS: "working day", frozenset((5, 6)): "weekend day"}


def describe(schedule: ScheduleFields) -> str:
    """Return a description of a schedule, in one line."""
    if schedule.at is not None:
        return _describe_once(schedule.at, schedule.timezone)
    start = None
    if schedule.dtstart is not None:
        start = _to_datetime(parse_moment(schedule.dtstart, "dtstart"))
    rules = [parse_rule(rule) for rule in schedule.rules]
    if not rules and start is not None:
        dates = [_format_date_time(start), *(_format_moment(date) for date in schedule.rdates)]
        text = "; and ".join(f"on {date}" for date in dates)
    else:
        text, end = _describe_rules(rules, start)
        if start is not None and start >= _BEGINNING:
            text += f", starting {_describe_start(rules, start)}"
        text += end
        if schedule.rdates:
            text += f", plus {_join_words(map(_format_moment, schedule.rdates))}"
    if schedule.exdates:
        text += f", except {_join_words(map(_format_moment, schedule.exdates))}"
    text += describe_calendars(schedule.calendars, schedule.business_day)
    return f"{text}, {schedule.timezone}"


def _describe_once(at: datetime, timezone: str) -> str:
    local = at.astimezone(load_tzinfo(timezone))
    if local.fold:  # this local time occurs twice; parsed again, the text would mean the first
        local, timezone = at, "UTC"
    return f"once, on {_format_date_time(local)}, {timezone}"


def _describe_start(rules: Sequence[Rule], start: datetime) -> str:
    """Return the start date, and its time if the rules take their time from it."""
    time = (start.hour, start.minute, start.second)
    named = all(rule.frequency <= Frequency.DAILY for rule in rules)
    if named and all(_find_first_time(rule, start) >= time for rule in rules):
        return f"{start:%Y-%m-%d}"
    return _format_date_time(start)


def _find_first_time(rule: Rule, start: datetime) -> tuple[int, int, int]:
    hours, minutes, seconds = rule.hours or (start.hour,), rule.minutes or (start.minute,), rule.seconds or (0,)
    return hours[0], minutes[0], seconds[0]


def _describe_rules(rules: Sequence[Rule], start: datetime | None) -> tuple[str, str]:
    """Return the text of the rules, and of the end if all of them share it."""
    ends = {_describe_end(rule) for rule in rules}
    common = ends.pop() if len(ends) == 1 else None
    window = _describe_window(rules, start)
    if window is not None and common is not None:
        return window, common
    texts = [_describe_rule(rule, start) + (_describe_end(rule) if common is None else "") for rule in rules]
    return "; and ".join(texts), common or ""


def _describe_end(rule: Rule) -> str:
    if rule.count is not None:
        return f", {_pluralize(rule.count, 'time')}"
    if rule.until is None:
        return ""
    if not rule.until.is_utc and rule.until.seconds % _DAY == _DAY - 1:
        return f", until {_to_datetime(Moment(rule.until.seconds, None, is_date=True)):%Y-%m-%d}"
    until = _to_datetime(Moment(rule.until.seconds, None, is_date=False))
    seconds = f":{until.second:02}" if until.second else ""
    return f", until {until:%Y-%m-%d %H:%M}{seconds}" + (" UTC" if rule.until.is_utc else "")


def _describe_window(rules: Sequence[Rule], start: datetime | None) -> str | None:
    """Return "every 15 minutes from 09:00 to 17:00 on …" if the rules amount to just that; else None."""
    bare = {replace(rule, hours=(), minutes=(), seconds=()) for rule in rules}
    rule = bare.pop()
    plain = rule.frequency in {Frequency.DAILY, Frequency.WEEKLY} and rule.interval == 1 and rule.count is None
    if bare or not plain or rule.positions or rule.month_days or rule.year_days or rule.week_numbers:
        return None
    if (rule.frequency == Frequency.WEEKLY) != bool(rule.weekdays) or not all(one.hours for one in rules):
        return None
    times = sorted(
        {
            hour * 3600 + minute * 60 + second
            for one in rules
            for hour in one.hours
            for minute in one.minutes or ((start.minute,) if start else (0,))
            for second in one.seconds or ((start.second,) if start else (0,))
        }
    )
    steps = {later - earlier for earlier, later in pairwise(times)}
    if len(times) < _MIN_WINDOW_TIMES or len(steps) > 1:
        return None
    step = steps.pop()
    length, unit = next(
        (step // size, name) for size, name in ((3600, "hour"), (60, "minute"), (1, "second")) if step % size == 0
    )
    every = f"every {unit}" if length == 1 else f"every {length} {unit}s"
    first, last = (_format_time(at // 3600, at // 60 % 60, at % 60) for at in (times[0], times[-1]))
    days = f" on {_join_words(_WEEKDAYS[day.weekday] for day in rule.weekdays)}" if rule.weekdays else ""
    if frozenset(day.weekday for day in rule.weekdays) == _WORKING_DAYS:
        days = " on weekdays"
    return f"{every} from {first} to {last}{days}{_describe_months(rule)}"


def _describe_rule(rule: Rule, start: datetime | None) -> str:
    return _describe_occurrences(rule, start) + _describe_week_start(rule, start)


def _describe_week_start(rule: Rule, start: datetime | None) -> str:
    """Return on which day weeks begin, if the rule runs on other days than if they began on Monday."""
    text = f" (weeks begin on {_WEEKDAYS[rule.week_start]})" if rule.week_start else ""
    if rule.week_numbers:
        return text
    if rule.frequency != Frequency.WEEKLY or rule.interval == 1 or not rule.weekdays:
        return ""
    if start is not None and _list_days_of_first_week(rule, start, rule.week_start) == (
        _list_days_of_first_week(rule, start, 0)
    ):
        return ""
    return text


def _list_days_of_first_week(rule: Rule, start: datetime, week_start: int) -> set[int]:
    """Return the weekdays of a rule that its first week still has: those of all weeks that count are as far apart."""
    first = (start.weekday() - week_start) % len(_WEEKDAYS)
    return {day.weekday for day in rule.weekdays if (day.weekday - week_start) % len(_WEEKDAYS) >= first}


def _describe_occurrences(rule: Rule, start: datetime | None) -> str:
    if rule.positions and rule.frequency in {Frequency.WEEKLY, Frequency.DAILY}:
        return _describe_positions(rule, start)
    counted = _describe_counted_days(rule, start)
    text = _describe_days(rule, start) if counted is None else f"{_describe_interval(rule)} on {counted}"
    if not (_is_birthday(rule) and counted is None):
        text += _describe_months(rule)
    text += _describe_times(rule, start)
    if rule.positions and counted is None:
        text = f"the {_join_words(map(_format_ordinal, rule.positions))} of {text}"
    if rule.skip != "OMIT":
        neighbour = "last day before" if rule.skip == "BACKWARD" else "first day after"
        text += f" (or the {neighbour}, where there is no such day)"
    elif rule.frequency == Frequency.MONTHLY and any(day > _SHORTEST_MONTH for day in rule.month_days):
        text += " (only in months that have that day)"
    return text


def _describe_counted_days(rule: Rule, start: datetime | None) -> str | None:
    """Return "the last working day" for a rule that says so with BYSETPOS; None for any other rule."""
    days = frozenset(day.weekday for day in rule.weekdays)
    plain = rule.positions and not any(day.nth for day in rule.weekdays)
    months_apart = rule.frequency == Frequency.MONTHLY or (rule.frequency == Frequency.YEARLY and len(rule.months) < 2)  # noqa: PLR2004
    others = rule.month_days or rule.year_days or rule.week_numbers or _count_times(rule, start) != 1
    if not plain or not months_apart or others or days not in _DAY_GROUPS:
        return None
    return f"the {_join_words(map(_format_ordinal, rule.positions))} {_DAY_GROUPS[days]}"


def _describe_positions(rule: Rule, start: datetime | None) -> str:
    """Return the text of a rule whose BYSETPOS picks from the days of a week, from the times of a day, or from both."""
    weekdays = sorted(
        {day.weekday for day in rule.weekdays} or ({start.weekday()} if start else set()),
        key=lambda weekday: (weekday - rule.week_start) % len(_WEEKDAYS),
    )
    times, count = _describe_times(rule, start), _count_times(rule, start)
    ordinals = _join_words(map(_format_ordinal, sorted(rule.positions, key=lambda each: (each < 0, each))))
    if rule.frequency == Frequency.DAILY or len(weekdays) < 2:  # noqa: PLR2004 -- one day's times
        days = _describe_days(rule, start) + _describe_months(rule)
        if count == 1 and not {1, -1}.isdisjoint(rule.positions):
            return days + times  # it picks the only one
        chosen = times.removeprefix(" at ") if count <= _MAX_TIMES and times else f"the times{times}"
        return f"{days}, at the {ordinals} of {chosen}"
    every, days = _describe_interval(rule) + _describe_months(rule), _describe_weekday_spans(weekdays)
    if count == 1:
        return f"{every}, on the {ordinals} of {days}{times}"
    return f"{every}, at the {ordinals} of the times on {days}{times}"


def _describe_weekday_spans(weekdays: Sequence[int]) -> str:
    """Return days in a week's order, with runs of three or more as ranges: ``Monday to Friday``."""
    first = weekdays[0]
    numbers = [first + (weekday - first) % len(_WEEKDAYS) for weekday in weekdays]
    names = (_WEEKDAYS * 2)[: first + len(_WEEKDAYS)]
    return _join_words(
        " to ".join(names[int(each)] for each in span.split(" to ")) for span in _describe_spans(numbers)
    )


def _describe_months(rule: Rule) -> str:
    return f" in {_join_words(_MONTHS[month - 1] for month in rule.months)}" if rule.months else ""


def _is_birthday(rule: Rule) -> bool:
    """Return whether day and month read best together: "on 24 December"."""
    return rule.frequency == Frequency.YEARLY and not (rule.weekdays or rule.year_days or rule.week_numbers)


def _describe_days(rule: Rule, start: datetime | None) -> str:  # noqa: C901 -- one branch for each part of a rule
    weekdays, month_days, months = rule.weekdays, rule.month_days, rule.months
    named = weekdays or month_days or rule.year_days or rule.week_numbers
    if start is not None and not named:
        if rule.frequency == Frequency.WEEKLY:
            weekdays = (NthDay(0, start.weekday()),)
        elif rule.frequency <= Frequency.MONTHLY:
            month_days = (start.day,)
            months = months or (start.month,)
    every = _describe_interval(rule)
    if rule.frequency == Frequency.DAILY and weekdays and rule.interval > 1:
        left_out = sorted(_EVERY_DAY - {day.weekday for day in weekdays})
        return f"{every} except {_join_words(f'{_WEEKDAYS[day]}s' for day in left_out)}" if left_out else every
    if rule.frequency in {Frequency.WEEKLY, Frequency.DAILY} and weekdays and rule.interval == 1:
        every = _describe_weekdays(weekdays)
    elif weekdays:
        each = "every " if rule.frequency == Frequency.MONTHLY and not rule.positions else ""
        every += f" on {_join_words(_describe_weekday(day, each) for day in weekdays)}"
    if month_days:
        days = _join_words(map(_describe_month_day, month_days))
        if _is_birthday(rule) and months:
            every += f" on {days} of {_join_words(_MONTHS[month - 1] for month in months)}"
        else:
            every += f" on {days}" + (" of the month" if rule.frequency != Frequency.MONTHLY else "")
    if rule.year_days:
        every += f" on the {_join_words(map(_format_ordinal, rule.year_days))} day of the year"
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


def _describe_weekday(day: NthDay, each: str) -> str:
    name = _WEEKDAYS[day.weekday]
    return f"the {_format_ordinal(day.nth)} {name}" if day.nth else f"{each}{name}"


def _describe_month_day(number: int) -> str:
    if number == -1:
        return "the last day"
    return f"the {_format_ordinal(number)}" + (" day" if number < 0 else "")


def _describe_times(rule: Rule, start: datetime | None) -> str:
    """Return the times of day; for rules finer than a day, only what limits them."""
    if rule.frequency <= Frequency.DAILY:
        hours, minutes, seconds = _find_times(rule, start)
        if hours and minutes and _count_times(rule, start) <= _MAX_TIMES:
            times = (_format_time(hour, minute, second) for hour in hours for minute in minutes for second in seconds)
            return f" at {_join_words(times)}"
    text = ""
    if rule.minutes:
        text += f" at minute {_join_words(_describe_spans(rule.minutes))}"
    if rule.hours:
        text += f" in hour {_join_words(_describe_spans(rule.hours))}"
    if rule.seconds and rule.seconds != (0,):
        text += f" at second {_join_words(_describe_spans(rule.seconds))}"
    return text


def _find_times(rule: Rule, start: datetime | None) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Return the hours, minutes and seconds of a rule that is not finer than a day."""
    hours = rule.hours or ((start.hour,) if start else ())
    minutes = rule.minutes or ((start.minute,) if start else (0,) if rule.hours else ())
    return hours, minutes, rule.seconds or ((start.second,) if start else (0,))


def _count_times(rule: Rule, start: datetime | None) -> int:
    return prod(max(1, len(part)) for part in _find_times(rule, start))


def _format_time(hour: int, minute: int, second: int) -> str:
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def _describe_spans(numbers: Sequence[int]) -> list[str]:
    """Return ascending numbers with runs of three or more as ranges: ``9 to 17``."""
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


def _format_ordinal(number: int) -> str:
    if number < 0:
        return "last" if number == -1 else f"{_format_ordinal(-number)} last"
    teens = number % 100 in range(11, 14)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _pluralize(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _join_words(items: Iterable[str]) -> str:
    *others, last = items
    return f"{', '.join(others)} and {last}" if others else last


def _format_date_time(local: datetime) -> str:
    return f"{local:%Y-%m-%d} at {_format_time(local.hour, local.minute, local.second)}"


def _format_moment(text: str) -> str:
    """Return a date or a date and time, for a list."""
    moment = parse_moment(text, "date")
    local = _to_datetime(moment)
    if moment.is_date:
        return f"{local:%Y-%m-%d}"
    return _format_date_time(local) + (" " + text[19:] if moment.offset is not None else "")


def _to_datetime(moment: Moment) -> datetime:
    return EPOCH + timedelta(seconds=moment.wall)
