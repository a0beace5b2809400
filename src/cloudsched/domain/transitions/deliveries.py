"""The deliveries that a success creates. They follow from the task and its result alone, so nothing more is read.

There is one for each channel that the task names, besides its owner's inbox, which has everything. The notices of a
handler are one message. Without notices, the result is the message. The callback of a task (`on_completion`) is one
more, and reports every end of an execution.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, assert_never

from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.documents.delivery import (
    COMPLETION,
    DELIVERY_HANDLER,
    PING,
    SENDER_NAMES,
    Delivery,
    DeliveryChannel,
    PingEvent,
    derive_delivery_id,
)
from cloudsched.domain.documents.execution import Execution, ExecutionError, ExecutionStatus, Run
from cloudsched.domain.documents.json_limits import json_size, truncate
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.task import Parent, Task
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.domain.transitions.edits import new_task
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Retry
from cloudsched.domain.transitions.run_records import derive_message_id, find_chat

if TYPE_CHECKING:
    from cloudsched.domain.transitions.finish import AttemptReport, InboxMessage

MAX_BODY: Final = 100_000
"""The most bytes of text of one delivery. The whole result is in its execution."""
MAX_DATA: Final = 100_000
"""The largest result, in bytes of JSON, that is part of the data for programs."""
_RETRY: Final = RetryPolicy.build(
    max_retries=9, first_delay=timedelta(seconds=5), base=timedelta(minutes=5), factor=4.0, cap=timedelta(hours=16)
)
"""Ten attempts over three days, as the Standard Webhooks specification recommends."""
_RETRY_MOBILE: Final = _RETRY.model_copy(update={"first_delay": timedelta(seconds=10)})
"""Firebase Cloud Messaging asks for ten seconds before the first retry."""
_RETRY_PING: Final = RetryPolicy.build(
    max_retries=6, first_delay=timedelta(seconds=5), base=timedelta(seconds=30), factor=2.0, cap=timedelta(minutes=15)
)
_PING_EXPIRATION: Final = timedelta(hours=1)
_START_EXPIRATION: Final = timedelta(minutes=1)
_EXPIRATION: Final = timedelta(days=3)
"""A message that did not even begin to be sent by then is not news any more."""
_ATTEMPT: Final = timedelta(minutes=3)
"""The longest duration of one attempt: several answers of a slow mail server."""


NOT_DELIVERED: Final = "Not delivered by "
"""The first words of an execution's message if its result has not reached anybody by a channel."""


def say_undelivered(channel: str, why: str) -> str:
    """Return the sentence in the record of an execution about a delivery that has not been sent."""
    return f"{NOT_DELIVERED}{channel}: {why.rstrip('.')}."


def is_undelivered(execution: Execution) -> bool:
    """Return whether an execution has succeeded, and its result has not reached anybody by one of its channels."""
    return execution.status is ExecutionStatus.SUCCEEDED and (execution.message or "").startswith(NOT_DELIVERED)


def plan_deliveries(
    task: Task,
    run: Run,
    report: AttemptReport,
    now: datetime,
    *,
    status: ExecutionStatus | None,
    make_name: Callable[[str], str],
    retention: timedelta | None,
) -> tuple[Task, ...]:
    """Return the deliveries of an attempt: of its result if it succeeds, and the callback if its execution ends.

    Args:
        task: The task.
        run: The run.
        report: The end of its attempt.
        now: The time of the end.
        status: The final status of its execution, or None if it goes on.
        make_name: Returns a name that nobody can guess, the same for the same text.
        retention: The retention of an ended delivery, if the task has none of its own.
    """
    is_success = isinstance(report.outcome, Done)
    named = [each for each in dict.fromkeys(task.delivery_channels) if each.traits.is_sent]
    channels: list[str] = list(named) if is_success else []
    callback = task.on_completion if status is not None else None
    if not channels and callback is None:
        return ()
    ids = {each: _derive_id(task, run.execution_id, each) for each in channels}
    made: list[Task] = []
    if channels:
        payload = _build_payload(task, run.execution_id, report)
        for channel, delivery_id in ids.items():
            siblings = tuple(each for each in ids.values() if each != delivery_id)
            delivery = _describe(task, run.execution_id, channel, make_name, now, siblings)
            made.append(_new_delivery(task, delivery_id, delivery, payload, retention, now))
    if callback is not None and status is not None:
        payload = _build_callback_payload(task, run.execution_id, report, status)
        author = task.find_author(run)
        made.append(_new_callback(task, run.execution_id, payload, make_name, retention, now, author=author))
    return tuple(made)


