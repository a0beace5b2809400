"""The operations of the API on tasks, their drafts and their results, as flows that both clients run."""

from __future__ import annotations

import time
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from pydantic.alias_generators import to_camel

from cloudsched.client.flow import (
    ApiRequest,
    Flow,
    Listing,
    Sleep,
    error_from_problem,
    fetch,
    given,
    listing,
    operation,
    parse_task,
)
from cloudsched.client.views import Created, ExplanationView, FeedView, TaskView, TreeView, reader
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.responses.api_responses import (
    BatchResult,
    DeliveryReport,
    DraftResult,
    Execution,
    ExecutionLogs,
    OccurrenceList,
    SchedulePreview,
    TaskHistory,
)
from cloudsched.domain.transitions.task_draft import TaskDraft, to_wire_fields
from cloudsched.domain.transitions.validation_errors import say_in_python
from cloudsched.errors import CloudschedError, InvalidInput, NotFound, QuotaExceeded, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.domain.transitions.task_arguments import RunArguments, TaskArguments, TaskChanges

POLL_INTERVAL = timedelta(seconds=1)
"""The first interval at which `wait` polls."""
MIN_POLL_TIMEOUT = 5.0
"""The shortest timeout of one poll, in seconds."""
POLL_GROWTH = 1.2
"""The factor by which the interval grows with each poll."""
MAX_POLL_FACTOR = 10
"""The largest multiple of the first interval."""

MAX_BATCH = 50
"""The number of tasks that the API creates with one request."""


