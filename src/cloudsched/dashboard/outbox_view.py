"""What tasks have delivered to somebody's inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from cloudsched.dashboard.visit import Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.times import Moment


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
class OutboxPage:
    """The view model."""

    sentence: str
    owner: str
    messages: list[MessageRow]
    next_page: str | None
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the messages of the owner that the address names, or of the caller."""
    owner = visit.query.get("owner") or visit.owner or ""
    if not owner:
        return {"owner": "", "messages": []}
    path = f"/v1/inboxes/{quote(owner, safe='')}/messages"
    return {"owner": owner, **api.get(path, pageSize=50, pageToken=visit.query.get("page"))}


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
    sentence = (
        f"{len(rows):,} messages for {owner}, {unread:,} of them unread." if owner else "Choose whose inbox to see."
    )
    more = answer.get("nextPageToken")
    return OutboxPage(sentence, owner, rows, visit.with_query(page=more) if more else None, zone_choices(visit))
