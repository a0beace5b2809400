"""Write the table of dollars in docs/explanation/costs.md: what the code counts, times the default prices.

Usage: python .ci/site/costs.py
"""

from __future__ import annotations

import re
from pathlib import Path

from cloudsched.config.features import DEFAULT_PRICES
from cloudsched.domain.documents.overview_responses import to_amounts
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.domain.transitions.forecast import DELIVERY, HOP, LOCK, OCCURRENCE, QUICK_OCCURRENCE, WORKER

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "costs.md"
_PLACE = re.compile(r"(?<=<!-- costs -->\n).*?(?=<!-- /costs -->)", re.DOTALL)
_ROWS = {
    "creation of a task": UsageCounts(writes=1, dispatches=1),
    "successful occurrence": OCCURRENCE,
    "successful occurrence of a quick handler": QUICK_OCCURRENCE,
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


def put(text: str) -> str:
    """Return the page with the table in its place."""
    return _PLACE.sub(lambda _: render(), text)


if __name__ == "__main__":
    PAGE.write_text(put(PAGE.read_text("utf-8")), "utf-8")
