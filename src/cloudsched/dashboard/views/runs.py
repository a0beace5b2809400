"""The list of runs, which are the executions of all tasks, with their failures by error.

Calls are omitted unless they are requested, because the record of the execution that made a call has the call's end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.charts.run_bars import read_count
from cloudsched.dashboard.filters import write_filter, write_value
from cloudsched.dashboard.local_instants import EnteredInstant, read_instant, write_notes
from cloudsched.dashboard.status import BAD, OPEN, show_status
from cloudsched.dashboard.views.execution_row import build_execution
from cloudsched.dashboard.views.task_filters import CATEGORIES
from cloudsched.dashboard.views.tasks import PAGE_SIZE
from cloudsched.dashboard.words import SKIPPED_TOGETHER, join_phrases, only_if, shorten, write_count
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.responses.count import Count
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

_RUNS: Final = "/v1/executions"
FILTERS: Final = (
    "status",
    "outcome",
    "handler",
    "owner",
    "label",
    "category",
    "error",
    "errorType",
    "minDuration",
    "minLateness",
)
"""The filters that the API has under these names, beside the window and the calls."""
PARAMETERS: Final = (*FILTERS, "from", "until", "within", "calls", "page")
RETRY_FILTERS: Final = (*(name for name in FILTERS if name != "outcome"), "from", "until")
"""The filters that choose the executions to retry, which have failed."""
_ENUMS: Final = ("status", "outcome", "category")
"""The filters whose values the API writes in capitals."""
WINDOWS: Final = {
    "PT15M": ("15 minutes", timedelta(minutes=15)),
    "PT1H": ("hour", timedelta(hours=1)),
    "PT12H": ("12 hours", timedelta(hours=12)),
    "P1D": ("day", timedelta(days=1)),
    "P7D": ("7 days", timedelta(days=7)),
}
_ANY: Final = "any"
"""The window without a bound."""
WINDOW: Final = "PT1H"
"""The default window. Somebody who is called at night asks about the last hour."""
_NAMED: Final = 8
"""The handlers, or owners, with failures that are named at once. The others unfold."""
_FIRST: Final = 3
"""The groups of failures above the runs, the rarest. More would push these off the first screen, so they unfold."""
_LONGEST: Final = 100
"""The longest message of a group of failures. Its latest run has all of it."""
_COUNTED: Final = {
    ("outcome", "SKIPPED"): ("skipped", "occurrence was skipped", "occurrences were skipped"),
    ("outcome", "RAN"): ("ran", "run succeeded", "runs succeeded"),
    ("minLateness", "PT1M"): ("late", "run started a minute late or more", "runs started a minute late or more"),
}
"""What the API counts of runs that have not failed: by which filter, under which name, and in words."""
_COUNTED_BY: Final = frozenset({"from", "until", "owner", "handler", "label", "category"})
"""The filters that such a count may have besides."""
_LATE: Final = {"PT1M": "1 min", "PT10M": "10 min", "PT1H": "1 h"}
_LONG: Final = {"PT10S": "10 s", **_LATE}


def read_run_filters(visit: Visit) -> dict[str, str]:
    """Return the filters of the address as the API takes them, with the window as instants."""
    found = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    for name in _ENUMS:
        if name in found:
            found[name] = found[name].upper()
    bounds = _read_bounds(visit)
    window = _read_window(visit)
    if window not in {"", _ANY}:
        bounds = {"from": (visit.now - find_length(window, (*WINDOWS, _ANY))).isoformat()}
    return {**found, **bounds}


def find_length(window: str, known: Collection[str]) -> timedelta:
    """Return how long a window of time is. Raises InvalidInput if it is not among the known ones."""
    if window not in known:
        raise InvalidInput("within", f"is no window of time: “{window[:40]}”", f"Give one of {', '.join(known)}.")
    return WINDOWS[window][1]


def _read_bounds(visit: Visit) -> dict[str, str]:
    found = {name: entered.iso for name, entered in read_entered(visit).items()}
    return {name: iso for name, iso in found.items() if iso}


def read_entered(visit: Visit) -> dict[str, EnteredInstant]:
    """Return the bounds that were entered, as the API takes them and as their fields show them."""
    return {name: read_instant(visit.query.get(name, ""), visit.zone) for name in ("from", "until")}


def _read_window(visit: Visit) -> str:
    """Return the name of the window. Empty if the address has its bounds."""
    if _read_bounds(visit):
        return ""
    if visit.query.get("status", "").upper() in OPEN:  # it may have begun long ago
        return visit.query.get("within") or _ANY
    return visit.query.get("within") or WINDOW


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    return _RUNS, {**read_run_filters(visit), "calls": only_if(not visit.query.get("calls"), "false")}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for a page of executions, and for the failures among them."""
    filters = read_run_filters(visit)
    _, asked = list_rows(visit)
    page = api.get(_RUNS, **asked, pageSize=PAGE_SIZE, pageToken=visit.query.get("page"))
    failures = None
    may_have_failed = filters.get("status") in {None, *BAD} and filters.get("outcome") in {None, "FAILED"}
    if may_have_failed and not filters.keys() & {"minDuration", "minLateness"}:
        failures = api.get(f"{_RUNS}/failures", **asked)
    return {**page, "failures": failures, "filters": filters, "counted": _count(api, visit, filters)}


