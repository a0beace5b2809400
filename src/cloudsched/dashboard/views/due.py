"""The list of what is due in a time: the occurrences that a number on Home or in the calendar counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts.run_bars import read_count
from cloudsched.dashboard.filters import DUE, WINDOWS, find_window, name_parameters, read_filters, show_filters
from cloudsched.dashboard.status import explain_unregistered, find_unregistered
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.tasks import PAGE_SIZE
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

PARAMETERS: Final = name_parameters(DUE)


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    found = read_filters(visit, DUE)
    length = find_window(found) or WINDOWS["PT12H"][1]
    found.pop("within", None)
    return "/v1/occurrences", {"from": visit.soonest, "until": (visit.now + length).isoformat(), **found}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of occurrences, for the number of all of them, and for what nothing would run."""
    path, asked = list_rows(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    counted = api.find(f"{path}/counts", **asked, per="P1D")
    unregistered = find_unregistered(api.find("/v1/overview", owner=asked.get("owner")))
    return {**page, "asked": asked, "counted": counted, "unregistered": unregistered}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of due occurrences shows."""
    asked = answer["asked"]
    rows = [_build_row(each, answer["unregistered"], visit) for each in answer["occurrences"]]
    count = Count(value=len(rows), at_least=True)  # of more days than the API counts
    if answer["counted"]:
        count = sum((read_count(each["due"]) for each in answer["counted"]["parts"]), Count(value=0))
    is_over = parse_instant(asked["until"]) <= parse_instant(visit.soonest)
    nouns = ("run has not started that was", "runs have not started that were") if is_over else ("run is", "runs are")
    said = write_count(count.to_wire(), *nouns)
    window = f"from {visit.moment(asked['from']).text} until {visit.moment(asked['until']).text}"
    note = ""
    if cut := answer.get("completeUntil"):
        note = f"The list has only some of what is due after {visit.moment(cut).text}: too many tasks are due before."
    return {
        "title": "Due",
        "sentence": f"{said} due {window}.",
        "note": note,
        "rows": rows,
        "filters": show_filters(visit, DUE),
        "nothing": "None of it is listed." if note else "Nothing is due in this time.",
        "next": answer.get("nextPageToken"),
    }


def _build_row(row: Json, unregistered: Mapping[str, str], visit: Visit) -> Json:
    """Return an occurrence, whether nothing would run it, and the address to move it. That is empty if it cannot be."""
    may_move = visit.may_change and parse_instant(row["utc"]) > visit.now
    move = f"tasks/{row['taskId']}?{urlencode({'move': parse_instant(row['utc']).isoformat()})}#acts"
    return {**row, "inVain": explain_unregistered(row, unregistered), "move": only_if(may_move, move)}
