"""A client of the HTTP API, typed, with paging, retries, and the same errors as the library's.

::

    with Client("https://api.example", token=firebase_id_token) as client:
        task = client.create(title="Greet", handler="greet", payload={"name": "Ada"}, schedule={"rrule": "FREQ=DAILY"})
        for execution in client.executions(task.id):
            print(execution.scheduled_for, execution.status)

What is safe to repeat is repeated, some times and with growing waits, if the service does not answer or is overloaded:
reads, and creations, which carry an idempotency key. Instants are datetimes in UTC, durations are numbers of seconds.
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import requests
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from cloudsched.client_errors import error_of, error_of_problem
from cloudsched.domain.drafts import wire_fields
from cloudsched.domain.execution import Execution, Message
from cloudsched.domain.policy import Priority
from cloudsched.domain.task import TaskStatus
from cloudsched.errors import CloudschedError, NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

RETRIES = 3
"""How often a request is repeated: after about 0, 1 and 2 seconds, or when ``Retry-After`` says."""
PAGE = 100
POLL = timedelta(seconds=1)
"""How often to look whether a task has ended."""
_SAFE = frozenset({"GET", "DELETE"})
_REPEATED = (502, 503, 504)
"""Nobody has answered, or it cannot now. A full quota (429) is for the caller to deal with."""


class TaskView(BaseModel):
    """A task as the API shows it. What a newer API says besides is in `model_extra`."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow", frozen=True)

    id: str
    owner: str
    title: str
    handler: str
    status: TaskStatus
    revision: int
    schedule: dict[str, Any]
    timezone: str
    payload: dict[str, Any] = Field(default_factory=dict)
    priority: Priority = Priority.NORMAL
    message: str = ""
    next_execution_time: datetime | None = None
    created_at: datetime
    updated_at: datetime
    run_count: int = 0
    is_running: bool = False
    dispatch_deferred: bool = False
    etag: str = Field(default="", exclude=True)
    """The state that was seen: give it to an edit to make just that one."""


class Created(BaseModel):
    """What became of one task of a batch: the task, or the error with it."""

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    task: TaskView | None
    error: CloudschedError | None


class TreeView(BaseModel):
    """A task with the calls below it, in their order."""

    task: TaskView
    children: tuple[TreeView, ...] = ()