def _count(api: Api, visit: Visit, filters: Mapping[str, str]) -> str:
    """Return the number of what a filter means and how much it is, in words. Empty where the API does not count it."""
    chosen = [each for each in filters.items() if each in _COUNTED]
    others = {name: text for name, text in filters.items() if name in _COUNTED_BY}
    if len(chosen) != 1 or len(others) + 1 < len(filters) or "from" not in others:
        return ""
    name, *nouns = _COUNTED[chosen[0]]
    found = api.find(f"{_RUNS}/counts", **{"until": visit.now.isoformat(), **others}, per="P1D")
    total = sum((read_count(each[name]) for each in found["parts"]), Count(value=0)) if found else None
    return write_count(total.to_wire(), *nouns) if total else ""


def build(answer: Json, visit: Visit) -> Json:
    """Return what the list of runs shows."""
    filters = answer["filters"]
    failures = answer["failures"]
    window = _read_window(visit)

    return {
        "sentence": _write_sentence(answer, window, visit),
        "when": _write_window(window, visit),
        "rows": [_build_run(each, visit) for each in answer["executions"]],
        "counted": [*_list_counted(failures or {}, visit)],
        "groups": [*_build_groups(failures or {}, filters, visit)],
        "first": _FIRST,
        "failed": _write_failed(failures),
        "entered": read_entered(visit),
        "note": join_phrases(
            write_notes(*read_entered(visit).values()),
            only_if("SKIPPED" in {filters.get("outcome"), filters.get("status")}, SKIPPED_TOGETHER),
            separator=" ",
        ),
        "window": window or _ANY,
        "windows": {**{name: words for name, (words, _) in WINDOWS.items()}, _ANY: "Any time"},
        "statuses": {each: show_status(each).word for each in ExecutionStatus},
        "outcomes": {each: write_value("outcome", each, visit) for each in RunOutcome},
        "categories": CATEGORIES,
        "lengths": _LONG,
        "delays": _LATE,
        "retryQuery": _keep(filters, RETRY_FILTERS),
        "tokens": [
            (write_filter(name, text, visit), visit.with_query(**{name: None, "page": None}))
            for name, text in _keep(filters, FILTERS).items()
        ],
        "next": answer.get("nextPageToken"),
    }


def _keep(filters: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: filters[name] for name in names if name in filters}


def _build_run(record: Json, visit: Visit) -> Json:
    caller = record.get("calledBy")
    may_pick = record["status"] in BAD and caller is None and visit.may_change
    return {
        **build_execution(record, visit),
        "pick": only_if(may_pick, f"{record['taskId']}/{record['id']}"),
        "caller": caller,
    }


def _count_by_handler(failures: Json, filters: Mapping[str, str]) -> dict[str, int]:
    """Return how many runs of each handler failed, as far as that is counted exactly."""
    if "handler" in filters and "count" in failures and not failures.get("isAtLeast"):
        return {filters["handler"]: failures["count"]}
    return {each["name"]: each["count"] for each in failures.get("handlers") or ()}


def _build_groups(failures: Json, filters: Mapping[str, str], visit: Visit) -> Iterator[Json]:
    counted = _count_by_handler(failures, filters)
    for each in failures.get("groups", ()):
        yield _build_group(each, filters, counted, visit)


