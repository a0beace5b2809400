"""Production serves every query that the code can make, with the indexes that are deployed; each index is needed."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import fields
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.adapters.firestore.index_rules import Indexes
from tests.adapters.firestore.production import (
    INDEX_FILE,
    NOW,
    ContendedChannel,
    EmptyDatabase,
    ProductionChannel,
    ProductionRules,
)
from tests.conftest import MakeTask
from tests.record_kinds import list_record_kinds

from cloudsched.adapters.firestore import listener as listeners
from cloudsched.adapters.firestore import rpc
from cloudsched.adapters.firestore.listener import FirestoreListener
from cloudsched.adapters.firestore.queries import FirestoreListing
from cloudsched.adapters.firestore.shards import Placement, Shards
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google import backoff
from cloudsched.domain.documents.audit_note import AuditNote
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.owner_usage import UsageFront, UsageSheet
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.queue_pause import QueuePause
from cloudsched.domain.documents.recent_count import RecentCount
from cloudsched.domain.documents.run_counts import RunOutcome
from cloudsched.domain.documents.task import TaskStatus, Trouble
from cloudsched.domain.documents.task_link import TaskLink
from cloudsched.domain.transitions.commit import Commit, Version, VersionedTask
from cloudsched.engine.ports.inbox import InboxStore
from cloudsched.engine.ports.listener import Listener
from cloudsched.engine.ports.search import CountStore, ExecutionQuery, SearchStore, TaskQuery, identify_open_list
from cloudsched.engine.ports.store import Store
from cloudsched.engine.ports.sweep import SweepStore
from cloudsched.engine.storage.pages import make_token
from cloudsched.engine.sweep.shard_sweeps import SweepNote
from cloudsched.engine.sweep.zone_watch import ZoneRelease
from cloudsched.errors import InvalidInput
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.calendars.documents import Calendar
from cloudsched.features.locks.lock import Lock, VersionedLock
from cloudsched.features.locks.lock_store import LockStore
from cloudsched.features.pull.fields import MAX_SKILLS, queue_keys
from cloudsched.features.pull.presence import WorkerPresence
from cloudsched.people.documents import ContactSecrets, ExportPart, Feed, LinkKey, PersonJob
from cloudsched.scripts.documents import ScriptTree, StoredScript

RECORDS = (
    Feed,
    Person,
    ContactSecrets,
    RecentCount,
    LinkKey,
    PersonJob,
    ExportPart,
    Calendar,
    TaskLink,
    WorkerPresence,
    StoredScript,
    ScriptTree,
    SweepNote,
    Budget,
    UsageFront,
    UsageSheet,
    ZoneRelease,
    QueuePause,
    AuditNote,
)
"""Every kind of record."""
DATABASE = {"project": "demo", "database": "(default)", "emulator": "localhost:1"}
MOST_KEYS = queue_keys("gpu", [f"skill{number}" for number in range(MAX_SKILLS)])
FILTERS: dict[str, tuple[Any, ...]] = {
    "owner": (None, "ada"),
    "status": (None, TaskStatus.ACTIVE, TaskStatus.PAUSED),
    "handler": (None, "greet"),
    "due_from": (None, NOW),
    "due_until": (None, NOW + timedelta(days=1)),
    "parent": (None, "t1"),
    "label": (None, "team=payments"),
    "trouble": (None, Trouble.FAILED, Trouble.WAITING),
    "is_delivery": (False, True),
    "pause_id": (None, "p1"),
    "category": (None, Category.REPORT),
    "channel": (None, "EMAIL"),
    "roughly": (None,),  # only a store that knows what occurs leaves any out
    "ends_by_itself": (False,),  # likewise for what is paused
}
"""Values of each filter of a `TaskQuery`."""


@pytest.fixture
def spread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """Which indexes a database has, and over how many shards it is spread."""
    shards, count = getattr(request, "param", ("one", 1))
    placement = Placement(count if shards == "many" else 0)
    monkeypatch.setattr(Shards, "load_placement", lambda _: placement)
    return shards, count


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, spread: tuple[Any, int]) -> ProductionRules:
    """What every Firestore adapter is connected to: an empty database with production's rules."""
    rules = ProductionRules(Indexes.from_file(INDEX_FILE, spread[0]))
    monkeypatch.setattr(rpc, "open_channel", lambda *_: ProductionChannel(EmptyDatabase(), rules))
    return rules


