"""The fields that features add to documents: one class for each document, with those of all features.

To take a feature out is to delete its classes here, beside its row in `features.table`.
"""

from __future__ import annotations

from cloudsched.features.budgets.fields import TaskBudgetFields
from cloudsched.features.locks.fields import (
    ChildLockFields,
    LockOptions,
    LockScope,
    RunLockFields,
    SpecLockFields,
    TaskLockFields,
)

__all__ = ["CallOptions", "ChildFields", "LockScope", "RunFields", "SpecFields", "TaskFields"]


class SpecFields(SpecLockFields):
    """What owners set in a task (`TaskSpec`)."""


class ChildFields(ChildLockFields):
    """What a child task has (`Child`)."""


class RunFields(RunLockFields):
    """What an open run has (`Run`)."""


class TaskFields(TaskBudgetFields, TaskLockFields):
    """What a stored task has (`Task`)."""


class CallOptions(LockOptions):
    """What a call or a creation may set, by Python names (`CommonFields`)."""
