"""Parse and check resource names (`projects/P/locations/L/queues/Q/tasks/T`), and times as people write them.

Source: the comments of `google/cloud/tasks/v2/{queue,task}.proto`. The error texts were recorded from the
service.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from cloudsched.emulator.model.errors import invalid_argument, make_help, project_denied

_PROJECT: Final = r"[A-Za-z0-9.:\-]{1,100}"
_LOCATION: Final = r"[A-Za-z0-9\-]{1,100}"
_LOCATION_NAME: Final = re.compile(rf"projects/{_PROJECT}/locations/{_LOCATION}")
_QUEUE_NAME: Final = re.compile(rf"{_LOCATION_NAME.pattern}/queues/[A-Za-z0-9\-]{{1,100}}")
_TASK_NAME: Final = re.compile(rf"({_QUEUE_NAME.pattern})/tasks/([^/]*)", re.DOTALL)
_TASK_ID: Final = re.compile(r"[A-Za-z0-9_\-]{1,500}")

_QUEUE_FORM: Final = "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>"
QUEUE_FORM: Final = f'Queue name must be formatted: "{_QUEUE_FORM}".'
TASK_FORM: Final = f'Task name must be formatted: "{_QUEUE_FORM}/tasks/<TASK_ID>".'
_REFERENCE: Final = "https://cloud.google.com/tasks/docs/reference/rest/v2/projects.locations.queues"
_QUEUE_HELP: Final = make_help("Definition of queue name", f"{_REFERENCE}#Queue.FIELDS.name")
_TASK_HELP: Final = make_help("Definition of task ID", f"{_REFERENCE}.tasks#Task.FIELDS.name")


def check_location(name: str) -> str:
    """Check the name of a location and return it.

    A malformed one is PERMISSION_DENIED: the service takes its project for one that does not exist.
    """
    if not _LOCATION_NAME.fullmatch(name):
        raise project_denied(name.removeprefix("projects/").partition("/")[0])
    return name


def check_parent_queue(name: str) -> str:
    """Check the name of the queue in which a task is created or listed, and return it.

    It is PERMISSION_DENIED if it does not begin with a location, INVALID_ARGUMENT if it is malformed
    otherwise.
    """
    check_location(name.partition("/queues/")[0])
    return check_queue(name)


def check_queue(name: str) -> str:
    """Check the name of a queue and return it."""
    if not _QUEUE_NAME.fullmatch(name):
        raise invalid_argument(QUEUE_FORM, _QUEUE_HELP)
    return name


def split_task(name: str) -> tuple[str, str]:
    """Split a task's name into its queue's name and the task's id."""
    match = _TASK_NAME.fullmatch(name)
    if match is None:
        raise invalid_argument(TASK_FORM)
    task_id = match[2]
    if not _TASK_ID.fullmatch(task_id):
        raise invalid_argument(
            f'Task ID "{task_id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), '
            "or underscores (_). Task ID must between 1 and 500 characters.",
            _TASK_HELP,
        )
    return match[1], task_id


INSTANT_EXAMPLE: Final = "2027-01-31T09:00:00Z"


def parse_time(text: str) -> datetime:
    """Return a time as it is written: an instant in UTC if it has an offset, else a naive local time.

    Raises a ValueError that says how to write one.
    """
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:40]!r} is not an instant; write it like {INSTANT_EXAMPLE}.") from None


def parse_instant(text: str) -> datetime:
    """Return an instant in UTC. Raises a ValueError that says how to write one."""
    at = parse_time(text)
    if at.tzinfo is None:
        raise ValueError(f"{text[:40]!r} has no time zone; end it with Z for UTC.")
    return at


_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+(?:\.\d+)?)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


def parse_duration(value: object) -> timedelta:
    """Return an ISO 8601 duration in weeks, days, hours, minutes and seconds, or a number of seconds."""
    problem = ValueError(f'{value!r} is not a duration, for example "P30D", "PT1H30M" or 90 (seconds).')
    try:
        if isinstance(value, str) and len(value) > 1 and (match := _DURATION.fullmatch(value)):
            return timedelta(**{unit: float(number) for unit, number in match.groupdict(default="0").items()})
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise problem from None
    raise problem
