"""What every store promises about one task: loading, committing, purging."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import try_each
from tests.conftest import NOW, MakeExecution, MakeMessage, MakeTask
from tests.contract.conftest import OpenStore, load
from tests.engine.harness import DAY, SECOND

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.execution import (
    Attempt,
    ExecutionError,
    ExecutionStatus,
    Lease,
    ProgressNote,
    Run,
)
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.task import Backfill, Source, TaskStatus
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import ArchivedJournal, Commit, TaskWrite
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.errors import InvalidInput, StoreUnavailable, VersionConflict

ODD = NOW.replace(microsecond=123456)
JSON = {
    "none": None,
    "numbers": [1, 1.0, 0, -1.5, 2**63 - 1, -(2**63)],
    "nested": [[1, [2, {"a": []}]], [], {"list": [[None]]}],
    "empty": {"map": {}, "list": [], "text": ""},
    "text": "Grüße, 世界 \U0001f30d \x00",
    "flags": [True, False],
    "with.dots and `ticks`": {"0": "key"},
    "an instant as text": "2027-01-01T09:00:00Z",
}


def test_tasks_of_one_commit_are_written_together_or_not_at_all(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """Each must be as it was read, or not there; if one is not, nothing of the commit is stored."""
    first, old, new = (make_task(id=name, title="before") for name in ("others-1", "others-2", "others-3"))
    written = store.commit(Commit(first))
    store.commit(Commit(old))
    stored = load(store, old.id)
    edited = old.model_copy(update={"title": "after"})
    writes = [TaskWrite(edited, stored, (make_execution(edited),)), TaskWrite(new)]
    written = store.commit(Commit(first.model_copy(update={"title": "after"}), written, others=writes))
    after = [store.load(each.id) for each in (first, old, new)]
    assert [each and each.task.title for each in after] == ["after", "after", "before"]
    assert store.load_execution(old.id, "20270101T090000Z") == make_execution(edited)
    again = make_task(id="others-4")
    for refused in ([TaskWrite(again), TaskWrite(edited, stored)], [TaskWrite(again), TaskWrite(new)]):
        with pytest.raises(VersionConflict):
            store.commit(Commit(first, written, [make_execution(first)], others=refused))
    assert store.load(again.id) is None
    assert store.load_execution(first.id, "20270101T090000Z") is None
    assert store.load(first.id) == after[0]
    latest = store.load(old.id)
    store.commit(Commit(first, written, others=[TaskWrite(edited.model_copy(update={"title": "once more"}), latest)]))
    assert (found := store.load(old.id)) is not None
    assert found.task.title == "once more"


def test_a_task_is_read_as_it_was_written(store: Store, make_task: MakeTask) -> None:
    attempt = Attempt(number=1, started_at=NOW, finished_at=ODD, status=ExecutionStatus.FAILED)
    run = Run(
        execution_id="20270101T090000Z",
        scheduled_for=NOW,
        due_at=ODD,
        attempt=2,
        lease=Lease(token_hash="t", started_at=NOW, until=ODD),  # noqa: S106 - a claim, no secret
        attempts=(attempt,),
        progress=(ProgressNote(at=ODD, text="half"),),
    )
    task = make_task(
        schedule=Schedule(
            rrule=("FREQ=DAILY", "FREQ=MONTHLY;BYMONTHDAY=1"),
            dtstart="2027-01-01T09:00:00",
            timezone="Europe/Paris",
            rdates=("2027-02-03T10:00:00",),
        ),
        category=Category.REPORT,
        payload=JSON,
        delivery_channels=(DeliveryChannel.WEB, DeliveryChannel.EMAIL),
        source=Source(chat_id="c", context=JSON),
        query_per_execution=0.5,
        expected_duration=1.5 * SECOND,
        until=datetime(9998, 12, 31, tzinfo=UTC),
        runs=(run, run.model_copy(update={"execution_id": "other"})),
        backfill=Backfill(requested_at=NOW, next_at=datetime(1583, 1, 1, tzinfo=UTC), until=ODD),
        created_at=ODD,
        deferred=True,
    )
    written = store.commit(Commit(task))
    stored = load(store, task.id)
    assert stored.task == task
    assert stored == written
    assert stored.task.created_at.tzinfo is UTC
    assert type(stored.task.payload["numbers"][1]) is float


def test_records_are_read_as_they_were_written(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, make_message: MakeMessage
) -> None:
    task = make_task()
    error = ExecutionError(type="ValueError", message="no", traceback="line\nline")
    execution = make_execution(
        task, content=JSON, error=error, started_at=ODD, next_attempt_at=ODD, queries=3, is_delivered=True
    )
    message = make_message(task, "one", created_at=ODD, body="long\n" * 1000)
    store.commit(Commit(task, None, [execution], [message]))
    assert store.load_execution(task.id, execution.id) == execution
    assert list(store.search.list_executions(task.id, limit=10).items) == [execution]
    assert list(store.inbox.list(task.owner, limit=10).items) == [message]


@try_each("content", [None, [], [[]], [[1]], {}, "", 0, False])
def test_any_json_is_a_result(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, content: object
) -> None:
    task = make_task()
    store.commit(Commit(task, None, [make_execution(task, content=content)]))
    found = store.load_execution(task.id, "20270101T090000Z")
    assert found is not None
    assert found.content == content
    assert type(found.content) is type(content)


_KEYS = st.text(min_size=1).filter(lambda key: not key.startswith("__"))
_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30, deadline=None)
@given(payload=st.dictionaries(_KEYS, _JSON, max_size=3))
def test_any_json_is_a_payload(open_store: OpenStore, make_task: MakeTask, payload: dict[str, Any]) -> None:
    """Only the order of a map's keys may change, which Firestore does not keep."""
    with open_store() as store:
        task = make_task(payload=payload)
        store.commit(Commit(task))
        stored = load(store, task.id)
    assert json.dumps(stored.task.payload, sort_keys=True) == json.dumps(payload, sort_keys=True)


