"""Calls, which are tasks with a parent: creating them, notifying their parents, and cancelling descendants.

A call's task id is derived from its place in the parent's journal, so creating it again has no effect.
When a call ends, its parent is notified. Like a dispatch, that is a hint: the parent reads the result
from the call's own task.

``GET /v1/tasks/{id}/tree`` and ``cloudsched tasks tree`` show a task with its descendants.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from cloudsched.domain.documents.audit_note import AuditNote
from cloudsched.domain.documents.delivery_channels import PING, Delivery, explain_undelivered
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.journal import StepRecord, StepStatus
from cloudsched.domain.documents.json_limits import truncate
from cloudsched.domain.documents.task import Parent, Task, TaskStatus
from cloudsched.domain.documents.verbs import Action
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask
from cloudsched.domain.transitions.lifecycle import cancel, may_have_children, was_recreated, with_changes
from cloudsched.domain.transitions.suspend import on_call_finished
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.durable.results import load_call_outcome
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.engine.state.record_changes import write_note
from cloudsched.engine.storage.pages import Page, iterate_pages
from cloudsched.errors import NotAllowed, QueueUnavailable, StoreUnavailable, VersionConflict, WorkflowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.state.quotas import QuotaCheck

log: Final = own_logger(__name__)


class FindCaller(Protocol):
    """Finds the task whose run makes a call."""

    def __call__(self, *, anew: bool) -> VersionedTask:
        """Return it as it is known, or as it is now. Raises LeaseLost if the run may not go on."""
        ...


_MAX_MESSAGE = 2_000
"""The largest size of a record's message in bytes."""
_PAGE_SIZE = 100
_SAMPLE_SIZE = 20


class _Call(NamedTuple):
    """The part of a call that a cancel needs: there may be thousands of calls, with large payloads."""

    id: str
    parent: Parent | None
    created_at: datetime
    has_children: bool


