"""List and count executions of a task or across tasks: failed ones first, then open ones, then all others.

An open execution has no record yet: it is part of its task's document until it finishes. Readers see it all
the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import (
    FAILURE_STATUSES,
    OPEN_STATUSES,
    Execution,
    ExecutionStatus,
    Run,
)
from cloudsched.domain.documents.filters import RunConditions
from cloudsched.domain.documents.journal import StepRecord, StepStatus
from cloudsched.domain.documents.task import Task, TaskStatus, find_open_position, get_open_status
from cloudsched.domain.transitions.run_records import execution_record
from cloudsched.engine.durable.results import DELETED, load_call_outcome
from cloudsched.engine.ports.search import (
    OMITTED_FIELDS,
    ExecutionQuery,
    SearchStore,
    identify_open_list,
    make_executions_token,
    make_finished_token,
    read_filters,
)
from cloudsched.engine.storage.pages import Page, bad_token, make_token
from cloudsched.errors import NotFound, UnreadableDocument

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.store import Store


@dataclass(frozen=True, slots=True)
class TaskExecutionFilter:
    """The filters of a task's executions. An execution must match every one that is set."""

    status: ExecutionStatus | None = None
    since: datetime | None = None
    """Scheduled not before this instant."""
    until: datetime | None = None
    """Scheduled before this instant, exclusively."""

    def __post_init__(self) -> None:
        read_filters(self, RunConditions)

    def matches(self, one: Execution) -> bool:
        """Return whether an execution matches."""
        return (
            (self.status is None or one.status is self.status)
            and (self.since is None or one.scheduled_for >= self.since)
            and (self.until is None or one.scheduled_for < self.until)
        )


def list_executions(
    engine: EngineContext,
    task: Task,
    limit: int,
    page_token: str | None,
    only: TaskExecutionFilter = TaskExecutionFilter(),
) -> Page[Execution]:
    """Return a page of a task's executions, the latest first. Open ones are on the first page.

    No index has their status: with one, a page looks through at most `MAX_READ` executions.
    """
    page = _list_finished_of_task(engine.store.search, task, limit, page_token, only)
    if page_token:
        return page
    shown = {run.execution_id: run for run in task.runs if run.lease or run.suspension}
    still_open = filter(only.matches, [open_run_as_execution(task, run) for run in shown.values()])
    finished = filter(only.matches, [_as_held(task, each) for each in page.items if each.id not in shown])
    items = sorted(
        [*still_open, *finished],
        key=lambda one: (one.scheduled_for, one.id),
        reverse=True,
    )
    return Page(items, page.next_page_token, page.unreadable, page.passed_over)


def _list_finished_of_task(
    search: SearchStore,
    task: Task,
    limit: int,
    page_token: str | None,
    only: TaskExecutionFilter,
) -> Page[Execution]:
    """Return a page of the matching records of a task. It ends at the first that is earlier than its beginning."""
    found: list[Execution] = []
    token = page_token
    unreadable = passed_over = 0
    left = MAX_READ
    while True:
        size = min(left, limit if not passed_over else max(limit, _MORE))
        page = search.list_executions(task.id, limit=size, page_token=token, before=only.until)
        left -= page.read
        unreadable += page.unreadable
        for number, each in enumerate(page.items):
            if only.since is not None and each.scheduled_for < only.since:
                return Page(found, None, unreadable, passed_over)
            if not only.matches(each):
                passed_over += 1
                continue
            found.append(each)
            is_last = number == len(page.items) - 1
            if len(found) == limit and not (is_last and page.next_page_token is None):
                return Page(found, make_executions_token(each), unreadable, passed_over)
        token = page.next_page_token
        if token is None or left <= 0:
            return Page(found, token, unreadable, passed_over)


_MORE: Final = 200
"""The number of records that are read at once where some do not match."""


def load_execution(engine: EngineContext, task: Task, execution_id: str) -> Execution:
    """Return one execution, open or finished. Raises NotFound."""
    run = task.find_run(execution_id)
    if run and (run.lease or run.suspension):
        steps = engine.archive().load(task.id, run) if run.steps else ()
        return open_run_as_execution(task, run, steps)
    execution = engine.store.load_execution(task.id, execution_id)
    if execution is None:
        raise NotFound("execution", execution_id)
    execution = _as_held(task, engine.archive().load_execution(execution))
    if not execution.status.is_final:
        return execution
    return execution.model_copy(
        update={"steps": tuple(_end_step(engine.store, each, execution) for each in execution.steps)}
    )


def _end_step(store: Store, step: StepRecord, execution: Execution) -> StepRecord:
    """Return a step of an execution that has ended, which no longer waits: it was cancelled with it.

    A call that its handler did not await goes on. It waits until its own task has ended.
    """
    if step.status is not StepStatus.WAITING:
        return step
    status, finished_at = StepStatus.CANCELLED, execution.finished_at
    if step.child is not None and execution.status is not ExecutionStatus.CANCELLED:
        try:
            outcome = load_call_outcome(store, step.name, step.child)
        except UnreadableDocument:
            outcome = None
        if outcome is None:
            return step
        finished_at = outcome.finished_at or finished_at
        if outcome.failure is None:
            status = StepStatus.SUCCEEDED
        elif outcome.failure.status not in {ExecutionStatus.CANCELLED, DELETED}:
            status = StepStatus.FAILED
    return step.model_copy(update={"status": status, "finished_at": finished_at})


