"""How the tests of durable handlers run them: the handler is ``work``, and time is moved for them."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from cloudsched import App, Context, Execution, Schedule, Task
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.testing import START, Simulation

T = TypeVar("T")
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

Create = Callable[..., Task]
"""Creates a task, as the fixture ``create`` does."""
Simulate = Callable[..., Simulation]
"""Starts a simulation, as the fixture ``simulate`` does."""


def create(app: App, **fields: Any) -> Task:
    usual: dict[str, Any] = {"owner": "ada", "handler": "work", "schedule": Schedule.once(START)}
    return app.create(**(usual | fields))


def run(
    app: App,
    call: Callable[[Context], Any] | None = None,
    *,
    limit: timedelta = 400 * DAY,
    replay: bool = False,
    **fields: Any,
) -> Execution:
    """Run the handler ``work`` once, which is `call` if that is given, and return its record."""
    if call is not None:
        register_work_handler(app, call)
    with Simulation(app, replay=replay) as sim:
        task = create(app, **fields)
        return app.execution(task.id, run_to_end(sim, task, limit).id)


def only_run(sim: Simulation, task: Task | str) -> Execution:
    """Return the only execution of a task."""
    (execution,) = sim.executions(task if isinstance(task, str) else task.id)
    return execution


def run_to_end(sim: Simulation, task: Task | str, limit: timedelta = DAY) -> Execution:
    """Move the clock until nothing is left to do, or by `limit`, and return the only execution of a task."""
    sim.run_until_idle(limit)
    return only_run(sim, task)


def elsewhere(do: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Do something within a handler as somebody else does it meanwhile: it is not the handler's own code."""
    return contextvars.Context().run(partial(do, *args, **kwargs))


def register_work_handler(app: App, call: Callable[[Context], Any]) -> None:
    @app.handler("work")
    def work(ctx: Context) -> Any:  # noqa: ANN401 - whatever the test says
        return call(ctx)


class Row(BaseModel):
    """A payload, and a result."""

    n: int


class RecordingQueue:
    """A queue that only stores what is sent."""

    def __init__(self) -> None:
        self.sent: list[QueueMessage] = []

    def create(self, message: QueueMessage) -> None:
        self.sent.append(message)

    def deliver_latest(self, app: App) -> None:
        """Deliver what was sent last."""
        app.deliver(self.sent[-1].body, self.sent[-1].token)

    def close(self) -> None:
        """Do nothing."""
