"""Batch changes: preview the tasks that match a filter, and change each of them, a page in a step of a task.

That task has the rights of its owner: the system's changes every task, a user's only what that user may
change, as a user. That is decided for each task when it is changed, on the state that the change replaces. A
process that dies is followed by another one, which begins with the page that was not finished: a change that
was made before is not made again. It is then not counted, so the numbers are the least.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from cloudsched.domain.documents.authority import (
    SYSTEM_OWNER,
    TRUSTED_CODE,
    EventSender,
    Requesters,
    SenderRole,
)
from cloudsched.domain.documents.batch_change import (
    DELIVERIES_GO_ON,
    BatchAction,
    BatchChange,
    BatchRetry,
    BatchState,
    ExecutionName,
    RetryFilter,
    may_retry,
)
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution
from cloudsched.domain.documents.json_limits import json_size
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.responses.count import Count
from cloudsched.domain.responses.overview_responses import ConcernedTask, RetryCount, TaskCount
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.domain.transitions.idempotency import RequestMark, hash_name
from cloudsched.domain.transitions.lifecycle import require_end_ahead, with_changes
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.queries.execution_search import (
    ExecutionFilter,
    find_executions_with_tasks,
    list_failures,
)
from cloudsched.engine.queries.overview import name_failure
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES, Page
from cloudsched.errors import CloudschedError, InvalidInput, NotFound, QuotaExceeded, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

T = TypeVar("T")

log: Final = own_logger(__name__)

PAGE_SIZE: Final = 100
"""The number of tasks that one step changes. A journal has room for 5,000 steps."""
_RETRY_PAGE_SIZE: Final = 50
"""The number of executions that one step retries."""
MAX_READ: Final = 500
"""The number of tasks or failed executions after which a preview stops."""
MAX_REFUSALS: Final = 100
"""The most refusals that the result describes."""
MAX_PROBLEM: Final = 500
"""The most characters of a refusal that are kept."""
COUNTS: Final = ("changed", "skipped", "refused")


class Skip(Exception):
    """The change does not concern a task or an execution, or there is nothing to do."""


def to_queries(change: BatchChange) -> Sequence[TaskQuery]:
    """Return the queries for the tasks that a change concerns. Raises InvalidInput if no index has them."""
    chosen = change.filter
    if chosen.pause_id is not None:
        return [TaskQuery(None, pause_id=chosen.pause_id)]
    fields = {
        "owner": chosen.owner,
        "handler": chosen.handler,
        "label": chosen.label,
        "due_from": chosen.due_from,
        "due_until": chosen.due_until,
    }
    TaskQuery(**fields, status=chosen.status)  # type: ignore[arg-type]  # checks that there is one
    statuses: Sequence[TaskStatus | None] = (None,) if change.statuses is None else change.statuses
    is_pause = change.action is BatchAction.PAUSE
    return [
        TaskQuery(**fields, status=status, ends_by_itself=is_pause and status is TaskStatus.PAUSED)  # type: ignore[arg-type]
        for status in statuses
    ]


class BatchChangeRun:
    """Carries out batch changes."""

    def __init__(self, store: Store, scheduler: Scheduler) -> None:
        self._store = store
        self._scheduler = scheduler

    def run(self, ctx: Context) -> dict[str, Any]:
        """Carry out the change or the retries that a task's payload describes, and return the counts."""
        page: _TaskPage | _ExecutionPage
        parts = self._store, self._scheduler, ctx.task, ctx.execution_id
        if "executions" in ctx.task.payload:
            page = _ExecutionPage(*parts, BatchRetry.model_validate(ctx.task.payload).executions)
            name = "retry a page"
            lists = 1
        else:
            change = BatchChange.model_validate(ctx.task.payload)
            page = _TaskPage(*parts, change)
            name = f"{change.action} a page"
            lists = count_lists(change)

        total: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "refusals": []}
        self._write_outcome(ctx, total)
        for number in range(lists):
            token: str | None = None
            while True:
                done = ctx.step(name, page.change, number, token)
                for counted in COUNTS:
                    total[counted] += done[counted]
                total["refusals"] = [*total["refusals"], *done["refusals"]][:MAX_REFUSALS]
                ctx.progress(", ".join(f"{total[counted]} {counted}" for counted in COUNTS))
                self._write_outcome(ctx, total)
                token = done["next"]
                if token is None:
                    break

        self._write_outcome(ctx, total, BatchState.DONE_IN_PART if total["refused"] else BatchState.DONE)
        return total

    def _write_outcome(self, ctx: Context, total: dict[str, Any], state: BatchState | None = None) -> None:
        """Write what the change has come to so far, or in the end, into the payload of its task, as lists have it."""
        if ctx.durable_run.is_replaying:
            return
        outcome: dict[str, Any] = {
            name: Count(value=total[name], at_least=ctx.attempt > 1).to_wire() for name in COUNTS
        }
        if state is not None:
            outcome["state"] = state.value

        def decide(task: Task, now: datetime) -> Commit:
            return Commit(with_changes(task, now, payload={**task.payload, "outcome": outcome}))

        self._scheduler.change(ctx.task.id, decide, OWN_CODE)


