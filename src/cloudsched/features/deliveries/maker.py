"""The deliveries that the end of a run creates.

They follow from the task and its result alone: nothing more is read.

There is one for each channel that the task names, besides its owner's inbox. What a success says is one
message (`notices`), and one that says nothing has none. A failure of which the owner is told is one, too.
The callback of a task (`on_completion`) is one more, and reports every end of an execution.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.authority import SYSTEM_OWNER, Requesters
from cloudsched.domain.documents.delivery_channels import (
    COMPLETION,
    DELIVERY_HANDLER,
    PING,
    SENDER_NAMES,
    SENT_CHANNELS,
    Delivery,
    DeliveryChannel,
    derive_delivery_id,
)
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ExecutionError, ExecutionStatus, Run
from cloudsched.domain.documents.json_limits import json_size, truncate
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.task import Parent, Task
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.notices import (
    MAX_BODY,
    InboxMessage,
    describe_failure,
    find_lateness,
    find_recovery,
    find_said,
)
from cloudsched.domain.transitions.outcome import Cancel, Done, Fail, Retry
from cloudsched.domain.transitions.run_records import derive_message_id
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.features.deliveries.fields import PingEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.documents.execution import Message
    from cloudsched.domain.transitions.finish import AttemptReport

MAX_DATA: Final = 100_000
"""The largest result, in bytes of JSON, that is part of the data for programs."""
_RETRY: Final = RetryPolicy.build(
    max_retries=9,
    first_delay=timedelta(seconds=5),
    base=timedelta(minutes=5),
    factor=4.0,
    cap=timedelta(hours=16),
)
"""Ten attempts over three days, as the Standard Webhooks specification recommends."""
_RETRY_MOBILE: Final = _RETRY.model_copy(update={"first_delay": timedelta(seconds=10)})
"""Firebase Cloud Messaging asks for ten seconds before the first retry."""
_RETRY_PING: Final = RetryPolicy.build(
    max_retries=6,
    first_delay=timedelta(seconds=5),
    base=timedelta(seconds=30),
    factor=2.0,
    cap=timedelta(minutes=15),
)
_PING_EXPIRATION: Final = timedelta(hours=1)
_START_EXPIRATION: Final = timedelta(minutes=1)
_EXPIRATION: Final = timedelta(days=3)
"""A message that did not even begin to be sent by then is not news any more."""
_FAILURE: Final = "FAILURE"
"""Precedes the channel in the text that makes the id of a failure's delivery: a retry may succeed."""
_ATTEMPT: Final = timedelta(minutes=3)
"""The longest duration of one attempt: several answers of a slow mail server."""


