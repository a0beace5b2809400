"""What the tools answer: the zone that was asked for, a description, and the next five instants stand in each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.client.views import TaskView
    from cloudsched.domain.documents.execution import Execution

SHOWN: Final = 5
"""How many instants an answer has."""
MAX_CONTENT: Final = 4_000
"""How much of an execution's result is shown, in characters."""


class When(BaseModel):
    """An instant."""

    local: str = Field(description="In the time zone of the call, with its offset.")
    utc: str


class ScheduleAnswer(BaseModel):
    """What a schedule means."""

    timezone: str = Field(description="The time zone of the call.")
    description: str = Field(description="The schedule in words.")
    next: list[When] = Field(description="The next five instants; fewer if there are no more.")
    assumptions: list[str] = Field(default=[], description="What the words left open. Show them to the user.")


class TaskAnswer(ScheduleAnswer):
    """A task."""

    task_id: str
    title: str
    status: str
    handler: str
    message: str = ""
    snoozed_until: When | None = Field(None, description="When what has run last runs again, if it was snoozed.")


class CreatedAnswer(TaskAnswer):
    """A task that was created."""

    idempotency_key: str = Field(description="Repeat the call with it if you are not sure that the answer arrived.")


class RunAnswer(BaseModel):
    """A run of a task."""

    execution_id: str
    scheduled_for: When
    status: str
    result: str = ""
    error: str = ""


class TaskHistoryAnswer(TaskAnswer):
    """A task with its latest runs, the latest first."""

    history: list[RunAnswer]


class TaskListAnswer(BaseModel):
    """Tasks, the newest first."""

    timezone: str = Field(description="The time zone of the call.")
    tasks: list[TaskAnswer]
    has_more: bool


def to_when(at: datetime, zone: ZoneInfo) -> When:
    """Return an instant in a zone and in UTC."""
    return When(local=at.astimezone(zone).isoformat(), utc=at.astimezone(ZoneInfo("UTC")).isoformat())


def describe_task(task: TaskView, upcoming: Iterable[datetime], zone: ZoneInfo) -> dict[str, Any]:
    """Return the fields of a task's answer."""
    return {
        "timezone": zone.key,
        "description": task.schedule.describe(),
        "assumptions": [] if task.read_back is None else list(task.read_back.assumed),
        "next": [to_when(at, zone) for at in upcoming],
        "task_id": task.id,
        "title": task.title,
        "status": str(task.status),
        "handler": task.handler,
        "message": task.message,
        "snoozed_until": None if task.snoozed_until is None else to_when(task.snoozed_until, zone),
    }


def describe_runs(executions: Sequence[Execution], zone: ZoneInfo) -> list[RunAnswer]:
    """Return the answers of runs."""
    return [
        RunAnswer(
            execution_id=each.id,
            scheduled_for=to_when(each.scheduled_for, zone),
            status=str(each.status),
            result="" if each.content is None else str(each.content)[:MAX_CONTENT],
            error="" if each.error is None else f"{each.error.type}: {each.error.message}"[:MAX_CONTENT],
        )
        for each in executions
    ]
