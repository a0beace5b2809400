"""Runs: the executions of all tasks, failures first, with groups of failures, and a retry of all of them.

The filters are in the address, as everywhere. Calls are left out unless they are requested, because the record of the
execution that made a call has the call's end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cloudsched.dashboard.status import BAD, OPEN
from cloudsched.dashboard.task_view import ExecutionRow, build_execution
from cloudsched.dashboard.tasks_view import read_columns
from cloudsched.dashboard.times import Moment, parse_instant
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus

PAGE_SIZE: Final = 50
FILTERS: Final = (
    *("status", "handler", "owner", "label", "category", "error", "errorType", "minDuration", "minLateness"),
)
"""The filters that the API has under these names, beside the window and the calls."""
RETRY_FILTERS: Final = (*FILTERS, "from", "until")
"""The filters that choose the executions to retry."""
WINDOWS: Final = {
    "PT15M": "15 minutes",
    "PT1H": "hour",
    "PT12H": "12 hours",
    "P1D": "day",
    "P7D": "7 days",
    "any": "Any time",
}
_LENGTHS: Final = {
    "PT15M": timedelta(minutes=15),
    "PT1H": timedelta(hours=1),
    "PT12H": timedelta(hours=12),
    "P1D": timedelta(days=1),
    "P7D": timedelta(days=7),
}
WINDOW: Final = "PT1H"
"""The default window. Somebody who is called at night asks about the last hour."""
COLUMNS: Final = {"status": "Status", "late": "Late by", "took": "Took", "at": "Scheduled for"}
_LONG: Final = {"PT10S": "10 s", "PT1M": "1 min", "PT10M": "10 min", "PT1H": "1 h"}


@dataclass(frozen=True, slots=True)
class RunRow:
    """An execution in the list."""

    run: ExecutionRow
    pick: str
    """Its name in a form. Empty if it can neither be retried nor cancelled with its task."""
    handler: str
    owner: str
    called_by: str
    """The path of the execution that called it. Empty if there is none."""


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group of failures of the same kind at the same place."""

    kind: str
    place: str
    message: str
    count: int
    tasks: str
    first: Moment
    last: Moment
    sample: str
    """The path of the latest of them."""
    href: str
    """The same list, of this type of error alone."""
    retry: dict[str, str]
    """The filters with which these are retried, by the type of their error."""


@dataclass(frozen=True, slots=True)
class RunsPage:
    """The view model."""

    sentence: str
    rows: list[RunRow]
    groups: list[GroupRow]
    failed: str
    """The number of failures on a button. Empty if there are none."""
    filters: dict[str, str]
    window: str
    windows: dict[str, str]
    has_calls: bool
    calls_href: str
    statuses: tuple[str, ...]
    categories: tuple[str, ...]
    lengths: dict[str, str]
    retry_query: dict[str, str]
    columns: frozenset[str]
    all_columns: dict[str, str]
    tokens: list[tuple[str, str]]
    """The filters that apply, and the address without each."""
    query: str
    """The query of this address, without the page."""
    next_page: str | None
    first_page: str | None
    may_change: bool
    role: str
    zones: list[ZoneChoice]


