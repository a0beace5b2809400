"""The control operations, for Python and for HTTP. They run in the event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import RpcError
from cloudsched.emulator.runtime.explain import Explanation, explain
from cloudsched.emulator.storage.queue_yaml import create_declared_queues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.emulator.api.admin_service import Administration
    from cloudsched.emulator.api.messages import Proto
    from cloudsched.emulator.model.faults import Faults
    from cloudsched.emulator.model.queues import Queues
    from cloudsched.emulator.runtime.clock import MovableClock
    from cloudsched.emulator.runtime.dispatcher import Dispatcher
    from cloudsched.emulator.runtime.history import Attempt, History
    from cloudsched.emulator.runtime.waiters import CompletionWaiters
    from cloudsched.emulator.storage.write_ahead_log import WriteAheadLog


class UnknownTask(LookupError):
    """There is no such task, and was none recently."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no task {name!r}, and there was none recently.")


class StillWaiting(TimeoutError):
    """The task was not done in time.

    Attributes:
        explanation: Why the task waits, and when it is sent next.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        super().__init__(f"{explanation.name} is not done. {explanation.text}")


class ControlOperations:
    """The operations of the control API.

    Args:
        queues: The queues.
        clock: The clock.
        dispatcher: Sends the tasks and advances the clock.
        history: The attempts.
        waiters: Callers that wait for tasks.
        administration: Policies, keys and operations.
        declared: The queues to create again after a reset.
        wal: The write-ahead log, if the queues are persistent.
    """

    def __init__(  # noqa: PLR0913 - the parts of the emulator
        self,
        *,
        queues: Queues,
        clock: MovableClock,
        dispatcher: Dispatcher,
        history: History,
        waiters: CompletionWaiters,
        administration: Administration,
        declared: Sequence[Proto],
        wal: WriteAheadLog | None,
    ) -> None:
        self.clock = clock
        self.dispatcher = dispatcher
        self._queues = queues
        self._history = history
        self._waiters = waiters
        self._administration = administration
        self._declared = declared
        self._wal = wal

    @property
    def faults(self) -> Faults:
        """The faults that are injected."""
        return self._queues.faults

    def set_faults(self, faults: Faults) -> None:
        """Inject these faults from now on."""
        self._queues.set_faults(faults)

    def list_attempts(self, queue: str = "", task: str = "") -> list[Attempt]:
        """Return the attempts, oldest first: all, or those of a queue (full name) or a task (full name or id)."""
        return self._history.attempts(queue, task)

    def list_waiting(self, queue: str = "") -> list[Explanation]:
        """Explain every unfinished task of all queues, or of the one with that full name."""
        now = self.clock.now()
        return [
            explain(one, task, now)
            for one in self._queues.queues.values()
            if queue in {"", one.name}
            for task in one.iter_tasks(0, now)
        ]

    def explain(self, name: str) -> Explanation | None:
        """Explain why a task waits; None if it is done.

        Raises:
            UnknownTask: if there is no such task, and was none recently.
        """
        now = self.clock.now()
        try:
            queue_name, task_id = names.split_task(name)
            queue = self._queues.get_queue(queue_name)
        except RpcError:
            raise UnknownTask(name) from None
        try:
            return explain(queue, queue.get(task_id, now), now)
        except RpcError:
            if queue.is_name_reserved(task_id, now):
                return None
            raise UnknownTask(name) from None

    async def wait(self, name: str, seconds: float) -> list[Attempt]:
        """Wait until a task succeeds, is exhausted or is deleted; return its attempts.

        Raises:
            StillWaiting: if that takes longer than `seconds` of real time.
            UnknownTask: if there is no such task, and was none recently.
        """
        if self.explain(name) is not None and not await self._waiters.wait(name, seconds):
            explanation = self.explain(name)
            if explanation is not None:
                raise StillWaiting(explanation)
        return self.list_attempts(task=name)

    async def reset(self) -> None:
        """Delete all tasks, queues, names and attempts; create the declared queues again. The clock stays."""
        await self.dispatcher.abandon()
        self._queues.clear()
        if self._wal is not None:
            self._wal.append_reset()
        self._administration.clear()
        self._history.clear()
        self._waiters.release_all()
        self.dispatcher.delivered = 0
        create_declared_queues(self._queues, self._declared, self.clock.now())
        if self._wal is not None and (synced := self._wal.wait_for_sync()) is not None:
            await synced
