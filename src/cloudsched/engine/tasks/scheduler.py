"""What callers do with tasks: create, look at, edit, hold, run and remove them.

Every change is one read, one pure decision and one commit; whoever loses a race reads again and decides again. The
dispatch is created after the commit. If the queue cannot be reached then, the change stands: the task is marked as
deferred, its caller is told so, and the sweep sends what is missing.
"""

from __future__ import annotations

import copy
import logging
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from cloudsched.domain.documents.authority import TRUSTED_CODE, Authority
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.task import Event
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.drafts import (
    LeadTimes,
    TaskDraft,
    apply_edit,
    default_schedule,
    new_task,
    require_known,
    to_editable_fields,
)
from cloudsched.domain.transitions.lifecycle import Transition
from cloudsched.domain.transitions.planning import executor_wakeups
from cloudsched.domain.transitions.suspend import can_still_call, on_event, parse_event_name
from cloudsched.engine.execution.claimed_run import MAX_CONFLICTS
from cloudsched.engine.handlers.validation import validate_draft
from cloudsched.engine.ports.store import VersionedTask
from cloudsched.engine.state.event_log import log_changes
from cloudsched.errors import (
    InvalidInput,
    KeyReused,
    NotAllowed,
    NotFound,
    QueueUnavailable,
    StoreUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.authority import EventSender
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.dispatch.sender import DispatchSender
    from cloudsched.engine.durable.archive import JournalArchive
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.state.commits import TransitionCommitter
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)


