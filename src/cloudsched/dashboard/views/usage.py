"""The usage of a month by owner, handler or label, its cost, and what is left of budgets."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from cloudsched.dashboard.filters import Filter
from cloudsched.dashboard.forms.fields import Again, Submitted
from cloudsched.dashboard.times import BLANK
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloudsched.dashboard.api import Api, Json
    from cloudsched.dashboard.visit import Visit

WARNING: Final = 0.8
"""The part of a budget at which the API begins to warn."""
ROWS: Final = 100
"""The most rows, those with the most of what they are sorted by, and the most budgets."""
COLUMNS: Final = {"executions": "Ends of runs", "queries": "Queries", "tokens": "Tokens", "dollars": "USD"}
SORT: Final = Filter("sort", "Most", "choice", COLUMNS)
PARAMETERS: Final = ("owner", "by", "label", "month", SORT.name)
_LIMITS: Final = {"queries": "maxQueriesPerMonth", "tokens": "maxTokensPerMonth"}
"""What a budget limits, and the field that says how much of it a month has."""
_UNPRICED: Final = {"query": "queries", "token": "tokens"}
"""What has no price unless the setting gives it one."""
_ANY: Final = 10**12
"""The amount that stands for any."""


def list_rows(visit: Visit) -> tuple[str, dict[str, str | None]]:
    """Return the list of the API that the view shows a page of, and its filters."""
    owner = visit.query.get("owner", "")
    month = visit.query.get("month") or f"{visit.now:%Y-%m}"
    key = visit.query.get("label", "")
    by = "LABEL" if key else visit.query.get("by") or ("handler" if owner else "owner")
    return "/v1/usage", {"owner": owner, "by": by.upper(), "labelKey": key, "month": month}


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the usage of a month, and for the budgets, if the month is the present one."""
    path, wanted = list_rows(visit)
    budgets: list[Json] = []
    if wanted["month"] == f"{visit.now:%Y-%m}":
        budgets = api.list_items("/v1/budgets", "budgets", owner=wanted["owner"], pageSize=ROWS)
    return {**api.get(path, **wanted), "by": wanted["by"], "budgets": budgets, "error": ""}


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
    if not (digits.isascii() and digits.isdigit() and len(digits) < len(str(_ANY))):
        raise InvalidInput(name, "is not a number", f"Type a number from 0 to {_ANY - 1:,}, or leave it empty.")
    return int(digits)


def _write_limits(budget: Json | None) -> str:
    """Return the limits of a budget, by which a form knows whether somebody has changed it."""
    return " ".join(str((budget or {}).get(field, _ANY)) for field in _LIMITS.values())


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a month shows."""
    owner = visit.query.get("owner", "")
    budgets = sorted(map(_build_budget, answer["budgets"]), key=lambda each: each["share"], reverse=True)
    order = SORT.read(visit) or "dollars"
    rows = sorted(answer["sums"], key=lambda row: (-row[order], -row["executions"], row["name"]))
    new = {"owner": owner, "limits": {}, "shown": ""}
    return {
        **answer,
        "rows": [_write_amounts(row) for row in rows[:ROWS]],
        "total": _write_amounts(answer["total"]),
        "left": len(rows) - ROWS,
        "columns": COLUMNS,
        "budgets": budgets,
        "maySet": visit.may_change and visit.role == "admin" and answer["month"] == f"{visit.now:%Y-%m}",
        "budget": next((each for each in budgets if each["owner"] == owner), new),
        "unpriced": [words for name, words in _UNPRICED.items() if not answer["prices"].get(name)],
    }


def _write_amounts(row: Json) -> Json:
    """Return a row with its amounts as they are written: dollars in cents, or so that they are not zero."""
    dollars = row["dollars"]
    usd = f"{dollars:.4f}" if 0 < dollars < 0.01 else f"{dollars:,.2f}"  # noqa: PLR2004 - a cent
    if 0 < dollars < 0.0001:  # noqa: PLR2004 - four places
        usd = f"<{BLANK}0.0001"
    return {**row, **{name: f"{row[name]:,}" for name in ("executions", "queries", "tokens")}, "dollars": usd}


def list_limits(budget: Json) -> list[tuple[float, int, int, str]]:
    """Return each limit of a budget: the share that is used, the use, all of it, of what. The fullest first."""
    limits = [(budget.get(what, 0), budget.get(field, _ANY), what) for what, field in _LIMITS.items()]
    shown = [each for each in limits if each[1] < _ANY] or limits
    return sorted(((used / most if most else 1.0, used, most, what) for used, most, what in shown), reverse=True)


def _build_budget(budget: Json) -> Json:
    limits = list_limits(budget)
    share = limits[0][0]
    word, means = "", "enough is left"
    if share >= 1 or budget["isUsedUp"]:
        word, means = "used up", "the next check, within five minutes, pauses the tasks"
    elif share >= WARNING:
        word, means = "nearly used", "once nothing is left, the tasks pause"
    if budget["isUsedUp"]:
        means = "the tasks are paused until next month, or until an admin raises the budget"
    used = (f"{used:,} of {most:,} {what} ({int(share * 100):,}{BLANK}%)" for share, used, most, what in limits)
    shown = {name: budget.get(field, _ANY) for name, field in _LIMITS.items()}
    return {
        **budget,
        "share": share,
        "word": word,
        "means": means,
        "used": ", ".join(used),
        "shown": _write_limits(budget),
        "limits": {name: most for name, most in shown.items() if most < _ANY},
    }
