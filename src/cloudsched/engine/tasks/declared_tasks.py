"""Bring the stored tasks in line with the schedules that the code declares.

A task that a declaration made carries its mark (`RequestMark.of_declaration`), which nobody else can make. A
task without it is never changed, whatever its id.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from pydantic.alias_generators import to_camel

from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.schedules.planned_words import describe_planned
from cloudsched.domain.transitions.idempotency import RequestMark
from cloudsched.domain.transitions.task_draft import TaskDraft, find_all_faults, to_wire_fields
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import iterate_pages
from cloudsched.engine.tasks.read_back import SHOWN, make_dry_scheduler, read_back_schedule
from cloudsched.errors import CloudschedError, InvalidInput, InvalidSchedule, KeyReused, NotAllowed, NotFound
from cloudsched.features.fields import HandlerFields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator
    from datetime import datetime

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.handlers.registry import Declaration
    from cloudsched.engine.tasks.scheduler import Scheduler

_PAGE = 500
_OF_HANDLERS = (
    *HandlerFields.defaulted,
    "overlap",
    "expected_duration",
    "query_per_execution",
    "tokens_per_execution",
)
"""The fields that may come from a handler, and that another handler may not be able to have, or has of its own."""


class DeclaredAction(StrEnum):
    """An action on a declared task."""

    CREATE = "create"
    UPDATE = "update"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the code and the store."""

    action: DeclaredAction
    task_id: str
    detail: str
    fields: dict[str, Any] = field(default_factory=dict)
    """The task's fields as JSON, for CREATE. For UPDATE only those that differ."""
    is_gone: bool = False
    """True if the reason is that its declaration is gone."""


class DeclaredTasks:
    """Compares the declarations of an app with its tasks, and changes the tasks."""

    def __init__(
        self,
        engine: EngineContext,
        scheduler: Scheduler,
        read_draft: Callable[[dict[str, Any], datetime], TaskDraft],
        name: str = "default",
        source: str = "the code",
    ) -> None:
        self._source = source
        self._engine = engine
        self._scheduler = scheduler
        self._read_draft = read_draft
        self._mark = RequestMark.of_declaration(name)

    def compare(
        self,
        declarations: Collection[Declaration],
        owners: Iterable[str] = (),
        *,
        gone: Literal[DeclaredAction.PAUSE, DeclaredAction.DELETE] | None = DeclaredAction.PAUSE,
    ) -> list[Change]:
        """Return what `apply` would change, and write nothing. Raises InvalidInput."""
        changes = list[Change]()
        for each in declarations:
            with _tell_subject(each.subject):
                changes += self.compare_one(each)
        if gone is None:
            return changes
        known = {each.owner for each in declarations} | set(owners)
        return changes + self.find_gone({each.id for each in declarations}, known, gone)

    def find_gone(
        self, ids: Container[str], owners: Iterable[str], action: Literal[DeclaredAction.PAUSE, DeclaredAction.DELETE]
    ) -> list[Change]:
        """Return the changes for the owners' declared tasks whose ids are not among these."""
        return [
            Change(action, task.id, f"is gone from {self._source}", is_gone=True)
            for owner in sorted(owners)
            for task in self._list_marked(owner)
            if task.id not in ids and (action is DeclaredAction.DELETE or task.status is TaskStatus.ACTIVE)
        ]

    def apply(self, changes: Iterable[Change]) -> None:
        """Make the changes.

        Safe to repeat, to interrupt, and to run twice at once: `compare` finds what is left.
        """
        for change in changes:
            with _tell_subject(f"Task {change.task_id!r}"):
                self._apply_one(change)

    def _apply_one(self, change: Change) -> None:
        scheduler = self._scheduler
        by = OWN_CODE.limit(self._require_marked)
        if change.action is DeclaredAction.CREATE:
            now = self._engine.clock.now()
            draft = self._read_draft(change.fields, now)
            try:
                scheduler.create(draft, by=OWN_CODE, mark=self._mark, as_of=now)
            except KeyReused:
                self._require_marked(scheduler.get(change.task_id, OWN_CODE))  # another caller has created it since
                raise
        elif change.action is DeclaredAction.UPDATE:
            scheduler.update(change.task_id, change.fields, by)
        elif change.action is DeclaredAction.RESUME:
            with suppress(NotAllowed):  # it was paused since, or its only instant has passed
                scheduler.resume(change.task_id, OWN_CODE.limit(self._require_paused_as_gone))
        elif change.action is DeclaredAction.DELETE:
            with suppress(NotFound):  # another apply was first
                scheduler.delete(change.task_id, by)
        elif not change.is_gone:
            scheduler.pause(change.task_id, by)
        else:
            with suppress(NotFound, NotAllowed):  # it was deleted, or has ended: it runs nothing
                scheduler.pause(change.task_id, by, is_gone=True)

    def compare_one(self, declaration: Declaration) -> Iterator[Change]:
        """Yield what `apply` would change for one declaration. Raises InvalidInput, as `compare` does."""
        content = to_wire_fields(declaration.fields)
        pause = Change(DeclaredAction.PAUSE, declaration.id, "is declared as paused")
        try:
            task = self._scheduler.get(declaration.id, OWN_CODE)
        except NotFound:
            draft = self._check(content, self._engine.clock.now())
            if draft.schedule is None:
                described = "once, now"
            else:
                described = _tell(draft.schedule, self._engine.clock.now())
            yield Change(DeclaredAction.CREATE, declaration.id, f"{declaration.handler}, {described}", content)
            if declaration.is_paused:
                yield pause
            return

        self._require_marked(task)
        if task.owner != declaration.owner:
            hint = "A task's owner cannot change: give the declaration another id."
            raise InvalidInput("owner", f"of {task.id!r} is {task.owner!r}, not {declaration.owner!r}", hint)

        # Words count from the task's creation, so that they mean the same in each deployment.
        draft = self._check(content, task.created_at, task.schedule)
        details, fields = _find_differences(task, draft, declaration, self._engine.clock.now())
        if fields:
            yield Change(DeclaredAction.UPDATE, task.id, "; ".join(details), fields)
        if declaration.is_paused:
            if task.status is TaskStatus.ACTIVE:
                yield pause
            return
        at = None if draft.schedule is None else draft.schedule.at
        is_over = at is not None and at <= self._engine.clock.now()
        if task.is_paused_as_gone and task.status is TaskStatus.PAUSED and not is_over:
            yield Change(DeclaredAction.RESUME, task.id, f"is in {self._source} again")

    def _check(self, content: dict[str, Any], now: datetime, known: Schedule | None = None) -> TaskDraft:
        """Return the draft of a declaration. Raises InvalidInput, with all faults."""
        dry = make_dry_scheduler(self._engine)

        def check(fields: dict[str, Any]) -> TaskDraft:
            return dry.check(self._read_draft(fields, now), known)

        try:
            return check(content)
        except InvalidInput as error:
            raise find_all_faults(error, content, check) from error.__cause__

    def _require_marked(self, task: Task) -> None:
        if self._mark.is_repeat_on(task):
            return
        hint = f"It belongs to {task.owner!r}, and is left as it is. Give the declaration another id: id=…."
        raise InvalidInput(
            "id", f"of a declaration is that of a task that this code did not declare: {task.id!r}", hint
        )

    def _require_paused_as_gone(self, task: Task) -> None:
        self._require_marked(task)
        if task.status is TaskStatus.PAUSED and not task.is_paused_as_gone:
            raise NotAllowed("resume", "paused by somebody else")

    def _list_marked(self, owner: str) -> Iterator[Task]:
        query = TaskQuery(owner=owner)
        for page in iterate_pages(
            lambda token: self._engine.store.list_tasks(query, limit=_PAGE, page_token=token),
        ):
            yield from (each for each in page.items if self._mark.is_repeat_on(each))


