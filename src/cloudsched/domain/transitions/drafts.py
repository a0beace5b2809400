"""Turn a caller's draft into a new or an edited task.

Times: without a schedule the task runs once, in five minutes. A schedule without DTSTART begins then, too. An instant
in the past, or nearer than the configured lead, is refused; a recurring schedule that began in the past continues with
its first occurrence from now.
"""

from __future__ import annotations

import difflib
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Self, get_args

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.json_limits import reject_masked_secrets, to_json_value
from cloudsched.domain.documents.policy import RetryPolicy, to_retry_policy
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.task import Owner, Task, TaskId, TaskSpec, TaskStatus
from cloudsched.domain.recurrence.iso8601 import LAST_INSTANT
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.domain.transitions.backlog import require_room, take_records
from cloudsched.domain.transitions.invalid_input import to_invalid_input
from cloudsched.domain.transitions.lifecycle import Transition, complete_if_idle, start_next_backfill, with_changes
from cloudsched.domain.transitions.planning import occurrence_from
from cloudsched.domain.transitions.replan import reset_plan, shorten_plan
from cloudsched.errors import InvalidInput, InvalidSchedule


@dataclass(frozen=True, slots=True)
class LeadTimes:
    """How soon a task may run, and when it runs if its caller gives no time."""

    default: timedelta = timedelta(minutes=5)
    """How long from now the first run is, if the caller gives no time."""
    minimum: timedelta = timedelta(0)
    """The least time between a task's creation and its first run."""


_BUILT_IN_HANDLERS = {"children": CHILDREN_HANDLER, "script": SCRIPT_HANDLER}
"""The fields that replace a handler, and the built-in handler that runs each."""


class TaskDraft(TaskSpec):
    """A caller's description of a task to create, or of an edit of the existing one with the same id."""

    id: TaskId | None = None
    """The caller's own stable id; a random UUID if None."""
    title: Annotated[str, StringConstraints(min_length=1, max_length=500)] = ""
    """What it is, for people; the handler's name if it is left out."""
    owner: Owner = SYSTEM_OWNER
    """Whose it is; ``system`` if it is left out."""
    schedule: Schedule | None = None
    """When it runs; once in five minutes if None."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object) -> object:
        """Set the handler of a draft with `children` or a `script`, and the title of one without."""
        data = cls._select_handler(data)
        if not isinstance(data, dict):
            return data
        if "title" in data:
            return data
        handler = data.get("handler")
        built_in = (name for name, each in _BUILT_IN_HANDLERS.items() if each == handler)
        title = next(built_in, handler)
        return {**data, "title": title if isinstance(title, str) else "?"}  # a wrong handler is an error of its own

    @classmethod
    def _select_handler(cls, data: object) -> object:
        """Set the built-in handler if `children` or `script` is given; callers cannot name it themselves."""
        if not isinstance(data, dict):
            return data
        handler = data.get("handler")
        replacements = [name for name in _BUILT_IN_HANDLERS if data.get(name)]
        if replacements and handler is not None and handler not in _BUILT_IN_HANDLERS.values():
            raise InvalidInput(replacements[0], "is given beside a handler", "Give one or the other.")
        if len(replacements) > 1:
            raise InvalidInput(replacements[1], f"is given beside {replacements[0]}", "Give one or the other.")
        if (
            data.get("children") == []
            and (handler is None or handler in _BUILT_IN_HANDLERS.values())
            and not replacements
        ):
            raise InvalidInput("children", "is empty", "Name at least one child, or give a handler in its place.")
        if replacements:
            return {**data, "handler": _BUILT_IN_HANDLERS[replacements[0]]}
        return {
            name: value
            for name, value in data.items()
            if name != "handler" or handler not in _BUILT_IN_HANDLERS.values()
        }

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - anything
        """Refuse what pydantic refuses with an error of our own, which says what to write instead."""
        try:
            return handler(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] != "extra_forbidden" or len(first["loc"]) != 1:
                raise to_invalid_input(error) from error
            name = str(first["loc"][0])
            raise InvalidInput(name, "is no field of a task", explain_unknown_field(name)) from error

    @field_validator("schedule", mode="before")
    @classmethod
    def _read_schedule(cls, value: object) -> object:
        return _to_schedule(value)

    @classmethod
    def from_wire(cls, data: object) -> Self:
        """Parse a draft from JSON.

        Raises:
            InvalidInput: It is not valid; `field` names the first wrong field.
        """
        try:
            return cls.model_validate(data, by_alias=True, by_name=False)
        except InvalidSchedule as error:
            field = error.field if error.field.split(".")[0] == "schedule" else f"schedule.{error.field}"
            raise InvalidSchedule(field, error.problem, error.hint) from error
        except ValidationError as error:
            raise to_invalid_input(error) from error

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return a draft with these fields, by their Python names.

        `payload` may be an instance of the handler's model, and `schedule` an aware datetime (once), a timedelta (every
        so often) or a notation such as cron. All values pass through JSON, as they do in production.

        Raises:
            InvalidInput: A field is not valid.
        """
        given = {name: value for name, value in fields.items() if value is not None or name not in {"title", "owner"}}
        return cls.from_wire(to_wire_fields(given))


