"""With any number of shards Firestore lists the same, in the same order and pages, as with one; also while it grows."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.adapters.firestore.index_rules import Indexes
from tests.adapters.firestore.production import INDEX_FILE, NOW, ProductionChannel, ProductionRules
from tests.conftest import MakeExecution, MakeTask
from tests.contract.conftest import iter_pages, make_delivery
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.harness import new_project

from cloudsched.adapters.firestore import listener as firestore_listener
from cloudsched.adapters.firestore import placement as placing
from cloudsched.adapters.firestore import rpc, shards
from cloudsched.adapters.firestore.listener import FirestoreListener
from cloudsched.adapters.firestore.queries import EQUAL
from cloudsched.adapters.firestore.shards import Placement
from cloudsched.adapters.firestore.store import FirestoreStore
from cloudsched.adapters.google.channel import open_channel
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import ExecutionStatus, Lease, Run
from cloudsched.domain.documents.task import Parent, Task, TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.ports.sweep import choose_shard
from cloudsched.engine.storage.pages import Page
from cloudsched.errors import InvalidInput, Misconfigured, StoreUnavailable
from cloudsched.features.pull.fields import Offer

LATER = NOW + 900 * DAY
DEADLINE = MINUTE


@dataclass(repr=False)
class Database:
    """A database in the emulator that refuses what production would refuse with the indexes that it has by now."""

    address: str
    rules: ProductionRules
    project: str = field(default_factory=new_project)

    @contextmanager
    def open(self, count: int) -> Iterator[FirestoreStore]:
        """Open it as a process does that was told of so many shards."""
        with closing(
            FirestoreStore(project=self.project, emulator=self.address, deadline=DEADLINE, shards=count)
        ) as opened:
            yield opened

    def empty(self) -> None:
        """Begin with another one, of one shard."""
        self.project = new_project()
        self.rules.indexes = Indexes.from_file(INDEX_FILE)

    def grow(self, count: int) -> None:
        """Raise the number of shards as the guide says: indexes, walk, and no indexes without shards any more."""
        self.rules.indexes = Indexes.from_file(INDEX_FILE, "growing")
        with self.open(count) as store:
            store.grow(count)
        self.rules.indexes = Indexes.from_file(INDEX_FILE, "many")


@pytest.fixture
def database(firestore_address: str, monkeypatch: pytest.MonkeyPatch) -> Database:
    rules = ProductionRules(Indexes.from_file(INDEX_FILE))
    monkeypatch.setattr(rpc, "open_channel", lambda *where: ProductionChannel(open_channel(*where), rules))
    monkeypatch.setattr(shards, "RECHECK_SECONDS", 0.0)
    return Database(firestore_address, rules)


def read_all(read: Callable[[str | None], Page[Any]]) -> list[str]:
    """Return the ids of a list of whatever size, page by page."""
    pages = [*iter_pages(read)]
    assert all(page.items for page in pages[:-1])
    return [each.id for page in pages for each in page.items]


Listing: TypeAlias = "Callable[[Store, str | None], Page[Any]]"


def list_queries(limit: int) -> dict[str, Listing]:
    """Return every list in pages that shards concern: each reads the page after a token from a store."""
    queries = [
        TaskQuery(),
        TaskQuery(status=TaskStatus.PAUSED, handler="greet"),
        TaskQuery(handler="greet"),
        TaskQuery(owner="ada", status=TaskStatus.ACTIVE),
        TaskQuery(parent="p", handler="greet"),
        TaskQuery(due_from=NOW),
        TaskQuery(due_until=NOW + 2 * HOUR, handler="greet"),
        TaskQuery(owner="ada", is_delivery=True),
        TaskQuery(label="team=a"),
        TaskQuery(label="team=a", status=TaskStatus.ACTIVE),
    ]

    def list_tasks(query: TaskQuery) -> Listing:
        return lambda store, token: store.list_tasks(query, limit=limit, page_token=token)

    def list_finished(query: ExecutionQuery) -> Listing:
        return lambda store, token: store.search.list_finished(query, is_failure=False, limit=limit, page_token=token)

    def list_open(query: ExecutionQuery) -> Listing:
        running = ExecutionStatus.RUNNING
        return lambda store, token: store.search.list_open(query, running, limit=limit, page_token=token)

    runs = [
        ExecutionQuery(),
        ExecutionQuery(handler="greet"),
        ExecutionQuery(category=Category.REPORT),
        ExecutionQuery(label="team=a"),
        ExecutionQuery(owner="ada", handler="greet"),
    ]
    return {
        **{repr(query): list_tasks(query) for query in queries},
        **{f"finished {query}": list_finished(query) for query in runs},
        **{f"running {query}": list_open(query) for query in runs},
        "due": lambda store, token: read_due(store, limit, None, token),
    }


def read_everything(store: Store, limit: int) -> dict[str, object]:
    """Return what every list that shards concern has."""
    found: dict[str, object] = {name: read_all(partial(read, store)) for name, read in list_queries(limit).items()}
    found["counted"] = store.search.count_tasks(TaskQuery(), 1_000)
    found["first"] = store.sweep.next_wakeup()
    found["queues"] = list(store.search.list_queue_keys(None, limit=100))
    found["offers"] = [each.task_id for each in store.list_offers(["gpu", "cpu"], None, limit=limit)]
    found["waiting"] = store.search.count_offers("gpu", None, 100)
    return found


def make_running(at: datetime) -> tuple[Run]:
    """Return the only run of a task that an executor runs since then."""
    lease = Lease(token_hash="", started_at=at, until=LATER)
    return (Run(execution_id="open", scheduled_for=at, due_at=at, started_at=at, lease=lease),)


_HOURS = st.integers(0, 3).map(lambda hours: NOW + timedelta(hours=hours))
_DELIVERY = make_delivery(task_id="p")
_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "created_at": _HOURS,
            "at": _HOURS,
            "status": st.sampled_from([TaskStatus.ACTIVE, TaskStatus.PAUSED]),
            "handler": st.sampled_from(["greet", "bill"]),
            "category": st.sampled_from([Category.OTHERS, Category.REPORT]),
            "runs": _HOURS.map(make_running) | st.just(()),
            "owner": st.sampled_from(["ada", "bob"]),
            "labels": st.sampled_from([(), ("team=a",), ("kind=b", "team=a")]),
            "parent": st.none() | st.just(Parent(task_id="p", execution_id="e1", step=0, depth=1)),
            "delivery": st.sampled_from([None, None, _DELIVERY]),
            "offer": st.none()
            | st.builds(Offer, queueKey=st.sampled_from(["gpu", "cpu"]), order=st.sampled_from(["0 a", "1 a", "2 a"])),
        }
    ),
    max_size=10,
)


def fill(store: Store, tasks: Sequence[Task], make_execution: MakeExecution) -> None:
    for task in tasks:
        found_by = {} if task.delivery else {"handler": task.handler, "category": task.category}
        store.commit(Commit(task, None, [make_execution(task, "e1", content=None, **found_by)]))


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(fields=_TASKS, limit=st.integers(1, 5), counts=st.sampled_from([(7, 35), (2, 5, 35)]))
def test_lists_are_the_same_with_any_number_of_shards(
    database: Database,
    make_task: MakeTask,
    make_execution: MakeExecution,
    fields: list[dict[str, Any]],
    limit: int,
    counts: tuple[int, ...],
) -> None:
    """They are those of a store without shards, before, while and after there are more."""
    database.empty()
    database.rules.queries.clear()
    tasks = [make_task(id=f"t{number * 7 % 13}", **each) for number, each in enumerate(fields)]
    half = len(tasks) // 2
    with closing(SqliteStore()) as plain:
        fill(plain, tasks, make_execution)
        expected = read_everything(plain, limit)
    with database.open(1) as store:
        fill(store, tasks[:half], make_execution)
    with database.open(counts[0]) as store:
        fill(store, tasks[half:], make_execution)
        assert read_everything(store, limit) == expected, "told of shards, but not all documents have one"
    for count in counts:
        database.grow(count)
        with database.open(count) as store:
            assert read_everything(store, limit) == expected
            parts = [read_all(partial(read_due, store, limit, shard)) for shard in range(store.sweep.count_shards())]
            assert sorted(itertools.chain(*parts)) == sorted(each.id for each in tasks)
    assert not database.rules.refusals


@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(fields=_TASKS, limit=st.integers(1, 3), counts=st.sampled_from([(7, 35), (2, 5, 35)]))
def test_a_page_token_from_before_it_grew_continues_where_it_was(
    database: Database,
    make_task: MakeTask,
    make_execution: MakeExecution,
    fields: list[dict[str, Any]],
    limit: int,
    counts: tuple[int, ...],
) -> None:
    """Somebody pages through a list while the number of shards grows: every item comes once, in the list's order.

    Before each page after the first the next step of growing has happened: a process is told of shards, the walk has
    ended, and again for more shards than one query can ask for. The pages that are left come from what it is then.
    """
    database.empty()
    tasks = [make_task(id=f"t{number * 7 % 13}", **each) for number, each in enumerate(fields)]
    with closing(SqliteStore()) as plain:
        fill(plain, tasks, make_execution)
        expected = {name: read_all(partial(read, plain)) for name, read in list_queries(limit).items()}
    lists = list_queries(limit)
    found: dict[str, list[str]] = {name: [] for name in lists}
    tokens: dict[str, str | None] = dict.fromkeys(lists)

    def turn_page(store: FirestoreStore) -> None:
        for name in [*tokens]:
            page = lists[name](store, tokens[name])
            found[name] += [each.id for each in page.items]
            if page.next_page_token is None:
                del tokens[name]
            else:
                tokens[name] = page.next_page_token

    with database.open(1) as store:
        fill(store, tasks, make_execution)
        turn_page(store)
    for count in counts:
        database.rules.indexes = Indexes.from_file(INDEX_FILE, "growing")
        with database.open(count) as store:
            turn_page(store)
        database.grow(count)
        with database.open(count) as store:
            turn_page(store)
    with database.open(counts[-1]) as store:
        while tokens:
            turn_page(store)
    assert found == expected
    assert not database.rules.refusals


def read_due(store: Store, limit: int, shard: int | None, token: str | None) -> Page[Any]:
    return store.sweep.list_due(LATER, shard=shard, limit=limit, page_token=token)


def test_nothing_is_lost_while_it_grows(  # noqa: C901 - one story, with what happens at each of its calls
    database: Database, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are created, changed and purged by old and new processes; the walk fails at any call, and is repeated.

    At every moment a sweep of the new number finds every task that is there all along, and in the end every task.
    """
    monkeypatch.setattr(placing, "BATCH_SIZE", 3)
    random = Random(7)  # noqa: S311 - a test is to be repeatable
    database.rules.indexes = Indexes.from_file(INDEX_FILE, "growing")
    with database.open(1) as old, database.open(5) as new:
        staying = [make_task(id=f"s{number}") for number in range(7)]
        for task in staying:
            old.commit(Commit(task))
        present = {task.id for task in staying}
        commit = new._rpc.commit  # noqa: SLF001 - to break it

        def fail_sometimes(writes: Sequence[Any]) -> Any:  # noqa: ANN401 - a protobuf message
            move = random.random()
            if move < 0.3:
                raise StoreUnavailable("Firestore", "for a test: before it took effect")
            done = commit(writes)
            act(random.choice([old, new]))
            if move > 0.8:
                raise StoreUnavailable("Firestore", "for a test: after it took effect")
            return done

        def act(store: FirestoreStore) -> None:
            kind, task_id = random.choice(["create", "change", "purge"]), f"c{random.randrange(9)}"
            found = store.load(task_id)
            monkeypatch.setattr(new._rpc, "commit", commit)  # noqa: SLF001 - as it was
            if found is None:
                store.commit(Commit(make_task(id=task_id, offer=Offer(queue_key="gpu", order="1"))))
                present.add(task_id)
            elif kind == "change":
                store.commit(Commit(found.task.model_copy(update={"title": f"{random.random()}"}), found))
            elif kind == "purge":
                store.commit(Commit(found.task.model_copy(update={"deleted_at": NOW}), found))
                store.sweep.purge(task_id)
                present.discard(task_id)
            monkeypatch.setattr(new._rpc, "commit", fail_sometimes)  # noqa: SLF001 - as before
            assert set(read_all(partial(read_due, new, 4, None))) == present

        monkeypatch.setattr(new._rpc, "commit", fail_sometimes)  # noqa: SLF001 - from now on
        for _ in range(500):
            with suppress(StoreUnavailable):
                new.grow(5)
                break
        else:
            pytest.fail("the walk has not come to its end")
        monkeypatch.setattr(new._rpc, "commit", commit)  # noqa: SLF001 - from now on all is well
        database.rules.indexes = Indexes.from_file(INDEX_FILE, "many")
        assert new.load_placement() == Placement(5)
        parts = [read_all(partial(read_due, new, 4, shard)) for shard in range(5)]
        assert sorted(itertools.chain(*parts)) == sorted(present)
        offered = {each for each in present if each.startswith("c")}
        assert {each.task_id for each in new.list_offers(["gpu"], None, limit=100)} == offered
        for shard in range(1, 5):  # in the first stands whatever a process of one shard has written
            assert {choose_shard(each, 5) for each in parts[shard]} <= {shard}
    assert not database.rules.refusals


