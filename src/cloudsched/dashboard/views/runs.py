"""The list of runs, which are the executions of all tasks. Equal failures of a page are one row with their number.

Calls are omitted unless they are requested, because the record of the execution that made a call has the call's end.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.filters import OUTCOMES, RUNS, find_window, name_parameters, read_filters, show_filters
from cloudsched.dashboard.status import BAD, write_message
from cloudsched.dashboard.times import NONE, find_instant, write_duration, write_took
from cloudsched.dashboard.words import SKIPPED, SKIPPED_TOGETHER, add_counts, join_phrases, only_if, shorten
from cloudsched.domain.documents.document import complete_table
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Trigger
from cloudsched.domain.responses.count import Count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_LONGEST_OUTCOME: Final = 4000
TRIGGERS: Final = complete_table(
    Trigger,
    {
        Trigger.SCHEDULE: "",
        Trigger.MANUAL: "by hand",
        Trigger.BACKFILL: "backfilled",
        Trigger.SNOOZE: "snoozed",
    },
)


def build_execution(record: Json, visit: Visit) -> Json:
    """Return an execution as a row."""
    late = find_lateness(record)
    return {
        **record,
        "title": record.get("title") or record["taskId"],
        "outcome": shorten(_write_outcome(record, visit), _LONGEST_OUTCOME),
        "took": write_took(record, visit.now),
        "late": NONE if late is None else write_duration(late),
        "trigger": TRIGGERS[record.get("trigger", Trigger.SCHEDULE)],
        "until": find_until(record),
    }


def find_lateness(record: Json) -> timedelta | None:
    """Return how long after it was due an execution started. None if it has not, or its schedule did not start it."""
    return Execution.model_validate(record, extra="ignore").lateness


def find_until(record: Json) -> datetime | None:
    """Return when an open execution goes on, or its lease ends. None if that is not known, as while it is held."""
    is_held = str(record.get("message")).startswith("It waits until its task is resumed")
    return None if is_held else find_instant(record, "nextAttemptAt", "leaseUntil")


_BY_HAND: Final = {ExecutionStatus.SUSPENDED, ExecutionStatus.CANCELLED}


def _write_outcome(record: Json, visit: Visit) -> str:
    error = record.get("error")
    if error and record["status"] not in _BY_HAND:  # who cancelled or paused it is said, not why it failed before
        return f"{error['type']}: {error['message']}"
    if record["status"] == ExecutionStatus.SUCCEEDED and record.get("content") is not None:
        return json.dumps(record["content"], ensure_ascii=False)
    if not record.get("finishedAt") and record.get("progress"):
        return str(record["progress"][-1]["text"])
    return write_message(record, visit)


PAGE_SIZE: Final = 100
PARAMETERS: Final = name_parameters(RUNS)
RETRY_FILTERS: Final = tuple(each.name for each in RUNS if each.name not in {"within", "outcome", "calls"})
"""The filters that choose the executions to retry, which have failed."""
_COUNTED_BY: Final = frozenset({"from", "until", "owner", "handler", "label", "category", "outcome", "calls"})
"""The filters that such a count may have."""
_LONGEST: Final = 100
"""The most letters of an error's message that the link to equal ones has."""


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    found = read_filters(visit, RUNS)
    if length := find_window(found):
        found["from"] = (visit.now - length).isoformat()
    found.pop("within", None)
    return "/v1/executions", {"calls": "false", **found}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of executions, and for their number if an index has it."""
    path, asked = list_rows(visit)
    page = api.get(path, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    return {**page, "asked": asked, "counted": _count(api, visit, asked)}


def _count(api: Api, visit: Visit, asked: Mapping[str, str | None]) -> dict[str, Count]:
    """Return the numbers of what matches, with their words. Empty if the API does not count it."""
    if "from" not in asked or asked["calls"] != "false" or asked.keys() - _COUNTED_BY:
        return {}
    bounds = {name: asked[name] for name in asked.keys() - {"outcome", "calls"}}
    found = api.find("/v1/executions/counts", **{"until": visit.soonest, **bounds}, per="P1D")
    if found is None:  # as of a time that is all to come
        return {}
    return {
        words.lower(): Count(value=0, at_least="completeFrom" in found)
        + add_counts(each[name.lower()] for each in found["parts"])
        for name, words in OUTCOMES.items()
        if asked.get("outcome") in {None, name}
    }


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of runs shows."""
    asked = answer["asked"]
    wanted = {name: asked[name] for name in RETRY_FILTERS if name in asked}
    return {
        "sentence": _write_sentence(answer, visit),
        "note": only_if("SKIPPED" in asked.values() or answer["counted"].get(SKIPPED), SKIPPED_TOGETHER),
        "rows": [*_fold(answer, visit)],
        "filters": show_filters(visit, RUNS),
        "retry": wanted if any(each["status"] in BAD for each in answer["executions"]) else {},
        "next": answer.get("nextPageToken"),
    }


def _fold(answer: Json, visit: Visit) -> Iterator[Json]:
    """Yield rows: an execution, or the equal failures of a handler where the latest of them stands.

    Failures come first. So there may be more of them elsewhere if a page begins later, or has nothing else.
    """
    groups: dict[tuple[str, ...], list[Json]] = {}
    for each in answer["executions"]:
        error = each.get("error") or {}
        key = (each.get("handler", ""), each["status"], error.get("type", ""), error.get("message", ""))
        groups.setdefault(key if each["status"] in BAD else (each["taskId"], each["id"]), []).append(each)
    has_only_failures = all(each["status"] in BAD for each in answer["executions"])
    is_cut = bool(visit.query.get("page") or (answer.get("nextPageToken") and has_only_failures))
    for members in groups.values():
        rows = [_build_run(each, visit) for each in members]
        alike = _choose_alike(members[0], answer["asked"])
        if len(rows) == 1 or alike.keys() <= answer["asked"].keys():  # their own list: each can be ticked
            yield from ({**each, "members": ()} for each in rows)
            continue
        yield {
            **rows[0],
            "members": rows,
            "count": {"value": len(rows), "atLeast": is_cut},
            "alike": visit.with_query(**alike, page=None),
        }


def _choose_alike(record: Json, asked: Mapping[str, str | None]) -> dict[str, str]:
    """Return the filters of failures whose errors have what one's begins with, which may be more than are equal.

    The API takes a handler without a label or category.
    """
    error = record.get("error") or {}
    found = {"status": record["status"], "errorType": error.get("type", ""), "handler": record.get("handler", "")}
    found["error"] = f"{error['type']}: {error['message']}"[:_LONGEST] if error else ""
    if {"label", "category"} & asked.keys():
        found.pop("handler")
    return {name: text for name, text in found.items() if text}


def _build_run(record: Json, visit: Visit) -> Json:
    caller = record.get("calledBy")
    may_pick = record["status"] in BAD and caller is None and visit.may_change
    return {
        **build_execution(record, visit),
        "pick": only_if(may_pick, f"{record['taskId']}/{record['id']}"),
        "caller": caller,
    }


def _write_sentence(answer: Json, visit: Visit) -> str:
    """Return the numbers of all runs that match, where they are counted, or else of those that were found."""
    found, token = len(answer["executions"]), answer.get("nextPageToken")
    if not found and token:
        return "Nothing was found yet: the next page goes on."
    told = [each.write(words, words) for words, each in answer["counted"].items() if each]
    if found and not told:
        told = [Count(value=found, at_least=bool(token or visit.query.get("page"))).write("found", "found")]
    return f"{join_phrases(*told) or 'Nothing matches'}."
