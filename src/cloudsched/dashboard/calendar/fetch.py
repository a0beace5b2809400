"""What a calendar asks the API: the counts of each day, and the runs and due occurrences that it draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar.span import DaySpan, choose_span
from cloudsched.dashboard.charts.waterfall_scale import merge
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.times import DAY, WallDay, find_start, make_day, parse_instant
from cloudsched.dashboard.upcoming import BUSY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

BOUND: Final = 150
"""The most executions and the most occurrences of which each is drawn. All are counted."""
_PER: Final = {"day": "PT15M", "week": "PT1H", "month": "P1D"}
_RARE: Final = 5
"""The number of handlers that fail, the rarest first, whose failures are started by name."""
_STOPS: Final = 3
"""The most times in which nothing started that are looked for."""
_LOOKS: Final = 4
_SAMPLE: Final = 12
"""The numbers of looks into such a time, and of the runs that each of them takes."""
_SHORTEST_STOP: Final = timedelta(minutes=30)
FILTERS: Final = ("owner", "handler", "label", "category", "status")
_ONE_OF: Final = ("label", "handler", "category")
"""Filters of which the API takes one for executions: the first given one, since few share a label."""
_PAGE: Final = 150
_MAX_PAGES: Final = 2
"""The most pages that are requested. Where no index has a filter, a page may have few items or none."""


@dataclass(slots=True)
class _Pages:
    """The items on the first pages of a list."""

    items: list[Json] = field(default_factory=list)
    has_more: bool = False
    complete_until: str | None = None
    """The instant until which the API has found all of them, if not to the end."""


@dataclass(slots=True)
class _Ran:
    """The ended executions."""

    items: list[Json] = field(default_factory=list)
    complete_from: str | None = None
    """The start of their complete list. None if it has all of them."""
    is_cut: bool = False
    """True if the search was given up."""


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for each day's counts, and for at most `BOUND` of the executions and of the due occurrences."""
    span = choose_span(visit)
    start = find_start(span.first, visit.zone)
    end = find_start(span.end, visit.zone)
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    wanted["category"] = wanted["category"].upper()
    wanted["status"] = wanted["status"].upper()
    near = {"from": start.isoformat(), "until": end.isoformat()}
    if span.kind == "month":  # its days are drawn from counts alone
        near = _find_table(span, visit)

    per = _PER[span.kind]
    also = {name: wanted[name] for name in ("owner", "handler", "label", "category")}
    parts = None
    ran = _Ran()
    late: Json = {}
    if start <= visit.now:
        until = min(end, visit.now)
        if start < until:
            parts = _fetch_counts(api, visit, start, until, per, wanted)
            late = _count_due(api, visit, start, until, per, also)
        ran = _fetch_ran(api, near, wanted)
        _add_rare(api, near, wanted, ran)
    due = _Pages()
    coming: Json = {}
    if end > visit.now:  # a status is one of what ran: what is to come has none, so it stays
        begin = max(start, visit.now)
        coming = _count_due(api, visit, begin, end, per, also)
        due = _fetch_all(api, "/v1/occurrences", "occurrences", {**near, **also, "mostPerDay": str(BUSY)})
    paused, more_paused = _count_paused(api, wanted)
    return {
        "ran": ran.items,
        "moreRan": ran.complete_from is not None,
        "counts": parts,
        "lateCounts": late.get("parts"),
        "dueCounts": coming.get("parts"),
        "due": due.items,
        "dueUntil": min(filter(None, (late.get("completeUntil"), coming.get("completeUntil"))), default=None),
        "stops": _find_stops(api, visit, parts or (), ran, also),
        "paused": paused,
        "morePaused": more_paused,
    }


def _count_due(api: Api, visit: Visit, start: datetime, end: datetime, per: str, also: Mapping[str, str]) -> Json:
    near = {"from": start.isoformat(), "until": end.isoformat(), "timezone": visit.zone.key, "per": per}
    found: Json = api.get("/v1/occurrences/counts", **near, **also)
    return found


def _add_rare(api: Api, near: Mapping[str, str], wanted: Mapping[str, str], ran: _Ran) -> None:
    """Add the failures of the handlers that fail for the fewest tasks, which others would hide."""
    if ran.complete_from is None or any(wanted[name] for name in _ONE_OF) or wanted["status"] not in {"", "FAILED"}:
        return
    needs = (api.find("/v1/overview", owner=wanted["owner"]) or {}).get("needs", ())
    groups = [group for need in needs if need["cause"] == "FAILED" for group in need.get("groups", ())]
    known = {(each["taskId"], each["id"]) for each in ran.items}
    for group in groups[:_RARE]:
        query = {**near, "owner": wanted["owner"], "handler": group["handler"], "status": "FAILED"}
        if wanted["owner"]:  # no index has both
            query.pop("handler")
        page = api.get("/v1/executions", **query, pageSize=2 * BUSY)
        ran.items += [each for each in page["executions"] if (each["taskId"], each["id"]) not in known]
        known |= {(each["taskId"], each["id"]) for each in page["executions"]}