class Client:
    """Talks to one API.

    Args:
        url: Its address, without a path.
        token: A Firebase ID token or a Google OIDC token; or what returns one, asked for each request.
        key: An API key.
        platform_token: A token for Cloud Run's own check, for a private service that takes `token` for its users.
        timeout: How many seconds to wait for an answer.
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
        self._url = url.rstrip("/")
        self._bearers = {"Authorization": token, "X-Serverless-Authorization": platform_token}
        self._timeout = timeout
        self._once = _session(0, key)
        self._often = _session(RETRIES, key)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._once.close()
        self._often.close()

    # ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def create(self, *, idempotency_key: str | None = None, **fields: Any) -> TaskView:
        """Create a task, or edit the one of the same `id`. Fields have their Python names; see `TaskDraft`.

        It is safe to repeat: by its `id`, or else by the key, which is a new one if it is None.

        Raises:
            InvalidInput: A field is wrong.
            QuotaExceeded: The owner has as much as one owner may have.
        """
        content = wire_fields(fields)
        headers = {} if content.get("id") is not None else {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return _task(self._send("POST", "/v1/tasks", content, headers=headers, is_safe=True))

    def create_many(self, tasks: Iterable[dict[str, Any]], *, idempotency_key: str | None = None) -> list[Created]:
        """Create up to 500 tasks with one request; the results are in the same order, each a task or an error."""
        content = {"tasks": [wire_fields(task) for task in tasks]}
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        if any(task.get("id") is not None for task in content["tasks"]):
            headers = {}
        answer = self._send("POST", "/v1/tasks:batchCreate", content, headers=headers, is_safe=True)
        return [_created(each) for each in answer.json()["results"]]

    def get(self, task_id: str) -> TaskView:
        """Return a task. Raises NotFound if there is none, or it is not the caller's to see."""
        return _task(self._send("GET", _path(task_id)))

    def tasks(self, **filters: str | int | None) -> Iterator[TaskView]:
        """Yield the tasks that fit, page by page: `owner`, `status`, `handler`, `due_from`, `due_until`, `order_by`."""
        for each in self._listed("/v1/tasks", "tasks", filters):
            yield TaskView.model_validate(each)

    def update(self, task_id: str, *, etag: str | None = None, **changes: Any) -> TaskView:
        """Change some fields, by their Python names; None puts one back to its default.

        Raises:
            PreconditionFailed: The task is not in the state with this `etag` any more. Nothing was changed.
        """
        headers = {} if etag is None else {"If-Match": etag}
        return _task(self._send("PATCH", _path(task_id), wire_fields(changes), headers=headers))

    def delete(self, task_id: str) -> None:
        """Remove a task and its executions."""
        self._send("DELETE", _path(task_id))

    def pause(self, task_id: str) -> TaskView:
        """Hold a task until it is resumed."""
        return self._changed(task_id, "pause")

    def resume(self, task_id: str) -> TaskView:
        """Let a paused task go on from now."""
        return self._changed(task_id, "resume")

    def cancel(self, task_id: str) -> TaskView:
        """End a task; its record stays."""
        return self._changed(task_id, "cancel")

    def trigger(self, task_id: str) -> TaskView:
        """Run a task now, without moving its plan."""
        return self._changed(task_id, "trigger")

    def retry(self, task_id: str, execution_id: str | None = None) -> TaskView:
        """Give an execution one more attempt; the task's last one, if none is named."""
        content = {} if execution_id is None else {"executionId": execution_id}
        return self._changed(task_id, "retry", content)

    def backfill(self, task_id: str, start: datetime, end: datetime) -> TaskView:
        """Run the occurrences of a past range again, both ends included."""
        return self._changed(task_id, "backfill", {"start": start.isoformat(), "end": end.isoformat()})

    def send_event(self, task_id: str, event: str, payload: Any = None) -> TaskView:  # noqa: ANN401 - any JSON
        """Tell a task's durable handler something that it waits for, or will."""
        path = f"{_path(task_id)}/events/{quote(event, safe='')}"
        return _task(self._send("POST", path, {"payload": payload}))

    def tree(self, task_id: str) -> TreeView:
        """Return a task with the calls below it."""
        return TreeView.model_validate(self._send("GET", f"{_path(task_id)}/tree").json())

    def wait(self, task_id: str, timeout: timedelta, *, every: timedelta = POLL) -> Execution:
        """Return a task's latest execution once the task has ended.

        Args:
            task_id: The task.
            timeout: How long to wait.
            every: How often to look.

        Raises:
            TimeoutError: It has not ended within that time.
            NotFound: There is no such task, or it ended without an execution.
        """
        give_up_at = time.monotonic() + timeout.total_seconds()
        while self.get(task_id).status in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"Task {task_id} has not ended within {timeout}.")
            time.sleep(min(every.total_seconds(), left))
        latest = next(self.executions(task_id), None)
        if latest is None:
            raise NotFound("execution of task", task_id)
        return latest

    def upcoming(self, task_id: str, count: int = 10) -> list[datetime]:
        """Return a task's next occurrences, in UTC."""
        answer = self._send("GET", f"{_path(task_id)}/upcoming", query={"count": count}).json()
        return [datetime.fromisoformat(each["utc"]) for each in answer["occurrences"]]

    # ── What became of them ──────────────────────────────────────────────────────────────────────────────────────

    def executions(self, task_id: str) -> Iterator[Execution]:
        """Yield a task's executions, the latest first, page by page."""
        for each in self._listed(f"{_path(task_id)}/executions", "executions", {}):
            yield Execution.model_validate(each)

    def execution(self, task_id: str, execution_id: str) -> Execution:
        """Return one execution."""
        path = f"{_path(task_id)}/executions/{quote(execution_id, safe='')}"
        return Execution.model_validate(self._send("GET", path).json())

    def inbox(self, owner: str) -> Iterator[Message]:
        """Yield the messages in an owner's inbox, the newest first, page by page."""
        path = f"/v1/inboxes/{quote(owner, safe='')}/messages"
        for each in self._listed(path, "messages", {}):
            yield Message.model_validate(each)

    def preview(self, schedule: dict[str, Any], count: int = 10) -> list[datetime]:
        """Return the next occurrences of a schedule, in UTC, without storing it."""
        answer = self._send("POST", "/v1/schedules/preview", {"schedule": schedule, "count": count}, is_safe=True)
        return [datetime.fromisoformat(each["utc"]) for each in answer.json()["occurrences"]]

    def _changed(self, task_id: str, verb: str, content: dict[str, Any] | None = None) -> TaskView:
        return _task(self._send("POST", f"{_path(task_id)}/{verb}", content))

    def _listed(self, path: str, name: str, filters: dict[str, str | int | None]) -> Iterator[dict[str, Any]]:
        query: dict[str, Any] = {to_camel(key): value for key, value in filters.items() if value is not None}
        query.setdefault("pageSize", PAGE)
        while True:
            answer = self._send("GET", path, query=query).json()
            yield from answer[name]
            if "nextPageToken" not in answer:
                return
            query["pageToken"] = answer["nextPageToken"]

    def _send(
        self,
        method: str,
        path: str,
        content: dict[str, Any] | None = None,
        *,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        is_safe: bool = False,
    ) -> requests.Response:
        session = self._often if is_safe or method in _SAFE else self._once
        said = {**(headers or {}), **self._proof()}
        try:
            answer = session.request(
                method,
                self._url + path,
                json=content,
                params=query,
                headers=said,
                timeout=self._timeout,
                allow_redirects=False,  # a token is for this API alone
            )
        except requests.RequestException as error:
            raise Unavailable(f"The API at {self._url}", type(error).__name__) from error
        if not answer.ok or answer.is_redirect:
            raise error_of(answer)
        return answer

    def _proof(self) -> dict[str, str]:
        tokens = {name: token() if callable(token) else token for name, token in self._bearers.items()}
        return {name: f"Bearer {token}" for name, token in tokens.items() if token}


