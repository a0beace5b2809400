"""Changes: who did what to any task, and when, with the deployments among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.filters import CHANGES, name_parameters, read_filters, show_filters
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.task import build_entry
from cloudsched.domain.documents.verbs import Action

if TYPE_CHECKING:
    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PARAMETERS: Final = name_parameters(CHANGES)


def list_rows(visit: Visit) -> tuple[str, dict[str, str]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    return "/v1/audit", read_filters(visit, CHANGES)


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of the actions, and for the deployments."""
    path, wanted = list_rows(visit)
    answer = api.get(path, **wanted, pageSize=50, pageToken=visit.query.get("page"))
    deployments: list[Json] = []
    if not any(wanted.get(name) for name in ("owner", "by", "action")):
        deployments = ((api.find("/v1/overview") or {}).get("sweep") or {}).get("deployments", [])
    return {**answer, "deployments": deployments}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of changes shows."""
    asked = read_filters(visit, CHANGES)
    rows = [{**build_entry(each, visit), "href": _find_href(each)} for each in answer["entries"]]
    start, end = asked.get("from"), asked.get("until")
    if rows:  # of the deployments those that are among them
        start = rows[-1]["at"] if answer.get("nextPageToken") else start
        end = rows[0]["at"] if visit.query.get("page") else end
    since, until = (parse_instant(each) if each else None for each in (start, end))
    rows += [
        {**each, "action": "DEPLOYED", "what": "Deployment", "who": "", "title": each["version"], "href": ""}
        for each in answer["deployments"]
        if (since is None or parse_instant(each["at"]) >= since)
        and (until is None or parse_instant(each["at"]) < until)
    ]
    return {
        **answer,
        "filters": show_filters(visit, CHANGES),
        "rows": sorted(rows, key=lambda each: parse_instant(each["at"]), reverse=True),
        "nothing": "No changes match." if asked else "No changes are kept.",
        "next": answer.get("nextPageToken"),
    }


def _find_href(entry: Json) -> str:
    """Return the page of what was changed. Empty if it is gone."""
    owner = quote(entry.get("owner", ""), safe="")
    if entry["action"] == Action.DELETED:
        return ""
    if entry.get("taskId"):
        return f"tasks/{entry['taskId']}"
    if entry.get("queue"):
        return "queues"
    return f"people/{owner}" if entry["action"] == Action.CONTACT_VERIFIED else f"usage?owner={owner}"