class ChildTasks:
    """The links between a task and its calls."""

    def __init__(self, engine: EngineContext) -> None:
        self._engine = engine

    def create(self, task: Task, find_caller: FindCaller) -> bool:
        """Store a call unless it exists already, create its dispatches, and return whether it is new.

        It is stored only as long as the run that makes it may go on: so once a cancel has been stored, no
        more calls are made. After QueueUnavailable the call is stored, and the sweep creates its
        dispatch. After QuotaExceeded and LeaseLost nothing is. A task that has no call in progress may
        always make one, since its own place would otherwise never become free.
        """
        stored = self._commit_new(task, find_caller)
        self._engine.sender.send(stored or task, executor_wakeups(stored or task), self._engine.clock.now())
        return stored is None

    def _commit_new(self, task: Task, find_caller: FindCaller) -> Task | None:
        is_limited = task.parent is not None and task.parent.is_for_user

        def store(read: tuple[VersionedTask, QuotaCheck | None]) -> Task | None:
            caller, quota = read
            if quota is not None and quota.refusal is not None and not self._may_exceed(task):
                raise quota.refusal
            try:
                guard = None if quota is None else quota.guard(task)
                new = Commit(task, linked=guard, unchanged=(caller,))  # guard: unchanged caller
                run_procedure(self._engine.committer.commit(new))
            except VersionConflict:
                stored = self._engine.store.load(task.id)
                if stored is not None:
                    if task.parent is None or not task.parent.is_same_call(stored.task.parent):
                        raise WorkflowError(
                            f"The call cannot be made: a task of another origin has its id {task.id!r}."
                        ) from None
                    return stored.task
                is_unchanged = find_caller(anew=True).version == caller.version
                if is_unchanged and (quota is None or not quota.has_passed(self._engine.store)):
                    return task  # it existed, and is removed by now
                raise
            return None

        def read(*, anew: bool = True) -> tuple[VersionedTask, QuotaCheck | None]:
            return find_caller(anew=anew), self._engine.quotas().check(task.owner) if is_limited else None

        what = f"another task of {task.owner!r}, or its caller"
        return compare_and_set(what, read, store, read(anew=False))

    def _may_exceed(self, task: Task) -> bool:
        """Return whether a call may be made although its owner has no room.

        It may if it exists already, or if its parent has no call in progress: a task that waits for a
        call does nothing itself, so its place serves for one of its calls. Else tasks that wait could
        take all the room that their calls need.
        """
        if self._engine.store.load(task.id) is not None:
            return True
        query = TaskQuery(parent=task.parent.task_id if task.parent else task.id, status=TaskStatus.ACTIVE)
        return not self._engine.store.list_tasks(query, limit=1).items

    def list_cancelled_calls(self, steps: Iterable[StepRecord]) -> list[int]:
        """Return the numbers of the calls that were cancelled without the journal recording it."""
        waiting = [(each.number, each.child) for each in steps if each.status is StepStatus.WAITING and each.child]
        found = [(number, self._engine.store.load(child)) for number, child in waiting]
        return [number for number, stored in found if stored and stored.task.status is TaskStatus.CANCELLED]

    def list_retried_calls(self, execution: Execution) -> list[int]:
        """Return the numbers of the calls that made an execution fail, and that have not failed since their retry."""
        failed = () if execution.failure_cause is None else execution.failure_cause.steps
        found = []
        for each in execution.steps:
            if each.number in failed and each.child is not None:
                outcome = load_call_outcome(self._engine.store, each.name, each.child)
                if outcome is None:
                    has_failed = self._is_cancelled(each.child)
                else:
                    has_failed = outcome.failure is not None
                if not has_failed:
                    found.append(each.number)
        return found

    def _is_cancelled(self, call: str) -> bool:
        """Return whether a call was cancelled: its attempt may still run, but ends without a result."""
        stored = self._engine.store.load(call)
        return stored is not None and stored.task.status is TaskStatus.CANCELLED

    def notify_family(self, task: Task) -> None:
        """Notify the parent of a task that has ended, and cancel the calls of a task that was cancelled."""
        if task.parent is not None:
            self.notify_parent(task)
        if task.status is TaskStatus.CANCELLED and task.deferred:
            self.cancel_descendants(task)

    def notify_parent(self, task: Task) -> None:
        """Notify a task's parent that the task has ended, if it has. Repeating this is harmless.

        After StoreUnavailable, call this again. After QueueUnavailable it is stored, and the sweep
        resumes the parent.
        """
        if task.parent is not None and task.delivery is None and (task.has_ended or task.deleted_at):
            self._wake_parent_run(task.parent, has_ended=True)
        if task.delivery is not None and task.has_ended and task.status is not TaskStatus.COMPLETED:
            self.note_undelivered(task, task.delivery)

    def note_undelivered(self, task: Task, delivery: Delivery, *, is_over: bool = False) -> None:
        """Say in the record of an execution, which has ended, that it has not been delivered, or no longer say so."""
        if delivery.channel == PING:  # it tells a switch, not a person
            return
        store = self._engine.store
        why = task.message
        record = task.last_execution_id and store.load_execution(task.id, task.last_execution_id)
        if record:
            why = record.message or (record.error and record.error.message) or ""
        ended = store.load_execution(delivery.task_id, delivery.execution_id)
        note = explain_undelivered(delivery.channel, why or task.status)
        if ended is None or (note in (ended.message or "")) is not is_over:
            return
        message = f"{note} {ended.message or ''}"
        if is_over:
            message = (ended.message or "").replace(note, "")

        # This goes past the committer, for which an execution would end here.
        def note_it(stored: VersionedTask | None) -> None:
            if stored is None:
                return
            told = ended.model_copy(
                update={"message": truncate(message.strip(), _MAX_MESSAGE) or None},
            )
            store.commit(Commit(with_changes(stored.task, self._engine.clock.now()), stored, (told,)))

        compare_and_set(f"task {delivery.task_id}", partial(store.load, delivery.task_id), note_it)
        if is_over:
            return
        about = {"action": "undelivered", "taskId": delivery.task_id, "executionId": delivery.execution_id}
        log.warning(
            "%s It is of task %s, whose owner is %s.",
            note,
            delivery.task_id,
            task.owner,
            extra=about,
        )

    def recheck_awaited_calls(self, task: Task, execution_id: str) -> None:
        """Resume a run that has just been suspended if none of the calls that it waits for is in progress.

        A call that ended while the run was being suspended may have notified it without effect, because
        an earlier notification was already recorded. Store and queue failures are ignored: the run polls
        later by itself.
        """
        run = task.find_run(execution_id)
        if run is None or run.suspension is None or not run.suspension.calls or run.due_at <= self._engine.clock.now():
            return
        if run.suspension.any_call:  # one earlier notification was enough to resume it
            return
        with suppress(StoreUnavailable, QueueUnavailable):
            parent = Parent(task_id=task.id, execution_id=execution_id, step=run.suspension.calls[0], depth=1)
            self._wake_parent_run(parent, has_ended=False)

    def _wake_parent_run(self, parent: Parent, *, has_ended: bool) -> None:
        def wake(stored: VersionedTask | None) -> Commit | Task | None:
            run = stored.task.find_run(parent.execution_id) if stored else None
            if stored is None or run is None:
                return None
            running = set[int]()
            if run.suspension is not None and not run.suspension.any_call:
                awaited = run.suspension.calls
                if parent.step in awaited and (len(awaited) > 1 or not has_ended):
                    running = self.calls_in_progress(parent.task_id, parent.execution_id, awaited)
            step = on_call_finished(
                stored.task,
                parent.execution_id,
                parent.step,
                running,
                self._engine.clock.now(),
            )
            return stored.task if step.task is stored.task else step.having(base=stored)

        load = partial(self._engine.store.load, parent.task_id)
        found = self._engine.committer.apply(f"task {parent.task_id}", load, wake)
        task = found.stored.task if isinstance(found, Committed) else found
        if task is not None:
            now = self._engine.clock.now()
            self._engine.sender.send(
                task,
                [each for each in executor_wakeups(task) if each.due_at <= now],
                now,
            )

    def calls_in_progress(self, task_id: str, execution_id: str, awaited: tuple[int, ...]) -> set[int]:
        """Return some of the awaited calls that are in progress, or an empty set if none is found.

        Only the newest calls are read, and the very newest first by itself: usually it is still running,
        and nothing else has to be read. Older calls are not checked here: the parent polls them itself.
        """
        query = TaskQuery(parent=task_id, status=TaskStatus.ACTIVE)
        found = set[int]()
        for limit in (1, _SAMPLE_SIZE):
            page = self._engine.store.list_tasks(query, limit=limit)
            parents = [task.parent for task in page.items if task.parent]
            found = {each.step for each in parents if each.execution_id == execution_id} & set(awaited)
            if found or page.next_page_token is None:
                break
        return found

    def pages(self, task_id: str, status: TaskStatus | None = None) -> Iterator[Page[Task]]:
        """Return the pages of a task's calls, newest first."""
        query = TaskQuery(parent=task_id, status=status)
        return iterate_pages(
            lambda token: self._engine.store.list_tasks(query, limit=_PAGE_SIZE, page_token=token),
        )

    def remove(self, task: Task) -> bool:
        """Remove a task that is being deleted, and cancel its descendants. Return whether it has been purged.

        It stays while one of its handlers is running that holds a lock, and while a call below it cannot
        be read. The sweep removes it later. Before all that, its usage is noted.
        """
        self._engine.usage().note([task])
        self._note_deletion(task)
        now = self._engine.clock.now()
        are_all_cancelled = not may_have_children(task) or self.cancel_descendants(task)
        self.notify_parent(task)
        self._engine.committer.options.leave(task)
        if task.holds_lock(now) or not are_all_cancelled:
            return False
        self._engine.store.sweep.purge(task.id)
        return True

    def _note_deletion(self, task: Task) -> None:
        """Note who deleted a task for the audit trail, once, since its own history goes with it."""
        if not task.history or task.history[-1].action is not Action.DELETED or task.parent is not None:
            return
        note = AuditNote.of(task.history[-1], owner=task.owner, task_id=task.id, title=task.title)
        write_note(self._engine.store.records, note)

    def cancel_descendants(self, task: Task) -> bool:
        """Cancel every descendant of a task that has not ended. Return whether those were all.

        If the task has been recreated or rescheduled meanwhile, the calls made since then are left alone.
        A call whose document cannot be read is skipped, and the sweep has to return to it.
        """
        waiting = [task.id]
        unreadable = 0
        while waiting:
            parent = waiting.pop()
            for status in (TaskStatus.ACTIVE, TaskStatus.PAUSED):
                for child in self._children_of_generation(task, parent, status)[0]:
                    self._cancel(child.id)
            found, skipped = self._children_of_generation(task, parent)
            waiting += [child.id for child in found if child.has_children]
            unreadable += skipped
        if unreadable:
            details = {"action": "calls_not_cancelled", "taskId": task.id, "unreadable": unreadable}
            log.error(
                "%d calls below %s cannot be read, and were not cancelled",
                unreadable,
                task.id,
                extra=details,
            )
        return not unreadable

    def _children_of_generation(
        self, task: Task, parent: str, status: TaskStatus | None = None
    ) -> tuple[list[_Call], int]:
        """Return the calls of `parent`, the task or a descendant, and how many of them cannot be read.

        Those made since the task was recreated are omitted. The task is read after its calls, so a call that was
        found cannot belong to a generation that began later.
        """
        found = list[_Call]()
        unreadable = 0
        for page in self.pages(parent, status):
            found += [_Call(each.id, each.parent, each.created_at, bool(each.has_children)) for each in page.items]
            unreadable += page.unreadable
        stored = self._engine.store.load(task.id) if found and parent == task.id else None
        if stored is None or not was_recreated(task, stored.task):
            return found, unreadable
        current = stored.task
        is_rescheduled = current.created_at == task.created_at and task.deleted_at is None
        since = task.status_changed_at if is_rescheduled else current.created_at
        is_new = {run.execution_id for run in current.runs}
        old = [each for each in found if each.parent and each.parent.execution_id not in is_new]
        return [each for each in old if each.created_at < since], unreadable

    def complete_cancel(self, task: Task) -> Task | None:
        """Cancel the calls below a cancelled task, and clear its deferred mark. Return the task.

        None if the sweep has to come back, since a call cannot be read. No handler makes more of them:
        see `create`.
        """
        stored = self._engine.store.load(task.id) if self.cancel_descendants(task) else None
        if stored is None:
            return None
        return self._engine.committer.try_to_change(stored, self._engine.clock.now(), deferred=False)

    def cancel_calls(self, task: Task) -> Task | None:
        """Cancel the calls of a task's cancelled runs, and clear its deferred mark. Return the task.

        None if the sweep has to come back, since a call cannot be read.
        """
        store = self._engine.store
        is_cancelled: dict[str, bool] = {}
        unreadable = 0
        for status in (TaskStatus.ACTIVE, TaskStatus.PAUSED):
            for page in self.pages(task.id, status):
                unreadable += page.unreadable
                for call in page.items:
                    caller = "" if call.parent is None else call.parent.execution_id
                    if caller not in is_cancelled:
                        record = store.load_execution(task.id, caller)
                        is_cancelled[caller] = record is not None and record.status is ExecutionStatus.CANCELLED
                    if is_cancelled[caller]:
                        self.cancel_call(call.id, "Its caller was cancelled.")
        stored = None if unreadable else store.load(task.id)
        if stored is None:
            return None
        return self._engine.committer.try_to_change(stored, self._engine.clock.now(), deferred=False)

    def cancel_call(self, task_id: str, reason: str) -> None:
        """Cancel a call that its caller does not need any more, and its descendants.

        Repeating this is harmless.

        If this process dies meanwhile, the call's own mark tells the sweep what is left to cancel.
        """
        self._cancel(task_id, reason, is_below=False)
        stored = self._engine.store.load(task_id)
        if stored is not None and stored.task.deferred and stored.task.status is TaskStatus.CANCELLED:
            self.complete_cancel(stored.task)

    def _cancel(
        self,
        task_id: str,
        reason: str = "Its parent was cancelled.",
        *,
        is_below: bool = True,
    ) -> None:
        def decide(stored: VersionedTask | None) -> Commit | None:
            if stored is None:
                return None
            now = self._engine.clock.now()
            step = cancel(stored.task, now, reason)
            if step.task is stored.task:
                return None
            if not is_below:
                return step.having(base=stored)
            # What is below it is cancelled by the caller's loop.
            cancelled = replace(step, task=with_changes(step.task, now, deferred=False))
            return cancelled.having(base=stored)

        with suppress(NotAllowed):  # it has ended
            load = partial(self._engine.store.load, task_id)
            self._engine.committer.apply(f"task {task_id}", load, decide)