def to_wire_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with Python names as JSON with camelCase names; `retry` may be a number, True or False."""
    if isinstance(retry := fields.get("retry"), int):
        fields = {**fields, "retry": _parse_retry(retry)}
    return {to_camel(name): _to_wire_value(name, value) for name, value in fields.items()}


def _parse_retry(retry: int) -> RetryPolicy:
    try:
        return to_retry_policy(retry)
    except ValidationError as error:
        raise InvalidInput("retry", f"is {retry}", "Give 0 to 20 retries, True, False or a RetryPolicy.") from error


def _to_wire_value(name: str, value: object) -> Any:  # noqa: ANN401 - any JSON
    if name == "handler" and callable(value):
        problem = f"is the function {getattr(value, '__name__', value)!r}"
        raise InvalidInput("handler", problem, "Give its registered name; app.create and ctx.call take the function.")
    if name == "schedule" and isinstance(value, datetime | timedelta):
        value = _to_schedule(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, BaseModel):
        encoded = value.model_dump(mode="json", by_alias=True, exclude_none=isinstance(value, WireModel))
        reject_masked_secrets(to_camel(name), value, encoded)
        return encoded
    return to_json_value(to_camel(name), value)


def _to_schedule(value: Any) -> object:  # noqa: ANN401 - whatever a caller gives
    """Return a schedule that was given as a datetime, a timedelta or a notation; anything else unchanged.

    Raises:
        InvalidSchedule: It is not valid, or in plain words, whose meaning depends on the app's clock and settings.
    """
    try:
        if isinstance(value, datetime):
            return Schedule.once(value)
        if isinstance(value, timedelta):
            return Schedule.every(value)
        zone = "UTC"
        if isinstance(value, dict) and value.keys() in ({"cron"}, {"cron", "timezone"}):
            value, zone = value["cron"], value.get("timezone", zone)
        if isinstance(value, str) and isinstance(zone, str):
            from cloudsched.domain.recurrence.parse import is_notation  # noqa: PLC0415 - only for text

            if is_notation(value):
                return Schedule.parse(value, timezone=zone)
    except InvalidSchedule as error:
        field = "schedule" if error.field == "text" else f"schedule.{error.field}"
        raise InvalidSchedule(field, error.problem, error.hint) from error
    if isinstance(value, str):
        hint = "Plain words need the time: give them to app.create, app.update or app.draft."
        raise InvalidSchedule("schedule", f"is the text {value[:60]!r}", hint)
    if value is not None and not isinstance(value, dict | Schedule):
        hint = 'Give a Schedule, an aware datetime, a timedelta, cron ("0 9 * * 1-5") or words ("every day at 9").'
        raise InvalidSchedule("schedule", f"is {value!r}"[:80], hint)
    return value


_OTHER_NAMES = {
    **dict.fromkeys(("at", "cron", "rrule", "when", "every", "interval", "runat", "run_at"), "schedule"),
    **dict.fromkeys(("name", "label"), "title"),
    **dict.fromkeys(("args", "kwargs", "data", "params"), "payload"),
    **dict.fromkeys(("func", "function", "task", "job"), "handler"),
    **dict.fromkeys(("user", "tenant"), "owner"),
}
"""What other schedulers call a field, and its name here."""


def explain_unknown_field(name: str) -> str:
    """Return the hint for a field that a task does not have: the nearest, as Python and as JSON write it."""
    python = {field.replace("_", ""): field for field in TaskDraft.model_fields}
    other = _OTHER_NAMES.get(name)
    near = [other] if other else difflib.get_close_matches(name.replace("_", "").lower(), list(python), n=1)
    if not near:
        return "Check its spelling; see TaskDraft for the fields."
    found = python[near[0]]
    return (
        f"Did you mean {found}?" if to_camel(found) == found else f"Did you mean {found} ({to_camel(found)} in JSON)?"
    )


def new_task(draft: TaskDraft, now: datetime, lead: LeadTimes) -> Transition:
    """Return the new task that a draft describes."""
    schedule = _anchor_schedule(draft.schedule, now, lead)
    spec = _spec_fields(draft)
    task = Task(
        id=draft.id or str(uuid.uuid4()),
        owner=draft.owner,
        schedule=schedule,
        is_one_time=schedule.is_one_time,
        timezone=schedule.timezone,
        created_at=now,
        updated_at=now,
        status_changed_at=now,
        **spec,
    )
    return Transition(
        with_changes(task, now, next_execution_time=_first_occurrence(task, now, lead), message="Created.")
    )


def apply_edit(task: Task, draft: TaskDraft, now: datetime, lead: LeadTimes) -> Transition:
    """Return the edited task.

    The plan changes only if the schedule, `until` or `max_runs` does. What came due of the old plan, has not started
    and is not part of the new one gets its record: SKIPPED, unless a policy had ruled it out already. A task that has
    ended starts again if it gets a new schedule. A draft without changes changes nothing, not even the revision.
    """
    spec = _spec_fields(draft)
    schedule = _edited_schedule(task, draft, now, lead)
    replanned = schedule != task.schedule or any(spec[name] != getattr(task, name) for name in ("until", "max_runs"))
    if not replanned and all(value == getattr(task, name) for name, value in spec.items()):
        return Transition(task)
    changed = task.model_copy(
        update={
            **spec,
            "schedule": schedule,
            "is_one_time": schedule.is_one_time,
            "timezone": schedule.timezone,
            "revision": task.revision + 1,
        }
    )
    if changed.next_execution_time is not None:
        _require_room_after(changed, changed.next_execution_time)
    if not replanned:
        return Transition(with_changes(changed, now))
    require_room(task, "edit")
    if schedule != task.schedule:
        changed, records = reset_plan(task, changed, now)
    else:
        changed, records = shorten_plan(task, changed, now)
    changed, passed = take_records(changed, now, len(records))
    records = (*records, *passed)
    if schedule == task.schedule and task.status is TaskStatus.ACTIVE:
        due = task.next_execution_time  # may be past: it waits for its jitter, an open run or its dispatch
        following = occurrence_from(changed, now if due is None else min(due, now))
        planned = changed.model_copy(update={"next_execution_time": following})
        return Transition(complete_if_idle(start_next_backfill(planned, now), now), records)
    if task.status is TaskStatus.PAUSED and changed.backlog:
        return Transition(with_changes(changed, now), records)
    first = _first_occurrence_after_edit(task, changed, now, lead)
    if task.status is TaskStatus.PAUSED:
        return Transition(with_changes(changed, now), records)
    active = with_changes(changed, now, status=TaskStatus.ACTIVE, message="Rescheduled.", next_execution_time=first)
    return Transition(active, records)


def to_editable_fields(task: Task) -> dict[str, Any]:
    """Return the task's editable fields as JSON: a partial edit is merged into them."""
    wire = task.to_wire()
    names = {field.alias or name for name, field in TaskDraft.model_fields.items()}
    return {name: value for name, value in wire.items() if name in names and (name != "children" or value)}


