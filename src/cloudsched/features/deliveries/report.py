"""The progress of an execution's deliveries: what their tasks and records say, in the words of people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.delivery_channels import PING, Delivery, DeliveryChannel, DeliveryStatus
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.run_counts import is_late
from cloudsched.domain.documents.task import Task, TaskStatus, Trouble
from cloudsched.domain.explanation.findings import Undelivered
from cloudsched.domain.responses.api_responses import DeliveryReport
from cloudsched.domain.transitions.needs import find_trouble
from cloudsched.domain.transitions.run_records import derive_message_id
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.storage.pages import Page, make_token, read_token, start_before
from cloudsched.features.deliveries.maker import delivery_ids

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

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
    """Return the deliveries of an execution, by channel, and the message in the inbox that tells of its failure.

    Their ids follow from the task, so that no list is read: the tasks in one round trip, then the record of
    each, and the message.
    """
    reports = [report_delivery(store, each) for each, _ in _load_deliveries(store, task, execution_id)]
    told = store.inbox.get(task.owner, derive_message_id(task.id, execution_id, 0))
    if told is not None:
        reports.append(
            DeliveryReport(
                **told.model_dump(include={"id", "owner", "title", "task_id", "execution_id", "created_at"}),
                channel=DeliveryChannel.WEB,
                status=DeliveryStatus.SENT,
                is_failure=True,
                attempts=1,
                sent_at=told.created_at,
            )
        )
    return reports


def list_deliveries(  # noqa: PLR0913 - a list, its filters, and the position in it
    store: Store,
    owner: str | None,
    *,
    channel: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    unreached: bool = False,
    limit: int,
    page_token: str | None = None,
) -> Page[DeliveryReport]:
    """Return a page of an owner's deliveries, or of all owners' those that have reached nobody yet.

    Those are in two lists, which become one: as far as both were read. With `unreached` only those for which no
    address could be used. Two reads each. Raises InvalidInput.
    """
    troubles = [Trouble.UNREACHED] if unreached else [Trouble.UNREACHED, Trouble.DELIVERY]
    queries = [TaskQuery(owner, trouble=each, channel=channel) for each in troubles]
    if owner is not None and not unreached:
        queries = [TaskQuery(owner, is_delivery=True, channel=channel)]
    token = start_before(queries, until, page_token)
    start = token and read_token(queries, token)
    pages = [store.list_tasks(each, limit=limit, page_token=start and make_token(each, *start)) for each in queries]
    ends = [read_token(queries[at], each.next_page_token) for at, each in enumerate(pages) if each.next_page_token]
    tasks = {_find_place(each, queries[0]): each for page in pages for each in page.items}
    places = sorted(tasks, reverse=True)
    ends += places[limit - 1 : limit] if len(places) > limit else ()
    found = [each for each in places if not ends or each >= max(ends)]
    shown = [each for each in found if since is None or each[0] >= since]
    token = make_token(queries, *max(ends)) if ends and shown == found else None
    items = [report_delivery(store, tasks[each]) for each in shown]
    return Page(items, token, sum(each.unreadable for each in pages), sum(each.passed_over for each in pages))


def _find_place(task: Task, query: TaskQuery) -> tuple[datetime, str]:
    """Return the position of a task in a list of deliveries."""
    trouble = find_trouble(task)
    return task.created_at if query.is_delivery or trouble is None else trouble[1], task.id


def report_delivery(store: Store, task: Task) -> DeliveryReport:
    """Return the progress of one delivery."""
    delivery = task.delivery
    assert delivery is not None  # noqa: S101 - its callers have looked
    run = task.runs[0] if task.runs else None
    report = DeliveryReport(
        **delivery.model_dump(include={"channel", "task_id", "execution_id", "is_failure", "created_at"}),
        id=task.id,
        owner=task.owner,
        title=task.title,
        status=_find_status(task),
        attempts=0,
        next_attempt_at=run.due_at if run is not None and run.lease is None else None,
    )
    execution_id = task.last_execution_id if run is None else run.execution_id
    record = execution_id and store.load_execution(task.id, execution_id)
    if not record:
        return report

    if task.status is TaskStatus.COMPLETED:
        ending = {"sent_at": record.finished_at, "message_id": _read_message_id(record)}
    elif record.message is None and record.error is not None:
        ending = {"reason": record.error.message}
    else:
        ending = {"reason": record.message}
    last = record.attempts[-1].started_at if record.attempts else None
    return report.model_copy(update={"attempts": record.attempt_count, "last_attempt_at": last, **ending})


def find_undelivered(
    store: Store,
    task: Task,
    executions: Sequence[Execution],
    now: datetime,
) -> list[Undelivered]:
    """Return the overdue deliveries of some executions that have not arrived.

    A ping calls a program, which retries by itself. Reads what `report_deliveries` does, for each execution.
    """
    found = list[Undelivered]()
    if not task.has_deliveries:
        return found

    for execution in executions:
        for each, delivery in _load_deliveries(store, task, execution.id):
            status = _find_status(each)
            is_new = status in {DeliveryStatus.PENDING, DeliveryStatus.SENDING}
            if status is DeliveryStatus.SENT or delivery.channel == PING:
                continue
            if is_new and not is_late(delivery.created_at, now):
                continue
            found.append(
                Undelivered(
                    execution_id=execution.id,
                    scheduled_for=execution.scheduled_for,
                    channel=delivery.channel,
                    status=status,
                    since=delivery.created_at,
                    reason=report_delivery(store, each).reason,
                    next_attempt_at=each.runs[0].due_at if status is DeliveryStatus.RETRYING else None,
                )
            )
    return found


def _load_deliveries(store: Store, task: Task, execution_id: str) -> list[tuple[Task, Delivery]]:
    found = [each.task for each in store.load_many(delivery_ids(task, execution_id))]
    made = [(each, each.delivery) for each in found if each.delivery is not None and each.deleted_at is None]
    return sorted(made, key=lambda pair: pair[1].channel)


def _find_status(task: Task) -> DeliveryStatus:
    if (end := _ENDS[task.status]) is not None:
        return end
    if not task.runs or task.runs[0].started_at is None:
        return DeliveryStatus.PENDING
    if task.runs[0].lease is None:
        return DeliveryStatus.RETRYING
    return DeliveryStatus.SENDING


def _read_message_id(record: Execution) -> str | None:
    found = record.content.get("messageId") if isinstance(record.content, dict) else None
    return found if isinstance(found, str) else None
