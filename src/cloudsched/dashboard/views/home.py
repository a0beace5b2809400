"""The home page: health, open problems, current and next runs, and those who wait."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.charts.legend import STRIP, list_legend
from cloudsched.dashboard.charts.strip import WORDS, StripBar, draw_lateness, draw_strip
from cloudsched.dashboard.status import OPEN
from cloudsched.dashboard.times import BLANK, parse_instant, write_duration
from cloudsched.dashboard.views.actions import fetch_restorable, fetch_under_way
from cloudsched.dashboard.views.attention import build_attention, fetch_needs
from cloudsched.dashboard.views.audit import list_deployments
from cloudsched.dashboard.views.causes import name_unregistered
from cloudsched.dashboard.views.due_next import build_due, fetch_due_next
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.views.health import build_health, fetch_health
from cloudsched.dashboard.views.held_up import fetch_held_up
from cloudsched.dashboard.words import only_if, write_count
from cloudsched.domain.documents.run_counts import STARTED_LATE
from cloudsched.domain.documents.task import TaskStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

REACH: Final = timedelta(hours=12)
"""The reach of the strip, each way."""
_HOUR: Final = timedelta(hours=1)
_MINUTE: Final = timedelta(minutes=1)
_LISTED: Final = 8

_RARE: Final = frozenset({"skipped", "waiting", "late"})
"""Those that have no column if they are zero in all hours."""


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for recent runs and failures, due tasks, waiting tasks, and the health."""
    until = (visit.now + REACH).isoformat()
    counts = api.find("/v1/overview")
    counted = "/v1/occurrences/counts"
    coming = api.get(counted, **{"from": visit.soonest}, until=until, per="PT1H")
    hours = (counts or {}).get("hours", ())
    since = hours[0]["start"] if hours else (visit.now - REACH).isoformat()
    past = {"from": since, "until": _find_late(visit)}
    waiting = api.get(counted, **past, per="PT1H")["parts"]
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
        "coming": coming,
        "waiting": waiting,
        "queues": api.get("/v1/queues")["queues"],
        "needs": fetch_needs(api, visit, counts),
        "counts": counts or {},
        "health": fetch_health(api),
    }


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    bars = [replace(bar, links=_list_links(bar, visit)) for bar in _read_bars(answer)]
    attention = build_attention(answer["needs"], answer["queues"], visit)
    shown = {each["taskId"] for each in answer["open"]}
    opened = sum(answer["counts"].get("open", {}).values()) or len(shown)
    unregistered = name_unregistered(answer["counts"])
    due = [build_due(each, unregistered, visit) for each in answer["due"]]
    strip = _build_strip(bars, answer, visit)
    lateness = draw_lateness(_list_late(answer["counts"], visit), visit.now, REACH, visit.zone)
    return {
        **attention,
        **strip,
        **_build_due(due, answer, visit),
        "sentence": _write_sentence(attention, bars, _write_open(answer["counts"], opened), due, visit),
        "lateness": lateness,
        "legend": list_legend(STRIP, [strip["strip"], lateness]),
        "latenessText": _write_lateness(answer["counts"], sum(bar.waiting for bar in bars), visit),
        "restorable": answer.get("restorable", ()),
        "open": [build_execution(each, visit) for each in answer["open"]],
        "moreOpen": max(0, opened - len(shown)),
        "queues": answer["queues"],
        "health": build_health(answer["health"], answer["counts"], visit),
    }


def _find_late(visit: Visit) -> str:
    """Return the instant before which what was due is late, if it has not started: others are about to start."""
    return (visit.now - STARTED_LATE).isoformat()


def _read_bars(answer: Json) -> list[StripBar]:
    """Return the hours of the strip, as the API has counted them: what has ended, and what is late or due."""
    bars = [
        StripBar(
            parse_instant(each["start"]),
            parse_instant(each["end"]),
            **{name: each[name] for name in ("ran", "failed", "skipped", "late")},
        )
        for each in answer["counts"].get("hours", ())
    ]
    known = {bar.start: bar for bar in bars}
    for name, parts in (("waiting", answer["waiting"]), ("due", answer["coming"]["parts"])):
        for each in parts:
            start = parse_instant(each["start"]).replace(minute=0, second=0, microsecond=0)
            known[start] = replace(known.get(start, StripBar(start, start + _HOUR)), **{name: each["due"]})
    return sorted(known.values(), key=lambda bar: bar.start)


