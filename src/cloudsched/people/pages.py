"""The pages of people: an owner's deliveries, all failed ones, an inbox, and the page of one person.

A person's page has their open problems, their tasks, their contacts, and their budget.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.api import task_path
from cloudsched.dashboard.forms.fields import Submitted, read_json
from cloudsched.dashboard.status import show_delivery
from cloudsched.dashboard.view import View
from cloudsched.dashboard.views.causes import CAUSES
from cloudsched.dashboard.views.usage import list_limits
from cloudsched.dashboard.words import join_phrases, only_if, write_count
from cloudsched.domain.documents.delivery_channels import OPEN_DELIVERIES, DeliveryStatus
from cloudsched.domain.documents.task import FINAL_STATUSES, NeedCause, TaskStatus, Trouble
from cloudsched.domain.explanation.findings import Reason
from cloudsched.errors import NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_CHATS: Final = ("telegram", "slack")
_VERIFIED_BY: Final = (
    ("email", "address", "Verify: it is theirs"),
    ("webhook", "url", "Ask the webhook"),
    *((each, "id", f"Ask in {each.title()}") for each in _CHATS),
)
"""The contacts of a person, the name of each one's address, and the button that verifies it."""
_LISTED: Final = 50
_LISTED_OF_PERSON: Final = 10
_MOST: Final = 200
"""The most deliveries that are asked whether they are tried again."""


def fetch_deliveries(api: Api, visit: Visit) -> Json:
    """Ask the API for the messages of the owner that the address names, or of the caller."""
    owner = visit.query.get("owner") or visit.owner or ""
    sent = api.get("/v1/deliveries", owner=owner, pageSize=_LISTED, pageToken=visit.query.get("sent"))
    answer = {"owner": owner, "deliveries": sent["deliveries"], "older": sent.get("nextPageToken"), "messages": []}
    causes = (api.find("/v1/overview", owner=owner) or {}).get("causes", ())
    answer["unreached"] = [each for each in causes if each["reason"] == Reason.NOT_REACHABLE]
    if not owner:
        answer["lost"] = api.get("/v1/tasks", trouble=Trouble.UNREACHED, pageSize=_LISTED)
    else:
        path = f"{_inbox_path(owner)}/messages"
        answer |= api.get(path, pageSize=_LISTED, pageToken=visit.query.get("page"))
    return answer


