"""Ended tasks go as fast as they come, and lost work does not wait behind them (`python -m benchmarks.removals`)."""

from __future__ import annotations

import pytest
from benchmarks.removals import measure_removal, measure_rescue


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "cloudsched")


def test_one_time_tasks_are_removed_as_fast_as_they_come() -> None:
    """A year after the first 500 a second nobody reads what has ended, and the 500 that come now are not late."""
    found = measure_removal(500, 10.0, 20)
    assert found.ran == found.created
    assert (found.expired, found.left) == (2 * found.created, 0)
    assert found.reads == pytest.approx(1, abs=0.05), "each was read once: when it ran"
    assert found.late_p99 < 2
    assert found.range_writes < 500


def test_lost_work_is_found_by_the_next_sweep_whatever_waits_to_be_removed() -> None:
    """Also while that takes the time of several sweeps."""
    found = measure_rescue(2_500)
    assert found.removed_after > 60
    assert found.late < 80, "twenty seconds of grace, and a minute until the sweep"
