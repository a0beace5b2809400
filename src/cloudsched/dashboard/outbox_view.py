"""What was sent to somebody and with what result, what of anybody's has failed, and somebody's inbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.forms import Done
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.delivery import DeliveryStatus
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.dashboard.times import Moment

_LOOKS: Final = complete_table(
    DeliveryStatus,
    {
        DeliveryStatus.PENDING: Status("due", "Waits", "due"),
        DeliveryStatus.SENDING: Status("run", "Sending", "run"),
        DeliveryStatus.RETRYING: Status("retry", "Retrying", "retry"),
        DeliveryStatus.SENT: Status("ok", "Sent", "ok"),
        DeliveryStatus.FAILED: Status("fail", "Failed", "fail"),
        DeliveryStatus.EXPIRED: Status("expire", "Expired", "ended"),
        DeliveryStatus.SUPPRESSED: Status("skip", "Not wanted", "ended"),
    },
)
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
    """A result that is sent to somebody."""

    id: str
    path: str
    """The execution whose result it is."""
    title: str
    owner: str
    channel: str
    status: Status
    note: str
    at: Moment
    at_word: str
    """What happens then, or has."""


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
    older: str | None
    """The page of earlier deliveries."""
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the messages of the owner that the address names, or of the caller."""
    owner = visit.query.get("owner") or visit.owner or ""
    sent = api.get("/v1/deliveries", owner=owner, pageSize=_LISTED, pageToken=visit.query.get("sent"))
    found = {"owner": owner, "deliveries": sent["deliveries"], "older": sent.get("nextPageToken")}
    if not owner:
        return {**found, "messages": []}
    return {**found, **api.get(_inbox_path(owner), pageSize=_LISTED, pageToken=visit.query.get("page"))}


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
    deliveries = [build_delivery(each, visit) for each in answer["deliveries"]]
    shown = f"{len(deliveries):,}{' or more' if answer.get('older') else ''}"
    noun = "delivery" if shown == "1" else "deliveries"
    if owner:
        count = "1 message" if len(rows) == 1 else f"{len(rows):,} messages"
        sentence = f"{shown} {noun} to {owner}; {count} in the inbox, {unread:,} unread."
    elif deliveries:
        sentence = f"{shown} {noun} of all people have failed. Choose whose to see."
    else:
        sentence = "No delivery has failed. Choose whose to see."
    more = answer.get("nextPageToken")
    return OutboxPage(
        sentence,
        owner,
        deliveries,
        rows,
        visit.may_change,
        visit.is_local,
        visit.with_query(page=more) if more else None,
        visit.with_query(sent=answer["older"]) if answer.get("older") else None,
        zone_choices(visit),
    )


def build_delivery(found: Json, visit: Visit) -> DeliveryRow:
    """Return a delivery as a row."""
    sent, following = found.get("sentAt"), found.get("nextAttemptAt")
    at_word = "sent" if sent else "next attempt" if following else "asked for"
    attempts = found.get("attempts", 0)
    tried = "1 attempt" if attempts == 1 else f"{attempts:,} attempts"
    return DeliveryRow(
        id=found["id"],
        path=f"tasks/{quote(found['taskId'], safe='')}/executions/{quote(found['executionId'], safe='')}",
        title=found["title"],
        owner=found["owner"],
        channel=str(found["channel"]).replace("_", " ").capitalize(),
        status=_LOOKS.get(found["status"], show_status(found["status"])),
        note=". ".join(filter(None, [found.get("reason"), tried if attempts > 1 else ""])),
        at=visit.sure(sent or following or found["createdAt"]),
        at_word=at_word,
    )
