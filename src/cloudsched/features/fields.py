"""The fields that features add to documents: one class for each document, with those of all features.

To take a feature out is to delete its classes here, beside its row in `features.table`.
"""

from __future__ import annotations

from cloudsched.features.budgets.fields import BudgetOptions, SpecBudgetFields, TaskBudgetFields
from cloudsched.features.deliveries.fields import DeliveryOptions, SpecDeliveryFields, TaskDeliveryFields
from cloudsched.features.locks.fields import (
    ChildLockFields,
    LockOptions,
    LockScope,
    RunLockFields,
    SpecLockFields,
    TaskLockFields,
)
from cloudsched.features.pull.fields import (
    ChildPullFields,
    HandlerPullFields,
    HandlerPullOptions,
    Offer,
    OfferEntry,
    Pull,
    PullOptions,
    QueueName,
    Skill,
    SpecPullFields,
    TaskPullFields,
)

__all__ = [
    "CallOptions",
    "ChildFields",
    "HandlerFields",
    "LockScope",
    "Offer",
    "OfferEntry",
    "Pull",
    "QueueName",
    "RegistrationOptions",
    "RunFields",
    "Skill",
    "SpecFields",
    "TaskFields",
]


class SpecFields(SpecBudgetFields, SpecLockFields, SpecDeliveryFields, SpecPullFields):
    """What owners set in a task (`TaskSpec`)."""


class ChildFields(ChildLockFields, ChildPullFields):
    """What a child task has (`Child`)."""


class RunFields(RunLockFields):
    """What an open run has (`Run`)."""


class TaskFields(TaskBudgetFields, TaskLockFields, TaskDeliveryFields, TaskPullFields):
    """What a stored task has (`Task`)."""


class CallOptions(BudgetOptions, LockOptions, DeliveryOptions, PullOptions):
    """What a call or a creation may set, by Python names (`CommonFields`)."""


class HandlerFields(HandlerPullFields):
    """What a registered handler has (`Handler`)."""


class RegistrationOptions(HandlerPullOptions):
    """What the registration of a handler may set, by Python names (`HandlerOptions`)."""