def require_known(patch: dict[str, Any]) -> None:
    """Check that every name in a partial edit is a field: a misspelled one that is set to null would go unnoticed.

    Raises:
        InvalidInput: One is not; `field` names it.
    """
    _require_known(patch, TaskDraft, "")


def _require_known(patch: dict[str, Any], model: type[BaseModel], prefix: str) -> None:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for name, value in patch.items():
        if name not in known:
            hint = explain_unknown_field(name) if not prefix else "Check its spelling; names are camelCase."
            raise InvalidInput(f"{prefix}{name}", "is not a field that can be edited", hint)
        for part in (known[name], *get_args(known[name])):
            if isinstance(value, dict) and isinstance(part, type) and issubclass(part, WireModel):
                _require_known(value, part, f"{prefix}{name}.")


def _spec_fields(draft: TaskDraft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in TaskSpec.model_fields}


def default_schedule(now: datetime, lead: LeadTimes) -> Schedule:
    """Return the schedule of a task whose caller gives none: once, after the default lead."""
    return Schedule.once(now + max(lead.default, lead.minimum))


def _anchor_schedule(schedule: Schedule | None, now: datetime, lead: LeadTimes) -> Schedule:
    start = now + max(lead.default, lead.minimum)
    if schedule is None:
        return default_schedule(now, lead)
    try:
        return schedule if schedule.is_anchored else schedule.anchored(start)
    except InvalidSchedule as error:
        raise InvalidSchedule(f"schedule.{error.field}", error.problem, error.hint) from error


