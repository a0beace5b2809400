"""What stands in for a journal where there is none: with a worker that reaches the tasks through the API alone.

A journal is written under the lease, in the store. Without it a handler can still ask for the time and for chance,
which are the same as everywhere; whatever would have to be remembered is refused.
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
    """The part of a `Journal` that needs no store.

    Args:
        task_id: The task whose handler asks.
        execution_id: The execution that it is about.
        clock: Where the present comes from.
    """

    pending_entries = ()
    """Nothing is recorded."""
    calls_made = 0
    """Nothing is called."""
    is_in_step = False
    is_replaying = False
    lease_until = None
    usage_in_steps = Usage()
    """There are no steps."""

    def __init__(self, task_id: str, execution_id: str, clock: Clock) -> None:
        self._seed = hashlib.sha256(f"{task_id} {execution_id}".encode()).digest()
        self._clock = clock
        self._uuids = 0

    def bind_thread(self) -> None:
        """Let any thread ask: nothing is recorded in an order."""

    def now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def clock_now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same ones in the same order on every attempt."""
        self._uuids += 1
        return uuid.uuid5(uuid.UUID(bytes=self._seed[:16]), str(self._uuids))

    @cached_property
    def random(self) -> Random:
        """Chance that is the same on every attempt."""
        return Random(self._seed)  # noqa: S311 - it is to be repeatable

    def check_complete(self) -> None:
        """Accept the handler's end: there was nothing to replay."""

    def find_failure_cause(self, error: BaseException | None) -> None:
        """Name nothing: there is no journal that a failure could come from."""

    def make_calls(self) -> None:
        """Make nothing: nothing was called."""

    def step(self, name: str, *_: object) -> NoReturn:
        """Refuse `Context.step`."""
        _refuse(f"ctx.step({name!r})")

    def call(self, handler: str, *_: object) -> NoReturn:
        """Refuse `Context.call`."""
        _refuse(f"ctx.call({handler!r})")

    def wait_for_results(self, *_: object) -> NoReturn:
        """Refuse `Context.gather`."""
        _refuse("ctx.gather")

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
        f"{what} has to be remembered in the store, and this worker reaches its tasks through the API. Run a worker of "
        "this queue at the store: `cloudsched worker` without --url and CLOUDSCHED_URL, with the store's own settings."
    )
