"""Schedules that are declared in code with ``@app.scheduled``."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cloudsched.domain.documents.task import TaskId
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import Misconfigured

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_TASK_ID: TypeAdapter[str] = TypeAdapter(TaskId, config=ConfigDict(defer_build=True))


@dataclass(frozen=True, slots=True)
class Declaration:
    """A task that the code declares."""

    id: str
    handler: str
    schedule: Schedule | datetime | str
    timezone: str | None
    owner: str
    payload: Any
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of its task, by their Python names."""
    is_paused: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of its task, by their Python names."""
        given = {"timezone": self.timezone, "payload": self.payload}
        known = {name: value for name, value in given.items() if value is not None}
        return {
            "id": self.id,
            "handler": self.handler,
            "schedule": self.schedule,
            "owner": self.owner,
            **known,
            **self.more,
        }


def check_declaration(declaration: Declaration, ids: Collection[str]) -> Declaration:
    """Return a declaration that can become a task, as far as that is known before its schedule is read.

    Raises:
        Misconfigured: Its id is taken or invalid, or its schedule is of no known type.
    """
    about = f"The schedule of handler {declaration.handler!r}"
    if declaration.id in ids:
        raise Misconfigured(f"{about}: there is another one with the id {declaration.id!r}; give each an id: id=….")
    try:
        _TASK_ID.validate_python(declaration.id)
    except ValidationError:
        raise Misconfigured(
            f"{about}: {declaration.id!r} cannot be a task's id; give one of letters, digits, - and _: id=…."
        ) from None
    if not isinstance(declaration.schedule, Schedule | datetime | str):
        raise Misconfigured(
            f'{about} is {declaration.schedule!r}; give words ("every day at 9"), cron or a Schedule, such as '
            "Schedule.every(timedelta(…)) to repeat, Schedule.after(timedelta(…)) to run once after it."
        )
    if declaration.timezone is not None and not isinstance(declaration.schedule, str):
        raise Misconfigured(f"{about}: timezone is for words and cron; a Schedule has its own.")
    return declaration
