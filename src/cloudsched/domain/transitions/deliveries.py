"""Which deliveries a success creates. That follows from the task and its result alone, so nothing more is read.

There is one for each channel that the task names, besides its owner's inbox, which has everything. What a handler
notified is one message; without notices it is the result.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery import DELIVERY_HANDLER, Delivery, derive_delivery_id
from cloudsched.domain.documents.json_limits import json_size, truncate
from cloudsched.domain.documents.outcome import Done
from cloudsched.domain.documents.policy import RetryPolicy
from cloudsched.domain.documents.task import DeliveryChannel, Parent
from cloudsched.domain.recurrence.schedule import Schedule
from cloudsched.domain.transitions.drafts import TaskDraft
from cloudsched.domain.transitions.edits import LeadTimes, new_task

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport, InboxMessage

MAX_BODY: Final = 100_000
"""How many bytes of text one delivery has. The whole result is in its execution."""
MAX_DATA: Final = 100_000
"""The largest result, in bytes of JSON, that is part of what programs receive."""
_RETRY: Final = RetryPolicy(
    max_retries=9, first_delay=timedelta(seconds=5), base=timedelta(minutes=5), factor=4, cap=timedelta(hours=16)
)
"""Ten attempts over three days, as the Standard Webhooks specification recommends."""
_RETRY_MOBILE: Final = _RETRY.model_copy(update={"first_delay": timedelta(seconds=10)})
"""Firebase Cloud Messaging asks for ten seconds before the first retry."""
_EXPIRATION: Final = timedelta(days=3)
"""What did not even begin to be sent by then is not news any more."""
_ATTEMPT: Final = timedelta(minutes=3)
"""How long one attempt may take: several answers of a slow mail server."""


def plan_deliveries(
    task: Task,
    run: Run,
    report: AttemptReport,
    now: datetime,
    make_name: Callable[[str], str],
    retention: timedelta | None,
) -> tuple[Task, ...]:
    """Return the deliveries of an attempt that is about to succeed; none if it does not.

    Args:
        task: The task.
        run: The run.
        report: How its attempt ended.
        now: When.
        make_name: Returns a name that nobody can guess, the same for the same text.
        retention: How long an ended delivery is kept, if the task does not say how long it is kept itself.
    """
    channels = [each for each in dict.fromkeys(task.delivery_channels) if each is not DeliveryChannel.WEB]
    if not channels or not isinstance(report.outcome, Done):
        return ()
    payload = _build_payload(task, run, report, report.outcome.content)
    ids = {each: _derive_id(task, run, each) for each in channels}
    return tuple(
        _new_delivery(
            task,
            delivery_id,
            Delivery(
                channel=channel,
                task_id=task.id,
                execution_id=run.execution_id,
                category=task.category,
                created_at=now,
                message_id=make_name(f"message {delivery_id}"),
                thread=make_name(f"thread {json.dumps([task.id, task.created_at.isoformat()])}"),
                siblings=tuple(each for each in ids.values() if each != delivery_id),
            ),
            payload,
            retention,
            now,
        )
        for channel, delivery_id in ids.items()
    )


def delivery_ids(task: Task, execution_id: str) -> list[str]:
    """Return the ids of all deliveries that an execution of the task can have."""
    channels = [each for each in DeliveryChannel if each is not DeliveryChannel.WEB]
    return [derive_delivery_id(task.id, task.created_at, execution_id, each, task.owner) for each in channels]


def _derive_id(task: Task, run: Run, channel: DeliveryChannel) -> str:
    return derive_delivery_id(task.id, task.created_at, run.execution_id, channel, task.owner)


def _build_payload(task: Task, run: Run, report: AttemptReport, content: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    first, *others = report.notices or (None,)
    title = task.delivery_title or task.title
    data: dict[str, Any] = {"taskId": task.id, "executionId": run.execution_id, "content": content}
    if json_size(content) > MAX_DATA:
        data["content"] = None
        data["isContentOmitted"] = True
    if first is None:
        text = "" if content is None else content if isinstance(content, str) else _format_json(content)
    else:
        title, text = first.title, "\n\n".join([first.body, *(_format_notice(each) for each in others)])
    return {"title": title, "body": truncate(text, MAX_BODY), "data": data}


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
    created = new_task(draft, now, LeadTimes()).task
    return created.model_copy(update={"delivery": delivery, "parent": parent})