def plan_callback(
    task: Task, record: Execution, now: datetime, *, make_name: Callable[[str], str], retention: timedelta | None
) -> Task:
    """Return the callback of an execution that has ended without an attempt's own word.

    Args:
        task: The task, which has a callback.
        record: The final record of the execution.
        now: The time at which it ended.
        make_name: Returns a name that nobody can guess, the same for the same text.
        retention: As for `plan_deliveries`.
    """
    reason = truncate(record.message or (record.error.message if record.error is not None else ""), MAX_BODY)
    kind = record.error.type if record.error is not None else record.status.title().replace("_", "")
    data: dict[str, Any] = {**_to_ids(task, record.id), "content": None, "status": record.status}
    data["error"] = {"type": kind, "message": reason}
    payload = {"title": task.delivery_title or task.title, "body": reason, "data": data}
    payload["kind"] = _kind_of(record.status)
    return _new_callback(task, record.id, payload, make_name, retention, now, author=record.defined_by)


def find_ping_event(status: ExecutionStatus) -> PingEvent | None:
    """Return the ping for an execution of this final status, or None if it neither ran nor was missed."""
    match status:
        case ExecutionStatus.SUCCEEDED:
            return PingEvent.SUCCESS
        case ExecutionStatus.FAILED | ExecutionStatus.TIMED_OUT | ExecutionStatus.EXPIRED:
            return PingEvent.FAILURE
        case ExecutionStatus.CANCELLED | ExecutionStatus.SKIPPED:
            return None
        case ExecutionStatus.RUNNING | ExecutionStatus.RETRYING | ExecutionStatus.SUSPENDED:
            return None
        case unknown:
            assert_never(unknown)


def plan_ping(
    task: Task,
    execution_id: str,
    event: PingEvent,
    now: datetime,
    *,
    author: Requesters | None,
    make_name: Callable[[str], str],
    retention: timedelta | None,
) -> Task | None:
    """Return the delivery that tells a task's switch of an event, or None if it has no address for that.

    A switch needs present news: a ping that cannot be sent for an hour is given up, a start after a minute.
    """
    url = None if task.ping is None else task.ping.address(event)
    if url is None:
        return None
    delivery = _describe(task, execution_id, PING, make_name, now, ())
    is_users = Requesters.USERS in {author, task.defined_by}
    delivery_id = _derive_id(task, execution_id, f"{PING} {event}")
    message_id = make_name(f"message {delivery_id}")
    delivery = delivery.model_copy(update={"url": url, "is_users_url": is_users, "message_id": message_id})
    text = f"{event} task={task.id} execution={execution_id}"
    payload = {"title": task.title, "body": text, "kind": f"ping.{event}", "data": _to_ids(task, execution_id)}
    created = _new_delivery(task, delivery_id, delivery, payload, retention, now)
    limits = {"retry": _RETRY_PING, "expiration": _PING_EXPIRATION}
    if event is PingEvent.START:
        limits = {"retry": RetryPolicy.build(max_retries=1), "expiration": _START_EXPIRATION}
    return created.model_copy(update=limits)


def _kind_of(status: ExecutionStatus) -> str:
    return f"execution.{status.lower()}"


def _describe(
    task: Task,
    execution_id: str,
    channel: str,
    make_name: Callable[[str], str],
    now: datetime,
    siblings: tuple[str, ...],
) -> Delivery:
    delivery_id = _derive_id(task, execution_id, channel)
    return Delivery(
        channel=channel,
        task_id=task.id,
        execution_id=execution_id,
        category=task.category,
        created_at=now,
        message_id=make_name(f"message {delivery_id}"),
        thread=make_name(f"thread {json.dumps([task.id, task.created_at.isoformat()])}"),
        siblings=siblings,
    )


