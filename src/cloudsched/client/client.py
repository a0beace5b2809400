"""A client of the HTTP API, typed, with paging, retries, and the same errors as the library's.

::

    with Client("https://api.example", token=firebase_id_token) as client:
        task = client.create(title="Greet", handler="greet", payload={"name": "Ada"}, schedule={"rrule": "FREQ=DAILY"})
        for execution in client.executions(task.id):
            print(execution.scheduled_for, execution.status)

If the service does not respond or is overloaded, requests that are safe to repeat are retried a few times, with growing
waits: reads, creations (which carry an idempotency key), and a worker's reports on its claims (`WorkerApi`). Instants
are datetimes in UTC, durations are numbers of seconds.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.connection import RETRIES, Connection
from cloudsched.client.problems import error_from_problem
from cloudsched.client.views import ClaimView, Created, HeartbeatResult, TaskView, TreeView
from cloudsched.client.worker_api import WorkerApi, parse_task
from cloudsched.domain.documents.execution import Execution, Message
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.drafts import to_wire_fields
from cloudsched.errors import CloudschedError, NotFound, QuotaExceeded, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

T = TypeVar("T")

__all__ = ["RETRIES", "ClaimView", "Client", "Created", "HeartbeatResult", "TaskView", "TreeView"]

PAGE_SIZE = 100
POLL_INTERVAL = timedelta(seconds=1)
"""How often `wait` polls at first."""
MIN_POLL_TIMEOUT = 5.0
"""The shortest timeout of one poll, in seconds."""
POLL_GROWTH, MAX_POLL_FACTOR = 1.2, 10
"""The factor by which the interval grows with each poll, and its largest multiple of the first interval."""


class Client(WorkerApi):
    """A client of one API.

    Args:
        url: The API's address, without a path.
        token: A Firebase ID token or a Google OIDC token; or a function that returns one, called for each request.
        key: An API key.
        platform_token: A token for Cloud Run itself, for a private service that uses `token` for its own users.
        timeout: How many seconds to wait for a connection, and then for the complete response.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | Callable[[], str] | None = None,
        key: str | None = None,
        platform_token: str | Callable[[], str] | None = None,
        timeout: float = 30,
    ) -> None:
        bearers = {"Authorization": token, "X-Serverless-Authorization": platform_token}
        self._connection = Connection(url, bearers, key, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    # ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, *, idempotency_key: str | None = None, **fields: Any) -> TaskView:
        """Create a task, or edit the one of the same `id`. Fields have their Python names; see `TaskDraft`.

        It is safe to repeat, by its `id` or else by the key; a new key is made if it is None.

        Raises:
            InvalidInput: A field is invalid.
            QuotaExceeded: The owner's quota is exceeded.
        """
        content = to_wire_fields(fields)
        headers = {} if content.get("id") is not None else {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return parse_task(self._connection.send("POST", "/v1/tasks", content, headers=headers, is_idempotent=True))

    def create_many(self, tasks: Iterable[dict[str, Any]], *, idempotency_key: str | None = None) -> list[Created]:
        """Create up to 500 tasks with one request; the results are in the same order, each a task or an error."""
        content = {"tasks": [to_wire_fields(task) for task in tasks]}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        if any(task.get("id") is not None for task in content["tasks"]):
            headers = {}
        answer = self._connection.send("POST", "/v1/tasks:batchCreate", content, headers=headers, is_idempotent=True)
        return answer.read_list("results", _parse_created)

    def get(self, task_id: str) -> TaskView:
        """Return a task. Raises NotFound if it does not exist or the caller may not see it."""
        return parse_task(self._connection.send("GET", _task_path(task_id)))

    def tasks(self, **filters: str | int | None) -> Iterator[TaskView]:
        """Yield the matching tasks, page by page: `owner`, `status`, `handler`, `due_from`, `due_until`, `order_by`."""
        return self._iter_items("/v1/tasks", "tasks", filters, TaskView.from_response)

    def update(self, task_id: str, *, etag: str | None = None, **changes: Any) -> TaskView:
        """Change some fields, by their Python names; None restores a default.

        Raises:
            PreconditionFailed: The task has changed since this `etag`. Nothing was changed.
        """
        headers = {} if etag is None else {"If-Match": etag}
        return parse_task(self._connection.send("PATCH", _task_path(task_id), to_wire_fields(changes), headers=headers))

    def delete(self, task_id: str) -> None:
        """Delete a task and its executions."""
        self._connection.send("DELETE", _task_path(task_id))

    def pause(self, task_id: str) -> TaskView:
        """Pause a task until it is resumed."""
        return self._post_change(task_id, "pause")

    def resume(self, task_id: str) -> TaskView:
        """Resume a paused task, from now on."""
        return self._post_change(task_id, "resume")

    def cancel(self, task_id: str) -> TaskView:
        """Cancel a task; its record is kept."""
        return self._post_change(task_id, "cancel")

    def trigger(self, task_id: str) -> TaskView:
        """Run a task now, without changing its schedule."""
        return self._post_change(task_id, "trigger")

    def retry(self, task_id: str, execution_id: str | None = None) -> TaskView:
        """Give an execution one more attempt; the last one if none is given."""
        content = {} if execution_id is None else {"executionId": execution_id}
        return self._post_change(task_id, "retry", content)

    def backfill(self, task_id: str, start: datetime, end: datetime) -> TaskView:
        """Run the occurrences of a past range again, both ends included."""
        return self._post_change(task_id, "backfill", {"start": start.isoformat(), "end": end.isoformat()})

    def send_event(self, task_id: str, event: str, payload: Any = None, *, execution_id: str | None = None) -> TaskView:  # noqa: ANN401 - any JSON
        """Send an event to a task's durable handler, or to one of its executions; it is kept until awaited."""
        path = f"{_task_path(task_id)}/events/{quote(event, safe='')}"
        only = {} if execution_id is None else {"executionId": execution_id}
        return parse_task(self._connection.send("POST", path, {"payload": payload, **only}))

    def tree(self, task_id: str, execution_id: str | None = None) -> TreeView:
        """Return a task with the calls below it, of all its executions or of one; a large tree is cut."""
        query = None if execution_id is None else {"executionId": execution_id}
        return self._connection.send("GET", f"{_task_path(task_id)}/tree", query=query).read(
            "a tree", TreeView.model_validate
        )

    def wait(self, task_id: str, timeout: timedelta, *, every: timedelta = POLL_INTERVAL) -> Execution:
        """Return a task's latest execution once the task has ended and none of its runs is open.

        Args:
            task_id: The task.
            timeout: How long to wait.
            every: How often to poll at first. The interval grows, up to ten times this.

        If the API does not respond, the request is repeated; the last one may take up to 5 seconds more.

        Raises:
            TimeoutError: The task did not end in time.
            Unavailable: The API did not respond in all that time.
            QuotaExceeded: The API refused all requests in that time, because there were too many.
            TypeError: `timeout` is not a timedelta.
            NotFound: There is no such task, or it ended without an execution.
        """
        if not isinstance(timeout, timedelta):
            raise TypeError(f"wait takes a timedelta, such as timedelta(minutes=5), and not {timeout!r}.")
        give_up_at = time.monotonic() + timeout.total_seconds()
        pause = every.total_seconds()
        is_answered = False
        while True:
            silence: CloudschedError | None = None
            try:
                if (ended := self._fetch_finished(task_id, give_up_at)) is not None:
                    return ended
                is_answered = True
            except (Unavailable, QuotaExceeded) as error:
                silence = error
            left = give_up_at - time.monotonic()
            if left <= 0 and silence is not None and not is_answered:
                raise silence
            if left <= 0:
                raise TimeoutError(f"Task {task_id} has not ended within {timeout}.") from silence
            time.sleep(min(pause, left))
            pause = min(pause * POLL_GROWTH, every.total_seconds() * MAX_POLL_FACTOR)

    def _fetch_finished(self, task_id: str, deadline: float) -> Execution | None:
        """Return a task's latest execution if the task has ended, and None if it has not; each request is sent once."""

        def within() -> float:
            return max(MIN_POLL_TIMEOUT, deadline - time.monotonic())

        task = parse_task(self._connection.send("GET", _task_path(task_id), time_limit=within()))
        if task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED} or task.is_running:
            return None
        page = self._connection.send(
            "GET", f"{_task_path(task_id)}/executions", query={"pageSize": 1}, time_limit=within()
        )
        found = page.read_list("executions", Execution.model_validate)
        if not found:
            raise NotFound("execution of task", task_id)
        return found[0]

    def upcoming(self, task_id: str, count: int = 10) -> list[datetime]:
        """Return a task's next occurrences, in UTC."""
        answer = self._connection.send("GET", f"{_task_path(task_id)}/upcoming", query={"count": count})
        return answer.read_list("occurrences", _parse_instant)

    # ── Results ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def executions(self, task_id: str) -> Iterator[Execution]:
        """Yield a task's executions, the latest first, page by page."""
        return self._iter_items(f"{_task_path(task_id)}/executions", "executions", {}, Execution.model_validate)

    def execution(self, task_id: str, execution_id: str) -> Execution:
        """Return one execution."""
        path = f"{_task_path(task_id)}/executions/{quote(execution_id, safe='')}"
        return self._connection.send("GET", path).read("an execution", Execution.model_validate)

    def inbox(self, owner: str) -> Iterator[Message]:
        """Yield the messages in an owner's inbox, the newest first, page by page."""
        path = f"/v1/inboxes/{quote(owner, safe='')}/messages"
        return self._iter_items(path, "messages", {}, Message.model_validate)

    def preview(self, schedule: dict[str, Any], count: int = 10) -> list[datetime]:
        """Return the next occurrences of a schedule, in UTC, without storing it."""
        answer = self._connection.send(
            "POST", "/v1/schedules/preview", {"schedule": schedule, "count": count}, is_idempotent=True
        )
        return answer.read_list("occurrences", _parse_instant)

    def _post_change(self, task_id: str, verb: str, content: dict[str, Any] | None = None) -> TaskView:
        return parse_task(self._connection.send("POST", f"{_task_path(task_id)}/{verb}", content))

    def _iter_items(
        self, path: str, name: str, filters: dict[str, str | int | None], read: Callable[[Any], T]
    ) -> Iterator[T]:
        query: dict[str, Any] = {to_camel(key): value for key, value in filters.items() if value is not None}
        query.setdefault("pageSize", PAGE_SIZE)
        while True:
            answer = self._connection.send("GET", path, query=query)
            yield from answer.read_list(name, read)
            if "nextPageToken" not in answer.content:
                return
            query["pageToken"] = answer.content["nextPageToken"]


def _task_path(task_id: str) -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}"


def _parse_instant(occurrence: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(occurrence["utc"])


def _parse_created(result: dict[str, Any]) -> Created:
    if "task" in result:
        return Created(task=TaskView.from_response(result["task"]), error=None)
    return Created(task=None, error=error_from_problem(result["problem"], result["status"]))
