"""What a caller says of a task: a draft, read from JSON or from Python; `edits` applies it."""

from __future__ import annotations

import difflib
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, Self, get_args

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    PrivateAttr,
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
from cloudsched.domain.documents.task import Owner, Task, TaskId, TaskSpec
from cloudsched.domain.first_error import find_first_error
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.invalid_input import list_others, to_invalid_input
from cloudsched.errors import InvalidInput, InvalidSchedule

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
    """When it runs; once, now, if None."""

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object) -> object:
        """Set the handler of a draft with `children` or a `script`, and the title of one without."""
        data = cls._select_handler(data)
        if not isinstance(data, dict):
            return data
        if type(data.get("owner")) is int:  # the key of a row
            data = {**data, "owner": str(data["owner"])}
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
            first = find_first_error(error, rather="extra_forbidden")  # "taskType", rather than "handler is missing"
            if first["type"] != "extra_forbidden" or len(first["loc"]) != 1:
                raise to_invalid_input(error) from error
            name = str(first["loc"][0])
            found = InvalidInput(name, "is no field of a task", explain_unknown_field(name))
            found.others = list_others(error, found)
            raise found from error

    @field_validator("schedule", mode="before")
    @classmethod
    def _read_schedule(cls, value: object) -> object:
        return _to_schedule(value)

    _read_at: datetime | None = PrivateAttr(default=None)

    @property
    def read_at(self) -> datetime | None:
        """Return when the words of the schedule were read: what they say of now is judged as of then."""
        return self._read_at

    def as_read_at(self, instant: datetime | None) -> Self:
        """Return the draft with the instant at which the words of its schedule were read."""
        copied = self.model_copy()
        copied._read_at = instant  # noqa: SLF001 - its own
        return copied

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
            found = error.at(field)
            found.others = cls._find_faults_beside_schedule(data)
            raise found from error
        except ValidationError as error:
            raise to_invalid_input(error) from error

    @classmethod
    def _find_faults_beside_schedule(cls, data: object) -> tuple[InvalidInput, ...]:
        """Return what is wrong with the other fields: an invalid schedule ends the validation where it stands."""
        given = {name: value for name, value in data.items() if name != "schedule"} if isinstance(data, dict) else {}
        try:
            cls.model_validate(given, by_alias=True, by_name=False)
        except InvalidInput as error:
            return (error, *error.others)
        return ()

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return a draft with these fields, by their Python names.

        `payload` may be an instance of the handler's model, and `schedule` an aware datetime (once) or a notation such
        as cron. All values pass through JSON, as they do in production; a schedule that
        was made, and so checked, in this process is taken as it is.

        Raises:
            InvalidInput: A field is not valid.
        """
        return cls.from_wire(to_draft_content(fields))


def to_draft_content(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what `TaskDraft.from_wire` takes, from fields with Python names; see `TaskDraft.of`."""
    given = {name: value for name, value in fields.items() if value is not None or name not in {"title", "owner"}}
    schedule = given.pop("schedule", None)
    if isinstance(schedule, datetime | timedelta):
        schedule = _to_schedule(schedule)
    if type(schedule) is Schedule:
        return {**to_wire_fields(given), "schedule": schedule}
    return to_wire_fields(given if schedule is None else {**given, "schedule": schedule})


def has_schedule_text(fields: dict[str, Any]) -> bool:
    """Return whether a schedule in a task's fields (camelCase) is text, or has its zone or language beside it."""
    schedule = fields.get("schedule")
    is_beside = "timezone" in fields or "locale" in fields
    return isinstance(schedule, str) or is_beside or (isinstance(schedule, dict) and "cron" in schedule)


_SAME_IN_JSON = (str, int, bool, type(None))


