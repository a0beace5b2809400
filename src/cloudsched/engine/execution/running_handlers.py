"""The handlers that run in this process, with their `on_failure` hooks, and those among them that hang.

A handler hangs when the lease of its attempt has ended and it has not returned: the attempt is over, but
nothing can stop a thread from outside. So a task is not called beside a handler of its own that hangs,
and holds one thread at most. Once `MAX_HANGING` hang, no further task of these handlers is called,
whatever others do.
"""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cloudsched.domain.documents.policy import Overlap
from cloudsched.engine.execution.call import call_handler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import RunningHook
    from cloudsched.engine.execution.attempt import Attempt
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.procedure import Procedure
    from cloudsched.engine.tracing import Tracer

MAX_HANGING: Final = 256
"""The most handlers that may hang before their tasks are refused.

Each holds a thread, which others do not need.
"""
MAX_NAMED: Final = 5
"""The most handlers that are named."""


class Hanging(NamedTuple):
    """A handler that hangs, or its `on_failure` hook."""

    since: datetime
    handler: str
    shown: str


class RunningHandlers:
    """The attempts whose handlers this process is calling, and the hooks that it calls. Thread-safe.

    `seconds` is a clock that nobody sets, None where no lease is judged by it.
    """

    def __init__(
        self, clock: Clock, seconds: Callable[[], float] | None, hooks: Mapping[tuple[str, str], RunningHook]
    ) -> None:
        self._clock = clock
        self._hooks = hooks
        self._seconds = seconds
        self._begun: dict[Attempt, tuple[float, str]] = {}
        """Since when each runs, by `seconds`, and the name of its thread."""
        self._tasks: dict[str, list[Attempt]] = {}
        self._hanging: set[Attempt] = set()
        """Those that were found to hang, and have not returned."""
        self.on_probation: set[str] = set()
        """The handlers of which a call was found to hang, and none has ended in time since."""
        self._lock = threading.Lock()

    def call(self, attempt: Attempt, registry: Registry, tracer: Tracer) -> Procedure[AttemptReport]:
        """Call the handler of an attempt, and return a report of how that ended."""
        task = attempt.begun_task
        run = attempt.run
        assert attempt.log is not None  # noqa: S101 - `Executor.start` has made it
        ids: dict[str, Any] = {"taskId": task.id, "attempt": run.attempt}
        span = tracer.span(f"handler {task.handler}", execution_id=run.execution_id, **ids)
        with self._lock:
            self._begun[attempt] = (self._seconds or float)(), threading.current_thread().name
            self._tasks.setdefault(attempt.task.id, []).append(attempt)
        try:
            with span, attempt.log:
                return (yield from call_handler(registry, attempt.handler, attempt.context, attempt.task.handler))
        finally:
            if self.on_probation and not self.hangs(attempt):
                self.on_probation.discard(task.handler)
            with self._lock:
                self._hanging.discard(attempt)
                del self._begun[attempt]
                attempts = self._tasks[attempt.task.id]
                attempts.remove(attempt)
                if not attempts:
                    del self._tasks[attempt.task.id]

    def hangs(self, attempt: Attempt) -> bool:
        """Return whether the handler of an attempt has not returned although its time is over.

        A clock that was set forward, or a machine that slept, has taken none of that time.
        """
        begun = self._begun.get(attempt)
        lease = attempt.find_lease()
        if begun is None or lease.until > self._clock.now():
            return False
        limit = (lease.until - lease.started_at).total_seconds()
        if self._seconds is not None and self._seconds() - begun[0] < limit:
            return False
        with self._lock:
            if attempt in self._begun and attempt not in self._hanging:
                self._hanging.add(attempt)
                self.on_probation.add(attempt.begun_task.handler)
        return True

    def find_thread(self, task: Task, run: Run) -> str | None:
        """Return the name of the thread in which this process runs the attempt of a run, or None."""
        for attempt in tuple(self._tasks.get(task.id, ())):
            begun = self._begun.get(attempt)
            is_same = (attempt.run.execution_id, attempt.run.attempt) == (run.execution_id, run.attempt)
            if begun is not None and is_same:
                return begun[1]
        return None

    def find_abandoned(self, task: Task, now: datetime) -> Attempt | None:
        """Return an attempt of a task that is over, by what is stored, while its handler runs on.

        None if none does.
        """
        for attempt in tuple(self._tasks.get(task.id, ())):
            run = task.find_run(attempt.run.execution_id)
            lease = None if run is None else run.lease
            if lease is None or lease.token_hash != attempt.lease.token_hash or lease.until <= now:
                return attempt
        return None

    def find_obstacle(self, task: Task, run: Run, now: datetime) -> Attempt | None:
        """Return the attempt beside which a claimed run must not be called, None if it may be.

        An occurrence of a task with ``overlap: allow`` may run beside others.
        """
        found = self.find_abandoned(task, now)
        is_allowed = task.overlap is Overlap.ALLOW and found is not None and found.run.execution_id != run.execution_id
        return None if is_allowed else found

    def refuses(self, handler: str) -> bool:
        """Return whether too many handlers hang for another call of this one."""
        if len(self._begun) + len(self._hooks) < MAX_HANGING:
            return False
        hanging = self.list_hanging()
        return len(hanging) >= MAX_HANGING and any(each.handler == handler for each in hanging)

    def list_running(self) -> tuple[Attempt, ...]:
        """Return the attempts whose handlers have not returned."""
        with self._lock:
            return tuple(self._begun)

    def list_hanging(self) -> list[Hanging]:
        """Return the handlers and hooks that hang, the oldest first."""
        attempts = self.list_running()
        hooks = tuple(self._hooks.values())
        now = self._clock.now()
        found = [(each.lease.started_at, each.begun_task.handler, "") for each in attempts if self.hangs(each)]
        found += [(each.since, each.handler, "on_failure of ") for each in hooks if each.until <= now]
        return sorted(Hanging(since, handler, f"{what}{handler!r}") for since, handler, what in found)

    def describe(self) -> str:
        """Return how many handlers hang, which, and since when. Empty if none does."""
        hanging = self.list_hanging()
        if not hanging:
            return ""
        counts = Counter(each.shown for each in hanging)
        names = [name + f" ({count})" * (count > 1) for name, count in counts.most_common(MAX_NAMED)]
        names += [f"{len(counts) - MAX_NAMED} more"] * (len(counts) > MAX_NAMED)
        since = hanging[0].since.astimezone(UTC).replace(microsecond=0, tzinfo=None)
        what = "1 handler hangs" if len(hanging) == 1 else f"{len(hanging)} handlers hang"
        return f"{what}: {', '.join(names)}, since {since} UTC"


RETRY_INTERVAL: Final = timedelta(minutes=1)
"""The interval at which a task that is not called looks whether its handler has returned."""