class _Repeat(Retry):
    """Waits as ``Retry-After`` says where the service is overloaded, and nowhere else."""

    RETRY_AFTER_STATUS_CODES = frozenset({503})


def _session(retries: int, key: str | None) -> requests.Session:
    """Return a session that repeats a request that often, if it was not answered or the service was overloaded."""
    repeat = _Repeat(
        retries,
        redirect=False,
        backoff_factor=0.5,
        status_forcelist=_REPEATED if retries else (),
        allowed_methods=None,
        raise_on_status=False,
    )
    made = requests.Session()
    if key is not None:
        made.headers["X-Api-Key"] = key
    made.mount("http://", HTTPAdapter(max_retries=repeat))
    made.mount("https://", HTTPAdapter(max_retries=repeat))
    return made


def _path(task_id: str) -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}"


def _task(answer: requests.Response) -> TaskView:
    return _view(answer.json(), answer.headers.get("ETag", ""))


def _view(content: dict[str, Any], etag: str = "") -> TaskView:
    try:
        return TaskView.model_validate({**content, "etag": etag})
    except ValidationError as error:
        raise Unavailable("The API", f"answered something that is not a task: {error.error_count()} errors") from error


def _created(result: dict[str, Any]) -> Created:
    if "task" in result:
        return Created(task=_view(result["task"]), error=None)
    return Created(task=None, error=error_of_problem(result["problem"], result["status"]))