@dataclass(frozen=True)
class _Page(Generic[T]):
    """Changes a page of tasks or executions, each once, with the rights of the own task's owner."""

    store: Store
    scheduler: Scheduler
    own_task: Task
    execution_id: str
    """The run that changes it. A batch change that is rescheduled has another one."""

    def change(self, number: int, token: str | None) -> dict[str, Any]:
        found, following, absent = self._read(number, token)
        done: dict[str, Any] = {
            **dict.fromkeys(COUNTS, 0),
            "skipped": absent,
            "refusals": [],
            "next": following,
        }

        for task_id, each in found:
            try:
                self._change_one(each)
            except (Skip, NotFound):
                done["skipped"] += 1
            except Unavailable:  # all of the page is tried again
                raise
            except Exception as error:  # a problem of one task must not keep the others from being changed
                is_known = isinstance(error, CloudschedError)
                if not is_known:
                    log.exception("not changed", extra={"action": "unchanged", "taskId": task_id})
                done["refused"] += 1
                problem = (str(error) if is_known else type(error).__name__)[:MAX_PROBLEM]
                refusal = {"taskId": task_id, "problem": problem}
                if isinstance(each, Execution):
                    refusal["executionId"] = each.id
                done["refusals"] = [*done["refusals"], refusal][:MAX_REFUSALS]
            else:
                done["changed"] += 1

        return done

    def _read(self, number: int, token: str | None) -> tuple[Sequence[tuple[str, T]], str | None, int]:
        raise NotImplementedError

    def _change_one(self, found: T) -> None:
        """Make the change. Raises Skip if it does not concern it."""
        raise NotImplementedError

    def _concerns(self, task: Task) -> bool:
        raise NotImplementedError

    def _make_mark(self, *names: str) -> RequestMark:
        """Return the mark by which a task remembers this change, so that it is not repeated if it is reverted."""
        return RequestMark.of_name(
            ["batch", self.own_task.id, self.execution_id, *names],
            depends_on_time=False,
        )

    @property
    def _authority(self) -> Authority:
        """The authority of the caller of a change. Their task goes on after the end of their credential."""
        owner = self.own_task.owner
        sender = next((each.by for each in self.own_task.history if each.by is not None), None)
        if owner == SYSTEM_OWNER:
            return replace(OWN_CODE, sender=sender or TRUSTED_CODE, authorize=self._check)
        user = sender or EventSender(role=SenderRole.OWNER, subject=f"user:{owner}")
        return Authority(Requesters.USERS, user, owner=owner, is_valid=lambda: True, authorize=self._check)

    def _check(self, task: Task) -> None:
        """Check a task that is about to be changed. Raises Skip."""
        if not (_is_theirs(self.own_task.owner, task) and self._concerns(task)):
            raise Skip