def _find_stops(api: Api, visit: Visit, parts: Sequence[Json], ran: _Ran, also: Mapping[str, str]) -> list[Json]:
    """Return the times in which nothing started although something was due.

    What was skipped says when: from its first occurrence until its record was written. So does a run that started
    late. Of that time, what lies between two starts is a stop, if no start is found in it.
    """
    tails = [_find_tail(each) for each in ran.items]
    waits = [*_find_skipped_spans(api, visit, parts, also), *filter(None, tails)]
    starts = [parse_instant(each["startedAt"]) for each in ran.items if each.get("startedAt")]
    longest = sorted(merge(waits), key=lambda wait: wait[1] - wait[0])[-_STOPS:]
    found = [stop for each in sorted(longest) if (stop := _find_stop(api, *each, starts, also))]
    if found:
        found[0] = _extend(api, *found[0], parts, also)
    return [{"start": start.isoformat(), "end": end.isoformat()} for start, end in found]


def _extend(
    api: Api, start: datetime, end: datetime, parts: Sequence[Json], also: Mapping[str, str]
) -> tuple[datetime, datetime]:
    """Return a stop that begins with the first part, if runs were due before it and none is found that started."""
    before = [each for each in parts if parse_instant(each["end"]) <= start]
    if any(each["ran"] or each["failed"] or each["skipped"] for each in before):
        first = parse_instant(parts[0]["start"])
        if not _list_starts(api, first, start, also):
            return first, end
    return start, end


def _find_skipped_spans(
    api: Api, visit: Visit, parts: Sequence[Json], also: Mapping[str, str]
) -> list[tuple[datetime, datetime]]:
    """Return the times from what was skipped first until its record was written, the earliest first."""
    found: list[tuple[datetime, datetime]] = []
    for part in parts:
        start = parse_instant(part["start"])
        if not part["skipped"] or len(found) == _STOPS or (found and start < found[-1][1]):
            continue
        first = _narrow(api, visit, start, parse_instant(part["end"]), also)
        soon = first + timedelta(minutes=5)
        records: list[Json] = []
        for until in (soon.isoformat(), part["end"]):  # the latest come first, and the earliest tell more
            near = {"from": first.isoformat(), "until": until, **_choose_one(also), "status": "SKIPPED"}
            records = records or api.get("/v1/executions", **near, pageSize=_SAMPLE)["executions"]
        if spans := [*filter(None, map(_find_span, records))]:
            found.append(min(spans))
    return found


def _narrow(api: Api, visit: Visit, start: datetime, end: datetime, also: Mapping[str, str]) -> datetime:
    """Return the first hour of a day in which something was skipped, or the start of a shorter part."""
    if end - start <= timedelta(hours=1):
        return start
    hours = _fetch_counts(api, visit, start, end, _PER["week"], {**also, "status": ""})
    return next((parse_instant(each["start"]) for each in hours or () if each["skipped"]), start)


def _find_stop(
    api: Api, start: datetime, end: datetime, starts: Iterable[datetime], also: Mapping[str, str]
) -> tuple[datetime, datetime] | None:
    """Return the longest part of a time in which nothing started. None if it is short, or there is none for sure."""
    known = {at for at in starts if start < at < end}
    for _ in range(_LOOKS):
        begin, finish = max(pairwise(sorted({start, end, *known})), key=lambda part: part[1] - part[0])
        if finish - begin < _SHORTEST_STOP:
            return None
        found = _list_starts(api, begin, finish, also)
        if not found:
            return begin, finish
        known |= found
    return None


def _list_starts(api: Api, start: datetime, end: datetime, also: Mapping[str, str]) -> set[datetime]:
    """Return when some of the runs started that were due in a time, if they did so in it."""
    found: set[datetime] = set()
    step = (end - start) / _LOOKS
    for number in range(_LOOKS):
        near = {"from": (start + number * step).isoformat(), "until": (start + (number + 1) * step).isoformat()}
        page = api.get("/v1/executions", **near, **_choose_one(also), pageSize=_SAMPLE)
        began = (parse_instant(each["startedAt"]) for each in page["executions"] if each.get("startedAt"))
        found |= {at for at in began if start < at < end}
    return found


