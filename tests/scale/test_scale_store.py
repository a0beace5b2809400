"""The model of Firestore takes as many writes as Firestore documents, and no more."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import grpc  # type: ignore[import-untyped]  # grpcio ships no types
import pytest
from tests.scale.firestore_model import FirestoreModel
from tests.scale.google_limits import Ramp, Refusal, VirtualTime
from tests.scale.index_ranges import Indexes
from tests.scale.store_limits import StoreLimits

from cloudsched.adapters.firestore.messages import CommitRequest, RunQueryRequest
from cloudsched.adapters.firestore.queries import build_due_listing
from cloudsched.adapters.firestore.values import encode_fields
from cloudsched.testing import START

DATABASE = "projects/p/databases/d/documents"


class StandingTime(VirtualTime):
    """A time that moves by itself only."""

    def pass_latency(self, median: float, sigma: float = 0.4) -> None:
        """Take no time."""


class Database:
    """A model of Firestore with some indexes; it counts what it takes."""

    def __init__(self, indexes: Indexes, ramp: Ramp | None = None) -> None:
        self.time = StandingTime(random.Random(0))  # noqa: S311 - a test is to be repeatable
        self.model = FirestoreModel(self.time, indexes, StoreLimits(ramp=ramp))
        self._commit = self.model.unary_unary("/google.firestore.v1.Firestore/Commit")

    def write(self, path: str, **fields: Any) -> grpc.StatusCode:
        """Write a document; return the status code."""
        request = CommitRequest()
        write = request.writes.add()
        write.update.name = f"{DATABASE}/{path}"
        encode_fields(write.update.fields, fields)
        try:
            self._commit(request)
        except Refusal as refused:
            return refused.code()
        return grpc.StatusCode.OK

    def fill_a_second(self, shards: int, owners: int = 10**6, writes: int = 3_000) -> int:
        """Write new tasks within one second; return how many were taken."""
        taken = 0
        for number in range(writes):
            at = START + timedelta(microseconds=number)
            code = self.write(
                f"tasks/t{number}",
                owner=f"o{number % owners}",
                wakeAt=at,
                private={"changed": {"shard": number % shards}},
            )
            assert code in {grpc.StatusCode.OK, grpc.StatusCode.ABORTED}
            taken += code is grpc.StatusCode.OK
        return taken


def only(*fields: str) -> Indexes:
    """Return a database's indexes: one composite index of tasks."""
    index = {"collectionGroup": "tasks", "queryScope": "COLLECTION", "fields": [{"fieldPath": each} for each in fields]}
    return Indexes(
        {"indexes": [index], "fieldOverrides": [{"collectionGroup": "tasks", "fieldPath": "*", "indexes": []}]}
    )


def test_one_shard_takes_500_writes_a_second() -> None:
    """What the scripts create for one shard has one range of `wakeAt`."""
    database = Database(Indexes.of_shards(1))
    assert database.fill_a_second(shards=1) == 500
    database.time.seconds = 1.0
    assert database.write("tasks/later", wakeAt=START) is grpc.StatusCode.OK


@pytest.mark.parametrize("shards", [2, 5])
def test_n_shards_take_n_times_500(shards: int) -> None:
    """Each shard is a range of its own."""
    assert Database(Indexes.of_shards(shards)).fill_a_second(shards) == shards * 500


def test_an_index_led_by_owner_is_a_range_for_each_owner() -> None:
    """So many owners never fill one, and one big owner does."""
    assert Database(only("owner", "wakeAt")).fill_a_second(shards=1) == 3_000
    assert Database(only("owner", "wakeAt")).fill_a_second(shards=1, owners=1) == 500
    assert Database(only("owner", "wakeAt")).fill_a_second(shards=1, owners=3) == 1_500


