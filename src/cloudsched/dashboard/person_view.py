"""One person: what of theirs needs somebody, their tasks, what was sent to them, how they are reached, their budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.attention import CAUSES
from cloudsched.dashboard.outbox_view import DeliveryRow, build_delivery
from cloudsched.dashboard.status import Status, show_status
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from cloudsched.dashboard.times import Moment

_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task of theirs."""

    id: str
    title: str
    handler: str
    status: Status
    is_bad: bool
    next: Moment | None


@dataclass(frozen=True, slots=True)
class PersonPage:
    """The view model."""

    owner: str
    name: str
    sentence: str
    needs: list[str]
    tasks: list[TaskLine]
    counts: list[tuple[str, str]]
    """Statuses, and how many of their tasks have each."""
    facts: list[tuple[str, str]]
    """How they are reached, and what they have agreed to."""
    budget: str
    deliveries: list[DeliveryRow]
    unread: int | None
    query: str
    """The filter by which lists show what is theirs."""
    zones: list[ZoneChoice]


def fetch(api: Api, _visit: Visit, owner: str) -> Json:
    """Ask the API for what it has of a person. Raises NotFound if nothing is theirs."""
    if owner in {".", ".."}:
        raise NotFound("person", owner)
    path = f"/v1/people/{quote(owner, safe='')}"
    tasks = api.get("/v1/tasks", owner=owner, calls="false", pageSize=_LISTED)["tasks"]
    person = api.find(path)
    if not tasks and person is None:
        raise NotFound("person", owner)
    return {
        "owner": owner,
        "tasks": tasks,
        "person": person,
        "budget": api.find(f"{path}/budget"),
        "counts": api.find("/v1/overview", owner=owner) or {},
        "deliveries": (api.find("/v1/deliveries", owner=owner, pageSize=_LISTED) or {}).get("deliveries", ()),
        "unread": (api.find(f"/v1/inboxes/{quote(owner, safe='')}/unread") or {}).get("unread"),
    }


def build(answer: Json, visit: Visit) -> PersonPage:
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
        needs=needs,
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
    """Yield how a person is reached; addresses with whether they have proven them."""
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
