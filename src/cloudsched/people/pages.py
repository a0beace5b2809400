"""The pages of people: what was sent and whether it arrived, with an inbox, and the page of one person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from cloudsched.dashboard.filters import DELIVERIES, name_parameters, read_filters, show_filters
from cloudsched.dashboard.forms.fields import Submitted
from cloudsched.dashboard.view import View
from cloudsched.dashboard.words import only_if
from cloudsched.errors import NotFound, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_CHATS: Final = ("telegram", "slack")
_CONTACTS: Final = (
    ("email", "address", "Verify: it is theirs"),
    ("webhook", "url", "Ask the webhook"),
    *((each, "id", f"Ask in {each.title()}") for each in _CHATS),
)
"""The contacts of a person, the name of each one's address, and the button that verifies it."""
_LISTED: Final = 50
_LISTED_OF_PERSON: Final = 10


def _name_path(kind: str, name: str) -> str:
    """Return a path in the API. Raises NotFound for a text that cannot be a name."""
    if name in {"", ".", ".."}:
        raise NotFound("person", name)
    return f"/v1/{kind}/{quote(name, safe='')}"


def list_rows(visit: Visit) -> tuple[str, dict[str, str]]:
    """Return the list of the API that the page shows, and its filters."""
    asked = read_filters(visit, DELIVERIES)
    return "/v1/deliveries", {**asked, "owner": asked.get("owner") or visit.owner or ""}


def fetch_deliveries(api: Api, visit: Visit) -> Json:
    """Ask the API for deliveries of the owner that the address names, or of the caller, and for their inbox."""
    path, asked = list_rows(visit)
    owner = asked["owner"]
    page = visit.query.get("page")
    answer = {"owner": owner, "filters": show_filters(visit, DELIVERIES), "deliveries": None, "inbox": None}
    if asked.get("channel") != "WEB":
        found = api.get(path, **asked, pageSize=_LISTED, pageToken=page)
        count = {"value": len(found["deliveries"]), "atLeast": bool(page or found.get("nextPageToken"))}
        answer |= {"deliveries": found, "count": count}
        page = None
    if owner:
        answer["inbox"] = api.get(f"{_name_path('inboxes', owner)}/messages", pageSize=_LISTED, pageToken=page)
    return answer


def send(api: Api, _visit: Visit, texts: Mapping[str, str]) -> Submitted:
    """Send deliveries again, or mark a message as read."""
    owner, said = texts.get("owner", ""), "read"
    if unsent := texts.get("delivery", "").split():
        said = "resent"
        body = {"address": texts["address"]} if texts.get("address") else {}
        for each in unsent:
            path = _name_path("deliveries", each.partition("/")[0])
            api.post(f"{path}/resend", body, headers={"Idempotency-Key": each})  # its id, and how often it was tried
    else:
        message = _name_path("messages", texts.get("message", "")).removeprefix("/v1")
        api.post(f"{_name_path('inboxes', owner)}{message}/read")
    return Submitted(f"deliveries?{urlencode({'owner': owner})}", said)


def send_verification(api: Api, _visit: Visit, texts: Mapping[str, str], owner: str) -> Submitted:
    """Verify a contact: an admin's word does it for an address of mail, and others are asked themselves."""
    path = _name_path("people", owner)
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


def fetch_person(api: Api, _visit: Visit, owner: str) -> Json:
    """Ask the API for its data of a person. Raises NotFound if it has none."""
    path = _name_path("people", owner)
    person = api.find(path)
    if person is None and not api.get("/v1/tasks", owner=owner, pageSize=1)["tasks"]:
        raise NotFound("person", owner)
    return {
        "owner": owner,
        "person": person or {},
        "counts": api.find("/v1/overview", owner=owner),
        "deliveries": api.get("/v1/deliveries", owner=owner, pageSize=_LISTED_OF_PERSON),
        "unread": api.find(f"{_name_path('inboxes', owner)}/unread"),
    }


def build_person(answer: Json, visit: Visit) -> Json:
    """Return what the page of one person shows."""
    counts = answer["counts"] or {}
    calm = "Nothing needs attention." if counts else "The counts are missing."
    return {
        **answer,
        "title": answer["person"].get("name") or answer["owner"],
        "needs": counts.get("needs") or [{"sentence": calm}],
        "facts": [*_list_facts(answer["person"])],
        "contacts": [*_list_contacts(answer["person"], visit)],
        "query": urlencode({"owner": answer["owner"]}),
    }


def _list_contacts(person: Json, visit: Visit) -> Iterator[tuple[str, str, bool, str]]:
    """Yield the contacts: the field, its address, whether it is verified, and the button of whoever may verify it."""
    for way, key, act in _CONTACTS:
        if contact := person.get(way):
            may_verify = visit.may_change and (way != "email" or visit.role == "admin")
            yield way, str(contact.get(key, "")), bool(contact.get("verified")), only_if(may_verify, act)


def _list_facts(person: Json) -> Iterator[tuple[str, str]]:
    if devices := person.get("devices"):
        yield "Devices", f"{len(devices):,}"
    if person:
        yield "Time zone", str(person.get("timezone", "UTC"))
    for category, channels in sorted(person.get("channels", {}).items()):
        said = ", ".join(str(each).lower() for each in channels) or "inbox only"
        yield f"Agreed to, {str(category).lower()}", said


VIEWS: Final = {
    "deliveries": View(
        "/deliveries",
        fetch_deliveries,
        lambda answer, _: answer,  # the template shows it as it is
        "deliveries.html",
        "Deliveries",
        send,
        key="d",
        list_rows=list_rows,
        parameters=name_parameters(DELIVERIES),
    ),
    "person": View("/people/<owner>", fetch_person, build_person, "person.html", "Deliveries", send_verification),
}