def load_sealed_log(engine: EngineContext, task: Task, execution_id: str) -> tuple[str | None, str | None]:
    """Return an execution's handler, and its encrypted log or None. Raises NotFound."""
    run = task.find_run(execution_id)
    if run is not None:
        return task.as_begun(run).handler, run.log
    execution = engine.store.load_execution(task.id, execution_id)
    if execution is None:
        raise NotFound("execution", execution_id)
    return execution.handler, execution.log


def open_run_as_execution(task: Task, run: Run, journal: Iterable[JournalEntry] = ()) -> Execution:
    """Return an open run as an execution, with the steps of its journal."""
    steps = tuple(entry.to_record() for entry in journal)
    if run.suspension is not None:
        message = f"It {run.suspension.reason.rstrip('.')}."
        goes_on = run.due_at if run.suspension.is_timed or run.due_at <= task.updated_at else None
        more: dict[str, Any] = {"message": message, "steps": steps, "next_attempt_at": goes_on}
        return _as_held(task, execution_record(task, run, ExecutionStatus.SUSPENDED, task.updated_at, **more))
    if run.lease is None:
        more = {"next_attempt_at": run.due_at}
        return _as_held(task, execution_record(task, run, ExecutionStatus.RETRYING, task.updated_at, **more))

    record = execution_record(task, run, ExecutionStatus.RUNNING, task.updated_at, steps=steps)
    return record.model_copy(update={"lease_until": run.lease.until, "worker": run.lease.worker})


def _as_held(task: Task, execution: Execution) -> Execution:
    """Return an execution that its task's pause keeps from going on as one that waits for the pause's end."""
    if execution.next_attempt_at is None or task.status is not TaskStatus.PAUSED:
        return execution
    message = f"It waits until its task is resumed. {task.message}".rstrip()
    return execution.model_copy(update={"status": ExecutionStatus.SUSPENDED, "message": message})


_TOKEN = re.compile(r"([0-4])\.(.*)", re.DOTALL)
MAX_READ = 1000
"""The number of documents after which a page is given up. If few of them match, it is shorter than asked, or
empty."""
_PAGE = 50
"""The number of tasks with open executions that are read at once, where few may be of the wanted handler."""


class _Finished(Enum):
    FAILURES = "failures"
    OTHERS = "others"


@dataclass(frozen=True, slots=True)
class ExecutionFilter:
    """The filters of executions without an index: a list reads what does not match too, and skips it."""

    has_calls: bool = True
    """True to list the executions of calls, too: a failed one is also in its caller's record."""
    error: str | None = None
    """A part of the error's type or message, in any case."""
    error_type: str | None = None
    """The error's type, whole."""
    min_duration: timedelta | None = None
    """The least time that its attempts took."""
    min_lateness: timedelta | None = None
    """The least time by which the start was later than its schedule said."""

    def matches(self, execution: Execution) -> bool:
        """Return whether an execution matches all that is given."""
        error = execution.error
        said = f"{error.type}: {error.message}" if error else ""
        return (
            (self.has_calls or execution.called_by is None)
            and (self.error is None or self.error.casefold() in said.casefold())
            and (self.error_type is None or (error is not None and error.type == self.error_type))
            and (self.min_duration is None or (execution.duration or _NEVER) >= self.min_duration)
            and (self.min_lateness is None or (execution.lateness or _NEVER) >= self.min_lateness)
        )


_NEVER = timedelta(-1)
EVERY_EXECUTION = ExecutionFilter()


@dataclass(frozen=True, slots=True)
class FoundExecution:
    """An execution in a list across tasks."""

    execution: Execution
    task: Task | None
    """Its task, if the list had to read that: an execution that is open is a part of it."""


def find_executions(
    search: SearchStore, query: ExecutionQuery, limit: int, page_token: str | None = None
) -> Page[Execution]:
    """Return what `find_executions_with_tasks` does, without the tasks."""
    page = find_executions_with_tasks(search, query, limit, page_token)
    return Page([each.execution for each in page.items], page.next_page_token, page.unreadable)


