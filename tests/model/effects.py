"""What a call does to a store, by values: the promises of ``engine/ports/store.py``, and nothing kinder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tests.model.replay import CONFLICT
from tests.model.values import Call, Key, Values, Writes

from cloudsched import TaskQuery
from cloudsched.features.pull.offers import build_offer_entry


class Effects:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._reads: dict[str, Callable[..., Any]] = {
            "load": lambda stored, key: stored.get(key),
            "load_lock": lambda stored, key: stored.get(key),
            "load_many": lambda stored, *keys: tuple(stored.get(key) for key in keys),
            "list": lambda stored, prefix: tuple(stored[key] for key in sorted(stored) if key.startswith(prefix)),
            "list_due": self._list_due,
            "list_offers": self._list_offers,
            "list_tasks": self._list_tasks,
            "list_waiters": self._list_waiters,
        }

    def take(self, snapshot: int, call: Call) -> tuple[Any, int]:
        """Return the answer to a call, and the store after it."""
        if call.kind == "commit":
            return self._commit(snapshot, call.content)
        if call.kind == "purge":
            return 0, self._purge(snapshot, call.key[0])
        return self._reads[call.kind](self._values.snapshots[snapshot], *call.key), snapshot

    @staticmethod
    def _tasks(stored: Mapping[Key, int]) -> list[int]:
        return [stored[key] for key in sorted(stored) if key.startswith("task/")]

    def _list_due(self, stored: Mapping[Key, int], before: datetime, _shard: int | None) -> tuple[int, ...]:
        documents = self._values.documents
        due = [n for n in self._tasks(stored) if documents[n].wake_at and documents[n].wake_at <= before]
        return tuple(sorted(due, key=lambda n: (documents[n].wake_at, documents[n].id)))

    def _list_offers(self, stored: Mapping[Key, int], queues: tuple[str, ...], owner: str | None) -> tuple[int, ...]:
        offers = [(n, build_offer_entry(self._values.documents[n])) for n in self._tasks(stored)]
        return tuple(n for n, one in offers if one and one.queue_key in queues and owner in {None, one.owner})

    def _list_tasks(self, stored: Mapping[Key, int], query: TaskQuery, after: int, limit: int) -> tuple[int, ...]:
        """Return the tasks of a page, the newest first, and one more if there are more."""
        names, documents = ("owner", "status", "handler"), self._values.documents
        found = [
            n
            for n in self._tasks(stored)
            if all(getattr(query, name) in {None, getattr(documents[n], name)} for name in names)
            and (query.parent is None or (documents[n].parent and documents[n].parent.task_id == query.parent))
            and documents[n].deleted_at is None
        ]
        found.sort(key=lambda n: (documents[n].created_at, documents[n].id), reverse=True)
        return tuple(found[after : after + limit + 1])

    def _list_waiters(
        self,
        stored: Mapping[Key, int],
        prefix: str,
        limit: int,
        task_ids: tuple[str, ...] | None,
        group: str | None,
    ) -> tuple[int, ...]:
        documents = self._values.documents
        waiters = [stored[key] for key in sorted(stored) if key.startswith(prefix)]
        waiters = [n for n in waiters if task_ids is None or documents[n].task_id in task_ids]
        waiters = [n for n in waiters if group is None or documents[n].worker_group == group]
        return tuple(waiters[:limit])

    def _purge(self, snapshot: int, key: Key) -> int:
        task, task_id = self._values.find(snapshot, key), key.removeprefix("task/")
        if task is not None and task.deleted_at is None:
            return snapshot
        prefixes = (f"record/{task_id}/", f"step/{task_id}/")
        stored = self._values.snapshots[snapshot]
        rest = {each: number for each, number in stored.items() if each != key and not each.startswith(prefixes)}
        return self._values.keep_snapshot(rest)

    def _commit(self, snapshot: int, writes: Writes) -> tuple[Any, int]:
        stored = self._values.snapshots[snapshot]
        if any(stored.get(key) != expected for key, expected in writes.checks):  # guard: version check
            return CONFLICT, snapshot
        if any(key not in stored for key, _ in writes.required):
            return CONFLICT, snapshot
        gone = writes.emptied
        after = {key: number for key, number in stored.items() if not (gone and key.startswith(gone))}
        for key, (name, value) in writes.required:
            record = self._values.documents[after[key]]
            after[key] = self._values.keep(record.model_copy(update={name: value}))
        for key, written in writes.documents:
            if written is None:
                after.pop(key, None)
            elif (
                writes.checks
                and key in stored
                and self._values.documents[stored[key]] is self._values.documents[written]
            ):
                after[key] = self._values.again(stored[key])
            else:
                after[key] = written
        first = after.get(writes.documents[0][0], 0) if writes.documents else 0
        return first, self._values.keep_snapshot(after)