MAX_TREE = 2_000
"""The most calls that are shown: those nearest to the root, and among them the newest."""
MAX_TREE_BYTES = 2_000_000
"""The largest size in bytes of their documents together."""
MAX_READ = 10_000
"""The largest number of calls read, including those that are only counted."""


@dataclass(frozen=True, slots=True)
class CallTree:
    """A task and the calls that it has made, in the order of the calls."""

    task: Task
    children: Sequence[CallTree]
    omitted_children: int
    """The number of the task's calls that are not among `children`.

    A lower bound if `MAX_READ` was reached.
    """


def load_tree(task: Task, child_tasks: ChildTasks, execution_id: str | None = None) -> CallTree:
    """Return a task's tree, cut where it is too large. Costs one query for each task that has made calls."""
    shown: dict[str, list[Task]] = {}
    left_out: dict[str, int] = {}
    room = MAX_TREE
    unread = MAX_READ
    bytes_left = MAX_TREE_BYTES
    waiting = deque([task])
    while waiting:
        parent = waiting.popleft()
        found: list[Task] = []
        unshown = 0
        is_cut = unread == 0
        for child, size in islice(_iterate_with_sizes(child_tasks.pages(parent.id)), unread):
            unread -= 1
            if parent is task and execution_id is not None and _find_call_position(child)[0] != execution_id:
                continue
            if room and bytes_left > 0:
                room -= 1
                bytes_left -= size
                found.append(child)
            else:
                unshown += 1
        waiting.extend(each for each in found if not each.has_ended or may_have_children(each))
        shown[parent.id] = sorted(found, key=_find_call_position)
        left_out[parent.id] = max(unshown, int(is_cut and may_have_children(parent)))

    def build(task: Task) -> CallTree:
        return CallTree(task, tuple(map(build, shown.get(task.id, ()))), left_out.get(task.id, 0))

    return build(task)


def _iterate_with_sizes(pages: Iterable[Page[Task]]) -> Iterator[tuple[Task, int]]:
    for page in pages:
        yield from ((each, page.size // len(page.items)) for each in page.items)


def _find_call_position(task: Task) -> tuple[str, int]:
    return (task.parent.execution_id, task.parent.step) if task.parent else ("", 0)
