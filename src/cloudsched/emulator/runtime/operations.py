"""The control operations, for Python and for HTTP. They run in the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.emulator.model import names
from cloudsched.emulator.model.errors import RpcError
from cloudsched.emulator.runtime.explain import Explanation, explain
from cloudsched.emulator.storage.queue_yaml import create_declared_queues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.emulator.api.admin_service import Administration
    from cloudsched.emulator.api.messages import Proto
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorParts:
    """What a running emulator is made of."""

    queues: Queues
    clock: MovableClock
    dispatcher: Dispatcher
    """Sends the tasks and advances the clock."""
    history: History
    """The attempts."""
    waiters: CompletionWaiters
    """Callers that wait for tasks."""
    administration: Administration
    """Policies, keys and operations."""
    declared: Sequence[Proto]
    """The queues to create again after a reset."""
    wal: WriteAheadLog | None
    """The write-ahead log, if the queues are persistent."""


class ControlOperations:
    """The operations of the control API."""

    def __init__(self, parts: EmulatorParts) -> None:
        self.parts = parts

    def list_waiting(self, queue: str = "") -> list[Explanation]:
        """Explain every unfinished task of all queues, or of the one with that full name."""
        now = self.parts.clock.now()
        return [
            explain(one, task, now)
            for one in self.parts.queues.queues.values()
            if queue in {"", one.name}
            for task in one.iter_tasks(0, now)
        ]

    def explain(self, name: str) -> Explanation | None:
        """Explain why a task waits; None if it is done.

        Raises:
            UnknownTask: if there is no such task, and was none recently.
        """
        now = self.parts.clock.now()
        try:
            queue_name, task_id = names.split_task(name)
            queue = self.parts.queues.get_queue(queue_name)
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
        if self.explain(name) is not None and not await self.parts.waiters.wait(name, seconds):
            explanation = self.explain(name)
            if explanation is not None:
                raise StillWaiting(explanation)
        return self.parts.history.attempts(task=name)

    async def reset(self) -> None:
        """Delete all tasks, queues, names and attempts; create the declared queues again. The clock stays."""
        await self.parts.dispatcher.abandon()
        self.parts.queues.clear()
        if self.parts.wal is not None:
            self.parts.wal.append_reset()
        self.parts.administration.clear()
        self.parts.history.clear()
        self.parts.waiters.release_all()
        self.parts.dispatcher.delivered = 0
        create_declared_queues(self.parts.queues, self.parts.declared, self.parts.clock.now())
        if self.parts.wal is not None and (synced := self.parts.wal.wait_for_sync()) is not None:
            await synced
