"""The progress of an execution's deliveries: what their tasks and records say, in the words of people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.delivery_channels import PING, Delivery, DeliveryStatus
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.task import Task, TaskStatus, Trouble
from cloudsched.domain.explanation.findings import Undelivered
from cloudsched.domain.responses.api_responses import DeliveryReport
from cloudsched.domain.transitions.notices import LATE
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import Page
from cloudsched.features.deliveries.maker import delivery_ids

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution
    from cloudsched.engine.ports.store import Store

_ENDS: Final = complete_table(
    TaskStatus,
    {
        TaskStatus.ACTIVE: None,
        TaskStatus.PAUSED: None,
        TaskStatus.COMPLETED: DeliveryStatus.SENT,
        TaskStatus.FAILED: DeliveryStatus.FAILED,
        TaskStatus.EXPIRED: DeliveryStatus.EXPIRED,
        TaskStatus.CANCELLED: DeliveryStatus.SUPPRESSED,
    },
)
"""The progress of a delivery whose task has ended."""


def report_deliveries(store: Store, task: Task, execution_id: str) -> list[DeliveryReport]:
    """Return the deliveries of an execution, by channel.

    Their ids follow from the task, so that no list is read: the tasks in one round trip, then the record of each.
    """
    made = _load_deliveries(store, task, execution_id)
    return [_report(each, delivery, _load_record(store, each)) for each, delivery in made]


def list_deliveries(
    store: Store, owner: str | None, limit: int, page_token: str | None = None
) -> Page[tuple[Task, DeliveryReport]]:
    """Return a page of an owner's deliveries, or all owners' failed ones. Two reads each. Raises InvalidInput."""
    query = TaskQuery(owner, is_delivery=True) if owner is not None else TaskQuery(owner=None, trouble=Trouble.DELIVERY)
    page = store.list_tasks(query, limit=limit, page_token=page_token)
    items = [(each, _report(each, each.delivery, _load_record(store, each))) for each in page.items if each.delivery]
    return Page(items, page.next_page_token, page.unreadable, page.passed_over)


def find_undelivered(store: Store, task: Task, executions: Sequence[Execution], now: datetime) -> list[Undelivered]:
    """Return the deliveries of some executions that have not arrived, and of which more than a moment has passed.

    A ping tells a program, which looks after itself. Reads what `report_deliveries` does, for each execution.
    """
    found = list[Undelivered]()
    for execution in executions if task.has_deliveries else ():
        for each, delivery in _load_deliveries(store, task, execution.id):
            status = _find_status(each)
            is_new = status in {DeliveryStatus.PENDING, DeliveryStatus.SENDING} and now - delivery.created_at <= LATE
            if status is DeliveryStatus.SENT or is_new or delivery.channel == PING:
                continue
            report = _report(each, delivery, _load_record(store, each))
            found.append(
                Undelivered(
                    execution_id=execution.id,
                    scheduled_for=execution.scheduled_for,
                    channel=delivery.channel,
                    status=status,
                    since=delivery.created_at,
                    reason=report.reason,
                    next_attempt_at=each.runs[0].due_at if status is DeliveryStatus.RETRYING else None,
                )
            )
    return found


def _load_deliveries(store: Store, task: Task, execution_id: str) -> list[tuple[Task, Delivery]]:
    found = [each.task for each in store.load_many(delivery_ids(task, execution_id))]
    made = [(each, each.delivery) for each in found if each.delivery is not None and each.deleted_at is None]
    return sorted(made, key=lambda pair: pair[1].channel)


def _load_record(store: Store, task: Task) -> Execution | None:
    execution_id = task.runs[0].execution_id if task.runs else task.last_execution_id
    return None if execution_id is None else store.load_execution(task.id, execution_id)


def _report(task: Task, delivery: Delivery, record: Execution | None) -> DeliveryReport:
    is_sent, reason = task.status is TaskStatus.COMPLETED, None
    if not is_sent and record is not None:
        reason = record.error.message if record.message is None and record.error is not None else record.message
    return DeliveryReport(
        channel=delivery.channel,
        status=_find_status(task),
        attempts=0 if record is None else record.attempt_count,
        sent_at=record.finished_at if is_sent and record is not None else None,
        message_id=_read_message_id(record) if is_sent else None,
        reason=reason,
    )


def _find_status(task: Task) -> DeliveryStatus:
    if (end := _ENDS[task.status]) is not None:
        return end
    if not task.runs or task.runs[0].started_at is None:
        return DeliveryStatus.PENDING
    return DeliveryStatus.RETRYING if task.runs[0].lease is None else DeliveryStatus.SENDING


def _read_message_id(record: Execution | None) -> str | None:
    content: Any = None if record is None else record.content
    found = content.get("messageId") if isinstance(content, dict) else None
    return found if isinstance(found, str) else None