def _choose_one(also: Mapping[str, str]) -> dict[str, str]:
    """Return filters that an index has together: the owner, and one of the others."""
    one = next((name for name in _ONE_OF if also.get(name)), "")
    return {name: also[name] for name in ("owner", one) if also.get(name)}


def _find_span(record: Json) -> tuple[datetime, datetime] | None:
    if "finishedAt" not in record:
        return None
    return parse_instant(record["scheduledFor"]), parse_instant(record["finishedAt"])


def _find_tail(record: Json) -> tuple[datetime, datetime] | None:
    """Return the time that a run of a schedule waited for its start, if it was long."""
    if "startedAt" not in record or record.get("trigger", "SCHEDULE") != "SCHEDULE":
        return None
    due, started = parse_instant(record["scheduledFor"]), parse_instant(record["startedAt"])
    return (due, started) if started - due >= _SHORTEST_STOP else None


def _find_table(span: DaySpan, visit: Visit) -> dict[str, str]:
    """Return the beginning and the end of the day whose table is shown."""
    day = choose_day([make_day(each, visit.zone) for each in span.days], visit).day
    start = find_start(day, visit.zone)
    end = find_start(day + DAY, visit.zone)
    return {"from": start.isoformat(), "until": end.isoformat()}


def choose_day(days: list[WallDay], visit: Visit) -> WallDay:
    """Return the day whose table is shown: today, one with a clock change, or the first."""
    today = visit.now.astimezone(visit.zone).date()
    return min(days, key=lambda each: (each.day != today, not each.spans, each.day))


def _count_paused(api: Api, wanted: Mapping[str, str]) -> tuple[int, bool]:
    """Return the number of paused tasks, and whether there may be more. It is known by owner only."""
    if any(wanted[name] for name in _ONE_OF):
        return 0, False
    counts = api.find("/v1/overview", owner=wanted["owner"]) or {}
    return int(counts.get("tasks", {}).get("PAUSED", 0)), "PAUSED" in counts.get("atLeast", ())


def _fetch_counts(
    api: Api, visit: Visit, start: datetime, until: datetime, per: str, wanted: Mapping[str, str]
) -> list[Json] | None:
    """Return the counts of each part. None if the API cannot count for these filters."""
    if wanted["status"] not in {"", "FAILED"}:
        return None
    query = {name: wanted[name] for name in ("owner", *_ONE_OF)}
    near = {"from": start.isoformat(), "until": until.isoformat(), "timezone": visit.zone.key, "per": per}
    found = api.find("/v1/executions/counts", **near, **query)
    if found is None:
        return None
    parts: list[Json] = found["parts"]
    if wanted["status"]:
        return [{**each, "ran": 0, "skipped": 0} for each in parts]
    return parts


def _fetch_ran(api: Api, near: Mapping[str, str], wanted: Mapping[str, str]) -> _Ran:
    """Return the ended executions. Timeouts count as failures.

    No index has two of `_ONE_OF`, so the others are filtered here.
    """
    others = [name for name in _ONE_OF if wanted[name]][1:]
    asked = {**near, **{name: value for name, value in wanted.items() if name not in others}}
    statuses = sorted(BAD) if wanted["status"] == "FAILED" else [wanted["status"]]
    ran = _Ran()
    since: list[str] = []
    for status in statuses:
        pages = _fetch_all(api, "/v1/executions", "executions", {**asked, "status": status})
        ran.items += [each for each in pages.items if all(each.get(name) == wanted[name] for name in others)]
        if pages.has_more:
            ran.is_cut |= len(pages.items) < BOUND
            since.append(_find_complete(pages.items, status) or near["until"])
    ran.complete_from = max(since, key=parse_instant, default=None)
    return ran


def _find_complete(records: list[Json], status: str) -> str | None:
    """Return the start of a complete list of executions, of which there are more. None if nothing of it is complete.

    Failures come first: as long as there are more of them, nothing is known of all others.
    """
    if not records or (not status and records[-1]["status"] in {*BAD, *OPEN}):
        return None
    return str(records[-1]["scheduledFor"])


def _fetch_all(api: Api, path: str, name: str, query: Mapping[str, str], bound: int = BOUND) -> _Pages:
    pages = _Pages()
    token: str | None = ""
    for _ in range(_MAX_PAGES):
        page = api.get(path, **query, pageSize=_PAGE, pageToken=token)
        pages.items += page[name]
        pages.complete_until = pages.complete_until or page.get("completeUntil")
        token = page.get("nextPageToken")
        if token is None or len(pages.items) >= bound:
            break
    pages.has_more = token is not None or len(pages.items) > bound
    del pages.items[bound:]
    return pages
