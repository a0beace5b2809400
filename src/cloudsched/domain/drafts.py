"""What a caller says to create or change a task, and the task that follows from it.

Times: without a schedule the task runs once, in five minutes. A schedule without DTSTART begins then, too. An instant
in the past, or nearer than the configured lead, is refused; a recurring schedule that began in the past goes on with
its first occurrence from now.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self, get_args

from pydantic import BaseModel, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from cloudsched.domain.children import HANDLER
from cloudsched.domain.document import Value
from cloudsched.domain.lifecycle import Step, moved, pumped, settled
from cloudsched.domain.planning import occurrence_from
from cloudsched.domain.schedule import Schedule
from cloudsched.domain.task import Owner, Task, TaskId, TaskStatus, Wish
from cloudsched.errors import InvalidInput, InvalidSchedule


@dataclass(frozen=True, slots=True)
class LeadTimes:
    """How soon a task may run, and when it does if its caller gives no time."""

    default: timedelta = timedelta(minutes=5)
    """When the first run is, from now, if the caller gives no time."""
    minimum: timedelta = timedelta(0)
    """The least time between a task's creation and its first run."""


class TaskDraft(Wish):
    """What a caller says about a task that is to be created, or put in place of an older one of the same id."""

    id: TaskId | None = None
    """The caller's own stable id; a random UUID if there is none."""
    owner: Owner
    schedule: Schedule | None = None
    """When it runs: once in five minutes if there is none."""

    @model_validator(mode="before")
    @classmethod
    def _children_or_handler(cls, data: object) -> object:
        """Take the built-in handler where there are children, and nowhere else."""
        if not isinstance(data, dict):
            return data
        handler, children = data.get("handler"), data.get("children")
        if children and handler is not None and handler != HANDLER:
            raise InvalidInput("children", "are given beside a handler", "Give one or the other.")
        if not children and handler == HANDLER:
            return {name: value for name, value in data.items() if name != "handler"}
        return {**data, "handler": HANDLER} if children else data

    @classmethod
    def from_wire(cls, data: object) -> Self:
        """Read a draft that came as JSON.

        Raises:
            InvalidInput: It does not fit; `field` names the first thing that is wrong.
        """
        try:
            return cls.model_validate(data, by_alias=True, by_name=False)
        except InvalidSchedule as error:
            raise InvalidSchedule(f"schedule.{error.field}", error.problem, error.hint) from error
        except ValidationError as error:
            raise invalid_input(error) from error

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return a draft with these fields, by their Python names.

        `payload` may be an instance of the handler's model, and `schedule` an aware datetime. What is given goes
        through JSON, as it will on its way to production.

        Raises:
            InvalidInput: A field does not fit.
        """
        if isinstance(at := fields.get("schedule"), datetime):
            fields["schedule"] = Schedule.once(at)
        return cls.from_wire(wire_fields(fields))


def wire_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields by their Python names as JSON with camelCase names."""
    return {to_camel(name): _on_the_wire(name, value) for name, value in fields.items()}


def _on_the_wire(name: str, value: object) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=isinstance(value, Value))
    try:
        return to_jsonable_python(value, by_alias=True)
    except PydanticSerializationError as error:
        raise InvalidInput(to_camel(name), str(error), "Use what JSON can say, or a pydantic model.") from error


def invalid_input(error: ValidationError, prefix: str = "", kind: type[InvalidInput] = InvalidInput) -> InvalidInput:
    """Return pydantic's first complaint as an error that names the field as the caller wrote it."""
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in (*((prefix,) if prefix else ()), *first["loc"])) or "(body)"
    hint = {
        "extra_forbidden": "Remove it, or check its spelling; names are camelCase.",
        "timezone_aware": "Give the offset from UTC, as in 2027-01-01T09:00:00Z.",
        "missing": "It is required.",
    }.get(first["type"], "")
    return kind(path, first["msg"], hint)


def new_task(draft: TaskDraft, now: datetime, lead: LeadTimes) -> Step:
    """Return the task that a draft describes, ready to be stored for the first time."""
    schedule = _anchored(draft.schedule, now, lead)
    wish = _wish_of(draft)
    task = Task(
        id=draft.id or str(uuid.uuid4()),
        owner=draft.owner,
        schedule=schedule,
        is_one_time=schedule.is_one_time,
        timezone=schedule.timezone,
        created_at=now,
        updated_at=now,
        status_changed_at=now,
        **wish,
    )
    return Step(moved(task, now, next_execution_time=_first_occurrence(task, now, lead), message="Created."))


