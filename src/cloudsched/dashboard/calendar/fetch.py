"""What a calendar asks the API: the counts of each day, and the runs and due occurrences that it draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.calendar.span import DaySpan, choose_span
from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.times import DAY, WallDay, find_start, make_day, parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

BOUND: Final = 500
"""The most executions that are requested, and the most occurrences of a day or a week. More executions are counted."""
BOUND_OF_MONTH: Final = 2000
"""The most occurrences of a month that are requested, if they are of few tasks."""
_MANY_TASKS: Final = 250
FILTERS: Final = ("owner", "handler", "label", "category", "status")
_ONE_OF: Final = ("label", "handler", "category")
"""Filters of which the API takes one for executions: the first given one, since few share a label."""
_PAGE: Final = 500
_MAX_PAGES: Final = 4
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

    days = None
    listed: dict[str, str] = {}
    ran = _Ran()
    if start <= visit.now:
        days = _fetch_counts(api, visit, start, min(end, visit.now), wanted)
        if span.kind == "month" and days is not None:  # the month draws counts, and its table has one day
            listed = _find_table(span, visit)
        ran = _fetch_ran(api, listed or near, wanted)
    due = _Pages()
    if end > visit.now - DAY:  # a status is one of what ran: what is to come has none, so it stays
        also = {name: wanted[name] for name in ("owner", "handler", "label", "category")}
        bound = BOUND_OF_MONTH if span.kind == "month" else BOUND
        due = _fetch_all(api, "/v1/occurrences", "occurrences", {**near, **also}, bound)

    ran_from = ran.complete_from or listed.get("from")
    return {
        "ran": ran.items,
        "moreRan": ran_from is not None and not listed,
        "ranFrom": ran_from,
        "ranUntil": listed.get("until"),
        "isSearchCut": ran.is_cut,
        "counts": days,
        "due": due.items,
        "dueUntil": _find_end(due),
        "paused": _count_paused(api, wanted),
    }


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


def _find_end(due: _Pages) -> str | None:
    """Return the instant until which all due occurrences are known. None if all are."""
    ends = [due.complete_until] if due.complete_until else []
    if due.has_more and due.items:
        ends.append(due.items[-1]["utc"])
    return min(ends, key=parse_instant, default=None)


def _count_paused(api: Api, wanted: Mapping[str, str]) -> int:
    """Return the number of paused tasks. It is known by owner only."""
    if any(wanted[name] for name in _ONE_OF):
        return 0
    counts = api.find("/v1/overview", owner=wanted["owner"]) or {}
    return int(counts.get("tasks", {}).get("PAUSED", 0))


def _fetch_counts(
    api: Api, visit: Visit, start: datetime, until: datetime, wanted: Mapping[str, str]
) -> list[Json] | None:
    """Return the counts of each day. None if the API cannot count for these filters."""
    if start >= until or wanted["status"] not in {"", "FAILED"}:
        return None
    query = {name: wanted[name] for name in ("owner", *_ONE_OF)}
    near = {"from": start.isoformat(), "until": until.isoformat(), "timezone": visit.zone.key}
    found = api.find("/v1/executions/counts", **near, **query)
    if found is None:
        return None
    days: list[Json] = found["parts"]
    if wanted["status"]:
        return [{**each, "others": 0} for each in days]
    return [{**each, "others": each["ran"] + each["skipped"]} for each in days]


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
        is_many = len({each["taskId"] for each in pages.items}) > _MANY_TASKS  # each further page reads them all again
        if token is None or is_many or len(pages.items) >= bound:
            break
    pages.has_more = token is not None or len(pages.items) > bound
    del pages.items[bound:]
    return pages
