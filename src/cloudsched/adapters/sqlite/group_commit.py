"""Concurrent writers of a SQLite connection share transactions, so that many of them wait for the disk only once.

The first writer commits what waits at that moment, its own part included. Whoever comes meanwhile waits, and the first
of those is the next to commit. So each writer is woken once: when its part is on disk, or when it is its turn to commit
for the others.

If a part fails, its writes must not stay while the others' do. That is rare, so a transaction has savepoints only once
a part has failed: then all parts are done again, each after a savepoint to return to. Failures come together, where
many compete for one document: the next transactions have savepoints at once, until none of their parts fails.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

MAX_GROUP_SIZE = 64
"""The most writers that share one transaction, so that none waits long for the others."""


@dataclass(slots=True, eq=False)
class WriteUnit(Generic[T]):
    """One writer's part of a transaction, and its result. Its work may be done twice; only the last time counts."""

    work: Callable[[sqlite3.Connection], T]
    result: T | None = None
    error: Exception | None = None
    """What its work raised."""
    done: bool = False
    failure: str | None = None
    """Why the transaction failed as a whole, if it did."""
    leads: bool = False
    """Whether its writer commits for all that wait."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held from the beginning, and released when it is done, or when its writer is to commit for all that wait."""

    def run(self, connection: sqlite3.Connection) -> bool:
        """Do the work, and return whether it succeeded; if not, only its own writes are rolled back."""
        connection.execute("SAVEPOINT unit")
        has_succeeded = self.try_to_run(connection)
        if not has_succeeded:
            connection.execute("ROLLBACK TO unit")
        connection.execute("RELEASE unit")
        return has_succeeded

    def try_to_run(self, connection: sqlite3.Connection) -> bool:
        """Do the work; return whether it may be committed."""
        self.error = None
        try:
            self.result = self.work(connection)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that asked for this work
            self.error = error
            return False
        return True

    def get_result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return cast("T", self.result)


class GroupCommit:
    """The transactions of one connection.

    Args:
        connection: Begins and ends no transactions of its own.
        lock: Held during each transaction.
    """

    def __init__(self, connection: sqlite3.Connection, lock: threading.Lock) -> None:
        self._connection = connection
        self._connection_lock = lock
        self._queue_lock = threading.Lock()
        self._waiting: deque[WriteUnit[Any]] = deque()
        self._has_leader = False
        self._expects_failures = False
        """Whether a part of the latest transaction with savepoints failed."""

    @property
    def waiting(self) -> int:
        """Count the writers that wait for a transaction, apart from those whose transaction is under way."""
        return len(self._waiting)

    def run(self, work: Callable[[sqlite3.Connection], T]) -> WriteUnit[T]:
        """Run `work` inside a transaction, perhaps in another thread; return it once that is on disk, or has failed."""
        unit = WriteUnit(work)
        unit.turn.acquire()
        try:
            with self._queue_lock:
                self._waiting.append(unit)
                if not self._has_leader:
                    unit.leads = self._has_leader = True
            if not unit.leads:
                unit.turn.acquire()
            while not unit.done:
                self._commit_group()
        finally:
            self._leave(unit)
        return unit

    def _leave(self, unit: WriteUnit[Any]) -> None:
        """Let the next writer commit if this one did, also after an interrupt, when nobody waits for its work."""
        if not unit.leads and unit.done:
            return
        with self._queue_lock:
            if not unit.done and unit in self._waiting:
                self._waiting.remove(unit)
            if not unit.leads:
                return
            self._has_leader = bool(self._waiting)
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].turn.release()

    def _commit_group(self) -> None:
        with self._queue_lock:
            group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP_SIZE))]
        failure: str | None = "the thread that was committing was interrupted"
        try:
            with self._connection_lock:
                failure = self._run_transaction(group)
        finally:
            for unit in group:
                unit.failure, unit.done = failure, True
                unit.turn.release()

    def _run_transaction(self, group: list[WriteUnit[Any]]) -> str | None:
        """Run the parts of a group in one transaction; return why it failed as a whole, or None."""
        is_over = False
        try:
            is_shared, are_committed = len(group) > 1, False
            if not (is_shared and self._expects_failures):  # all parts, or none of them if one fails
                self._connection.execute("BEGIN IMMEDIATE")
                are_committed = all(unit.try_to_run(self._connection) for unit in group)
                self._connection.execute("COMMIT" if are_committed else "ROLLBACK")
            if is_shared and not are_committed:
                self._run_with_savepoints(group)
            is_over = True
        except sqlite3.Error as error:
            return str(error)
        finally:
            if not is_over:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
        return None

    def _run_with_savepoints(self, group: list[WriteUnit[Any]]) -> None:
        """Commit those parts that succeed."""
        self._connection.execute("BEGIN IMMEDIATE")
        outcomes = [unit.run(self._connection) for unit in group]
        self._expects_failures = not all(outcomes)
        self._connection.execute("COMMIT")