class TaskOperations:
    """The methods of `Client` and `AsyncClient` for tasks, their drafts and their results."""

    @operation
    def create(self, /, *, idempotency_key: str | None = None, **fields: Unpack[TaskArguments]) -> Flow[TaskView]:
        """Create a task, or edit the one of the same `id`. Fields have their Python names. See `TaskDraft`.

        Its `id`, or else the key, makes it safe to repeat. None makes a new key.

        Raises:
            InvalidInput: A field is invalid.
            QuotaExceeded: The owner's quota is exceeded.
        """
        return _create(fields, idempotency_key)

    @operation
    def run_now(
        self,
        handler: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        /,
        *,
        idempotency_key: str | None = None,
        **fields: Unpack[RunArguments],
    ) -> Flow[TaskView]:
        """Create a task that runs once, now. It is stored when this returns, and runs then.

        It is `create` without a schedule, and as safe to repeat: a task with an `id` of your own runs
        once, however often you ask. To run an existing task once more, use `trigger`.

        Raises:
            InvalidInput: A field is invalid.
            QuotaExceeded: The owner's quota is exceeded.
        """
        return _create({"handler": handler, **fields, **given(payload=payload)}, idempotency_key)

    @operation
    def create_many(
        self, tasks: Iterable[dict[str, Any]], *, idempotency_key: str | None = None
    ) -> Flow[list[Created]]:
        """Create tasks, 50 with each request. The results are in the same order, each a task or an error.

        If a request fails as a whole, the tasks of earlier requests are created. To go on, repeat the
        call with the same tasks and an `idempotency_key` of your own.
        """
        contents = [to_wire_fields(task) for task in tasks]
        key = idempotency_key or str(uuid.uuid4())
        created: list[Created] = []
        for begin in range(0, len(contents), MAX_BATCH) or (0,):
            content = {"tasks": contents[begin : begin + MAX_BATCH]}
            headers = {"Idempotency-Key": f"{key}-{begin}" if begin else key}
            path = "/v1/tasks/batchCreate"
            answer = yield ApiRequest("POST", path, content, headers=headers, is_idempotent=True, repeat_key=key)
            created += answer.read_list("results", _parse_created)
        return created

    @operation
    def get(self, task_id: str) -> Flow[TaskView]:
        """Return a task. Raises NotFound if it does not exist or the caller may not see it."""
        return parse_task((yield ApiRequest("GET", _task_path(task_id))))

    @listing
    def tasks(self, /, **filters: str | int | None) -> Listing[TaskView]:
        """Yield the matching tasks, page by page.

        The filters are `owner`, `status`, `handler`, `label`, `due_from`, `due_until`, `order_by`, or `owner`,
        `trouble`, `trouble_until`. With any of them, `search` takes words, and `calls` (``"false"``) leaves out calls.
        """
        query = {to_camel(key): value for key, value in filters.items()}
        return Listing("/v1/tasks", "tasks", query, TaskView.from_response)

    @operation
    def update(
        self,
        /,
        task_id: str,
        *,
        etag: str | None = None,
        idempotency_key: str | None = None,
        **changes: Unpack[TaskChanges],
    ) -> Flow[TaskView]:
        """Change some fields, by their Python names. None restores a default.

        The key makes this and all changes below safe to repeat, and they are repeated automatically if no
        answer comes. None makes a new key. With an `etag`, nothing happens if the task has changed since.

        Raises:
            PreconditionFailed: The task has changed since this `etag`. Nothing was changed.
        """
        path = _task_path(task_id)
        headers = _write_conditions(etag, idempotency_key)
        return send_fields(
            changes, lambda content: ApiRequest("PATCH", path, content, headers=headers, is_idempotent=True)
        )

    @operation
    def delete(self, task_id: str, *, etag: str | None = None) -> Flow[None]:
        """Delete a task and its executions. Raises NotFound if there is none.

        A repetition after a lost answer succeeds if the task is gone.
        """
        yield ApiRequest("DELETE", _task_path(task_id), headers=_write_conditions(etag, None))

    @operation
    def pause(self, task_id: str, *, etag: str | None = None) -> Flow[TaskView]:
        """Pause a task until it is resumed."""
        return _post_change(task_id, "pause", etag=etag)

    @operation
    def resume(self, task_id: str, *, etag: str | None = None) -> Flow[TaskView]:
        """Resume a paused task, from now on."""
        return _post_change(task_id, "resume", etag=etag)

    @operation
    def cancel(self, task_id: str, *, etag: str | None = None) -> Flow[TaskView]:
        """Cancel a task. Its record is kept."""
        return _post_change(task_id, "cancel", etag=etag)

    @operation
    def trigger(
        self,
        task_id: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        *,
        idempotency_key: str | None = None,
        validate_only: bool = False,
    ) -> Flow[TaskView]:
        """Run a task now, without changing its schedule. The answer's `triggered` has the execution's id.

        The key makes it safe to repeat. None makes a new key.

        Args:
            task_id: The task.
            payload: The payload for this run, in place of the task's, which does not change.
            idempotency_key: The same for requests that are to start one run only.
            validate_only: Check everything, and store and start nothing.

        Raises:
            InvalidInput: The payload does not fit the handler, or the key was used with another one.
            NotAllowed: The task is not active, or has too many open runs.
        """
        content = None if payload is None else {"payload": to_json_value("payload", payload)}
        query = {"validateOnly": "true" if validate_only else None}
        return _post_change(task_id, "trigger", content, key=idempotency_key, query=query)

    @operation
    def snooze(
        self, task_id: str, duration: timedelta | str | None = None, *, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Run a task's last run again, later. The answer's `snoozed_until` has the instant.

        The schedule does not change, and its occurrences run meanwhile, too. Another snooze moves a
        pending one.

        Args:
            task_id: The task.
            duration: The delay, up to 30 days, or words: "PT10M", "tomorrow at 9:00". Ten minutes if None.
            idempotency_key: The same for requests that are to be one snooze.

        Raises:
            InvalidInput: The duration is not understood, or too long.
            NotAllowed: The task has not run, is paused or cancelled, or has too many open runs.
        """
        text = f"PT{duration.total_seconds():.0f}S" if isinstance(duration, timedelta) else duration
        return _post_change(task_id, "snooze", given(duration=text), key=idempotency_key)

    @operation
    def retry(
        self,
        task_id: str,
        execution_id: str | None = None,
        *,
        from_step: int | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[TaskView]:
        """Give an execution, by default the last one, one more attempt.

        With `from_step`, a durable handler forgets that step and all later ones, and does them again.
        """
        content = given(executionId=execution_id, fromStep=from_step)
        return _post_change(task_id, "retry", content, key=idempotency_key)

    @operation
    def backfill(
        self, task_id: str, start: datetime, end: datetime, *, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Run the occurrences of a past range again, both ends included."""
        content = {"start": start.isoformat(), "end": end.isoformat()}
        return _post_change(task_id, "backfill", content, key=idempotency_key)

    @operation
    def send_event(
        self,
        task_id: str,
        event: str,
        payload: Any = None,  # noqa: ANN401 - any JSON
        *,
        execution_id: str | None = None,
        early: bool = False,
        idempotency_key: str | None = None,
    ) -> Flow[TaskView | None]:
        """Send an event to the execution that waits for it, or to the given one. `early` keeps it if none waits yet.

        Returns the task, or None if it is not the caller's, who was asked for the event by name.

        Raises:
            NotAwaited: No execution waits for it, or several may be meant. `awaited` has the awaited events, and their
                ends.
        """
        path = f"{_task_path(task_id)}/events/{quote(event, safe='')}"
        content = {"payload": payload}
        content |= given(executionId=execution_id, early=early or None)
        headers = _write_conditions(None, idempotency_key)
        response = yield ApiRequest("POST", path, content, None, headers, is_idempotent=True)
        return parse_task(response) if response.content else None

    @operation
    def tree(self, task_id: str, execution_id: str | None = None) -> Flow[TreeView]:
        """Return a task with the calls below it, of all its executions or of one. A large tree is cut."""
        query = {"executionId": execution_id}
        return fetch("a tree", TreeView, "GET", f"{_task_path(task_id)}/tree", query=query)

    @operation
    def explain(self, task_id: str, at: datetime | None = None) -> Flow[ExplanationView]:
        """Return why a task runs when it does, or does not run. With `at`, explain that day in its zone."""
        query = {"at": at and at.isoformat()}
        return fetch("an explanation", ExplanationView, "GET", f"{_task_path(task_id)}/explain", query=query)

    @operation
    def logs(self, task_id: str, execution_id: str) -> Flow[ExecutionLogs]:
        """Return the latest lines that an execution has logged, in their order, also while it runs.

        Raises:
            Forbidden: They are not for this caller.
        """
        path = f"{_task_path(task_id)}/executions/{quote(execution_id, safe='')}/logs"
        return fetch("logs", ExecutionLogs, "GET", path)

    @operation
    def history(self, task_id: str) -> Flow[TaskHistory]:
        """Return the manual changes of a task, with their authors and times, the latest first."""
        return fetch("a history", TaskHistory, "GET", f"{_task_path(task_id)}/history")

    @operation
    def wait(self, task_id: str, timeout: timedelta, *, every: timedelta = POLL_INTERVAL) -> Flow[Execution]:
        """Return a task's latest execution once the task has ended and none of its runs is open.

        Args:
            task_id: The task.
            timeout: The longest wait.
            every: The first interval between polls. It grows, up to ten times this.

        If the API does not respond, the request is repeated. The last one may take up to 5 seconds more.

        Raises:
            TimeoutError: The task did not end in time.
            Unavailable: The API did not respond in all that time.
            QuotaExceeded: The API refused all requests in that time, because there were too many.
            NotFound: There is no such task, or it ended without an execution.
        """
        give_up_at = time.monotonic() + timeout.total_seconds()
        pause = every.total_seconds()
        is_answered = False
        while True:
            silence: CloudschedError | None = None
            try:
                if (ended := (yield from _fetch_finished(task_id, give_up_at))) is not None:
                    return ended
                is_answered = True
            except (Unavailable, QuotaExceeded) as error:
                silence = error
            left = give_up_at - time.monotonic()
            if left <= 0 and silence is not None and not is_answered:
                raise silence
            if left <= 0:
                raise TimeoutError(f"Task {task_id} has not ended within {timeout}.") from silence
            yield Sleep(min(pause, left))
            pause = min(pause * POLL_GROWTH, every.total_seconds() * MAX_POLL_FACTOR)

    @operation
    def upcoming(self, task_id: str, count: int = 10) -> Flow[list[datetime]]:
        """Return a task's next occurrences, in UTC."""
        answer = yield ApiRequest("GET", f"{_task_path(task_id)}/upcoming", query={"count": count})
        return [each.utc for each in answer.read("occurrences", reader(OccurrenceList)).occurrences]

    @listing
    def executions(self, task_id: str) -> Listing[Execution]:
        """Yield a task's executions, the latest first, page by page."""
        return Listing(f"{_task_path(task_id)}/executions", "executions", {}, reader(Execution))

    @operation
    def execution(self, task_id: str, execution_id: str) -> Flow[Execution]:
        """Return one execution."""
        path = f"{_task_path(task_id)}/executions/{quote(execution_id, safe='')}"
        return fetch("an execution", Execution, "GET", path)

    @operation
    def deliveries(self, task_id: str, execution_id: str) -> Flow[list[DeliveryReport]]:
        """Return the progress of an execution's deliveries, by channel. See ``docs/guides/delivery.md``."""
        path = f"{_task_path(task_id)}/executions/{quote(execution_id, safe='')}/deliveries"
        response = yield ApiRequest("GET", path)
        return response.read_list("deliveries", reader(DeliveryReport))

    @listing
    def inbox(self, owner: str) -> Listing[Message]:
        """Yield the messages in an owner's inbox, the newest first, page by page."""
        path = f"/v1/inboxes/{quote(owner, safe='')}/messages"
        return Listing(path, "messages", {}, reader(Message))

    @operation
    def create_feed(
        self, owner: str | None = None, categories: Iterable[str] = (), labels: Iterable[str] = ()
    ) -> Flow[FeedView]:
        """Create a feed of an owner's tasks. Its `url` has a secret that is shown only here (docs/guides/calendars.md).

        Args:
            owner: The owner of the tasks that it shows. The caller if None.
            categories: Only tasks of these categories. All if there are none.
            labels: Only tasks that have all of these labels, each ``key=value``.
        """
        content: dict[str, Any] = {
            "categories": list(categories),
            "labels": list(labels),
            **given(owner=owner),
        }
        return (yield ApiRequest("POST", "/v1/feeds", content)).read("a feed", reader(FeedView))

    @operation
    def feeds(self, owner: str | None = None) -> Flow[list[FeedView]]:
        """Return the feeds of an owner, or of the caller if None, without their addresses."""
        answer = yield ApiRequest("GET", "/v1/feeds", query={"owner": owner})
        return answer.read_list("feeds", reader(FeedView))

    @operation
    def delete_feed(self, feed_id: str) -> Flow[None]:
        """Revoke a feed. Its address stops working."""
        yield ApiRequest("DELETE", f"/v1/feeds/{quote(feed_id, safe='')}")

    @operation
    def preview(self, schedule: dict[str, Any], count: int = 10) -> Flow[list[datetime]]:
        """Return the next occurrences of a schedule, in UTC, without storing it."""
        content = {"schedule": schedule, "count": count}
        answer = yield ApiRequest("POST", "/v1/schedules/preview", content, is_idempotent=True)
        return [each.utc for each in answer.read("a preview", reader(SchedulePreview)).occurrences]

    @operation
    def draft(
        self,
        text: str,
        *,
        timezone: str,
        conversation: Iterable[Mapping[str, str]] = (),
        context: Mapping[str, Any] | None = None,
        now: datetime | None = None,
        owner: str | None = None,
        locale: str | None = None,
    ) -> Flow[DraftResult]:
        """Return the draft of a person's words: what they ask for, such as a task. Nothing is stored.

        Args:
            text: The person's words.
            timezone: The person's IANA time zone.
            conversation: The earlier messages, each with `role` and `content`.
            context: The knowledge of your app. See ``docs/guides/plain-language.md``.
            now: The instant from which "tomorrow" counts. Now if None.
            owner: The task's owner. The caller if None.
            locale: The person's language, such as ``de``. If None, it is detected from the words.
        """
        content: dict[str, Any] = given(
            text=text,
            timezone=timezone,
            conversation=[dict(turn) for turn in conversation],
            context=dict(context or {}),
            now=now and now.isoformat(),
            owner=owner,
            locale=locale,
        )
        return fetch("a draft", DraftResult, "POST", "/v1/tasks/draft", content)

    @operation
    def describe_schedule(
        self,
        schedule: str,
        *,
        timezone: str,
        count: int = 10,
        owner: str | None = None,
        locale: str | None = None,
    ) -> Flow[SchedulePreview]:
        """Return the meaning of a schedule in words, or in a notation: its description and next occurrences.

        Args:
            schedule: The words, or the notation.
            timezone: The zone of its times, or ``owner`` for the owner's present zone.
            count: The number of occurrences.
            owner: The owner whose calendars are meant, and whose zone if it follows its owner. The caller if None.
            locale: The language of the words, such as ``de``. If None, it is detected from the words.

        Raises:
            InvalidInput: It is no schedule, or the words have several meanings.
        """
        content = {
            "schedule": schedule,
            "timezone": timezone,
            "count": count,
            **given(owner=owner, locale=locale),
        }
        return fetch("a preview", SchedulePreview, "POST", "/v1/schedules/preview", content)

    @operation
    def confirm(self, draft: DraftResult) -> Flow[TaskView]:
        """Store a draft: create its task, or do to its task what it shows. It is safe to repeat.

        A deleted task is returned as it was, and not found by a repetition.

        Raises:
            InvalidInput: The draft has no token, because something is missing, or it is older than 15 minutes.
            PreconditionFailed: The task has changed since.
        """
        content = draft.require_complete()
        if draft.task_id is None:
            return parse_task((yield ApiRequest("POST", "/v1/tasks", content, is_idempotent=True)))
        return parse_task((yield ApiRequest("PATCH", _task_path(draft.task_id), content, is_idempotent=True)))


def _task_path(task_id: str) -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}"


