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
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.state.options import Option
from cloudsched.engine.state.quotas import is_revival
from cloudsched.errors import InvalidInput, NotAllowed, QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.engine_context import EngineContext


class FollowUps(Option):
    """Creates the follow-ups of a success in the commit that records it."""

    _engine: EngineContext

    def on_outcome(self, commit: Commit, run: Run, report: AttemptReport, now: datetime) -> Commit:
        """Return the commit with the follow-ups. Raises InvalidInput if one of them is refused."""
        assert commit.base is not None  # noqa: S101 - an attempt is of a task that was read
        task = commit.base.task
        planned = _plan(self._engine, task, run, commit.drafts, is_reported=report.ended_by is not None)
        if commit.effects.is_repeat:
            planned.reload()
        changed, writes = planned.apply(commit, task.find_run(run.execution_id), now)
        return changed.having(others=(*changed.others, *writes))


def _plan(
    engine: EngineContext, task: Task, run: Run, drafts: Sequence[TaskDraft], *, is_reported: bool
) -> PlannedTasks:
    """Return an execution's follow-ups, checked like tasks that the app's own code creates.

    If they are reported by a worker, they are checked like those of whoever asked for the task. Raises InvalidInput.
    """
    from cloudsched.engine.handlers.validation import validate_draft  # noqa: PLC0415 - few successes have any

    is_users = is_reported and (task.as_begun(run).is_for_user or run.defined_by is Requesters.USERS)
    requesters = Requesters.USERS if is_users else Requesters.SERVERS
    if is_users and (room := engine.quotas().count_room(task.owner, len(drafts))) < len(drafts):
        raise InvalidInput("then", f"has {len(drafts)} tasks, and their owner has room for {room}", "Leave some out.")
    planned = dict[str, TaskDraft]()
    for number, draft in enumerate(drafts):
        try:
            own = _make_own(draft, task, is_users=is_users) if is_reported else draft
            valid = validate_draft(own, engine.registry, engine.settings.retention, requesters)
        except InvalidInput as error:
            raise _within(number, error) from error
        if valid.schedule is not None and valid.schedule.follows_owner:  # a commit cannot link it to its owner
            raise InvalidInput(
                f"then.{number}.schedule.timezone",
                "is the owner's, which a follow-up cannot follow",
                "Name a zone, or create the task with app.create.",
            )
        task_id = valid.id or _derive_id(task, run, number)
        if task_id in planned:
            raise InvalidInput(
                f"then.{number}.id",
                f"is {task_id!r}, like that of another one",
                "Give it once.",
            )
        planned[task_id] = valid.model_copy(update={"id": task_id})
    made_for = task if is_reported else None
    return PlannedTasks(tuple(planned.values()), engine, run.execution_id, made_for, is_users=is_users)


def _make_own(draft: TaskDraft, task: Task, *, is_users: bool) -> TaskDraft:
    """Return a worker's follow-up as one of its task's owner, with an id of that owner's if a user asked for the task.

    Raises InvalidInput for another owner's.
    """
    if draft.owner != task.owner and "owner" in draft.model_fields_set:
        raise InvalidInput("owner", f"is {draft.owner!r}, and not that of the task", "Leave it out.")
    changes: dict[str, object] = {"owner": task.owner}
    if is_users and draft.id not in {None, task.id}:
        prefix = owner_id_prefix(task.owner)
        changes["id"] = prefix + str(draft.id).removeprefix(prefix)
    return draft.model_copy(update=changes)


