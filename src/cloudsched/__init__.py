"""Durable scheduled tasks for Google Cloud, with no server to keep and a clock that tests can move.

To read the code, read five files and have the whole: ``domain/task.py`` (what a task is), ``domain/planning.py`` (when
it runs, and what carries it there), ``engine/ports.py`` (what is needed from outside), ``engine/executor.py`` (what a
delivery does), ``app.py`` (what callers do; ``assembly.py`` puts it together). Then ``domain/claiming.py`` and
``domain/finishing.py`` hold the decisions, and ``errors.py`` all that can go wrong.

Names are imported when they are first used (PEP 562), so that a part which needs little, such as the local Cloud
Tasks or the pytest plugin, does not pay for the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.config import Settings
    from cloudsched.domain.drafts import TaskDraft
    from cloudsched.domain.execution import Execution, ExecutionStatus
    from cloudsched.domain.outcome import Cancel, Done, Fail, Retry, Snooze
    from cloudsched.domain.policy import CatchUp, Overlap, RetryPolicy
    from cloudsched.domain.schedule import Schedule
    from cloudsched.domain.task import Task, TaskStatus
    from cloudsched.engine.context import Context
    from cloudsched.engine.ports import TaskQuery
    from cloudsched.errors import CallFailed, CloudschedError, EventTimedOut, StepFailed

__all__ = [
    "App",
    "CallFailed",
    "Cancel",
    "CatchUp",
    "CloudschedError",
    "Context",
    "Done",
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
    "config": ("Settings",),
    "domain.drafts": ("TaskDraft",),
    "domain.execution": ("Execution", "ExecutionStatus"),
    "domain.outcome": ("Cancel", "Done", "Fail", "Retry", "Snooze"),
    "domain.policy": ("CatchUp", "Overlap", "RetryPolicy"),
    "domain.schedule": ("Schedule",),
    "domain.task": ("Task", "TaskStatus"),
    "engine.context": ("Context",),
    "engine.ports": ("TaskQuery",),
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
