"""The journal of an attempt as the context and the executor use it: a `Replay`, or a `NoJournal` without records."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from cloudsched.domain.documents.journal import FailureCause, JournalEntry
    from cloudsched.engine.durable.journal_cursor import JournalCursor
    from cloudsched.engine.durable.no_journal import Recorded
    from cloudsched.engine.durable.step_attempt import Usage
    from cloudsched.engine.durable.suspend import Suspended
    from cloudsched.engine.ports.procedure import Procedure

P = ParamSpec("P")
T = TypeVar("T")


class DurableRun(Protocol):
    """One attempt of a handler that may be durable.

    - `perform` runs every recorded operation, which is a function that takes the cursor: new ones need no change here.
    - `now`, `uuid` and `random` work without a journal, too.
    - An outage of a service suspends the handler (`Suspended`) instead of raising `Unavailable` in it.
    """

    # ── For the handler's context ──

    def perform(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run an operation and return its result. `what` is the request as the handler writes it: ``ctx.gather``."""

    def perform_procedure(
        self,
        what: str,
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        """Return the procedure of an operation that calls functions of the user."""

    def now(self) -> datetime:
        """Return the current time, the same in every replay."""

    def uuid(self) -> UUID:
        """Return a new UUID, the same in every replay."""

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay."""

    @property
    def step_usage(self) -> Usage | None:
        """The usage that the running step has reported, or None outside of steps."""

    @property
    def is_replaying(self) -> bool:
        """Return whether the next entry was in the journal when this attempt started. Inside a step this is False."""

    @property
    def lease_until(self) -> datetime | None:
        """The instant until which the last commit of journal entries renewed the lease."""

    # ── For the executor ──

    def bind_thread(self) -> None:
        """Note that the handler runs in this thread, the only one that may request journal entries from now on."""

    def allow_event_loop(self, thread: int) -> None:
        """Let the event loop's thread request entries, too. Load the journal first, as loading would block the loop."""

    def check_complete(self) -> None:
        """Check that the handler, which has returned, requested all recorded entries, and create its pending calls."""

    def make_calls(self) -> None:
        """Create the tasks of calls that were started before an exception left the handler."""

    def clock_now(self) -> datetime:
        """Return the current time without recording it."""

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        """Return the entries that made the handler fail. `error` is None if it returned a failure."""

    @property
    def suspension(self) -> Suspended | None:
        """The signal that suspended the handler."""

    @property
    def recorded(self) -> Recorded:
        """The journal's part of the report of an attempt."""

    @property
    def entries_or_none(self) -> tuple[JournalEntry, ...] | None:
        """The complete journal, or None if it was not loaded, or if it is uncertain what was committed."""
