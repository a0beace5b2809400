"""Batch changes: count the tasks that match a filter, and change each of them, a page in a step of a task.

That task has the rights of its owner: the system's changes every task, a user's only what that user may
change, as a user. That is decided for each task when it is changed, on the state that the change replaces. A
process that dies is followed by another one, which begins with the page that was not finished: a change that
was made before is not made again. It is then not counted.
"""

from __future__ import annotations

import secrets
from collections import Counter
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
    BatchAction,
    BatchChange,
    BatchRetry,
    ExecutionName,
    RetryFilter,
)
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution
from cloudsched.domain.documents.json_limits import json_size
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.system_tasks import BATCH_CHANGE_HANDLER
from cloudsched.domain.documents.task import FINAL_STATUSES, Task, TaskStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.responses.overview_responses import ConcernedTask, LeftAlone, RetryCount, TaskCount
from cloudsched.domain.transitions.edits import NO_LEAD
from cloudsched.domain.transitions.idempotency import RequestMark, hash_name
from cloudsched.domain.transitions.lifecycle import is_only_marked
from cloudsched.domain.transitions.retry_execution import RETRYABLE_STATUSES, last_finished_execution_id
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.engine.authority import OWN_CODE, Authority
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.queries.execution_search import (
    ExecutionFilter,
    find_executions_with_tasks,
    list_failures,
)
from cloudsched.engine.queries.overview import count_failures, name_failure
from cloudsched.engine.storage.pages import MAX_PAGE_BYTES
from cloudsched.errors import CloudschedError, Forbidden, NotAllowed, NotFound, QuotaExceeded, Unavailable

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
_FEW_RETRIES: Final = 500
"""The most failed executions of which a question always reads each, and its task."""
MAX_REFUSALS: Final = 100
"""The most refusals that the result describes."""
MAX_PROBLEM: Final = 500
"""The most characters of a refusal that are kept."""
COUNTS: Final = ("changed", "skipped", "refused")
STAY_PAUSED: Final = "stayPaused"
"""The number of those that were changed and were paused before and after, if there are any."""


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
            lists = 1 if change.filter.ids else len(to_queries(change))

        total: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "refusals": []}
        for number in range(lists):
            token: str | None = None
            while True:
                done = ctx.step(name, page.change, number, token)
                for counted in COUNTS:
                    total[counted] += done[counted]
                if stay := done.get(STAY_PAUSED):
                    total[STAY_PAUSED] = total.get(STAY_PAUSED, 0) + stay
                total["refusals"] = [*total["refusals"], *done["refusals"]][:MAX_REFUSALS]
                ctx.progress(", ".join(f"{total[counted]} {counted}" for counted in COUNTS))
                token = done["next"]
                if token is None:
                    break

        return total


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
                stays = self._change_one(each)
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
                refusal = {"taskId": task_id, **self._name_execution(each), "problem": problem}
                done["refusals"] = [*done["refusals"], refusal][:MAX_REFUSALS]
            else:
                done["changed"] += 1
                if stays:
                    done[STAY_PAUSED] = done.get(STAY_PAUSED, 0) + 1

        return done

    def _read(self, number: int, token: str | None) -> tuple[Sequence[tuple[str, T]], str | None, int]:
        raise NotImplementedError

    def _change_one(self, found: T) -> bool:
        """Make the change, and return whether what was paused stays so. Raises Skip if it does not concern it."""
        raise NotImplementedError

    def _concerns(self, task: Task) -> bool:
        raise NotImplementedError

    def _name_execution(self, found: T) -> dict[str, str]:  # noqa: ARG002 - of an execution
        """Return what a refusal says beside the task. Empty if it is one of a task."""
        return {}

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
        """Check a task that is about to be changed.

        Raises Skip, or Forbidden if it is not the caller's to change.
        """
        owner = self.own_task.owner
        if owner not in {SYSTEM_OWNER, task.owner} or not self._concerns(task):
            raise Skip
        if task.parent is not None and owner != SYSTEM_OWNER:
            raise Forbidden(
                f"This task is a call of task {task.parent.task_id}, and only that may change it.",
            )


