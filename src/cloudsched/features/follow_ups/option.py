"""Follow-ups: tasks that a handler's success creates, in the commit that records it or not at all.

``Done(content, then=[TaskDraft(...)])`` creates each of them like `App.create`: one with the id of an
existing task of the same owner edits that task. A draft without an id gets one that is derived from its
execution, so deciding again after a conflict or a lost response gives the same tasks. Their dispatches
are sent after the commit. The sweep sends those that a crash or an unavailable queue leaves unsent.

If one of them is refused, none is created and the occurrence has failed: a later attempt would return the
same.

Those that a worker at the API reports are for its task's owner, and may be what whoever asked for the task could
ask for: a worker's key is not trusted as handlers are. They edit only their own task, and what runs have made.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.task import owner_id_prefix
from cloudsched.domain.transitions.commit import Commit, TaskWrite, VersionedTask
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.state.options import Option
from cloudsched.engine.state.quotas import is_revival
from cloudsched.errors import InvalidInput, NotAllowed, QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.engine.engine_context import EngineContext


class FollowUps(Option):
    """Creates the follow-ups of a success in the commit that records it."""

    _engine: EngineContext

    def on_outcome(self, commit: Commit, run: Run, report: AttemptReport, now: datetime) -> Commit:
        """Return the commit with the follow-ups. Raises InvalidInput if one of them is refused."""
        assert commit.base is not None  # noqa: S101 - an attempt is of a task that was read
        planned = _PlannedTasks(self._engine, commit.base.task, run, now, is_reported=report.ended_by is not None)
        planned.check(commit.drafts)
        if commit.effects.is_repeat:
            planned.reload()
        changed, writes = planned.apply(commit)
        return changed.having(others=(*changed.others, *writes))


class _PlannedTasks:
    """The follow-ups of one execution, on their way into its last commit.

    At first each is taken to be new, so that the usual case reads nothing. After a conflict they are read.
    """

    def __init__(self, engine: EngineContext, task: Task, run: Run, now: datetime, *, is_reported: bool) -> None:
        self._engine = engine
        self._task = task
        self._run = run
        self._now = now
        self._is_reported = is_reported
        """True if a worker at the API reports them. False if their handler has returned them here."""
        is_users = is_reported and (task.as_begun(run).is_for_user or run.defined_by is not None)
        self._author = Requesters.USERS if is_users else None
        self._drafts: dict[str, TaskDraft] = {}
        self._existing: dict[str, VersionedTask | None] = {}

    def check(self, drafts: Sequence[TaskDraft]) -> None:
        """Take drafts like those of the app's own code, or of whoever asked for the task. Raises InvalidInput."""
        wanted = len(drafts)
        if self._author and (room := self._engine.quotas().count_room(self._task.owner, wanted)) < wanted:
            raise InvalidInput("then", f"has {wanted} tasks, and their owner has room for {room}", "Leave some out.")
        for number, draft in enumerate(drafts):
            try:
                valid = self._complete(draft)
            except InvalidInput as error:
                raise error.within(f"then.{number}") from error
            task_id = valid.id or _derive_id(self._task, self._run, number)
            if task_id in self._drafts:
                raise InvalidInput(f"then.{number}.id", f"is {task_id!r}, like that of another one", "Give it once.")
            self._drafts[task_id] = valid.model_copy(update={"id": task_id})

    def _complete(self, draft: TaskDraft) -> TaskDraft:
        from cloudsched.engine.handlers.validation import validate_draft  # noqa: PLC0415 - few successes have any

        engine = self._engine
        if self._is_reported:
            owner = self._task.owner
            if draft.owner != owner and "owner" in draft.model_fields_set:
                raise InvalidInput("owner", f"is {draft.owner!r}, and not that of the task", "Leave it out.")
            prefix = owner_id_prefix(owner) if self._author and draft.id != self._task.id else ""
            task_id = draft.id and prefix + draft.id.removeprefix(prefix)
            draft = draft.model_copy(update={"owner": owner, "id": task_id})
        by = self._author or Requesters.SERVERS
        valid = validate_draft(draft, engine.registry, engine.settings.retention, by)
        if valid.schedule is not None:
            if valid.schedule.follows_owner:  # a commit cannot link it to its owner
                hint = "Name a zone, or create the task with app.create."
                raise InvalidInput("schedule.timezone", "is the owner's, which a follow-up cannot follow", hint)
            if self._author:
                from cloudsched.domain.transitions.edits import anchor_schedule  # noqa: PLC0415 - the same

                engine.quotas().require_interval(anchor_schedule(valid.schedule, self._now), self._now)
        return valid

    def reload(self) -> None:
        """Read which of them exist, because a commit has conflicted."""
        self._existing = {task_id: self._load(task_id) for task_id in self._drafts}

    def apply(self, end: Commit) -> tuple[Commit, tuple[TaskWrite, ...]]:
        """Return the end of the execution, and what to write with it.

        A follow-up with the id of the task itself edits the task as the end leaves it. Raises InvalidInput.
        """
        writes = list[TaskWrite]()
        for number, (task_id, draft) in enumerate(self._drafts.items()):
            try:
                if task_id == end.task.id:
                    edit = self._edit(end.task, draft)
                    end = end.having(task=edit.task, executions=(*end.executions, *edit.executions))
                else:
                    writes += self._write(task_id, draft, after=end.task)
            except InvalidInput as error:
                raise error.within(f"then.{number}") from error
            except QuotaExceeded as error:
                raise InvalidInput(f"then.{number}", f"is refused: {error}") from error
            except NotAllowed as error:
                raise InvalidInput(f"then.{number}.id", f"cannot be edited: {error}") from error
        return end, tuple(writes)

    def _write(self, task_id: str, draft: TaskDraft, after: Task) -> list[TaskWrite]:
        from cloudsched.domain.transitions.edits import new_task  # noqa: PLC0415 - the same

        usage_limit = self._engine.usage_limit()
        existing = self._existing.get(task_id)
        if existing is None:
            try:
                self._engine.quotas().require_run_room(draft.owner, after, self._run.execution_id)
                new = new_task(draft, self._now, self._lead(draft), is_made_by_run=True, defined_by=self._author)
                return [TaskWrite(usage_limit.prepare(new, self._now, after))]
            except InvalidInput:  # it may be a repetition, whose instant has passed
                existing = self._load(task_id)
                if existing is None:
                    raise
        edit = self._edit(existing.task, draft)
        if edit.task is existing.task:
            return []
        task = usage_limit.settle(existing.task, edit.task, None)
        if is_revival(existing.task, task):
            task = usage_limit.prepare(task, self._now, after)
        return [TaskWrite(task, existing, edit.executions)]

    def _edit(self, task: Task, draft: TaskDraft) -> Commit:
        is_own = task.defined_by is self._author and (task.is_made_by_run or task.id == self._task.id)
        if task.owner != draft.owner or (self._is_reported and not is_own):
            raise InvalidInput("id", f"is taken: this run may not edit {task.id!r}", "Choose another id.")
        from cloudsched.domain.transitions.edits import edit_or_restart, require_same_handler  # noqa: PLC0415 - the same

        require_same_handler(task, draft, self._engine.registry)
        return edit_or_restart(task, draft, self._now, self._lead(draft), defined_by=self._author)

    def _load(self, task_id: str) -> VersionedTask | None:
        stored = self._engine.store.load(task_id)
        if stored is None or stored.task.deleted_at is None:
            return stored
        if not ChildTasks(self._engine).remove(stored.task):
            self._engine.store.sweep.purge(task_id)
        return None

    def _lead(self, draft: TaskDraft) -> timedelta:
        """Return the least lead. A single instant counts as future if it was so when the execution began.

        So a handler may give its own `ctx.now()`, which has passed by the time of the commit.
        """
        least = self._engine.settings.minimum_lead
        if draft.schedule is None or not draft.schedule.is_one_time or self._run.started_at is None:
            return least
        return least - max(self._now - self._run.started_at, timedelta(0))


def _derive_id(task: Task, run: Run, number: int) -> str:
    origin = json.dumps([task.id, task.created_at.isoformat(), run.execution_id, number])
    return f"f{hashlib.sha256(origin.encode()).hexdigest()[:31]}"