def _edited_schedule(task: Task, draft: TaskDraft, now: datetime, lead: LeadTimes) -> Schedule:
    """Return the schedule after an edit; a missing one, or the same one without DTSTART, keeps the task's.

    So a repeated creation, however late, does not run an ended task again.
    """
    if draft.schedule is None:
        return task.schedule
    if not draft.schedule.is_anchored:
        unanchored = task.schedule.model_copy(update={"dtstart": None})
        if unanchored == draft.schedule:
            return task.schedule
    return _anchor_schedule(draft.schedule, now, lead)


def _first_occurrence_after_edit(task: Task, changed: Task, now: datetime, lead: LeadTimes) -> datetime:
    try:
        return _first_occurrence(changed, now, lead)
    except InvalidSchedule as error:
        if not task.has_ended or changed.schedule != task.schedule:
            raise
        problem = f"is over: the task is {task.status}, and this edit would start it again"
        raise InvalidSchedule("schedule", problem, "Give it a new schedule, too.") from error


def _first_occurrence(task: Task, now: datetime, lead: LeadTimes) -> datetime:
    """Return the task's first occurrence from now on.

    Raises:
        InvalidInput: There is none, or it is in the past or too near.
    """
    earliest = now + lead.minimum
    first = occurrence_from(task, earliest)
    if first is not None:
        _require_room_after(task, first)
        return first
    before = earliest - timedelta(microseconds=1)
    unbounded = task.schedule.after(before if task.planned_to is None else max(before, task.planned_to))
    if unbounded is not None:
        raise InvalidInput(
            "until", f"ends the task before its first run at {_format_instant(unbounded)}", "Give a later end."
        )
    if task.schedule.is_one_time:
        late = f"is in the past (now is {_format_instant(now)})"
        near = f"is nearer than the minimum lead of {lead.minimum} (now is {_format_instant(now)})"
        gone = "is the instant of an occurrence that was processed already"
        at = task.schedule.after(now - timedelta(microseconds=1))
        problem = late if at is None else near if at < earliest else gone
        raise InvalidSchedule("schedule.at", problem, "Give a later instant, or none to run after the default lead.")
    raise InvalidSchedule(
        "schedule", f"has no occurrence from {_format_instant(earliest)} on", "Give a later end or count."
    )


def _require_room_after(task: Task, occurrence: datetime) -> None:
    """Check that an occurrence plus its task's jitter and expiration stays within the calendar.

    Raises:
        InvalidInput: It does not; `field` is jitter or expiration.
    """
    room = LAST_INSTANT - occurrence
    for name, duration in (("jitter", task.jitter), ("expiration", task.expiration or timedelta(0))):
        if duration > room:
            problem = f"leads from the run at {_format_instant(occurrence)} past the year {LAST_INSTANT.year}"
            raise InvalidInput(name, problem, "Give a shorter one, or an earlier schedule.")
        room -= duration


def _format_instant(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds").replace("+00:00", "Z")