@dataclass(frozen=True, slots=True)
class DeliveryMaker:
    """Makes the deliveries of executions."""

    make_name: Callable[[str], str]
    """Returns a name that nobody can guess, the same for the same text."""
    retention: timedelta | None
    """The retention of an ended delivery, if its task has none of its own."""
    tells_errors: Callable[[str], bool]
    """Returns whether owners are told the text of a handler's errors."""

    def tells_error(self, task: Task, channel: str = "") -> bool:
        """Return whether the text of a task's error may be in a message by that channel."""
        return channel == DeliveryChannel.OPERATOR or task.owner == SYSTEM_OWNER or self.tells_errors(task.handler)

    def make_all(
        self,
        task: Task,
        run: Run,
        report: AttemptReport,
        now: datetime,
        after: Task,
        status: ExecutionStatus | None,
    ) -> tuple[Task, ...]:
        """Return the deliveries of an attempt: its result's if it succeeds, and the callback of an execution's end.

        `after` is the task as the attempt leaves it. `status` is the final status of its execution, or
        None if it goes on.
        """
        made = list[Task]()
        if isinstance(report.outcome, Done):
            done = report.outcome
            said = (*find_said(task, done, report.notices), *find_recovery(task, after))
            if said:
                content = None if done.silent else done.content
                payload = _build_payload(task, run.execution_id, content, said)
                late = find_lateness(task, run)
                ids = {each: _derive_id(task, run.execution_id, each) for each in _list_sent(task)}
                for channel, delivery_id in ids.items():
                    siblings = tuple(each for each in ids.values() if each != delivery_id)
                    made.append(
                        self._make(task, run.execution_id, channel, payload, now, siblings=siblings, late=late),
                    )
        if task.on_completion is not None and status is not None:
            payload = _build_callback_payload(task, run.execution_id, report, status)
            made.append(self._make_callback(task, run.execution_id, payload, now, task.find_author(run)))
        return tuple(made)

    def make_callback(self, task: Task, record: Execution, now: datetime) -> Task:
        """Return the callback of an execution that ended without a report of its attempt: its record says how.

        The task has a callback.
        """
        payload = _build_failure(task, record)
        return self._make_callback(task, record.id, payload, now, record.defined_by)

    def make_failures(self, task: Task, record: Execution, now: datetime) -> tuple[Task, ...]:
        """Return the deliveries that tell of a failure, one for each channel."""
        return tuple(
            self._make(
                *(task, record.id, each, self._build_told(task, record, each), now),
                key=f"{_FAILURE} {each}",
                is_failure=True,
            )
            for each in _list_sent(task)
        )

    def _build_told(self, task: Task, record: Execution, channel: DeliveryChannel) -> dict[str, Any]:
        tells_error = self.tells_error(task, channel)
        message = describe_failure(task, record, tells_error=tells_error)
        payload = _build_failure(task, record)
        if not tells_error:
            payload = _without_error(payload)
        return {**payload, "title": message.title, "body": message.body}

    def make_notice(
        self, task: Task, about: str, channel: DeliveryChannel, message: InboxMessage, now: datetime
    ) -> Task:
        """Return the delivery of what its owner is told of once, by one channel, whichever task tells it."""
        execution_id = task.last_execution_id or about
        payload = {"title": message.title, "body": message.body, "data": _to_ids(task, execution_id)}
        made = self._make(task, execution_id, channel, payload, now, key=about, is_failure=True)
        origin = json.dumps([task.owner, about, channel])
        title = f"{channel}: {message.title}"[:500]
        return made.model_copy(update={"id": f"d{hashlib.sha256(origin.encode()).hexdigest()[:31]}", "title": title})

    def make_question(self, task: Task, message: Message, channel: DeliveryChannel, now: datetime) -> Task:
        """Return the delivery that asks a person what their inbox asks. It says nothing else of the task."""
        data = {"taskId": task.id, "executionId": message.execution_id, "event": message.event}
        if message.until is not None:
            data["until"] = message.until.isoformat()
        payload = {"title": message.title, "body": message.body or message.title, "data": data, "kind": "question"}
        made = self._make(
            task,
            message.execution_id,
            channel,
            payload,
            now,
            key=_question_key(channel, message.event or "", message.created_at),
            recipient=message.owner,
            asks=message.id,
            asked_at=message.created_at,
        )
        if made.retention is None:
            return made
        # A button names it, so it stays as long as it can be pressed.
        wait = None if message.until is None else made.retention + max(message.until - now, timedelta(0))
        return made.model_copy(update={"retention": wait})

    def make_ping(
        self, task: Task, execution_id: str, event: PingEvent, now: datetime, author: Requesters | None
    ) -> Task | None:
        """Return the delivery that tells a task's switch of an event, or None if it has no address for that.

        A switch needs present news: a ping that cannot be sent for an hour is given up, a start after a
        minute.
        """
        url = None if task.ping is None else task.ping.address(event)
        if url is None:
            return None
        text = f"{event} task={task.id} execution={execution_id}"
        payload = {
            "title": task.title,
            "body": text,
            "kind": f"ping.{event}",
            "data": _to_ids(task, execution_id),
        }
        limits: dict[str, Any] = {"retry": _RETRY_PING, "expiration": _PING_EXPIRATION}
        if event is PingEvent.START:
            limits = {"retry": RetryPolicy.build(max_retries=1), "expiration": _START_EXPIRATION}
        key = f"{PING} {event}"
        is_users = Requesters.USERS in {author, task.defined_by}
        made = self._make(task, execution_id, PING, payload, now, key=key, url=url, is_users_url=is_users)
        return made.model_copy(update=limits)

    def _make_callback(
        self, task: Task, execution_id: str, payload: dict[str, Any], now: datetime, author: Requesters | None
    ) -> Task:
        """Return a callback.

        It counts as a user's if a user wrote its address, or anything that its execution ran.
        """
        assert task.on_completion is not None  # noqa: S101 - both callers have looked
        url = task.on_completion.webhook
        is_users = Requesters.USERS in {author, task.defined_by}
        if is_users and not self.tells_error(task):
            payload = _without_error(payload)
        return self._make(task, execution_id, COMPLETION, payload, now, url=url, is_users_url=is_users)

    def _make(
        self,
        task: Task,
        execution_id: str,
        channel: str,
        payload: dict[str, Any],
        now: datetime,
        *,
        key: str = "",
        recipient: str | None = None,
        **more: Any,
    ) -> Task:
        from cloudsched.domain.transitions.edits import new_task  # noqa: PLC0415 - few dispatches deliver anything

        to = recipient or task.owner
        delivery_id = derive_delivery_id(task.id, task.created_at, execution_id, key or channel, to)
        delivery = Delivery(
            channel=channel,
            task_id=task.id,
            execution_id=execution_id,
            category=task.category,
            created_at=now,
            message_id=self.make_name(f"message {delivery_id}"),
            thread=self.make_name(f"thread {json.dumps([task.id, task.created_at.isoformat()])}"),
            **more,
        )
        draft = TaskDraft(
            id=delivery_id,
            owner=to,
            title=f"{channel}: {payload['title'] if recipient else task.title}"[:500],
            handler=DELIVERY_HANDLER,
            category=task.category,
            payload=payload,
            schedule=Schedule.once(now),
            retry=_RETRY_MOBILE if channel == DeliveryChannel.MOBILE else _RETRY,
            expiration=_EXPIRATION,
            expected_duration=_ATTEMPT,
            retention=task.retention or self.retention,
            execution_retention=task.execution_retention,
        )
        depth = 1 if task.parent is None else task.parent.depth + 1
        parent = Parent(task_id=task.id, execution_id=execution_id, step=0, depth=depth)
        return new_task(draft, now).model_copy(update={"delivery": delivery, "parent": parent})


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


