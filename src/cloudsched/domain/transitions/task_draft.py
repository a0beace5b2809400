"""A caller's description of a task: a draft, read from JSON or from Python. `edits` applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Final, Self, get_args

from pydantic import (
    BaseModel,
    ModelWrapValidatorHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.children import CHILDREN_HANDLER
from cloudsched.domain.documents.document import WireModel
from cloudsched.domain.documents.json_limits import reject_masked_secrets, to_json_value
from cloudsched.domain.documents.policy import to_retry_policy
from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.documents.task import Owner, Task, TaskId, TaskSpec
from cloudsched.domain.schedules.schedule import OWNER_ZONE, Schedule
from cloudsched.domain.transitions.validation_errors import (
    WIRE,
    find_top,
    join_faults,
    say_in_python,
    to_invalid_input,
    unknown_field,
)
from cloudsched.errors import InvalidInput, InvalidSchedule, SearchLimitReached
from cloudsched.features.fields import HandlerFields
from cloudsched.features.table import FEATURES, DetailRow

_BUILT_IN_HANDLERS = {"children": CHILDREN_HANDLER, "script": SCRIPT_HANDLER}
"""The fields that replace a handler, and the built-in handler that runs each."""

_OTHER_NAMES: Mapping[str, str] = {
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
        "tellfailures": "alertonfailure emailonfailure notifyonfailure",
        "expectedduration": "estimateddurationinminutes executiontimeout expectedexecutiontimeinminutes leaseseconds "
        "maxruntime timeout",
        "expiration": "deadline expirationinminutes expires expiresin misfiregracetime ttl",
        "retry": "attempts autoretry maxattempts maxretries retries retrypolicy",
        "labels": "attributes metadata tags",
        "priority": "importance prio urgency",
        "description": "desc notes",
        "timezone": "tz zone",
        "maxruns": "count maxexecutions maxoccurrences repeat",
        "id": "idempotencykey jobid key taskid uniquekey",
        **{field: others for feature in FEATURES for field, others in feature.other_names.items()},
    }.items()
    for other in others.split()
} | {
    **dict.fromkeys(
        ("isonetime", "isonetimeexecution", "isrecurring"),
        "Leave it out: it follows from the schedule.",
    ),
    **dict.fromkeys(
        ("text", "words", "prompt"),
        'What the handler takes goes into payload={"text": "Tea"}, and the words of a schedule into '
        'schedule="every day at 9".',
    ),
    **dict.fromkeys(
        (
            "dtstart",
            "exdates",
            "rdates",
            "gap",
            "fold",
            *[name.replace("_", "") for name in Schedule.no_adjustments],
        ),
        'Put it into the schedule: {"rrule": "FREQ=DAILY", "exdates": ["2027-01-01"]}.',
    ),
}
"""The names of fields in other schedulers, in lower case without separators, with ours, or a sentence."""


_DETAILS: Final = (
    *(detail for feature in FEATURES for detail in feature.details),
    DetailRow("parallel", "children", "Leave it out, or name children."),
    DetailRow("on_child_failure", "children", "Leave it out, or name children."),
)


class TaskDraft(TaskSpec):
    """A caller's description of a task to create, or of an edit of the existing one with the same id."""

    id: TaskId | None = None
    """The caller's own stable id, or a random UUID if None."""
    title: Annotated[str, StringConstraints(min_length=1, max_length=500)] = ""
    """The title for people, or the handler's name if it is left out."""
    owner: Owner = SYSTEM_OWNER
    """The owner of the task, or ``system`` if it is left out."""
    schedule: Schedule | None = None
    """The schedule of the task. None: once, now."""

    read_at: ClassVar[datetime | None] = None
    """The instant that "now" means in the words of its schedule, if these were read before."""
    schedule_text: ClassVar[str | None] = None
    """The text that its schedule was read from, if that means a whole schedule."""
    called: ClassVar[str] = "of a task"
    beside: ClassVar[tuple[str, ...]] = ("timezone", "locale")  # fields that may stand beside a schedule that is text
    other_names: ClassVar[Mapping[str, str]] = _OTHER_NAMES
    lines: ClassVar[Mapping[str, str]] = {
        "retry": 'Give {"maxRetries": 3}. Python takes a number, too: retry=3.',
        "labels": 'Give a list of texts: ["team=payments"].',
    }
    """What to write for fields that are often given in another form."""

    @classmethod
    def _fill_in(cls, data: object) -> object:
        """Set the handler of a draft with `children` or a `script`, and the title of one without.

        The handler is a built-in one then, which callers cannot name themselves.
        """
        if not isinstance(data, dict):
            return data
        filled = {**data}
        if filled.get("handler") in _BUILT_IN_HANDLERS.values():
            del filled["handler"]
        handler = filled.get("handler")
        replacements = list(filter(data.get, _BUILT_IN_HANDLERS))
        if replacements and handler is not None:
            raise InvalidInput(replacements[0], "is given beside a handler", "Give one or the other.")
        if len(replacements) > 1:
            raise InvalidInput(
                replacements[1],
                f"is given beside {replacements[0]}",
                "Give one or the other.",
            )
        if data.get("children") == [] and handler is None and not replacements:
            raise InvalidInput(
                "children",
                "is empty",
                "Name at least one child, or give a handler in its place.",
            )
        if replacements:
            filled["handler"] = _BUILT_IN_HANDLERS[replacements[0]]
        if not isinstance(data.get("owner", ""), str):
            owner = data["owner"]
            line = "str(user.id)" if owner is None else repr(str(owner))[:80]
            hint = f"Give text: {line}. Leave it out only for work that is nobody's, such as a nightly import."
            raise InvalidInput("owner", f"is {owner!r}"[:80], hint)
        if "title" not in data:
            title = replacements[0] if replacements else handler
            filled["title"] = title if isinstance(title, str) else "?"  # a wrong handler is an error of its own
        return filled

    @model_validator(mode="wrap")
    @classmethod
    def _check(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:  # noqa: ANN401 - anything
        """Replace pydantic's error with one of our own, which says what to write instead.

        Refuse also the details of what the task does not have: they would be without effect.
        """
        try:
            draft = handler(cls._fill_in(data))
        except ValidationError as error:
            found = to_invalid_input(error, model=cls)
            if info.context is None:
                say_in_python(found, (), cls)
            raise found from None
        for row in _DETAILS:
            if row.name in draft.model_fields_set and not getattr(draft, row.about):
                detail = cls.model_fields[row.name]
                if getattr(draft, row.name) not in (None, detail.default):
                    raise InvalidInput(to_camel(row.name), "has no meaning alone", row.instead)
        return draft

    @field_validator("schedule", mode="wrap")
    @classmethod
    def _read_schedule(
        cls, value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo
    ) -> Schedule | None:
        if type(value) is Schedule:
            return value  # it was checked when it was made
        is_python = info.context is None and value is not None and not isinstance(value, str | dict)
        given: Any = _to_python_schedule(value) if is_python else _to_schedule(value)
        try:
            read: Schedule | None = handler(given)
        except InvalidSchedule as error:
            found = find_all_faults(error, given, handler).faults
            # What is missing is so only because another part was left out.
            raise join_faults([each for each in found if each in error.faults or find_top(each) in given]) from None
        return read

    def as_read_at(self, instant: datetime | None, text: str | None = None) -> Self:
        """Return the draft with the instant at which the text of its schedule was read, and that text."""
        copied = self.model_copy()
        vars(copied).update(read_at=instant, schedule_text=text)
        return copied

    @classmethod
    def from_wire(cls, data: object) -> Self:
        """Parse a draft from JSON.

        Raises:
            InvalidInput: It is not valid. `field` names the first wrong field, and `others` have further ones.
        """
        try:
            return cls.model_validate(data, by_alias=True, by_name=False, context=WIRE)
        except InvalidInput as error:
            found = error
            if isinstance(error, InvalidSchedule) and error.field.split(".")[0] != "schedule":
                found = error.below("schedule")
            raise find_all_faults(found, data, cls.from_wire) from error.__cause__

    @classmethod
    def of(cls, **fields: Any) -> Self:
        """Return a draft with these fields, by their Python names.

        `payload` may be an instance of the handler's model, and `schedule` an aware datetime (once) or a notation such
        as cron. All values pass through JSON, as they do in production. A schedule that was made, and so checked, in
        this process is taken as it is.

        Raises:
            InvalidInput: A field is not valid.
        """
        try:
            return cls.from_wire(to_draft_content(fields))
        except InvalidInput as error:
            say_in_python(error, fields, cls)
            raise


_BESIDE: Final[Mapping[str, frozenset[str]]] = {
    "pull": frozenset({"handler"}),  # without it, a handler that only workers know is unknown
    **{
        field: frozenset({*(to_camel(row.name) for row in _DETAILS if to_camel(row.about) == field), "handler"})
        for field in {*_BUILT_IN_HANDLERS, *(to_camel(row.about) for row in _DETAILS)}
    },
}
"""The fields that may be wrong only because another one is left out."""
_STAND_IN: Final = {"schedule": "RRULE:FREQ=DAILY"}
"""What is checked in the place of a field at fault, for others that mean something only beside it."""

_MOST_FIELDS: Final = 100
"""The most fields of which all faults are searched: each may need a check of its own."""


def find_all_faults(error: InvalidInput, fields: object, check: Callable[[dict[str, Any]], object]) -> InvalidInput:
    """Return an error with all faults of a task's fields: also those that the faults found so far have hidden.

    What is at fault is left out, until `check` finds no more. It must have no effect.
    """
    if not isinstance(fields, dict) or len(fields) > _MOST_FIELDS or isinstance(error, SearchLimitReached):
        return error

    rest = fields
    ignored = set[str]()
    told = [error]
    found = error.faults
    while wrong := {find_top(each) for each in found} & rest.keys():
        ignored |= wrong.union(*(_BESIDE.get(name, ()) for name in wrong))
        rest = {
            **{name: rest[name] for name in rest.keys() - wrong},
            **{name: _STAND_IN[name] for name in wrong & _STAND_IN.keys()},
        }
        try:
            check(rest)
        except SearchLimitReached:
            break
        except InvalidInput as further:
            found = tuple(each for each in further.faults if find_top(each) not in ignored)
            told += found
        except Exception:  # noqa: BLE001 - what fails without the wrong fields says nothing of them
            break
        else:
            break
    return join_faults(told) if len(told) > 1 else error


def to_draft_content(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of `TaskDraft.from_wire` for fields with Python names. See `TaskDraft.of`."""
    given = {**fields}
    if given.get("title", "") is None:
        del given["title"]
    schedule = given.pop("schedule", None)
    content = to_wire_fields(given)
    if isinstance(schedule, str | dict):
        content["schedule"] = to_json_value("schedule", schedule)
    elif schedule is not None:
        content["schedule"] = schedule if type(schedule) is Schedule else _to_python_schedule(schedule)
    return content


def has_schedule_text(fields: dict[str, Any]) -> bool:
    """Return whether a schedule in a task's fields (camelCase) is text, or has its zone or language beside it."""
    schedule = fields.get("schedule")
    is_beside = "timezone" in fields or "locale" in fields
    return isinstance(schedule, str) or is_beside or (isinstance(schedule, dict) and "cron" in schedule)


_SAME_IN_JSON = (str, int, bool, type(None))
_READ = frozenset({"retry", "schedule", "retention", "execution_retention"})
"""The fields in which a number stands for something else, or for nothing."""


def to_wire_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with Python names as JSON with camelCase names.

    `retry` may be a number, True or False.
    """
    content = dict[str, Any]()
    for name, value in fields.items():
        is_same = type(value) in _SAME_IN_JSON and (type(value) is str or name not in _READ)
        content[_to_wire_name(name)] = value if is_same else _to_wire_value(name, value)
    return content


_to_wire_name = lru_cache(maxsize=200)(to_camel)


def _to_wire_value(name: str, value: object) -> Any:  # noqa: ANN401 - any JSON
    if name == "retry" and isinstance(value, int):
        try:
            value = to_retry_policy(value)
        except InvalidInput:
            hint = "Give 0 to 20 retries, True, False or a RetryPolicy."
            raise InvalidInput("retry", f"is {value}", hint) from None
    if "retention" in name and isinstance(value, int | float):  # JSON means seconds, and people mean days
        raise InvalidInput(
            _to_wire_name(name),
            f"is {value}, without a unit",
            f'Say of what: timedelta(days={value}) or "P{value}D", or timedelta(seconds={value}).',
        )
    if name == "handler" and callable(value):
        problem = f"is the function {getattr(value, '__name__', value)!r}"
        raise InvalidInput(
            "handler",
            problem,
            "Give its registered name; app.create and ctx.call take the function.",
        )
    if name == "schedule" and value is not None and not isinstance(value, str | dict):
        value = _to_python_schedule(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, WireModel | Schedule):
        encoded = value.model_dump(mode="json", by_alias=True, exclude_none=isinstance(value, WireModel))
        reject_masked_secrets(_to_wire_name(name), value, encoded)
        if isinstance(value, Schedule):
            for unsaid in {"timezone", "follows_owner"} - value.model_fields_set:
                del encoded[to_camel(unsaid)]
        return encoded
    return to_json_value(_to_wire_name(name), value, for_readers=name == "content")


def _to_schedule(value: Any) -> object:  # noqa: ANN401 - whatever a caller gives
    """Return a schedule for a notation.

    Plain words are refused: they depend on the app's clock and settings.
    """
    from cloudsched.domain.recurrence.notations import is_notation  # noqa: PLC0415 - most callers give an object

    try:
        zone: Any = "UTC"
        if isinstance(value, dict) and value.keys() in ({"cron"}, {"cron", "timezone"}):
            value, zone = value["cron"], value.get("timezone", zone)
        if isinstance(value, str) and isinstance(zone, str) and is_notation(value):
            return Schedule.parse(value, timezone=zone)
    except InvalidSchedule as error:
        field = "schedule" if error.field == "text" else f"schedule.{error.field}"
        raise error.at(field) from None
    if isinstance(value, str):
        hint = "Plain words need the time: give them to app.create or app.update."
        raise InvalidSchedule("schedule", f"is the text {value[:60]!r}", hint)
    if value is not None and not isinstance(value, dict | Schedule):
        hint = 'Give words ("every day at 9"), cron ("0 9 * * 1-5") or an object such as {"rrule": "FREQ=DAILY"}.'
        raise InvalidSchedule("schedule", f"is {value!r}"[:80], hint)
    return value


def _to_python_schedule(value: object) -> Schedule:
    """Return a schedule that Python code gave, perhaps as an instant.

    Raises InvalidSchedule for anything else.
    """
    if isinstance(value, Schedule):
        return value
    if isinstance(value, datetime):
        try:
            return Schedule.once(value)
        except InvalidSchedule as error:
            raise error.below("schedule") from None
    problem = f"is {value!r}"[:80]
    hint = 'Give a Schedule, an aware datetime, cron ("0 9 * * 1-5") or words ("every day at 9").'
    if isinstance(value, timedelta):
        problem = f"is {value!r}, which says neither once nor repeatedly"
        hint = "Give Schedule.after(timedelta(…)) to run once after it, Schedule.every(timedelta(…)) to repeat."
    raise InvalidSchedule("schedule", problem, hint)


def to_editable_fields(task: Task) -> dict[str, Any]:
    """Return the task's editable fields as JSON: a partial edit is merged into them."""
    wire = task.to_wire()
    names = {field.alias or name for name, field in TaskDraft.model_fields.items()}
    return {name: value for name, value in wire.items() if name in names and (name != "children" or value)}


PAYLOAD_MERGE: Final = "payloadMerge"
"""The field of an edit whose value is merged into the task's payload."""


def take_payload_merge(patch: dict[str, Any]) -> dict[str, Any] | None:
    """Take what changes parts of the payload out of an edit, if it is there. Raises InvalidInput."""
    merged = patch.pop(PAYLOAD_MERGE, None)
    if merged is not None and not isinstance(merged, dict):
        raise InvalidInput(
            PAYLOAD_MERGE, "is not an object", "Give the fields to change, {…}, with null for those to reset."
        )
    if merged is not None and "payload" in patch:
        raise InvalidInput(PAYLOAD_MERGE, "is given beside a payload", "Give the whole payload, or what changes in it.")
    return merged


def require_editable_fields(patch: dict[str, Any]) -> None:
    """Check that a partial edit names fields alone, and none that only other operations change.

    A misspelled field that is set to null would go unnoticed.
    """
    faults = [
        InvalidInput(name, "cannot be changed by an edit", hint)
        for name, hint in _IMMUTABLE_FIELDS.items()
        if name in patch
    ]
    faults += _list_uneditable(patch, TaskDraft, ())
    if faults:
        raise join_faults(faults)


def _list_uneditable(
    patch: dict[str, Any],
    model: type[BaseModel],
    place: tuple[str, ...],
) -> Iterator[InvalidInput]:
    known = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    for name, value in patch.items():
        if name not in known:
            yield unknown_field((*place, name), "is not a field that can be edited", model)
            continue
        for part in (known[name], *get_args(known[name])):
            if isinstance(value, dict) and isinstance(part, type) and issubclass(part, WireModel):
                yield from _list_uneditable(value, part, (*place, name))


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
    return merge_json({**target, **replaced}, patch)


def merge_json(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return JSON with a merge patch applied at all depths: null removes a field."""
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = merge_json(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = value
    return result


def _replace_local(patch: dict[str, Any]) -> dict[str, Any]:
    """Return a patch in which another time replaces a local one, which would take precedence."""
    schedule = patch.get("schedule")
    if (
        not isinstance(schedule, dict)
        or "local" in schedule
        or not schedule.keys() & {"at", "delay", "rrule", "dtstart"}
    ):
        return patch
    return {**patch, "schedule": {**schedule, "local": None}}


def _keep_zone(task: Task, patch: dict[str, Any]) -> dict[str, Any]:
    """Return a patch whose schedule names a zone: the task's own, unless the caller names one."""
    schedule = patch.get("schedule")
    if not isinstance(schedule, dict) or schedule.keys() & {"timezone", "followsOwner"}:
        return patch
    follows = task.schedule.follows_owner and schedule.get("at") is None and schedule.get("delay") is None
    return {**patch, "schedule": {**schedule, "timezone": OWNER_ZONE if follows else task.schedule.timezone}}


def edit_draft(task: Task, patch: dict[str, Any]) -> TaskDraft:
    """Return the draft that describes a task after a merge patch. Raises InvalidInput.

    Fields that the task's handler set by default count as given, except those that the task does not have.
    """
    fields = to_editable_fields(task)
    if "schedule" not in patch:
        del fields["schedule"]  # it was checked when it was given, by what was known of its zone then
    for row in _DETAILS:
        if to_camel(row.about) in patch and not patch[to_camel(row.about)]:
            fields.pop(to_camel(row.name), None)
    draft = TaskDraft.from_wire(apply_merge_patch(fields, _keep_zone(task, _replace_local(patch))))
    unset: dict[str, Any] = {
        name: None
        for name in (*HandlerFields.defaulted, "retention")
        if name not in patch and getattr(task, name) is None
    }
    if "schedule" not in patch:
        unset["schedule"] = task.schedule
    for row in _DETAILS:
        before = getattr(task, row.about)
        if row.is_reset and patch.get(to_camel(row.about), before) != before and to_camel(row.name) not in patch:
            unset[row.name] = None
    return draft.model_copy(update=unset)
