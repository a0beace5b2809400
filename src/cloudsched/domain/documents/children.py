"""What a task says that runs others in place of a handler of its own: which, in which way, and what if one fails.

In order, each child begins when the one before it has ended; in parallel, all begin at once. The task is complete when
all are done. A child that fails: ``fail`` fails the task, and no further child begins; ``skip`` leaves out the children
after it, and ``continue`` goes on with them; the task succeeds, and its result says what failed. A child that cannot
begin, since its payload does not fit with the results that were put into it, has failed.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, StringConstraints

from cloudsched.domain.documents.document import Duration, WireModel
from cloudsched.domain.documents.json_limits import MAX_CONTENT, MAX_STORED, json_size, require_content, stored_size
from cloudsched.domain.documents.policy import Priority, RetryPolicy
from cloudsched.domain.documents.pull import Pull
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHILDREN_HANDLER = "cloudsched.children"
"""The built-in handler of tasks that have children."""
MAX_CHILDREN = 100
MAX_ERROR = 500
"""How many characters the result says of why a child failed."""

_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class OnChildFailure(StrEnum):
    """What a failed child does to those after it, and to the task."""

    FAIL = "fail"
    SKIP = "skip"
    CONTINUE = "continue"


class Child(WireModel):
    """One task that a task runs."""

    handler: _Text
    payload: dict[str, Any] = Field(default_factory=dict)
    title: _Text | None = None
    results_as: _Text | None = None
    """The field of its payload in which it is given the results of the children before it, as a list. In order only."""
    pull: Pull | None = None
    """Which workers run it; as the handler says, if it is left out."""
    retry: RetryPolicy | None = None
    """The handler's own policy, if it is left out."""
    priority: Priority | None = None
    """The task's own, if it is left out."""
    lock_key: _Text | None = None
    expected_duration: Duration | None = Field(default=None, gt=timedelta(0), le=timedelta(hours=1))

    def to_call_fields(self) -> dict[str, Any]:
        """Return what a call of it says besides its handler and its payload."""
        names = ("title", "pull", "retry", "priority", "lock_key", "expected_duration")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def gather_results(results: Sequence[Any], failed: Mapping[int, str], skipped: Iterable[int]) -> dict[str, Any]:
    """Return the result of a task: those of its children in their order, and what failed or was skipped.

    A result that no record can keep beside the others is left out, and listed: the child's own record has it.
    """
    errors = [{"child": number, "error": error[:MAX_ERROR]} for number, error in failed.items()]
    said: dict[str, Any] = {"results": [*results], "failed": errors, "skipped": [*skipped]}
    left_out = [number for number, result in enumerate(results) if not _is_shallow(result)]
    rest = {**said, "results": [], "omittedChildren": [*range(len(results))]}
    room, stored_room = MAX_CONTENT - json_size(rest), MAX_STORED - stored_size(rest)
    for number, result in enumerate(results):
        if number not in left_out and (json_size(result) + 1 > room or stored_size([result]) > stored_room):
            left_out.append(number)
        shown = None if number in left_out else result
        room -= json_size(shown) + 1
        stored_room -= stored_size([shown])
    if not left_out:
        return said
    kept = [None if number in left_out else result for number, result in enumerate(results)]
    return {**said, "results": kept, "omittedChildren": sorted(left_out)}


def _is_shallow(result: object) -> bool:
    try:
        require_content("content", {"results": [result]})
    except InvalidInput:
        return False
    return True