def edited(task: Task, draft: TaskDraft, now: datetime, lead: LeadTimes) -> Step:
    """Return the task as its owner wants it now.

    The plan changes only where the schedule, its end or its run limit do. A task that has ended begins again if it is
    given a new schedule. A draft that changes nothing changes nothing.
    """
    wish = _wish_of(draft)
    schedule = _schedule_of_edit(task, draft, now, lead)
    replanned = schedule != task.schedule or any(wish[name] != getattr(task, name) for name in ("until", "max_runs"))
    if not replanned and all(value == getattr(task, name) for name, value in wish.items()):
        return Step(task)
    changed = task.model_copy(
        update={
            **wish,
            "schedule": schedule,
            "is_one_time": schedule.is_one_time,
            "timezone": schedule.timezone,
            "revision": task.revision + 1,
        }
    )
    if not replanned:
        return Step(moved(changed, now))
    if schedule == task.schedule and task.status is TaskStatus.ACTIVE:
        due = task.next_execution_time  # it may have come already, and wait for its jitter, a run or its dispatch
        following = occurrence_from(changed, now if due is None else min(due, now))
        return Step(settled(pumped(changed.model_copy(update={"next_execution_time": following}), now), now))
    if schedule != task.schedule:
        changed = changed.model_copy(update={"run_count": 0, "failures_in_row": 0, "backfill": None})
    first = _first_occurrence(changed, now, lead)
    if task.status is TaskStatus.PAUSED:
        return Step(moved(changed, now))
    return Step(moved(changed, now, status=TaskStatus.ACTIVE, message="Rescheduled.", next_execution_time=first))


def draft_of(task: Task) -> dict[str, Any]:
    """Return what the task's owner has said about it, as JSON: what a partial edit is merged into."""
    said = task.to_wire()
    names = {field.alias or name for name, field in TaskDraft.model_fields.items()}
    return {name: value for name, value in said.items() if name in names}


def require_known(patch: dict[str, Any]) -> None:
    """Check that every name in a partial edit is one: a misspelled one that is put to null would go unnoticed.

    Raises:
        InvalidInput: One is not; `field` says which.
    """
    _require_known(patch, TaskDraft, "")


def _require_known(patch: dict[str, Any], model: type[BaseModel], prefix: str) -> None:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for name, value in patch.items():
        if name not in known:
            hint = "Check its spelling; names are camelCase."
            raise InvalidInput(f"{prefix}{name}", "is not a field that can be edited", hint)
        for part in (known[name], *get_args(known[name])):
            if isinstance(value, dict) and isinstance(part, type) and issubclass(part, Value):
                _require_known(value, part, f"{prefix}{name}.")


def _wish_of(draft: TaskDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in Wish.model_fields}


def default_schedule(now: datetime, lead: LeadTimes) -> Schedule:
    """Return when a task runs if its caller does not say: once, in a while."""
    return Schedule.once(now + max(lead.default, lead.minimum))


def _anchored(schedule: Schedule | None, now: datetime, lead: LeadTimes) -> Schedule:
    start = now + max(lead.default, lead.minimum)
    if schedule is None:
        return default_schedule(now, lead)
    try:
        return schedule if schedule.is_anchored else schedule.anchored(start)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"schedule.{error.field}", error.problem, error.hint) from error


def _schedule_of_edit(task: Task, draft: TaskDraft, now: datetime, lead: LeadTimes) -> Schedule:
    """Return the schedule that an edit asks for; one that says less than the task's own leaves that in place.

    So a creation that is heard again, however late, does not run an ended task again.
    """
    if draft.schedule is None:
        return task.schedule
    if not draft.schedule.is_anchored:
        unanchored = task.schedule.model_copy(update={"dtstart": None})
        if unanchored == draft.schedule:
            return task.schedule
    return _anchored(draft.schedule, now, lead)


def _first_occurrence(task: Task, now: datetime, lead: LeadTimes) -> datetime:
    """Return the task's first occurrence from now on.

    Raises:
        InvalidInput: There is none, or it is in the past or too near.
    """
    earliest = now + lead.minimum
    first = occurrence_from(task, earliest)
    if first is not None:
        return first
    whole = task.schedule.after(earliest - timedelta(microseconds=1))
    if whole is not None:
        raise InvalidInput("until", f"ends the task before its first run at {_iso(whole)}", "Give a later end.")
    if task.schedule.is_one_time:
        late = f"is in the past (now is {_iso(now)})"
        near = f"is nearer than the minimum lead of {lead.minimum} (now is {_iso(now)})"
        at = task.schedule.after(now - timedelta(microseconds=1))
        raise InvalidSchedule("schedule.at", near if at else late, "Give a later instant, or none to run in a while.")
    raise InvalidSchedule("schedule", f"has no occurrence from {_iso(earliest)} on", "Give a later end or count.")


def _iso(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