def test_a_walk_needs_the_indexes_first(database: Database, make_task: MakeTask) -> None:
    """Without them nothing relies on shards, and nothing has been changed."""
    with database.open(3) as store:
        store.commit(Commit(make_task(id="t1")))
        with pytest.raises(Misconfigured, match="Deploy infra"):
            store.grow(3)
        assert store.load_placement() == Placement()
        assert read_all(partial(read_due, store, 1, None)) == ["t1"]


def test_shards_do_not_become_fewer(database: Database) -> None:
    """Other processes look for tasks in all shards that there were."""
    database.grow(3)
    with database.open(2) as store:
        with pytest.raises(InvalidInput, match="cannot be lowered"):
            store.grow(2)
        assert store.sweep.count_shards() == 3


def test_a_database_of_one_shard_is_read_as_ever(database: Database, make_task: MakeTask) -> None:
    """It reads no document about shards, and each of its queries names one shard at most."""
    with database.open(1) as store:
        store.commit(Commit(make_task(id="t1")))
        read_everything(store, 3)
        assert store.sweep.count_shards() == 1
    filters = [each.field_filter for query in database.rules.queries for each in query.where.composite_filter.filters]
    assert {each.op for each in filters if "shard" in each.field.field_path} == {EQUAL}


def test_listeners_hear_of_offers_in_every_shard(
    database: Database, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if they are in more shards than one query can ask for."""
    monkeypatch.setattr(firestore_listener, "FALLBACK_POLL", 0.1 * SECOND)
    for count in (7, 40):
        database.empty()
        database.grow(count)
        heard = threading.Event()
        listener = FirestoreListener(project=database.project, emulator=database.address, shards=count)
        with database.open(count) as store, listener.listen(["gpu"], None, heard.set):
            assert heard.wait(60), "it is listening"
            heard.clear()
            store.commit(Commit(make_task(id=f"t{count}", offer=Offer(queue_key="gpu", order="1"))))
            assert heard.wait(60), "the offer was not reported"
    assert not database.rules.refusals
