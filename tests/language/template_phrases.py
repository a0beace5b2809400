"""Phrases generated from templates; the expected times come from a plain walk over the calendar, not from a library."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import NamedTuple

from tests.language.walk import NOW, On, dom, nth, nth_of, walk

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
ORDINALS = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}


class Made(NamedTuple):
    """A phrase and the next local times it means, in ISO 8601."""

    phrase: str
    expected: tuple[str, ...]
    is_once: bool


class _Part(NamedTuple):
    text: str
    on: On


def make(random: Random, count: int) -> Iterator[Made]:
    """Yield phrases: four in five repeat, the others are one-off."""
    made = 0
    while made < count:
        one = _make_once(random) if random.random() < 0.2 else _make_recurring(random)
        if one is not None:
            made += 1
            yield one


def _make_times(random: Random) -> tuple[str, list[str]]:
    hours = sorted(random.sample(range(7, 23), random.choice((1, 1, 1, 2, 3))))
    minute = random.choice((0, 0, 15, 30, 45))
    style = random.choice(("24", "pm", "noon"))
    if style == "noon":
        return "at noon", ["12:00"]
    words = []
    for hour in hours:
        if style == "24":
            words.append(f"{hour:02}:{minute:02}")
        else:
            half = "am" if hour < 12 else "pm"
            words.append(f"{(hour - 1) % 12 + 1}" + (f":{minute:02}" if minute else "") + half)
    return "at " + _join_words(words), [f"{hour:02}:{minute:02}" for hour in hours]


def _join_words(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _make_days(random: Random) -> _Part:
    return random.choice(
        (
            _make_every_day,
            _make_weekdays,
            _make_weekend,
            _make_named,
            _make_range,
            _make_month_day,
            _make_nth,
            _make_last_day,
            _make_working_day,
            _make_yearly,
            _make_interval,
        )
    )(random)


def _make_every_day(random: Random) -> _Part:
    return _Part(random.choice(("every day", "daily", "each day", "everyday")), lambda _: True)


def _make_weekdays(random: Random) -> _Part:
    return _Part(random.choice(("every weekday", "on weekdays", "weekdays")), lambda day: day.weekday() < 5)


def _make_weekend(random: Random) -> _Part:
    return _Part(random.choice(("on weekends", "every weekend")), lambda day: day.weekday() >= 5)


def _make_named(random: Random) -> _Part:
    chosen = random.sample(range(7), random.choice((1, 1, 2, 3)))
    names = [DAYS[day] for day in chosen]
    text = random.choice(("every " + _join_words(names), "on " + _join_words([f"{name}s" for name in names])))
    return _Part(text, lambda day: day.weekday() in chosen)


def _make_range(random: Random) -> _Part:
    first, length = random.randrange(7), random.randrange(1, 6)
    chosen = {(first + step) % 7 for step in range(length + 1)}
    return _Part(f"every {DAYS[first]} to {DAYS[(first + length) % 7]}", lambda day: day.weekday() in chosen)


def _make_month_day(random: Random) -> _Part:
    chosen = sorted(random.sample(range(1, 29), random.choice((1, 1, 2))))
    text = (
        "on the "
        + _join_words([format_ordinal(number) for number in chosen])
        + random.choice((" of every month", " of each month"))
    )
    return _Part(text, lambda day: day.day in chosen)


def _make_nth(random: Random) -> _Part:
    number, weekday = random.choice(list(ORDINALS)), random.randrange(7)
    text = f"on the {ORDINALS[number]} {DAYS[weekday]} of {random.choice(('every', 'each'))} month"
    return _Part(text, nth(number, weekday))


def _make_last_day(random: Random) -> _Part:
    return _Part(f"on the last day of {random.choice(('every', 'each'))} month", dom(-1))


def _make_working_day(random: Random) -> _Part:
    first = random.random() < 0.5
    word = random.choice(("working day", "business day", "weekday"))
    on = nth_of(1 if first else -1, range(5))
    return _Part(f"on the {'first' if first else 'last'} {word} of every month", on)


def _make_yearly(random: Random) -> _Part:
    month, number = random.randrange(1, 13), random.randrange(1, 29)
    text = random.choice(
        (f"every year on {MONTHS[month - 1]} {number}", f"every {format_ordinal(number)} of {MONTHS[month - 1]}")
    )
    return _Part(text, lambda day: (day.month, day.day) == (month, number))


def _make_interval(random: Random) -> _Part:
    interval, weekday = random.choice((2, 3, 4)), random.choice((0, 1, 2, 3, 5, 6))  # today would be in doubt
    first = NOW.date() + timedelta(days=(weekday - NOW.weekday() - 1) % 7 + 1)
    every = f"every {interval} weeks" if interval > 2 or random.random() < 0.5 else "every other week"
    return _Part(f"{every} on {DAYS[weekday]}", lambda day: (day - first).days % (7 * interval) == 0)


def format_ordinal(number: int) -> str:
    teens = number % 100 in range(11, 14)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _make_recurring(random: Random) -> Made | None:
    days, (at, times) = _make_days(random), _make_times(random)
    on, start, end, most = days.on, NOW.date(), None, 6
    is_weekly = days.text.startswith(("every other", "every 2", "every 3", "every 4"))
    text = random.choice((f"{days.text} {at}", f"{at} {days.text}"))
    bound = random.choice(("", "", "", "except", "months", "until", "start", "count"))
    if (
        bound == "except"
        and days.text.split()[-1] in {"day", "daily", "everyday", "weekday", "weekdays"}
        and "the" not in text
    ):
        out = random.randrange(5)
        text, inner = f"{text} except {DAYS[out]}s", on
        on = lambda day: inner(day) and day.weekday() != out  # noqa: E731 -- one more condition
    elif bound == "months" and not is_weekly and days.text in {"every day", "daily", "every weekday", "on weekends"}:
        months = sorted(random.sample(range(1, 13), 2))
        text, inner = f"{text} in {MONTHS[months[0] - 1]} and {MONTHS[months[1] - 1]}", on
        on = lambda day: inner(day) and day.month in months  # noqa: E731 -- see above
    elif bound == "until":
        end = NOW.date() + timedelta(days=random.randrange(40, 400))
        text += f" until {MONTHS[end.month - 1]} {end.day}, {end.year}"
    elif bound == "start" and not is_weekly:
        start = NOW.date() + timedelta(days=random.randrange(3, 300))
        text += f" starting {MONTHS[start.month - 1]} {start.day}, {start.year}"
    elif bound == "count" and len(times) == 1:
        most = random.randrange(2, 6)
        text += f" for {most} times"
    if random.random() < 0.15:
        text = random.choice(("remind me to water the plants ", "team lunch ", "please ")) + text
    expected = tuple(walk(on, times, most, start, end))
    return Made(text, expected, is_once=False) if expected else None


def _make_once(random: Random) -> Made:
    at, time = ("at 8am", (8, 0)) if random.random() < 0.5 else ("at 15:30", (15, 30))
    kind = random.choice(("minutes", "tomorrow", "days", "date", "weekday", "nth"))
    today = NOW.date()
    if kind == "minutes":
        count = random.randrange(2, 90)
        return Made(f"in {count} minutes", ((NOW + timedelta(minutes=count)).isoformat(),), is_once=True)
    if kind == "tomorrow":
        day, text = today + timedelta(days=1), "tomorrow"
    elif kind == "days":
        count = random.randrange(2, 30)
        day, text = today + timedelta(days=count), f"in {count} days"
    elif kind == "weekday":
        day = today + timedelta(days=random.randrange(1, 7))
        text = f"on {DAYS[day.weekday()]}"
    elif kind == "date":
        day = today + timedelta(days=random.randrange(2, 700))
        text = f"on {MONTHS[day.month - 1]} {day.day}, {day.year}"
    else:
        month, number, weekday = random.randrange(1, 13), random.choice((1, 2, 3, -1)), random.randrange(7)
        ahead = (today + timedelta(days=n) for n in range(1, 800))
        day = next(one for one in ahead if one.month == month and nth(number, weekday)(one))
        text = f"on the {ORDINALS[number]} {DAYS[weekday]} of {MONTHS[month - 1]}"
    moment = datetime(day.year, day.month, day.day, *time)  # noqa: DTZ001 -- local to ZONE
    return Made(f"{text} {at}", (moment.isoformat(),), is_once=True)