@dataclass(frozen=True)
class _TaskPage(_Page[Task]):
    batch: BatchChange

    def _read(self, number: int, token: str | None) -> tuple[Sequence[tuple[str, Task]], str | None, int]:
        page = read_page(self.store, self.batch, number, token, PAGE_SIZE)
        return [(each.id, each) for each in page.items], page.next_page_token, page.passed_over

    def _change_one(self, found: Task) -> None:
        scheduler = self.scheduler
        by = self._authority
        mark = self._make_mark()
        if mark.is_repeat_on(found):
            raise Skip
        match self.batch.action:
            case BatchAction.PAUSE:
                scheduler.pause(found.id, by, mark, until=self.batch.until, pause_id=self.own_task.id)
            case BatchAction.RESUME:
                is_restored = self.batch.filter.pause_id is not None
                scheduler.resume(found.id, by, mark, is_restored=is_restored, resume_id=self.own_task.id)
            case BatchAction.CANCEL:
                scheduler.cancel(found.id, by, mark)
            case BatchAction.DELETE:
                scheduler.delete(found.id, by, mark)
            case BatchAction.RETRY_FAILED:
                scheduler.manual_runs.retry(found.id, self._find_failed(found), by=by, mark=mark)

    def _concerns(self, task: Task) -> bool:
        return self.batch.concerns(task, self.own_task.created_at)

    def _find_failed(self, task: Task) -> str:
        """Return the execution to retry: it failed before the change was asked for, and not again since."""
        self._check(task)
        execution_id = task.last_execution_id or task.outcome_execution_id
        if execution_id is None:
            raise Skip
        execution = self.store.load_execution(task.id, execution_id)
        if execution is None or execution.status not in FAILURE_STATUSES:
            raise Skip
        if execution.finished_at is None or execution.finished_at > self.own_task.created_at:
            raise Skip
        return execution_id


@dataclass(frozen=True)
class _ExecutionPage(_Page[Execution]):
    chosen: RetryFilter

    def _read(
        self,
        number: int,  # noqa: ARG002 - there is one list
        token: str | None,
    ) -> tuple[Sequence[tuple[str, Execution]], str | None, int]:
        if self.chosen.ids is None:
            query = to_query(self.chosen)
            only = to_filter(self.chosen)
            page = find_executions_with_tasks(self.store.search, query, _RETRY_PAGE_SIZE, token, only)
            found = [each.execution for each in page.items if each.execution.status in FAILURE_STATUSES]
            is_over = len(found) < len(page.items) or not (page.next_page_token or "").startswith("0.")
            return [(each.task_id, each) for each in found], None if is_over else page.next_page_token, 0
        named, following = _cut(tuple(dict.fromkeys(self.chosen.ids)), token, _RETRY_PAGE_SIZE)
        found = _load_retryable(self.store, self.chosen, named)
        return [(each.task_id, each) for each in found], following, len(named) - len(found)

    def _change_one(self, found: Execution) -> None:
        if found.finished_at is None or found.finished_at > self.own_task.created_at:
            raise Skip
        mark = self._make_mark(found.id)
        task = self.store.load(found.task_id)
        if task is None or mark.is_repeat_on(task.task) or task.task.find_run(found.id) is not None:
            raise Skip
        self.scheduler.manual_runs.retry(found.task_id, found.id, by=self._authority, mark=mark)

    def _concerns(self, task: Task) -> bool:
        return may_retry(task)


def _is_theirs(owner: str, task: Task) -> bool:
    """Return whether an owner's batch changes a task: a user's changes neither those of others nor calls."""
    return owner == SYSTEM_OWNER or (owner == task.owner and task.parent is None)


def _cut(ids: Sequence[T], token: str | None, size: int) -> tuple[Sequence[T], str | None]:
    start = int(token or 0)
    end = start + size
    return ids[start:end], str(end) if end < len(ids) else None


def count_lists(change: BatchChange) -> int:
    """Return how many lists have the tasks that a change may concern."""
    return 1 if change.filter.ids else len(to_queries(change))


def read_page(store: Store, change: BatchChange, number: int, token: str | None, limit: int) -> Page[Task]:
    """Return some of the tasks of a list, and how many of those that are named one by one are gone."""
    ids = change.filter.ids
    if ids is None:
        page = store.list_tasks(to_queries(change)[number], limit=limit, page_token=token)
        kept = [each for each in page.items if each.handler != BATCH_CHANGE_HANDLER and change.may_concern(each)]
        return replace(page, items=kept, passed_over=0)
    named, following = _cut(ids, token, limit)
    found = [each.task for each in store.load_many(named) if each.task.deleted_at is None]
    size = sum(json_size(each.payload) for each in found)
    return Page(found, following, passed_over=len({*named} - {each.id for each in found}), size=size)


