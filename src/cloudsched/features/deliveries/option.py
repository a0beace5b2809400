"""Create deliveries in the commit that ends an attempt, and record their arrival in their own last commit."""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.domain.documents.delivery_channels import CALLBACKS, Delivery
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit, DeliveryMark, TaskWrite
from cloudsched.domain.transitions.outcome import Done, Unreached
from cloudsched.engine.state.options import Option
from cloudsched.features.deliveries.maker import DeliveryMaker

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.store import Store

_PURPOSE = b"cloudsched message v1\n"


class Deliveries(Option):
    """Delivers the result of an attempt, and notes that all deliveries of an execution have arrived."""

    _engine: EngineContext

    def on_outcome(self, commit: Commit, run: Run, report: AttemptReport, now: datetime) -> Commit:
        """Return the commit with the deliveries that it creates, or with the mark that its own has arrived.

        At first each is taken to be new, so that nothing is read. If a commit has conflicted, those that
        exist are left alone: an execution that is run again, by a backfill say, is not delivered again.
        """
        assert commit.base is not None  # noqa: S101 - an attempt is of a task that was read
        task = commit.base.task
        is_repeat = commit.effects.is_repeat
        if task.delivery is not None and isinstance(report.outcome, Done):
            commit = self._mark(commit, task.delivery, is_repeat=is_repeat)
        if task.delivery is not None and isinstance(report.outcome, Unreached):
            delivery = task.delivery.model_copy(update={"is_unreached": True})
            return commit.having(task=commit.task.model_copy(update={"delivery": delivery}))
        if not task.delivery_channels and task.on_completion is None:
            return commit
        known = task.find_run(run.execution_id)
        if known is None:
            return commit
        statuses = (each.status for each in commit.executions if each.id == run.execution_id and each.status.is_final)
        make_all = make_deliveries(self._engine).make_all
        planned = make_all(task, known, report, now, commit.task, next(statuses, None))
        writes = tuple(map(TaskWrite, planned))
        if is_repeat:
            writes = write_new(self._engine.store, planned)
        return commit.having(others=(*commit.others, *writes))

    def _mark(self, commit: Commit, delivery: Delivery, *, is_repeat: bool) -> Commit:
        """Return the commit with the effect of a delivery's success on its execution. Most have none.

        Only if there are other deliveries, these are read: the last one to succeed sets `is_delivered`.
        Two that end at the same time conflict, and one of them decides again. After a conflict the record
        may have been removed.
        """
        if delivery.channel in CALLBACKS or delivery.is_failure or delivery.asks:
            return commit
        if is_repeat and self._engine.store.load_execution(delivery.task_id, delivery.execution_id) is None:
            return commit
        others = self._engine.store.load_many(delivery.siblings) if delivery.siblings else ()
        unfinished = tuple(each for each in others if not each.task.has_ended)
        succeeded = [each for each in others if each.task.status is TaskStatus.COMPLETED]
        if unfinished:
            return commit.having(unchanged=unfinished)
        if len(succeeded) < len(delivery.siblings):
            return commit  # another one has failed or was suppressed: not all of them arrive
        return commit.having(delivered=DeliveryMark(delivery.task_id, delivery.execution_id))


def make_deliveries(engine: EngineContext) -> DeliveryMaker:
    """Return what makes deliveries, under names that the app's secret makes."""
    make_name = partial(make_message_name, engine.settings.secret)
    return DeliveryMaker(make_name, engine.settings.retention, engine.registry.tells_errors)


def write_new(store: Store, planned: Sequence[Task]) -> tuple[TaskWrite, ...]:
    """Return the writes of those deliveries that do not exist yet. One document is read for each."""
    if not planned:
        return ()
    existing = {each.task.id for each in store.load_many([each.id for each in planned])}
    return tuple(TaskWrite(each) for each in planned if each.id not in existing)


def make_message_name(secret: str, text: str) -> str:
    """Return the name of a message, which nobody else can guess.

    A name is stored with its delivery, so that a new secret changes none.
    """
    digest = hmac.new(secret.encode(), _PURPOSE + text.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:24]).decode()
