"""The callbacks of executions that end without an attempt's own word.

That is by an expired lease, by the expiration of what is late, because another run was in the way, or because the task
was cancelled. `planner` makes those of attempts that report their end.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from cloudsched.domain.documents.channel import COMPLETION
from cloudsched.domain.transitions.planning import executor_wakeups
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.delivery.planner import DeliveryPlanner
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import TaskWrite

log = logging.getLogger(__name__)


class CompletionCallbacks:
    """Plans such callbacks, and sends their dispatches.

    Args:
        planner: Makes the deliveries.
        sender: Sends their dispatches.
        clock: The current time.
    """

    def __init__(self, planner: DeliveryPlanner, sender: DispatchSender, clock: Clock) -> None:
        self.planner = planner
        self._sender = sender
        self._clock = clock

    def plan(
        self, task: Task, executions: Sequence[Execution], others: Sequence[TaskWrite] = ()
    ) -> tuple[TaskWrite, ...]:
        """Return the callbacks to create with the records of a commit, besides those that it creates already.

        Nothing is read, unless a task with a callback has such an end: then one document for each.
        """
        if task.on_completion is None or task.deleted_at is not None:
            return ()
        told = {each.task.delivery.execution_id for each in others if _is_callback(each.task) and each.task.delivery}
        ended = [each for each in executions if each.status.is_final and each.id not in told and not each.is_left_out]
        return self.planner.plan_callbacks(task, ended, self._clock.now()) if ended else ()

    def dispatch(self, writes: Sequence[TaskWrite]) -> None:
        """Send the dispatches of callbacks; what the queue does not take is left to the sweep."""
        now = self._clock.now()
        with suppress(QueueUnavailable):
            for each in writes:
                self._sender.send(each.task, executor_wakeups(each.task), now)


def _is_callback(task: Task) -> bool:
    return task.delivery is not None and task.delivery.channel == COMPLETION
