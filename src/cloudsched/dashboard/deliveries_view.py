"""Deliveries and people: an owner's deliveries, all failed ones, an inbox, and the page of one person.

A person's page has their open problems, their tasks, their contacts, and their budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.attention import CAUSES
from cloudsched.dashboard.forms import Done
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.closed_sets import complete_table
from cloudsched.domain.documents.delivery import DeliveryStatus
from cloudsched.domain.documents.task import TaskStatus
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
    """The path of the execution that has the result."""
    title: str
    owner: str
    channel: str
    status: Status
    note: str
    at: Moment
    at_word: str
    """The word for the event at that time."""


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
    """The address of the page of earlier deliveries."""
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


_LISTED_OF_PERSON: Final = 10


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task of that person."""

    id: str
    title: str
    handler: str
    status: Status
    is_bad: bool
    next: Moment | None


@dataclass(frozen=True, slots=True)
class PersonPage:
    """The view model of one person."""

    owner: str
    name: str
    sentence: str
    tasks: list[TaskLine]
    counts: list[tuple[str, str]]
    """Statuses, each with the number of their tasks that have it."""
    facts: list[tuple[str, str]]
    """Their contacts and consents."""
    budget: str
    deliveries: list[DeliveryRow]
    unread: int | None
    query: str
    """The filter with which lists show their items."""
    zones: list[ZoneChoice]


def fetch_person(api: Api, _visit: Visit, owner: str) -> Json:
    """Ask the API for its data of a person. Raises NotFound if it has none."""
    if owner in {".", ".."}:
        raise NotFound("person", owner)
    path = f"/v1/people/{quote(owner, safe='')}"
    tasks = api.get("/v1/tasks", owner=owner, calls="false", pageSize=_LISTED_OF_PERSON)["tasks"]
    person = api.find(path)
    if not tasks and person is None:
        raise NotFound("person", owner)
    return {
        "owner": owner,
        "tasks": tasks,
        "person": person,
        "budget": api.find(f"{path}/budget"),
        "counts": api.find("/v1/overview", owner=owner) or {},
        "deliveries": (api.find("/v1/deliveries", owner=owner, pageSize=_LISTED_OF_PERSON) or {}).get("deliveries", ()),
        "unread": (api.find(f"/v1/inboxes/{quote(owner, safe='')}/unread") or {}).get("unread"),
    }


def build_person(answer: Json, visit: Visit) -> PersonPage:
    """Return the view model of the API's answers."""
    counts, person = answer["counts"], answer["person"] or {}
    needs = [
        f"{CAUSES[each['cause']].chip} {each['count']:,}{'+' if each.get('isAtLeast') else ''}"
        for each in counts.get("needs", ())
        if each["count"]
    ]
    total = sum(counts.get("tasks", {}).values())
    tasks = f"{total:,} {'task' if total == 1 else 'tasks'}, calls included" if counts else "The counts did not come"
    known = "" if answer["person"] else " They have set no way to be reached."
    return PersonPage(
        owner=answer["owner"],
        name=person.get("name") or answer["owner"],
        sentence=f"{tasks}; {', '.join(needs).lower() or ('nothing needs anybody' if counts else '')}.{known}",
        tasks=[
            TaskLine(
                each["id"],
                each["title"],
                each["handler"],
                show_status(each["status"]),
                bool(each.get("consecutiveFailures")),
                visit.moment(each.get("nextExecutionTime")),
            )
            for each in answer["tasks"]
        ],
        counts=[
            (show_status(status).word, f"{count:,}")
            for status in TaskStatus
            if (count := counts.get("tasks", {}).get(status, 0))
        ],
        facts=[*_list_facts(person)],
        budget=_write_budget(answer["budget"]),
        deliveries=[build_delivery(each, visit) for each in answer["deliveries"]],
        unread=answer["unread"],
        query=urlencode({"owner": answer["owner"]}),
        zones=zone_choices(visit),
    )


def _list_facts(person: Json) -> Iterator[tuple[str, str]]:
    """Yield the contacts of a person. Addresses have a note on whether they are verified."""
    for name, key, shown in (("Mail", "email", "address"), ("Webhook", "webhook", "url")):
        if contact := person.get(key):
            proven = "verified" if contact.get("verified") else "not verified: nothing is sent there"
            yield name, f"{contact.get(shown, '')} ({proven})"
    if devices := person.get("devices"):
        yield "Devices", f"{len(devices):,}"
    if person:
        yield "Zone", str(person.get("timezone", "UTC"))
    for category, channels in sorted(person.get("channels", {}).items()):
        said = ", ".join(str(each).lower() for each in channels) or "none but the inbox"
        yield f"Agreed to, {str(category).lower()}", said


def _write_budget(budget: Json | None) -> str:
    if budget is None:
        return "No budget limits them."
    used = f"{budget['queries']:,} of {budget['maxQueriesPerMonth']:,} queries in {budget['month']}"
    return f"{used}: used up, their tasks are paused." if budget["isUsedUp"] else f"{used}."