def _question_key(channel: str, event: str, asked_at: datetime) -> str:
    return f"QUESTION {channel} {event} {asked_at.isoformat()}"


def _list_question_ids(task: Task, execution_id: str) -> list[str]:
    """Return the ids of the deliveries of the question that an execution asks now."""
    run = task.find_run(execution_id)
    wait = None if run is None else run.wait_for_event
    if wait is None or wait.asked_at is None:
        return []
    return [
        derive_delivery_id(task.id, task.created_at, execution_id, _question_key(channel, event, wait.asked_at), person)
        for channel in wait.channels
        for event in wait.events
        for person in wait.people
    ]


def _kind_of(status: ExecutionStatus) -> str:
    return f"execution.{status.lower()}"


def delivery_ids(task: Task, execution_id: str) -> list[str]:
    """Return the ids of all deliveries that an execution of the task can have."""
    events = () if task.ping is None else tuple(f"{PING} {each}" for each in PingEvent)
    failures = tuple(f"{_FAILURE} {each}" for each in SENT_CHANNELS)
    made = [_derive_id(task, execution_id, each) for each in (*SENDER_NAMES, *failures, *events) if each != PING]
    return [*made, *_list_question_ids(task, execution_id)]


def _list_sent(task: Task) -> tuple[DeliveryChannel, ...]:
    """Return the task's channels to which something is sent: all but the inbox."""
    return tuple(each for each in dict.fromkeys(task.delivery_channels) if each.traits.is_sent)


def _derive_id(task: Task, execution_id: str, channel: str) -> str:
    return derive_delivery_id(task.id, task.created_at, execution_id, channel, task.owner)


def _build_payload(
    task: Task,
    execution_id: str,
    content: object,
    said: Sequence[InboxMessage],
) -> dict[str, Any]:
    """Return the payload of a message with what a success says, and `content` for programs."""
    first, *others = said
    text = "\n\n".join([first.body, *(f"{each.title}\n{each.body}" for each in others)])
    data: dict[str, Any] = {**_to_ids(task, execution_id), "content": content}
    if json_size(content) > MAX_DATA:
        data["content"] = None
        data["isContentOmitted"] = True
    return {"title": first.title, "body": truncate(text, MAX_BODY), "data": data}


def _build_failure(task: Task, record: Execution) -> dict[str, Any]:
    """Return the payload of what programs are told of an execution that ended without a result."""
    reason = record.message
    kind = record.status.title().replace("_", "")
    if record.error is not None:
        reason = reason or record.error.message
        kind = record.error.type
    reason = truncate(reason or "", MAX_BODY)
    error = {"type": kind, "message": reason}
    data = {**_to_ids(task, record.id), "content": None, "status": record.status, "error": error}
    title = task.delivery_title or task.title
    return {"title": title, "body": reason, "data": data, "kind": _kind_of(record.status)}


def _without_error(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a failure without what its error says."""
    if payload["data"]["status"] not in FAILURE_STATUSES:
        return payload
    data = {name: value for name, value in payload["data"].items() if name != "error"}
    return {**payload, "body": "It has failed.", "data": data}


def _to_ids(task: Task, execution_id: str) -> dict[str, str]:
    """Return the ids that a result belongs to, with the task's chat and the message's id there."""
    ids = {"taskId": task.id, "executionId": execution_id}
    if task.source is not None and task.source.chat_id is not None:
        ids |= {"chatId": task.source.chat_id, "messageId": derive_message_id(task.id, execution_id)}
    return ids


def _build_callback_payload(
    task: Task, execution_id: str, report: AttemptReport, status: ExecutionStatus
) -> dict[str, Any]:
    """Return the payload for a program.

    Its `kind` is ``execution.succeeded``, ``execution.failed`` and so on.
    """
    done = report.outcome if isinstance(report.outcome, Done) else Done()
    said = find_said(task, done, report.notices) or (InboxMessage(task.delivery_title or task.title, ""),)
    payload = _build_payload(task, execution_id, done.content, said)
    data = {**payload["data"], "status": status}
    if isinstance(report.outcome, Retry | Fail | Cancel):
        reason = report.outcome.reason
        error = report.error or ExecutionError(type=type(report.outcome).__name__, message=reason)
        data["error"] = {"type": error.type, "message": truncate(error.message, MAX_BODY)}
        payload["body"] = data["error"]["message"]
    return {**payload, "data": data, "kind": _kind_of(status)}
