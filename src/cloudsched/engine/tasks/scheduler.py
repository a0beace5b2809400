"""The operations on tasks: create, read, edit, pause, run and delete them.

Every change is one read, one pure decision and one commit. After a conflict all three are repeated. The
dispatch is created after the commit. If the queue cannot be reached then, the change stands: the task is
returned and stored as deferred, and the sweep sends what is missing.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import PERSON, SYSTEM_OWNER, EventSender, SenderRole
from cloudsched.domain.documents.event import Event
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.person import Person, default_channels
from cloudsched.domain.documents.task import HistoryEntry, Task, TaskStatus
from cloudsched.domain.documents.verbs import EDITS, Action, Verb
from cloudsched.domain.handler_code import running_handler
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.commit import Commit, Committed, VersionedTask
from cloudsched.domain.transitions.definitions import bind_open_runs, describe_bound_runs
from cloudsched.domain.transitions.edits import anchor_schedule, edit_or_restart, new_task, require_same_handler
from cloudsched.domain.transitions.history import with_answer, with_entry
from cloudsched.domain.transitions.idempotency import RequestMark, key_reused, once
from cloudsched.domain.transitions.manual_verbs import cancel_run
from cloudsched.domain.transitions.planning import can_replan
from cloudsched.domain.transitions.suspend import is_asked, on_event, parse_event_name
from cloudsched.domain.transitions.task_draft import (
    TaskDraft,
    edit_draft,
    merge_json,
    require_editable_fields,
    take_payload_merge,
)
from cloudsched.domain.transitions.validation_errors import Faults
from cloudsched.domain.transitions.wakeups import executor_wakeups
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.handlers.payload_fields import find_reset_fields
from cloudsched.engine.handlers.validation import validate_draft
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.engine.ports.records import record_of
from cloudsched.engine.state.commits import compare_and_set
from cloudsched.engine.state.quotas import QuotaCheck, is_revival
from cloudsched.engine.tasks.manual_runs import ManualRuns, make_mark
from cloudsched.engine.tasks.schedule_parts import OPEN_FOR, list_parts, resolve_schedule
from cloudsched.errors import (
    Forbidden,
    InvalidInput,
    NotAllowed,
    NotAwaited,
    NotFound,
    QueueUnavailable,
    QuotaExceeded,
    StoreUnavailable,
    VersionConflict,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.engine.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.tasks.manual_runs import Decide

log: Final = own_logger(__name__)


class Scheduler:
    """Creates, reads, changes and deletes tasks."""

    def __init__(self, engine: EngineContext, child_tasks: ChildTasks) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self.manual_runs: ManualRuns = ManualRuns(engine, child_tasks, self._validate, self._act)

    def create(
        self,
        draft: TaskDraft,
        *,
        by: Authority,
        mark: RequestMark | None = None,
        refusal: QuotaExceeded | None = None,
        lead: timedelta | None = None,
        as_of: datetime | None = None,
    ) -> tuple[Task, bool]:
        """Store a task and dispatch it. Return it, and whether it is new.

        A draft that has the id of an existing task of the same owner edits that task instead. One commit, and
        one created dispatch. A repeated creation is recognized also when the task's instant has passed in the
        meantime. With a full quota as `refusal`, only an existing task is edited or returned. The words of a
        draft were read at `as_of`, at which a new task counts as created. After an error nothing was stored.
        """
        by.require_owner(draft.owner)
        try:
            draft = self._validate(draft, by)
            if "owner" not in draft.model_fields_set:
                require_recipient(draft, self._engine)
        except InvalidInput as error:
            faults = Faults([error])
            if draft.schedule is not None:
                with faults:
                    resolve_schedule(self._engine.store.records, draft.schedule, draft.owner)
            faults.tell()
        depends = draft.schedule is not None and draft.schedule.depends_on_records
        started = self._engine.clock.now() if depends else None
        least = self._engine.settings.minimum_lead if lead is None else lead
        if depends:
            draft = self._resolve_new(draft, refusal, by, least)
        task, is_new = compare_and_set(
            f"task {draft.id} or another of its owner's",
            lambda: None,  # what is in the way is read after a conflict
            lambda _: self._try_to_create(draft, by, mark, refusal, least, as_of),
            first=None,
        )
        return task if started is None else self._follow_changes(task, started), is_new

    def _try_to_create(
        self,
        draft: TaskDraft,
        by: Authority,
        mark: RequestMark | None,
        refusal: QuotaExceeded | None,
        lead: timedelta,
        as_of: datetime | None,
    ) -> tuple[Task, bool]:
        try:
            now = self._engine.clock.now()
            at = as_of or now
            known: dict[str, Any] = mark.fields(None, at, by.sender) if mark else {}
            known["history"] = (HistoryEntry.build(at=at, action=Action.CREATED, by=by.actor),)
            new_id = None if draft.id else self._engine.store.make_id(at)
            code = running_handler.get()
            known |= {"defined_by": by.author, "is_made_by_run": code is not None}
            task = new_task(draft, at, lead, new_id=new_id, **known)
            if code is not None:
                self._engine.quotas().require_run_room(draft.owner, code.task, code.execution_id)
            if by.has_quotas:
                self._engine.quotas().require_interval(task.schedule, at)
            quota = self._require_room(task.owner, by, refusal) if by.has_quotas or refusal else None
        except (InvalidInput, QuotaExceeded):
            # A repetition of what was created before is answered, even if it would be refused by now.
            repeated = self._repeat_creation(draft.id, draft, mark, by) if draft.id else None
            if repeated is None:
                raise
            return repeated, False

        task = self._engine.usage_limit().prepare(task, now)
        try:
            guard = quota.guard(task) if quota else None
            created = run_procedure(self._engine.committer.commit(Commit(task, linked=guard)))
        except VersionConflict:
            if (repeated := self._repeat_creation(task.id, draft, mark, by)) is not None:
                return repeated, False
            self._remove_deleted(task.id)
            raise
        return self._dispatch_or_defer(created), True

    def _require_room(self, owner: str, by: Authority, refusal: QuotaExceeded | None) -> QuotaCheck | None:
        """Return what a creation must guard, if quotas hold for it. Raises QuotaExceeded, or an earlier refusal."""
        quota = self._engine.quotas().check(owner) if by.has_quotas and refusal is None else None
        if full := refusal if quota is None else quota.refusal:
            raise full
        return quota

    def _resolve_new(
        self, draft: TaskDraft, refusal: QuotaExceeded | None, by: Authority, lead: timedelta
    ) -> TaskDraft:
        """Resolve the draft of a creation that will not be refused.

        Links written for it count in no quota.
        """
        try:
            self._require_room(draft.owner, by, refusal)
            if by.has_quotas and draft.schedule is not None:
                schedule = resolve_schedule(self._engine.store.records, draft.schedule, draft.owner)
                new_task(draft.model_copy(update={"schedule": schedule}), self._engine.clock.now(), lead)
        except (InvalidInput, QuotaExceeded):
            if draft.id is None or self._engine.store.load(draft.id) is None:
                raise
        return self._resolve(draft, None)

    def find_repeated(self, task_id: str, mark: RequestMark, by: Authority) -> Task | None:
        """Return the task, as it is now, that this same creation made or edited before, or None."""
        existing = self._engine.store.load(task_id)
        if existing is None or existing.task.deleted_at is not None or not mark.is_repeat_on(existing.task):
            return None
        by.authorize(existing.task)
        return self._dispatch_or_defer(existing)

    def _repeat_creation(
        self,
        task_id: str,
        draft: TaskDraft,
        mark: RequestMark | None,
        by: Authority,
    ) -> Task | None:
        """Return the existing task of a draft's id, edited unless this is a repetition, or None."""
        existing = self._engine.store.load(task_id)
        if existing is None or existing.task.deleted_at is not None:
            return None
        if mark is not None and mark.only_creates:
            if not mark.is_repeat_on(existing.task):
                raise key_reused()
            return self._dispatch_or_defer(existing)

        try:
            return self._replace(existing, draft, mark, by)
        except NotFound:
            current = self._engine.store.load(task_id)
            if current and not current.task.deleted_at and current.task.created_at == existing.task.created_at:
                raise  # the caller may not see it
            return None  # it was deleted after it was read

    def _remove_deleted(self, task_id: str) -> None:
        stored = self._engine.store.load(task_id)
        if stored is not None and stored.task.deleted_at is not None and not self._child_tasks.remove(stored.task):
            self._engine.store.sweep.purge(task_id)

    def _replace(
        self,
        existing: VersionedTask,
        draft: TaskDraft,
        mark: RequestMark | None,
        by: Authority,
    ) -> Task:
        if existing.task.owner != draft.owner:
            raise InvalidInput("id", "is taken", "Choose another id, or leave it out to be given one.")

        def decide(task: Task, now: datetime) -> Commit:
            require_same_handler(task, draft, self._engine.registry)
            transition = edit_or_restart(
                task,
                self._resolve(draft, task.schedule),
                now,
                self._engine.settings.minimum_lead,
                defined_by=by.author,
            )
            self._limit_rate(task, transition.task, now, by)
            return transition.having(task=self._engine.usage_limit().settle(task, transition.task, by.author))

        return self._after_change(self._act(existing.task.id, Action.EDITED, decide, by, mark=mark))

    def _limit_rate(self, before: Task, task: Task, now: datetime, by: Authority) -> None:
        if by.has_quotas and task.schedule != before.schedule:
            self._engine.quotas().require_interval(task.schedule, now)

    def get(self, task_id: str, by: Authority) -> Task:
        """Return a task. Raises NotFound."""
        return self._load(task_id, by).task

    def update(
        self,
        task_id: str,
        patch: dict[str, Any],
        by: Authority,
        mark: RequestMark | None = None,
        read_at: datetime | None = None,
        schedule_text: str | None = None,
    ) -> Task:
        """Change some of a task's fields by JSON merge patch (RFC 7396): null resets a field to its default.

        ``payloadMerge`` does the same for the payload: its other fields stay.

        With a mark, a repetition of the same request changes nothing. `read_at` is when the patch's words
        were read, and `schedule_text` is what they are if they mean a whole schedule. Raises InvalidInput or
        QuotaExceeded.
        """
        patch = {**patch}
        merged = take_payload_merge(patch)
        require_editable_fields(patch)
        lead = self._engine.settings.minimum_lead

        def decide(task: Task, now: datetime) -> Commit:
            fields = patch if merged is None else {**patch, "payload": merge_json(task.payload, merged)}
            draft = edit_draft(task, fields).as_read_at(read_at, schedule_text)
            if draft.schedule is None:
                draft = draft.model_copy(update={"schedule": anchor_schedule(None, now, lead)})
            validated = self._validate(draft, by, fields.keys())
            if "schedule" in patch:
                validated = self._resolve(validated, task.schedule)
            transition = edit_or_restart(task, validated, now, lead, defined_by=by.author or task.defined_by)
            if isinstance(patch.get("payload"), dict) and draft.handler == task.handler:
                self._require_whole_payload(task, draft.payload, patch["payload"])
            self._limit_rate(task, transition.task, now, by)
            return transition.having(task=self._engine.usage_limit().settle(task, transition.task, by.author))

        return self._after_change(self._act(task_id, Action.EDITED, decide, by, mark=mark))

    def _require_whole_payload(self, task: Task, payload: dict[str, Any], given: dict[str, Any]) -> None:
        """Refuse a part of a payload: missing fields would go back to their defaults."""
        handler = self._engine.registry.find(task.handler)
        if handler is None:
            return
        try:
            before = handler.parse_payload(task.payload)
        except InvalidInput:  # its model has changed: the new payload is a repair
            return
        if lost := [*find_reset_fields(before, handler.parse_payload(payload), given)]:
            problem = f"leaves out {', '.join(lost[:10])}, which the task has set"
            hint = "It replaces the whole payload: give all of its fields, and null for those to reset."
            raise InvalidInput("payload", problem, hint)

    def act(self, verb: Verb, task_id: str, decide: Decide, by: Authority, mark: RequestMark | None) -> Task:
        """Change a task by a verb, as a decision says, once for each mark."""
        action = verb.traits.action
        assert action is not None  # noqa: S101 - others are done otherwise
        do = self.manual_runs.start if verb.traits.starts else self._act
        if verb.traits.edits:
            decide = self._as_edit(decide, by)
        return do(task_id, action, decide, by, mark=mark or make_mark())

    def _as_edit(self, decide: Decide, by: Authority) -> Decide:
        """Return a decision that is made for those who may edit the task, within their quotas.

        As after any other edit, a task that a user has changed is the user's.
        """

        def decide_allowed(task: Task, now: datetime) -> Commit:
            changed = decide(task, now)
            self._validate(edit_draft(task, {}), by, ("schedule",))
            self._limit_rate(task, changed.task, now, by)
            if changed.task.schedule == task.schedule:
                return changed
            edited = changed.task.model_copy(update={"defined_by": by.author or task.defined_by})
            return changed.having(task=bind_open_runs(task, edited))

        return decide_allowed

    def pause(
        self,
        task_id: str,
        by: Authority,
        mark: RequestMark | None = None,
        *,
        is_gone: bool = False,
        until: datetime | None = None,
        pause_id: str | None = None,
    ) -> Task:
        """Pause a task: it runs nothing until it is resumed, or until an instant. See `lifecycle.pause`."""

        def decide(task: Task, now: datetime) -> Commit:
            message = "" if is_gone else f"Paused{lifecycle.name_author(task, by.sender)}."
            return lifecycle.pause(
                task, now, message, paused_by=by.author, is_gone=is_gone, until=until, pause_id=pause_id
            )

        return self._act(task_id, Action.PAUSED, decide, by, mark=mark)

    def resume(
        self,
        task_id: str,
        by: Authority,
        mark: RequestMark | None = None,
        *,
        is_restored: bool = False,
        resume_id: str | None = None,
    ) -> Task:
        """Resume a paused task from now on, or take back a pause of many tasks: see `lifecycle.restore`.

        A user may resume a task that may be started, or that a user has paused. `resume_id` says that it is one of
        many that are resumed together.
        """

        def decide(task: Task, now: datetime) -> Commit:
            decided = (lifecycle.restore if is_restored else lifecycle.resume)(task, now, by=by.sender)
            if resume_id is None or decided.task is task or not decided.task.is_active:
                return decided
            return decided.having(task=decided.task.model_copy(update={"pause_id": resume_id}))

        return self._after_change(self.manual_runs.start(task_id, Action.RESUMED, decide, by, mark=mark))

    def cancel(self, task_id: str, by: Authority, mark: RequestMark | None = None) -> Task:
        """Cancel a task permanently, with the calls below it. Its record stays."""
        return self._cancel_descendants(
            self._act(task_id, Action.CANCELLED, partial(lifecycle.cancel_for_caller, by=by.sender), by, mark=mark),
        )

    def cancel_run(self, task_id: str, execution_id: str, by: Authority, mark: RequestMark | None = None) -> Task:
        """Cancel one open run of a task, with the calls below it. See `manual_verbs.cancel_run`.

        One that is cancelled stays so. Raises NotFound, or NotAllowed for one that has ended otherwise.
        """
        waiting: list[Run] = []

        def decide(task: Task, now: datetime) -> Commit:
            run = task.find_run(execution_id)
            if run is None:
                record = self._engine.store.load_execution(task_id, execution_id)
                if record is None:
                    raise NotFound("execution", execution_id)
                if record.status is not ExecutionStatus.CANCELLED:
                    raise NotAllowed("cancel a run of", "done with it", f"{execution_id} has ended: {record.status}.")
                return Commit(task)
            waiting[:] = [] if run.lease and run.lease.until > now else [run]
            cancelled = cancel_run(task, now, run, f"Cancelled{lifecycle.name_author(task, by.sender)}.")
            action = Action.RUN_CANCELLED
            noted = with_entry(task, cancelled.task, action, by.actor, now, execution_id=execution_id)
            return cancelled.having(task=noted)

        task = self.change(task_id, once(mark or make_mark(), by.sender, decide), by)
        if waiting:  # one that runs keeps its lock, which its handler may still need
            self._engine.committer.options.lose(task, execution_id)
        if task.deferred:
            task = self._child_tasks.cancel_calls(task) or task
        return self._after_change(task)

    def _after_change(self, task: Task) -> Task:
        """Notify the task's parent if the change has ended the task, because nothing was left to run."""
        self._child_tasks.notify_parent(task)
        return self._follow_changes(task, task.updated_at)

    def _leave(self, task: Task) -> None:
        """Drop what the open runs of a task as it was wait for: it plans anew."""
        self._engine.committer.options.leave(task)

    def _follow_changes(self, task: Task, since: datetime) -> Task:
        """Return the task, replanned if it was stored so late that what it depends on may have changed."""
        schedule = task.schedule
        if not schedule.depends_on_records or self._engine.clock.now() - since < OPEN_FOR / 2:
            return task
        for part in list_parts():
            if part.concerns(schedule):
                replan = part.plan_again(self._engine.store.records, task, self._engine.clock)
                with suppress(NotFound):
                    task = self.change(task.id, replan, OWN_CODE)
        return task

    def _cancel_descendants(self, task: Task) -> Task:
        """Complete a cancel: cancel the calls below, and notify the parent.

        After a crash, the sweep does this.

        A task that was started again since the cancel keeps its calls.
        """
        if task.deferred and task.status is TaskStatus.CANCELLED:
            task = self._child_tasks.complete_cancel(task) or task
        self._child_tasks.notify_parent(task)
        return task

    def send_event(
        self,
        task_id: str,
        name: str,
        payload: Any,  # noqa: ANN401 - any JSON
        execution_id: str | None = None,
        *,
        early: bool = False,
        by: Authority,
        mark: RequestMark | None = None,
    ) -> Task:
        """Send an event to the execution of a task that waits for it. See `App.send_event`."""
        content = to_json_value("payload", payload)
        fields = {"name": parse_event_name(name), "payload": content, "token": secrets.token_hex(8)}

        def make(task: Task, now: datetime) -> Event:
            return Event(**fields, at=now, execution_id=execution_id, sender=identify_sender(task, by))

        def authorize(task: Task) -> None:
            """Allow those who may change the task, and those whom it asks by name for this very event."""
            try:
                by.authorize(task)
            except (NotFound, Forbidden):
                if not is_asked(task, make(task, task.updated_at)):
                    raise

        def decide(task: Task, now: datetime) -> Commit:
            handler = self._engine.registry.find(task.handler)
            event = make(task, now)
            is_guest = is_stranger(task, by)
            is_kept = not is_guest and (
                early or (handler is not None and any(fnmatchcase(name, each) for each in handler.early_events))
            )
            try:
                changed = on_event(task, event, now, early=is_kept, is_for_any=is_kept and early)
            except NotAwaited as error:
                if not is_guest:
                    raise
                raise NotAwaited(
                    name,
                    [each for each in error.awaited if event.sender.person in each.by],
                ) from None
            if handler is not None and changed.task is not task:
                handler.check_event(name, content)
            return changed.having(task=with_answer(task, changed.task, event, now))

        try:
            return self.change(task_id, once(mark or make_mark(), by.sender, decide), replace(by, authorize=authorize))
        except NotFound as error:  # of a task that is hidden as of one that does not exist
            hint = "If you were asked for an answer, it has been given, or its time is over."
            raise NotFound(error.kind, error.key, hint) from None

    def delete(self, task_id: str, by: Authority, mark: RequestMark | None = None) -> None:
        """Delete a task and its executions. Once this returns, it starts nothing and is not visible.

        With a mark, a repetition succeeds as long as something of the task is left: while a handler runs, or
        until the sweep has removed what a crash has left. Raises NotFound if nothing is.
        """
        try:
            deleted = self._act(task_id, Action.DELETED, lifecycle.delete, by, mark=mark)
        except NotFound:
            stored = None if mark is None else self._engine.store.load(task_id)
            if mark is None or stored is None or stored.task.deleted_at is None or not mark.is_repeat_on(stored.task):
                raise
            by.require_valid()
            by.authorize(stored.task)
            deleted = stored.task
        self._child_tasks.remove(deleted)

    def _load(self, task_id: str, by: Authority) -> VersionedTask:
        stored = self._engine.store.load(task_id)
        if stored is None or stored.task.deleted_at is not None:
            raise NotFound("task", task_id)
        by.require_valid()
        by.authorize(stored.task)
        return stored

    def _act(
        self,
        task_id: str,
        action: Action,
        decide: Decide,
        by: Authority,
        reason: str | None = None,
        mark: RequestMark | None = None,
    ) -> Task:
        """Change a task as its caller asks for, once for a mark, and note who did that.

        For users, quotas hold.
        """

        def decide_and_note(task: Task, now: datetime) -> Commit:
            decided = decide(task, now)
            if action in EDITS and decided.task.revision == task.revision:
                return decided  # nothing that its owner sets has changed
            names = {run.execution_id for run in decided.task.runs} - {run.execution_id for run in task.runs}
            about = {"reason": reason, **({"execution_id": names.pop()} if len(names) == 1 else {})}
            if lifecycle.is_only_marked(task, decided.task):
                about["reason"] = lifecycle.OWN_PAUSE_GOES_ON
            if action in EDITS:
                about["reason"] = reason or describe_bound_runs(decided.task) or None
            return replace(decided, task=with_entry(task, decided.task, action, by.actor, now, **about))

        return self.change(task_id, once(mark, by.sender, decide_and_note), by)

    def change(self, task_id: str, decide: Decide, by: Authority) -> Task:
        """Apply a decision to a task, retrying after each conflict, and dispatch it.

        Raises QuotaExceeded.
        """

        def decide_on(stored: VersionedTask) -> Commit | VersionedTask:
            if stored.task.zone_plan is not None and can_replan(stored.task):
                stored = self._engine.replan(stored)
            now = self._engine.clock.now()
            transition = decide(lifecycle.end_pause_if_over(stored.task, now), now)
            if transition.task is stored.task:
                return stored
            guard = self._engine.quotas().check_revival(stored.task, transition.task, by)
            if is_revival(stored.task, transition.task):
                transition = replace(transition, task=self._engine.usage_limit().prepare(transition.task, now))
            return transition.having(base=stored, linked=guard)

        load = partial(self._load, task_id, by)
        changed = self._engine.committer.apply(f"task {task_id}", load, decide_on)
        if not isinstance(changed, Committed):
            return self._dispatch_or_defer(changed)  # sending its dispatches again is harmless
        base = changed.commit.base
        is_new_revision = base is not None and base.task.revision != changed.stored.task.revision
        if base is not None and is_new_revision and any(run.turn_until for run in base.task.runs):
            # Runs of the old revision give up their place. If the task still needs the lock, it asks again.
            self._leave(base.task)
        return self._dispatch_or_defer(changed.stored)

    def _dispatch_or_defer(self, stored: VersionedTask) -> Task:
        """Send the task's dispatches.

        If the queue cannot be reached, mark the task so that the sweep sends them.
        """
        task = stored.task
        try:
            self._engine.sender.send(task, executor_wakeups(task), self._engine.clock.now())
        except QueueUnavailable as error:
            if not self._engine.sender.defers_all:
                log.warning("deferred: %s", error, extra={"action": "deferred", "taskId": task.id})
            with suppress(StoreUnavailable):  # then the sweep finds it once it is overdue
                return self._engine.committer.try_to_change(stored, self._engine.clock.now(), deferred=True) or task
        return task

    def check(self, draft: TaskDraft, known: Schedule | None) -> TaskDraft:
        """Return a draft with its handler's defaults. Raises InvalidInput, also for an unknown calendar."""
        checked = self._validate(draft, OWN_CODE)
        self._resolve(checked, known)
        return checked

    def _validate(self, draft: TaskDraft, by: Authority, changed: Collection[str] | None = None) -> TaskDraft:
        return validate_draft(
            draft, self._engine.registry, self._engine.settings.retention, by.requesters, changed=changed
        )

    def _resolve(self, draft: TaskDraft, known: Schedule | None) -> TaskDraft:
        """Return a draft whose schedule has what records say, such as its owner's zone.

        Raises InvalidSchedule.
        """
        if draft.schedule is None or not draft.schedule.depends_on_records:
            return draft
        for part in list_parts():
            if part.concerns(draft.schedule):
                draft = part.resolve(self._engine.store.records, draft, self._engine.clock, known)
        return draft


