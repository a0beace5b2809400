"""The operations of the API on many tasks at once, on usage and on budgets, as flows that both clients run."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Unpack
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.flow import ApiRequest, Flow, Listing, fetch, given, listing, operation, parse_task
from cloudsched.client.task_operations import send_fields
from cloudsched.client.views import TaskView, reader
from cloudsched.domain.responses.api_responses import DeliveryEntry, Execution
from cloudsched.domain.responses.overview_responses import (
    BudgetDetails,
    BudgetPage,
    ChangeCursor,
    DispatchQueue,
    DispatchQueueList,
    ExecutionCounts,
    FailureSummary,
    HandlerInfo,
    LockDetails,
    OverviewCounts,
    Queue,
    QueuedTask,
    RetryCount,
    TaskCount,
    TaskOccurrence,
    UsagePage,
    WorkerNote,
)
from cloudsched.domain.transitions.task_draft import to_wire_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.domain.transitions.task_arguments import TaskArguments


class OverviewOperations:
    """The methods of `Client` and `AsyncClient` for lists across tasks, and for usage and budgets."""

    @operation
    def validate_task(self, task_id: str | None = None, /, **fields: Unpack[TaskArguments]) -> Flow[TaskView]:
        """Check a new task, or with an id an edit of it, and return the task that would result. Nothing is stored.

        Its `upcoming` are the next occurrences. Raises InvalidInput like `create` and `update`.
        """
        path = "/v1/tasks" if task_id is None else f"/v1/tasks/{quote(task_id, safe='')}"
        method = "POST" if task_id is None else "PATCH"
        query = {"validateOnly": "true"}
        return send_fields(
            fields,
            lambda content: ApiRequest(method, path, content, query=query, is_idempotent=True),
        )

    @listing
    def find_executions(self, /, **filters: str | datetime | None) -> Listing[Execution]:
        """Yield the matching executions of all tasks, page by page: failures first, then open ones, then all others.

        The filters are `owner`, `status`, `since`, `until`, and one of `handler`, `label` and `category`. Further
        filters have no index and need a search: `calls` (``"false"`` leaves out the executions of calls), `error`,
        `error_type`, `min_duration` and `min_lateness` (ISO 8601, such as ``PT30S``). Results and steps are omitted.
        """
        return Listing("/v1/executions", "executions", _to_query(filters), reader(Execution))

    @operation
    def count_executions(
        self, since: datetime, until: datetime, /, timezone: str = "UTC", **filters: str | None
    ) -> Flow[ExecutionCounts]:
        """Return how many executions ended on each day of a zone: failures and all others, each up to 10,000.

        The filter is one of `owner`, `handler`, `label` and `category`.
        """
        query = _to_query({**filters, "since": since, "until": until, "timezone": timezone})
        return fetch("counts", ExecutionCounts, "GET", "/v1/executions/counts", query=query)

    @listing
    def occurrences(self, until: datetime, /, **filters: str | datetime | None) -> Listing[TaskOccurrence]:
        """Yield the occurrences of all tasks before an instant, the soonest first, page by page.

        The filters are `since`, `owner`, `handler`, `label`, `category`.
        """
        query = _to_query({**filters, "until": until})
        return Listing("/v1/occurrences", "occurrences", query, reader(TaskOccurrence))

    @operation
    def overview(self, owner: str | None = None) -> Flow[OverviewCounts]:
        """Return the numbers of tasks by status, of open work, and of executions that ended in each recent hour."""
        return fetch("an overview", OverviewCounts, "GET", "/v1/overview", query=_to_query({"owner": owner}))

    @operation
    def change_cursor(self, owner: str | None = None) -> Flow[str]:
        """Return a text that changes after any change of a task (of an owner), and once a minute."""
        answer = yield ApiRequest("GET", "/v1/changes", query=_to_query({"owner": owner}))
        return answer.read("a cursor", reader(ChangeCursor)).cursor

    @operation
    def count_matching(self, action: str, /, **filters: Any) -> Flow[TaskCount]:
        """Return how many tasks `batch_change` would change now, at most 10,000. See there."""
        content = {"action": action, "filter": to_wire_fields(filters), "dryRun": True}
        return fetch("a count", TaskCount, "POST", "/v1/tasks/batchChange", content)

    @operation
    def batch_change(
        self,
        action: str,
        /,
        *,
        idempotency_key: str | None = None,
        **filters: Any,
    ) -> Flow[TaskView]:
        """Start to change all tasks that match the filters. Return the task that does it.

        The key makes it safe to repeat. None makes a new key. `wait` returns the execution: its `content`
        says how many tasks were changed, skipped and refused, and why.

        Args:
            action: ``PAUSE``, ``RESUME``, ``CANCEL``, ``RETRY_FAILED`` or ``DELETE``.
            idempotency_key: The same for the same change.
            filters: One or more of `owner`, `status`, `handler`, `label`, `due_from`, `due_until`, `ids`.

        Raises:
            InvalidInput: There is no filter, or no index for this combination.
            QuotaExceeded: The caller is a user who has five open changes.
        """
        content = {"action": action, "filter": to_wire_fields(filters)}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        path = "/v1/tasks/batchChange"
        return parse_task((yield ApiRequest("POST", path, content, headers=headers, is_idempotent=True)))

    @operation
    def summarize_failures(self, /, **filters: str | datetime | None) -> Flow[FailureSummary]:
        """Return the number of matching executions that failed, grouped by the type of error and its place.

        The filters are those of `find_executions`. Only the latest 500 failures are read.
        """
        return fetch("a summary", FailureSummary, "GET", "/v1/executions/failures", query=_to_query(filters))

    @operation
    def count_retries(self, /, **filters: Any) -> Flow[RetryCount]:
        """Return how many failed executions `batch_retry` would retry now, and the first ten. See there."""
        content = {"filter": _to_retry_filter(filters), "dryRun": True}
        return fetch("a count", RetryCount, "POST", "/v1/executions/batchRetry", content)

    @operation
    def batch_retry(self, /, *, idempotency_key: str | None = None, **filters: Any) -> Flow[TaskView]:
        """Start to retry all failed executions that match the filters. Return the task that does it.

        The key makes it safe to repeat. None makes a new key. `wait` returns the execution: its `content`
        says how many were retried (`changed`), skipped and refused, and why. Cancelling the task stops
        it.

        Args:
            idempotency_key: The same for the same retry.
            filters: `owner`, `status`, `since`, `until`, one of `handler`, `label` and `category`, `error`,
                `error_type`, `min_duration`, `min_lateness`. Or else `ids`, pairs of a task's and an execution's id.

        Raises:
            InvalidInput: There is no filter, or no index for this combination.
            QuotaExceeded: The caller is a user who has five open retries.
        """
        content = {"filter": _to_retry_filter(filters)}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        path = "/v1/executions/batchRetry"
        return parse_task((yield ApiRequest("POST", path, content, headers=headers, is_idempotent=True)))

    @operation
    def handlers(self) -> Flow[list[HandlerInfo]]:
        """Return the handlers that the caller may name in a task, with the JSON schemas of their payloads."""
        return (yield ApiRequest("GET", "/v1/handlers")).read_list("handlers", reader(HandlerInfo))

    @operation
    def queues(self, owner: str | None = None) -> Flow[list[Queue]]:
        """Return the queues in which tasks wait or workers listen. With an owner, only those of the owner's tasks."""
        answer = yield ApiRequest("GET", "/v1/queues", query=_to_query({"owner": owner}))
        return answer.read_list("queues", reader(Queue))

    @listing
    def queued_tasks(self, queue: str, owner: str | None = None) -> Listing[QueuedTask]:
        """Yield the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed."""
        path = f"/v1/queues/{quote(queue, safe='')}/tasks"
        return Listing(path, "tasks", _to_query({"owner": owner}), reader(QueuedTask))

    @listing
    def deliveries_of(self, owner: str | None = None) -> Listing[DeliveryEntry]:
        """Yield the deliveries to an owner, with their results, the newest first, page by page.

        Without an owner, a server gets those of all owners that have failed, the latest first.
        """
        return Listing("/v1/deliveries", "deliveries", _to_query({"owner": owner}), reader(DeliveryEntry))

    @operation
    def workers(self, owner: str | None = None) -> Flow[list[WorkerNote]]:
        """Return the workers that have asked for work in the last day."""
        answer = yield ApiRequest("GET", "/v1/workers", query=_to_query({"owner": owner}))
        return answer.read_list("workers", reader(WorkerNote))

    @listing
    def locks(self, owner: str | None = None) -> Listing[LockDetails]:
        """Yield the locks that are held or waited for, with their holders and those who wait, page by page."""
        return Listing("/v1/locks", "locks", _to_query({"owner": owner}), reader(LockDetails))

    @operation
    def usage(
        self,
        month: str | None = None,
        *,
        owner: str | None = None,
        handler: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> Flow[UsagePage]:
        """Return the usage of a month, by owner and handler.

        Args:
            month: The month in UTC, such as ``2026-11``. None means the current one.
            owner: Only this owner's usage.
            handler: Only this handler's usage.
            page_size: The largest number of owners.
            page_token: The `next_page_token` of the previous page.
        """
        filters = {
            "month": month,
            "owner": owner,
            "handler": handler,
            "page_size": page_size,
            "page_token": page_token,
        }
        return fetch("usage", UsagePage, "GET", "/v1/usage", query=_to_query(filters))

    @operation
    def budgets(
        self, *, owner: str | None = None, page_size: int | None = None, page_token: str | None = None
    ) -> Flow[BudgetPage]:
        """Return all budgets, and how much of each is used, by owner.

        Args:
            owner: Only this owner's budget.
            page_size: The largest number of budgets.
            page_token: The `next_page_token` of the previous page.
        """
        query = _to_query({"owner": owner, "page_size": page_size, "page_token": page_token})
        return fetch("budgets", BudgetPage, "GET", "/v1/budgets", query=query)

    @operation
    def budget(self, owner: str) -> Flow[BudgetDetails]:
        """Return an owner's budget, and how much of it is used. Raises NotFound."""
        return fetch("a budget", BudgetDetails, "GET", _budget_path(owner))

    @operation
    def put_budget(self, owner: str, max_queries_per_month: int) -> Flow[BudgetDetails]:
        """Set how many queries an owner's tasks may use in a month. For admins."""
        content = {"maxQueriesPerMonth": max_queries_per_month}
        return fetch("a budget", BudgetDetails, "PUT", _budget_path(owner), content)

    @operation
    def delete_budget(self, owner: str) -> Flow[None]:
        """Delete an owner's budget, and resume the tasks that it has paused. For admins."""
        yield ApiRequest("DELETE", _budget_path(owner))

    @operation
    def dispatch_queues(self) -> Flow[tuple[DispatchQueue, ...]]:
        """Return the queues in Cloud Tasks that wake tasks up. `serve` has none, and owners see none."""
        return (yield from fetch("queues", DispatchQueueList, "GET", "/v1/dispatch-queues")).queues

    @operation
    def purge_dispatch_queue(self, queue: str) -> Flow[DispatchQueue]:
        """Delete all calls that wait in a queue in Cloud Tasks. For admins. Raises NotFound.

        The sweep sends what is still to run within a minute or two of its time.
        """
        return fetch("a queue", DispatchQueue, "POST", f"{_dispatch_queue_path(queue)}/purge")

    @operation
    def update_dispatch_queue(
        self,
        queue: str,
        *,
        state: Literal["RUNNING", "PAUSED"] | None = None,
        per_second: float | None = None,
        concurrent: int | None = None,
    ) -> Flow[DispatchQueue]:
        """Pause or resume a queue in Cloud Tasks, or change how fast it delivers. For admins. Raises NotFound.

        A queue that is PAUSED keeps its calls until its state is RUNNING again.
        """
        content = given(
            state=state,
            max_dispatches_per_second=per_second,
            max_concurrent_dispatches=concurrent,
        )
        path = _dispatch_queue_path(queue)
        return fetch(
            "a queue",
            DispatchQueue,
            "PATCH",
            path,
            {to_camel(name): each for name, each in content.items()},
        )


def _to_query(filters: Mapping[str, str | int | datetime | None]) -> dict[str, str | int | None]:
    """Return the query parameters of a list. `since` becomes ``from``, which is a keyword in Python."""
    return {
        "from" if key == "since" else to_camel(key): value.isoformat() if isinstance(value, datetime) else value
        for key, value in filters.items()
    }


def _to_retry_filter(filters: Mapping[str, Any]) -> dict[str, Any]:
    made = to_wire_fields({name: value for name, value in filters.items() if name not in {"ids", "since"}})
    if filters.get("since") is not None:
        made["from"] = to_wire_fields({"since": filters["since"]})["since"]
    if filters.get("ids") is not None:
        made["ids"] = [{"taskId": task_id, "executionId": execution_id} for task_id, execution_id in filters["ids"]]
    return made


def _dispatch_queue_path(queue: str) -> str:
    return f"/v1/dispatch-queues/{quote(queue, safe='')}"


def _budget_path(owner: str) -> str:
    return f"/v1/people/{quote(owner, safe='')}/budget"
