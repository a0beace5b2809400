"""Durable scheduled tasks for Google Cloud, without a server to run, and with a clock that tests can move.

>>> from datetime import timedelta
>>> from cloudsched import App, Context
>>> from cloudsched.testing import Simulation
>>> app = App()
>>> @app.handler("remind")
... def remind(ctx: Context, reminder: dict[str, str]) -> None:
...     ctx.notify("Do not forget", reminder["about"])
>>> with Simulation(app) as sim:  # in tests: elsewhere the app has the store and the queue of your settings
...     task = app.create(handler=remind, payload={"about": "Tea"}, owner="ada", schedule="every day at 9")
...     sim.advance(timedelta(days=2))
...     [message.body for message in sim.inbox("ada")]
['Tea', 'Tea']

What you call. ``help(App.create)`` has the arguments of one, its errors and an example::

    App()                     your handlers and their tasks. AsyncApp(app) has the same methods, awaited.
      @app.handler(name)      Register a function as a handler.
      @app.scheduled(when)    Declare a task that runs a function.
      app.create, run_now     Create a task. create_many, draft and confirm, validate_task
      app.get, tasks, search  Read tasks. watch, wait, explain, upcoming, history, tree
      app.executions          Read runs. execution, find_executions, logs, deliveries
      app.update, delete      Change a task. pause, resume, cancel, skip, move, send_event
      app.trigger, retry      Run it once more. snooze, backfill
      app.pause_all, restore  Stop everything, and go on. batch_change
      app.put_person, inbox   Say how to reach somebody. update_person, unread, mark_read
      app.acting_for(user)    Do any of this with the rights of a user.
      app.joining(commit)     Change tasks in your own commit to Firestore.

    Context                   What a handler gets first; AsyncContext if it is async.
      ctx.notify, progress    Tell the owner something. heartbeat, used
      ctx.step, call, sleep   Durable work. gather, race, wait_for, now, uuid, version
      Done, Retry, Snooze, Cancel, Fail    What it may return, besides any value.

    Schedule                  When a task runs: once, once_at, after, every, parse. Or plain words.
    RetryPolicy, CatchUp, Overlap          What happens after failures, after downtime, and if runs meet.
    Task, Execution           A task, and a run of it. TaskStatus, ExecutionStatus, TaskDraft, TaskQuery
    embedded, asgi, wsgi      Serve an app, inside your own service or by itself.

    cloudsched.client         Client(url, key=...) and AsyncClient call the API: the same methods.
    cloudsched.testing        Simulation(app) has a store, a queue and a clock that a test moves.
      sim.advance(by)         Let time pass. run_until_idle, executions, inbox, sent
    cloudsched.language       Read and write schedules in words.
    cloudsched.errors         All errors. Each is a CloudschedError, such as InvalidInput or NotFound.

Names are imported when they are first used (PEP 562), so that a small part, such as the local Cloud
Tasks or the pytest plugin, does not import the rest.
"""

import sys
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
    """Return the public names. Return none to `help`, which would print all classes in full."""
    asker = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 - whose code has called `dir`
    return [] if asker == "inspect" else sorted(__all__)
