"""Retry many failed executions: count them and name the first, and retry each, a page in a step of a task.

It is a batch change: it has the rights of whoever asked, and each execution is judged when its turn comes. One that has
not failed any more by then, or failed again after the request, is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.batch_change import BatchRetry
from cloudsched.domain.documents.execution import FAILURE_STATUSES
from cloudsched.domain.transitions.request_marks import RequestMark
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.tasks.batch_pages import COUNTS, Skip, add_page, count_change, make_authority
from cloudsched.engine.tasks.execution_search import ExecutionFilter, find_executions_with_tasks
from cloudsched.engine.tasks.failure_groups import list_failures
from cloudsched.errors import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.documents.batch_change import RetryFilter
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.context import Context
    from cloudsched.engine.ports.authority import Authority
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.tasks.scheduler import Scheduler

MAX_RETRIES_READ: Final = 1_000
"""After how many failed executions counting them stops."""
_PAGE_SIZE: Final = 50
"""How many executions one step retries; a journal has room for 5,000 steps."""


@dataclass(frozen=True, slots=True)
class MatchingExecutions:
    """Which failed executions a retry concerns."""

    items: Sequence[Execution]
    """The latest first."""
    is_at_least: bool
    """Whether there may be more: looking stopped at a bound."""


def to_query(chosen: RetryFilter) -> ExecutionQuery:
    """Return the list in which the executions are. Raises InvalidInput if there is none."""
    return ExecutionQuery(
        chosen.owner, chosen.status, chosen.handler, chosen.label, chosen.since, chosen.until, chosen.category
    )


def to_filter(chosen: RetryFilter) -> ExecutionFilter:
    """Return what no index has. Calls never match: who made them repeats them."""
    return ExecutionFilter(
        has_calls=False,
        error=chosen.error,
        error_type=chosen.error_type,
        min_duration=chosen.min_duration,
        min_lateness=chosen.min_lateness,
    )


def find_retries(store: Store, chosen: RetryFilter) -> MatchingExecutions:
    """Return the failed executions that match; only the latest of them if there are many."""
    if chosen.ids is None:
        found, is_cut = list_failures(store.search, to_query(chosen), to_filter(chosen), MAX_RETRIES_READ)
        return MatchingExecutions(found, is_cut)
    records = (store.load_execution(each.task_id, each.execution_id) for each in dict.fromkeys(chosen.ids))
    failed = [each for each in records if each is not None and _is_retryable(each, chosen)]
    return MatchingExecutions(failed, is_at_least=False)


def run_retries(ctx: Context, store: Store, scheduler: Scheduler) -> dict[str, Any]:
    """Retry what the payload of a batch retry's task describes; return the counts."""
    retry = BatchRetry.model_validate(ctx.task.payload)
    page = _Page(store, scheduler, retry.executions, ctx.task, ctx.execution_id)
    total: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "refusals": []}
    token: str | None = None
    while True:
        token = add_page(ctx, total, ctx.step("retry a page", page.retry, token))
        if token is None:
            return total


def _is_retryable(execution: Execution, chosen: RetryFilter) -> bool:
    is_of_owner = chosen.owner in {None, execution.owner}
    return is_of_owner and execution.status in FAILURE_STATUSES and execution.called_by is None


@dataclass(frozen=True, slots=True)
class _Page:
    """Retries a page of executions."""

    store: Store
    scheduler: Scheduler
    chosen: RetryFilter
    own_task: Task
    own_execution_id: str

    def retry(self, token: str | None) -> dict[str, Any]:
        """Retry a page of executions; return the counts, and the token of the next page."""
        found, following, absent = self._read(token)
        done: dict[str, Any] = {**dict.fromkeys(COUNTS, 0), "skipped": absent, "refusals": [], "next": following}
        for execution in found:
            count_change(done, execution.task_id, partial(self._retry_one, execution))
        return done

    def _read(self, token: str | None) -> tuple[Sequence[Execution], str | None, int]:
        """Return a page of executions, the token of the next one, and how many ids are of none that failed."""
        if self.chosen.ids is None:
            query, only = to_query(self.chosen), to_filter(self.chosen)
            page = find_executions_with_tasks(self.store.search, query, _PAGE_SIZE, token, only)
            found = [each.execution for each in page.items if each.execution.status in FAILURE_STATUSES]
            is_over = len(found) < len(page.items) or not (page.next_page_token or "").startswith("0.")
            return found, None if is_over else page.next_page_token, 0
        ids, start = tuple(dict.fromkeys(self.chosen.ids)), int(token or 0)
        named = ids[start : start + _PAGE_SIZE]
        records = [self.store.load_execution(each.task_id, each.execution_id) for each in named]
        found = [each for each in records if each is not None and _is_retryable(each, self.chosen)]
        end = start + _PAGE_SIZE
        return found, str(end) if end < len(ids) else None, len(named) - len(found)

    def _retry_one(self, execution: Execution) -> None:
        if execution.finished_at is None or execution.finished_at > self.own_task.created_at:
            raise Skip
        mark = RequestMark.of_name(
            ["batch", self.own_task.id, self.own_execution_id, execution.id], depends_on_time=False
        )
        task = self.store.load(execution.task_id)
        if task is None or mark.is_known_to(task.task) or task.task.find_run(execution.id) is not None:
            raise Skip
        self.scheduler.manual_runs.retry(execution.task_id, execution.id, by=self._authority, mark=mark)

    @property
    def _authority(self) -> Authority:
        return make_authority(self.own_task, self._check)

    def _check(self, task: Task) -> None:
        """Check a task before one of its executions is retried. Raises Skip, or Forbidden for a call."""
        owner = self.own_task.owner
        if owner not in {SYSTEM_OWNER, task.owner} or task.deleted_at is not None:
            raise Skip
        if task.parent is not None and owner != SYSTEM_OWNER:
            raise Forbidden(f"This task is a call of task {task.parent.task_id}, and only that may change it.")
