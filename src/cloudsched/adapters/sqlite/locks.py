"""Locks and their waiters in SQLite: rows that are written together with the lock's version."""

from __future__ import annotations

import json
import secrets
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.sqlite.queries import build_waiter_statement
from cloudsched.domain.transitions.locks import Waiter
from cloudsched.engine.ports.pages import skip_unreadable
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from cloudsched.adapters.sqlite.database import Database
    from cloudsched.engine.ports.store import VersionedLock

_INSERT_LOCK = "INSERT INTO locks (body, key, version) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE_LOCK = "UPDATE locks SET body = ?, version = version + 1 WHERE key = ? AND version = ?"
_DELETE_LOCK = "DELETE FROM locks WHERE key = ? AND version = ?"
_HAS_LOCK = "SELECT 1 FROM locks WHERE key = ? AND version = ?"
_PUT_WAITER = "INSERT OR REPLACE INTO waiters (lock_key, id, task_id, worker_group, body) VALUES (?, ?, ?, ?, ?)"
_DELETE_WAITER = "DELETE FROM waiters WHERE lock_key = ? AND id = ?"


def list_waiters(
    database: Database, key: str, limit: int, task_ids: Sequence[str] | None, worker_group: str | None
) -> list[Waiter]:
    """Return the first waiters of a lock, in their order; those of some tasks or of a group, if given."""
    found, after = list[Waiter](), ""
    while len(found) < limit:  # an unreadable document is skipped and must not hide those after it
        missing = limit - len(found)
        rows = database.read(*build_waiter_statement(key, missing, after, task_ids, worker_group))
        found += skip_unreadable((name, partial(_to_waiter, name, body)) for name, body in rows)
        if len(rows) < missing:
            break
        after = rows[-1][0]
    return found


def write_lock(connection: sqlite3.Connection, lock: VersionedLock) -> None:
    """Write or delete a lock and its waiters, if it has the version that was read; a new one gets a random version."""
    key, version, document = lock.lock.key, lock.version, lock.new_document
    if not lock.is_document_changed and version is not None:
        done = connection.execute(_HAS_LOCK, (key, version.value)).fetchone() is not None
    elif document.is_empty:
        done = version is None or connection.execute(_DELETE_LOCK, (key, version.value)).rowcount == 1
    elif version is None:
        done = connection.execute(_INSERT_LOCK, (document.to_stored_json(), key, secrets.randbits(48))).rowcount == 1
    else:
        done = connection.execute(_UPDATE_LOCK, (document.to_stored_json(), key, version.value)).rowcount == 1
    if not done:
        raise VersionConflict(f"lock {key}")
    for each in lock.left:
        connection.execute(_DELETE_WAITER, (key, each.entry_id))
    for each in lock.entered:
        connection.execute(_PUT_WAITER, (key, each.entry_id, each.task_id, each.worker_group, each.to_stored_json()))


def _to_waiter(name: str, body: bytes) -> Waiter:
    return Waiter.from_stored(name, json.loads(body))
