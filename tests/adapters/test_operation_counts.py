"""Every call of a store and of a queue has its price."""

from __future__ import annotations

from tests.cases import try_each

from cloudsched.adapters.operation_counts import DISPATCHER, PARTS, STORE, Counts, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.ports.inbox import InboxStore
from cloudsched.engine.ports.queue import Dispatcher
from cloudsched.engine.ports.records import RecordStore
from cloudsched.engine.ports.search import SearchStore
from cloudsched.engine.ports.store import Store
from cloudsched.engine.ports.sweep import SweepStore
from cloudsched.features.locks.lock_store import LockStore

PORTS = {"inbox": InboxStore, "locks": LockStore, "records": RecordStore, "search": SearchStore, "sweep": SweepStore}


@try_each(
    "port, costs", [(Store, STORE), (Dispatcher, DISPATCHER), *((PORTS[name], costs) for name, costs in PARTS.items())]
)
def test_every_call_of_a_port_has_a_cost(port: type, costs: dict[str, object]) -> None:
    """A new method that nobody gives a price fails here, and raises when it is called."""
    parts = [each for each in port.__mro__ if each.__module__.startswith("cloudsched.")]
    methods = {name for part in parts for name in vars(part) if not name.startswith("_")} - {*PORTS}
    assert {*costs} == methods


def test_a_failed_read_is_billed() -> None:
    """Google bills the lookup of a document that is not there."""
    counts = Counts()
    store = count_store(SqliteStore(), counts)
    assert store.load("nothing") is None
    assert store.load_many(["a", "b"]) == []
    assert store.search.list_queue_keys(None, limit=5) == []
    assert counts == Counts(reads=4)
    store.close()
