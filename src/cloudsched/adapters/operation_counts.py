"""Count billed operations: a store and a dispatcher that wrap another one and count its calls.

The counts are those that Google bills: documents read, written and deleted, tasks created. Tests compare them with the
figures in ``docs/run/costs.md``. Simulations and local stacks have them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from cloudsched.engine.ports.search import MAX_GROUPED

if TYPE_CHECKING:
    from cloudsched.domain.documents.run_counts import GroupCount
    from cloudsched.domain.responses.count import Count, RunCounts
    from cloudsched.domain.transitions.commit import Commit, LinkedWrite
    from cloudsched.engine.ports.queue import Dispatcher
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.storage.pages import Page


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

    def add(self, **cost: int) -> None:
        """Add to the counts of these names. Thread-safe."""
        with self._lock:
            for name, number in cost.items():
                setattr(self, name, getattr(self, name) + number)

    def since(self, earlier: Counts) -> Counts:
        """Return the operations counted since `earlier`, which `copy` made."""
        return Counts(*(getattr(self, name) - getattr(earlier, name) for name in _NAMES))

    def copy(self) -> Counts:
        """Return a copy of the current counts."""
        return self.since(Counts())


_NAMES: Final = ("reads", "commits", "writes", "deletes", "dispatches")
Cost: TypeAlias = Mapping[str, int] | Callable[..., Mapping[str, int]]
"""The cost of a call, also if it fails, or a function that returns this from its result and its arguments."""
_FREE: Final[Cost] = {}
_ONE_READ: Final[Cost] = {"reads": 1}


def _read_each(found: Sequence[object], *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": max(1, len(found))}


def _read_page(page: Page[object], *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": page.read}


def _read_thousands(count: int, *_: object, **__: object) -> Mapping[str, int]:
    return {"reads": max(1, -(-count // 1000))}


def _read_count(count: Count, *_: object, **__: object) -> Mapping[str, int]:
    return _read_thousands(count.value)


def _read_parts(counts: Sequence[RunCounts], *_: object) -> Mapping[str, int]:
    """Each kind of run is counted as a whole, and then in each part if there is any."""
    numbers = [(each.ran, each.failed, each.skipped.value, each.calls, each.late) for each in counts]
    kinds = [*zip(*numbers, strict=True)]
    parts = sum(max(1, -(-number // 1000)) for each in kinds if any(each) for number in each)
    return {"reads": len(kinds) + parts}


def _read_groups(groups: Sequence[GroupCount], *_: object) -> Mapping[str, int]:
    return {"reads": min(MAX_GROUPED, max(1, sum(each.count for each in groups)))}


def _read_keys(keys: Sequence[str], *_: object, limit: int, **__: object) -> Mapping[str, int]:
    return {"reads": len(keys) + (len(keys) < limit)}  # a further read tells that there is no further key


def _write(_: object, written: Commit | LinkedWrite) -> Mapping[str, int]:
    writes, deletes = written.count_writes()
    return {"commits": 1, "writes": writes, "deletes": deletes}


STORE: Final[Mapping[str, Cost]] = {
    "check": _FREE,
    "close": _FREE,
    "commit": _write,
    "list_offers": _read_each,
    "list_tasks": _read_page,
    "load": _ONE_READ,
    "load_execution": _ONE_READ,
    "load_journal": _read_each,
    "load_many": lambda _, task_ids: {"reads": len(task_ids)},
    "make_id": _FREE,
    "recall": _FREE,
}
"""The cost of each call of a `Store`."""
LOCKS: Final[Mapping[str, Cost]] = {
    "commit": _write,
    "list_all": _read_each,
    "list_waiters": _read_each,
    "load": _ONE_READ,
}
SWEEP: Final[Mapping[str, Cost]] = {
    "count_shards": _FREE,
    "expire": _FREE,
    "list_due": _read_page,
    "next_wakeup": _FREE,
    "purge": _FREE,
    "remove": _FREE,
}
"""Deletions by `purge`, `remove` and `expire` are not counted. Only the local clock asks for the next
wake-up."""
INBOX: Final[Mapping[str, Cost]] = {
    "count_unread": _FREE,
    "get": _FREE,
    "list": _read_page,
    "mark_read": _FREE,
    "remove_some": _FREE,
}
"""Only lists are counted: what people do with their messages costs the tasks nothing."""
RECORDS: Final[Mapping[str, Cost]] = {
    "delete": lambda *_: {"commits": 1, "deletes": 1},
    "list": _read_each,
    "list_all": _read_each,
    "load": _ONE_READ,
    "write": lambda *_: {"commits": 1, "writes": 1},
}
SEARCH: Final[Mapping[str, Cost]] = {
    "count_created_since": _read_thousands,
    "count_offers": _read_count,
    "count_open": _read_count,
    "count_runs": _read_parts,
    "count_tasks": _read_count,
    "count_unfinished": _read_thousands,
    "find_last_change": _ONE_READ,
    "get_name_match": _FREE,
    "group_tasks": _read_groups,
    "list_acted_on": _read_page,
    "list_changed": _read_page,
    "list_executions": _read_page,
    "list_finished": _read_page,
    "list_handlers": _read_keys,
    "list_named": _read_page,
    "list_open": _read_page,
    "list_owners": _read_keys,
    "list_queue_keys": _read_keys,
}
DISPATCHER: Final[Mapping[str, Cost]] = {"close": _FREE, "create": {"dispatches": 1}}
PARTS: Final[dict[str, Any]] = {"inbox": INBOX, "locks": LOCKS, "records": RECORDS, "search": SEARCH, "sweep": SWEEP}
"""The ports of their own that a store has."""


class _Counting:
    def __init__(self, port: object, counts: Counts, costs: Mapping[str, Cost]) -> None:
        self._port = port
        self._counts = counts
        self._costs = costs

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the port has it
        if name in PARTS:
            part = _Counting(getattr(self._port, name), self._counts, PARTS[name])
            setattr(self, name, part)
            return part
        if name == "over":  # what a caller's own commit writes is not counted
            return getattr(self._port, name)
        if name not in self._costs:
            raise AttributeError(f"{name} has no cost")
        cost = self._costs[name]

        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the port has it
            if not callable(cost):
                self._counts.add(**cost)
                return getattr(self._port, name)(*args, **options)
            result = getattr(self._port, name)(*args, **options)
            self._counts.add(**cost(result, *args, **options))
            return result

        setattr(self, name, call)
        return call


def count_store(store: Store, counts: Counts) -> Store:
    """Return a store that counts the documents that this one reads and writes."""
    return cast("Store", _Counting(store, counts, STORE))


def count_dispatcher(dispatcher: Dispatcher, counts: Counts) -> Dispatcher:
    """Return a dispatcher that counts the dispatches that this one creates."""
    return cast("Dispatcher", _Counting(dispatcher, counts, DISPATCHER))
