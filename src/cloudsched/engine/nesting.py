"""Tasks that are calls of other tasks: making them, telling their parents, and cancelling what lies below.

A call is a task of its own, whose id is made from its place in its parent's journal, so making it again does nothing.
When it has ended its parent is told: that is a hint, like a dispatch. The parent reads the result itself, from the
call's own task.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cloudsched.domain.execution import ExecutionStatus
from cloudsched.domain.lifecycle import cancel, moved
from cloudsched.domain.planning import wakes
from cloudsched.domain.suspending import call_ended
from cloudsched.domain.task import TaskStatus
from cloudsched.engine.ports import TaskQuery
from cloudsched.errors import CallFailed, NotAllowed, StoreUnavailable, VersionConflict, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cloudsched.domain.task import Parent, Task
    from cloudsched.engine.committing import Committer
    from cloudsched.engine.ports import Clock, Store
    from cloudsched.engine.sending import Sender

MAX_CONFLICTS = 20
_PAGE = 100
_SOME = 20


class Nesting:
    """What connects a task with its calls."""

    def __init__(self, *, store: Store, committer: Committer, sender: Sender, clock: Clock) -> None:
        self._store = store
        self._committer = committer
        self._sender = sender
        self._clock = clock

    def make(self, task: Task) -> None:
        """Store a call, if it is not there yet, and send it on its way.

        Raises:
            WorkflowError: Somebody has given that id to a task of their own.
            QueueUnavailable: It is stored, and its dispatch could not be created; the sweep finds it.
        """
        try:
            self._store.commit(task, None)
        except VersionConflict:
            stored = self._store.load(task.id)
            if stored is None:
                return
            if stored.task.parent != task.parent:
                raise WorkflowError(
                    f"The call cannot be made: a task of another origin has its id {task.id!r}."
                ) from None
            task = stored.task
        self._sender.send(task, wakes(task), self._clock.now())

    def outcome(self, handler: str, task_id: str) -> tuple[bool, Any]:
        """Return whether a call has ended, and its result if it has.

        Raises:
            CallFailed: It has ended, and not in success.
        """
        stored = self._store.load(task_id)
        if stored is None or stored.task.deleted_at is not None:
            raise CallFailed(handler, task_id, "DELETED")
        task = stored.task
        if not task.has_ended:
            return False, None
        record = self._store.execution(task_id, task.last_execution_id) if task.last_execution_id else None
        if record is None:
            raise CallFailed(handler, task_id, task.status, message=task.message)
        if record.status is not ExecutionStatus.SUCCEEDED:
            error = record.error
            why = (error.type, error.message) if error else ("", record.message or "")
            raise CallFailed(handler, task_id, record.status, *why)
        return True, record.content

    def tell(self, task: Task) -> None:
        """Tell a task's parent that it has ended; harmless to repeat, and nothing if it has no parent or goes on.

        Raises:
            StoreUnavailable: The parent could not be told; whoever is asked to do this again does.
            QueueUnavailable: It was told, and could not be woken; the sweep wakes it.
        """
        parent = task.parent
        if parent is None or not (task.has_ended or task.deleted_at):
            return
        for _ in range(MAX_CONFLICTS):
            stored = self._store.load(parent.task_id)
            run = stored.task.run(parent.execution_id) if stored else None
            if stored is None or run is None:
                return
            awaited = run.suspension.calls if run.suspension else ()
            running = set[int]()
            if parent.step in awaited and len(awaited) > 1:
                running = self._running(parent, awaited)
            step = call_ended(stored.task, parent.execution_id, parent.step, running, self._clock.now())
            if step.task is not stored.task:
                try:
                    self._committer.commit(step, stored)
                except VersionConflict:
                    continue
            now = self._clock.now()
            self._sender.send(step.task, [wake for wake in wakes(step.task) if wake.due_at <= now], now)
            return
        raise StoreUnavailable("The store", f"task {parent.task_id} changed {MAX_CONFLICTS} times")

    def _running(self, parent: Parent, awaited: tuple[int, ...]) -> set[int]:
        """Return some of the awaited calls that are under way, or none if there are none.

        The newest are looked at, the last one alone at first: while it runs, which is most of the time, that is all
        that is read. Whether a call that is older than those runs is left to the parent, which looks itself.
        """
        query = TaskQuery(parent=parent.task_id, status=TaskStatus.ACTIVE)
        found = set[int]()
        for limit in (1, _SOME):
            page = self._store.tasks(query, limit=limit)
            parents = [task.parent for task in page.items if task.parent]
            found = {each.step for each in parents if each.execution_id == parent.execution_id} & set(awaited)
            if found or page.next_page_token is None:
                break
        return found

    def children(self, task_id: str, status: TaskStatus | None = None) -> Iterator[Task]:
        """Yield the calls of a task, the newest first."""
        token: str | None = None
        while True:
            page = self._store.tasks(TaskQuery(parent=task_id, status=status), limit=_PAGE, page_token=token)
            yield from page.items
            token = page.next_page_token
            if token is None:
                return

    def cancel_below(self, task_id: str) -> None:
        """Cancel every call below a task that has not ended."""
        waiting = [task_id]
        while waiting:
            parent = waiting.pop()
            for status in (TaskStatus.ACTIVE, TaskStatus.PAUSED):
                for child in list(self.children(parent, status)):
                    self._cancel(child.id)
            waiting += [child.id for child in self.children(parent, TaskStatus.CANCELLED)]

    def _cancel(self, task_id: str) -> None:
        for _ in range(MAX_CONFLICTS):
            stored = self._store.load(task_id)
            if stored is None:
                return
            try:
                now = self._clock.now()
                step = cancel(stored.task, now, "Its parent was cancelled.")
                reached = replace(
                    step, task=moved(step.task, now, deferred=False)
                )  # what is below is reached from here
                self._committer.commit(reached, stored)
            except VersionConflict:
                continue
            except NotAllowed:  # it has ended meanwhile
                return
            return
        raise StoreUnavailable("The store", f"task {task_id} changed {MAX_CONFLICTS} times")
