"""What a calendar asks the API: the counts of each day, and the runs and due occurrences that it draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.calendar.span import DaySpan, choose_span
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.times import DAY, WallDay, find_start, make_day, parse_instant
from cloudsched.dashboard.upcoming import BUSY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

BOUND: Final = 150
"""The most executions and the most occurrences of which each is drawn. All are counted."""
LISTED: Final = 50
"""The number of a day's lines that are shown. No more is drawn where there is far more than `BOUND`: marks would hide
each other."""
_FAR_MORE: Final = 10 * BOUND
_PER: Final = {"day": "PT15M", "week": "PT1H", "month": "P1D"}
_RARE: Final = 5
"""The number of handlers that fail, the rarest first, whose failures are asked for by name."""
_SELDOM: Final = 2 * BUSY
"""The most tasks of such a handler that fail, and the most of its failures. More have bars, and no marks."""
FILTERS: Final = ("owner", "handler", "label", "category", "status")
_ONE_OF: Final = ("label", "handler", "category")
"""Filters of which the API takes one for executions: the first given one, since few share a label."""
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
    has_all_open: bool = True
    """True if all of them that are open are known."""


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
    overview = api.find("/v1/overview", owner=wanted["owner"]) or {}
    counts: Json | None = None
    ran = _Ran()
    late: Json = {}
    if start <= visit.now:
        until = min(end, visit.now)
        if start < until:
            counts = _fetch_counts(api, visit, start, until, per, wanted)
            late = _count_due(api, visit, start, until, per, also)
        ran = _fetch_ran(api, near, wanted, _choose_bound(counts, "ran", "failed", "skipped"))
        _add_rare(api, near, wanted, ran, overview.get("needs", ()))
        if not wanted["status"] and (span.kind == "month" or not ran.has_all_open):
            _add_open(api, {"from": start.isoformat(), "until": end.isoformat()}, wanted, ran)
    offered, has_all_offered = _fetch_offered(api, wanted, ran) if start <= visit.now else ([], True)
    coming: Json = {}
    if end > visit.now:  # a status is one of what ran: what is to come has none, so it stays
        begin = max(start, visit.now)
        coming = _count_due(api, visit, begin, end, per, also)
    due, sample = _fetch_due(api, near, _find_table(span, visit), also, (late, coming), ran.items)
    paused, more_paused = _count_paused(overview, wanted) if end > visit.now else (0, False)
    return {
        "ran": ran.items,
        "moreRan": ran.complete_from is not None,
        "moreOpen": not (ran.has_all_open and has_all_offered),
        "offered": offered,
        "counts": None if counts is None else counts["parts"],
        "lateCounts": late.get("parts"),
        "dueCounts": coming.get("parts"),
        "due": due.items,
        "busyDue": sample,
        "dueListedUntil": due.items[-1]["utc"] if due.has_more and due.items else None,
        "dueUntil": min(filter(None, (late.get("completeUntil"), coming.get("completeUntil"))), default=None),
        "paused": paused,
        "morePaused": more_paused,
    }


def _count_due(api: Api, visit: Visit, start: datetime, end: datetime, per: str, also: Mapping[str, str]) -> Json:
    near = {"from": start.isoformat(), "until": end.isoformat(), "timezone": visit.zone.key, "per": per}
    found: Json = api.get("/v1/occurrences/counts", **near, **also)
    return found


def _fetch_due(
    api: Api,
    near: Mapping[str, str],
    table: Mapping[str, str],
    also: Mapping[str, str],
    counts: Sequence[Json],
    ran: Sequence[Json],
) -> tuple[_Pages, list[Json]]:
    """Return what is late and due, if it is little. If not, return that of rare tasks, and a sample of busy ones.

    The sample is of the table's day: the first there, if something is late or the table has room.
    """
    late, coming = counts
    path, name = "/v1/occurrences", "occurrences"
    parts = [*late.get("parts", ()), *coming.get("parts", ())]
    total = sum(each["due"] for each in _list_within(parts, "start", near))
    if total <= BOUND and not any(each.get("completeUntil") for each in counts):
        return _fetch_all(api, path, name, {**near, **also}, BOUND) if total else _Pages(), []

    rare = {**near, **also, "mostPerDay": str(BUSY)}
    due = _fetch_all(api, path, name, rare, _choose_bound(coming, "due"))
    is_late = any(each["due"] for each in late.get("parts", ()))
    listed = [*_list_within(ran, "scheduledFor", table), *_list_within(due.items, "utc", table)]
    if not is_late and len(listed) >= LISTED:
        return due, []
    known = {each["taskId"] for each in due.items}
    sample = api.get(path, **table, **also, pageSize=LISTED)[name]
    return due, [each for each in sample if each["taskId"] not in known]


def _list_within(items: Sequence[Json], name: str, near: Mapping[str, str]) -> list[Json]:
    """Return the items whose instants of this name lie between two bounds."""
    start, end = parse_instant(near["from"]), parse_instant(near["until"])
    return [each for each in items if start <= parse_instant(each[name]) < end]


def _choose_bound(counts: Json | None, *names: str) -> int:
    """Return the most items to ask for, by the numbers of those that there are. None of what cannot be counted."""
    parts = counts["parts"] if counts else ()
    return LISTED if sum(part[name] for part in parts for name in names) > _FAR_MORE else BOUND


def _add_rare(api: Api, near: Mapping[str, str], wanted: Mapping[str, str], ran: _Ran, needs: Sequence[Json]) -> None:
    """Add the failures of the handlers that fail for the fewest tasks, which others would hide."""
    if ran.complete_from is None or any(wanted[name] for name in _ONE_OF) or wanted["status"] not in {"", "FAILED"}:
        return
    groups = [group for need in needs if need["cause"] == "FAILED" for group in need.get("groups", ())]
    rare = [group for group in groups if group["count"] <= _SELDOM]
    known = {(each["taskId"], each["id"]) for each in ran.items}
    for group in rare[:_RARE]:
        query = {**near, "owner": wanted["owner"], "handler": group["handler"], "status": "FAILED", "calls": "false"}
        if wanted["owner"]:  # no index has both
            query.pop("handler")
        page = api.get("/v1/executions", **query, pageSize=_SELDOM)
        ran.items += [each for each in page["executions"] if (each["taskId"], each["id"]) not in known]
        known |= {(each["taskId"], each["id"]) for each in page["executions"]}


def _add_open(api: Api, near: Mapping[str, str], wanted: Mapping[str, str], ran: _Ran) -> None:
    """Add what is open in all of a time, which counts leave out: in a month, or where a list had other runs first."""
    ran.has_all_open = True
    known = {(each["taskId"], each["id"]) for each in ran.items}
    for status in sorted(OPEN):
        found = _fetch_ran(api, near, {**wanted, "status": status}, BOUND)
        ran.items += [each for each in found.items if (each["taskId"], each["id"]) not in known]
        ran.has_all_open &= found.has_all_open


def _fetch_offered(api: Api, wanted: Mapping[str, str], ran: _Ran) -> tuple[list[Json], bool]:
    """Return the runs that wait for their first worker, and whether that is all of them. They have no record yet.

    Queues know the owners and the handlers of these, and nothing else of what a calendar is filtered by.
    """
    if any(wanted[name] for name in ("status", "label", "category")):
        return [], True
    owner = wanted["owner"]
    queues = {each["queue"] for each in api.get("/v1/queues", owner=owner)["queues"] if each["waiting"]["value"]}
    paths = [f"/v1/queues/{quote(queue, safe='')}/tasks" for queue in sorted(queues)]
    pages = [api.get(path, owner=owner, pageSize=LISTED) for path in paths]
    known = {each["taskId"] for each in ran.items if each["status"] in OPEN}
    offered = [
        each
        for page in pages
        for each in page["tasks"]
        if each["taskId"] not in known and wanted["handler"] in {"", each["handler"]}
    ]
    return offered, not any(page.get("nextPageToken") for page in pages)


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


def _count_paused(overview: Json, wanted: Mapping[str, str]) -> tuple[int, bool]:
    """Return the number of paused tasks, and whether there may be more. It is known by owner only."""
    if any(wanted[name] for name in _ONE_OF):
        return 0, False
    return int(overview.get("tasks", {}).get("PAUSED", 0)), "PAUSED" in overview.get("atLeast", ())


def _fetch_counts(
    api: Api, visit: Visit, start: datetime, until: datetime, per: str, wanted: Mapping[str, str]
) -> Json | None:
    """Return the counts of each part. None if the API cannot count for these filters."""
    if wanted["status"] not in {"", "FAILED"}:
        return None
    query = {name: wanted[name] for name in ("owner", *_ONE_OF)}
    near = {"from": start.isoformat(), "until": until.isoformat(), "timezone": visit.zone.key, "per": per}
    found = api.find("/v1/executions/counts", **near, **query)
    if found is not None and wanted["status"]:
        found["parts"] = [{**each, "ran": 0, "skipped": 0} for each in found["parts"]]
    return found


def _fetch_ran(api: Api, near: Mapping[str, str], wanted: Mapping[str, str], bound: int) -> _Ran:
    """Return the ended executions. Timeouts count as failures.

    No index has two of `_ONE_OF`, so the others are filtered here.
    """
    others = [name for name in _ONE_OF if wanted[name]][1:]
    asked = {"calls": "false", **near, **{name: value for name, value in wanted.items() if name not in others}}
    statuses = sorted(BAD) if wanted["status"] == "FAILED" else [wanted["status"]]
    ran = _Ran()
    since: list[str] = []
    for status in statuses:
        pages = _fetch_all(api, "/v1/executions", "executions", {**asked, "status": status}, bound)
        ran.items += [each for each in pages.items if all(each.get(name) == wanted[name] for name in others)]
        if pages.has_more:
            since.append(_find_complete(pages.items, status) or near["until"])
            ran.has_all_open &= not pages.items or pages.items[-1]["status"] not in {*BAD, *OPEN}
    ran.complete_from = max(since, key=parse_instant, default=None)
    return ran


def _find_complete(records: list[Json], status: str) -> str | None:
    """Return the start of a complete list of executions, of which there are more. None if nothing of it is complete.

    Failures come first: as long as there are more of them, nothing is known of all others.
    """
    if not records or (not status and records[-1]["status"] in {*BAD, *OPEN}):
        return None
    return str(records[-1]["scheduledFor"])


def _fetch_all(api: Api, path: str, name: str, query: Mapping[str, str], bound: int) -> _Pages:
    pages = _Pages()
    token: str | None = ""
    for _ in range(_MAX_PAGES):
        page = api.get(path, **query, pageSize=bound, pageToken=token)
        pages.items += page[name]
        pages.complete_until = pages.complete_until or page.get("completeUntil")
        token = page.get("nextPageToken")
        if token is None or len(pages.items) >= bound:
            break
    pages.has_more = token is not None or len(pages.items) > bound
    del pages.items[bound:]
    return pages