def every_task_query() -> Iterator[tuple[TaskQuery, str | None]]:
    """Yield every combination of filters, for the first page and for a later one."""
    assert set(FILTERS) == {each.name for each in fields(TaskQuery)}, "give values of every filter"
    for values in itertools.product(*FILTERS.values()):
        with suppress(InvalidInput):  # a combination with two orders, or of deliveries
            query = TaskQuery(**dict(zip(FILTERS, values, strict=True)))
            yield from ((query, None), (query, make_token(query, NOW, "t1")))


def every_call_of_the_store(store: Store, make_task: MakeTask) -> dict[str, Callable[[], object]]:
    """Return for each method of the port a call with every combination of its filters."""
    task = make_task()

    def list_offers() -> None:
        for keys, owner, after in itertools.product((MOST_KEYS[:1], MOST_KEYS), (None, "ada"), (None, ("1", "t1"))):
            store.list_offers(keys, owner, limit=5, after=after)

    def list_pages(read: Callable[..., object], query: object) -> Callable[[], object]:
        return lambda: [read(limit=5, page_token=token) for token in (None, make_token(query, NOW, "t1"))]

    return {
        "load": lambda: store.load("t1"),
        "commit": lambda: store.commit(Commit(task)),
        "locks.load": lambda: store.locks.load("k"),
        "locks.commit": lambda: store.locks.commit(VersionedLock(Lock(key="k"), None)),
        "locks.list_waiters": lambda: [
            store.locks.list_waiters("k", limit=5, **which)
            for which in ({}, {"task_ids": ["t1"]}, {"task_ids": [f"t{n}" for n in range(40)]}, {"worker_group": "g"})
        ],
        "locks.list_all": lambda: [
            store.locks.list_all(limit=5, begin="a", end=end, after=after)
            for end, after in itertools.product((None, "b"), ("", "a"))
        ],
        "load_journal": lambda: store.load_journal("t1", "e1"),
        "sweep.purge": lambda: store.sweep.purge("t1"),
        "sweep.expire": lambda: store.sweep.expire(NOW),
        "list_tasks": lambda: [store.list_tasks(q, limit=5, page_token=token) for q, token in every_task_query()],
        "sweep.list_due": list_pages(
            lambda **page: [
                store.sweep.list_due(NOW, since=since, shard=shard, **page)
                for since in (None, NOW)
                for shard in (None, *range(store.sweep.count_shards())[1:])
            ],
            "due",
        ),
        "sweep.list_due, of removals": list_pages(
            lambda **page: [
                store.sweep.list_due(NOW, shard=shard, is_removal=True, **page)
                for shard in (None, *range(store.sweep.count_shards())[1:])
            ],
            "removal",
        ),
        "sweep.remove": lambda: store.sweep.remove(VersionedTask(task, Version(1))),
        "sweep.count_shards": store.sweep.count_shards,
        "list_offers": list_offers,
        "make_id": lambda: store.make_id(NOW),
        "recall": lambda: store.recall("t1"),
        "load_many": lambda: store.load_many(["t1", "t2"]),
        "sweep.next_wakeup": store.sweep.next_wakeup,
        "load_execution": lambda: store.load_execution("t1", "e1"),
        "search.list_executions": list_pages(
            lambda **page: store.search.list_executions("t1", **page), ("executions", "t1")
        ),
        "inbox.list": list_pages(lambda **page: store.inbox.list("ada", **page), ("inbox", "ada")),
        "check": store.check,
        "close": lambda: None,
    }


