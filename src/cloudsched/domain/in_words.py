"""Values and pydantic's errors in words: a duration, the `repr` of a model, what is wrong with a field."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime, timedelta

    from pydantic import BaseModel, ValidationError

FEW: Final = 20
"""The most errors that are read one by one: the cost must not grow with the text of each of many."""
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86400
_MINUTES_ALONE: Final = 10
_DAYS_ALONE: Final = 30
_DECODER: Final = json.JSONDecoder()


def list_given(model: BaseModel) -> list[tuple[str | None, Any]]:
    """Return the fields of a model that differ from their defaults, with their values."""
    defaults = (
        (name, field.get_default(call_default_factory=True)) for name, field in type(model).model_fields.items()
    )
    return [(name, getattr(model, name)) for name, default in defaults if getattr(model, name) != default]


def to_words(span: timedelta) -> str:
    """Return a length of time in the largest unit of which it is a whole number."""
    seconds = round(span.total_seconds())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds // length} {unit}{'s' if seconds > length else ''}"
    return f"{seconds} second{'s' if seconds != 1 else ''}"


def say_duration(duration: timedelta) -> str:
    """Return a duration in at most two units: minutes alone from 10, days alone from 30, tenths below ten seconds."""
    seconds = duration.total_seconds()
    whole = int(seconds)
    if whole < _MINUTE:
        if 0.1 <= seconds < 10 and seconds != whole:  # noqa: PLR2004 - ten seconds
            return f"{int(seconds * 10) / 10:.1f} s"
        return f"{whole} s"
    if whole < _HOUR:
        minutes, rest = divmod(whole, _MINUTE)
        return _two(minutes, "min", rest, "s", alone=minutes >= _MINUTES_ALONE)
    if whole < _DAY:
        hours, rest = divmod(whole, _HOUR)
        return _two(hours, "h", rest // _MINUTE, "min")
    days, rest = divmod(whole, _DAY)
    return _two(days, "d", rest // _HOUR, "h", alone=days >= _DAYS_ALONE)


def _two(large: int, large_unit: str, small: int, small_unit: str, *, alone: bool = False) -> str:
    second = f" {small} {small_unit}" if small and not alone else ""
    return f"{large:,} {large_unit}{second}"


def find_first_error(error: ValidationError, rather: str = "") -> dict[str, Any]:
    """Return the type, the place (``loc``), the message and the context of the first error.

    `ValidationError.errors` makes a dict of each. A list of 100,000 wrong numbers takes it seven times as
    long as their validation did, so where there are many, only the first is read from the text that pydantic
    writes. Among few, one of the type `rather` comes first.
    """
    if error.error_count() <= FEW:
        errors = error.errors(include_url=False, include_input=False)
        return dict(next((each for each in errors if each["type"] == rather), errors[0]))
    first, _ = _DECODER.raw_decode(error.json(include_url=False, include_input=False), 1)
    return {**first, "loc": tuple(first["loc"])}


def list_errors(error: ValidationError, rather: str = "") -> list[dict[str, Any]]:
    """Return all errors like `find_first_error`, those of the type `rather` first.

    Return one if there are many.
    """
    if error.error_count() > FEW:
        return [find_first_error(error, rather)]
    errors = map(dict, error.errors(include_url=False, include_input=False))
    if rather:
        return sorted(errors, key=lambda each: each["type"] != rather)
    return list(errors)


_DURATION: Final = (
    "is no length of time",
    "Give seconds, such as 600, or an ISO 8601 duration, such as PT10M.",
)
_INSTANT: Final = ("is no instant", "Give RFC 3339 with an offset, such as 2027-01-01T09:00:00Z.")
NO_ZONE: Final = (
    "has no time zone",
    'Give its offset from UTC, as in 2027-01-01T09:00:00Z, or in Python tzinfo=UTC or tzinfo=ZoneInfo("Europe/Paris").',
)
_OBJECT: Final = ("Input should be an object", "Give its fields by their names, {…}.")
_SENTENCES: Final[Mapping[str, tuple[str, str]]] = {
    "time_delta_parsing": _DURATION,
    "time_delta_type": _DURATION,
    "datetime_parsing": _INSTANT,
    "datetime_from_date_parsing": _INSTANT,
    "datetime_type": _INSTANT,
    "timezone_aware": NO_ZONE,
    "model_type": _OBJECT,
    "dict_type": _OBJECT,
    "tuple_type": ("Input should be a list", "Put it into a list, also if it is one: [value]."),
}
"""Our words for some types of errors, for which pydantic's own words describe how it parses."""
_MEMBER: Final = re.compile(r"<\w+\.\w+: ('[^']*')>")
"""A member of an enumeration as Python writes it, which is how pydantic writes the values of a ``Literal``."""
_HINTS: Final = {"missing": "It is required."}


def describe_error(error: Mapping[str, Any], patterns: Mapping[str, str]) -> tuple[str, str]:
    """Return the problem and its remedy in words.

    `patterns` are the patterns of names, described in words.
    """
    kind = error["type"]
    said = _MEMBER.sub(r"\1", str(error["msg"]).removeprefix("Value error, "))
    words = patterns.get(str(error.get("ctx", {}).get("pattern")))
    if words:
        return (words, "")
    return _SENTENCES.get(kind, (said, _HINTS.get(kind, "")))


def say_clock(local: datetime) -> str:
    """Return a wall-clock time with its day, as in "Mon 4 Jan 2027 at 09:00". Seconds are said if there are any."""
    return f"{say_day(local)} at {f'{local:%H:%M:%S}'.removesuffix(':00')}"


def say_day(local: date) -> str:
    """Return a day, as in "Mon 4 Jan 2027"."""
    return f"{local:%a} {local.day} {local:%b} {local.year}"
