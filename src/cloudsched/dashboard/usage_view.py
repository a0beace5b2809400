"""The usage of a month, by owner and handler, its cost, and the rest of each budget."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from cloudsched.dashboard.chart_axis import draw_picture, element, percent
from cloudsched.dashboard.status import Status
from cloudsched.dashboard.visit import Api, Json, Visit, ZoneChoice, zone_choices

if TYPE_CHECKING:
    from markupsafe import Markup

    from cloudsched.dashboard.times import Moment


WARNING: Final = 0.8
"""The part of a budget at which the API begins to warn."""
_HEIGHT, _BAR, _LEAST = 16, 10, 0.01


def draw_budget(used: int, most: int) -> Markup:
    """Return the bar. The words beside it say the same.

    Args:
        used: The number of queries that were used.
        most: The number that may be used. A budget of 0 is always used up.
    """
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


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts of usage, in words."""

    executions: str
    queries: str
    queries_note: str
    """The tasks' estimate, if it differs."""
    tokens: str
    tokens_note: str
    reads: str
    writes: str
    deletes: str
    queue: str
    """Cloud Tasks operations."""
    dollars: str


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of a handler for an owner."""

    owner: str
    handler: str
    href: str
    """The path of the list of their tasks."""
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """An owner's budget."""

    owner: str
    used: str
    chart: Markup
    status: Status
    what: str
    """The consequence."""
    paused: str | None
    """The path of the list of the tasks that it has paused. None if it has not."""


@dataclass(frozen=True, slots=True)
class UsagePage:
    """The view model."""

    sentence: str
    notes: list[str]
    month: str
    months: list[tuple[str, str]]
    """Other months, with name and address."""
    rows: list[UsageRow]
    total: Amounts
    is_partial: bool
    """True if the total is that of this page alone."""
    budgets: list[BudgetRow]
    more_budgets: bool
    summed: Moment
    prices: str
    filters: dict[str, str]
    next_page: str | None
    zones: list[ZoneChoice]


def fetch(api: Api, visit: Visit) -> Json:
    """Ask the API for the usage of a month, and for the budgets, if the month is the present one."""
    wanted = {name: visit.query.get(name, "") for name in FILTERS}
    month = _read_month(visit)
    usage = api.get("/v1/usage", **wanted, month=month, pageSize=OWNERS, pageToken=visit.query.get("page"))
    budgets = api.find("/v1/budgets", owner=wanted["owner"], pageSize=OWNERS) if month == _now(visit) else None
    return {**usage, "budgets": (budgets or {}).get("budgets", []), "moreBudgets": (budgets or {}).get("nextPageToken")}


def build(answer: Json, visit: Visit) -> UsagePage:
    """Return the view model of the API's answers."""
    month = answer["month"]
    more = answer.get("nextPageToken")
    is_partial = bool(more or visit.query.get("page"))
    budgets = [_build_budget(each) for each in sorted(answer["budgets"], key=_find_share, reverse=True)]
    summed = visit.sure(answer["summedUntil"])
    return UsagePage(
        sentence=_write_sentence(answer, is_partial=is_partial),
        notes=_write_notes(answer, visit),
        month=month,
        months=[
            (name, visit.with_query(month=None if other == _now(visit) else other, page=None))
            for name, other in _find_months(month, visit)
        ],
        rows=[_build_row(each) for each in _sort_rows(answer["usage"])],
        total=_write_amounts(answer["total"]),
        is_partial=is_partial,
        budgets=budgets,
        more_budgets=bool(answer["moreBudgets"]),
        summed=summed,
        prices=", ".join(f"{price:g} for {name}" for name, price in answer["prices"].items() if price),
        filters={name: visit.query.get(name, "") for name in FILTERS},
        next_page=visit.with_query(page=more) if more else None,
        zones=zone_choices(visit),
    )


def _sort_rows(rows: Sequence[Json]) -> list[Json]:
    """Return the rows, the owner with the highest cost first, and of each owner the highest cost first."""
    sums: defaultdict[str, float] = defaultdict(float)
    for each in rows:
        sums[each["owner"]] += each["dollars"]
    return sorted(rows, key=lambda each: (-sums[each["owner"]], each["owner"], -each["dollars"], each["handler"]))