def send_answer(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Submitted:
    """Mark a message as read, and answer it if it is a question."""
    owner = texts.get("owner", "")
    message = texts.get("message", "")
    if not owner or message in {"", ".", ".."}:
        raise NotFound("message", message)
    event = texts.get("event", "")
    if event:
        answer = {"payload": read_json(texts.get("payload", "")), "executionId": texts.get("execution")}
        api.post(f"{task_path(texts.get('task', ''))}/events/{quote(event, safe='')}", answer)
    api.post(f"{_inbox_path(owner)}/messages/{quote(message, safe='')}/read")
    return Submitted(f"deliveries?{urlencode({'owner': owner})}", "send" if event else "read")


def _inbox_path(owner: str) -> str:
    if owner in {".", ".."}:
        raise NotFound("inbox", owner)
    return f"/v1/inboxes/{quote(owner, safe='')}"


def send_verification(api: Api, _visit: Visit, texts: Mapping[str, str], owner: str) -> Submitted:
    """Verify a contact: an admin's word does it for an address of mail, and others are asked themselves."""
    path = _person_path(owner)
    way = texts.get("way", "")
    match way:
        case "email":
            address = texts.get("address", "")
            if (api.get(path).get("email") or {}).get("address") != address:
                raise PreconditionFailed("The address")
            api.patch(path, {"email": {"address": address, "verified": True}})
        case "webhook":
            api.post(f"{path}/webhook/verify")
        case "telegram" | "slack":
            api.post(f"{path}/chats/{way}/verify")
        case _:
            raise NotFound("contact", way)
    return Submitted(f"people/{quote(owner, safe='')}", "asked" if way in _CHATS else "verified")


def _person_path(owner: str) -> str:
    if owner in {"", ".", ".."}:
        raise NotFound("person", owner)
    return f"/v1/people/{quote(owner, safe='')}"


def build_deliveries(answer: Json, _visit: Visit) -> Json:
    """Return what the lists of deliveries and of messages show."""
    deliveries = [build_delivery(each) for each in answer["deliveries"]]
    lost = answer.get("lost") or {"tasks": []}
    said = write_count(len(lost["tasks"]), "message was", "messages were", is_at_least=lost.get("nextPageToken"))
    return {
        **answer,
        "sentence": _write_sentence(answer),
        "deliveries": deliveries,
        "unsent": Counter(each["owner"] for each in lost["tasks"]).most_common(),
        "unsentText": f"{said[:1].upper()}{said[1:]}",
    }


def _write_sentence(answer: Json) -> str:
    owner = answer["owner"]
    count = len(answer["deliveries"])
    if not owner and not count:
        return "Choose a person to see theirs."
    statuses = Counter(each["status"] for each in answer["deliveries"])
    if not owner:
        retrying = sum(statuses[each] for each in OPEN_DELIVERIES)
        said = join_phrases(
            only_if(count > retrying, f"{write_count(count - retrying, 'delivery has', 'deliveries have')} failed"),
            only_if(retrying, f"{write_count(retrying, 'delivery is', 'deliveries are')} being retried"),
        )
        at_least = only_if(answer["older"], "At least ")
        return f"{at_least}{said}, across all people. Choose a person to see theirs."
    messages = answer["messages"]
    unread = sum(not each.get("isRead") for each in messages)
    inbox = write_count(len(messages), "message", "messages")
    words = [f"{statuses[each]:,} {show_delivery(each).word.lower()}" for each in DeliveryStatus if statuses[each]]
    shown = write_count(count, "delivery", "deliveries", is_at_least=answer["older"])
    what = f"{shown[:1].upper()}{shown[1:]} for {owner}{only_if(words, ': ')}{', '.join(words)}"
    return f"{what}. {inbox} in the inbox, {unread:,} unread."


def build_delivery(found: Json) -> Json:
    """Return a delivery as a row."""
    attempts = found.get("attempts", 0)
    event, at = _find_event(found)
    return {
        **found,
        "status": show_delivery(found["status"]),
        "note": join_phrases(found.get("reason", ""), only_if(attempts > 1, f"{attempts:,} attempts"), separator=". "),
        "at": at,
        "event": event,
    }


def _find_event(found: Json) -> tuple[str, str]:
    """Return what happened to a delivery last, or happens next, and when."""
    if found.get("sentAt"):
        return "sent", found["sentAt"]
    if found.get("nextAttemptAt"):
        return "next attempt", found["nextAttemptAt"]
    return "created", found["createdAt"]


def fetch_person(api: Api, _visit: Visit, owner: str) -> Json:
    """Ask the API for its data of a person. Raises NotFound if it has none."""
    path = _person_path(owner)
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
        "deliveries": api.list_items("/v1/deliveries", "deliveries", owner=owner, pageSize=_LISTED_OF_PERSON),
        "undelivered": api.get("/v1/tasks", owner=owner, trouble=Trouble.DELIVERY, pageSize=_MOST)["tasks"],
        "unread": (api.find(f"{_inbox_path(owner)}/unread") or {}).get("unread"),
    }


def build_person(answer: Json, visit: Visit) -> Json:
    """Return what the page of one person shows."""
    counts = answer["counts"].get("tasks", {})
    person = answer["person"] or {}
    return {
        **answer,
        "title": person.get("name") or answer["owner"],
        "sentence": _write_person(answer),
        "counts": [(status, counts[status]) for status in TaskStatus if counts.get(status)],
        "facts": [*_list_facts(person)],
        "unverified": [*_list_unverified(person, visit)],
        "budget": _write_budget(answer["budget"]),
        "deliveries": [build_delivery(each) for each in answer["deliveries"]],
        "query": urlencode({"owner": answer["owner"]}),
    }


