"""Units of time, and instants to the second: a simulation's clock moves a little at each look."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from cloudsched import Execution, Schedule

SECOND, MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def about(instants: datetime | Sequence[datetime]) -> Any:  # noqa: ANN401 - what pytest returns
    """Return what is equal to an instant, or to a list of them, to the second."""
    return pytest.approx(instants, abs=SECOND)


def spread(records: Iterable[Execution], schedule: Schedule) -> list[Execution]:
    """Return a record for each occurrence: one that covers several is there as often as it says, the earliest first."""
    found: list[Execution] = []
    for record in records:
        at: datetime | None = record.scheduled_for
        for _ in range(1 if record.covers is None else record.covers.count):
            assert at is not None
            found.append(record.model_copy(update={"scheduled_for": at, "covers": None}))
            if record.is_left_out and record.covers is not None:
                at = schedule.find_skipped(at, record.covers.until)
            else:
                at = schedule.next_after(at)
    return sorted(found, key=lambda each: each.scheduled_for)
