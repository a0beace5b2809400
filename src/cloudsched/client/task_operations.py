"""The operations of the API on tasks, their drafts and their results, as flows that both clients run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import quote

from cloudsched.client.filters import ExecutionFilters, TaskFilters, to_query
from cloudsched.client.flow import (
    ApiRequest,
    Flow,
    Listing,
    choose_key,
    fetch,
    given,
    listing,
    operation,
    parse_task,
)
from cloudsched.client.views import TaskView, TreeView, reader
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.json_limits import to_json_value
from cloudsched.domain.responses.api_responses import (
    DeliveryReport,
    DraftResult,
    Execution,
    OccurrenceList,
)
from cloudsched.domain.transitions.task_draft import TaskDraft, to_wire_fields
from cloudsched.domain.transitions.validation_errors import say_in_python
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from cloudsched.domain.documents.execution import ExecutionStatus
    from cloudsched.domain.transitions.task_arguments import RunArguments, TaskArguments, TaskChanges


class TaskOperations:
    """The methods of `Client` and `AsyncClient` for tasks, their drafts and their results."""

    @operation
    def create(self, /, *, idempotency_key: str | None = None, **fields: Unpack[TaskArguments]) -> Flow[TaskView]:
        """Create a task, or edit the one of the same `id`. Fields have their Python names. See `TaskDraft`.

        Its `id`, or else the key, makes it safe to repeat. None makes a new key.

        Raises:
            InvalidInput: A field is invalid.
            QuotaExceeded: The owner's quota is exceeded.

        >>> task = client.create(handler="remind", payload={"about": "Tea"}, schedule="every day at 9")
        >>> print(task.next_execution_time)
        2027-01-03 09:00:00+00:00
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

        >>> task = client.run_now("remind", {"about": "Tea"}, idempotency_key="click-17")
        """
        return _create({"handler": handler, **fields, **given(payload=payload)}, idempotency_key)

    @operation
    def get(self, task_id: str) -> Flow[TaskView]:
        """Return a task. Raises NotFound if it does not exist or the caller may not see it.

        >>> client.get(task.id).title
        'Water the plants'
        """
        return parse_task((yield ApiRequest("GET", task_path(task_id))))

    @listing
    def tasks(self, /, **filters: Unpack[TaskFilters]) -> Listing[TaskView]:
        """Yield the matching tasks, page by page. All filters must match.

        The filters are `owner`, `status`, `handler`, `label`, `due_from`, `due_until`, `order_by`, or `owner`,
        `trouble`, `trouble_until`. With any of them, `search` takes words, and `calls=False` leaves out calls.

        >>> [each.title for each in client.tasks(status="ACTIVE", order_by="nextExecutionTime")]
        ['Water the plants']
        """
        return Listing("/v1/tasks", "tasks", to_query(filters), TaskView.from_response)

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

        >>> task = client.update(task.id, title="Water all plants", schedule="every Monday at 10")
        >>> print(task.next_execution_time)
        2027-01-04 10:00:00+00:00
        """
        path = task_path(task_id)
        headers = _write_conditions(etag, idempotency_key)
        return send_fields(
            changes, lambda content: ApiRequest("PATCH", path, content, headers=headers, is_idempotent=True)
        )

    @operation
    def delete(self, task_id: str, *, etag: str | None = None, idempotency_key: str | None = None) -> Flow[None]:
        """Delete a task and its executions. Raises NotFound if there is none.

        A repetition after a lost answer succeeds if the task is gone.

        >>> client.delete(task.id)
        """
        yield ApiRequest("DELETE", task_path(task_id), headers=_write_conditions(etag, idempotency_key))

    @operation
    def pause(
        self,
        task_id: str,
        *,
        until: datetime | str | None = None,
        etag: str | None = None,
        idempotency_key: str | None = None,
    ) -> Flow[TaskView]:
        """Pause a task until it is resumed, or until an instant or words: "Monday", which begins at midnight.

        An occurrence at that time runs. Those in between do not.

        Raises:
            InvalidInput: The time is not understood, past, or after the only time at which the task runs.
            NotAllowed: The task has ended, or others have paused it.

        >>> print(client.pause(task.id, until="Monday").paused_until)
        2027-01-04 00:00:00+00:00
        """
        return _post_change(task_id, "pause", given(until=_to_text(until)), etag=etag, key=idempotency_key)

    @operation
    def skip(
        self, task_id: str, occurrence: datetime | str = "next", *, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Leave out one occurrence of a task: the next, or the one at an instant. All others stay.

        Raises:
            InvalidInput: The task has no such occurrence to come.
            NotAllowed: The task is not active, or runs once: cancel it.

        >>> print(client.skip(task.id).next_execution_time)
        2027-01-04 09:00:00+00:00
        """
        return _post_change(task_id, "skip", given(occurrence=_to_text(occurrence)), key=idempotency_key)

    @operation
    def move(
        self, task_id: str, occurrence: datetime | str, to: datetime | str, *, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Run one occurrence of a task, "next" or the one at an instant, at another time. All others stay.

        Args:
            task_id: The task.
            occurrence: The instant of the occurrence, or "next".
            to: Its new time: an instant, or words in the task's time zone. "17:00" is on the same day, "Friday" at the
                same time, and "an hour later" counts from the occurrence.
            idempotency_key: The same for requests that are to be one change.

        Raises:
            InvalidInput: The task has no such occurrence, or cannot run at that time. Or the words are not understood.
            NotAllowed: The task is not active.

        >>> print(client.move(task.id, "next", "17:00").next_execution_time)
        2027-01-03 17:00:00+00:00
        """
        content = given(occurrence=_to_text(occurrence), to=_to_text(to))
        return _post_change(task_id, "move", content, key=idempotency_key)

    @operation
    def resume(self, task_id: str, *, etag: str | None = None, idempotency_key: str | None = None) -> Flow[TaskView]:
        """Resume a paused task, from now on.

        >>> task = client.pause(task.id)
        >>> print(client.resume(task.id).status)
        ACTIVE
        """
        return _post_change(task_id, "resume", etag=etag, key=idempotency_key)

    @operation
    def cancel(self, task_id: str, *, etag: str | None = None, idempotency_key: str | None = None) -> Flow[TaskView]:
        """Cancel a task. Its record is kept.

        >>> print(client.cancel(task.id).status)
        CANCELLED
        """
        return _post_change(task_id, "cancel", etag=etag, key=idempotency_key)

    @operation
    def cancel_run(
        self, task_id: str, execution_id: str, *, etag: str | None = None, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Cancel one run that has not ended, with its calls. The task and its schedule go on.

        A handler that is running is not interrupted, but can report nothing more.

        Raises:
            NotFound: The task has no such run.
            NotAllowed: The run has ended, and was not cancelled.

        >>> started = client.trigger(task.id).triggered.execution_id
        >>> task = client.cancel_run(task.id, started)
        >>> print(client.execution(task.id, started).status)
        CANCELLED
        """
        content = given(executionId=execution_id)
        return _post_change(task_id, "cancelRun", content, etag=etag, key=idempotency_key)

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

        >>> task = client.trigger(task.id, {"about": "ferns"}, idempotency_key="click-17")
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

        >>> print(client.snooze(task.id, "tomorrow at 8:00").snoozed_until)
        2027-01-03 08:00:00+00:00
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

        >>> next(client.executions(task.id)).status.value
        'FAILED'
        >>> task = client.retry(task.id)
        """
        content = given(executionId=execution_id, fromStep=from_step)
        return _post_change(task_id, "retry", content, key=idempotency_key)

    @operation
    def backfill(
        self, task_id: str, start: datetime, end: datetime, *, idempotency_key: str | None = None
    ) -> Flow[TaskView]:
        """Run the occurrences of a past range again, both ends included.

        >>> new_year = datetime(2027, 1, 1, tzinfo=UTC)
        >>> task = client.backfill(task.id, new_year, new_year + timedelta(days=1))
        """
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

        >>> order = client.run_now("order")
        >>> sim.advance(timedelta(minutes=1))  # in a test; it waits for the event now
        >>> task = client.send_event(order.id, "approved", {"by": "grace"})
        """
        path = f"{task_path(task_id)}/events/{quote(event, safe='')}"
        content = {"payload": payload}
        content |= given(executionId=execution_id, early=early or None)
        headers = _write_conditions(None, idempotency_key)
        response = yield ApiRequest("POST", path, content, None, headers, is_idempotent=True)
        return parse_task(response) if response.content else None

    @operation
    def tree(self, task_id: str, execution_id: str | None = None) -> Flow[TreeView]:
        """Return a task with the calls below it, of all its executions or of one. A large tree is cut.

        >>> client.tree(task.id).task.title
        'Water the plants'
        """
        query = {"executionId": execution_id}
        return fetch("a tree", TreeView, "GET", f"{task_path(task_id)}/tree", query=query)

    @operation
    def upcoming(self, task_id: str, count: int = 10) -> Flow[list[datetime]]:
        """Return a task's next occurrences, in UTC.

        >>> [str(each) for each in client.upcoming(task.id, 2)]
        ['2027-01-03 09:00:00+00:00', '2027-01-04 09:00:00+00:00']
        """
        answer = yield ApiRequest("GET", f"{task_path(task_id)}/upcoming", query={"count": count})
        return [each.utc for each in answer.read("occurrences", reader(OccurrenceList)).occurrences]

    @listing
    def executions(
        self,
        task_id: str,
        *,
        status: ExecutionStatus | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Listing[Execution]:
        """Yield a task's executions, the latest first, page by page: those with a status, in a time.

        >>> [each.status.value for each in client.executions(task.id)]
        ['FAILED', 'SUCCEEDED']
        """
        query = to_query({"status": status, "since": since, "until": until})
        return Listing(f"{task_path(task_id)}/executions", "executions", query, reader(Execution))

    @operation
    def execution(self, task_id: str, execution_id: str) -> Flow[Execution]:
        """Return one execution.

        >>> print(client.execution(task.id, "20270101T090000Z").status)
        SUCCEEDED
        """
        path = f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}"
        return fetch("an execution", Execution, "GET", path)

    @listing
    def find_executions(self, /, **filters: Unpack[ExecutionFilters]) -> Listing[Execution]:
        """Yield the matching executions of all tasks, page by page: failures first, then open ones, then all others.

        The filters are `owner`, `status`, `since`, `until`, and one of `handler`, `label` and `category`. Further
        filters have no index and need a search: `calls` (False leaves out the executions of calls), `error`,
        `error_type`, `min_duration` and `min_lateness` (ISO 8601, such as ``PT30S``). Results and steps are omitted.

        >>> failed = client.find_executions(owner="ada", status="FAILED")
        >>> [(each.task_id, each.error.message) for each in failed]
        [('water', 'the pump is dry')]
        """
        return Listing("/v1/executions", "executions", to_query(filters), reader(Execution))

    @operation
    def deliveries(self, task_id: str, execution_id: str) -> Flow[list[DeliveryReport]]:
        """Return the progress of an execution's deliveries, by channel. See ``docs/guides/delivery.md``."""
        path = f"{task_path(task_id)}/executions/{quote(execution_id, safe='')}/deliveries"
        response = yield ApiRequest("GET", path)
        return response.read_list("deliveries", reader(DeliveryReport))

    @listing
    def inbox(self, owner: str) -> Listing[Message]:
        """Yield the messages in an owner's inbox, the newest first, page by page.

        >>> [message.title for message in client.inbox("ada")]
        ['Failed: Water the plants', 'Do not forget']
        """
        path = f"/v1/inboxes/{quote(owner, safe='')}/messages"
        return Listing(path, "messages", {}, reader(Message))

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

        >>> draft = client.draft("remind me of tea every Monday at 9", timezone="Europe/Paris")
        >>> task = client.confirm(draft)
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
    def confirm(self, draft: DraftResult) -> Flow[TaskView]:
        """Store a draft: create its task, or do to its task what it shows. It is safe to repeat.

        A deleted task is returned as it was, and not found by a repetition.

        Raises:
            InvalidInput: The draft has no token, because something is missing, or it is older than 15 minutes.
            PreconditionFailed: The task has changed since.

        >>> draft = client.draft("remind me of tea every Monday at 9", timezone="Europe/Paris")
        >>> print(client.confirm(draft).next_execution_time)
        2027-01-04 08:00:00+00:00
        """
        content = draft.require_complete()
        if draft.task_id is None:
            return parse_task((yield ApiRequest("POST", "/v1/tasks", content, is_idempotent=True)))
        return parse_task((yield ApiRequest("PATCH", task_path(draft.task_id), content, is_idempotent=True)))


def _to_text(time: datetime | str | None) -> str | None:
    return time.isoformat() if isinstance(time, datetime) else time


def task_path(task_id: str) -> str:
    """Return the path of a task."""
    return f"/v1/tasks/{quote(task_id, safe='')}"


def _create(fields: Mapping[str, Any], key: str | None) -> Flow[TaskView]:
    headers = {} if fields.get("id") is not None else {"Idempotency-Key": choose_key(key)}
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
    path = f"{task_path(task_id)}/{verb}"
    headers = _write_conditions(etag, key)
    return parse_task((yield ApiRequest("POST", path, content, query, headers, is_idempotent=True)))


def _write_conditions(etag: str | None, key: str | None) -> dict[str, str]:
    """Return the headers that identify the state that a change applies to, and the request."""
    return {"Idempotency-Key": choose_key(key), **given(**{"If-Match": etag})}