def _build_row(row: Json) -> UsageRow:
    query = urlencode({"owner": row["owner"], "handler": row["handler"]})
    return UsageRow(row["owner"], row["handler"], f"tasks?{query}", _write_amounts(row))


def _write_amounts(counts: Json) -> Amounts:
    return Amounts(
        executions=f"{counts['executions']:,}",
        queries=f"{counts['queries']:,}",
        queries_note=_write_estimate(counts["queries"], counts["estimatedQueries"]),
        tokens=f"{counts['tokens']:,}",
        tokens_note=_write_estimate(counts["tokens"], counts["estimatedTokens"]),
        reads=f"{counts['reads']:,}",
        writes=f"{counts['writes']:,}",
        deletes=f"{counts['deletes']:,}",
        queue=f"{counts['queueOperations']:,}",
        dollars=_write_dollars(counts["dollars"]),
    )


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


def _build_budget(budget: Json) -> BudgetRow:
    used, most, owner = budget["queries"], budget["maxQueriesPerMonth"], budget["owner"]
    share = _find_share(budget)
    if budget["isUsedUp"]:
        status = Status("pause", "Used up", "retry")
        what = "The owner's tasks are paused until the next month begins, or an admin raises the budget."
    elif share >= 1:
        status = Status("pause", "Used up", "retry")
        what = "The next look, five minutes apart, pauses the owner's tasks."
    elif share >= WARNING:
        status = Status("late", "Nearly used", "retry")
        what = f"{most - used:,} are left; then the owner's tasks pause."
    else:
        status = Status("ok", "Enough", "ok")
        what = f"{most - used:,} are left."
    paused = f"tasks?{urlencode({'owner': owner, 'status': 'PAUSED'})}" if budget["isUsedUp"] else None
    part = f" ({int(share * 100)} %)" if most else ""
    return BudgetRow(
        owner=owner,
        used=f"{used:,} of {most:,}{part}",
        chart=draw_budget(used, most),
        status=status,
        what=what,
        paused=paused,
    )


def _write_sentence(answer: Json, *, is_partial: bool) -> str:
    total, name = answer["total"], _name_month(answer["month"])
    if not answer["usage"]:
        return f"{name}: nothing was used."
    owners = len({each["owner"] for each in answer["usage"]})
    whose = "one owner" if owners == 1 else f"{owners:,} owners"
    said = f"{total['executions']:,} executions and {total['queries']:,} queries of {whose}"
    sentence = f"{name}: {said}{' on this page' if is_partial else ''}, {_write_dollars(total['dollars'])} US dollars."
    over = sum(each["isUsedUp"] for each in answer["budgets"])
    near = sum(not each["isUsedUp"] and _find_share(each) >= WARNING for each in answer["budgets"])
    if over:
        sentence += f" {over:,} {'budget is' if over == 1 else 'budgets are'} used up."
    if near:
        sentence += f" {near:,} {'budget is' if near == 1 else 'budgets are'} nearly used."
    return sentence


def _write_notes(answer: Json, visit: Visit) -> list[str]:
    notes = (
        [] if answer["isComplete"] else ["More has changed than one look reads: reload the page to sum up the rest."]
    )
    if visit.owner is not None:
        notes.append(f"You see what was used for {visit.owner}.")
    return notes


def _find_months(month: str, visit: Visit) -> list[tuple[str, str]]:
    first = date.fromisoformat(f"{month}-01")
    before = f"{first - timedelta(days=1):%Y-%m}"
    after = f"{first + timedelta(days=31):%Y-%m}"
    found = [("← Before", before), ("This month", _now(visit))]
    return [*found, ("After →", after)] if month < _now(visit) else found


def _name_month(month: str) -> str:
    return f"{date.fromisoformat(f'{month}-01'):%B %Y}"


def _now(visit: Visit) -> str:
    return f"{visit.now:%Y-%m}"


def _read_month(visit: Visit) -> str:
    """Return the month of the address, or the present one."""
    month = visit.query.get("month", "")
    return min(max(month, _FIRST), _LAST) if _MONTH.fullmatch(month) else _now(visit)
