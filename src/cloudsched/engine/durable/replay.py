"""Replays a durable handler: each operation returns its recorded result from the journal, or runs and is recorded.

The handler starts from the top in each attempt. Where it has to wait for a result, `Suspended` unwinds it.
"""

# ruff: noqa: D102 - `DurableRun` describes each method

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import TYPE_CHECKING, Concatenate

from cloudsched.engine.durable.durable_run import NOTHING_RECORDED, DurableRun, P, Recorded, T
from cloudsched.engine.durable.step_attempt import HandlerThread, Usage, require_not_timed_out
from cloudsched.errors import Unavailable

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import FailureCause, JournalEntry
    from cloudsched.engine.durable.journal_cursor import JournalCursor
    from cloudsched.engine.durable.suspension import Surroundings, Suspended
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.procedure import Procedure


class Replay(DurableRun):
    """One attempt of a claimed execution, with its journal."""

    def __init__(self, task_id: str, run: Run, clock: Clock, make_surroundings: Callable[[], Surroundings]) -> None:
        super().__init__(task_id, run.execution_id, clock)
        self._run = run
        self._make_surroundings = make_surroundings
        self._thread = HandlerThread()
        self._opening = threading.Lock()
        self._opened: JournalCursor | None = None
        if run.steps:
            self._open()

    def _open(self) -> JournalCursor:
        """Return the position in the journal, made when the handler first asks for something that is recorded."""
        from cloudsched.engine.durable.journal_cursor import JournalCursor  # noqa: PLC0415 - few handlers are durable

        with self._opening:  # another thread may be doing the same, to be refused
            if self._opened is None:
                self._opened = JournalCursor(self._make_surroundings(), self._thread)
            return self._opened

    # ── For the handler's context ────────────────────────────────────────────────────────────────────────────────

    def perform(
        self,
        what: str,  # noqa: ARG002 - the request is in its entry
        operation: Callable[Concatenate[JournalCursor, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        try:
            return operation(self._open(), *args, **kwargs)
        except Unavailable as error:
            self._open().suspend_for_outage(f"could not continue: {error}")

    def perform_procedure(
        self,
        what: str,  # noqa: ARG002 - the same
        operation: Callable[Concatenate[JournalCursor, P], Procedure[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Procedure[T]:
        try:
            return (yield from operation(self._open(), *args, **kwargs))
        except Unavailable as error:
            self._open().suspend_for_outage(f"could not continue: {error}")

    def now(self) -> datetime:
        from cloudsched.engine.durable.waits import record_now  # noqa: PLC0415 - the same

        return self.perform("ctx.now()", record_now)

    def uuid(self) -> uuid.UUID:
        """Return a new UUID, the same in every replay. Inside a step, whose result is recorded, it may be any UUID."""
        require_not_timed_out()
        if self.step_usage is not None:
            return uuid.uuid4()
        self._thread.require_own("ctx.uuid()")
        return super().uuid()

    @property
    def random(self) -> Random:
        """A random generator with the same seed in every replay. In a step, which is not replayed, it has no seed."""
        require_not_timed_out()
        if self.step_usage is not None:
            return Random()  # noqa: S311 - not used for security
        self._thread.require_own("ctx.random")
        return self._random

    @property
    def step_usage(self) -> Usage | None:
        return None if self._opened is None else self._opened.step_usage

    @property
    def is_replaying(self) -> bool:
        cursor = self._opened
        return cursor is not None and not cursor.is_in_step and cursor.position < self._run.steps

    @property
    def lease_until(self) -> datetime | None:
        return None if self._opened is None else self._opened.lease_until

    # ── For the executor ─────────────────────────────────────────────────────────────────────────────────────────

    def bind_thread(self) -> None:
        self._thread.own = threading.get_ident()

    def allow_event_loop(self, thread: int) -> None:
        self._thread.event_loop = thread
        if self._run.steps:
            self.perform("the journal", lambda cursor: cursor.journal)

    def check_complete(self) -> None:
        if self._opened is not None:
            self.perform("the handler's end", lambda cursor: cursor.finish())

    def make_calls(self) -> None:
        if self._opened is not None and self._opened.calls.tasks:
            self.perform("the handler's end", lambda cursor: cursor.make_all_calls())

    def find_failure_cause(self, error: BaseException | None) -> FailureCause | None:
        cursor = self._opened
        if cursor is None:
            return None
        return cursor.failures.cause_of(error, None if self.is_replaying else cursor.position)

    @property
    def suspension(self) -> Suspended | None:
        return None if self._opened is None else self._opened.suspension

    @property
    def recorded(self) -> Recorded:
        cursor = self._opened
        if cursor is None:
            return Recorded(NOTHING_RECORDED.usage, (), self._run.calls_made, ())
        entries = tuple((cursor.entries or {}).values())
        usage = Usage(sum(each.queries or 0 for each in entries), sum(each.tokens or 0 for each in entries))
        pending = tuple(cursor.pending.values()) if cursor.is_durable else ()
        return Recorded(usage, pending, cursor.calls.made, _find_whole(cursor))


def _find_whole(cursor: JournalCursor) -> tuple[JournalEntry, ...] | None:
    if not cursor.is_complete:
        return None
    if not cursor.is_durable or cursor.entries is None:
        return None if cursor.run.steps else ()
    return tuple(cursor.entries[number] for number in sorted(cursor.entries))