@contextmanager
def _tell_subject(subject: str) -> Iterator[None]:
    """Begin the message of an error with what it is about."""
    try:
        yield
    except CloudschedError as error:
        error.args = (f"{subject}: {error.args[0]}",)
        raise


def _tell(schedule: Schedule, now: datetime) -> str:
    told = None
    with suppress(InvalidSchedule):  # such as the days of a calendar that are not known yet
        anchored = schedule.anchor(now)
        told = read_back_schedule(anchored, iter(anchored.upcoming(now, SHOWN)))
    if told is None or not told.next or schedule.is_one_time:
        return schedule.describe()
    return f"{told.description}, next on {', '.join(at.isoformat(timespec='minutes') for at in told.next)}"


def _find_differences(
    task: Task, draft: TaskDraft, declaration: Declaration, now: datetime
) -> tuple[list[str], dict[str, Any]]:
    """Return what differs for people, and the merge patch that brings the task in line with the draft.

    Fields that the declaration leaves to its handler stay as they are, unless that is another handler now.
    """
    details = list[str]()
    fields = dict[str, Any]()
    if draft.handler != task.handler:
        details.append(f"handler: {task.handler} → {draft.handler}")
        fields["handler"] = draft.handler
    if draft.payload != task.payload:
        details.append("payload")
        fields["payload"] = {**dict.fromkeys(task.payload), **draft.payload}
    if draft.schedule is not None and not _is_same_schedule(task, draft):
        present = describe_planned(task.schedule, task.next_execution_time).text
        details.append(f"schedule: {present} → {_tell(draft.schedule, now)}")
        cleared = dict.fromkeys(task.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        wire = draft.schedule.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        fields["schedule"] = {**cleared, **wire}
    wanted = draft.to_wire()
    if "handler" in fields:
        left_out = (name for name in _OF_HANDLERS if name not in declaration.more)
        for name in (each for each in left_out if getattr(draft, each) != getattr(task, each)):
            details.append(f"{name.replace('_', ' ')} of its handler")
            fields[to_camel(name)] = None
    for name in declaration.more:
        if getattr(draft, name) != getattr(task, name):
            details.append(name.replace("_", " "))
            fields[to_camel(name)] = wanted.get(to_camel(name))
    return details, fields


def _is_same_schedule(task: Task, draft: TaskDraft) -> bool:
    schedule = draft.schedule
    if schedule is None or schedule.is_anchored:
        return schedule == task.schedule
    if schedule.delay is not None:
        return task.schedule.at is not None and schedule.timezone == task.schedule.timezone
    return schedule == task.schedule.copy_unchecked(dtstart=None)