def test_a_stale_version_writes_nothing(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, make_message: MakeMessage
) -> None:
    """Nor does a creation of what exists: no record, no message, no entry, and no journal is archived."""
    task = make_task()
    entries = [JournalEntry(number=n, execution_id="e", kind=StepKind.NOW, started_at=NOW) for n in (1, 2)]
    first = store.commit(Commit(task, entries=entries[:1]))
    second = store.commit(Commit(task.model_copy(update={"title": "Second"}), first))
    records, messages = [make_execution(task)], [make_message(task, "one")]
    for base in (first, None):
        with pytest.raises(VersionConflict):
            store.commit(Commit(task, base, records, messages, entries=entries[1:], archived=[ArchivedJournal("e", 1)]))
    stored = load(store, task.id)
    assert (stored.task.title, stored) == ("Second", second)
    assert store.load_execution(task.id, "20270101T090000Z") is None
    assert not store.inbox.list(task.owner, limit=10).items
    assert list(store.load_journal(task.id, "e")) == entries[:1]


def test_a_version_does_not_match_a_recreated_task(store: Store, make_task: MakeTask) -> None:
    task = make_task(deleted_at=NOW)
    written = store.commit(Commit(task))
    store.sweep.purge(task.id)
    again = store.commit(Commit(task))
    assert again != written
    with pytest.raises(VersionConflict):
        store.commit(Commit(task, written))


@pytest.fixture
def store_with_a(store: Store, make_task: MakeTask) -> Store:
    store.commit(Commit(make_task(id="a")))
    return store


@try_each("key", ["no-such", "", "a/b", "a/executions/b", ".", "..", "__a__", "x" * 2000, "\x00", "a\n"])
def test_a_missing_document_is_none(store_with_a: Store, key: str) -> None:
    assert store_with_a.load(key) is None
    assert store_with_a.load_execution("a", key) is None
    assert store_with_a.load_execution(key, "b") is None
    assert not store_with_a.search.list_executions(key, limit=10).items
    assert not store_with_a.inbox.list(key, limit=10).items
    with suppress(InvalidInput):  # what can be no owner is refused
        assert not store_with_a.list_tasks(TaskQuery(owner=key), limit=10).items
    store_with_a.sweep.purge(key)
    assert store_with_a.load("a") is not None


