"""The usage of a month, by owner and handler, its cost, and the rest of each budget."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.charts.svg import draw_picture, element, percent
from cloudsched.dashboard.forms.fields import Again, Submitted
from cloudsched.dashboard.status import Status
from cloudsched.dashboard.times import BLANK
from cloudsched.dashboard.words import only_if, split_words, write_count
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

WARNING: Final = 0.8
"""The part of a budget at which the API begins to warn."""
OWNERS: Final = 50
"""The number of owners with usage, and of budgets, on one page."""
FILTERS: Final = ("owner", "handler")
PARAMETERS: Final = (*FILTERS, "label", "by", "sort", "month", "page")
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_FIRST: Final = "1971-01"
_LAST: Final = "9990-12"
_COUNTS: Final = ("executions", "queries", "tokens", "reads", "writes", "deletes", "queueOperations", "requests")
_USED_UP: Final = Status("pause", "Used up", "retry")
_NEARLY: Final = Status("late", "Nearly used", "retry")
_ENOUGH: Final = Status("ok", "Enough", "ok")
_HEIGHT: Final = 16
_BAR: Final = 10
_LEAST: Final = 0.01
"""The least width of a bar that is not empty."""
_GROUPS: Final = {"": "Owner and handler", "owner": "Owner", "handler": "Handler", "label": "Label"}
_COLUMNS: Final = {
    "name": "Owner",
    "executions": "Runs",
    "queries": "Queries",
    "tokens": "Tokens",
    "reads": "Reads",
    "writes": "Writes",
    "deletes": "Deletes",
    "queueOperations": "Queue",
    "requests": "Requests",
    "dollars": "USD",
}
"""The columns by which the rows can be sorted."""
_UNPRICED: Final = {"query": "queries", "token": "tokens"}
"""What has no price unless the setting gives it one."""
_LIMITS: Final = {"queries": "maxQueriesPerMonth", "tokens": "maxTokensPerMonth"}
"""What a budget limits, and the field that says how much of it a month has."""
_LONGEST_KEY: Final = 200
_ANY: Final = 10**12
"""The amount that stands for any."""
_MANY_TIMES: Final = 10
_WHOLE: Final = 0.99
"""The width of a full bar."""


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    group = _read_group(visit)
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    key = visit.query.get("label", "") if group == "label" else ""
    return "/v1/usage", {**wanted, "by": group.upper(), "labelKey": key[:_LONGEST_KEY], "month": _read_month(visit)}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the usage of a month, and for the budgets, if the month is the present one."""
    path, wanted = list_rows(visit)
    usage = api.get(path, **wanted, pageSize=OWNERS, pageToken=visit.query.get("page"))
    found = None
    if wanted["month"] == _now(visit):
        found = api.find("/v1/budgets", owner=wanted["owner"], pageSize=OWNERS)
    budgets = found or {}
    return {**usage, "budgets": budgets.get("budgets", []), "moreBudgets": budgets.get("nextPageToken")}


def send(api: Api, visit: Visit, texts: Mapping[str, str]) -> Submitted | Again:
    """Set an owner's budget, if it is still the one that was shown. The API refuses all but admins."""
    owner = texts.get("owner", "").strip()
    if owner in {"", ".", ".."}:
        raise InvalidInput("owner", "is missing", "Type the owner of the budget.")
    limits = {field: _read_limit(name, texts.get(name, "")) for name, field in _LIMITS.items()}
    wanted = {field: most for field, most in limits.items() if most is not None}
    error = "Type a number of queries, of tokens, or both. Nothing was done."
    status = HTTPStatus.BAD_REQUEST
    path = f"/v1/people/{quote(owner, safe='')}/budget"
    if wanted:
        error = "Somebody has changed this budget since you opened the page. Nothing was done."
        status = HTTPStatus.PRECONDITION_FAILED
        if visit.role != "admin" or "shown" not in texts or texts["shown"] == _write_limits(api.find(path)):
            api.put(path, wanted)
            return Submitted(f"usage?owner={quote(owner, safe='')}", "budget")
    return Again({**fetch(api, visit), "error": error}, status)


def _read_limit(name: str, text: str) -> int | None:
    """Return a limit as it was typed. None if there is to be none."""
    digits = text.strip().replace(",", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(_ANY)) and int(digits) <= _ANY):
        raise InvalidInput(name, "is not a number", f"Type a number from 0 to {_ANY:,}, or leave it empty.")
    return int(digits)


