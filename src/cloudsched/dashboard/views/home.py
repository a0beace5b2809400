"""The home page: what needs attention, what ran and what is next, the numbers of tasks, and the health."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts.run_bars import read_count
from cloudsched.dashboard.status import explain_unregistered, find_unregistered, show_need
from cloudsched.dashboard.times import parse_instant
from cloudsched.dashboard.views.actions import fetch_notes
from cloudsched.dashboard.views.health import build_health, fetch_health
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LISTED: Final = 5
_AHEAD: Final = timedelta(days=1)
_RAN: Final = {RunOutcome.RAN: "succeeded", RunOutcome.FAILED: "failed", RunOutcome.SKIPPED: "skipped"}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the counts and what needs attention, for what is next, and for the health."""
    counts = api.find("/v1/overview")
    return {
        "counts": counts,
        "restorable": fetch_notes(api, visit),
        "next": _fetch_next(api, visit),
        "health": fetch_health(api),
    }


def _fetch_next(api: Api, visit: Visit) -> list[Json]:
    """Return the tasks that are due next, each once.

    One whose open run has left its next occurrences behind is found by its occurrences alone.
    """
    tasks = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=_LISTED)["tasks"]
    found = [{**each, "taskId": each["id"], "utc": each["nextExecutionTime"]} for each in tasks]
    near = {"from": visit.soonest, "until": (visit.now + _AHEAD).isoformat()}
    found += api.get("/v1/occurrences", **near, pageSize=_LISTED)["occurrences"]
    found.sort(key=lambda each: parse_instant(each["utc"]))
    return list({each["taskId"]: each for each in reversed(found)}.values())[::-1][:_LISTED]


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    counts = answer["counts"] or {}
    unregistered = find_unregistered(counts)
    coming = [{**each, "inVain": explain_unregistered(each, unregistered)} for each in answer["next"]]
    needs = counts.get("needs", ())
    said = "Nothing needs you."
    if not counts:
        said = "Whether anything needs you is not known: the counts are missing."
    elif needs:
        said = write_count(len(needs), "thing needs you.", "things need you.")
    following = next((each for each in coming if not each["inVain"]), None)
    soon = following and visit.moment(following["utc"]).relative
    return {
        "said": said,
        "sentence": said + only_if(soon, f" Next: {following and following['title']}, {soon}."),
        "needs": [{**each, "look": show_need(each["cause"])} for each in needs],
        "ran": [*_list_ran(counts.get("hours", ()))],
        "numbers": [*_list_numbers(counts)],
        "next": coming,
        "restorable": answer["restorable"],
        "health": build_health(answer["health"], counts, visit),
    }


def _list_ran(hours: list[Json]) -> Iterator[tuple[str, str]]:
    """Yield what the runs of the last hours came to, each with the list of these."""
    for outcome, word in _RAN.items():
        if count := sum((read_count(each[outcome.lower()]) for each in hours), Count(value=0)):
            bounds = {"from": hours[0]["start"], "until": hours[-1]["end"]}
            yield write_count(count.to_wire(), word, word), f"runs?{urlencode({**bounds, 'outcome': outcome.value})}"


def _list_numbers(counts: Json) -> Iterator[tuple[str, Json, str]]:
    """Yield the statuses that any task has, with the number and the list of these, calls included."""
    for status in TaskStatus:
        count = counts.get("tasks", {}).get(status)
        if count and count["value"]:
            yield status, count, f"tasks?{urlencode({'status': status.value, 'calls': 'true'})}"