def identify_sender(task: Task, by: Authority) -> EventSender:
    """Return the sender of an event towards a task: a user other than its owner is a person to be asked."""
    sender = by.actor
    if not by.is_user or by.owner is None or sender.role is not SenderRole.OWNER:
        owner = f"{PERSON}{task.owner}"
        is_right = {
            SenderRole.OWNER: owner in {sender.subject or owner, sender.user},
            SenderRole.PERSON: sender.person,
        }
        if not is_right.get(sender.role, True):
            raise InvalidInput(
                "sender",
                f"is {sender.subject!r} as {sender.role.value!r}",
                f'Give role="owner" for {owner!r} alone, and role="person" for any other "{PERSON}…".',
            )
        return sender
    own_key = f"{PERSON}{by.owner}" if sender.person is None else None
    return sender.model_copy(
        update={"role": SenderRole.OWNER if task.owner == by.owner else SenderRole.PERSON, "user": own_key}
    )


def is_stranger(task: Task, by: Authority) -> bool:
    """Return whether a caller may not change a task, but may answer what it asks them by name."""
    try:
        by.authorize(task)
    except (NotFound, Forbidden):
        return True
    return False


def require_recipient(draft: TaskDraft, engine: EngineContext) -> None:
    """Refuse a delivery to the owner of a task without a named owner: nobody would get it.

    It is for the system only if that has contacts.
    """
    personal = [channel for channel in draft.delivery_channels if channel.traits.may_users_name]
    if not personal:
        return
    if engine.store.records.load(Person, draft.owner) is None:
        hint = f'Give the person, owner="ada", or owner="{SYSTEM_OWNER}" if that is whom you mean.'
        raise InvalidInput("owner", f"is missing, and {', '.join(personal)} would deliver to it", hint)


def with_preferred_channels(draft: TaskDraft, engine: EngineContext) -> TaskDraft:
    """Return a draft with the channels that its owner prefers for its category, if it names none.

    An empty list names them, too. OPERATOR is not one of them: a person's preferences must not send to the
    operator's own channels.
    """
    if "delivery_channels" in draft.model_fields_set or draft.owner == SYSTEM_OWNER:
        return draft
    stored = engine.store.records.load(Person, draft.owner)
    channels = tuple(each for each in default_channels(record_of(stored), draft.category) if each.traits.may_users_name)
    return draft.model_copy(update={"delivery_channels": channels}) if channels else draft
