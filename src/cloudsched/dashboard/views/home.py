"""The home page: health, open problems, current and next runs, and those who wait."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts.run_bars import RunPart, draw_bars, fetch_due, read_parts
from cloudsched.dashboard.status import OPEN
from cloudsched.dashboard.times import parse_instant, write_duration
from cloudsched.dashboard.views.actions import fetch_restorable, fetch_under_way
from cloudsched.dashboard.views.attention import build_attention, fetch_needs
from cloudsched.dashboard.views.audit import list_deployments
from cloudsched.dashboard.views.causes import name_unregistered
from cloudsched.dashboard.views.due_next import build_due, fetch_due_next
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.views.health import build_health, fetch_health
from cloudsched.dashboard.views.held_up import fetch_held_up
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

REACH: Final = timedelta(hours=12)
"""The reach of the strip, each way."""
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)
_LISTED: Final = 8


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for recent runs and failures, due tasks, waiting tasks, and the health."""
    counts = api.find("/v1/overview")
    hour = visit.now.replace(minute=0, second=0, microsecond=0) + _HOUR
    due = fetch_due(api, visit, hour - REACH, hour + REACH, per="PT1H", timezone="UTC")
    opened = [
        each
        for status in sorted(OPEN)
        for each in api.get("/v1/executions", status=status, pageSize=_LISTED)["executions"]
    ][:_LISTED]
    restorable = fetch_under_way(api, visit)
    if (counts or {}).get("tasks", {}).get(TaskStatus.PAUSED):
        restorable += fetch_restorable(api, visit)
    return {
        "restorable": restorable,
        "open": [{**each, "heldUp": fetch_held_up(api, visit, each)} for each in opened],
        **fetch_due_next(api, visit, visit.now + REACH),
        "parts": {"ran": (counts or {}).get("hours", ()), **due},
        "queues": api.get("/v1/queues")["queues"],
        "needs": fetch_needs(api, visit, counts),
        "counts": counts or {},
        "health": fetch_health(api),
    }


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    parts = read_parts(answer["parts"], lambda at: at.replace(minute=0, second=0, microsecond=0))
    whole = reduce(operator.add, parts)
    attention = build_attention(answer["needs"], answer["queues"], visit)
    shown = {each["taskId"] for each in answer["open"]}
    opened = sum(answer["counts"].get("open", {}).values()) or len(shown)
    unregistered = name_unregistered(answer["counts"])
    due = [build_due(each, unregistered) for each in answer["due"]]
    return {
        **attention,
        **_build_due(due, answer, visit),
        "sentence": _write_sentence(attention, whole, _write_open(answer["counts"], opened), due, visit),
        "numbers": [*whole.list_numbers(visit)],
        "strip": _draw_strip(parts, visit),
        "axis": [visit.moment(each.start).clock for each in parts[::6]],
        "deployments": _list_deployments(answer["counts"], visit),
        "latenessText": _write_lateness(answer["counts"], visit),
        "restorable": answer.get("restorable", ()),
        "open": [build_execution(each, visit) for each in answer["open"]],
        "moreOpen": max(0, opened - len(shown)),
        "queues": answer["queues"],
        "health": build_health(answer["health"], answer["counts"], visit),
    }


def _draw_strip(parts: Sequence[RunPart], visit: Visit) -> Markup:
    places = [(index / len(parts), (index + 1) / len(parts), each) for index, each in enumerate(parts)]
    return draw_bars(places, max(each.height for each in parts), "Runs by hour", visit)


def _list_deployments(counts: Json, visit: Visit) -> list[Json]:
    """Return the deployments on the strip, each with the path of its place in the list of changes."""
    known = (counts.get("sweep") or {}).get("deployments", [])
    shown = list_deployments(known, visit.now - REACH, visit.now)
    return [
        {**each, "link": f"audit?{urlencode({'until': (parse_instant(each['at']) + _MINUTE).isoformat()})}"}
        for each in shown
    ]


def _build_due(due: Sequence[Json], answer: Json, visit: Visit) -> Json:
    """Return what is due next, or the first that is due after the next hours."""
    following = [each["utc"] for each in due[:1]] + [each.get("nextExecutionTime") for each in answer["next"]]
    next_due = next(iter(following), None)
    paused = _write_paused(answer["counts"])
    nothing = f"Nothing is due{only_if(paused, f': {paused}')}."
    if next_due:
        nothing = f"Nothing is due until {visit.moment(next_due).text}."
    return {
        "due": due,
        "nextDue": next_due,
        "notDue": nothing,
    }


def _list_late(counts: Json, visit: Visit) -> list[tuple[datetime, timedelta]]:
    """Return the latest runs that started late, and by how much."""
    found = [(parse_instant(each["scheduledFor"]), each["lateness"]) for each in counts.get("lateStarts", ())]
    return [(at, timedelta(seconds=late)) for at, late in found if at >= visit.now - REACH]


def _write_lateness(counts: Json, visit: Visit) -> str:
    """Return how late the runs started."""
    hours = counts.get("hours", ())
    started = sum(each["ran"] + each["failed"] for each in hours)
    late = sum(each["late"] for each in hours)
    if not started:
        return "Lateness: nothing started in these hours."
    if not late:
        they = {1: "the only run", 2: "both runs"}.get(started, f"all {started:,} runs")
        return f"Lateness: {they} started within a minute."
    known = _list_late(counts, visit)
    most = write_duration(max((late for _, late in known), default=timedelta(0)))
    of_them = only_if(len(known) < late, f"the latest {len(known)} of them ")
    return f"Lateness: {late:,} of {started:,} started more than a minute late, {of_them}by up to {most}."


def _write_open(counts: Json, opened: int) -> str:
    """Return how many tasks have open runs, and how many are paused, if any."""
    is_at_least = not OPEN.isdisjoint(counts.get("atLeast", ()))
    said = "Nothing is open."
    if opened:
        said = f"{write_count(opened, 'task has', 'tasks have', is_at_least=is_at_least).capitalize()} open runs."
    paused = _write_paused(counts)
    return said + only_if(paused, f" {paused[:1].upper()}{paused[1:]}.")


def _write_paused(counts: Json) -> str:
    """Return how many tasks are paused, for whatever reason. Empty if none is."""
    paused = counts.get("tasks", {}).get(TaskStatus.PAUSED, 0)
    is_at_least = TaskStatus.PAUSED in counts.get("atLeast", ())
    return only_if(paused, f"{write_count(paused, 'task is', 'tasks are', is_at_least=is_at_least)} paused")


def _write_sentence(attention: Json, whole: RunPart, opened: str, due: Sequence[Json], visit: Visit) -> str:
    said = str(attention["calm"]).partition(":")[0].partition(".")[0]
    if attention["needs"]:
        things = write_count(attention["count"], "thing needs you", "things need you")
        said = only_if(attention["isAtLeast"], "At least ") + things
    if failed := whole.counts["failed"].value:
        said += f"; {write_count(failed, 'run', 'runs')} failed since {visit.moment(whole.start).short}"
    said += f". {opened}"
    if following := next((each for each in due if not each["inVain"]), None):
        said += f" Next: {following['title']}, {visit.moment(following['utc']).relative}."
    return said