def _new_callback(
    task: Task,
    execution_id: str,
    payload: dict[str, Any],
    make_name: Callable[[str], str],
    retention: timedelta | None,
    now: datetime,
    *,
    author: Requesters | None,
) -> Task:
    """Return a callback. It counts as a user's if a user wrote its address, or anything that its execution ran."""
    assert task.on_completion is not None  # noqa: S101 - both callers have looked
    is_users = Requesters.USERS in {author, task.defined_by}
    delivery = _describe(task, execution_id, COMPLETION, make_name, now, ())
    delivery = delivery.model_copy(update={"url": task.on_completion.webhook, "is_users_url": is_users})
    return _new_delivery(task, _derive_id(task, execution_id, COMPLETION), delivery, payload, retention, now)


def delivery_ids(task: Task, execution_id: str) -> list[str]:
    """Return the ids of all deliveries that an execution of the task can have."""
    events = () if task.ping is None else tuple(f"{PING} {each}" for each in PingEvent)
    return [_derive_id(task, execution_id, each) for each in (*SENDER_NAMES, *events) if each != PING]


def _derive_id(task: Task, execution_id: str, channel: str) -> str:
    return derive_delivery_id(task.id, task.created_at, execution_id, channel, task.owner)


def _build_payload(task: Task, execution_id: str, report: AttemptReport) -> dict[str, Any]:
    content = report.outcome.content if isinstance(report.outcome, Done) else None
    first, *others = report.notices or (None,)
    title = task.delivery_title or task.title
    data: dict[str, Any] = {**_to_ids(task, execution_id), "content": content}
    if json_size(content) > MAX_DATA:
        data["content"] = None
        data["isContentOmitted"] = True
    if first is None:
        text = "" if content is None else content if isinstance(content, str) else _format_json(content)
    else:
        title, text = first.title, "\n\n".join([first.body, *(_format_notice(each) for each in others)])
    return {"title": title, "body": truncate(text, MAX_BODY), "data": data}


def _to_ids(task: Task, execution_id: str) -> dict[str, str]:
    """Return the ids that a result belongs to, with the task's chat and the message's id there."""
    ids = {"taskId": task.id, "executionId": execution_id}
    chat = find_chat(task)
    return ids if chat is None else {**ids, "chatId": chat, "messageId": derive_message_id(task.id, execution_id)}


def _build_callback_payload(
    task: Task, execution_id: str, report: AttemptReport, status: ExecutionStatus
) -> dict[str, Any]:
    """Return the payload for a program. Its `kind` is ``execution.succeeded``, ``execution.failed`` and so on."""
    payload = _build_payload(task, execution_id, report)
    data = {**payload["data"], "status": status}
    if isinstance(report.outcome, Retry | Fail | Cancel):
        reason = report.outcome.reason
        error = report.error or ExecutionError(type=type(report.outcome).__name__, message=reason)
        data["error"] = {"type": error.type, "message": truncate(error.message, MAX_BODY)}
        payload["body"] = data["error"]["message"]
    return {**payload, "data": data, "kind": _kind_of(status)}


def _format_notice(notice: InboxMessage) -> str:
    return f"{notice.title}\n{notice.body}"


def _format_json(content: Any) -> str:  # noqa: ANN401 - any JSON
    return json.dumps(content, ensure_ascii=False, indent=2)


def _new_delivery(
    task: Task,
    delivery_id: str,
    delivery: Delivery,
    payload: dict[str, Any],
    retention: timedelta | None,
    now: datetime,
) -> Task:
    draft = TaskDraft(
        id=delivery_id,
        owner=task.owner,
        title=f"{delivery.channel}: {task.title}"[:500],
        handler=DELIVERY_HANDLER,
        category=task.category,
        payload=payload,
        schedule=Schedule.once(now),
        retry=_RETRY_MOBILE if delivery.channel == DeliveryChannel.MOBILE else _RETRY,
        expiration=_EXPIRATION,
        expected_duration=_ATTEMPT,
        retention=task.retention or retention,
        execution_retention=task.execution_retention,
    )
    depth = 1 if task.parent is None else task.parent.depth + 1
    parent = Parent(task_id=task.id, execution_id=delivery.execution_id, step=0, depth=depth)
    created = new_task(draft, now)
    return created.model_copy(update={"delivery": delivery, "parent": parent})