def _build_group(group: Json, filters: Mapping[str, str], counted: Mapping[str, int], visit: Visit) -> Json:
    """Return a group of failures, with the address and the filters of the failures of its type alone.

    If only the latest of its handler were looked at, it says how many that has, as far as they are counted.
    """
    name = "status" if group["type"] in set(ExecutionStatus) else "errorType"
    handler = group.get("handler") or ""
    message = group["sample"]["error"].removeprefix(f"{group['type']}: ")
    of_type = {name: group["type"]}
    if handler and not {"label", "category"} & filters.keys():  # the API takes one of these
        of_type["handler"] = handler
    return {
        **group,
        "number": _write_number(group, counted.get(handler)),
        "title": f"{only_if(handler, f'{handler}: ')}{shorten(message, _LONGEST) or group['type']}",
        "href": visit.with_query(**of_type, page=None),
        "retry": {name: text for name, text in {**filters, **of_type}.items() if name in RETRY_FILTERS},
    }


def _write_number(group: Json, of_handler: int | None) -> str:
    if not group.get("isAtLeast"):
        return f"{group['count']:,}"
    return f"at least {group['count']:,}{only_if(of_handler, f' of {of_handler or 0:,}')}"


def _list_counted(failures: Json, visit: Visit) -> Iterator[tuple[str, str, list[Json], list[Json]]]:
    """Yield the failures by handler and by owner, if they are of several: the name, the order, the first, the others.

    The rarest handler may be the one payroll. Of owners, those with the most failures come first.
    """
    only = {"status": None, "outcome": "failed", "page": None}
    for name, order in (("handler", "the rarest first"), ("owner", "the most first")):
        found = failures.get(f"{name}s") or ()
        counts = [{**each, "href": visit.with_query(**{**only, name: each["name"]})} for each in found]
        if name == "owner":
            counts.sort(key=lambda each: (-each["count"], each["name"]))
        if len(counts) > 1:
            yield name, order, counts[:_NAMED], counts[_NAMED:]


def _write_failed(failures: Json | None) -> str:
    if failures is None or not failures["count"]:
        return ""
    return write_count(failures["count"], "run", "runs", is_at_least=bool(failures.get("isAtLeast")))


def _write_sentence(answer: Json, window: str, visit: Visit) -> str:
    """Return the number of runs and of failures, and the other runs on this page, in words."""
    failures = answer["failures"]
    listed = answer["executions"]
    when = _write_window(window, visit)
    if failures is not None:
        said = f"{_write_failed(failures).capitalize() or 'Nothing'} failed {when}".strip()
        said = join_phrases(said, _write_others(answer), separator=". ")
    elif answer.get("counted"):
        said = f"{answer['counted']} {when}".strip()
        is_of_skipped = answer["filters"].get("outcome") == RunOutcome.SKIPPED
        said += only_if(listed and is_of_skipped, ". A line may stand for several of them")
    elif listed:
        said = f"{len(listed):,} on this page, {when}".strip(", ")
    else:
        nothing = "Nothing was found yet" if answer.get("nextPageToken") else "Nothing matches"
        said = f"{nothing} {when}".strip()
    if not listed and answer.get("nextPageToken"):
        return f"{said}. Not everything was searched: the next page goes on."
    return f"{said}."


def _write_others(answer: Json) -> str:
    """Return what there is beside failures, which come first in a list of all runs."""
    listed = answer["executions"]
    others = sum(each["status"] not in BAD for each in listed)
    still = sum(each["status"] in OPEN for each in listed)
    if not others:
        has_all = not answer["filters"].keys() & {"status", "outcome"}
        return only_if(has_all and answer.get("nextPageToken"), "They come first in the list of all runs")
    nouns = ("other run is", "other runs are") if answer["failures"]["count"] else ("run is", "runs are")
    return write_count(others, *nouns) + " on this page" + only_if(still, f", {still:,} of them open")


def _write_window(window: str, visit: Visit) -> str:
    if window in WINDOWS:
        return f"of what was due in the last {WINDOWS[window][0]}"
    bounds = " ".join(f"{name} {visit.moment(text).text}" for name, text in _read_bounds(visit).items())
    return only_if(bounds, f"of what was due {bounds}")