def _parse_created(content: object) -> Created:
    result = reader(BatchResult[TaskView])(content)
    if result.task is not None:
        return Created(task=result.task, error=None)
    if result.problem is None:
        raise ValueError("it has neither a task nor a problem")
    return Created(task=None, error=error_from_problem(result.problem))


def _create(fields: Mapping[str, Any], key: str | None) -> Flow[TaskView]:
    headers = {} if fields.get("id") is not None else {"Idempotency-Key": key or str(uuid.uuid4())}
    return send_fields(
        fields, lambda content: ApiRequest("POST", "/v1/tasks", content, headers=headers, is_idempotent=True)
    )


def send_fields(
    fields: Mapping[str, Any],
    make_request: Callable[[dict[str, Any]], ApiRequest],
) -> Flow[TaskView]:
    """Send a task's fields, and return the task. An error names an invalid field by its Python name."""
    try:
        return parse_task((yield make_request(to_wire_fields(fields))))
    except InvalidInput as error:
        say_in_python(error, fields, TaskDraft)
        raise


def _post_change(
    task_id: str,
    verb: str,
    content: dict[str, Any] | None = None,
    *,
    etag: str | None = None,
    key: str | None = None,
    query: dict[str, Any] | None = None,
) -> Flow[TaskView]:
    path = f"{_task_path(task_id)}/{verb}"
    headers = _write_conditions(etag, key)
    return parse_task((yield ApiRequest("POST", path, content, query, headers, is_idempotent=True)))


def _write_conditions(etag: str | None, key: str | None) -> dict[str, str]:
    """Return the headers that identify the state that a change applies to, and the request."""
    return {"Idempotency-Key": key or str(uuid.uuid4()), **given(**{"If-Match": etag})}


def _fetch_finished(task_id: str, deadline: float) -> Flow[Execution | None]:
    """Return a task's latest execution if the task has ended, else None. Each request is sent once."""

    def within() -> float:
        return max(MIN_POLL_TIMEOUT, deadline - time.monotonic())

    task = parse_task((yield ApiRequest("GET", _task_path(task_id), time_limit=within())))
    if task.status in {TaskStatus.ACTIVE, TaskStatus.PAUSED} or task.is_running:
        return None
    path = f"{_task_path(task_id)}/executions"
    page = yield ApiRequest("GET", path, query={"pageSize": 1}, time_limit=within())
    found = page.read_list("executions", reader(Execution))
    if not found:
        raise NotFound("execution of task", task_id)
    return found[0]
