"""How a task's wakes become dispatches in the queue."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.planning import dispatch_for
from cloudsched.engine.ports.queue import Envelope
from cloudsched.engine.ports.tracing import trace_for

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from cloudsched.domain.documents.policy import Priority
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.planning import Dispatch, Wake
    from cloudsched.engine.dispatch.signing_keys import Keys
    from cloudsched.engine.ports.queue import Dispatcher

log = logging.getLogger(__name__)


class Sender:
    """Signs dispatches and hands them to the queue. It keeps nothing: whatever it sent can be sent again."""

    def __init__(self, dispatcher: Dispatcher, keys: Keys) -> None:
        self._dispatcher = dispatcher
        self._keys = keys

    def send(self, task: Task, wakes: Iterable[Wake], now: datetime, *, hop: int = 0, repair: int = 0) -> int:
        """Create the dispatch of each wake and return how many there were.

        Raises:
            QueueUnavailable: One could not be created; those before it were.
        """
        dispatches = [dispatch_for(task, wake, now, hop=hop, repair=repair) for wake in wakes]
        for dispatch in dispatches:
            self.send_dispatch(dispatch, task.priority)
        return len(dispatches)

    def send_dispatch(self, dispatch: Dispatch, priority: Priority) -> None:
        """Create one dispatch.

        Raises:
            QueueUnavailable: It could not be created.
        """
        body = dataclasses.replace(dispatch, trace=trace_for(dispatch.execution_id)).body
        self._dispatcher.create(Envelope(dispatch.name, dispatch.at, body, self._keys.sign(body), priority))
        log.debug(
            "dispatched",
            extra={"action": "dispatched", "taskId": dispatch.task_id, "executionId": dispatch.execution_id},
        )