@dataclass(frozen=True)
class _TaskPage(_Page[Task]):
    batch: BatchChange

    def _read(self, number: int, token: str | None) -> tuple[Sequence[tuple[str, Task]], str | None, int]:
        ids = self.batch.filter.ids
        if ids is None:
            page = self.store.list_tasks(to_queries(self.batch)[number], limit=PAGE_SIZE, page_token=token)
            others = [each for each in page.items if each.handler != BATCH_CHANGE_HANDLER]
            found = [each for each in others if each.status is not TaskStatus.PAUSED or self._is_wanted(each)]
            return [(each.id, each) for each in found], page.next_page_token, 0
        named, following = _cut(ids, token, PAGE_SIZE)
        found = [each.task for each in self.store.load_many(named) if each.task.deleted_at is None]
        return [(each.id, each) for each in found], following, len({*named} - {each.id for each in found})

    def _is_wanted(self, paused: Task) -> bool:
        return self.batch.action is not BatchAction.PAUSE or paused.goes_on_by_itself

    def _change_one(self, found: Task) -> bool:
        scheduler = self.scheduler
        by = self._authority
        mark = self._make_mark()
        if mark.is_repeat_on(found):
            raise Skip
        match self.batch.action:
            case BatchAction.PAUSE:
                paused = scheduler.pause(found.id, by, mark, pause_id=self.own_task.id)
                return is_only_marked(found, paused)
            case BatchAction.RESUME:
                is_restored = self.batch.filter.pause_id is not None
                resumed = scheduler.resume(found.id, by, mark, is_restored=is_restored, resume_id=self.own_task.id)
                return is_only_marked(found, resumed)
            case BatchAction.CANCEL:
                scheduler.cancel(found.id, by, mark)
            case BatchAction.DELETE:
                scheduler.delete(found.id, by, mark)
            case BatchAction.RETRY_FAILED:
                scheduler.manual_runs.retry(found.id, self._find_failed(found), by=by, mark=mark)
        return False

    def _concerns(self, task: Task) -> bool:
        return self.batch.concerns(task, self.own_task.created_at)

    def _find_failed(self, task: Task) -> str:
        """Return the execution to retry: it failed before the change was asked for, and not again since."""
        self._check(task)
        try:
            execution_id = last_finished_execution_id(task)
        except NotAllowed:
            raise Skip from None
        if task.find_run(execution_id):
            execution = None
        else:
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

    def _change_one(self, found: Execution) -> bool:
        if found.finished_at is None or found.finished_at > self.own_task.created_at:
            raise Skip
        mark = self._make_mark(found.id)
        task = self.store.load(found.task_id)
        if task is None or mark.is_repeat_on(task.task) or task.task.find_run(found.id) is not None:
            raise Skip
        self.scheduler.manual_runs.retry(found.task_id, found.id, by=self._authority, mark=mark)
        return False

    def _name_execution(self, found: Execution) -> dict[str, str]:
        return {"executionId": found.id}

    def _concerns(self, task: Task) -> bool:
        return _may_retry(task)


def _cut(ids: Sequence[T], token: str | None, size: int) -> tuple[Sequence[T], str | None]:
    start = int(token or 0)
    end = start + size
    return ids[start:end], str(end) if end < len(ids) else None


MAX_COUNT: Final = 10_000
"""The most tasks that are counted: a billed read for each 1,000."""
LOCAL_COUNT: Final = 10_000_000
"""The same where no count is billed."""
MAX_READ: Final = 1_000
"""The number of tasks after which reading stops, to count those whose last execution failed or that no index
has."""
LOCAL_READ: Final = 5_000
"""The same, of tasks and of failed executions, where no read is billed: it takes some seconds."""
LOCAL_PAGE_SIZE: Final = 1_000
"""The number of tasks that are read at a time there."""
MAX_OPEN: Final = 5
"""The most batch changes of a user that may be open at a time."""
MAX_FILTER_TITLE: Final = 150
"""The most characters of a filter in a title."""
_NAMED_SIZE: Final = 25
"""The number of tasks named one by one that are read at a time to count them."""
_DURATION: Final = timedelta(minutes=10)
_RETENTION: Final = timedelta(days=90)
"""How long it can be seen who did what to many tasks, and taken back on its page."""


