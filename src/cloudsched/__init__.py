"""Durable scheduled tasks for Google Cloud, and a clock for tests.

>>> from datetime import timedelta
>>> from cloudsched import App, Context
>>> from cloudsched.testing import Simulation
>>> app = App()  # with the store and the queue of your settings
>>> @app.handler("remind")
... def remind(ctx: Context, reminder: dict[str, str]) -> None:
...     ctx.notify("Do not forget", reminder["what"])
>>> with Simulation(app) as sim:  # in tests, with a clock that you move
...     tea = remind.create({"what": "Tea"}, owner="ada", schedule="daily at 9")
...     sim.advance(timedelta(days=2))
...     [message.body for message in sim.inbox("ada")]
['Tea', 'Tea']

What you call. ``help(App.create)`` has arguments, errors and an example::

  App()                     Handlers and their tasks. AsyncApp: awaited.
    @app.handler(name)      Register a function as a handler.
    @app.scheduled(when)    Declare a task that runs a function.
    app.create, run_now     Create a task. create_many, draft, confirm
    app.get, tasks, search  Read tasks. watch, wait, explain, history
    app.executions          Read runs. execution, find_executions, logs
    app.update, delete      Change one. pause, resume, cancel, skip, move
    app.trigger, retry      Run it once more. snooze, backfill, send_event
    app.pause_all, restore  Stop everything, and go on. batch_change
    app.put_person, inbox   Reach people. update_person, unread, mark_read
    app.acting_for(user)    Do any of this with the rights of a user.
    app.joining(commit)     Change tasks in your own commit to Firestore.
  Context, AsyncContext     What a handler gets first.
    ctx.notify, progress    Tell the owner something. heartbeat, used
    ctx.step, call, sleep   Durable work. gather, race, wait_for, now, uuid
  Done, Retry, Snooze, Cancel, Fail     What it may return, besides a value.
  Schedule                  When a task runs. once_at, every, after, parse
  RetryPolicy, CatchUp, Overlap         What if runs fail, are late, or meet.
  Task, Execution           A task, and a run of it. TaskDraft, TaskQuery
  embedded, asgi, wsgi      Serve an app.
  cloudsched.client         Client(url), AsyncClient: the same over HTTP.
  cloudsched.testing        Simulation(app): a test that moves the clock.
    sim.advance(by)         Let time pass. run_until_idle, executions, inbox
  cloudsched.language       Read and write schedules in words.
  cloudsched.errors         All errors, such as InvalidInput and NotFound.

Names are imported when they are first used (PEP 562), so that a small part, such as the local Cloud
Tasks or the pytest plugin, does not import the rest.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.adapters.firestore.own_client import TaskReference as TaskReference
    from cloudsched.app import App as App
    from cloudsched.app import AppLike as AppLike
    from cloudsched.app import AsyncApp as AsyncApp
    from cloudsched.app import AsyncAppLike as AsyncAppLike
    from cloudsched.app import TaskLike as TaskLike
    from cloudsched.config.settings import Settings as Settings
    from cloudsched.domain.documents.authority import EventSender as EventSender
    from cloudsched.domain.documents.execution import Execution as Execution
    from cloudsched.domain.documents.execution import ExecutionStatus as ExecutionStatus
    from cloudsched.domain.documents.policy import CatchUp as CatchUp
    from cloudsched.domain.documents.policy import Overlap as Overlap
    from cloudsched.domain.documents.policy import RetryPolicy as RetryPolicy
    from cloudsched.domain.documents.task import Task as Task
    from cloudsched.domain.documents.task import TaskStatus as TaskStatus
    from cloudsched.domain.schedules.schedule import Schedule as Schedule
    from cloudsched.domain.transitions.outcome import Cancel as Cancel
    from cloudsched.domain.transitions.outcome import Done as Done
    from cloudsched.domain.transitions.outcome import Fail as Fail
    from cloudsched.domain.transitions.outcome import Retry as Retry
    from cloudsched.domain.transitions.outcome import Snooze as Snooze
    from cloudsched.domain.transitions.task_draft import TaskDraft as TaskDraft
    from cloudsched.engine.durable.durable_run import CallHandle as CallHandle
    from cloudsched.engine.durable.race import RaceResult as RaceResult
    from cloudsched.engine.handlers.async_context import AsyncContext as AsyncContext
    from cloudsched.engine.handlers.context import Context as Context
    from cloudsched.engine.handlers.signature import Depends as Depends
    from cloudsched.engine.ports.search import TaskQuery as TaskQuery
    from cloudsched.errors import CallFailed as CallFailed
    from cloudsched.errors import CloudschedError as CloudschedError
    from cloudsched.errors import EventTimedOut as EventTimedOut
    from cloudsched.errors import NotAwaited as NotAwaited
    from cloudsched.errors import StepFailed as StepFailed
    from cloudsched.local.embedded_app import Embedded as Embedded
    from cloudsched.local.embedded_app import embedded as embedded
    from cloudsched.local.visitor import Visitor as Visitor
    from cloudsched.web.functions import asgi as asgi
    from cloudsched.web.functions import wsgi as wsgi

    __all__: list[str]

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
    """Import a public name when it is first used. ``import *`` takes those whose packages are installed."""
    if name == "__all__":
        return [each for each in _MODULES if _is_installed(each)]
    if name not in _MODULES:
        raise AttributeError(f"module 'cloudsched' has no attribute {name!r}")
    imports = import_module("cloudsched.config.imports")  # this package imports nothing

    with imports.pause_collection(), imports.require_extra(f"cloudsched.{name}"):
        value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def _is_installed(name: str) -> bool:
    try:
        __getattr__(name)
    except ImportError:  # MissingExtra is one
        return False
    return True


def __dir__() -> list[str]:
    """Return the public names. Return none to `help`, which would print all classes in full."""
    asker = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001 - whose code has called `dir`
    return [] if asker == "inspect" else sorted(_MODULES)
