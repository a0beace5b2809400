"""The emulator's own operations beside Cloud Tasks, in one place for Python and for HTTP. Lives in the event loop."""

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
    """There is no such task, and there was none lately."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no task {name!r}, and there was none lately.")


class StillWaiting(TimeoutError):
    """The task was not done in time.

    Attributes:
        explanation: Why it waits, and when it fires next.
    """

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation
        super().__init__(f"{explanation.name} is not done. {explanation.text}")


class ControlOperations:
    """What a user may ask the emulator itself.

    Args:
        board: The queues.
        clock: The time.
        runner: What moves it.
        history: What happened.
        waiters: Who waits for a task; hears of the board's changes.
        administration: What is kept beside the queues.
        declared: The queues that exist from the start, and after a reset.
    """

    def __init__(  # noqa: PLR0913 - the parts that the server assembles
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
        """Every attempt so far, oldest first; all, or those of a queue (full name) or a task (full name or id)."""
        return self._history.attempts(queue, task)

    def list_waiting(self, queue: str = "") -> list[Explanation]:
        """Every task that is not done, and why; of all queues, or of the one of that full name."""
        now = self.clock.now()
        return [
            explain(one, task, now)
            for one in self._queues.queues.values()
            if queue in {"", one.name}
            for task in one.iter_tasks(0, now)
        ]

    def explain(self, name: str) -> Explanation | None:
        """Why a task waits; None if it is done.

        Raises:
            UnknownTask: if there is none, and there was none lately.
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
        """Wait until a task is done, given up or deleted, and return its attempts.

        Raises:
            StillWaiting: if that took longer than so many seconds of real time.
            UnknownTask: if there is no such task, and there was none lately.
        """
        if self.explain(name) is not None and not await self._waiters.wait(name, seconds):
            explanation = self.explain(name)
            if explanation is not None:
                raise StillWaiting(explanation)
        return self.list_attempts(task=name)

    async def reset(self) -> None:
        """Forget every task, queue, name and attempt; the declared queues are there again. The clock stays."""
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
