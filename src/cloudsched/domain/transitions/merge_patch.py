"""JSON merge patch (RFC 7396), by which callers edit tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.transitions.drafts import TaskDraft, to_editable_fields
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task

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


def edit_draft(task: Task, patch: dict[str, Any]) -> TaskDraft:
    """Return the draft that describes a task after a merge patch. Raises InvalidInput.

    What the task's handler set by default counts as given, except for what the task has none of.
    """
    draft = TaskDraft.from_wire(apply_merge_patch(to_editable_fields(task), patch))
    unset = {name: None for name in ("pull", "retention") if name not in patch and getattr(task, name) is None}
    if patch.get("lockKey", task.lock_key) != task.lock_key and "lockScope" not in patch:
        unset["lock_scope"] = None  # the new key's scope depends on who sets it
    return draft.model_copy(update=unset)
