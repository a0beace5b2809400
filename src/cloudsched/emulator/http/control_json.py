"""Parse the control API's JSON: objects, instants, durations and faults."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import Any, Final

from cloudsched.emulator.model.faults import Faults
from cloudsched.emulator.model.names import parse_instant

_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_FAULTS: Final = {
    "duplicate": "duplicate",
    "outOfOrder": "out_of_order",
    "late": "late",
    "dropAnswer": "drop_answer",
    "timeOut": "time_out",
    "seed": "seed",
    "lateBy": "late_by",
    "shuffleWithin": "shuffle_within",
}
_DURATION_FAULTS: Final = frozenset({"lateBy", "shuffleWithin"})


class InvalidControlRequest(ValueError):
    """The request is invalid. The message says what is expected."""


def read_object(body: bytes) -> dict[str, Any]:
    """Parse a body as a JSON object.

    Raises:
        InvalidControlRequest: if it is not one.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidControlRequest(f"The body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidControlRequest("The body must be a JSON object.")
    return content


def read_instant(text: object) -> datetime:
    """Parse an RFC 3339 instant.

    Raises:
        InvalidControlRequest: if it is invalid or has no UTC offset.
    """
    try:
        return parse_instant(text if isinstance(text, str) else repr(text))
    except ValueError as error:
        raise InvalidControlRequest(str(error)) from None


def read_duration(value: object) -> timedelta:
    """Parse an ISO 8601 duration in weeks, days, hours, minutes and seconds, or a number of seconds.

    Raises:
        InvalidControlRequest: if it is invalid or negative.
    """
    problem = InvalidControlRequest(f'{value!r} is not a duration, for example "P30D", "PT1H30M" or 90 (seconds).')
    try:
        if isinstance(value, str) and len(value) > 1 and (match := _DURATION.fullmatch(value)):
            return timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise problem from None
    raise problem


def read_faults(content: dict[str, Any]) -> Faults:
    """Parse an object of faults.

    Raises:
        InvalidControlRequest: for an unknown name or an invalid value.
    """
    settings: dict[str, Any] = {}
    for name, value in content.items():
        if name not in _FAULTS:
            raise InvalidControlRequest(f"{name!r} is not a fault; choose from {', '.join(_FAULTS)}.")
        if name in _DURATION_FAULTS:
            settings[_FAULTS[name]] = read_duration(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            settings[_FAULTS[name]] = value
        else:
            raise InvalidControlRequest(f"{name} must be a number, not {value!r}.")
    try:
        return Faults(**settings)
    except ValueError as error:
        raise InvalidControlRequest(str(error)) from None


def write_faults(faults: Faults) -> dict[str, Any]:
    """Return faults as an object that `read_faults` can read."""
    return {
        name: getattr(faults, field).total_seconds() if name in _DURATION_FAULTS else getattr(faults, field)
        for name, field in _FAULTS.items()
    }
