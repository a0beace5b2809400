"""The model of a request that changes all tasks that match a filter."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from cloudsched.domain.documents.batch_change import BatchAction, TaskFilter
from cloudsched.domain.documents.document import WireModel
from cloudsched.web.api.request_bodies import InputInstant  # noqa: TC001 - a field of the model


class BatchChangeFilter(TaskFilter):
    """Which tasks to change: all given filters must match, and there must be one."""

    due_from: InputInstant | None = None
    """The next occurrence is not before this instant."""
    due_until: InputInstant | None = None
    """The next occurrence is before this instant."""

    @model_validator(mode="before")
    @classmethod
    def _name_the_filters(cls, given: Any) -> Any:  # noqa: ANN401 - any JSON
        known = {field.alias or name for name, field in cls.model_fields.items()}
        unknown = sorted(set(given) - known) if isinstance(given, dict) else []
        if unknown:
            raise ValueError(f"has {unknown[0]!r}, which no index has; there are {', '.join(sorted(known))}")
        return given


class BatchChangeRequest(WireModel):
    """A change of all tasks that match a filter."""

    action: BatchAction
    """``retryFailed`` gives the execution that finished last one more attempt, if it failed or timed out."""
    filter: BatchChangeFilter
    dry_run: Annotated[bool, Field(strict=True)] = False
    """Only count the tasks."""
