"""Read a schedule from text, a notation such as cron or plain words, and explain a refusal by the closest phrase."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from cloudsched.domain.recurrence.notations import is_notation
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.assumptions import list_surprises
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import AmbiguousSchedule, InvalidInput, InvalidSchedule
from cloudsched.language import messages
from cloudsched.language.result import UNREAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.language.result import Reading

DEFAULT_TIME = time(9)
"""The time of day of words that name a day and no time, unless a setting says otherwise."""
_FAR: Final = timedelta(days=150)
"""A move that is longer than this was meant so only if its words say the year."""
_DATE_LENGTH: Final = len("2027-01-01")
MAX_SHOWN = 60
"""The number of characters of the text that an error message repeats."""


@dataclass(frozen=True, slots=True)
class ScheduleText:
    """The meaning of a text.

    Attributes:
        schedule: The schedule.
        title: The title in the words, if there is one.
        assumptions: The details that the words left open with their decisions, one sentence each.
        language: The language of the words, such as ``de``. A notation has the one that was asked for, or English.
    """

    schedule: Schedule
    title: str | None = None
    assumptions: tuple[str, ...] = ()
    language: str = "en"


def read_schedule(  # noqa: PLR0913 -- each is named
    text: str,
    *,
    now: datetime,
    timezone: str = "UTC",
    current: Schedule | None = None,
    locale: str | None = None,
    default_time: time = DEFAULT_TIME,
    default_calendar: str | None = None,
    has_title: bool = False,
) -> ScheduleText:
    """Return the schedule that a text means, whether it is a notation (see `Schedule.parse`) or plain words.

    Args:
        text: An RRULE, a cron expression, an iCalendar block, an instant, a duration from now, or words.
        now: The current time, aware. "Tomorrow" and durations count from it.
        timezone: The IANA time zone, unless the text names one.
        current: The schedule that words such as "make it 10 instead" change.
        locale: The language of the words, such as ``en-US``. If None, it is detected from them.
        default_time: The time of day of words that name a day and no time.
        default_calendar: The id of the calendar that words such as "except holidays" mean. None if there is none.
        has_title: True if the title stands elsewhere, so that every word of the text has to belong to the schedule.

    Raises:
        AmbiguousSchedule: The words have several meanings, which `readings` lists.
        InvalidSchedule: The schedule is invalid, or the words are not understood. `field` is ``schedule``, or the part
            of the notation that is wrong.
    """
    if is_notation(text):
        parsed = Schedule.parse(text, timezone=timezone, now=now)
        language = locale or "en"
        return ScheduleText(parsed, None, list_surprises(parsed, language), language)
    from cloudsched.language.reader import read  # noqa: PLC0415 - only words need the grammar

    read_words = partial(
        read,
        now=now,
        timezone=timezone,
        current=current,
        locale=locale,
        default_time=(default_time.hour, default_time.minute),
        default_calendar=default_calendar,
        has_title=not has_title,
    )
    reading = read_words(text)
    if reading.schedule is None:
        raise _refuse(text, reading, read_words)
    return ScheduleText(reading.schedule, reading.title, reading.assumptions, reading.language)


def _refuse(text: str, reading: Reading, read_words: Callable[[str], Reading]) -> InvalidSchedule:
    """Return the error for words that have several meanings or none, in their language."""
    tell = partial(messages.tell, reading.language)
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    if reading.readings:
        choices = tell("; or ").join(repr(each.description) for each in reading.readings)
        what = tell("{text!r} can mean {choices}", text=shown, choices=choices)
        return AmbiguousSchedule(
            "schedule",
            what,
            tell("Say what is meant."),
            tuple(
                {
                    "schedule": each.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True),
                    "description": each.description,
                    "label": each.label,
                }
                for each in reading.readings
            ),
        )

    hint = "; ".join(problem.hint for problem in reading.problems)
    closest = _find_closest(text, reading, read_words)
    if closest is not None:
        phrase, meaning = closest
        hint += tell("; the closest that is understood is {phrase!r}: {meaning}", phrase=phrase, meaning=meaning)

    words = reading.problems[0].words
    if all(problem.code not in {*UNREAD, "no-update"} for problem in reading.problems):
        what = tell("{text!r} cannot be scheduled", text=shown)
    elif words:
        what = tell("{text!r} is not understood at {words!r}", text=shown, words=words)
    else:
        what = tell("{text!r} is not understood", text=shown)
    return InvalidSchedule("schedule", what, hint, words or shown)


def read_until(
    text: str, *, now: datetime, timezone: str, default_time: time = DEFAULT_TIME, field: str = "duration"
) -> datetime:
    """Return the one instant that a text means: after ``PT10M`` or ``10 minutes``, or at ``tomorrow at 9``.

    Raises InvalidInput for the field if it means none, or several.
    """
    for words in (text, f"in {text}"):
        try:
            found = read_schedule(words, now=now, timezone=timezone, default_time=default_time, has_title=True)
        except InvalidSchedule:
            continue
        at = found.schedule.anchor(now).first() if found.schedule.is_single_time else None
        if at is not None:
            return at
    hint = "Give a length of time, PT10M or 10 minutes, or one instant: tomorrow at 9:00."
    raise InvalidInput(field, f"{text[:MAX_SHOWN]!r} is not understood", hint)


_MAKE: Final = (("make", 1),)


def read_new_time(text: str, occurrence: datetime, *, now: datetime, timezone: str) -> datetime:
    """Return the instant to which words move one occurrence.

    A time alone is on its day, and a day alone has its time: "17:00", "Friday". "An hour later" counts from the
    occurrence, and "in two hours" from now.

    Raises InvalidInput for ``to`` if it means none to come, or several.
    """
    if is_notation(text) and len(text) != _DATE_LENGTH:  # a date alone has no time of its own
        return read_until(text, now=now, timezone=timezone, field="to")
    from cloudsched.language.reader import Reader  # noqa: PLC0415 - only words need the grammar

    once = Schedule(at=occurrence, timezone=timezone)
    reading = Reader(text, now, timezone, current=once, has_title=False, lead=_MAKE).read()
    moved = reading.schedule
    found = moved.anchor(now).first() if moved is not None and moved.is_single_time else None
    if found is None:
        hint = "Give its new time, day or both: 17:00, tomorrow, Friday at 10:00, an hour later."
        if reading.readings:
            hint = "Write a time as 05:00 or 5 pm, and a day by its date."
        reasons = "; ".join(each.hint for each in reading.problems if each.code != "no-update")
        raise InvalidInput("to", reasons or f"{text[:MAX_SHOWN]!r} is not one time", hint)
    local = found.astimezone(load_tzinfo(timezone))
    if found - occurrence >= _FAR and str(local.year) not in text:
        # A day that has just passed comes again in a year, which is not what the words mean.
        raise InvalidInput("to", f"can mean {local:%Y-%m-%d at %H:%M}", f"If so, give {local:%Y-%m-%dT%H:%M}.")
    return found


def _find_closest(text: str, refused: Reading, read: Callable[[str], Reading]) -> tuple[str, str] | None:
    """Return a phrase with an "in" before it, or without its unknown words, and its schedule. None if there is none."""
    problem = refused.problems[0]
    begin, end = problem.span if problem.code in {*UNREAD, "no-update"} else (0, 0)
    for phrase in (f"in {text}", " ".join((text[:begin] + text[end:]).split())):
        found = read(phrase)
        if found.schedule is not None:
            return phrase, found.schedule.describe(found.language)
    return None
