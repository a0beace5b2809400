"""The sweep: once a minute it finds what nothing else will wake, and sends it again.

What it finds: tasks whose dispatch was lost or never created (the queue was down, was purged, or a process died in
between), attempts whose executor died and whose lease has ended, turns at a lock in which no worker came, and deletions
that did not get to their end. Of those it decides nothing by itself: it only sends dispatches, which the executor
judges as it does all others. So any number of sweeps may run at once, and one that dies loses nothing. It also removes
tasks that ended longer ago than their retention says.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.task import MAX_RETENTION, TaskStatus
from cloudsched.domain.transitions.lifecycle import delete, was_recreated, with_changes
from cloudsched.domain.transitions.planning import executor_wakeups, lease_expiries, lock_turn_expiries, repair_number
from cloudsched.domain.transitions.suspend import can_still_call
from cloudsched.engine.state.event_log import log_changes
from cloudsched.errors import BlobsUnavailable, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)

GRACE = timedelta(seconds=20)
"""How long something may be overdue before the sweep takes it for lost: an ordinary delivery takes less."""
PAGE_SIZE = 200
"""How many tasks are read at a time."""
MAX_EXAMINED = 10_000
"""How many tasks one sweep looks at; the next one of the same process goes on behind them."""
MAX_CONSECUTIVE_FAILURES = 3
"""How many tasks in a row the store does not answer for, before it counts as away."""


@dataclass(slots=True)
class Sweep:
    """What one sweep found and did."""

    examined: int = 0
    """Tasks that were overdue."""
    dispatched: int = 0
    """Dispatches sent again."""
    undeferred: int = 0
    """Tasks whose dispatch could not be created when they were stored, and now was."""
    unsent: int = 0
    """Tasks whose dispatches the queue did not take; they are left to the next sweep."""
    failed: int = 0
    """Tasks that could not be repaired, for a reason of their own; the next sweep tries again."""
    expired: int = 0
    """Executions and messages removed: older than their task's executionRetention. Firestore does this by itself."""
    purged: int = 0
    """Tasks removed: ended longer ago than their retention, or deleted by a process that died."""


class Sweeper:
    """Sends again what was lost."""

    def __init__(
        self, *, store: Store, child_tasks: ChildTasks, sender: DispatchSender, clock: Clock, locks: Locks
    ) -> None:
        self._store = store
        self._child_tasks = child_tasks
        self._sender = sender
        self._locks = locks
        self._clock = clock
        self._resume_token: str | None = None

    def sweep(self) -> Sweep:
        """Repair what is overdue, the earliest first. What this reads grows with that, not with what exists.

        A task that cannot be repaired is passed over.
        If more than `MAX_EXAMINED` are overdue, this continues where the previous sweep stopped, and starts over after
        the last. So tasks that stay overdue for a good reason, such as a lock that is held, do not starve the others.

        Raises:
            StoreUnavailable: The store did not say what is overdue, or did not answer for several tasks in a row.
        """
        done = Sweep()
        now = self._clock.now()
        unanswered = 0
        began = token = self._resume_token
        while done.examined < MAX_EXAMINED:
            page = self._store.list_due_tasks(now - GRACE, limit=PAGE_SIZE, page_token=token)
            for task in sorted(page.items, key=lambda task: task.priority.rank):
                done.examined += 1
                try:
                    self._repair(task, now, done)
                except QueueUnavailable as error:
                    done.unsent += 1
                    log.warning("unsent: %s", error, extra={"action": "unsent", "taskId": task.id})
                except Exception as error:  # what is wrong with one task must not keep the others from their repair
                    done.failed += 1
                    log.exception("unrepaired", extra={"action": "unrepaired", "taskId": task.id})
                    is_of_the_store = isinstance(error, StoreUnavailable) and not isinstance(error, BlobsUnavailable)
                    unanswered = unanswered + 1 if is_of_the_store else 0
                    if unanswered == MAX_CONSECUTIVE_FAILURES:
                        raise
                else:
                    unanswered = 0
            token = page.next_page_token
            if token is None:
                if began is None:
                    break
                began = None
        self._resume_token = token
        done.expired = self._store.expire(now)
        log.info("swept", extra={"action": "swept", "examined": done.examined, "dispatched": done.dispatched})
        return done

    def _repair(self, task: Task, now: datetime, result: Sweep) -> None:
        if task.deleted_at is not None or (task.deferred and task.status is TaskStatus.CANCELLED):
            self._finish_cancel_or_delete(task, now, result)
            return
        if task.has_ended:
            if task.deferred:  # what follows from its end could not be sent: its parent waits for word of it
                self._child_tasks.notify_parent(task)
                result.undeferred += self._clear_deferred(task.id)
                return
            result.purged += self._expire(task.id)
            return
        for wake in (*executor_wakeups(task), *lease_expiries(task), *lock_turn_expiries(task)):
            overdue = now - wake.due_at
            if overdue >= GRACE:
                result.dispatched += self._sender.send(task, [wake], now, repair=repair_number(overdue))
        if task.deferred:
            result.dispatched += self._sender.send(task, executor_wakeups(task), now)
            result.undeferred += self._clear_deferred(task.id)

    def _finish_cancel_or_delete(self, task: Task, now: datetime, result: Sweep) -> None:
        """Finish a deletion or a cancel, as it stands now: since its page was read the task may have begun again."""
        stored = self._store.load(task.id)
        if stored is None or was_recreated(task, stored.task):
            return
        if stored.task.deleted_at is not None:
            result.purged += self._child_tasks.remove(stored.task)
        elif stored.task.deferred:
            self._child_tasks.cancel_descendants(stored.task)
            if not can_still_call(stored.task, now):
                result.undeferred += self._clear_deferred(task.id)

    def _expire(self, task_id: str) -> bool:
        """Remove a task that ended long enough ago; one that was given new life meanwhile stays."""
        stored = self._store.load(task_id)
        now = self._clock.now()
        if stored is None or not stored.task.has_ended or stored.task.wake_at is None or stored.task.wake_at > now:
            return False
        if stored.task.deferred:  # its wake instant is the mark's, not its retention's
            return False
        if self._keep_for_parent(stored.task):
            return False
        step = delete(stored.task, now)
        try:
            self._store.commit(step.task, stored.version)
        except VersionConflict:
            return False
        log_changes(stored.task, step)
        self._locks.remove_task(step.task, now)
        self._store.purge(task_id)
        return True

    def _keep_for_parent(self, task: Task) -> bool:
        """Look whether a call's parent may ask for the result yet, also if it is retried; keep it for longer if so."""
        if task.parent is None or task.retention is None:
            return False
        parent = self._store.load(task.parent.task_id)
        if parent is None:
            return False
        if parent.task.find_run(task.parent.execution_id) is None:
            record = self._store.load_execution(task.parent.task_id, task.parent.execution_id)
            if record is None or record.status is ExecutionStatus.SUCCEEDED:
                return False
        stored = self._store.load(task.id)
        if stored is not None:
            kept = with_changes(stored.task, self._clock.now(), retention=min(task.retention * 2, MAX_RETENTION))
            with suppress(VersionConflict):
                self._store.commit(kept, stored.version)
        return True

    def _clear_deferred(self, task_id: str) -> bool:
        """Take the mark off a task whose dispatches exist now; somebody who changed it meanwhile has sent them too."""
        stored = self._store.load(task_id)
        if stored is None or not stored.task.deferred:
            return False
        try:
            self._store.commit(with_changes(stored.task, self._clock.now(), deferred=False), stored.version)
        except VersionConflict:
            return False
        return True