def find_executions_with_tasks(
    search: SearchStore,
    query: ExecutionQuery,
    limit: int,
    page_token: str | None = None,
    only: ExecutionFilter = EVERY_EXECUTION,
) -> Page[FoundExecution]:
    """Return a page of the executions that match: first what failed, then what is open, then all others.

    Those of one task that are open come together: a page is longer than `limit` if one task alone has more of
    them. It is shorter, and may be empty, if many documents had to be read to find few. It reads fewer than
    `MAX_READ`, and then at most one page of a store, which looks through `MAX_LOOKED_THROUGH`. Raises
    InvalidInput.
    """
    parts = _choose_parts(query.statuses)
    # An open execution runs what it began with, and its task may have another handler by now: no index has
    # that.
    of_any_handler = replace(query, handler=None)
    number, token = _read_token(page_token, len(parts))
    items: list[FoundExecution] = []
    unreadable = 0
    left = MAX_READ
    while number < len(parts) and len(items) < limit and left > 0:
        part = parts[number]
        at_once = missing = limit - len(items)
        if only != EVERY_EXECUTION or (query.handler is not None and isinstance(part, ExecutionStatus)):
            at_once = max(missing, min(_PAGE, left))
        if isinstance(part, ExecutionStatus):
            tasks = search.list_open(of_any_handler, part, limit=at_once, page_token=token)
            left -= tasks.read
            unreadable += tasks.unreadable
            for task in tasks.items:
                found = [
                    FoundExecution(one, task)
                    for one in list_open_executions(task)
                    if _matches(one, task, query) and only.matches(one)
                ]
                if items and len(items) + len(found) > limit:
                    return Page(items, f"{number}.{token or ''}", unreadable)
                items += found
                token = _make_open_token(of_any_handler, part, task)
            token = tasks.next_page_token
        else:
            is_failure = part is _Finished.FAILURES
            page = search.list_finished(query, is_failure=is_failure, limit=at_once, page_token=token)
            left -= page.read
            matching = [each for each in page.items if only.matches(each)]
            items += [FoundExecution(each, None) for each in matching[:missing]]
            unreadable += page.unreadable
            token = page.next_page_token
            if len(matching) > missing:
                token = make_finished_token(query, matching[missing - 1], is_failure=is_failure)
                return Page(items, f"{number}.{token}", unreadable)
        number += token is None
    return Page(items, f"{number}.{token or ''}" if number < len(parts) else None, unreadable)


def list_open_executions(task: Task) -> list[Execution]:
    """Return a task's open executions as lists across tasks have them, the latest first."""
    omitted = {name: Execution.model_fields[name].get_default() for name in OMITTED_FIELDS}
    runs = [run for run in task.runs if get_open_status(task, run)]
    found = [open_run_as_execution(task, run).model_copy(update=omitted) for run in runs]
    return sorted(found, key=lambda one: (one.scheduled_for, one.id), reverse=True)


def _choose_parts(statuses: Sequence[ExecutionStatus] | None) -> tuple[ExecutionStatus | _Finished, ...]:
    """Return the parts of the list in their order. Several statuses are of one part.

    A task is listed by its most active run, and may have others.
    """
    if statuses is None:
        return (_Finished.FAILURES, *OPEN_STATUSES, _Finished.OTHERS)
    if not statuses:
        return ()
    status = statuses[0]
    if status in FAILURE_STATUSES:
        return (_Finished.FAILURES,)
    if status.is_final:
        return (_Finished.OTHERS,)
    return OPEN_STATUSES[: OPEN_STATUSES.index(status) + 1]


def _matches(execution: Execution, task: Task, query: ExecutionQuery) -> bool:
    at = execution.scheduled_for
    run = task.find_run(execution.id)
    return (
        (query.handler is None or (run is not None and task.as_begun(run).handler == query.handler))
        and (query.statuses is None or execution.status in query.statuses)
        and (query.since is None or at >= query.since)
        and (query.until is None or at < query.until)
    )


def _make_open_token(query: ExecutionQuery, status: ExecutionStatus, task: Task) -> str | None:
    position = find_open_position(task)
    if position is None:
        return None
    return make_token(identify_open_list(query, status), position[1], task.id)


def _read_token(token: str | None, parts: int) -> tuple[int, str | None]:
    if not token:
        return 0, None
    matched = _TOKEN.fullmatch(token)
    if matched is None or int(matched[1]) >= parts:
        raise bad_token()
    return int(matched[1]), matched[2] or None


_FAILURES_AT_ONCE: Final = 100


def list_failures(
    search: SearchStore, query: ExecutionQuery, only: ExecutionFilter, most: int
) -> tuple[list[Execution], bool]:
    """Return the latest matching executions that failed or timed out, and whether there may be more."""
    if query.statuses is not None and FAILURE_STATUSES.isdisjoint(query.statuses):
        return [], False
    found: list[Execution] = []
    token: str | None = None

    for _ in range(most // _FAILURES_AT_ONCE + 1):  # each reads at most some 1,000, however few of them match
        page = find_executions_with_tasks(
            search,
            query,
            min(_FAILURES_AT_ONCE, most - len(found)),
            token,
            only,
        )
        failures = [each.execution for each in page.items if each.execution.status in FAILURE_STATUSES]
        found += failures
        token = page.next_page_token
        if token is None or len(failures) < len(page.items) or not token.startswith("0."):
            return found, False  # failures come first: what follows is not among them
        if len(found) >= most:
            break

    return found, True
