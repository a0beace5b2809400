"""The figures of `python -m benchmarks.scale` are simulated: what limits a deployment shows in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks import scale
from benchmarks.scale import Effort, measure_purge, measure_steady
from tests.cases import try_each
from tests.scale.cloud_tasks_model import QueueSetup
from tests.scale.index_ranges import Indexes, choose_indexes
from tests.scale.world import Deployment

TINY = Effort(rate=6.0, recovery_rate=6.0, window=60, backlog=20, hashed=1_000)
SPREAD = Deployment(10**6, 1_000, 8, QueueSetup(4, 500.0, 200))
OWNED = [{"fieldPath": "owner"}, {"fieldPath": "private.changed.at"}]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "cloudsched")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Return the rows of a tiny run: 1,000 occurrences a second of a million tasks."""
    advised = scale.choose_deployment(10**6, 1_000)
    return [result.to_row() for result in scale.measure([advised, replace(advised, shards=1)], TINY)]


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


def add_index(fields: list[dict[str, str]]) -> Indexes:
    """Return the indexes of eight shards, and one of tasks."""
    content = choose_indexes(8)
    added = {"collectionGroup": "tasks", "queryScope": "COLLECTION", "fields": fields}
    return Indexes({**content, "indexes": [*content["indexes"], added]})


def test_an_index_without_its_shard_shows() -> None:
    """Somebody adds an index on a rising value that does not begin with the shard: eight shards are as slow as one."""
    indexes = add_index([{"fieldPath": "status"}, {"fieldPath": "wakeAt"}])
    steady = measure_steady(replace(SPREAD, indexes=indexes), TINY)
    assert steady.is_saturated
    assert steady.hottest_range == "status, wakeAt"
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


def test_a_backlog_that_grows_slowly_shows() -> None:
    """Two hundred a second on the defaults, of which 150 are possible, fall behind: so do 165, and 100 do not."""
    slow, behind, fine = (measure_steady(Deployment(10**6, rate), replace(TINY, rate=15)) for rate in (165, 200, 100))
    assert slow.is_saturated
    assert behind.is_saturated
    assert behind.served_rate == pytest.approx(150, rel=0.05)
    assert "same time" in behind.nearest_limit[0]
    assert not fine.is_saturated


def test_the_range_of_an_owner_limits_those_who_have_many_tasks() -> None:
    """An index that only its owner leads is fine for a thousand owners, and not for a server's tasks."""
    deployment = replace(SPREAD, indexes=add_index(OWNED))
    assert not measure_steady(replace(deployment, owners=1_000), TINY).is_saturated
    of_server = measure_steady(replace(deployment, owners=1), TINY)
    assert of_server.is_saturated
    assert of_server.nearest_limit[0] == "an index range (`owner, private.changed.at`)"


@try_each("is_one_time, most", [(False, 167), (True, 125)])
def test_ids_that_rise_are_a_range(*, is_one_time: bool, most: float) -> None:
    """A run writes its task twice, and its record below it; a creation the task. Shards do not spread the names."""
    rising = replace(SPREAD, has_rising_ids=True, is_one_time=is_one_time, owners=1_000)
    over, under = (replace(rising, tasks=int(600 * rate), rate=rate) for rate in (1.3 * most, 0.75 * most))
    steady = measure_steady(over, TINY)
    assert steady.is_saturated
    assert steady.nearest_limit[0] == "an index range (`__name__`)"
    assert not measure_steady(under, TINY).is_saturated
    assert not measure_steady(replace(over, has_rising_ids=False), TINY).is_saturated
