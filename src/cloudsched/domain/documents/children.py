"""The children that a task runs in place of a handler: their order, and the consequences if one fails.

In order, each child starts when the one before it has finished. In parallel, all start at once. The task is
complete when all have finished. If a child fails, ``fail`` fails the task, and no further child starts.
``skip`` skips the children after it, and ``continue`` runs them: in both cases the task succeeds, and its
result lists the failures. A child that cannot start, because its payload with the inserted results is not
valid, has failed.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Duration, StoredEnum
from cloudsched.domain.documents.json_limits import (
    MAX_CONTENT,
    MAX_STORED,
    json_size,
    require_content,
    stored_size,
)
from cloudsched.domain.documents.policy import Priority, RetryPolicy
from cloudsched.errors import InvalidInput
from cloudsched.features.fields import ChildFields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHILDREN_HANDLER = "cloudsched.children"
"""The built-in handler of tasks that have children."""
MAX_CHILDREN = 100
MAX_ERROR = 500
"""The longest error text of a failed child in the result, in characters."""

_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class OnChildFailure(StoredEnum):
    """The consequence of a failed child for the children after it, and for the task."""

    FAIL = "FAIL"
    SKIP = "SKIP"
    CONTINUE = "CONTINUE"


class Child(ChildFields):
    """One child of a task."""

    handler: _Text
    payload: dict[str, Any] = Field(default_factory=dict)
    title: _Text | None = None
    results_as: _Text | None = None
    """The payload field that gets the list of the earlier children's results. Only if they run in order."""
    retry: RetryPolicy | None = None
    """Its retry policy, or the handler's own if None."""
    priority: Priority | None = None
    """Its priority, or the task's own if None."""
    expected_duration: Duration | None = Field(default=None, gt=timedelta(0), le=timedelta(hours=1))

    def to_call_fields(self) -> dict[str, Any]:
        """Return the fields of its call besides the handler and the payload."""
        names = ("title", "retry", "priority", "expected_duration", *ChildFields.model_fields)
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def gather_results(
    results: Sequence[Any],
    failed: Mapping[int, str],
    skipped: Iterable[int],
) -> dict[str, Any]:
    """Return the result of a task: its children's results in order, and which of them failed or were skipped.

    A result that does not fit beside the others is omitted, and listed: the child's own record has it.
    """
    errors = [{"child": number, "error": error[:MAX_ERROR]} for number, error in failed.items()]
    summary: dict[str, Any] = {"results": [*results], "failed": errors, "skipped": [*skipped]}
    omitted = [number for number, result in enumerate(results) if not _is_shallow(result)]
    rest = {**summary, "results": [], "omittedChildren": [*range(len(results))]}
    room = MAX_CONTENT - json_size(rest)
    stored_room = MAX_STORED - stored_size(rest)
    for number, result in enumerate(results):
        if number not in omitted and (json_size(result) + 1 > room or stored_size([result]) > stored_room):
            omitted.append(number)
        shown = None if number in omitted else result
        room -= json_size(shown) + 1
        stored_room -= stored_size([shown])
    if not omitted:
        return summary
    included = [None if number in omitted else result for number, result in enumerate(results)]
    return {**summary, "results": included, "omittedChildren": sorted(omitted)}


def _is_shallow(result: object) -> bool:
    try:
        require_content("content", {"results": [result]})
    except InvalidInput:
        return False
    return True
