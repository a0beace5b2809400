"""What a task says that runs others in place of a handler of its own: which, in which way, and what if one fails.

In order, each child begins when the one before it has ended; in parallel, all begin at once. The task is complete when
all are done. A child that fails: ``fail`` fails the task, and no further child begins; ``skip`` leaves out the children
after it, and ``continue`` goes on with them; the task succeeds, and its result says what failed.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from cloudsched.domain.document import Duration, Value
from cloudsched.domain.policy import Priority, RetryPolicy

HANDLER = "cloudsched.children"
"""The built-in handler of tasks that have children."""
MAX_CHILDREN = 100

_Text = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class OnChildFailure(StrEnum):
    """What a failed child does to those after it, and to the task."""

    FAIL = "fail"
    SKIP = "skip"
    CONTINUE = "continue"


class Child(Value):
    """One task that a task runs."""

    handler: _Text
    payload: dict[str, Any] = Field(default_factory=dict)
    title: _Text | None = None
    results_as: _Text | None = None
    """The field of its payload in which it is given the results of the children before it, as a list. In order only."""
    retry: RetryPolicy | None = None
    """The handler's own policy, if it is left out."""
    priority: Priority | None = None
    """The task's own, if it is left out."""
    lock_key: _Text | None = None
    expected_duration: Duration | None = Field(default=None, gt=timedelta(0), le=timedelta(hours=1))

    def options(self) -> dict[str, Any]:
        """Return what a call of it says besides its handler and its payload."""
        names = ("title", "retry", "priority", "lock_key", "expected_duration")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
