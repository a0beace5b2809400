"""What a task says of its owner's budget."""

from __future__ import annotations

from cloudsched.domain.documents.document import WireModel


class TaskBudgetFields(WireModel):
    """The field of a stored task."""

    has_budget: bool = False
    """True if each start of it first checks its owner's budget.

    It is set where an owner with a budget spends.
    """
