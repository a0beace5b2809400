"""Deliveries and people: an owner's deliveries, all failed ones, an inbox, and the page of one person.

A person's page has their open problems, their tasks, their contacts, and their budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.attention import CAUSES
from cloudsched.dashboard.forms import Done, read_json
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.visit import Api, Json, Visit, task_path, write_count
from cloudsched.domain.documents.delivery_channels import DeliveryStatus
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import NotFound

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
_LISTED_OF_PERSON: Final = 10


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the messages of the owner that the address names, or of the caller."""
    owner = visit.query.get("owner") or visit.owner or ""
    sent = api.get("/v1/deliveries", owner=owner, pageSize=_LISTED, pageToken=visit.query.get("sent"))
    found = {"owner": owner, "deliveries": sent["deliveries"], "older": sent.get("nextPageToken")}
    if not owner:
        return {**found, "messages": []}
    return {**found, **api.get(_inbox_path(owner), pageSize=_LISTED, pageToken=visit.query.get("page"))}


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Done:
    """Mark a message as read, and answer it if it is a question."""
    owner, message = texts.get("owner", ""), texts.get("message", "")
    if not owner or message in {"", ".", ".."}:
        raise NotFound("message", message)
    task, event = texts.get("task", ""), texts.get("event", "")
    if event:
        answer = {"payload": read_json(texts.get("payload", "")), "executionId": texts.get("execution")}
        api.post(f"{task_path(task)}/events/{quote(event, safe='')}", answer)
    api.post(f"{_inbox_path(owner)}/{quote(message, safe='')}/read")
    return Done(f"deliveries?{urlencode({'owner': owner})}", "send" if event else "read")


def _inbox_path(owner: str) -> str:
    if owner in {".", ".."}:
        raise NotFound("inbox", owner)
    return f"/v1/inboxes/{quote(owner, safe='')}/messages"


def build(answer: Json, _visit: Visit) -> Json:
    """Return what the lists of deliveries and of messages show."""
    owner, messages = answer["owner"], answer["messages"]
    deliveries = [build_delivery(each) for each in answer["deliveries"]]
    shown = f"{len(deliveries):,}{' or more' if answer['older'] else ''}"
    noun = "delivery" if shown == "1" else "deliveries"
    if owner:
        unread = sum(not each.get("isRead") for each in messages)
        inbox = f"{write_count(len(messages), 'message', 'messages')} in the inbox, {unread:,} unread."
        sentence = f"{shown} {noun} to {owner}; {inbox}"
    elif deliveries:
        sentence = f"{shown} {noun} of all people have failed. Choose whose to see."
    else:
        sentence = "No delivery has failed. Choose whose to see."
    return {**answer, "sentence": sentence, "deliveries": deliveries}


def build_delivery(found: Json) -> Json:
    """Return a delivery as a row."""
    sent, following = found.get("sentAt"), found.get("nextAttemptAt")
    attempts = found.get("attempts", 0)
    tried = f"{attempts:,} attempts" if attempts > 1 else ""
    return {
        **found,
        "status": _LOOKS.get(found["status"], show_status(found["status"])),
        "note": ". ".join(filter(None, [found.get("reason"), tried])),
        "at": sent or following or found["createdAt"],
        "event": "sent" if sent else "next attempt" if following else "asked for",
    }


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


def build_person(answer: Json, _visit: Visit) -> Json:
    """Return what the page of one person shows."""
    counts, person = answer["counts"], answer["person"] or {}
    needs = [
        f"{CAUSES[each['cause']].chip} {each['count']:,}{'+' if each.get('isAtLeast') else ''}"
        for each in counts.get("needs", ())
        if each["count"]
    ]
    of_status = counts.get("tasks", {})
    total = f"{write_count(sum(of_status.values()), 'task', 'tasks')}, calls included"
    known = "" if answer["person"] else " They have set no way to be reached."
    said = ", ".join(needs).lower() or ("nothing needs anybody" if counts else "")
    return {
        **answer,
        "title": person.get("name") or answer["owner"],
        "sentence": f"{total if counts else 'The counts did not come'}; {said}.{known}",
        "counts": [(status, of_status[status]) for status in TaskStatus if of_status.get(status)],
        "facts": [*_list_facts(person)],
        "budget": _write_budget(answer["budget"]),
        "deliveries": [build_delivery(each) for each in answer["deliveries"]],
        "query": urlencode({"owner": answer["owner"]}),
    }


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
