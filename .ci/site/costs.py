"""The figures of docs/explanation/costs.md: what the code counts, and that times the default prices.

The site has them from the code as it is. ``python .ci/site/costs.py`` writes them into the page, too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cloudsched.config.features import DEFAULT_PRICES
from cloudsched.config.settings import Settings
from cloudsched.domain.documents.overview_responses import to_amounts
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.transitions.cost_plan import (
    DEFAULT_SECONDS,
    LOG_BYTES,
    LOGGED_GIB,
    MONTH_DAYS,
    RECORD_BYTES,
    STORED_GIB,
    VCPU_SECOND,
    plan_costs,
    plan_sweep,
)
from cloudsched.domain.transitions.forecast import DELIVERY, HOP, LOCK, OCCURRENCE, WORKER

if TYPE_CHECKING:
    from cloudsched.domain.transitions.cost_plan import CostLine

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "costs.md"
_MILLION = 1_000_000
_SHOWN_WHOLE = 100
_ROWS = {
    "creation of a task": UsageCounts(writes=1, dispatches=1),
    "successful occurrence": OCCURRENCE,
    "… more, with a lock key that is free": LOCK,
    "… more, run by a worker at the store": WORKER,
    "… more, for each channel but `WEB`": DELIVERY,
    "hop of 30 days": HOP,
}


def render() -> str:
    """Return the table."""
    lines = [
        "| a million of | read | written | deleted | queue operations | requests | USD |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, counts in _ROWS.items():
        amounts = to_amounts(counts)
        dollars = sum(amount * DEFAULT_PRICES[each] for each, amount in amounts.items())
        shown = " | ".join(
            f"{amounts[each]:,} M" if amounts[each] else ""
            for each in ("read", "write", "delete", "queueOperation", "request")
        )
        lines.append(f"| {name} | {shown} | {dollars:.2f} |")
    return "\n".join(lines) + "\n"


def render_million() -> str:
    """Return the table of a million occurrences."""
    parts = plan_costs(_MILLION, DEFAULT_PRICES)
    lines = ["| part | amount | USD |", "|---|---|---|"]
    for each in parts:
        if each.is_compute and not any("before" in line for line in lines):
            lines.append(_sum("**before compute and logs**", [e for e in parts if not e.is_compute]))
        lines.append(f"| {each.part} | {_show(each.amount)} | {each.dollars:.2f} |")
    lines.append(_sum("**together**", parts))
    return "\n".join(lines) + "\n"


def _sum(name: str, parts: list[CostLine]) -> str:
    return f"| {name} | | **{sum(each.dollars for each in parts):.2f}** |"


def _show(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= _SHOWN_WHOLE else f"{amount:.2f}"


def render_levers() -> str:
    """Return what a million costs when instances are shared, and without logs."""
    lines = ["| a million occurrences | USD |", "|---|---|"]
    for name, seconds, has_logs in (
        ("each 100 ms alone on its instance, logs beyond the free 50 GiB", DEFAULT_SECONDS, True),
        ("the same, logs within the free 50 GiB", DEFAULT_SECONDS, False),
        ("ten share an instance, logs beyond the free 50 GiB", DEFAULT_SECONDS / 10, True),
        ("ten share an instance, logs within the free 50 GiB", DEFAULT_SECONDS / 10, False),
        ("no time at all, no logs: the floor", 0.0, False),
    ):
        parts = plan_costs(_MILLION, DEFAULT_PRICES, seconds=seconds)
        total = sum(each.dollars for each in parts if has_logs or each.part != "GiB of logs")
        lines.append(f"| {name} | {total:.2f} |")
    return "\n".join(lines) + "\n"


def render_sweep() -> str:
    """Return what the sweep costs."""
    return f"The sweep's 43,200 runs a month and its job: {plan_sweep(DEFAULT_PRICES).dollars:.2f} USD.\n"


def render_prices() -> str:
    """Return the default prices, for as many of each as Google's pages say."""
    rows = [
        ("document read", 100_000, DEFAULT_PRICES["read"] / 10),
        ("document written", 100_000, DEFAULT_PRICES["write"] / 10),
        ("document deleted, also by TTL", 100_000, DEFAULT_PRICES["delete"] / 10),
        ("queue operation (a creation or a delivery, for each 32 KB)", _MILLION, DEFAULT_PRICES["queueOperation"]),
        ("request to a function", _MILLION, DEFAULT_PRICES["request"]),
        ("GiB in Firestore for a month, with indexes", 1, STORED_GIB),
        ("GiB of logs", 1, LOGGED_GIB),
    ]
    lines = [f"| {name} | {of:,} | {usd:.2f} |" for name, of, usd in rows]
    lines.insert(5, f"| vCPU-second, with 0.5 GiB | 1 | {VCPU_SECOND:.8f} |")
    return "\n".join(["| price | of | USD |", "|---|---|---|", *lines]) + "\n"


def render_sizes() -> str:
    """Return what a record and the logs of an occurrence are counted at, and what a million records cost."""
    kept = Settings().retention or timedelta(0)
    month = STORED_GIB * 1_000_000 * RECORD_BYTES / 1024**3
    return (
        f"A record is counted at {RECORD_BYTES:,} bytes, the logs of an occurrence at {LOG_BYTES:,}. A million records "
        f"cost {month:.2f} USD a\nmonth, and {month * kept.days / MONTH_DAYS:.2f} until they are removed with their "
        f"ended tasks after {kept.days} days (`CLOUDSCHED_RETENTION_DAYS`).\n"
    )


_TABLES = {
    "costs": render,
    "prices": render_prices,
    "sizes": render_sizes,
    "million": render_million,
    "levers": render_levers,
    "sweep": render_sweep,
}


def put(text: str) -> str:
    """Return the page with the tables in their places."""
    for name, make in _TABLES.items():
        place = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        text = place.sub(lambda _, make=make: make(), text)
    return text


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text("utf-8")), "utf-8")
