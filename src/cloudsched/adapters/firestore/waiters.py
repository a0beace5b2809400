"""The waiters of a lock that are documents of their own, in their order, which is that of their ids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore.queries import MAX_DISJUNCTIONS, build_waiter_query
from cloudsched.adapters.firestore.values import decode
from cloudsched.domain.transitions.locks import Waiter
from cloudsched.engine.ports.pages import skip_unreadable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message


def list_waiters(
    rpc: FirestoreRpc, lock: str, limit: int, task_ids: Sequence[str] | None, worker_group: str | None
) -> list[Waiter]:
    """Return the first waiters below a lock's full name; with `task_ids` those of some tasks, in parts."""
    if task_ids is None:
        return _list_part(rpc, lock, limit, None, worker_group)
    found = list[Waiter]()
    for start in range(0, len(task_ids), MAX_DISJUNCTIONS):
        some = task_ids[start : start + MAX_DISJUNCTIONS]
        found += _list_part(rpc, lock, limit - len(found), some, worker_group)
    return found


def _list_part(
    rpc: FirestoreRpc, lock: str, limit: int, task_ids: Sequence[str] | None, worker_group: str | None
) -> list[Waiter]:
    found, after = list[Waiter](), None
    while len(found) < limit:  # an unreadable document is skipped and must not hide those after it
        missing = limit - len(found)
        part = rpc.query(lock, build_waiter_query(missing, after, task_ids, worker_group))
        found += skip_unreadable((each.name, partial(_to_waiter, each)) for each in part)
        if len(part) < missing:
            break
        after = part[-1].name
    return found


def _to_waiter(document: Message) -> Waiter:
    return Waiter.from_stored(document.name.rpartition("/")[2], decode(document.fields))