def read_filters(visit: Visit) -> dict[str, str]:
    """Return the filters of the address as the API takes them, with the window as instants."""
    found = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    for name in ("status", "category"):
        if name in found:
            found[name] = found[name].upper()
    given = {name: visit.query[name] for name in ("from", "until") if visit.query.get(name)}
    length = _LENGTHS.get(visit.query.get("within") or WINDOW)
    if not given and length is not None:
        given["from"] = (visit.now - length).isoformat()
    return {**found, **given}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of executions, and for the failures among them."""
    filters = read_filters(visit)
    calls = None if visit.query.get("calls") else "false"
    page = api.get("/v1/executions", **filters, calls=calls, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    status = filters.get("status")
    asks_for_failures = status is None or status in BAD
    return {
        **page,
        "failures": api.get("/v1/executions/failures", **filters, calls=calls) if asks_for_failures else None,
        "filters": filters,
    }


def build(answer: Json, visit: Visit) -> RunsPage:
    """Return the view model of the API's answers."""
    filters, failures = answer["filters"], answer["failures"]
    rows = [_build_row(each, visit) for each in answer["executions"]]
    more = answer.get("nextPageToken")
    window = "" if visit.query.get("from") or visit.query.get("until") else visit.query.get("within") or WINDOW
    return RunsPage(
        sentence=_write_sentence(answer, window, visit),
        rows=rows,
        groups=[_build_group(each, filters, visit) for each in (failures or {}).get("groups", ())],
        failed=_write_failed(failures),
        filters={name: visit.query.get(name, "") for name in (*FILTERS, "from", "until")},
        window=window if window in WINDOWS else WINDOW,
        windows=WINDOWS,
        has_calls=bool(visit.query.get("calls")),
        calls_href=visit.with_query(calls=None if visit.query.get("calls") else "true", page=None),
        statuses=tuple(ExecutionStatus),
        categories=tuple(Category),
        lengths=_LONG,
        retry_query={name: filters[name] for name in RETRY_FILTERS if name in filters},
        columns=read_columns(visit, COLUMNS),
        all_columns=COLUMNS,
        tokens=[
            (f"{name}: {filters[name]}", visit.with_query(**{name: None, "page": None}))
            for name in FILTERS
            if name in filters
        ],
        query=visit.with_query(page=None),
        next_page=visit.with_query(page=more) if more else None,
        first_page=visit.with_query(page=None) if visit.query.get("page") else None,
        may_change=visit.may_change,
        role=visit.role,
        zones=zone_choices(visit),
    )


def _build_row(record: Json, visit: Visit) -> RunRow:
    caller = record.get("calledBy")
    run = build_execution(record, visit)
    is_chosen = (record["status"] in BAD or record["status"] in OPEN) and caller is None and visit.may_change
    return RunRow(
        run=run,
        pick=f"{record['taskId']}/{record['id']}" if is_chosen else "",
        handler=record.get("handler") or "",
        owner=record["owner"],
        called_by="" if caller is None else f"tasks/{caller['taskId']}/executions/{caller['executionId']}",
    )


def _build_group(group: Json, filters: Mapping[str, str], visit: Visit) -> GroupRow:
    sample, has_type = group["sample"], group["type"] not in set(ExecutionStatus)
    of_type = {"errorType": group["type"]} if has_type else {"status": group["type"]}
    tasks = "1 task" if group["tasks"] == 1 else f"{group['tasks']:,} tasks"
    return GroupRow(
        kind=group["type"],
        place=group["place"],
        message=sample["error"].removeprefix(f"{group['type']}: "),
        count=group["count"],
        tasks=tasks,
        first=visit.sure(group["first"]),
        last=visit.sure(group["last"]),
        sample=f"tasks/{sample['taskId']}/executions/{sample['executionId']}",
        href=visit.with_query(**of_type, page=None),
        retry={name: text for name, text in {**filters, **of_type}.items() if name in RETRY_FILTERS},
    )


def _write_failed(failures: Json | None) -> str:
    if failures is None or not failures["count"]:
        return ""
    return f"{'at least ' if failures.get('isAtLeast') else ''}{failures['count']:,}"


def _write_sentence(answer: Json, window: str, visit: Visit) -> str:
    """Return the number of runs and of failures, and the other runs on this page, in words."""
    failures, listed = answer["failures"], answer["executions"]
    when = _write_window(window, visit)
    others = sum(each["status"] not in BAD for each in listed)
    still = sum(each["status"] in OPEN for each in listed)
    said = []
    if failures is not None:
        said.append(f"{_write_failed(failures).capitalize() or 'Nothing'} failed {when}".strip())
        if others:
            said.append(
                f"{others:,} more on this page, {still:,} of them open" if still else f"{others:,} more on this page"
            )
    elif listed:
        said.append(f"{len(listed):,} on this page, {when}".strip(", "))
    else:
        said.append(f"Nothing matches {when}".strip())
    cut = not listed and answer.get("nextPageToken")
    return f"{'; '.join(said)}.{' Not all was looked through: the next page goes on.' if cut else ''}"


def _write_window(window: str, visit: Visit) -> str:
    if window in _LENGTHS:
        return f"in the last {WINDOWS[window]}"
    parts = []
    for name, word in (("from", "from"), ("until", "until")):
        if visit.query.get(name):
            parts.append(f"{word} {visit.sure(parse_instant(visit.query[name])).text}")
    return " ".join(parts)