class Scheduler:
    """Changes tasks as their owners ask."""

    def __init__(  # noqa: PLR0913 - each is a part of its own
        self,
        *,
        store: Store,
        sender: DispatchSender,
        clock: Clock,
        registry: Registry,
        lead: LeadTimes,
        retention: timedelta | None,
        committer: TransitionCommitter,
        child_tasks: ChildTasks,
        archive: JournalArchive,
        locks: Locks,
    ) -> None:
        self._store = store
        self._committer = committer
        self._child_tasks = child_tasks
        self._archive = archive
        self._locks = locks
        self._sender = sender
        self._clock = clock
        self._registry = registry
        self._lead = lead
        self._retention = retention
        self._check: Callable[[Task], None] | None = None

    def with_authorization(self, check: Callable[[Task], None]) -> Self:
        """Return a scheduler that shows each task to `check` before it returns or changes it.

        What `check` raises is raised, and the task stays as it is. A change is checked against the very state that it
        replaces, however many others are changing the task.
        """
        twin = copy.copy(self)
        twin._check = check  # noqa: SLF001 - its own class
        return twin

    def create(
        self,
        draft: TaskDraft,
        request_fingerprint: str | None = None,
        *,
        authority: Authority = Authority.SERVERS,
    ) -> tuple[Task, bool]:
        """Store a task and send it on its way; return it, and whether it is new.

        A draft that has the id of an existing task of the same owner edits that task instead. One commit, and one
        created dispatch. A repeated creation is recognized also when the task's instant has passed in the meantime.

        Args:
            draft: The task.
            request_fingerprint: A hash of the request, if it must be safe to repeat: an existing task is not changed.
            authority: Whose request it is; of a user's, handlers, priorities and queues are checked.

        Raises:
            InvalidInput: Something in it is wrong; nothing was stored.
            KeyReused: The existing task was made by another request.
        """
        draft = self._validate(draft, authority)
        defined_by = Authority.USERS if authority is Authority.USERS else None

        def repeat(task_id: str) -> Task | None:
            return self._repeat_creation(task_id, draft, request_fingerprint, defined_by)

        for _ in range(MAX_CONFLICTS):
            try:
                task = new_task(draft, self._clock.now(), self._lead).task.model_copy(
                    update={"request_fingerprint": request_fingerprint, "defined_by": defined_by}
                )
            except InvalidInput:
                repeated = None if draft.id is None else repeat(draft.id)
                if repeated is None:
                    raise
                return repeated, False
            try:
                version = self._store.commit(task, None)
            except VersionConflict:
                repeated = repeat(task.id)
                if repeated is not None:
                    return repeated, False
                self._remove_deleted(task.id)
            else:
                log_changes(None, Transition(task))
                return self._dispatch_or_defer(VersionedTask(task, version)), True
        raise StoreUnavailable("The store", f"task {draft.id} changed {MAX_CONFLICTS} times while it was created")

    def _repeat_creation(
        self, task_id: str, draft: TaskDraft, request_fingerprint: str | None, defined_by: Authority | None
    ) -> Task | None:
        """Return the existing task of a draft's id, edited if no fingerprint protects it; None if there is none."""
        existing = self._store.load(task_id)
        if existing is None or existing.task.deleted_at is not None:
            return None
        if request_fingerprint is not None:
            return self._idempotent_replay(existing, request_fingerprint)
        try:
            return self._replace(existing, draft, defined_by)
        except NotFound:
            current = self._store.load(task_id)
            if current and not current.task.deleted_at and current.task.created_at == existing.task.created_at:
                raise  # the caller may not see it
            return None  # it was deleted after it was read

    def _remove_deleted(self, task_id: str) -> None:
        """Remove what is left of a deleted task, so that another can take its id without waiting for its handlers."""
        stored = self._store.load(task_id)
        if stored is not None and stored.task.deleted_at is not None and not self._child_tasks.remove(stored.task):
            self._store.purge(task_id)

    def _idempotent_replay(self, existing: VersionedTask, request_fingerprint: str) -> Task:
        if existing.task.request_fingerprint != request_fingerprint:
            hint = "A key stands for one request; make a new one for another."
            raise KeyReused("Idempotency-Key", "came before, with another request", hint)
        return self._dispatch_or_defer(existing)

    def _replace(self, existing: VersionedTask, draft: TaskDraft, defined_by: Authority | None) -> Task:
        if existing.task.owner != draft.owner:
            raise InvalidInput("id", "is taken", "Choose another id, or leave it out to be given one.")

        def decide(task: Task, now: datetime) -> Transition:
            return _with_author(task, apply_edit(task, draft, now, self._lead), defined_by)

        return self._after_change(self._change(existing.task.id, decide))

    def get(self, task_id: str) -> Task:
        """Return a task.

        Raises:
            NotFound: There is none of that id.
        """
        return self._load(task_id).task

    def update(self, task_id: str, patch: dict[str, Any], *, authority: Authority = Authority.SERVERS) -> Task:
        """Change some of a task's fields by JSON merge patch (RFC 7396): null puts a field back to its default.

        Raises:
            InvalidInput: A field is unknown, cannot be changed, or does not fit; nothing was stored.
        """
        for name, hint in _IMMUTABLE_FIELDS.items():
            if name in patch:
                raise InvalidInput(name, "cannot be changed by an edit", hint)

        require_known(patch)

        def decide(task: Task, now: datetime) -> Transition:
            draft = TaskDraft.from_wire(apply_merge_patch(to_editable_fields(task), patch))
            if draft.schedule is None:
                draft = draft.model_copy(update={"schedule": default_schedule(now, self._lead)})
            unset = {name: None for name in ("pull", "retention") if name not in patch and getattr(task, name) is None}
            validated = self._validate(draft.model_copy(update=unset), authority)
            author = Authority.USERS if authority is Authority.USERS else task.defined_by
            return _with_author(task, apply_edit(task, validated, now, self._lead), author)

        return self._after_change(self._change(task_id, decide))

    def pause(self, task_id: str) -> Task:
        """Hold a task until it is resumed."""
        return self._change(task_id, lifecycle.pause)

    def resume(self, task_id: str) -> Task:
        """Let a paused task go on from now."""
        return self._after_change(self._change(task_id, lifecycle.resume))

    def cancel(self, task_id: str) -> Task:
        """End a task for good, and the calls below it; its record stays."""
        return self._cancel_descendants(self._change(task_id, lifecycle.cancel))

    def _after_change(self, task: Task) -> Task:
        """Tell whoever called the task if the change has ended it: nothing of it was left to run."""
        self._child_tasks.notify_parent(task)
        return task

    def _cancel_descendants(self, task: Task) -> Task:
        """Finish a cancel: reach the calls below, and whoever called the task. The sweep does it if this dies."""
        if task.deferred:
            self._child_tasks.cancel_descendants(task)
            task = self._clear_deferred(task.id) or task
        self._child_tasks.notify_parent(task)
        return task

    def _clear_deferred(self, task_id: str) -> Task | None:
        """Take the mark off a task whose calls are cancelled, unless the sweep is to look for more of them later."""
        stored = self._store.load(task_id)
        if stored is None or can_still_call(stored.task, self._clock.now()):
            return None
        done = lifecycle.with_changes(stored.task, self._clock.now(), deferred=False)
        with suppress(VersionConflict):
            self._store.commit(done, stored.version)
        return done

    def send_event(
        self,
        task_id: str,
        name: str,
        payload: Any,  # noqa: ANN401 - any JSON
        execution_id: str | None = None,
        *,
        sender: EventSender = TRUSTED_CODE,
    ) -> Task:
        """Send an event to a task's durable handler, or to one of its executions alone.

        Raises:
            InvalidInput: The payload is too large, or JSON cannot say it.
            NotAllowed: The task or the execution has ended, or too many events wait for it.
        """
        content = to_json_value("payload", payload)
        said = {"name": parse_event_name(name), "payload": content, "token": secrets.token_hex(8), "sender": sender}

        def received(task: Task, now: datetime) -> Transition:
            return on_event(task, Event(**said, at=now, execution_id=execution_id), now)

        return self._change(task_id, received)

    def trigger(self, task_id: str) -> Task:
        """Run a task now, without moving its plan."""
        request = secrets.token_hex(8)
        return self._change(task_id, lambda task, now: lifecycle.trigger(task, now, request))

    def retry(self, task_id: str, execution_id: str | None = None) -> Task:
        """Give an execution that did not succeed one more attempt; the one that has ended last, if none is named.

        Raises:
            NotFound: There is no such execution.
            NotAllowed: It succeeded or is open, none has ended, its task is paused or cancelled, or what it has done is
                not known any more.
        """

        def decide(task: Task, now: datetime) -> Transition:
            identity = execution_id or lifecycle.last_finished_execution_id(task)
            execution = self._store.load_execution(task_id, identity)
            if execution is None and (run := task.find_run(identity)) is not None:
                raise lifecycle.open_run_error(run)
            if execution is None:
                raise NotFound("execution", identity)
            whole = self._archive.load_execution(execution)
            cancelled, revived = self._child_tasks.cancelled_calls(whole.steps), self._child_tasks.retried_calls(whole)
            retried = lifecycle.retry(task, whole, now, cancelled, revived)
            if whole.steps_reference is not None:  # what is done must not be done again
                hint = f"They were kept as {whole.steps_reference!r}. Trigger the task to run it anew."
                raise NotAllowed(lifecycle.RETRY_ACTION, "missing that execution's steps", hint)
            return self._archive.restore_for_retry(retried, identity)

        return self._change(task_id, decide)

    def backfill(self, task_id: str, start: datetime, end: datetime) -> Task:
        """Run the task's occurrences of a past range, one after the other."""
        request = secrets.token_hex(8)
        return self._change(task_id, lambda task, now: lifecycle.backfill(task, start, end, now, request))

    def delete(self, task_id: str) -> None:
        """Remove a task and its executions. Once this has returned nothing of it runs or shows any more."""
        self._child_tasks.remove(self._change(task_id, lifecycle.delete))

    def _load(self, task_id: str) -> VersionedTask:
        stored = self._store.load(task_id)
        if stored is None or stored.task.deleted_at is not None:
            raise NotFound("task", task_id)
        if self._check is not None:
            self._check(stored.task)
        return stored

    def _change(self, task_id: str, decide: Callable[[Task, datetime], Transition]) -> Task:
        for _ in range(MAX_CONFLICTS):
            stored = self._load(task_id)
            step = decide(stored.task, self._clock.now())
            if step.task is stored.task:
                return self._dispatch_or_defer(
                    stored
                )  # nothing to change; what is planned is sent again, which is harmless
            try:
                changed = self._committer.commit(step, stored)
            except VersionConflict:
                continue
            if step.task.revision != stored.task.revision and any(run.lock_turn_until for run in stored.task.runs):
                self._locks.remove_task(
                    stored.task, self._clock.now()
                )  # its turn is another's: it asks anew, if at all
            return self._dispatch_or_defer(changed)
        raise StoreUnavailable("The store", f"task {task_id} changed {MAX_CONFLICTS} times while it was edited")

    def _dispatch_or_defer(self, stored: VersionedTask) -> Task:
        """Send what the task waits for; if the queue cannot be reached, leave it to the sweep and say so."""
        task = stored.task
        try:
            self._sender.send(task, executor_wakeups(task), self._clock.now())
        except QueueUnavailable as error:
            log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": task.id})
            marked = lifecycle.with_changes(task, self._clock.now(), deferred=True)
            # Failing that, somebody else has changed and sent it, or the sweep finds it as soon as it is overdue.
            with suppress(VersionConflict, StoreUnavailable):
                self._store.commit(marked, stored.version)
            return marked
        return task

    def _validate(self, draft: TaskDraft, authority: Authority) -> TaskDraft:
        return validate_draft(draft, self._registry, self._retention, authority)


def _with_author(before: Task, edit: Transition, defined_by: Authority | None) -> Transition:
    """Return an edit that says who defined the task; one that changes nothing stays as it is."""
    if edit.task is before:
        return edit
    return replace(edit, task=edit.task.model_copy(update={"defined_by": defined_by}))


_IMMUTABLE_FIELDS = {
    "id": "Create another task instead.",
    "owner": "Create a task for the other owner instead.",
    "status": "Use pause, resume, cancel or trigger.",
}


def apply_merge_patch(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return `target` with a JSON merge patch applied (RFC 7396, section 2).

    At the top, a schedule and a payload are replaced whole: half of one and half of another make no sense.
    """
    whole: dict[str, Any] = {name: {} for name in ("schedule", "payload") if isinstance(patch.get(name), dict)}
    return _merge({**target, **whole}, patch)


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            inner = result.get(name)
            result[name] = _merge(inner if isinstance(inner, dict) else {}, value)
        else:
            result[name] = value
    return result
