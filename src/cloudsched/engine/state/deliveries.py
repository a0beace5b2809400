"""Create deliveries in the commit that ends an execution, and record their arrival in their own last commit.

An execution also ends without a report of its attempt: by an expired lease, because it is too late, because another run
was in the way, or because its task was cancelled. It has no result then, and only the callback is created.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery import CALLBACKS, COMPLETION, Delivery, PingEvent
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.commit import DeliveryMark, TaskWrite
from cloudsched.domain.transitions.deliveries import DeliveryMaker, find_ping_event
from cloudsched.domain.transitions.outcome import Done
from cloudsched.domain.transitions.planning import executor_wakeups
from cloudsched.errors import QueueUnavailable

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution, Run
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.dispatch import DispatchSender
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store

_PURPOSE = b"cloudsched message v1\n"


class DeliveryPlanner:
    """Decides what the end of an execution means for deliveries.

    The secret makes the names of messages, which nobody else can guess. A name is stored with its delivery, so that a
    new secret changes none.
    """

    def __init__(
        self,
        store: Store,
        sender: DispatchSender,
        clock: Clock,
        secret: str,
        retention: timedelta | None,
    ) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._secret = secret.encode()
        self._maker = DeliveryMaker(self._make_name, retention)

    def plan(
        self,
        task: Task,
        run: Run,
        report: AttemptReport,
        now: datetime,
        *,
        records: Sequence[Execution] = (),
        is_repeat: bool,
    ) -> tuple[TaskWrite, ...]:
        """Return the deliveries to create with the end of an attempt.

        At first each is taken to be new, so that nothing is read. If a commit has conflicted (`is_repeat`), those that
        exist are left alone: an execution that is run again, by a backfill say, is not delivered again. `records` are
        those of the commit: whether the execution ends with it.
        """
        ends = (each.status for each in records if each.id == run.execution_id and each.status.is_final)
        planned = self._maker.make_all(task, run, report, now, next(ends, None))
        return self._leave_out_existing(planned) if is_repeat else tuple(TaskWrite(each) for each in planned)

    def _leave_out_existing(self, planned: Sequence[Task]) -> tuple[TaskWrite, ...]:
        existing = {each.task.id for each in self._store.load_many([each.id for each in planned])} if planned else ()
        return tuple(TaskWrite(each) for each in planned if each.id not in existing)

    def plan_callbacks(
        self, task: Task, executions: Sequence[Execution], others: Sequence[TaskWrite]
    ) -> tuple[TaskWrite, ...]:
        """Return the callbacks to create with the records of a commit, besides those that it creates already.

        Those that exist are left alone. Nothing is read, unless a task with a callback has an execution that ends
        without a report: then one document for each.
        """
        told = {each.task.delivery.execution_id for each in others if _is_callback(each.task) and each.task.delivery}
        ended = [each for each in executions if each.status.is_final and each.id not in told and not each.is_left_out]
        now = self._clock.now()
        planned = [self._maker.make_callback(task, each, now) for each in ended]
        return self._leave_out_existing(planned)

    def plan_pings(self, before: Task, after: Task, executions: Sequence[Execution]) -> tuple[TaskWrite, ...]:
        """Return the pings to create with a commit: of executions that begin with it, and of those that end.

        Those that exist are left alone: each is told of once. Only a task with a ping costs reads, one for each.
        """
        ended = [
            (each.id, find_ping_event(each.status), each.defined_by) for each in executions if each.status.is_final
        ]
        begun = [each for each in after.runs if _begins(before, each)]
        events = [*ended, *((each.execution_id, PingEvent.START, after.find_author(each)) for each in begun)]
        make, now = self._maker.make_ping, self._clock.now()
        pings = [make(after, key, event, now, author) for key, event, author in events if event is not None]
        planned = [each for each in pings if each is not None]
        return self._leave_out_existing(planned)

    def dispatch(self, callbacks: Sequence[TaskWrite]) -> None:
        """Send the dispatches of callbacks. Those that the queue does not take are left to the sweep."""
        now = self._clock.now()
        with suppress(QueueUnavailable):
            for each in callbacks:
                self._sender.send(each.task, executor_wakeups(each.task), now)

    def mark(self, delivery: Delivery, report: AttemptReport, *, is_repeat: bool) -> DeliveryMark | None:
        """Return the effect of the end of a delivery's attempt on its execution. Most have none, and return None.

        Only if there are other deliveries, these are read: the last one to succeed sets `is_delivered`. Two that end at
        the same time conflict, and one of them decides again. After a conflict (`is_repeat`) the record may have been
        removed meanwhile.
        """
        if delivery.channel in CALLBACKS or not isinstance(report.outcome, Done):
            return None
        if is_repeat and self._store.load_execution(delivery.task_id, delivery.execution_id) is None:
            return None
        return self._mark_if_last(delivery)

    def _mark_if_last(self, delivery: Delivery) -> DeliveryMark | None:
        others = self._store.load_many(delivery.siblings) if delivery.siblings else ()
        unfinished = tuple(each for each in others if not each.task.has_ended)
        succeeded = [each for each in others if each.task.status is TaskStatus.COMPLETED]
        if not unfinished and len(succeeded) < len(delivery.siblings):
            return None  # another one has failed or was suppressed: not all of them arrive
        return DeliveryMark(delivery.task_id, delivery.execution_id, unfinished)

    def _make_name(self, text: str) -> str:
        digest = hmac.new(self._secret, _PURPOSE + text.encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:24]).decode()


def _begins(before: Task, run: Run) -> bool:
    if run.lease is None or run.attempt > 1 or run.suspension_count:
        return False
    known = before.find_run(run.execution_id)
    return known is None or known.lease is None


def _is_callback(task: Task) -> bool:
    return task.delivery is not None and task.delivery.channel == COMPLETION