def test_purge_removes_a_task_and_its_executions(
    store: Store, make_task: MakeTask, make_execution: MakeExecution, make_message: MakeMessage
) -> None:
    gone, stays = make_task(deleted_at=NOW), make_task()
    for task in (gone, stays):
        executions = [make_execution(task, f"e{number:03}") for number in range(5)]
        store.commit(Commit(task, None, executions, [make_message(task, "one")]))
    store.sweep.purge(gone.id)
    store.sweep.purge(gone.id)
    assert store.load(gone.id) is None
    assert not store.search.list_executions(gone.id, limit=10).items
    assert store.load_execution(gone.id, "e001") is None
    assert [task.id for task in store.list_tasks(TaskQuery(), limit=10).items] == [stays.id]
    assert len(store.search.list_executions(stays.id, limit=10).items) == 5
    assert len(store.inbox.list("ada", limit=10).items) == 2
    assert store.sweep.next_wakeup() == stays.wake_at


def test_an_ended_task_is_removed_whole_unless_it_has_changed(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """With all of its records, whether they expire by themselves or not, or none of it is."""
    task = make_task(status=TaskStatus.COMPLETED, wake_at=NOW)
    records = [make_execution(task, f"e{number:03}", expire_at=(None, NOW)[number % 2]) for number in range(5)]
    read = store.commit(Commit(task, None, records))
    store.commit(Commit(task.model_copy(update={"title": "Tock"}), read))
    assert not store.sweep.remove(read)
    assert len(store.search.list_executions(task.id, limit=10).items) == 5
    assert store.sweep.remove(load(store, task.id))
    assert store.load(task.id) is None
    assert not store.search.list_executions(task.id, limit=10).items
    assert store.sweep.next_wakeup() is None
    assert not store.sweep.remove(read), "it is gone already"


def test_a_record_goes_on_without_its_end_and_as_it_is_otherwise(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """Nobody who has written it meanwhile loses that; one that has been removed by then cannot go on."""
    task = make_task(status=TaskStatus.COMPLETED, expire_at=NOW)
    record = make_execution(task, "one", expire_at=NOW, message="as it is")
    read = store.commit(Commit(task, None, [record]))
    active = task.model_copy(update={"status": TaskStatus.ACTIVE, "expire_at": None})
    with pytest.raises(VersionConflict):
        store.commit(Commit(active, read, kept_record="two"))
    store.commit(Commit(active, read, kept_record="one"))
    assert store.load_execution(task.id, "one") == record.model_copy(update={"expire_at": None})
    store.sweep.expire(NOW + DAY)
    assert store.load_execution(task.id, "one") is not None
    assert load(store, task.id).task == active


def test_purge_leaves_a_task_that_is_not_deleted(
    store: Store, make_task: MakeTask, make_execution: MakeExecution
) -> None:
    """It was recreated under the same id, and the purge of the old one comes late."""
    task = make_task()
    store.commit(Commit(task, None, [make_execution(task, "one")]))
    store.sweep.purge(task.id)
    assert store.load(task.id) is not None
    assert store.load_execution(task.id, "one") is not None


def test_a_store_with_a_clock_tells_its_time(store: Store, make_task: MakeTask) -> None:
    """Firestore's comes with each document, too, without another round trip; a file has no clock of its own.

    Leases use the writers' clocks, which can be compared with it.
    """
    task = make_task()
    store.commit(Commit(task))
    begun = datetime.now(UTC)
    for told in (store.check(), load(store, task.id).read_at):
        if isinstance(store, SqliteStore):
            assert told is None
        else:
            assert told
            assert begun - SECOND <= told <= datetime.now(UTC) + SECOND


def test_a_store_responds_until_it_is_closed(open_store: OpenStore, make_task: MakeTask) -> None:
    with open_store() as store:
        store.check()
    for use in (store.check, lambda: store.load("a"), lambda: store.commit(Commit(make_task()))):
        with pytest.raises(StoreUnavailable):
            use()
    store.close()
