"""The usage of a month, by owner and handler, its cost, and the rest of each budget."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.dashboard.chart_axis import draw_picture, element, percent
from cloudsched.dashboard.status import Status
from cloudsched.dashboard.visit import Api, Json, Visit, write_count

if TYPE_CHECKING:
    from markupsafe import Markup

WARNING: Final = 0.8
"""The part of a budget at which the API begins to warn."""
_HEIGHT, _BAR, _LEAST = 16, 10, 0.01


def draw_budget(used: int, most: int) -> Markup:
    """Return the bar. The words beside it say the same. A budget of 0 is always used up."""
    part = min(1.0, used / most) if most else 1.0
    filled = max(part, _LEAST) if used or not most else 0.0
    css = "f-fail" if part >= 1 else "f-retry" if part >= WARNING else "f-past"
    top = (_HEIGHT - _BAR) / 2
    parts = [element("rect", cls="o", x="0.5", y=top, width="99%", height=_BAR)]
    if filled:
        parts.append(element("rect", cls=css, x="0", y=top, width=percent(filled * 0.99), height=_BAR))
    mark = percent(WARNING * 0.99)
    parts.append(element("line", cls="base", x1=mark, x2=mark, y1=0, y2=_HEIGHT))
    return draw_picture(_HEIGHT, *parts)


OWNERS: Final = 50
"""The number of owners with usage, and of budgets, on one page."""
FILTERS: Final = ("owner", "handler")
_MONTH: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")
_FIRST, _LAST = "1971-01", "9990-12"
_USED_UP, _NEARLY = Status("pause", "Used up", "retry"), Status("late", "Nearly used", "retry")
_ENOUGH: Final = Status("ok", "Enough", "ok")


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the usage of a month, and for the budgets, if the month is the present one."""
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    month = _read_month(visit)
    usage = api.get("/v1/usage", **wanted, month=month, pageSize=OWNERS, pageToken=visit.query.get("page"))
    budgets = api.find("/v1/budgets", owner=wanted["owner"], pageSize=OWNERS) if month == _now(visit) else None
    return {**usage, "budgets": (budgets or {}).get("budgets", []), "moreBudgets": (budgets or {}).get("nextPageToken")}


def build(answer: Json, visit: Visit) -> Json:
    """Return what the page of a month shows."""
    is_partial = bool(answer.get("nextPageToken") or visit.query.get("page"))
    return {
        **answer,
        "sentence": _write_sentence(answer, is_partial=is_partial),
        "notes": _write_notes(answer, visit),
        "months": _find_months(answer["month"], visit),
        "rows": [{**each, **_write_amounts(each)} for each in _sort_rows(answer["usage"])],
        "total": _write_amounts(answer["total"]),
        "isPartial": is_partial,
        "budgets": [_build_budget(each) for each in sorted(answer["budgets"], key=_find_share, reverse=True)],
        "prices": ", ".join(f"{price:g} for {name}" for name, price in answer["prices"].items() if price),
    }


def _sort_rows(rows: Sequence[Json]) -> list[Json]:
    """Return the rows, the owner with the highest cost first, and of each owner the highest cost first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for each in rows:
        sums[each["owner"]] += each["dollars"]
    return sorted(rows, key=lambda each: (-sums[each["owner"]], each["owner"], -each["dollars"], each["handler"]))


def _write_amounts(counts: Json) -> Json:
    names = ("executions", "queries", "tokens", "reads", "writes", "deletes", "queueOperations")
    return {
        **{name: f"{counts[name]:,}" for name in names},
        "queriesNote": _write_estimate(counts["queries"], counts["estimatedQueries"]),
        "tokensNote": _write_estimate(counts["tokens"], counts["estimatedTokens"]),
        "dollars": _write_dollars(counts["dollars"]),
    }


def _write_estimate(used: int, estimated: float) -> str:
    return "" if round(estimated) in {0, used} else f"{round(estimated):,} estimated"


def _write_dollars(dollars: float) -> str:
    """Return an amount in cents, or with as many digits as show that it is not zero."""
    if 0 < dollars < 0.01:  # noqa: PLR2004 - a cent
        return f"{dollars:.4f}" if dollars >= 0.0001 else "< 0.0001"  # noqa: PLR2004 - four places
    return f"{dollars:,.2f}"


def _find_share(budget: Json) -> float:
    most = budget["maxQueriesPerMonth"]
    return float(budget["queries"] / most) if most else 1.0


def _build_budget(budget: Json) -> Json:
    used, most, share = budget["queries"], budget["maxQueriesPerMonth"], _find_share(budget)
    if budget["isUsedUp"]:
        what = "The owner's tasks are paused until the next month begins, or an admin raises the budget."
    elif share >= 1:
        what = "The next look, five minutes apart, pauses the owner's tasks."
    else:
        what = f"{most - used:,} are left" + ("; then the owner's tasks pause." if share >= WARNING else ".")
    return {
        **budget,
        "used": f"{used:,} of {most:,}{f' ({int(share * 100)} %)' if most else ''}",
        "chart": draw_budget(used, most),
        "status": _USED_UP if budget["isUsedUp"] or share >= 1 else _NEARLY if share >= WARNING else _ENOUGH,
        "what": what,
    }


def _write_sentence(answer: Json, *, is_partial: bool) -> str:
    total, first = answer["total"], date.fromisoformat(f"{answer['month']}-01")
    name = f"{first:%B %Y}"
    if not answer["usage"]:
        return f"{name}: nothing was used."
    whose = write_count(len({each["owner"] for each in answer["usage"]}), "owner", "owners")
    said = f"{total['executions']:,} executions and {total['queries']:,} queries of {whose}"
    sentence = f"{name}: {said}{' on this page' if is_partial else ''}, {_write_dollars(total['dollars'])} US dollars."
    over = sum(each["isUsedUp"] for each in answer["budgets"])
    near = sum(not each["isUsedUp"] and _find_share(each) >= WARNING for each in answer["budgets"])
    for count, word in ((over, "used up"), (near, "nearly used")):
        sentence += f" {write_count(count, 'budget is', 'budgets are')} {word}." if count else ""
    return sentence


def _write_notes(answer: Json, visit: Visit) -> list[str]:
    notes = []
    if not answer["isComplete"]:
        notes.append("More has changed than one look reads: reload the page to sum up the rest.")
    if visit.owner is not None:
        notes.append(f"You see what was used for {visit.owner}.")
    return notes


def _find_months(month: str, visit: Visit) -> list[tuple[str, str]]:
    first, present = date.fromisoformat(f"{month}-01"), _now(visit)
    found = [("← Before", f"{first - timedelta(days=1):%Y-%m}"), ("This month", present)]
    if month < present:
        found.append(("After →", f"{first + timedelta(days=31):%Y-%m}"))
    return [(name, visit.with_query(month=None if each == present else each, page=None)) for name, each in found]


def _now(visit: Visit) -> str:
    return f"{visit.now:%Y-%m}"


def _read_month(visit: Visit) -> str:
    """Return the month of the address, or the present one."""
    month = visit.query.get("month", "")
    return min(max(month, _FIRST), _LAST) if _MONTH.fullmatch(month) else _now(visit)
