"""The figures of `python -m benchmarks.scale` are simulated: what limits a deployment shows in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks import scale
from benchmarks.scale import Effort, measure_purge, measure_steady
from tests.scale.cloud_tasks_model import QueueSetup
from tests.scale.index_ranges import Indexes, choose_indexes
from tests.scale.world import Deployment

TINY = Effort(rate=6.0, window=10, backlog=20, hashed=1_000)
SPREAD = Deployment(10**6, 1_000, 8, QueueSetup(4, 500.0, 200))


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "cloudsched")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Return the rows of a tiny run: 1,000 occurrences a second of a million tasks."""
    return [result.to_row() for result in scale.measure([10**6], [1_000], TINY)]


def test_an_occurrence_costs_what_the_guarantees_say(rows: list[dict[str, Any]]) -> None:
    """One read, three documents written, one dispatch created."""
    spread, _ = rows
    assert (spread["readsPerOccurrence"], spread["writesPerOccurrence"], spread["dispatchesPerOccurrence"]) == (1, 3, 1)


def test_one_shard_falls_behind_where_eight_do_not(rows: list[dict[str, Any]]) -> None:
    """A thousand occurrences a second are 2,000 writes: four ranges' worth."""
    spread, single = rows
    assert not spread["isSaturated"]
    assert spread["latenessP99Seconds"] < 2
    assert 150 < spread["hottestRangeWritesPerSecond"] < 350
    assert spread["recoverySeconds"] > 60
    assert single["isSaturated"]
    assert single["latenessP99Seconds"] > 10
    assert single["hottestRangeWritesPerSecond"] == pytest.approx(500, rel=0.05)
    assert single["servedPerSecond"] <= 260
    assert single["recoverySeconds"] is None
    assert single["abortedCommits"]["range"] > 0


def test_an_index_without_its_shard_shows() -> None:
    """Somebody adds an index on a rising value that does not begin with the shard: eight shards are as slow as one."""
    content = choose_indexes(8)
    fields = [{"fieldPath": "status"}, {"fieldPath": "wakeAt"}]
    broken = {"collectionGroup": "tasks", "queryScope": "COLLECTION", "fields": fields}
    indexes = Indexes({**content, "indexes": [*content["indexes"], broken]})
    steady = measure_steady(replace(SPREAD, indexes=indexes), TINY)
    assert steady.is_saturated
    assert steady.hottest_range == "tasks(status=ACTIVE, wakeAt)"
    assert steady.range_writes == pytest.approx(500, rel=0.05)


def test_no_owner_has_a_place_of_its_own_in_an_index() -> None:
    """With shards, every place that rising values are written to is a shard's, or that of the children of one task."""
    for index in choose_indexes(8)["indexes"]:
        paths = [field["fieldPath"] for field in index["fields"]]
        is_led = any(path.rpartition(".")[2] == "shard" for path in paths) or "parent.taskId" in paths
        assert is_led, paths


def test_a_lost_dispatch_is_found_by_the_sweep() -> None:
    """Not before it is 20 seconds overdue, and then with the next sweep; a larger backlog takes longer."""
    recovery = measure_purge(SPREAD, TINY)
    assert recovery.recovered == recovery.simulated == 20
    assert 80 <= recovery.first < 90
    small, large = recovery.seconds_for(1_000), recovery.seconds_for(1_000_000)
    assert small is not None
    assert large is not None
    assert 80 < small < large
