"""Changes: who did what to any task, and when, with the deployments among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.filters import read_entered, write_filter
from cloudsched.dashboard.local_instants import write_notes
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.task_history import build_entry, read_actor
from cloudsched.dashboard.words import join_phrases, only_if, write_count
from cloudsched.domain.documents.verbs import Action

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PAGE_SIZE: Final = 50
FILTERS: Final = ("owner", "by", "action")
PARAMETERS: Final = (*FILTERS, "from", "until", "page")
WORDS: Final = {each: each.capitalize().replace("_", " ") for each in Action}


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    wanted = {name: visit.query.get(name, "").strip() for name in FILTERS}
    bounds = {name: each.iso for name, each in read_entered(visit).items()}
    return "/v1/audit", {**wanted, "by": read_actor(wanted["by"]), "action": wanted["action"].upper(), **bounds}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of the actions, and for the deployments."""
    path, wanted = list_rows(visit)
    answer = api.get(path, **wanted, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    deployments: list[Json] = []
    if not any(wanted[name] for name in FILTERS):
        deployments = ((api.find("/v1/overview") or {}).get("sweep") or {}).get("deployments", [])
    return {**answer, "deployments": deployments}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of changes shows."""
    entered = read_entered(visit)
    nothing = {"taskId": "", "queue": "", "isDeployment": False}
    rows = [{**nothing, **build_entry(each, visit)} for each in answer["entries"]]
    start = entered["from"].iso and parse_instant(entered["from"].iso)
    end = entered["until"].iso and parse_instant(entered["until"].iso)
    if answer.get("nextPageToken") and rows:
        oldest = parse_instant(rows[-1]["at"])
        start = max(start, oldest) if start else oldest
    if visit.query.get("page") and rows:
        newest = parse_instant(rows[0]["at"])
        end = min(end, newest) if end else newest
    marks = list_deployments(answer["deployments"], start or None, end or None)
    rows += [{**each, "isDeployment": True} for each in marks]
    rows.sort(key=lambda each: parse_instant(each["at"]), reverse=True)
    asked = {**visit.query, **{name: each.iso for name, each in entered.items()}}
    return {
        "sentence": _write_sentence(rows, answer, is_filtered=any(map(visit.query.get, (*FILTERS, "from", "until")))),
        "rows": rows,
        "actions": WORDS,
        "entered": entered,
        "note": write_notes(*entered.values()),
        "isComplete": answer["isComplete"],
        "tokens": [
            (write_filter(name, asked[name], visit), visit.with_query(**{name: None, "page": None}))
            for name in (*FILTERS, "from", "until")
            if asked.get(name)
        ],
        "next": answer.get("nextPageToken"),
    }


def list_deployments(known: list[Json], start: datetime | None, end: datetime | None) -> list[Json]:
    """Return the deployments between two instants, for lists and for charts, the earliest first.

    `known` is ``sweep.deployments`` of ``GET /v1/overview``. An instant that is None is no bound.
    """
    return [
        each
        for each in known
        if (start is None or parse_instant(each["at"]) >= start) and (end is None or parse_instant(each["at"]) < end)
    ]


def _write_sentence(rows: list[Json], answer: Json, *, is_filtered: bool) -> str:
    deployments = sum(each["isDeployment"] for each in rows)
    changes = len(rows) - deployments
    if not rows and not is_filtered:
        return "No changes are kept."
    if not rows:
        return f"No changes match{only_if(not answer['isComplete'], ' among the tasks that changed last')}."
    said = join_phrases(
        only_if(changes, write_count(changes, "change", "changes")),
        only_if(deployments, write_count(deployments, "deployment", "deployments")),
        separator=" and ",
    )
    return f"{said}{only_if(answer.get('nextPageToken'), ' on this page')}, the latest first."
