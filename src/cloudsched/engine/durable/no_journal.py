"""The `DurableRun` of a handler that records nothing.

That is every handler in a worker that reaches its tasks only through the API, and one that does not get the context. A
journal is written in the store, under the lease. Without one a handler still has the time, UUIDs and random numbers. A
request that would have to be recorded is refused.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Concatenate, NamedTuple, NoReturn, ParamSpec, TypeVar
from uuid import UUID

from cloudsched.engine.durable.step_attempt import Usage
from cloudsched.errors import WorkflowError

if TYPE_CHECKING:
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.durable.journal_cursor import JournalCursor
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.procedure import Procedure


class RepeatableValues:
    """The values of one attempt, in the order in which its handler asks for them."""

    def __init__(self, task_id: str, execution_id: str) -> None:
        self._name = f"{task_id} {execution_id}"
        self._uuids = 0

    @cached_property
    def _seed(self) -> bytes:
        return hashlib.sha256(self._name.encode()).digest()

    @cached_property
    def random(self) -> Random:
        """A random generator with the same seed in every attempt."""
        return Random(self._seed)  # noqa: S311 - it must be repeatable

    def uuid(self) -> uuid.UUID:
        """Return a new UUID. Every attempt gets the same ones in the same order."""
        self._uuids += 1
        return uuid.uuid5(uuid.UUID(bytes=self._seed[:16]), str(self._uuids))


P = ParamSpec("P")
T = TypeVar("T")


class Recorded(NamedTuple):
    """The part of a journal that goes into the report of an attempt."""

    usage: Usage
    """The total usage of the recorded steps."""
    entries: tuple[JournalEntry, ...]
    """The entries that are not committed yet."""
    calls_made: int
    """The entry number up to which all calls are known to have tasks."""


class NoJournal:
    """A `DurableRun` that records nothing.

    Args:
        task_id: The handler's task.
        execution_id: The handler's execution.
        clock: Gives the current time.
    """

    step_usage = None
    is_replaying = False
    lease_until = None
    suspension = None
    recorded = Recorded(Usage(), (), 0)
    entries_or_none = None

    def __init__(self, task_id: str, execution_id: str, clock: Clock) -> None:
        self._values = RepeatableValues(task_id, execution_id)
        self._clock = clock

    def perform(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], T],  # noqa: ARG002 - there is no cursor
        /,
        *args: P.args,  # noqa: ARG002 - the same
        **kwargs: P.kwargs,  # noqa: ARG002 - the same
    ) -> NoReturn:
        """Refuse the operation.

        Raises:
            WorkflowError: Always.
        """
        raise WorkflowError(
            f"{what} has to be recorded in the store, and this worker reaches its tasks through the API. Run a worker "
            "of this queue at the store: `cloudsched worker` without --url and CLOUDSCHED_URL, with the store's own "
            "settings."
        )

    def perform_procedure(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> NoReturn:
        """Refuse the operation.

        Raises:
            WorkflowError: Always.
        """
        self.perform(what, operation, *args, **kwargs)

    def now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def uuid(self) -> UUID:
        """Return a new UUID. Every attempt gets the same ones in the same order."""
        return self._values.uuid()

    @property
    def random(self) -> Random:
        """A random source that repeats itself on every attempt."""
        return self._values.random

    def bind_thread(self) -> None:
        """Allow every thread: nothing is recorded, so there is no order to keep."""

    def allow_event_loop(self, thread: int) -> None:
        """Do nothing: every thread is allowed."""

    def check_complete(self) -> None:
        """Do nothing: there was nothing to replay."""

    def make_calls(self) -> None:
        """Do nothing: nothing was called."""

    def clock_now(self) -> datetime:
        """Return the present instant."""
        return self._clock.now()

    def find_failure_cause(self, error: BaseException | None) -> None:
        """Return None: there is no journal whose entries could have failed."""
