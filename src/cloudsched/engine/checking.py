"""What is checked of a draft before it becomes a task, whoever makes it: a caller, or a handler that calls another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.storable import MAX_CONTEXT, MAX_PAYLOAD, require_storable
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import timedelta

    from cloudsched.domain.drafts import TaskDraft
    from cloudsched.engine.registry import Registry


def checked(draft: TaskDraft, registry: Registry, retention: timedelta | None) -> TaskDraft:
    """Return a draft whose payload fits its handler, with the handler's own defaults where the draft says nothing.

    Raises:
        InvalidInput: The payload does not fit, or is too large.
    """
    handler = registry.get(draft.handler)
    handler.read(draft.payload)
    _check_children(draft, registry)
    require_storable("payload", draft.payload, MAX_PAYLOAD)
    if draft.source and draft.source.context is not None:
        require_storable("source.context", draft.source.context, MAX_CONTEXT)
    defaults = {"retry": handler.retry, "expected_duration": handler.expected_duration, "retention": retention}
    missing = {
        name: value for name, value in defaults.items() if value is not None and name not in draft.model_fields_set
    }
    return draft.model_copy(update=missing) if missing else draft


def _check_children(draft: TaskDraft, registry: Registry) -> None:
    """Check that each child's handler is there, and takes its payload as far as that is known now."""
    for number, child in enumerate(draft.children):
        where = f"children.{number}"
        if child.results_as is not None and draft.parallel:
            raise InvalidInput(f"{where}.resultsAs", "has no meaning in parallel", "No child is done before another.")
        try:
            handler = registry.get(child.handler)
            if child.results_as is None:
                handler.read(child.payload)
        except InvalidInput as error:
            raise type(error)(f"{where}.{error.field}", error.problem, error.hint) from error
    require_storable("children", [child.to_wire() for child in draft.children], MAX_PAYLOAD)