class PlannedTasks:
    """The follow-ups of one execution, on their way into its last commit.

    At first each is taken to be new, so that the usual case reads nothing. After a conflict they are read.
    """

    def __init__(
        self,
        drafts: tuple[TaskDraft, ...],
        engine: EngineContext,
        execution_id: str,
        made_for: Task | None,
        *,
        is_users: bool,
    ) -> None:
        self._drafts = drafts
        self._made_for = made_for
        """The task whose worker reports them. None if its handler has returned them here."""
        self._author = Requesters.USERS if is_users else None
        self._execution_id = execution_id
        self._engine = engine
        self._child_tasks = ChildTasks(engine)
        self._existing: dict[str, VersionedTask | None] = {}

    def reload(self) -> None:
        """Read which of them exist, because a commit has conflicted."""
        self._existing = {str(draft.id): self._load(str(draft.id)) for draft in self._drafts}

    def apply(self, end: Commit, run: Run | None, now: datetime) -> tuple[Commit, tuple[TaskWrite, ...]]:
        """Return the end of the execution, and what to write with it.

        A follow-up with the id of the task itself edits the task as the end leaves it. Raises InvalidInput.
        """
        writes = list[TaskWrite]()
        for number, draft in enumerate(self._drafts):
            try:
                lead = self._lead_since_start(draft, run, now)
                if draft.id == end.task.id:
                    edit = self._edit(end.task, draft, now, lead)
                    end = end.having(task=edit.task, executions=(*end.executions, *edit.executions))
                else:
                    writes += self._write(draft, now, lead, after=end.task)
            except InvalidInput as error:
                raise _within(number, error) from error
            except QuotaExceeded as error:
                raise InvalidInput(f"then.{number}", f"is refused: {error}") from error
            except NotAllowed as error:
                raise InvalidInput(f"then.{number}.id", f"cannot be edited: {error}") from error
        return end, tuple(writes)

    def _write(self, draft: TaskDraft, now: datetime, lead: timedelta, after: Task) -> list[TaskWrite]:
        from cloudsched.domain.transitions.edits import new_task  # noqa: PLC0415 - the same

        existing = self._existing.get(str(draft.id))
        if existing is None:
            try:
                self._engine.quotas().require_run_room(draft.owner, after, self._execution_id)
                new = new_task(draft, now, lead, is_made_by_run=True, defined_by=self._author)
                self._require_interval(new, now)
                return [TaskWrite(self._engine.usage_limit().prepare(new, now, after))]
            except InvalidInput:  # it may be a repetition, whose instant has passed
                existing = self._load(str(draft.id))
                if existing is None:
                    raise
        edit = self._edit(existing.task, draft, now, lead)
        if edit.task is existing.task:
            return []
        task = self._engine.usage_limit().settle(existing.task, edit.task, None)
        if is_revival(existing.task, task):
            task = self._engine.usage_limit().prepare(task, now, after)
        return [TaskWrite(task, existing, edit.executions)]

    def _edit(self, task: Task, draft: TaskDraft, now: datetime, lead: timedelta) -> Commit:
        made_for = self._made_for
        is_its_own = made_for is None or task.id == made_for.id or (task.is_made_by_run and task.parent is None)
        if task.owner != draft.owner or (made_for and not (is_its_own and task.defined_by is self._author)):
            whose = "this run may not edit" if made_for else f"belongs to {task.owner!r}"
            raise InvalidInput("id", f"is taken: {task.id!r} is a task that {whose}", "Choose another id.")
        from cloudsched.domain.transitions.edits import edit_or_restart, require_same_handler  # noqa: PLC0415 - the same

        require_same_handler(task, draft, self._engine.registry)
        edit = edit_or_restart(task, draft, now, lead, defined_by=self._author)
        self._require_interval(edit.task, now)
        return edit

    def _require_interval(self, task: Task, now: datetime) -> None:
        if self._author is not None:
            self._engine.quotas().require_interval(task.schedule, now)

    def _load(self, task_id: str) -> VersionedTask | None:
        stored = self._engine.store.load(task_id)
        if stored is None or stored.task.deleted_at is None:
            return stored
        if not self._child_tasks.remove(stored.task):
            self._engine.store.sweep.purge(task_id)
        return None

    def _lead_since_start(self, draft: TaskDraft, run: Run | None, now: datetime) -> timedelta:
        """Return the least lead. A single instant counts as future if it was so when the execution began.

        So a handler may give its own `ctx.now()`, which has passed by the time of the commit.
        """
        if draft.schedule is None or not draft.schedule.is_one_time or run is None or run.started_at is None:
            return self._engine.settings.minimum_lead
        elapsed = max(now - run.started_at, timedelta(0))
        return self._engine.settings.minimum_lead - elapsed


def _derive_id(task: Task, run: Run, number: int) -> str:
    origin = json.dumps([task.id, task.created_at.isoformat(), run.execution_id, number])
    return f"f{hashlib.sha256(origin.encode()).hexdigest()[:31]}"


def _within(number: int, error: InvalidInput) -> InvalidInput:
    return type(error)(f"then.{number}.{error.field}", error.problem, error.hint)
