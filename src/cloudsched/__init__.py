"""Durable scheduled tasks for Google Cloud, with no server to keep and a clock that tests can move.

Read five files and you have the whole: ``domain/documents/task.py`` (a task), ``domain/transitions/planning.py``
(when it runs, and what carries it there), ``engine/ports/store.py`` (what is needed from outside),
``engine/execution/executor.py`` (what a delivery does), ``app.py`` (what callers do; ``runtime/container.py`` puts it
together). Then ``domain/transitions/claim.py`` and ``domain/transitions/finish.py`` hold the decisions, and
``errors.py`` all that can go wrong.

Names are imported when they are first used (PEP 562), so that a part which needs little, such as the local Cloud
Tasks or the pytest plugin, does not pay for the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.config.settings import Settings
    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.execution import Execution, ExecutionStatus
    from cloudsched.domain.documents.outcome import Cancel, Done, Fail, Retry, Snooze
    from cloudsched.domain.documents.policy import CatchUp, Overlap, RetryPolicy
    from cloudsched.domain.documents.task import Task, TaskStatus
    from cloudsched.domain.recurrence.schedule import Schedule
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.store import TaskQuery
    from cloudsched.errors import CallFailed, CloudschedError, EventTimedOut, StepFailed

__all__ = [
    "App",
    "CallFailed",
    "Cancel",
    "CatchUp",
    "CloudschedError",
    "Context",
    "Done",
    "EventSender",
    "EventTimedOut",
    "Execution",
    "ExecutionStatus",
    "Fail",
    "Overlap",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "Settings",
    "Snooze",
    "StepFailed",
    "Task",
    "TaskDraft",
    "TaskQuery",
    "TaskStatus",
]

_HOMES = {
    "app": ("App",),
    "config.settings": ("Settings",),
    "domain.transitions.drafts": ("TaskDraft",),
    "domain.documents.authority": ("EventSender",),
    "domain.documents.execution": ("Execution", "ExecutionStatus"),
    "domain.documents.outcome": ("Cancel", "Done", "Fail", "Retry", "Snooze"),
    "domain.documents.policy": ("CatchUp", "Overlap", "RetryPolicy"),
    "domain.recurrence.schedule": ("Schedule",),
    "domain.documents.task": ("Task", "TaskStatus"),
    "engine.handlers.context": ("Context",),
    "engine.ports.store": ("TaskQuery",),
    "errors": ("CallFailed", "CloudschedError", "EventTimedOut", "StepFailed"),
}
_MODULES = {name: f"cloudsched.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'cloudsched' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
