"""A schedule as a person or a program writes it: in a notation, or in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.domain.recurrence.parse import is_notation
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.errors import AmbiguousSchedule, InvalidSchedule

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.language.result import Alternative

MAX_SHOWN = 60
"""How many characters of a text that was not understood its error repeats."""


@dataclass(frozen=True, slots=True)
class ScheduleText:
    """What a text means.

    Attributes:
        schedule: The schedule.
        title: What it is for, where the words say that as well.
        assumptions: What the words left open and how it was taken, each a sentence.
    """

    schedule: Schedule
    title: str | None = None
    assumptions: tuple[str, ...] = ()


def read_schedule(
    text: str, *, now: datetime, timezone: str = "UTC", current: Schedule | None = None, locale: str = "en"
) -> ScheduleText:
    """Return the schedule that a text means, whether it is a notation (see `Schedule.parse`) or plain words.

    Args:
        text: An RRULE, a cron expression, an iCalendar block, an instant, a duration from now, or words.
        now: What "tomorrow" and durations count from; aware.
        timezone: The zone of all times that name none.
        current: The schedule that words such as "make it 10 instead" change.
        locale: The language of the words, such as ``en-US``.

    Raises:
        AmbiguousSchedule: The words have several meanings; `readings` lists them.
        InvalidSchedule: There is no such schedule, or the words are not understood. `field` is ``schedule``, or the
            part of the notation that is wrong.
    """
    if is_notation(text):
        return ScheduleText(Schedule.parse(text, timezone=timezone, now=now))
    from cloudsched.language.read import read  # noqa: PLC0415 - only words need the grammar

    reading = read(text, now=now, timezone=timezone, current=current, locale=locale)
    if reading.schedule is not None:
        return ScheduleText(reading.schedule, reading.title, reading.assumptions)
    shown = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    hint = "; ".join(problem.hint for problem in reading.problems)
    if reading.readings:
        choices = "; or ".join(repr(each.description) for each in reading.readings)
        readings = tuple(_to_json(each) for each in reading.readings)
        raise AmbiguousSchedule("schedule", f"{shown!r} can mean {choices}", "Choose one of them.", readings)
    code = reading.problems[0].code if reading.problems else "not-understood"
    raise InvalidSchedule("schedule", f"{shown!r} is not understood ({code})", hint)


def _to_json(reading: Alternative) -> dict[str, object]:
    schedule = reading.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {"schedule": schedule, "description": reading.description, "label": reading.label}
