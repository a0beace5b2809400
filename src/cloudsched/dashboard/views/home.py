"""The home page: health, open problems, current and next runs, and those who wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.strip import StripBar, count_due, draw_lateness, draw_strip, make_bars
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.times import find_instant, parse_instant, write_duration
from cloudsched.dashboard.views.attention import build_attention, fetch_needs
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.views.health import build_health, fetch_health
from cloudsched.dashboard.words import only_if, write_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

REACH: Final = timedelta(hours=12)
"""The reach of the strip, each way."""
ON_TIME: Final = timedelta(seconds=0.1)
"""A smaller delay does not count as late."""
_HOUR: Final = timedelta(hours=1)
_EXECUTIONS: Final = 100
_DUE: Final = 250
_LISTED: Final = 8
_BARS: Final = 48


@dataclass(frozen=True, slots=True)
class _Past:
    """The executions that ended in the last hours."""

    good: int
    bad: int
    is_at_least: bool
    """True if more have failed than were listed."""
    bars: Sequence[StripBar]
    starts: Sequence[tuple[datetime, timedelta]]
    """The instants at which occurrences of schedules were due, and their delays."""

    def write_bad(self) -> str:
        """Return the number of failures."""
        return f"{only_if(self.is_at_least, 'at least ')}{self.bad:,}"


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for recent runs and failures, due tasks, waiting tasks, and the health."""
    since = (visit.now - REACH).isoformat()
    until = (visit.now + REACH).isoformat()
    counts = api.find("/v1/overview")
    due = api.get("/v1/occurrences", **{"from": visit.soonest}, until=until, pageSize=_DUE)
    following = []
    if not due["occurrences"]:
        following = api.get("/v1/tasks", dueFrom=visit.soonest, orderBy="nextExecutionTime", pageSize=1)["tasks"]

    return {
        "executions": api.get("/v1/executions", **{"from": since}, pageSize=_EXECUTIONS),
        "open": [
            each
            for status in sorted(OPEN)
            for each in api.get("/v1/executions", status=status, pageSize=_LISTED)["executions"]
        ],
        "due": due,
        "next": following,
        "queues": api.get("/v1/queues")["queues"],
        "needs": fetch_needs(api, visit, counts),
        "counts": counts or {},
        "health": fetch_health(api),
    }


def build(answer: Json, visit: Visit) -> Json:
    """Return what Home shows."""
    past = _read_past(answer, visit)
    attention = build_attention(answer["needs"], answer["queues"], visit)
    opened = sum(answer["counts"].get("open", {}).values()) or len(answer["open"])
    rows = _group_due(answer["due"]["occurrences"])
    return {
        **attention,
        **_build_strip(past, answer["due"], visit),
        **_build_due(rows, answer, visit),
        "sentence": _write_sentence(attention, past, opened, rows, visit),
        "lateness": draw_lateness(past.starts, visit.now, REACH, visit.zone),
        "latenessText": _write_lateness([late for _, late in past.starts]),
        "open": [build_execution(each, visit) for each in answer["open"][:_LISTED]],
        "moreOpen": max(0, opened - _LISTED),
        "queues": answer["queues"],
        "health": build_health(answer["health"], answer["counts"], visit),
    }


def _build_strip(past: _Past, answer: Json, visit: Visit) -> Json:
    """Return the strip, and its content in words. If not all that is due came, the rest is hatched."""
    due = [parse_instant(each["utc"]) for each in answer["occurrences"]]
    known_until = None
    drawn = ""
    if due and answer.get("nextPageToken"):
        known_until = due[-1]
        drawn = f", drawn until {visit.moment(known_until).text}; what comes after that is hatched"
    coming = write_count(len(due), "is", "are", is_at_least=known_until)
    return {
        "strip": draw_strip(count_due(past.bars, due), visit.now, REACH, visit.zone, known_until),
        "stripText": f"{past.good:,} ended well and {past.write_bad()} failed in the last 12 h; "
        f"{coming} due in the next 12 h{drawn}",
    }


