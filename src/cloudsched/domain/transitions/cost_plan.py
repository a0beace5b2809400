"""What a planned load will cost in a month: the counts of an occurrence, times prices (docs/explanation/costs.md).

Prices that no setting has are those of us-central1 as Google published them in November 2026, without free tiers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.overview_responses import to_amounts
from cloudsched.domain.transitions.forecast import OCCURRENCE
from cloudsched.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_BYTES: Final = 1_315
"""What Firestore stores of an occurrence: its record without content, and that record's index entries."""
LOG_BYTES: Final = 2_500
"""What Cloud Logging stores of an occurrence: our two lines measured, its overhead and the request log estimated."""
DEFAULT_SECONDS: Final = 0.1
"""For how long an occurrence has an instance for itself."""
DEFAULT_KEPT_DAYS: Final = 30
VCPU_SECOND: Final = 0.000_025_25
"""Dollars for a vCPU-second with 0.5 GiB of memory."""
STORED_GIB: Final = 0.15
"""Dollars for a GiB in Firestore for a month."""
LOGGED_GIB: Final = 0.50
SCHEDULER_JOB: Final = 0.10
"""Dollars for the sweep's job in Cloud Scheduler for a month."""
SWEEP_SECONDS: Final = 4_000 / 43_200
"""For how long a sweep that finds nothing has an instance."""
MONTH_DAYS: Final = 30
_SWEEPS: Final = MONTH_DAYS * 24 * 60
_GIB: Final = 1024**3
_MILLION: Final = 1_000_000
_FACTORS: Final = {"": 1, "k": 1_000, "m": _MILLION, "b": 1_000 * _MILLION}
_A_MONTH: Final = {"second": 86_400 * 30, "minute": 1_440 * 30, "hour": 24 * 30, "day": 30, "month": 1}
_PLAN = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([kmb]?)/(second|minute|hour|day|month)", re.IGNORECASE)
_MOST: Final = 10**12


@dataclass(frozen=True, slots=True)
class CostLine:
    """One part of what a month costs."""

    part: str
    amount: float
    dollars: float
    is_compute: bool = False
    """Whether it depends on handlers and settings, not on what an occurrence needs: time of instances, and logs."""


def parse_plan(text: str) -> float:
    """Return how many occurrences a month has: ``1M/month``, ``20k/day``, ``300/minute``.

    Raises:
        InvalidInput: It is not written so, or there are more than a trillion.
    """
    found = _PLAN.fullmatch(text.strip())
    if found is None:
        raise InvalidInput("plan", f"is {text!r}", "Write 1M/month, 20k/day or 300/minute.")
    number, factor, unit = found.groups()
    count = float(number) * _FACTORS[factor.lower()] * _A_MONTH[unit.lower()]
    if count > _MOST:
        raise InvalidInput("plan", f"is {count:,.0f} a month", f"Plan at most {_MOST:,}.")
    return count


def plan_costs(
    occurrences: float,
    prices: Mapping[str, float],
    *,
    seconds: float = DEFAULT_SECONDS,
    kept_days: float = DEFAULT_KEPT_DAYS,
) -> list[CostLine]:
    """Return what so many successful occurrences of recurring tasks cost in a month.

    Args:
        occurrences: How many there are.
        prices: Dollars for a million of each, as the setting `CLOUDSCHED_PRICES` has them.
        seconds: For how long each has an instance for itself.
        kept_days: How long records are kept; each is deleted in the end.
    """
    each = to_amounts(OCCURRENCE)
    kept = occurrences * RECORD_BYTES / _GIB * kept_days / MONTH_DAYS
    logs = occurrences * LOG_BYTES / _GIB
    return [
        _price("documents read", occurrences * each["read"], prices["read"]),
        _price("documents written", occurrences * each["write"], prices["write"]),
        _price("documents deleted", occurrences, prices["delete"]),
        _price("queue operations", occurrences * each["queueOperation"], prices["queueOperation"]),
        _price("requests", occurrences * each["request"], prices["request"]),
        CostLine("GiB-months of records", kept, kept * STORED_GIB),
        CostLine("vCPU-seconds", occurrences * seconds, occurrences * seconds * VCPU_SECOND, is_compute=True),
        CostLine("GiB of logs", logs, logs * LOGGED_GIB, is_compute=True),
    ]


def plan_sweep(prices: Mapping[str, float]) -> CostLine:
    """Return what the sweep costs in a month in which it finds nothing, with its job."""
    operations = prices["read"] + prices["write"] + prices["request"]
    dollars = _SWEEPS * (operations / _MILLION + SWEEP_SECONDS * VCPU_SECOND) + SCHEDULER_JOB
    return CostLine("sweeps, and their job", _SWEEPS, dollars)


def _price(part: str, amount: float, per_million: float) -> CostLine:
    return CostLine(part, amount, amount * per_million / _MILLION)
