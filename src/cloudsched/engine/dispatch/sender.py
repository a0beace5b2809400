"""Turn a task's wake-ups into dispatches in the queue."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.planning import dispatch_for
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.ports.tracing import trace_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.planning import Dispatch, WakeUp
    from cloudsched.engine.dispatch.signing_keys import SigningKeys
    from cloudsched.engine.ports.queue import Dispatcher

log = logging.getLogger(__name__)


class DispatchSender:
    """Signs dispatches and puts them into the queue. It has no state: every dispatch can be sent again."""

    def __init__(self, dispatcher: Dispatcher, keys: SigningKeys) -> None:
        self._dispatcher = dispatcher
        self._keys = keys

    def send(self, task: Task, wakeups: Iterable[WakeUp], now: datetime, *, hop: int = 0, repair: int = 0) -> int:
        """Create a dispatch for each wake-up, and return how many there were.

        Raises:
            QueueUnavailable: A dispatch could not be created; those before it were.
        """
        dispatches = [dispatch_for(task, wake, now, hop=hop, repair=repair) for wake in wakeups]
        for dispatch in dispatches:
            self.send_dispatch(dispatch, task.priority, None if task.delivery is None else task.delivery.channel)
        return len(dispatches)

    def send_dispatch(self, dispatch: Dispatch, priority: Priority, channel: str | None = None) -> None:
        """Create one dispatch.

        Raises:
            QueueUnavailable: The dispatch could not be created.
        """
        body = dataclasses.replace(dispatch, trace=trace_for(dispatch.execution_id)).body
        message = QueueMessage(dispatch.name, dispatch.at, body, self._keys.sign(body), priority, channel)
        self._dispatcher.create(message)
        log.debug(
            "dispatched",
            extra={"action": "dispatched", "taskId": dispatch.task_id, "executionId": dispatch.execution_id},
        )