def _build_strip(bars: Sequence[StripBar], answer: Json, visit: Visit) -> Json:
    """Return the strip, its content in words, and the hours as a table. If not all that is due is known, it says so."""
    known_until = None
    if answer["coming"].get("completeUntil"):
        known_until = parse_instant(answer["coming"]["completeUntil"])
    deployments = _list_deployments(answer["counts"], visit)
    marks = [(parse_instant(each["at"]), f"Deployment of {each['version']}") for each in deployments]
    since = visit.moment(bars[0].start if bars else visit.now).short
    due = sum(bar.due for bar in bars)
    totals = {name: sum(getattr(bar, name) for bar in bars) for name in ("ran", "skipped", "failed", "waiting")}
    counted = [f"{total:,} {WORDS[name]}" for name, total in totals.items() if total or name not in _RARE]
    said = write_count(due, "is", "are", is_at_least=known_until is not None)
    return {
        "strip": draw_strip(bars, visit.now, REACH, visit.zone, known_until, marks),
        "deployments": deployments,
        "stripText": f"Of the runs due since {since}: {', '.join(counted)}. {said} due in the next 12{BLANK}h.",
        "hours": [_build_hour(each) for each in bars if each.total],
        "columns": {
            name: word for name, word in WORDS.items() if name not in _RARE or any(getattr(bar, name) for bar in bars)
        },
    }


def _list_deployments(counts: Json, visit: Visit) -> list[Json]:
    """Return the deployments on the strip, each with the path of its place in the list of changes."""
    known = (counts.get("sweep") or {}).get("deployments", [])
    shown = list_deployments(known, visit.now - REACH, visit.now)
    return [
        {**each, "link": f"audit?{urlencode({'until': (parse_instant(each['at']) + _MINUTE).isoformat()})}"}
        for each in shown
    ]


def _list_links(bar: StripBar, visit: Visit) -> dict[str, str]:
    """Return the paths of the lists that an hour's numbers count."""
    bounds = {"from": bar.start.isoformat(), "until": bar.end.isoformat()}
    lists = {name: f"runs?{urlencode({**bounds, 'outcome': name})}" for name in ("ran", "failed", "skipped")}
    lists["late"] = f"runs?{urlencode({**bounds, 'minLateness': 'PT1M'})}"
    start = max(bar.start, parse_instant(visit.soonest)).isoformat()
    end = min(bar.end, visit.now + REACH).isoformat()
    lists["due"] = f"due?{urlencode({'from': start, 'until': end})}"
    end = min(bar.end, parse_instant(_find_late(visit))).isoformat()
    lists["waiting"] = f"due?{urlencode({'from': bar.start.isoformat(), 'until': end})}"
    return lists


def _build_hour(bar: StripBar) -> Json:
    """Return an hour's numbers, each with the path of the list that it counts."""
    numbers = {name: getattr(bar, name) for name in bar.links}
    return {"start": bar.start.isoformat(), "numbers": numbers, "links": bar.links}


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
        "moreDue": max(0, sum(each["due"] for each in answer["coming"]["parts"]) - len(due)),
    }


def _list_late(counts: Json, visit: Visit) -> list[tuple[datetime, timedelta]]:
    """Return the latest runs that started late, and by how much."""
    found = [(parse_instant(each["scheduledFor"]), each["lateness"]) for each in counts.get("lateStarts", ())]
    return [(at, timedelta(seconds=late)) for at, late in found if at >= visit.now - REACH]


def _write_lateness(counts: Json, waiting: int, visit: Visit) -> str:
    """Return how late the runs started, and how many have not."""
    others = only_if(waiting, f" {write_count(waiting, 'more was due and has', 'more were due and have')} not started.")
    hours = counts.get("hours", ())
    started = sum(each["ran"] + each["failed"] for each in hours)
    late = sum(each["late"] for each in hours)
    if not started:
        return f"Lateness: nothing started in these hours.{others}"
    if not late:
        they = {1: "the only run", 2: "both runs"}.get(started, f"all {started:,} runs")
        return f"Lateness: {they} started within a minute.{others}"
    known = _list_late(counts, visit)
    most = write_duration(max((late for _, late in known), default=timedelta(0)))
    of_them = only_if(len(known) < late, f"the latest {len(known)} of them ")
    return f"Lateness: {late:,} of {started:,} started more than a minute late, {of_them}by up to {most}.{others}"


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


def _write_sentence(attention: Json, bars: Sequence[StripBar], opened: str, due: Sequence[Json], visit: Visit) -> str:
    said = str(attention["calm"]).partition(":")[0].partition(".")[0]
    if attention["needs"]:
        things = write_count(attention["count"], "thing needs you", "things need you")
        said = only_if(attention["isAtLeast"], "At least ") + things
    if failed := sum(bar.failed for bar in bars):
        said += f"; {write_count(failed, 'run', 'runs')} failed since {visit.moment(bars[0].start).short}"
    said += f". {opened}"
    if following := next((each for each in due if not each["inVain"]), None):
        said += f" Next: {following['title']}, {visit.moment(following['utc']).relative}."
    return said
