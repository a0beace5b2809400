"""Tasks that a commit creates or changes beside its own: follow-ups and deliveries.

They are dispatched after it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.state.options import Option
from cloudsched.errors import QueueUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import Committed
    from cloudsched.engine.engine_context import EngineContext

log: Final = own_logger(__name__)


class OtherTasks(Option):
    """Sends the dispatches of the other tasks of a commit.

    The sweep sends those that the queue does not take.
    """

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine
        self._child_tasks = ChildTasks(engine)

    def after_commit(self, committed: Committed) -> None:
        """Send them."""
        engine = self._engine
        is_down = False
        for each in committed.commit.others:
            now = engine.clock.now()
            wakeups = executor_wakeups(each.task)
            try:
                if not is_down:
                    engine.sender.send(each.task, wakeups, now)
            except QueueUnavailable as error:
                log.warning(
                    "left to the sweep: %s",
                    error,
                    extra={"action": "deferred", "taskId": each.task.id},
                )
                is_down = True  # it need not be asked for each
            if is_down and any(wake.due_at > now for wake in wakeups):  # the sweep finds by itself what is due
                engine.committer.defer(each.task.id, now)

            if each.base is None:
                continue
            base = each.base.task
            with suppress(StoreUnavailable, QueueUnavailable):
                if base.revision != each.task.revision and any(run.turn_until for run in base.runs):
                    engine.committer.options.leave(base)  # as in `Scheduler`
                self._child_tasks.notify_family(each.task)