def _write_limits(budget: Json | None) -> str:
    """Return the limits of a budget, by which a form knows whether somebody has changed it."""
    return " ".join(str((budget or {}).get(field, _ANY)) for field in _LIMITS.values())


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a month shows."""
    asked = visit.query.get("owner", "")
    is_admin = visit.may_change and visit.role == "admin"
    has_budget = any(each["owner"] == asked for each in answer["budgets"])
    is_partial = bool(answer.get("nextPageToken") or visit.query.get("page"))
    return {
        "error": "",
        **answer,
        "maySet": is_admin and answer["month"] == _now(visit),
        "newOwner": "" if has_budget else asked,
        "sentence": _write_sentence(answer, asked or visit.owner or "", is_partial=is_partial),
        "notes": [*_write_notes(answer, visit)],
        "months": _find_months(answer["month"], visit),
        "rows": [_build_row(each) for each in _sort(answer, visit)],
        "groups": [
            (name, visit.with_query(by=by, page=None, label=None), by == _read_group(visit))
            for by, name in _GROUPS.items()
            if by != "label" or _read_group(visit) == by
        ],
        "group": _read_group(visit),
        "caption": f"By {_GROUPS[_read_group(visit)].lower()}"
        + only_if(_read_group(visit) == "label", f" {visit.query.get('label')}"),
        "columns": [_build_column(name, visit) for name in _COLUMNS],
        "total": _write_amounts(answer["total"]),
        "isPartial": is_partial,
        "budgets": [_build_budget(each) for each in sorted(answer["budgets"], key=_find_share, reverse=True)],
        "unpriced": " and ".join(words for name, words in _UNPRICED.items() if not answer["prices"].get(name)),
        "prices": ", ".join(f"{price:g} for {split_words(name)}s" for name, price in answer["prices"].items() if price),
    }


def _read_group(visit: Visit) -> str:
    """Return by what is summed up: owner, handler or label over all pages, or empty for rows, a page at a time."""
    by = visit.query.get("by", "")
    if visit.query.get("handler"):
        return ""
    if visit.query.get("label"):
        return "label"
    return by if by in _GROUPS and by != "label" else ""


def _read_order(visit: Visit) -> tuple[str, bool]:
    """Return the column by which the rows are sorted, empty for the usual order, and whether the least comes first."""
    chosen = visit.query.get("sort", "")
    name = chosen.removeprefix("-")
    if name not in _COLUMNS:
        return "", False
    return name, chosen.startswith("-") != (name == "name")


def _build_column(name: str, visit: Visit) -> Json:
    """Return a column's heading: its link turns the order around if it is sorted by that already."""
    current, is_ascending = _read_order(visit)
    is_current = current == name
    turned = f"-{name}" if is_current and visit.query.get("sort") == name else name
    direction = only_if(is_current, "ascending" if is_ascending else "descending")
    return {"name": _COLUMNS[name], "href": visit.with_query(sort=turned), "direction": direction, "key": name}


def _build_row(row: Json) -> Json:
    return {"owner": "", "handler": "", "name": "", "isSum": False, **row, **_write_amounts(row)}


def _sort(answer: Json, visit: Visit) -> list[Json]:
    rows = [{**each, "isSum": True} for each in answer.get("sums") or ()] or _sort_rows(answer["usage"])
    name, is_ascending = _read_order(visit)
    if name == "name":
        return sorted(rows, key=_name_row, reverse=not is_ascending)
    if name:
        return sorted(rows, key=lambda row: row[name], reverse=not is_ascending)
    if answer.get("sums"):
        return sorted(rows, key=lambda row: row["dollars"], reverse=True)
    return list(rows)


def _name_row(row: Json) -> tuple[str, ...]:
    return (row["name"],) if row.get("isSum") else (row["owner"], row["handler"])