class BatchChanges:
    """Counts what a batch change concerns, and starts it."""

    def __init__(
        self, store: Store, clock: Clock, scheduler: Callable[[], Scheduler], *, has_free_counts: bool = False
    ) -> None:
        """Take the store, and whether neither a count nor a read of it is billed."""
        self._store = store
        self._clock = clock
        self._scheduler = scheduler
        self._has_free_counts = has_free_counts
        self._most = LOCAL_COUNT if has_free_counts else MAX_COUNT

    def count(self, change: BatchChange) -> TaskCount:
        """Return the number of tasks that a change concerns now.

        An index counts up to `MAX_COUNT`, or all where that is free. If no index has all filters, and for tasks to
        retry, at most `MAX_READ` are read (there `LOCAL_READ`), and about a megabyte of them, as of tasks that are
        named one by one. Tasks that the caller may not change are counted as well: their rights are checked at the
        change. Raises InvalidInput.
        """
        if change.filter.ids is not None:
            return self._count_named(change, tuple(dict.fromkeys(change.filter.ids)))
        queries = to_queries(change)
        now = self._clock.now()
        tally = _Tally(LOCAL_READ if self._has_free_counts else MAX_READ)
        for query in queries:
            if self._is_indexed(change, query, now):
                count = self._store.search.count_tasks(query, self._most)
                tally.count += max(0, count.value - self._count_batches(query))
                tally.is_at_least |= count.at_least
                self._name_first(tally, change, query, now)
            else:
                self._read_some(tally, change, query, now)
        if not any(query.looked_for or query.pause_id for query in queries) and change.filter.due_from is None:
            self._count_others(tally, change)
        return tally.to_count()

    def _is_indexed(self, change: BatchChange, query: TaskQuery, now: datetime) -> bool:
        """Return whether the number of what an index finds is that of what the change concerns."""
        if change.action is BatchAction.RETRY_FAILED or query.looked_for:
            return False
        if query.pause_id is None:
            return change.action is not BatchAction.PAUSE or query.status is TaskStatus.ACTIVE
        others = change.filter.model_copy(update={"pause_id": None, "owner": None, "status": None})
        is_own = change.filter.owner is None
        if not is_own:
            stopped = self._store.load(query.pause_id)
            is_own = stopped is not None and stopped.task.owner == change.filter.owner
        first = self._store.list_tasks(query, limit=1).items  # of one change all are paused, or all were resumed
        return is_own and not others.to_wire() and all(change.concerns(each, now) for each in first)

    def _count_batches(self, query: TaskQuery) -> int:
        """Return how many of the tasks of a query make changes of many: no change concerns these."""
        if query.handler is not None or query.label is not None or query.pause_id is not None:
            return 0
        if query.is_sorted_by_due_time:
            return 0
        return self._store.search.count_tasks(replace(query, handler=BATCH_CHANGE_HANDLER), self._most).value

    def _name_first(self, tally: _Tally, change: BatchChange, query: TaskQuery, now: datetime) -> None:
        if len(tally.first) < NAMED:
            page = self._store.list_tasks(query, limit=NAMED + MAX_OPEN)
            tally.first += [task for task in page.items if change.concerns(task, now)]

    def _count_others(self, tally: _Tally, change: BatchChange) -> None:
        """Count what matches and is left alone, because it has another status."""
        is_of_active = change.filter.status is TaskStatus.ACTIVE and change.action is BatchAction.PAUSE
        if change.statuses is None or (change.filter.status is not None and not is_of_active):
            return
        anyhow = BatchChange(action=BatchAction.DELETE, filter=change.filter.model_copy(update={"status": None}))
        (query,) = to_queries(anyhow)
        statuses = [TaskStatus.PAUSED] if is_of_active else [*TaskStatus]
        for status in statuses:
            if status in change.statuses and status is not TaskStatus.PAUSED:
                continue
            if status in change.statuses and change.action is not BatchAction.PAUSE:
                continue
            of_status = replace(query, status=status)
            count = self._store.search.count_tasks(of_status, self._most).value - self._count_batches(of_status)
            tally.leave_alone(status, count - tally.stay_paused if status is TaskStatus.PAUSED else count)

    def start(self, change: BatchChange, owner: str, key: str | None, caller: EventSender) -> Task:
        """Create the task that carries out a change with an owner's rights.

        With the same key, return the same task.

        The histories of the tasks that it changes name the `caller`. Raises InvalidInput, KeyReused or
        QuotaExceeded.
        """
        to_queries(change)
        title = f"{_TITLES[change.action]} {_write_filter(change)}"
        if change.filter.pause_id is not None:
            title = self._name_restoration(change.action, change.filter.pause_id)
        return self._start(title, change, lambda: self.count(change), owner, key, caller)

    def _name_restoration(self, action: BatchAction, pause_id: str) -> str:
        """Return the title of a change that takes back another one, which it names if that is still known."""
        back = "Restore" if action is BatchAction.RESUME else f"{_TITLES[action]} again"
        known = self._store.load(pause_id)
        if known is None:
            return f"{back} the tasks of {pause_id}"
        return f"{back} after “{known.task.title.partition(' with ')[0]}”"

    def count_retries(self, chosen: RetryFilter) -> RetryCount:
        """Return the failed executions that a retry concerns now.

        Those of paused and cancelled tasks are left out, if at most `_FEW_RETRIES` match. Of more, an index may have
        the number of all that failed; else those that can be read count. Raises InvalidInput.
        """
        if chosen.ids is None:
            query = to_query(chosen)
            only = to_filter(chosen)
            found, is_cut = list_failures(self._store.search, query, only, _FEW_RETRIES)
            if is_cut:
                exact = count_failures(self._store.search, query, only)
                if exact is not None:
                    return RetryCount(count=exact, first=tuple(map(name_failure, found[:NAMED])))
                most = 2 * LOCAL_READ if self._has_free_counts else MAX_RETRIES_READ
                found, is_cut = list_failures(self._store.search, query, only, most)
        else:
            found = _load_retryable(self._store, chosen, tuple(dict.fromkeys(chosen.ids)))
            is_cut = False
        found = self._leave_out_stopped(found)
        return RetryCount(count=len(found), is_at_least=is_cut, first=tuple(map(name_failure, found[:NAMED])))

    def _leave_out_stopped(self, found: Sequence[Execution]) -> list[Execution]:
        """Return the executions whose tasks are neither paused nor cancelled."""
        ids = [*{each.task_id: None for each in found}]
        able = set[str]()
        for begin in range(0, len(ids), PAGE_SIZE):
            tasks = self._store.load_many(ids[begin : begin + PAGE_SIZE])
            able |= {each.task.id for each in tasks if _may_retry(each.task)}
        return [each for each in found if each.task_id in able]

    def start_retry(self, retry: BatchRetry, owner: str, key: str | None, caller: EventSender) -> Task:
        """Create the task that retries failed executions, as `start` does for a change of tasks."""
        to_query(retry.executions)
        return self._start("Retry failed runs", retry, lambda: self.count_retries(retry.executions), owner, key, caller)

    def _start(
        self,
        title: str,
        asked: BatchChange | BatchRetry,
        count: Callable[[], TaskCount | RetryCount],
        owner: str,
        key: str | None,
        caller: EventSender,
    ) -> Task:
        if key is None:
            name = secrets.token_hex(16)
        else:
            name = hash_name([owner, key])[:32]

        payload = asked.to_wire()
        stored = self._store.load(f"batch-{name}")
        if stored is None:
            counted = count()
            payload["expected"] = None if counted.is_at_least else counted.count
        else:
            payload["expected"] = stored.task.payload.get("expected")
        if owner != SYSTEM_OWNER and stored is None:
            mine = TaskQuery(owner=owner, status=TaskStatus.ACTIVE, handler=BATCH_CHANGE_HANDLER)
            if self._store.search.count_tasks(mine, MAX_OPEN).at_least:
                raise QuotaExceeded("open batch changes", MAX_OPEN, "Wait until one of them has ended.")

        draft = TaskDraft(
            id=f"batch-{name}",
            owner=owner,
            title=title,
            handler=BATCH_CHANGE_HANDLER,
            payload=payload,
            expected_duration=_DURATION,
            retry=RetryPolicy(max_retries=20),
            retention=_RETENTION,
        )
        by = replace(OWN_CODE, sender=caller)
        return self._scheduler().create(draft, mark=RequestMark.of_new_task(asked.to_wire()), lead=NO_LEAD, by=by)[0]

    def _count_named(self, change: BatchChange, ids: Sequence[str]) -> TaskCount:
        """Count those of some tasks that a change concerns: the first ones that together are not too large."""
        now = self._clock.now()
        tally = _Tally(MAX_READ)
        size = 0
        for begin in range(0, len(ids), _NAMED_SIZE):
            if size >= MAX_PAGE_BYTES:
                tally.is_at_least = True
                break
            named = ids[begin : begin + _NAMED_SIZE]
            found = [each.task for each in self._store.load_many(named) if each.task.deleted_at is None]
            seen = [task for task in found if change.filter.owner in {None, task.owner}]
            for task in seen:
                is_concerned = change.concerns(task, now)
                tally.add(task, is_concerned=is_concerned)
                tally.stay_paused += is_concerned and stays_paused(change, task)
                size += json_size(task.payload)
            tally.leave_alone(None, len(named) - len(seen))
        return tally.to_count()

    def _read_some(self, tally: _Tally, change: BatchChange, query: TaskQuery, now: datetime) -> None:
        """Count the tasks that a change concerns by reading some of those that a filter finds."""
        size = 0
        token: str | None = None
        while True:
            is_large = size >= MAX_PAGE_BYTES and not self._has_free_counts
            if tally.left <= 0 or is_large:
                tally.is_at_least = True
                return
            page_size = LOCAL_PAGE_SIZE if self._has_free_counts else PAGE_SIZE
            page = self._store.list_tasks(query, limit=min(page_size, tally.left), page_token=token)
            for task in page.items:
                if change.concerns(task, now):
                    tally.add(task, is_concerned=True)
                    tally.stay_paused += stays_paused(change, task)
            tally.left -= page.read
            size += page.size
            token = page.next_page_token
            if token is None:
                return


