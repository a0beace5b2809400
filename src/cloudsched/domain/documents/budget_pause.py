"""A task's pause because its owner's budget is used up."""

from __future__ import annotations

from cloudsched.domain.documents.document import Instant, WireModel


class BudgetPause(WireModel):
    """The latest such pause of a task."""

    at: Instant
    """From when on the task's plan goes on afterwards: nothing that comes due meanwhile is lost."""
    is_alone: bool = True
    """Whether nobody else has paused the task, too: then it is resumed when there is a budget again."""
