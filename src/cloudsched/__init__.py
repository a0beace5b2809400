"""Durable scheduled tasks for Google Cloud, without a server to run, and with a clock that tests can move.

- ``App`` registers your handlers, and creates, changes and reads their tasks. ``AsyncApp`` is the same to be awaited.
- A handler gets a ``Context``, and returns a value, or ``Done``, ``Retry``, ``Snooze``, ``Cancel`` or ``Fail``.
- ``Schedule`` says when a task runs. ``Task`` and ``Execution`` are the records of it and of each run.
- ``embedded``, ``asgi`` and ``wsgi`` serve an app. ``cloudsched.client.Client`` calls the API of one.
- ``cloudsched.testing.Simulation`` runs tasks by a clock that you move. ``cloudsched.errors`` has all errors.

Names are imported when they are first used (PEP 562), so that a small part, such as the local Cloud
Tasks or the pytest plugin, does not import the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.own_client import TaskReference
    from cloudsched.app import App, AppLike, AsyncApp, AsyncAppLike, TaskLike
    from cloudsched.config.settings import Settings
    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.execution import Execution, ExecutionStatus
    from cloudsched.domain.documents.policy import CatchUp, Overlap, RetryPolicy
    from cloudsched.domain.documents.task import Task, TaskStatus
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Retry, Snooze
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.durable.durable_run import CallHandle
    from cloudsched.engine.durable.race import RaceResult
    from cloudsched.engine.handlers.async_context import AsyncContext
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.handlers.signature import Depends
    from cloudsched.engine.ports.search import TaskQuery
    from cloudsched.errors import CallFailed, CloudschedError, EventTimedOut, NotAwaited, StepFailed
    from cloudsched.local.embedded_app import Embedded, embedded
    from cloudsched.local.visitor import Visitor
    from cloudsched.web.functions import asgi, wsgi

__all__ = [
    "App",
    "AppLike",
    "AsyncApp",
    "AsyncAppLike",
    "AsyncContext",
    "CallFailed",
    "CallHandle",
    "Cancel",
    "CatchUp",
    "CloudschedError",
    "Context",
    "Depends",
    "Done",
    "Embedded",
    "EventSender",
    "EventTimedOut",
    "Execution",
    "ExecutionStatus",
    "Fail",
    "NotAwaited",
    "Overlap",
    "RaceResult",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "Settings",
    "Snooze",
    "StepFailed",
    "Task",
    "TaskDraft",
    "TaskLike",
    "TaskQuery",
    "TaskReference",
    "TaskStatus",
    "Visitor",
    "asgi",
    "embedded",
    "wsgi",
]

_HOMES = {
    "adapters.firestore.own_client": ("TaskReference",),
    "app": ("App", "AppLike", "AsyncApp", "AsyncAppLike", "TaskLike"),
    "config.settings": ("Settings",),
    "domain.transitions.task_draft": ("TaskDraft",),
    "domain.documents.authority": ("EventSender",),
    "domain.documents.execution": ("Execution", "ExecutionStatus"),
    "domain.transitions.outcome": ("Cancel", "Done", "Fail", "Retry", "Snooze"),
    "domain.documents.policy": ("CatchUp", "Overlap", "RetryPolicy"),
    "domain.schedules.schedule": ("Schedule",),
    "domain.documents.task": ("Task", "TaskStatus"),
    "engine.durable.durable_run": ("CallHandle",),
    "engine.durable.race": ("RaceResult",),
    "engine.handlers.async_context": ("AsyncContext",),
    "engine.handlers.context": ("Context",),
    "engine.handlers.signature": ("Depends",),
    "engine.ports.search": ("TaskQuery",),
    "local.embedded_app": ("Embedded", "embedded"),
    "local.visitor": ("Visitor",),
    "web.functions": ("asgi", "wsgi"),
    "errors": ("CallFailed", "CloudschedError", "EventTimedOut", "NotAwaited", "StepFailed"),
}
_MODULES = {name: f"cloudsched.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'cloudsched' has no attribute {name!r}")
    imports = import_module("cloudsched.config.imports")  # this package imports nothing

    with imports.pause_collection(), imports.require_extra(f"cloudsched.{name}"):
        value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
