"""What is on its way to people, and what tasks have delivered to somebody's inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.forms import Done
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment

DELIVERY_HANDLER: Final = "cloudsched.delivery"
"""The handler of the tasks that deliver results."""
_LISTED: Final = 50


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message."""

    id: str
    task_id: str
    execution_id: str
    title: str
    body: str
    at: Moment
    is_read: bool


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """A result on its way to somebody: a task of its own."""

    task_id: str
    title: str
    owner: str
    status: Status
    note: str
    at: Moment | None
    """When it is tried next, or has ended."""


@dataclass(frozen=True, slots=True)
class OutboxPage:
    """The view model."""

    sentence: str
    owner: str
    deliveries: list[DeliveryRow]
    messages: list[MessageRow]
    may_change: bool
    is_local: bool
    next_page: str | None
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the messages of the owner that the address names, or of the caller."""
    owner = visit.query.get("owner") or visit.owner or ""
    tasks = api.get("/v1/tasks", handler=DELIVERY_HANDLER, owner=owner, pageSize=_LISTED)["tasks"]
    if not owner:
        return {"owner": "", "messages": [], "deliveries": tasks}
    page = api.get(_inbox_path(owner), pageSize=_LISTED, pageToken=visit.query.get("page"))
    return {"owner": owner, "deliveries": tasks, **page}


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done:
    """Mark a message as read."""
    owner, message = texts.get("owner", ""), texts.get("message", "")
    if not owner or message in {"", ".", ".."}:
        raise NotFound("message", message)
    api.post(f"{_inbox_path(owner)}/{quote(message, safe='')}/read")
    return Done(f"outbox?{urlencode({'owner': owner})}", "read")


def _inbox_path(owner: str) -> str:
    if owner in {".", ".."}:
        raise NotFound("inbox", owner)
    return f"/v1/inboxes/{quote(owner, safe='')}/messages"


def build(answer: Json, visit: Visit) -> OutboxPage:
    """Return the view model of the API's answer."""
    rows = [
        MessageRow(
            each["id"],
            each["taskId"],
            each["executionId"],
            each["title"],
            each["body"],
            visit.sure(each["createdAt"]),
            each.get("isRead", False),
        )
        for each in answer["messages"]
    ]
    owner = answer["owner"]
    unread = sum(not row.is_read for row in rows)
    deliveries = [_build_delivery(each, visit) for each in answer["deliveries"]]
    open_ones = sum(row.status.word in {"Active", "Paused"} for row in deliveries)
    way = f"{open_ones:,} of the latest {len(deliveries):,} deliveries are on their way."
    count = "1 message" if len(rows) == 1 else f"{len(rows):,} messages"
    inbox = f"{count} for {owner}, {unread:,} unread." if owner else "Choose whose inbox to see."
    sentence = f"{way} {inbox}" if deliveries else inbox
    more = answer.get("nextPageToken")
    return OutboxPage(
        sentence,
        owner,
        deliveries,
        rows,
        visit.may_change,
        visit.is_local,
        visit.with_query(page=more) if more else None,
        zone_choices(visit),
    )


def _build_delivery(task: Json, visit: Visit) -> DeliveryRow:
    failures = task.get("consecutiveFailures", 0)
    note = task.get("message") or (f"failed {failures} times" if failures else "")
    at = task.get("nextExecutionTime") or task.get("updatedAt")
    return DeliveryRow(task["id"], task["title"], task["owner"], show_status(task["status"]), note, visit.moment(at))