def _build_due(rows: Sequence[Json], answer: Json, visit: Visit) -> Json:
    """Return what is due next, or the first that is due after the next hours."""
    following = [each["utc"] for each in rows[:1]] + [each.get("nextExecutionTime") for each in answer["next"]]
    next_due = next(iter(following), None)
    nothing = "Nothing is due."
    if next_due:
        nothing = f"Nothing is due until {visit.moment(next_due).text}."
    shown = rows[:_LISTED]
    return {
        "due": shown,
        "nextDue": next_due,
        "notDue": nothing,
        "moreDue": max(0, len(answer["due"]["occurrences"]) - sum(1 + row["more"] for row in shown)),
    }


def _group_due(occurrences: Iterable[Json]) -> list[Json]:
    """Return the first occurrence of each task, with the number of those that follow."""
    times: dict[str, list[Json]] = {}
    for each in occurrences:
        times.setdefault(each["taskId"], []).append(each)
    return [{**group[0], "more": len(group) - 1} for group in times.values()]


def _read_past(answer: Json, visit: Visit) -> _Past:
    """Return the ended runs, one by one if the API has listed all of them, otherwise as it has counted by hour.

    The record of the run that made a call has the call's end, so a failed call is not counted beside it, as in the list
    of runs.
    """
    listed = answer["executions"]["executions"]
    executions = [each for each in listed if each["status"] not in OPEN and not each.get("calledBy")]
    bad = [parse_instant(each["scheduledFor"]) for each in executions if each["status"] in BAD]
    if answer["executions"].get("nextPageToken") and answer["counts"].get("hours"):
        return _read_counts(answer["counts"], bad, visit, is_cut=all(each["status"] in BAD for each in listed))

    good = [parse_instant(each["scheduledFor"]) for each in executions if each["status"] not in BAD]
    return _Past(
        good=len(good),
        bad=len(bad),
        is_at_least=False,
        bars=make_bars(good, bad, visit.now - REACH, visit.now + REACH, bins=_BARS),
        starts=[*_list_starts(executions)],
    )


def _list_starts(executions: Iterable[Json]) -> Iterator[tuple[datetime, timedelta]]:
    for each in executions:
        started = find_instant(each, "startedAt")
        if started is not None and each.get("trigger", "SCHEDULE") == "SCHEDULE":
            due = parse_instant(each["scheduledFor"])
            yield due, max(timedelta(0), started - due)


def _read_counts(counts: Json, bad: Sequence[datetime], visit: Visit, *, is_cut: bool) -> _Past:
    """Return the ended runs as they were counted.

    Failures are listed first, so their number is exact unless they fill the list.
    """
    failed = Counter(at.replace(minute=0, second=0, microsecond=0) for at in bad)
    bars = []
    for each in counts["hours"]:
        start = parse_instant(each["start"])
        bars.append(StripBar(start, start + _HOUR, each["others"], each["failed"] if is_cut else failed[start]))
    last = bars[-1].end
    ahead = [StripBar(last + _HOUR * hour, last + _HOUR * (hour + 1)) for hour in range(13)]
    starts = [(parse_instant(each["scheduledFor"]), timedelta(seconds=each["lateness"])) for each in counts["starts"]]
    return _Past(
        good=sum(bar.good for bar in bars),
        bad=len(bad),
        is_at_least=is_cut,
        bars=[*bars, *ahead],
        starts=[(at, late) for at, late in starts if at >= visit.now - REACH],
    )


def _write_lateness(lateness: Iterable[timedelta]) -> str:
    ordered = sorted(lateness)
    if not ordered:
        return "Lateness: no schedule's occurrence has started in the last 12 h."
    if ordered[-1] < ON_TIME:
        return f"Lateness: all {len(ordered):,} that started did so on time."
    half = ordered[(len(ordered) - 1) // 2]
    return (
        f"Lateness: of {len(ordered):,} that started, half did so within {write_duration(half)}, "
        f"the latest after {write_duration(ordered[-1])}."
    )


def _write_sentence(attention: Json, past: _Past, opened: int, due: Sequence[Json], visit: Visit) -> str:
    said = str(attention["calm"]).partition(":")[0].partition(".")[0]
    if attention["needs"]:
        things = write_count(attention["count"], "thing needs you", "things need you")
        said = only_if(attention["isAtLeast"], "At least ") + things
    if past.bad:
        said += f", {past.write_bad()} failed in the last 12 h"
    said += f". {opened:,} open."
    if due:
        said += f" Next: {due[0]['title']}, {visit.moment(due[0]['utc']).relative}."
    return said