def to_wire_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with Python names as JSON with camelCase names; `retry` may be a number, True or False."""
    if isinstance(retry := fields.get("retry"), int):
        fields = {**fields, "retry": _parse_retry(retry)}
    return {
        _to_wire_name(name): value if type(value) in _SAME_IN_JSON else _to_wire_value(name, value)
        for name, value in fields.items()
    }


@lru_cache(maxsize=200)
def _to_wire_name(name: str) -> str:
    return to_camel(name)


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
        reject_masked_secrets(_to_wire_name(name), value, encoded)
        return encoded
    return to_json_value(_to_wire_name(name), value)


def _to_schedule(value: Any) -> object:  # noqa: ANN401 - whatever a caller gives
    """Return a schedule that was given as a datetime or a notation; anything else unchanged.

    Raises:
        InvalidSchedule: It is not valid, or in plain words, whose meaning depends on the app's clock and settings.
    """
    if isinstance(value, timedelta):
        problem = f"is {value!r}, which says neither once nor repeatedly"
        hint = "Give Schedule.after(timedelta(…)) to run once after it, Schedule.every(timedelta(…)) to repeat."
        raise InvalidSchedule("schedule", problem, hint)
    try:
        if isinstance(value, datetime):
            return Schedule.once(value)
        zone = "UTC"
        if isinstance(value, dict) and value.keys() in ({"cron"}, {"cron", "timezone"}):
            value, zone = value["cron"], value.get("timezone", zone)
        if isinstance(value, str) and isinstance(zone, str):
            from cloudsched.domain.recurrence.parse import is_notation  # noqa: PLC0415 - only for text

            if is_notation(value):
                return Schedule.parse(value, timezone=zone)
    except InvalidSchedule as error:
        field = "schedule" if error.field == "text" else f"schedule.{error.field}"
        raise error.at(field) from error
    if isinstance(value, str):
        hint = "Plain words need the time: give them to app.create or app.update."
        raise InvalidSchedule("schedule", f"is the text {value[:60]!r}", hint)
    if value is not None and not isinstance(value, dict | Schedule):
        hint = 'Give a Schedule, an aware datetime, cron ("0 9 * * 1-5") or words ("every day at 9").'
        raise InvalidSchedule("schedule", f"is {value!r}"[:80], hint)
    return value


_OTHER_NAMES = {
    other: field
    for field, others in {
        "schedule": "at cron cronexpression countdown eta every interval recurrence rrule rruleexpression runat "
        "rundate scheduledat scheduledfor timestamp trigger when",
        "title": "label name taskname",
        "purpose": "goal purposeoftask reason",
        "payload": "arguments args body currentpayload data input kwargs params",
        "handler": "callback func function functionname job jobtype method task tasktype type",
        "owner": "communityid createdby createdbyuserid customerid ownerid tenant tenantid uid user userid",
        "source": "createdbychatid chatid currentchatmessageid messageid",
        "deliverychannels": "channel channels delivery deliverymethod notify notifyby",
        "lockkey": "concurrencykey documentid lock mutex singleton",
        "expectedduration": "estimateddurationinminutes executiontimeout leaseseconds timeout",
        "expiration": "deadline expirationinminutes expires expiresin misfiregracetime ttl",
        "retry": "attempts autoretry maxattempts maxretries retries retrypolicy",
        "pull": "deployment queue queuename taskqueue worker",
        "labels": "attributes metadata tags",
        "id": "idempotencykey jobid key taskid uniquekey",
    }.items()
    for other in others.split()
}
"""What other schedulers call a field, in small letters without separators, and its name here."""
_OTHER_UNITS = {"inminutes": "It is in seconds.", "inhours": "It is in seconds.", "inms": "It is in seconds."}


def explain_unknown_field(name: str) -> str:
    """Return the hint for a field that a task does not have: the nearest, as Python and as JSON write it."""
    python = {field.replace("_", ""): field for field in TaskDraft.model_fields}
    plain = name.replace("_", "").replace("-", "").lower()
    other = _OTHER_NAMES.get(plain)
    near = [other] if other else difflib.get_close_matches(plain, list(python), n=1)
    if not near:
        return "Check its spelling; see TaskDraft for the fields."
    found = python[near[0]]
    meant = (
        f"Did you mean {found}?" if to_camel(found) == found else f"Did you mean {found} ({to_camel(found)} in JSON)?"
    )
    return " ".join([meant, *(unit for end, unit in _OTHER_UNITS.items() if plain.endswith(end))])


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


_IMMUTABLE_FIELDS = {
    "id": "Create another task instead.",
    "owner": "Create a task for the other owner instead.",
    "status": "Use pause, resume, cancel or trigger.",
}


def apply_merge_patch(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return `target` with a JSON merge patch applied (RFC 7396, section 2).

    A schedule or a payload at the top level is replaced as a whole: a mixture of two makes no sense.
    """
    replaced: dict[str, Any] = {name: {} for name in ("schedule", "payload") if isinstance(patch.get(name), dict)}
    return _merge({**target, **replaced}, patch)


def require_mutable(patch: dict[str, Any]) -> None:
    """Check that a patch names no field that only other operations change, or none at all. Raises InvalidInput."""
    for name, hint in _IMMUTABLE_FIELDS.items():
        if name in patch:
            raise InvalidInput(name, "cannot be changed by an edit", hint)


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = _merge(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = value
    return result


def _replace_local(patch: dict[str, Any]) -> dict[str, Any]:
    """Return a patch in which another time takes the place of a local one, which would count for more."""
    schedule = patch.get("schedule")
    if (
        not isinstance(schedule, dict)
        or "local" in schedule
        or not schedule.keys() & {"at", "delay", "rrule", "dtstart"}
    ):
        return patch
    return {**patch, "schedule": {**schedule, "local": None}}


def edit_draft(task: Task, patch: dict[str, Any]) -> TaskDraft:
    """Return the draft that describes a task after a merge patch. Raises InvalidInput.

    What the task's handler set by default counts as given, except for what the task has none of.
    """
    fields = to_editable_fields(task)
    if "schedule" not in patch:
        del fields["schedule"]  # it was checked when it was given, by what was known of its zone then
    draft = TaskDraft.from_wire(apply_merge_patch(fields, _replace_local(patch)))
    unset: dict[str, Any] = {
        name: None for name in ("pull", "retention") if name not in patch and getattr(task, name) is None
    }
    if "schedule" not in patch:
        unset["schedule"] = task.schedule
    if patch.get("lockKey", task.lock_key) != task.lock_key and "lockScope" not in patch:
        unset["lock_scope"] = None  # the new key's scope depends on who sets it
    return draft.model_copy(update=unset)
