"""Count billed operations: a store and a dispatcher that wrap another one and count its calls.

The counts are those that Google bills: documents read, written and deleted, tasks created. Tests compare them with the
budget in ``docs/explanation/costs.md``. The demo and simulations display them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from cloudsched.engine.ports.pages import Page
    from cloudsched.engine.ports.queue import Dispatcher
    from cloudsched.engine.ports.store import Commit, InboxStore, Store, VersionedLock

    Cost = Callable[..., Mapping[str, int]]
    """Returns what a call costs, from its result and its arguments."""


@dataclass(slots=True)
class Counts:
    """Operations so far."""

    reads: int = 0
    """Documents read, including lookups of missing documents, which are billed as well."""
    commits: int = 0
    """Commits that took effect."""
    writes: int = 0
    """Documents written by those commits."""
    deletes: int = 0
    """Offers, locks and waiters deleted by those commits."""
    dispatches: int = 0
    """Calls that create a task in the queue, including those whose name already exists."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, reads: int = 0, commits: int = 0, writes: int = 0, deletes: int = 0, dispatches: int = 0) -> None:
        """Add to the counts. Thread-safe."""
        with self._lock:
            self.reads += reads
            self.commits += commits
            self.writes += writes
            self.deletes += deletes
            self.dispatches += dispatches

    def since(self, earlier: Counts) -> Counts:
        """Return the operations counted since `earlier`, which `copy` made."""
        return Counts(
            self.reads - earlier.reads,
            self.commits - earlier.commits,
            self.writes - earlier.writes,
            self.deletes - earlier.deletes,
            self.dispatches - earlier.dispatches,
        )

    def copy(self) -> Counts:
        """Return a copy of the current counts."""
        return Counts(self.reads, self.commits, self.writes, self.deletes, self.dispatches)


def _free(*_: object, **__: object) -> Mapping[str, int]:
    return {}


def _one_read(*_: object, **__: object) -> Mapping[str, int]:
    return {"reads": 1}


def _read_each(found: Sequence[object], *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": max(1, len(found))}


def _read_page(page: Page[object], *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": page.read}


def _read_named(_: object, task_ids: Sequence[str]) -> Mapping[str, int]:
    return {"reads": len(task_ids)}


def _read_thousands(count: int, *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": max(1, -(-count // 1000))}


def _read_keys(keys: Sequence[str], *_: object, limit: int, **__: object) -> Mapping[str, int]:
    return {"reads": len(keys) + (len(keys) < limit)}  # a further read tells that there is no further key


def _dispatch(*_: object) -> Mapping[str, int]:
    return {"dispatches": 1}


def _write(_: object, commit: Commit) -> Mapping[str, int]:
    writes, deletes = commit.count_writes()
    return {"commits": 1, "writes": writes, "deletes": deletes}


def _write_lock(_: object, lock: VersionedLock) -> Mapping[str, int]:
    writes, deletes = lock.count_writes()
    return {"commits": 1, "writes": writes, "deletes": deletes}


STORE: Final[Mapping[str, Cost]] = {
    "check": _free,
    "close": _free,
    "commit": _write,
    "commit_lock": _write_lock,
    "count_shards": _free,
    "expire": _free,
    "list_due_tasks": _read_page,
    "list_executions": _read_page,
    "list_messages": _read_page,
    "list_offers": _read_each,
    "list_tasks": _read_page,
    "list_waiters": _read_each,
    "load": _one_read,
    "load_execution": _one_read,
    "load_journal": _read_each,
    "load_lock": _one_read,
    "load_many": _read_named,
    "next_wakeup": _free,
    "purge": _free,
}
"""The cost of each call of a `Store`. Deletions by `purge` and `expire` are not counted, nor the reading of inboxes.
Only the local clock asks for the next wake-up."""
RECORDS: Final[Mapping[str, Cost]] = {
    "delete": lambda *_: {"commits": 1, "deletes": 1},
    "list": _read_each,
    "list_all": _read_each,
    "load": _one_read,
    "write": lambda *_: {"commits": 1, "writes": 1},
}
SEARCH: Final[Mapping[str, Cost]] = {
    "count_finished": _read_thousands,
    "count_offers": _read_thousands,
    "count_open": _read_thousands,
    "count_tasks": _read_thousands,
    "find_last_change": _one_read,
    "list_changed": _read_page,
    "list_finished": _read_page,
    "list_locks": _read_each,
    "list_open": _read_page,
    "list_queue_keys": _read_keys,
}
DISPATCHER: Final[Mapping[str, Cost]] = {"close": _free, "create": _dispatch}
_BILLED_ANYWAY: Final = frozenset({_one_read, _read_named, _dispatch})
"""The costs that are billed even if the call fails. Everything else costs something only if it succeeds."""


class _Counting:
    """A port whose calls are passed on, and counted."""

    def __init__(self, port: Any, counts: Counts) -> None:  # noqa: ANN401 - any port
        self._port = port
        self._counts = counts


def _passing_on(name: str, cost: Cost) -> Callable[..., Any]:
    """Return a method that calls the port's of that name, and counts what that costs."""

    def call(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the port has it
        if cost in _BILLED_ANYWAY:
            self._counts.add(**cost(None, *args, **options))
            return getattr(self._port, name)(*args, **options)
        result = getattr(self._port, name)(*args, **options)
        self._counts.add(**cost(result, *args, **options))
        return result

    return call


def _counting(costs: Mapping[str, Cost]) -> type[_Counting]:
    """Return a class with the methods of a table."""
    return type("Counting", (_Counting,), {name: _passing_on(name, cost) for name, cost in costs.items()})


_CountingRecords, _CountingSearch, _CountingDispatcher = _counting(RECORDS), _counting(SEARCH), _counting(DISPATCHER)


class _CountingStore(_counting(STORE)):  # type: ignore[misc]  # its base is made of a table
    @property
    def records(self) -> _Counting:
        return _CountingRecords(self._port.records, self._counts)

    @property
    def inbox(self) -> InboxStore:
        return cast("InboxStore", self._port.inbox)

    @property
    def search(self) -> _Counting:
        return _CountingSearch(self._port.search, self._counts)


def count_store(store: Store, counts: Counts) -> Store:
    """Return a store that counts the documents that this one reads and writes."""
    return cast("Store", _CountingStore(store, counts))


def count_dispatcher(dispatcher: Dispatcher, counts: Counts) -> Dispatcher:
    """Return a dispatcher that counts the dispatches that this one creates."""
    return cast("Dispatcher", _CountingDispatcher(dispatcher, counts))