def _write_need(found: Json) -> str:
    """Return a cause with the number of its tasks, such as ``2 failing``."""
    return f"{found['count']:,}{only_if(found.get('isAtLeast'), '+')} {CAUSES[found['cause']].chip.lower()}"


def _write_needs(answer: Json) -> str:
    """Return what needs attention, with the deliveries that are tried again apart from those that have failed."""
    retrying = sum(each["status"] not in FINAL_STATUSES for each in answer["undelivered"])
    needs = {each["cause"]: each for each in answer["counts"].get("needs", ())}
    if delivery := needs.get(NeedCause.DELIVERY):
        needs[NeedCause.DELIVERY] = {**delivery, "count": max(0, delivery["count"] - retrying)}
    return join_phrases(
        *(_write_need(each) for each in needs.values() if each["count"]),
        only_if(retrying, f"{write_count(retrying, 'delivery is', 'deliveries are')} being retried"),
    )


def _write_person(answer: Json) -> str:
    """Return the number of a person's tasks, and what of them needs attention."""
    counts = answer["counts"]
    unknown = only_if(not answer["person"], " They have set no contact details.")
    needs = _write_needs(answer)
    if not counts:
        return f"The counts are missing.{unknown}"
    total = write_count(sum(counts.get("tasks", {}).values()), "task", "tasks")
    causes = [each["sentence"] for each in counts.get("causes", ())]
    if not needs and not causes:
        needs = "nothing needs attention"
    said = join_phrases(f"{total}, calls included", needs, separator="; ")
    return join_phrases(f"{said}.", *causes, separator=" ") + unknown


def _list_facts(person: Json) -> Iterator[tuple[str, str]]:
    """Yield the contacts of a person. Addresses have a note on whether they are verified."""
    for name, key, shown in (("Email", "email", "address"), ("Webhook", "webhook", "url")):
        if contact := person.get(key):
            proven = "verified" if contact.get("verified") else "not verified, so nothing is sent there"
            yield name, f"{contact.get(shown, '')} ({proven})"
    for name in ("Telegram", "Slack"):
        if contact := person.get(name.lower()):
            proven = "verified" if contact.get("verified") else "not verified, so nothing is sent there"
            yield name, f"{contact.get('id', '')} ({proven})"
    if devices := person.get("devices"):
        yield "Devices", f"{len(devices):,}"
    if person:
        yield "Time zone", str(person.get("timezone", "UTC"))
    for category, channels in sorted(person.get("channels", {}).items()):
        said = ", ".join(str(each).lower() for each in channels) or "inbox only"
        yield f"Agreed to, {str(category).lower()}", said


def _list_unverified(person: Json, visit: Visit) -> Iterator[tuple[str, str, str]]:
    """Yield the contacts that the caller may verify: the field, its address, and what verifies it."""
    for way, key, act in _VERIFIED_BY:
        contact = person.get(way) or {}
        if contact and not contact.get("verified") and visit.may_change and (way != "email" or visit.role == "admin"):
            yield way, str(contact.get(key, "")), act


def _write_budget(budget: Json | None) -> str:
    if budget is None:
        return "They have no budget."
    used = " and ".join(f"{used:,} of {most:,} {what}" for _, used, most, what in list_limits(budget))
    used += f" in {budget['month']}"
    return f"{used}{only_if(budget['isUsedUp'], ': used up, so their tasks are paused')}."


VIEWS: Final = {
    "deliveries": View(
        "/deliveries",
        fetch_deliveries,
        build_deliveries,
        "deliveries.html",
        "Deliveries",
        send_answer,
        key="d",
        parameters=("owner", "page", "sent"),
    ),
    "person": View("/people/<owner>", fetch_person, build_person, "person.html", "People", send_verification),
}