def _sort_rows(rows: Sequence[Json]) -> list[Json]:
    """Return the rows, the owner with the highest cost first, and of each owner the highest cost first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for each in rows:
        sums[each["owner"]] += each["dollars"]
    return sorted(rows, key=lambda each: (-sums[each["owner"]], each["owner"], -each["dollars"], each["handler"]))


def _write_amounts(counts: Json) -> Json:
    return {
        **{name: f"{counts[name]:,}" for name in _COUNTS},
        "queriesNote": _write_estimate(counts["queries"], counts["estimatedQueries"]),
        "tokensNote": _write_estimate(counts["tokens"], counts["estimatedTokens"]),
        "dollars": _write_dollars(counts["dollars"]),
    }


def _write_estimate(used: int, estimated: float) -> str:
    count = round(estimated)
    return only_if(count not in {0, used}, f"{count:,} estimated")


def _write_dollars(dollars: float) -> str:
    """Return an amount in cents, or with as many digits as show that it is not zero."""
    if 0 < dollars < 0.0001:  # noqa: PLR2004 - four places
        return f"<{BLANK}0.0001"
    if 0 < dollars < 0.01:  # noqa: PLR2004 - a cent
        return f"{dollars:.4f}"
    return f"{dollars:,.2f}"


def draw_budget(used: int, most: int) -> Markup:
    """Return the bar. The words beside it say the same. A budget of 0 is always used up."""
    part = _divide(used, most)
    css = "f-past"
    if part >= 1:
        css = "f-fail"
    elif part >= WARNING:
        css = "f-retry"

    top = (_HEIGHT - _BAR) / 2
    parts = [element("rect", cls="o", x="0.5", y=top, width="99%", height=_BAR)]
    if used or not most:
        width = percent(min(1.0, max(part, _LEAST)) * _WHOLE)
        parts.append(element("rect", cls=css, x="0", y=top, width=width, height=_BAR))
    mark = percent(WARNING * _WHOLE)
    parts.append(element("line", cls="base", x1=mark, x2=mark, y1=0, y2=_HEIGHT))
    return draw_picture(_HEIGHT, *parts)


def _divide(used: int, most: int) -> float:
    """Return the used part of a budget. Of one of 0, all is used."""
    if not most:
        return 1.0
    return used / most


def list_limits(budget: Json) -> list[tuple[float, int, int, str]]:
    """Return each limit of a budget: the share that is used, the use, all of it, of what. The fullest first."""
    limits = [(budget.get(what, 0), budget.get(field, _ANY), what) for what, field in _LIMITS.items()]
    shown = [each for each in limits if each[1] < _ANY] or limits
    return sorted(((_divide(used, most), used, most, what) for used, most, what in shown), reverse=True)


def _write_share(share: float) -> str:
    """Return a part in per cent. Far more than all of it needs no digits."""
    if share >= _MANY_TIMES:
        return f"over {_MANY_TIMES * 100:,}{BLANK}%"
    return f"{int(share * 100)}{BLANK}%"


def _find_share(budget: Json) -> float:
    return list_limits(budget)[0][0]


def _build_budget(budget: Json) -> Json:
    limits = list_limits(budget)
    share, used, most, name = limits[0]
    status = _ENOUGH
    what = f"{most - used:,} {name} are left."
    if budget["isUsedUp"]:
        status = _USED_UP
        what = "The owner's tasks are paused until next month, or until an admin raises the budget."
    elif share >= 1:
        status = _USED_UP
        what = "The next check, within five minutes, pauses the owner's tasks."
    elif share >= WARNING:
        status = _NEARLY
        what = f"{most - used:,} {name} are left; then the owner's tasks pause."

    return {
        **budget,
        "shown": _write_limits(budget),
        "limits": {
            name: "" if budget.get(field, _ANY) >= _ANY else str(budget[field]) for name, field in _LIMITS.items()
        },
        "used": ", ".join(
            f"{used:,} of {most:,} {name}{only_if(most, f' ({_write_share(share)})')}"
            for share, used, most, name in limits
        ),
        "chart": draw_budget(used, most),
        "status": status,
        "what": what,
    }


def _write_owners(answer: Json, asked: str, is_partial: bool) -> str:  # noqa: FBT001 - one of its two
    """Return whose usage is summed up."""
    if is_partial:
        return write_count(len({each["owner"] for each in answer["usage"]}), "owner", "owners") + " on this page"
    return asked or "all owners"


def _write_sentence(answer: Json, asked: str, *, is_partial: bool) -> str:
    name = f"{_first_of(answer['month']):%B %Y}"
    if not (answer["usage"] or answer.get("sums")):
        return f"{name}: no use is recorded."
    total = answer["total"]
    said = (
        f"{total['executions']:,} runs and {total['queries']:,} queries of {_write_owners(answer, asked, is_partial)}"
    )
    sentence = f"{name}: {said}, {_write_dollars(total['dollars'])} US dollars."

    over = sum(each["isUsedUp"] for each in answer["budgets"])
    near = sum(not each["isUsedUp"] and _find_share(each) >= WARNING for each in answer["budgets"])
    for count, word in ((over, "used up"), (near, "nearly used")):
        sentence += only_if(count, f" {write_count(count, 'budget is', 'budgets are')} {word}.")
    return sentence


def _write_notes(answer: Json, visit: Visit) -> Iterator[str]:
    if not answer["isComplete"]:
        yield "There is more to count than one look reads: reload the page to go on."
    if visit.owner is not None:
        yield f"You see what was used for {visit.owner}."


def _find_months(month: str, visit: Visit) -> list[tuple[str, str]]:
    """Return the months that lead on from one, with their addresses."""
    first = _first_of(month)
    present = _now(visit)
    before = f"{first - timedelta(days=1):%Y-%m}"
    found = [("← Before", _address(before, visit)), ("This month", _address(present, visit))]
    if month < present:
        found.append(("After →", _address(f"{first + timedelta(days=31):%Y-%m}", visit)))
    return found


def _address(month: str, visit: Visit) -> str:
    """Return the address of a month. The present one needs no name."""
    if month == _now(visit):
        return visit.with_query(month=None, page=None)
    return visit.with_query(month=month, page=None)


def _first_of(month: str) -> date:
    return date.fromisoformat(f"{month}-01")


def _now(visit: Visit) -> str:
    return f"{visit.now:%Y-%m}"


def _read_month(visit: Visit) -> str:
    """Return the month of the address, or the present one."""
    month = visit.query.get("month", "")
    if not _MONTH.fullmatch(month):
        return _now(visit)
    return min(max(month, _FIRST), _LAST)