def search_everything(search: SearchStore) -> None:
    """Make each list across tasks with every combination of its filters, for the first page and for a later one."""
    others = {
        "list_handlers",
        "list_queue_keys",
        "count_offers",
        "list_executions",
        "count_tasks",
        "count_open",
        "count_runs",
        "count_unfinished",
        "group_tasks",
        "count_created_since",
        "find_last_change",
        "list_changed",
        "get_name_match",
        "list_named",
        "list_owners",
        "list_acted_on",
    }
    assert methods(SearchStore) | methods(CountStore) == {"list_finished", "list_open", *others}
    count_and_list_names(search)
    list_every_execution(search)
    for task_query, _ in every_task_query():
        search.count_tasks(task_query, 5)


def count_and_list_names(search: SearchStore) -> None:
    """Make each list and count of tasks and names, of all owners and of one."""
    for owner in (None, "ada"):
        search.list_queue_keys(owner, limit=5)
        named = TaskQuery(owner)
        for token in (None, make_token(("named", named, ("report",)), NOW, "t1")):
            search.list_named(named, ("report",), limit=5, page_token=token)
        search.list_queue_keys(owner, limit=5, after="gpu")
        search.count_offers("gpu", owner, 5)
        search.find_last_change(owner)
        for acted in (None, NOW):
            for token in (None, make_token(("acted on", owner, acted), NOW, "t1")):
                search.list_acted_on(owner, acted, limit=5, page_token=token)
        for since in ("", "1798794000000000000 t1"):
            for token in (None, make_token(("changed", owner, since), NOW, "t1")):
                search.list_changed(owner, since, limit=5, page_token=token)
    search.list_handlers(limit=5)
    search.list_owners("a", limit=5)
    search.count_unfinished("ada", 10)
    search.count_created_since("ada", NOW, 10)
    for owner in (None, "ada"):
        search.group_tasks(TaskQuery(owner, trouble=Trouble.FAILED))


def list_every_execution(search: SearchStore) -> None:
    """List and count executions by every combination of filters, for the first page and for a later one."""
    values: dict[str, tuple[Any, ...]] = {
        "owner": (None, "ada"),
        "status": (None, ExecutionStatus.FAILED),
        "handler": (None, "greet"),
        "label": (None, "team=payments"),
        "since": (None, NOW),
        "until": (None, NOW + timedelta(days=1)),
        "category": (None, Category.REPORT),
        "is_late": (False, True),
        "outcome": (None, RunOutcome.SKIPPED),
        "error": (None,),
        "error_type": (None,),
    }
    assert set(values) == {each.name for each in fields(ExecutionQuery)}, "give values of every filter"
    for each in itertools.product(*values.values()):
        query = ExecutionQuery(**dict(zip(values, each, strict=True)))
        for token in (None, make_token(("finished", query, True), NOW, "t1.e1")):
            search.list_finished(query, is_failure=True, limit=5, page_token=token)
        running = ExecutionStatus.RUNNING
        for token in (None, make_token(identify_open_list(query, running), NOW, "t1")):
            search.list_open(query, running, limit=5, page_token=token)
        search.count_open(query, running, 5)
        search.count_runs(query.owner, (NOW, NOW + timedelta(hours=1)))


def methods(port: type) -> set[str]:
    return {name for name, value in vars(port).items() if callable(value) and not name.startswith("_")}


def call_every_port(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, shards: int) -> None:
    """Make each call of each port that can query, with every combination of its filters."""
    count = rpc.FirestoreRpc.count
    monkeypatch.setattr(rpc.FirestoreRpc, "count", lambda *what: 1 + count(*what))  # what there is none of ends early
    with closing(FirestoreStore(**DATABASE, shards=shards, name_index=True)) as store:  # type: ignore[arg-type]
        calls = every_call_of_the_store(store, make_task)
        others = {f"locks.{name}" for name in methods(LockStore)} | {f"sweep.{name}" for name in methods(SweepStore)}
        assert set(calls) >= methods(Store) | others, "call every method of these ports"
        for call in calls.values():
            call()
        assert {*RECORDS} == list_record_kinds()
        assert methods(InboxStore) == {"get", "list", "mark_read", "count_unread", "remove_some"}
        store.inbox.get("ada", "m1")
        store.inbox.mark_read("ada", "m1", NOW)
        store.inbox.count_unread("ada", 10)
        store.inbox.remove_some("ada")
        for kind in RECORDS:
            if kind.is_listed_by_owner:
                store.records.list(kind, "ada", limit=5)
            store.records.list_all(kind, limit=5)
        search_everything(store.search)
    assert methods(Listener) == {"listen"}
    monkeypatch.setattr(listeners, "FALLBACK_POLL", timedelta(0))
    for keys, owner in itertools.product((MOST_KEYS[:1], MOST_KEYS), (None, "ada")):
        is_polled = threading.Event()
        with FirestoreListener(**DATABASE, shards=shards).listen(keys, owner, is_polled.set):  # type: ignore[arg-type]
            assert is_polled.wait(60), "the query was never sent"


