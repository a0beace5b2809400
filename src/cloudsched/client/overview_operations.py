"""The operations of the API on many tasks at once, on usage and on budgets, as flows that both clients run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Unpack
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.filters import (
    AuditFilters,
    BatchFilters,
    KindOfExecution,
    OccurrenceFilters,
    RetryFilters,
    to_query,
)
from cloudsched.client.flow import (
    ApiRequest,
    Flow,
    Listing,
    choose_key,
    error_from_problem,
    fetch,
    given,
    hash_key,
    listing,
    operation,
    parse_task,
)
from cloudsched.client.task_operations import send_fields
from cloudsched.client.views import Created, TaskView, reader
from cloudsched.domain.responses.api_responses import BatchResult, DeliveryReport
from cloudsched.domain.responses.overview_responses import (
    AuditEntry,
    BudgetDetails,
    BudgetPage,
    ChangeCursor,
    DispatchQueue,
    DispatchQueueList,
    ExecutionCounts,
    HandlerInfo,
    LockDetails,
    OverviewCounts,
    Queue,
    QueuedTask,
    RetryCount,
    SearchResults,
    TaskOccurrence,
    UsagePage,
    WorkerNote,
)
from cloudsched.domain.transitions.task_draft import to_wire_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cloudsched.domain.documents.batch_change import BatchAction
    from cloudsched.domain.transitions.task_arguments import TaskArguments


MAX_BATCH = 50
"""The number of tasks that the API creates with one request."""


class OverviewOperations:
    """The methods of `Client` and `AsyncClient` for lists across tasks, and for usage and budgets."""

    @operation
    def create_many(
        self, tasks: Iterable[dict[str, Any]], *, idempotency_key: str | None = None
    ) -> Flow[list[Created]]:
        """Create tasks, 50 with each request. The results are in the same order, each a task or an error.

        If a request fails as a whole, the tasks of earlier requests are created. To go on, repeat the
        call with the same tasks and an `idempotency_key` of your own.

        >>> teas = [{"handler": "remind", "payload": {"about": about}} for about in ("Mint", "Sencha")]
        >>> [each.error for each in client.create_many(teas, idempotency_key="import-7")]
        [None, None]
        """
        contents = [to_wire_fields(task) for task in tasks]
        key = choose_key(idempotency_key)
        created: list[Created] = []
        for begin in range(0, len(contents), MAX_BATCH) or (0,):
            content = {"tasks": contents[begin : begin + MAX_BATCH]}
            headers = {"Idempotency-Key": f"{hash_key(key)}-{begin}" if begin else key}
            path = "/v1/tasks/batchCreate"
            answer = yield ApiRequest("POST", path, content, headers=headers, is_idempotent=True, repeat_key=key)
            created += answer.read_list("results", _parse_created)
        return created

    @operation
    def validate_task(self, task_id: str | None = None, /, **fields: Unpack[TaskArguments]) -> Flow[TaskView]:
        """Check a new task, or with an id an edit of it, and return the task that would result. Nothing is stored.

        Its `upcoming` are the next occurrences. Raises InvalidInput like `create` and `update`.

        >>> made = client.validate_task(handler="remind", payload={"about": "Tea"}, schedule="Monday at 9")
        >>> print(made.upcoming[0].utc)
        2027-01-04 09:00:00+00:00
        """
        path = "/v1/tasks" if task_id is None else f"/v1/tasks/{quote(task_id, safe='')}"
        method = "POST" if task_id is None else "PATCH"
        query = {"validateOnly": "true"}
        return send_fields(
            fields,
            lambda content: ApiRequest(method, path, content, query=query, is_idempotent=True),
        )

    @operation
    def count_executions(
        self,
        since: datetime,
        until: datetime,
        /,
        timezone: str = "UTC",
        per: Literal["P1D", "PT1H", "PT15M"] = "P1D",
        **filters: Unpack[KindOfExecution],
    ) -> Flow[ExecutionCounts]:
        """Return how many executions ended in each day, hour or quarter of a zone's clock: ran, failed, skipped, calls.

        The filters are `owner`, `handler`, `label` and `category`. With one of the last three, `complete_from` says
        from when on there are parts.
        """
        query = to_query({**filters, "since": since, "until": until, "timezone": timezone, "per": per})
        return fetch("counts", ExecutionCounts, "GET", "/v1/executions/counts", query=query)

    @listing
    def occurrences(self, until: datetime, /, **filters: Unpack[OccurrenceFilters]) -> Listing[TaskOccurrence]:
        """Yield the occurrences of all tasks before an instant, the soonest first. For one task, see `upcoming`.

        The filters are `since`, `owner`, `handler`, `label`, `category`.

        >>> [str(each.utc) for each in client.occurrences(datetime(2027, 1, 4, tzinfo=UTC), owner="ada")]
        ['2027-01-03 09:00:00+00:00']
        """
        query = to_query({**filters, "until": until})
        return Listing("/v1/occurrences", "occurrences", query, reader(TaskOccurrence))

    @operation
    def overview(self, owner: str | None = None) -> Flow[OverviewCounts]:
        """Return the numbers of tasks by status, of open work, and of executions that ended in each recent hour.

        >>> client.overview().tasks["ACTIVE"].value
        1
        """
        return fetch("an overview", OverviewCounts, "GET", "/v1/overview", query=to_query({"owner": owner}))

    @operation
    def search_names(self, text: str, owner: str | None = None, *, page_size: int = 10) -> Flow[SearchResults]:
        """Return what has all words of a text in its name: tasks, owners, handlers and labels.

        >>> [task.title for task in client.search_names("wat").tasks]
        ['Water the plants']
        """
        query = {"q": text, **to_query({"owner": owner, "page_size": page_size})}
        return fetch("what was found", SearchResults, "GET", "/v1/search", query=query)

    @listing
    def audit(self, /, **filters: Unpack[AuditFilters]) -> Listing[AuditEntry]:
        """Yield who did what to any task, the latest first, page by page.

        The filters are `owner`, `by` (a part of a name), `action`, `since` and `until`.

        >>> [(each.title, each.action.value) for each in client.audit(by="ada")]
        []
        """
        return Listing("/v1/audit", "entries", to_query(filters), reader(AuditEntry))

    @operation
    def change_cursor(self, owner: str | None = None) -> Flow[str]:
        """Return a text that changes after any change of a task (of an owner), and once a minute."""
        answer = yield ApiRequest("GET", "/v1/changes", query=to_query({"owner": owner}))
        return answer.read("a cursor", reader(ChangeCursor)).cursor

    @operation
    def batch_change(
        self,
        action: BatchAction | Literal["PAUSE", "RESUME", "CANCEL", "RETRY_FAILED", "DELETE"],
        /,
        *,
        until: datetime | None = None,
        idempotency_key: str | None = None,
        **filters: Unpack[BatchFilters],
    ) -> Flow[TaskView]:
        """Start to change all tasks that match the filters. Return the task that does it.

        The key makes it safe to repeat. None makes a new key. `wait` returns the execution: its `content`
        says how many tasks were changed, skipped and refused, and why. The task's payload has the numbers meanwhile.

        Args:
            action: ``PAUSE``, ``RESUME``, ``CANCEL``, ``RETRY_FAILED`` or ``DELETE``.
            until: The end of a pause, an aware instant. The tasks go on then, and what was paused before stays so.
            idempotency_key: The same for the same change.
            filters: One or more of `owner`, `status`, `handler`, `label`, `due_from`, `due_until`, `pause_id`, `ids`.

        Raises:
            InvalidInput: There is no filter, or the end is past or of no pause.
            QuotaExceeded: The caller is a user who has five open changes.

        >>> change = client.batch_change("CANCEL", owner="ada", handler="remind")
        """
        content = {"action": action, "filter": to_wire_fields(filters), **to_wire_fields(given(until=until))}
        return _start_batch(content, idempotency_key)

    @operation
    def pause_all(
        self, owner: str | None = None, *, until: datetime | None = None, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Start to pause all active tasks: of an owner, or for admins of everybody. Return the task that does it.

        It remembers which it has paused: give its id to `restore`. Tasks that are created later run. Results that were
        made before are still delivered, and retried: to hold these as well, pause the dispatch queues.

        Args:
            owner: The owner. None means all tasks that the caller may change.
            until: The end of the pause, unless it is restored before. See `batch_change`.
            idempotency_key: The same for the same change.

        >>> stopped = client.pause_all("ada")
        >>> sim.advance(timedelta(minutes=1))  # in a test
        >>> print(client.get(task.id).status)
        PAUSED
        """
        chosen = {"status": "ACTIVE", **given(owner=owner)}
        content = {"action": "PAUSE", "filter": chosen, **to_wire_fields(given(until=until))}
        return _start_batch(content, idempotency_key)

    @operation
    def restore(self, pause_id: str, *, idempotency_key: str | None = None) -> Flow[TaskView]:
        """Start to resume what `pause_all`, or another change of many tasks, has paused. Return the task that does it.

        Tasks that were paused before, or by somebody else since, stay paused.

        Args:
            pause_id: The id of the task that paused them.
            idempotency_key: The same for the same change.

        >>> stopped = client.pause_all("ada")
        >>> sim.advance(timedelta(minutes=1))  # in a test
        >>> restored = client.restore(stopped.id)
        """
        return _start_batch({"action": "RESUME", "filter": {"pauseId": pause_id}}, idempotency_key)

    @operation
    def count_retries(self, /, **filters: Unpack[RetryFilters]) -> Flow[RetryCount]:
        """Return how many failed executions `batch_retry` would retry now, and the first ten. See there."""
        content = {"filter": _to_retry_filter(filters), "dryRun": True}
        return fetch("a count", RetryCount, "POST", "/v1/executions/batchRetry", content)

    @operation
    def batch_retry(self, /, *, idempotency_key: str | None = None, **filters: Unpack[RetryFilters]) -> Flow[TaskView]:
        """Start to retry all failed executions that match the filters. Return the task that does it.

        The key makes it safe to repeat. None makes a new key. `wait` returns the execution: its `content`
        says how many were retried (`changed`), skipped and refused, and why. Cancelling the task stops
        it.

        Args:
            idempotency_key: The same for the same retry.
            filters: `owner`, `status`, `since`, `until`, `handler`, `label`, `category`, `error`,
                `error_type`, `min_duration`, `min_lateness`. Or else `ids`, pairs of a task's and an execution's id.

        Raises:
            InvalidInput: There is no filter.
            QuotaExceeded: The caller is a user who has five open retries.
        """
        content = {"filter": _to_retry_filter(filters)}
        return _start_batch(content, idempotency_key, "/v1/executions/batchRetry")

    @operation
    def handlers(self) -> Flow[list[HandlerInfo]]:
        """Return the handlers that the caller may name in a task, with the JSON schemas of their payloads.

        >>> [each.name for each in client.handlers()]
        ['order', 'remind']
        """
        return (yield ApiRequest("GET", "/v1/handlers")).read_list("handlers", reader(HandlerInfo))

    @operation
    def queues(self, owner: str | None = None) -> Flow[list[Queue]]:
        """Return the queues in which tasks wait or workers listen. With an owner, only those of the owner's tasks."""
        answer = yield ApiRequest("GET", "/v1/queues", query=to_query({"owner": owner}))
        return answer.read_list("queues", reader(Queue))

    @listing
    def queued_tasks(self, queue: str, owner: str | None = None, *, skill: str | None = None) -> Listing[QueuedTask]:
        """Yield the tasks that wait in a queue, in the order in which workers get them. Nothing is claimed.

        With a skill, only what a worker with it may claim. A worker's key sees what it may claim, and `claim` takes
        the one that it chooses by its `task_id`.
        """
        path = f"/v1/queues/{quote(queue, safe='')}/tasks"
        return Listing(path, "tasks", to_query({"owner": owner, "skill": skill}), reader(QueuedTask))

    @listing
    def deliveries_of(
        self,
        owner: str | None = None,
        *,
        channel: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        unreached: bool = False,
    ) -> Listing[DeliveryReport]:
        """Yield the deliveries to an owner, with their results, the newest first, page by page.

        Without an owner, a server gets those of all owners that have reached nobody yet, the latest first. With
        `unreached` there are only those for which no address could be used. `channel` is one such as ``EMAIL``, `since`
        and `until` say when they were made.
        """
        filters: dict[str, Any] = {"owner": owner, "channel": channel, "since": since, "until": until}
        if unreached:
            filters["unreached"] = "true"
        return Listing("/v1/deliveries", "deliveries", to_query(filters), reader(DeliveryReport))

    @operation
    def resend(
        self, delivery_id: str, address: str | None = None, *, idempotency_key: str | None = None
    ) -> Flow[DeliveryReport]:
        """Send a delivery that was not sent once more, perhaps to another e-mail address, which the person then has.

        Raises:
            NotAllowed: It was sent, is still being tried, or can reach nobody. Nothing was changed.
            Forbidden: Others than admins give an address that their ID token does not have as verified.
        """
        path = f"/v1/deliveries/{quote(delivery_id, safe='')}/resend"
        content, key = given(address=address), choose_key(idempotency_key)
        answer = yield ApiRequest("POST", path, content, headers={"Idempotency-Key": key}, is_idempotent=True)
        return answer.read("a delivery", reader(DeliveryReport))

    @operation
    def workers(self, owner: str | None = None) -> Flow[list[WorkerNote]]:
        """Return the workers that have asked for work in the last day."""
        answer = yield ApiRequest("GET", "/v1/workers", query=to_query({"owner": owner}))
        return answer.read_list("workers", reader(WorkerNote))

    @listing
    def locks(self, owner: str | None = None) -> Listing[LockDetails]:
        """Yield the locks that are held or waited for, with their holders and those who wait, page by page."""
        return Listing("/v1/locks", "locks", to_query({"owner": owner}), reader(LockDetails))

    @operation
    def usage(
        self,
        month: str | None = None,
        *,
        owner: str | None = None,
        handler: str | None = None,
        by: Literal["OWNER", "HANDLER", "LABEL"] | None = None,
        label_key: str | None = None,
        page_size: int | None = None,
        page_token: str | None = None,
    ) -> Flow[UsagePage]:
        """Return the usage of a month, by owner and handler, or summed up by one of them or by label in `sums`.

        Args:
            month: The month in UTC, such as ``2026-11``. None means the current one.
            owner: Only this owner's usage.
            handler: Only this handler's usage.
            by: By what to sum up, over all pages.
            label_key: With ``LABEL``, the key of the label, such as ``team`` of ``team=shop``.
            page_size: The largest number of owners.
            page_token: The `next_page_token` of the previous page.

        >>> page = client.usage("2027-01", owner="ada")
        """
        filters = {
            "month": month,
            "owner": owner,
            "handler": handler,
            "by": by,
            "label_key": label_key,
            "page_size": page_size,
            "page_token": page_token,
        }
        return fetch("usage", UsagePage, "GET", "/v1/usage", query=to_query(filters))

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
        query = to_query({"owner": owner, "page_size": page_size, "page_token": page_token})
        return fetch("budgets", BudgetPage, "GET", "/v1/budgets", query=query)

    @operation
    def budget(self, owner: str) -> Flow[BudgetDetails]:
        """Return an owner's budget, and how much of it is used. Raises NotFound."""
        return fetch("a budget", BudgetDetails, "GET", _budget_path(owner))

    @operation
    def put_budget(
        self, owner: str, max_queries_per_month: int | None = None, *, max_tokens_per_month: int | None = None
    ) -> Flow[BudgetDetails]:
        """Set the queries and tokens of a month for an owner's tasks, None for any number. For admins."""
        limits = {"maxQueriesPerMonth": max_queries_per_month, "maxTokensPerMonth": max_tokens_per_month}
        content = {name: most for name, most in limits.items() if most is not None}
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


def _parse_created(content: object) -> Created:
    result = reader(BatchResult[TaskView])(content)
    if result.task is not None:
        return Created(task=result.task, error=None)
    if result.problem is None:
        raise ValueError("it has neither a task nor a problem")
    return Created(task=None, error=error_from_problem(result.problem))


def _start_batch(content: dict[str, Any], key: str | None, path: str = "/v1/tasks/batchChange") -> Flow[TaskView]:
    headers = {"Idempotency-Key": choose_key(key)}
    return parse_task((yield ApiRequest("POST", path, content, headers=headers, is_idempotent=True)))