MAX_OPEN: Final = 5
"""The most batch changes of a user that may be open at a time."""
_PREVIEW_SIZE: Final = 25
"""The number of tasks that are read at a time for a preview."""
_DURATION: Final = timedelta(minutes=10)
_RETENTION: Final = timedelta(days=90)
"""How long it can be seen who did what to many tasks, and taken back on its page."""


class BatchChanges:
    """Previews what a batch change concerns, and starts it."""

    def __init__(self, store: Store, clock: Clock, scheduler: Callable[[], Scheduler]) -> None:
        self._store = store
        self._clock = clock
        self._scheduler = scheduler

    def preview(self, change: BatchChange, owner: str) -> TaskCount:
        """Return the tasks that a change concerns now, as far as `MAX_READ` tasks, or about a megabyte, have them.

        They are read as the change itself reads them. Tasks of the owner's that the caller may not change are counted
        as well: their rights are checked at the change. Raises InvalidInput.
        """
        self._check(change)
        now = self._clock.now()
        count = read = size = 0
        first: list[Task] = []
        for number in range(count_lists(change)):
            token: str | None = None
            while True:
                if read >= MAX_READ or size >= MAX_PAGE_BYTES:
                    return _to_count(count, first, is_cut=True)
                page = read_page(self._store, change, number, token, _PREVIEW_SIZE)
                concerned = [each for each in page.items if _is_theirs(owner, each) and change.concerns(each, now)]
                count += len(concerned)
                first += concerned[: NAMED - len(first)]
                read += _PREVIEW_SIZE
                size += page.size
                token = page.next_page_token
                if token is None:
                    break
        return _to_count(count, first, is_cut=False)

    def _check(self, change: BatchChange) -> None:
        """Check that there is a list of the tasks, and that a pause ends after now. Raises InvalidInput."""
        to_queries(change)
        if change.until is None:
            return
        if change.action is not BatchAction.PAUSE:
            raise InvalidInput("until", f"does not go with {change.action}", "Only a pause has an end.")
        require_end_ahead(change.until, self._clock.now())

    def start(self, change: BatchChange, owner: str, key: str | None, caller: EventSender) -> Task:
        """Create the task that carries out a change with an owner's rights.

        With the same key, return the same task.

        The histories of the tasks that it changes name the `caller`. Raises InvalidInput, KeyReused or
        QuotaExceeded.
        """
        self._check(change)
        title = f"{_TITLES[change.action]} {_write_filter(change)}"
        if change.filter.pause_id is not None:
            title = self._name_restoration(change.action, change.filter.pause_id)
        return self._start(title, change, owner, key, caller)

    def _name_restoration(self, action: BatchAction, pause_id: str) -> str:
        """Return the title of a change that takes back another one, which it names if that is still known."""
        back = "Restore" if action is BatchAction.RESUME else f"{_TITLES[action]} again"
        known = self._store.load(pause_id)
        return f"{back} after “{pause_id if known is None else known.task.title}”"

    def preview_retries(self, chosen: RetryFilter) -> RetryCount:
        """Return the failed executions that a retry concerns now, without those of paused and cancelled tasks.

        At most `MAX_READ` failures are read. Raises InvalidInput.
        """
        if chosen.ids is None:
            found, is_cut = list_failures(self._store.search, to_query(chosen), to_filter(chosen), MAX_READ)
        else:
            found = _load_retryable(self._store, chosen, tuple(dict.fromkeys(chosen.ids)))
            is_cut = False
        found = self._leave_out_stopped(found)
        count = Count(value=len(found), at_least=is_cut)
        return RetryCount(count=count, first=tuple(map(name_failure, found[:NAMED])))

    def _leave_out_stopped(self, found: Sequence[Execution]) -> list[Execution]:
        """Return the executions whose tasks are neither paused nor cancelled."""
        ids = [*{each.task_id: None for each in found}]
        able = set[str]()
        for begin in range(0, len(ids), PAGE_SIZE):
            tasks = self._store.load_many(ids[begin : begin + PAGE_SIZE])
            able |= {each.task.id for each in tasks if may_retry(each.task)}
        return [each for each in found if each.task_id in able]

    def start_retry(self, retry: BatchRetry, owner: str, key: str | None, caller: EventSender) -> Task:
        """Create the task that retries failed executions, as `start` does for a change of tasks."""
        to_query(retry.executions)
        return self._start("Retry failed runs", retry, owner, key, caller)

    def _start(
        self,
        title: str,
        asked: BatchChange | BatchRetry,
        owner: str,
        key: str | None,
        caller: EventSender,
    ) -> Task:
        name = secrets.token_hex(16) if key is None else hash_name([owner, key])[:32]

        if owner != SYSTEM_OWNER and self._store.load(f"batch-{name}") is None:
            mine = TaskQuery(owner=owner, status=TaskStatus.ACTIVE, handler=BATCH_CHANGE_HANDLER)
            if len(self._store.list_tasks(mine, limit=MAX_OPEN).items) >= MAX_OPEN:
                raise QuotaExceeded("open batch changes", MAX_OPEN, "Wait until one of them has ended.")

        is_pause = isinstance(asked, BatchChange) and asked.action is BatchAction.PAUSE
        draft = TaskDraft(
            id=f"batch-{name}",
            owner=owner,
            title=title,
            description=DELIVERIES_GO_ON if is_pause else "",
            handler=BATCH_CHANGE_HANDLER,
            payload=asked.to_wire(),
            expected_duration=_DURATION,
            retry=RetryPolicy(max_retries=20),
            retention=_RETENTION,
        )
        by = replace(OWN_CODE, sender=caller)
        return self._scheduler().create(draft, mark=RequestMark.of_new_task(asked.to_wire()), lead=NO_LEAD, by=by)[0]


