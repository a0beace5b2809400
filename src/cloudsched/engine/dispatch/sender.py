"""Turn a task's wake-ups into dispatches in the queue."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.planning import WakeUp, dispatch_for
from cloudsched.engine.ports.clock import MAX_SKEW
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.tracing import trace_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.planning import Dispatch
    from cloudsched.engine.dispatch.signing_keys import SigningKeys
    from cloudsched.engine.ports.queue import Dispatcher


log = logging.getLogger(__name__)


class DispatchSender:
    """Signs dispatches and puts them into the queue. It has no state: every dispatch can be sent again."""

    def __init__(self, dispatcher: Dispatcher, keys: SigningKeys) -> None:
        self._dispatcher = dispatcher
        self._keys = keys

    def send(self, task: Task, wakeups: Iterable[WakeUp], now: datetime, *, repair: int = 0) -> int:
        """Create a dispatch for each wake-up, and return how many there were.

        Raises:
            QueueUnavailable: A dispatch could not be created; those before it were.
        """
        dispatches = [dispatch_for(task, wake, now, repair=repair) for wake in wakeups]
        channel = None if task.delivery is None else task.delivery.channel
        for dispatch in dispatches:
            self.send_dispatch(dispatch, task.priority, channel)
        return len(dispatches)

    def send_hop(self, task: Task, dispatch: Dispatch, until: datetime, now: datetime) -> None:
        """Create the dispatch that follows one that came too early.

        The queue delivers nothing early by its own clock: if this one was to come only later by this process's, that
        is behind. Without an allowance for it, dispatches would follow each other until it has caught up. An operator
        may deliver one long before its time, so only a difference that clocks may have counts.

        Raises:
            QueueUnavailable: It could not be created.
        """
        lag = max(dispatch.at - now, timedelta(0))
        wake = WakeUp(dispatch.execution_id, dispatch.scheduled_for, dispatch.attempt, until)
        clock_lag = lag if lag <= 2 * MAX_SKEW else timedelta(0)
        hop = dispatch_for(task, wake, now, hop=dispatch.hop + 1, clock_lag=clock_lag)  # guard: hop number
        self.send_dispatch(hop, task.priority, None if task.delivery is None else task.delivery.channel)

    def send_body(self, name: str, body: bytes, at: datetime, priority: Priority) -> None:
        """Create a dispatch that wakes no task, but carries something else to the executor.

        Raises:
            QueueUnavailable: It could not be created.
        """
        self._dispatcher.create(QueueMessage(name, at, body, self._keys.sign(body), priority))

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> None:
        """Create one dispatch.

        Raises:
            QueueUnavailable: The dispatch could not be created.
        """
        name, body = dispatch.encode(trace_for(dispatch.execution_id))
        message = QueueMessage(name, dispatch.at, body, self._keys.sign(body), priority, channel, dispatch.is_hop)
        self._dispatcher.create(message)
        if log.isEnabledFor(logging.DEBUG):
            ids = {"taskId": dispatch.task_id, "executionId": dispatch.execution_id}
            log.debug("dispatched", extra={"action": "dispatched", **ids})