def stays_paused(change: BatchChange, task: Task) -> bool:
    """Return whether a pause of many concerns a task that is paused already, and would go on by itself."""
    return change.action is BatchAction.PAUSE and task.goes_on_by_itself


class _Tally:
    """What has been counted so far."""

    def __init__(self, most_read: int) -> None:
        self.count = 0
        self.is_at_least = False
        self.first: list[Task] = []
        self.stay_paused = 0
        """How many of them are paused already, and stay so."""
        self.left = most_read
        """How many may still be read."""
        self._others = Counter[str]()

    def add(self, task: Task, *, is_concerned: bool) -> None:
        """Count a task that was read."""
        if is_concerned:
            self.count += 1
            if len(self.first) < NAMED:
                self.first.append(task)
        else:
            self.leave_alone(task.status, 1)

    def leave_alone(self, status: TaskStatus | None, count: int) -> None:
        """Count tasks that are left as they are, because of their status, or because there are none."""
        if count > 0:
            self._others[_WHY_LEFT[status]] += count

    def to_count(self) -> TaskCount:
        """Return the answer."""
        return TaskCount(
            count=self.count,
            is_at_least=self.is_at_least,
            stay_paused=self.stay_paused,
            first=tuple(ConcernedTask(id=each.id, title=each.title, owner=each.owner) for each in self.first[:NAMED]),
            left_alone=tuple(LeftAlone(count=count, reason=why) for why, count in self._others.items()),
        )


_ENDED: Final = "ended"
_WHY_LEFT: Final[dict[TaskStatus | None, str]] = {
    None: "not found",
    TaskStatus.ACTIVE: "active",
    TaskStatus.PAUSED: "paused already",
    **dict.fromkeys(FINAL_STATUSES, _ENDED),
}
"""Why tasks are left alone, by their status."""
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
    """Return what a change is for, as a title has it. The names of filters are those of the API."""
    wanted = change.filter.to_wire()
    if change.action is BatchAction.PAUSE and "status" in wanted and wanted.keys() <= {"status", "owner"}:
        return f"everything of {wanted['owner']}" if "owner" in wanted else "everything"
    if "ids" in wanted:
        count = len(wanted["ids"])
        return f"{count} chosen {'task' if count == 1 else 'tasks'}"
    return f"tasks with {', '.join(f'{name} {value}' for name, value in wanted.items())}"[:MAX_FILTER_TITLE]


NAMED: Final = 10
"""The number of executions that a count of retries names, the latest."""
MAX_RETRIES_READ: Final = 1_000
"""The number of failed executions after which counting stops."""


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


def _may_retry(task: Task) -> bool:
    return task.deleted_at is None and task.status in RETRYABLE_STATUSES


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
