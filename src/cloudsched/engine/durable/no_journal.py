"""Replaces `DurableRun` where there is no journal: in a worker that reaches its tasks only through the API.

A journal is written in the store, under the lease. Without one a handler still has the time, UUIDs and random numbers;
whatever would have to be recorded is refused.
"""

from __future__ import annotations

import hashlib
import uuid
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NoReturn

from cloudsched.engine.durable.steps import Usage
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.engine.ports.clock import Clock


class NoJournal:
    """The part of a `DurableRun` that needs no store.

    Args:
        task_id: The handler's task.
        execution_id: The handler's execution.
        clock: Gives the current time.
    """

    pending_entries = ()
    """Nothing is recorded."""
    calls_made = 0
    """Nothing is called."""
    is_in_step = False
    is_replaying = False
    lease_until = None
    suspension = None
    usage_in_steps = Usage()
    """There are no steps."""

    def __init__(self, task_id: str, execution_id: str, clock: Clock) -> None:
        self._seed = hashlib.sha256(f"{task_id} {execution_id}".encode()).digest()
        self._clock = clock
        self._uuids = 0

    def bind_thread(self) -> None:
        """Allow every thread: nothing is recorded, so there is no order to keep."""

    def allow_event_loop(self, thread: int) -> None:
        """Do nothing: every thread is allowed."""

    def now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def clock_now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def uuid(self) -> uuid.UUID:
        """Return a new UUID; every attempt gets the same ones in the same order."""
        self._uuids += 1
        return uuid.uuid5(uuid.UUID(bytes=self._seed[:16]), str(self._uuids))

    @cached_property
    def random(self) -> Random:
        """A random source that repeats itself on every attempt."""
        return Random(self._seed)  # noqa: S311 - it is to be repeatable

    def check_complete(self) -> None:
        """Do nothing: there was nothing to replay."""

    def find_failure_cause(self, error: BaseException | None) -> None:
        """Return None: there is no journal whose entries could have failed."""

    def make_calls(self) -> None:
        """Do nothing: nothing was called."""

    def step(self, name: str, *_: object) -> NoReturn:
        """Refuse `Context.step`."""
        _refuse(f"ctx.step({name!r})")

    def handler_name(self, handler: object) -> str:
        """Return a handler as text; the call is refused."""
        return handler if isinstance(handler, str) else str(getattr(handler, "__name__", handler))

    def call(self, handler: str, *_: object) -> NoReturn:
        """Refuse `Context.call`."""
        _refuse(f"ctx.call({handler!r})")

    def wait_for_results(self, *_: object) -> NoReturn:
        """Refuse `Context.gather`."""
        _refuse("ctx.gather")

    def race(self, *_: object, **__: object) -> NoReturn:
        """Refuse `Context.race`."""
        _refuse("ctx.race")

    def sleep_until(self, *_: object) -> NoReturn:
        """Refuse `Context.sleep`."""
        _refuse("ctx.sleep")

    def wait_for(self, name: str, *_: object) -> NoReturn:
        """Refuse `Context.wait_for`."""
        _refuse(f"ctx.wait_for({name!r})")

    def version(self, name: str, *_: object) -> NoReturn:
        """Refuse `Context.version`."""
        _refuse(f"ctx.version({name!r})")


def _refuse(what: str) -> NoReturn:
    raise WorkflowError(
        f"{what} has to be recorded in the store, and this worker reaches its tasks through the API. Run a worker of "
        "this queue at the store: `cloudsched worker` without --url and CLOUDSCHED_URL, with the store's own settings."
    )
