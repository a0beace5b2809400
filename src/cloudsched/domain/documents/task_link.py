"""Links from a record to the tasks whose schedules depend on it, such as a person whose time zone they follow."""

from __future__ import annotations

from typing import ClassVar

from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.task import owner_id_prefix


class TaskLink(Record):
    """A task that may depend on the record in whose name the link is (`owner`).

    It is written before the task, so that none is missed when the record changes.
    """

    collection: ClassVar[str] = "calendarLinks"

    task_id: str


def zone_key(owner: str) -> str:
    """Return the owner of the links from a person to the tasks that follow them. No other record has such an id."""
    return f"zone:{owner_id_prefix(owner).rstrip('-')}"


def link_id(key: str, task_id: str) -> str:
    """Return the id of the link from a record to a task."""
    return f"{key}.{task_id}"