@pytest.mark.parametrize("spread", [("one", 1), ("growing", 7), ("many", 7), ("many", 40)], indirect=True, ids=str)
def test_every_query_that_the_ports_can_make_has_its_index(
    rules: ProductionRules, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, spread: tuple[Any, int]
) -> None:
    """No combination of filters, first page or later, is refused in production, with whatever number of shards."""
    call_every_port(make_task, monkeypatch, spread[1])
    assert rules.refusals == []
    assert len(rules.queries) > 100


def test_every_call_of_the_ports_outlives_contention(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request is made again after a failure that may pass, also one whose answer broke off in the middle."""
    channels: list[ContendedChannel] = []

    def open_contended(*_: object) -> ContendedChannel:
        channels.append(ContendedChannel(EmptyDatabase()))
        return channels[-1]

    monkeypatch.setattr(rpc, "open_channel", open_contended)
    monkeypatch.setattr(backoff, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None))
    call_every_port(make_task, monkeypatch, 1)
    failed = {method for each in channels for method in each.failures}
    assert failed == {"BatchGetDocuments", "Commit", "RunQuery", "RunAggregationQuery"}


@pytest.mark.parametrize("spread", [("one", 1), ("many", 7)], indirect=True, ids=str)
def test_every_index_is_needed(
    rules: ProductionRules, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch, spread: tuple[Any, int]
) -> None:
    """Without any one of the indexes some query is refused: an index that nobody uses costs storage and write time."""
    call_every_port(make_task, monkeypatch, spread[1])
    for index in rules.indexes:
        fewer = rules.indexes.without(index)
        assert any(map(fewer.why_refused, rules.queries)), f"no query needs {index}"


def test_the_indexes_are_few() -> None:
    """Each is paid for at each write: of a task, a record or an offer."""
    composites = Indexes.from_file(INDEX_FILE).composites
    assert len(composites) <= 24
    assert len([each for each in composites if each.collection == "executions"]) <= 6


def test_clients_have_the_index_of_the_list_that_their_guide_shows() -> None:
    """Their query says the owner, as the rules demand, and no shard."""
    query = FirestoreListing("tasks", "createdAt", is_descending=True, equals={"owner": "ada"}).to_query(5, "")
    for shards in ("one", "growing", "many"):
        assert Indexes.from_file(INDEX_FILE, shards, has_clients=True).why_refused(query) is None
        assert Indexes.from_file(INDEX_FILE, shards).why_refused(query) is not None, "others do not pay for it"


def test_no_owner_has_a_place_of_its_own_in_an_index() -> None:
    """With many shards, an index has the shard or a task in front: a place takes 500 rising writes a second.

    What a change of many has paused is written by that change alone, one after the other.
    """
    for index in Indexes.from_file(INDEX_FILE, "many").composites:
        paths = [path for path, _ in index.fields]
        assert any(path.rpartition(".")[2] == "shard" for path in paths) or {"parent.taskId", "pauseId"} & {*paths}, (
            index
        )


def test_nothing_else_is_indexed(rules: ProductionRules) -> None:
    """Every collection that has documents exempts its fields: a map could need more entries than Firestore allows."""
    for collection in (
        "tasks",
        "offers",
        "executions",
        "messages",
        "steps",
        "locks",
        "waiters",
        *(each.collection for each in RECORDS),
    ):
        assert rules.indexes.overrides[collection, "*"] == frozenset(), collection
        assert not rules.indexes.single_field_indexes(collection, "payload.anything")


"""Values of the parameters of the lists of the API; the others are tried at the ports."""
