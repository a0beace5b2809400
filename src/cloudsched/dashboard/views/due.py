"""The list of what is due in a time: the occurrences that a number on Home or in the calendar counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts.run_bars import read_count
from cloudsched.dashboard.filters import WINDOWS, find_length, read_entered, write_filter
from cloudsched.dashboard.status import explain_unregistered, find_unregistered
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.tasks import PAGE_SIZE
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

FILTERS: Final = ("owner", "handler", "label", "category")
PARAMETERS: Final = (*FILTERS, "from", "until", "within", "page")
_WINDOWS: Final = ("PT1H", "PT12H", "P1D", "P7D")
"""The windows from now on to choose from."""
_WINDOW: Final = "PT12H"
"""The default window, as long as that of Home."""


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters. A bound is before the window."""
    entered = read_entered(visit)
    start = entered["from"].iso or visit.soonest
    length = find_length(visit.query.get("within") or _WINDOW, _WINDOWS)
    end = entered["until"].iso or (visit.now + length).isoformat()
    filters = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    if "category" in filters:
        filters["category"] = filters["category"].upper()
    return "/v1/occurrences", {"from": start, "until": end, **filters}


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
        "tokens": [
            (write_filter(name, asked[name], visit), visit.with_query(**{name: None, "page": None}))
            for name in FILTERS
            if name in asked
        ],
        "windows": [] if is_over else _list_windows(visit),
        "nothing": "None of it is listed." if note else "Nothing is due in this time.",
        "next": answer.get("nextPageToken"),
    }


def _build_row(row: Json, unregistered: Mapping[str, str], visit: Visit) -> Json:
    """Return an occurrence, whether nothing would run it, and the address to move it. That is empty if it cannot be."""
    may_move = visit.may_change and parse_instant(row["utc"]) > visit.now
    move = f"tasks/{row['taskId']}?{urlencode({'move': parse_instant(row['utc']).isoformat()})}#acts"
    return {**row, "inVain": explain_unregistered(row, unregistered), "move": only_if(may_move, move)}


def _list_windows(visit: Visit) -> list[tuple[str, str, bool]]:
    """Return the windows from now on: their words, their addresses, and whether each is the one that is shown."""
    shown = None if visit.query.get("from") or visit.query.get("until") else visit.query.get("within") or _WINDOW
    others: dict[str, str | None] = {"from": None, "until": None, "page": None}
    return [(WINDOWS[each][0], visit.with_query(within=each, **others), each == shown) for each in _WINDOWS]
