"""Parse and check resource names: `projects/P/locations/L/queues/Q/tasks/T`.

Source: the comments of `google/cloud/tasks/v2/{queue,task}.proto`; the error texts were recorded from the service.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cloudsched.emulator.model.errors import invalid_argument

_PROJECT: Final = r"[A-Za-z0-9.:\-]{1,100}"
_LOCATION: Final = r"[A-Za-z0-9\-]{1,100}"
_LOCATION_NAME: Final = re.compile(rf"projects/({_PROJECT})/locations/({_LOCATION})")
_QUEUE_NAME: Final = re.compile(rf"projects/({_PROJECT})/locations/({_LOCATION})/queues/([A-Za-z0-9\-]{{1,100}})")
_TASK_NAME: Final = re.compile(rf"({_QUEUE_NAME.pattern})/tasks/([^/]*)", re.DOTALL)
_TASK_ID: Final = re.compile(r"[A-Za-z0-9_\-]{1,500}")

QUEUE_FORM: Final = 'Queue name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>".'
TASK_FORM: Final = (
    'Task name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>/queues/<QUEUE_ID>/tasks/<TASK_ID>".'
)
LOCATION_FORM: Final = 'Location name must be formatted: "projects/<PROJECT_ID>/locations/<LOCATION_ID>".'


class QueueName(NamedTuple):
    """The parts of a queue's name."""

    project: str
    location: str
    queue: str

    @property
    def parent(self) -> str:
        """The location that holds the queue."""
        return f"projects/{self.project}/locations/{self.location}"


def check_location(name: str) -> str:
    """Check the name of a location and return it.

    Raises:
        RpcError: INVALID_ARGUMENT if it is malformed.
    """
    if not _LOCATION_NAME.fullmatch(name):
        raise invalid_argument(LOCATION_FORM)
    return name


def split_queue(name: str) -> QueueName:
    """Split a queue's name into its parts.

    Raises:
        RpcError: INVALID_ARGUMENT if it is malformed.
    """
    match = _QUEUE_NAME.fullmatch(name)
    if match is None:
        raise invalid_argument(QUEUE_FORM)
    return QueueName(*match.groups())


def check_queue(name: str) -> str:
    """Check the name of a queue and return it.

    Raises:
        RpcError: INVALID_ARGUMENT if it is malformed.
    """
    split_queue(name)
    return name


def split_task(name: str) -> tuple[str, str]:
    """Split a task's name into its queue's name and the task's id.

    Raises:
        RpcError: INVALID_ARGUMENT if the name or the id is malformed.
    """
    match = _TASK_NAME.fullmatch(name)
    if match is None:
        raise invalid_argument(TASK_FORM)
    task_id = match[5]
    if not _TASK_ID.fullmatch(task_id):
        raise invalid_argument(
            f'Task ID "{task_id}" can contain only letters ([A-Za-z]), numbers ([0-9]), hyphens (-), '
            "or underscores (_). Task ID must between 1 and 500 characters."
        )
    return match[1], task_id