def _to_count(count: int, first: Sequence[Task], *, is_cut: bool) -> TaskCount:
    named = tuple(ConcernedTask(id=each.id, title=each.title, owner=each.owner) for each in first)
    return TaskCount(count=Count(value=count, at_least=is_cut), first=named)


_TITLES: Final = complete_table(
    BatchAction,
    {
        BatchAction.PAUSE: "Pause",
        BatchAction.RESUME: "Resume",
        BatchAction.CANCEL: "Cancel",
        BatchAction.RETRY_FAILED: "Retry the last failed run of",
        BatchAction.DELETE: "Delete",
    },
)


def _write_filter(change: BatchChange) -> str:
    """Return what a change is for, as a title has it: without its filters and its end, which its payload has."""
    wanted = change.filter.to_wire()
    if change.action is BatchAction.PAUSE and "status" in wanted and wanted.keys() <= {"status", "owner"}:
        return "everything of " + wanted["owner"] if "owner" in wanted else "everything"
    if "ids" in wanted:
        count = len(wanted["ids"])
        return f"{count} chosen {'task' if count == 1 else 'tasks'}"
    return "tasks that match"


NAMED: Final = 10
"""The number of tasks or executions that a preview names."""


def to_query(chosen: RetryFilter) -> ExecutionQuery:
    """Return the query for the executions. Raises InvalidInput if no index has them."""
    return ExecutionQuery(
        chosen.owner,
        chosen.status,
        chosen.handler,
        chosen.label,
        chosen.since,
        chosen.until,
        chosen.category,
        error=chosen.error,
        error_type=chosen.error_type,
    )


def to_filter(chosen: RetryFilter) -> ExecutionFilter:
    """Return the filters that no index has. Calls never match: their callers repeat them."""
    return ExecutionFilter(
        has_calls=False,
        error=chosen.error,
        error_type=chosen.error_type,
        min_duration=chosen.min_duration,
        min_lateness=chosen.min_lateness,
    )


def _load_retryable(store: Store, chosen: RetryFilter, named: Sequence[ExecutionName]) -> list[Execution]:
    records = [store.load_execution(each.task_id, each.execution_id) for each in named]
    return [
        each
        for each in records
        if each is not None
        and chosen.owner in {None, each.owner}
        and each.status in FAILURE_STATUSES
        and each.called_by is None
    ]


def run_batch_change(container: Any, ctx: Context, _payload: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - of any app
    """Carry out the change that a task describes."""
    run: BatchChangeRun = container.many_tasks.batch_change_run
    return run.run(ctx)
