"""Watch whether due work starts, whichever process should start it.

Each process of a folder looks for itself, every few seconds. What is due and has not started is in the store,
in the index of the sweep, so one that is frozen or whose threads are lost is noticed by the others. Work that
waits for something else is not owed: of paused tasks, for workers and locks, behind open runs, for its turn
after a loss. Nor is a backlog: while any of it starts, or while all threads are busy with handlers that have
time left, it is only late.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.planning import is_held_back
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.concurrency.service_threads import hide_names
from cloudsched.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store

log: Final = own_logger(__name__)

LOOK_SECONDS: Final = 5.0
"""The seconds between two looks."""
STALL_SECONDS: Final = 60.0
"""The seconds after which due work of which none starts is a fault."""
LOOKED_AT: Final = 200
"""The most overdue tasks that one look reads, the earliest."""

_Owed = tuple[str, str, int, datetime]
"""A start that is due: its task, its execution, its attempt, and since when."""


class ExecutorState(NamedTuple):
    """The handlers of the process that runs the tasks."""

    hanging: str = ""
    """How many of them hang, which, and since when. Empty if none does."""
    is_busy: bool = False
    """True if all its threads are busy with handlers that have time left."""


class DueWork:
    """Detects that due work does not start, and since when. One thread checks, and any thread may ask."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        monotonic: Callable[[], float],
        find_state: Callable[[], ExecutorState],
    ) -> None:
        self._store = store
        self._clock = clock
        self._monotonic = monotonic
        self._find_state = find_state
        self._owed: frozenset[_Owed] = frozenset()
        self._moved_at = self._looked_at = monotonic()
        self.state: ExecutorState = ExecutorState()
        """The state of the process that runs the tasks, as this one last saw it."""
        self.problem: str = ""
        """The time since which due work has not started, and the known cause. Empty while all is well."""

    def look(self, own: ExecutorState | None) -> None:
        """Check what is due, and note whether any of it has started.

        `own` is the state of this process, None if another one runs the tasks.
        """
        if own is not None and own.hanging != self.state.hanging:
            log.warning("%s", own.hanging or "no handler hangs any more", extra={"action": "handlers_hang"})
        with suppress(StoreUnavailable):  # an unavailable store is reported elsewhere
            self._look(self._find_state() if own is None else own)

    def _look(self, state: ExecutorState) -> None:
        now = self._clock.now()
        seconds = self._monotonic()
        page = self._store.sweep.list_due(now, limit=LOOKED_AT)
        owed = frozenset(each for task in page.items for each in _list_owed(task, now))
        has_moved = not self._owed or not self._owed <= owed
        # The machine slept, or this process was stopped.
        stood_still = seconds - self._looked_at > 3 * LOOK_SECONDS
        if has_moved or stood_still or state.is_busy:
            self._moved_at = seconds
        self._owed = owed
        self._looked_at = seconds
        self.state = state
        self._report(now if seconds - self._moved_at >= STALL_SECONDS else None)

    def _report(self, now: datetime | None) -> None:
        if now is None:
            if self.problem:
                log.warning("due work starts again", extra={"action": "due_work_starts"})
            self.problem = ""
            return
        had_problem = bool(self.problem)
        first = min(at for *_, at in self._owed).astimezone(UTC).replace(microsecond=0, tzinfo=None)
        why = hide_names(self.state.hanging) or "the process that runs the tasks is frozen, or cannot start them"
        self.problem = f"has not started for a minute, the first of it since {first} UTC: {why}"
        if not had_problem:
            log.error("due work %s", self.problem, extra={"action": "due_work_stands_still"})


def _list_owed(task: Task, now: datetime) -> Iterator[_Owed]:
    """Yield the starts that are due, and for which only the executor is waited for."""
    if task.has_lock:
        return
    for wake in executor_wakeups(task):
        run = task.find_run(wake.execution_id)
        # One that was lost takes turns with others.
        waits = is_held_back(task) if run is None else run.losses > 0
        if wake.due_at <= now and not waits:
            yield wake.task_id, wake.execution_id, wake.attempt, wake.due_at