def test_what_a_write_leaves_as_it_was_is_not_written() -> None:
    """A write counts in the ranges whose entries it changes."""
    database = Database(only("owner", "createdAt"))
    for number in range(600):
        assert database.write(f"tasks/t{number}", owner=f"o{number}", createdAt=START) is grpc.StatusCode.OK
    range_, writes = database.model.limits.ranges.find_hottest(0, 1)
    assert writes == 1
    for _ in range(3):
        database.time.seconds += 10
        assert database.write("tasks/t0", owner="o0", createdAt=START, title="new") is grpc.StatusCode.OK
    assert database.model.limits.ranges.find(range_).counts[range_, 10] == 0


def test_an_array_has_an_entry_for_each_element() -> None:
    """And none if it is empty."""
    field = {"fieldPath": "labels", "arrayConfig": "CONTAINS"}
    index = {"collectionGroup": "tasks", "queryScope": "COLLECTION", "fields": [field, {"fieldPath": "createdAt"}]}
    indexes = Indexes({"indexes": [index], "fieldOverrides": []})
    composite = [
        values for each, _, values in indexes.derive("tasks", {"labels": ["a", "b"], "createdAt": START}) if each.array
    ]
    assert sorted(values[0] for values in composite) == ["a", "b"]
    assert not [each for each, _, _ in indexes.derive("tasks", {"labels": [], "createdAt": START}) if each.array]


def test_an_index_of_single_collections_has_a_range_for_each_parent() -> None:
    """Two tasks' executions are in two ranges, but in one of a collection group."""
    indexes = Indexes.of_shards(4)
    ranges = set()
    for task in ("a", "b"):
        values = {
            "scheduledFor": START,
            "private.listed.shard": 1,
            "private.listed.isFailure": False,
            "status": "SUCCEEDED",
        }
        ranges |= indexes.find_ranges(set(), indexes.derive("executions", values, f"tasks/{task}"))
    assert {each.parent for each in ranges if each.shard is None} == {"tasks/a", "tasks/b"}
    assert {each.parent for each in ranges if each.shard is not None} == {""}


def test_traffic_that_grows_too_fast_is_aborted() -> None:
    """A new collection takes 500 operations a second, and half more after five minutes."""
    database = Database(only("owner"), Ramp())
    assert sum(database.write(f"tasks/t{n}") is grpc.StatusCode.OK for n in range(1_000)) == 500
    database.time.seconds = 300.0
    assert sum(database.write(f"tasks/u{n}") is grpc.StatusCode.OK for n in range(1_000)) == 750
    assert Ramp().seconds_to(150_000) == 75 * 60


def test_a_commit_that_is_aborted_leaves_no_trace() -> None:
    """Neither its documents nor their entries are there, and it is not billed."""
    database = Database(only("wakeAt"))
    for number in range(500):
        database.write(f"tasks/t{number}", wakeAt=START)
    before = dict(database.model.counts)
    assert database.write("tasks/new", wakeAt=START) is grpc.StatusCode.ABORTED
    assert f"{DATABASE}/tasks/new" not in database.model.documents
    assert {**database.model.counts, "aborted by range": 0} == {**before, "aborted by range": 0}


def test_queries_find_what_is_due_in_order() -> None:
    """The sweep's own query, over shards, after a page."""
    database = Database(Indexes.of_shards(4))
    for number in range(8):
        at = START + timedelta(seconds=7 - number)
        database.write(f"tasks/t{number}", wakeAt=at, private={"changed": {"shard": number % 2}})
    run = database.model.unary_stream("/google.firestore.v1.Firestore/RunQuery")
    (listing,) = build_due_listing(START + timedelta(seconds=5), None, (1,)).split()

    def find(limit: int, after: tuple[object, str] | None = None) -> list[str]:
        query = listing.to_query(limit, DATABASE, after)
        request = RunQueryRequest(parent=DATABASE, structured_query=query)
        return [each.document.name.rpartition("/")[2] for each in run(request) if each.HasField("document")]

    assert find(10) == ["t7", "t5", "t3"]
    assert find(2) == ["t7", "t5"]
    assert find(10, (START, "t7")) == ["t5", "t3"]
