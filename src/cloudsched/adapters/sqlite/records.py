"""Rows beside tasks in SQLite: records of all kinds in one table, and inboxes."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.sqlite.search import BODY, SqliteListing, fetch_page
from cloudsched.adapters.sqlite.tables import to_microseconds
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.documents.json_limits import require_document_fits
from cloudsched.domain.transitions.commit import Version
from cloudsched.engine.ports.records import R, VersionedRecord, require_listed_by_owner
from cloudsched.engine.storage.pages import skip_unreadable
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.adapters.sqlite.database import SqliteDatabase
    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.storage.pages import Page


_LOAD_MESSAGE = "SELECT CAST(body AS BLOB) FROM messages WHERE owner = ? AND id = ?"
_UPDATE_MESSAGE = "UPDATE messages SET body = ? WHERE owner = ? AND id = ?"
_COUNT_UNREAD = """SELECT count(*) FROM
    (SELECT 1 FROM messages WHERE owner = ? AND body ->> '$.isRead' = 0 LIMIT ?)"""
_REMOVE_MESSAGES = (
    """DELETE FROM messages WHERE (owner, id) IN (SELECT owner, id FROM messages WHERE owner = ? LIMIT 500)"""
)


class SqliteInbox:
    """An `InboxStore` in the database of a `SqliteStore`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was read, unless it already was, and return it, or None."""

        def work(connection: sqlite3.Connection) -> Message | None:
            rows = connection.execute(_LOAD_MESSAGE, (owner, message_id)).fetchall()
            if not rows:
                return None
            message = Message.from_stored_json(message_id, rows[0][0])
            if not message.is_read:
                message = message.model_copy(update={"is_read": True, "read_at": at})
                connection.execute(_UPDATE_MESSAGE, (message.to_stored_json(), owner, message_id))
            return message

        return self._database.write(work)

    def get(self, owner: str, message_id: str) -> Message | None:
        """Return a message as it is now, or None."""
        rows = self._database.read(_LOAD_MESSAGE, (owner, message_id))
        return Message.from_stored_json(message_id, rows[0][0]) if rows else None

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        ((count,),) = self._database.read(_COUNT_UNREAD, (owner, up_to))
        return int(str(count))

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages, and return how many."""
        return self._database.write(
            lambda connection: connection.execute(_REMOVE_MESSAGES, (owner,)).rowcount,
        )

    def list(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first."""
        listing = SqliteListing(
            "messages",
            "created_at",
            is_descending=True,
            conditions=("owner = ?",),
            values=(owner,),
        )
        return fetch_page(
            self._database,
            Message.from_stored_json,
            listing,
            ("inbox", owner),
            limit,
            page_token,
        )


_LOAD = f"SELECT version, {BODY} FROM records WHERE kind = ? AND id = ?"
_LIST = f"SELECT id, {BODY} FROM records WHERE kind = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?"
_LIST_ALL = f"SELECT id, {BODY} FROM records WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
_INSERT = "INSERT INTO records (kind, id, owner, version, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE = "UPDATE records SET owner = ?, version = version + 1, body = ? WHERE kind = ? AND id = ? AND version = ?"
_PUT_EXPIRING = "INSERT OR IGNORE INTO expiring (kind, expire_at, parent, id) VALUES ('record', ?, ?, ?)"
_DELETE = "DELETE FROM records WHERE kind = ? AND id = ? AND version = ?"
_MAX_EXPANSION = 4
"""The largest ratio of a document's size, as Firestore counts it, to the characters of its JSON."""


class SqliteRecords:
    """A `RecordStore` in the database of a `SqliteStore`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        """Return a record as it is now, or None."""
        rows = self._database.read(_LOAD, (kind.collection, record_id))
        if not rows:
            return None
        version, body = rows[0]
        return VersionedRecord(kind.from_stored_json(record_id, body), Version(version))

    def write(self, record: Record, expected_version: Version | None) -> Version:
        """Insert a record, or replace it if it has the expected version."""
        return self._database.write(make_record_write(record, expected_version))

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Delete a record that has the expected version."""
        values = kind.collection, record_id, expected_version.value
        self._database.write(lambda connection: _execute(connection, record_id, _DELETE, values))

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Return the records of a kind, of all owners, by id, those after an id."""
        rows = self._database.read(_LIST_ALL, (kind.collection, after, limit))
        return skip_unreadable((key, partial(kind.from_stored_json, key, body)) for key, body in rows)

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Return an owner's records of a kind, by id, those after an id."""
        require_listed_by_owner(kind)
        rows = self._database.read(_LIST, (kind.collection, owner, after, limit))
        return skip_unreadable((key, partial(kind.from_stored_json, key, body)) for key, body in rows)


def make_record_write(record: Record, expected_version: Version | None) -> Callable[[sqlite3.Connection], Version]:
    """Return what writes a record in a transaction, and returns its new version. Raises InvalidInput if too large."""
    body = record.to_stored_json()
    require_document_fits((record.collection, record.id), _MAX_EXPANSION * len(body), record.to_stored)
    key = record.collection, record.id
    values: tuple[object, ...]
    if expected_version is None:
        version = secrets.randbits(48)  # so that a record that is created again never has its old version
        statement, values = _INSERT, (*key, record.owner, version, body)
    else:
        version = int(str(expected_version.value)) + 1
        statement, values = _UPDATE, (record.owner, body, *key, expected_version.value)

    def work(connection: sqlite3.Connection) -> Version:
        _execute(connection, record.id, statement, values)
        if record.expire_at is not None:
            connection.execute(_PUT_EXPIRING, (to_microseconds(record.expire_at), *key))
        return Version(version)

    return work


def _execute(connection: sqlite3.Connection, record_id: str, statement: str, values: Sequence[object]) -> None:
    if connection.execute(statement, values).rowcount != 1:
        raise VersionConflict(f"record {record_id}")
