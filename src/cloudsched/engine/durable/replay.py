"""Replays a durable handler: each operation returns its recorded result from the journal, or runs and is recorded.

The handler starts from the top in each attempt. Where it has to wait for a result, `Suspended` unwinds it.
"""

from __future__ import annotations

import uuid
from random import Random
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from cloudsched.engine.durable.journal_cursor import JournalCursor
from cloudsched.engine.durable.step_attempt import Usage, require_not_timed_out
from cloudsched.engine.durable.timers import record_now
from cloudsched.engine.durable.values import RepeatableValues
from cloudsched.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.journal import FailureCause, JournalEntry
    from cloudsched.engine.durable.procedure import Procedure
    from cloudsched.engine.durable.suspend import Surroundings, Suspended

P = ParamSpec("P")
T = TypeVar("T")


class Replay:
    """A `DurableRun` with a journal: one attempt of a claimed execution."""

    def __init__(self, surroundings: Surroundings, execution_id: str) -> None:
        self._cursor = JournalCursor(surroundings, execution_id)
        self._values = RepeatableValues(surroundings.claimed_run.task.id, execution_id)

    # ── For the handler's context ────────────────────────────────────────────────────────────────────────────────

    def perform(
        self,
        what: str,  # noqa: ARG002 - the request is in its entry
        operation: Callable[Concatenate[JournalCursor, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Return what an operation returns; an outage suspends the handler, which sees no infrastructure error."""
        try:
            return operation(self._cursor, *args, **kwargs)
        except Unavailable as error:
            self._cursor.suspend_for_outage(f"could not continue: {error}")

    def perform_procedure(
        self,
        what: str,  # noqa: ARG002 - the same
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        """Return the procedure of an operation that calls functions of the user; an outage suspends the handler."""
        try:
            return (yield from operation(self._cursor, *args, **kwargs))
        except Unavailable as error:
            self._cursor.suspend_for_outage(f"could not continue: {error}")

    def now(self) -> datetime:
        """Return the current time, the same in every replay."""
        return self.perform("ctx.now()", record_now)

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same in every replay; any UUID inside a step, whose result is recorded."""
        require_not_timed_out()
        if self._cursor.is_in_step:
            return uuid.uuid4()
        self._cursor.thread.require_own("ctx.uuid()")
        return self._values.uuid()

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay; unseeded inside a step, whose result is recorded."""
        require_not_timed_out()
        if self._cursor.is_in_step:
            return Random()  # noqa: S311 - not used for security
        self._cursor.thread.require_own("ctx.random")
        return self._values.random

    @property
    def step_usage(self) -> Usage | None:
        """The usage that the running step has reported; None outside of steps."""
        return self._cursor.step_usage

    @property
    def usage_in_steps(self) -> Usage:
        """The total usage of the recorded steps."""
        if not self._cursor.entries:
            return Usage()
        entries = tuple(self._cursor.entries.values())
        return Usage(sum(each.queries or 0 for each in entries), sum(each.tokens or 0 for each in entries))

    @property
    def is_replaying(self) -> bool:
        """Whether the next entry was in the journal when this attempt started; False inside a step."""
        return not self._cursor.is_in_step and self._cursor.position < self._cursor.run.steps

    @property
    def lease_until(self) -> datetime | None:
        """Until when the last commit of journal entries renewed the lease."""
        return self._cursor.lease_until

    # ── For the executor ─────────────────────────────────────────────────────────────────────────────────────────

    def bind_thread(self) -> None:
        """Note that the handler runs in this thread, the only one that may request journal entries from now on."""
        self._cursor.thread.bind()

    def allow_event_loop(self, thread: int) -> None:
        """Let the event loop's thread request entries, too; the journal is loaded here, which would block it."""
        self._cursor.thread.allow(thread)
        self.perform("the journal", lambda cursor: cursor.journal)

    def check_complete(self) -> None:
        """Check that the handler, which has returned, requested all recorded entries; create its pending calls."""
        self.perform("the handler's end", JournalCursor.finish)

    def make_calls(self) -> None:
        """Create the tasks of calls that were started before an exception left the handler."""
        if self._cursor.calls.tasks:
            self.perform("the handler's end", JournalCursor.make_all_calls)

    def clock_now(self) -> datetime:
        """Return the current time without recording it."""
        return self._cursor.clock.now()

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        """Return which entries made the handler fail; `error` is None if it returned a failure."""
        return self._cursor.failures.cause_of(error, None if self.is_replaying else self._cursor.position)

    @property
    def suspension(self) -> Suspended | None:
        """What suspended the handler."""
        return self._cursor.suspension

    @property
    def calls_made(self) -> int:
        """Up to which entry number all calls are known to have tasks."""
        return self._cursor.calls.made

    @property
    def pending_entries(self) -> tuple[JournalEntry, ...]:
        """The entries that are not committed yet."""
        return tuple(self._cursor.pending.values()) if self._cursor.is_durable else ()

    @property
    def entries_or_none(self) -> tuple[JournalEntry, ...] | None:
        """The complete journal; None if it was not loaded, or if it is uncertain what was committed."""
        cursor = self._cursor
        if not cursor.is_complete:
            return None
        if not cursor.is_durable or cursor.entries is None:
            return None if cursor.run.steps else ()
        return tuple(cursor.entries[number] for number in sorted(cursor.entries))
