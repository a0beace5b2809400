"""Validates a draft before it becomes a task, whether an API caller or a handler's `ctx.call` made it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER, Requesters
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.json_limits import (
    MAX_CONTEXT,
    MAX_EXPANSION,
    MAX_PAYLOAD,
    find_largest_part,
    require_storable,
    stored_size,
)
from cloudsched.domain.schedules.assumptions import note
from cloudsched.domain.transitions.run_records import MAX_SPEC_BYTES
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.engine.handlers.user_access import require_user_access
from cloudsched.errors import InvalidInput
from cloudsched.features.fields import HandlerFields
from cloudsched.features.table import FEATURES, find_place

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

    from cloudsched.domain.documents.children import Child
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.handlers.registry import Handler, Registry

_CHECKS: Final = [row for feature in FEATURES for row in feature.draft_checks]


def validate_draft(  # noqa: C901, PLR0912 - one check after the other, in the calls that a creation may take
    draft: TaskDraft,
    registry: Registry,
    retention: timedelta | None,
    requesters: Requesters,
    *,
    changed: Collection[str] | None = None,
) -> TaskDraft:
    """Return a draft whose payload fits its handler, with the handler's defaults for missing fields.

    Each lock key gets its scope: global, or the owner's if a user asks for it. The id is one of the handler's
    defaults, if it makes ids from payloads. `changed` are the fields that an edit concerns, by their wire
    names, None for all. Fields that a payload's model does not know are refused only if it concerns the
    payload: an older task may have some. Raises InvalidInput.
    """
    is_payload_new = changed is None or not {"handler", "payload", "children"}.isdisjoint(changed)
    if requesters is Requesters.USERS:
        registry = registry.for_users()
    fault = handler = None
    task_id = draft.id
    try:
        handler = _find_handler(draft, registry)
        if handler is not None:
            payload = handler.check_payload(draft.payload, refuses_unknown=is_payload_new)
            task_id = draft.id or handler.derive_id(payload, draft.owner)
            if handler.check is not None:
                handler.check(draft, requesters)
    except InvalidInput as error:
        fault = error  # told last: without its handler, a task has no other faults

    defaults: dict[str, object] = {"retention": retention}
    if handler is not None:
        defaults |= handler.defaults
        if handler.estimate is not None and fault is None:
            defaults |= handler.estimate(draft)
    given = draft.model_fields_set
    missing = dict[str, object]()
    for name, value in defaults.items():
        if value is not None and name not in given:
            missing[name] = value
    if task_id != draft.id:
        missing["id"] = task_id
    completed = draft.model_copy(update=missing) if missing else draft
    if changed is None and draft.owner != SYSTEM_OWNER and "delivery_channels" not in completed.model_fields_set:
        tells = draft.category is not Category.OTHERS or (handler is not None and handler.draft is not None)
        if tells and not draft.on_completion:
            hint = 'give delivery_channels=["WEB"] for the inbox ("deliveryChannels" in JSON)'
            note([f"No channel was given, so its result is sent to nobody: {hint}."])
    for row in _CHECKS:
        for name in row.concerns:
            if getattr(completed, name):
                completed = find_place(row.check)(completed, requesters)
                break
    if requesters is Requesters.USERS:
        require_user_access(completed, registry)
    if fault is not None:
        raise fault
    if draft.children:
        _check_children(draft, registry, is_payload_new=is_payload_new)
    _check_sizes(completed)
    return completed


def _check_sizes(draft: TaskDraft) -> None:
    """Check that its values can be stored, and leave room for open runs and events beside them."""
    require_storable("payload", draft.payload, MAX_PAYLOAD)
    if draft.source is not None:
        if draft.source.context is not None:
            require_storable("source.context", draft.source.context, MAX_CONTEXT)
        if draft.source.messages is not None or draft.source.model is not None:
            require_storable("source", draft.source.to_wire(), MAX_CONTEXT)
    when = draft.schedule  # within the limit by its fields, or by a bound ten times as cheap
    has_lists = when is not None and (when.rdates or when.exdates or when.calendars or isinstance(when.rrule, tuple))
    if not has_lists and draft.model_fields_set <= SHORT_FIELDS:
        return
    with suppress(ValueError):  # a lone surrogate: storing it is refused later, with a better message
        if MAX_EXPANSION * len(draft.model_dump_json(by_alias=True, exclude_none=True)) <= MAX_SPEC_BYTES:
            return
    data = draft.model_dump(mode="python", by_alias=True, exclude_none=True)
    size = stored_size(data)
    if size > MAX_SPEC_BYTES:
        field, part = find_largest_part(data)
        hint = f"At most {MAX_SPEC_BYTES} are allowed together, and a number has 8; store large data elsewhere."
        raise InvalidInput(field, f"has {part} of the task's {size} bytes as Firestore counts them", hint)


SHORT_FIELDS: Final = frozenset(
    {"id", "owner", "title", "handler", "payload", "schedule", "retry", "retention", "expected_duration"}
    | {"query_per_execution", "tokens_per_execution", *HandlerFields.defaulted}
)
"""Fields that are within the limit together, even with the largest payload, if the schedule has no lists."""


def _find_handler(work: TaskDraft | Child, registry: Registry) -> Handler | None:
    """Return the handler that is named. None if only workers know it, which then validate the payload."""
    handler = registry.find(work.handler)
    is_for_workers = work.workers is not None and not registry.is_for_users
    return handler if handler is not None or is_for_workers else registry.get(work.handler)  # which says what there is


def _check_children(draft: TaskDraft, registry: Registry, *, is_payload_new: bool) -> None:
    """Check that each child's handler exists and accepts its payload, as far as that is known before it runs."""
    faults = Faults()
    for number, child in enumerate(draft.children):
        where = f"children.{number}"
        if child.results_as is not None and draft.parallel:
            hint = "Parallel children share no results."
            faults.append(InvalidInput(f"{where}.resultsAs", "has no meaning in parallel", hint))
        try:
            _check_child(child, registry, is_payload_new=is_payload_new)
        except InvalidInput as error:
            faults += (each.within(where) for each in error.faults)
    faults.tell()
    require_storable("children", [child.to_wire() for child in draft.children], MAX_PAYLOAD)


def _check_child(child: Child, registry: Registry, *, is_payload_new: bool) -> None:
    handler = _find_handler(child, registry)
    if handler is None:
        return
    if handler.is_built_in:
        raise InvalidInput(
            "handler",
            f"is {handler.name!r}, which is built in",
            "Name a handler of your app.",
        )
    if child.results_as is None:
        handler.check_payload(child.payload, refuses_unknown=is_payload_new)
    elif not handler.accepts_field(child.results_as):
        hint = "Give the JSON name of the payload field that takes the results."
        raise InvalidInput("resultsAs", f"is not a field of the payload of {handler.name!r}", hint)
