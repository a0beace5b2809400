"""Records in SQLite: one table for all kinds."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.sqlite.queries import BODY, to_microseconds
from cloudsched.domain.documents.document_size import require_document_fits
from cloudsched.engine.ports.pages import skip_unreadable
from cloudsched.engine.ports.records import R, Version, VersionedRecord, require_listed_by_owner
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from cloudsched.adapters.sqlite.database import Database
    from cloudsched.domain.documents.record import Record

_LOAD = f"SELECT version, {BODY} FROM records WHERE kind = ? AND id = ?"  # noqa: S608 - no input
_LIST = f"SELECT id, {BODY} FROM records WHERE kind = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - the same
_LIST_ALL = f"SELECT id, {BODY} FROM records WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - the same
_INSERT = "INSERT INTO records (kind, id, owner, version, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_UPDATE = "UPDATE records SET owner = ?, version = version + 1, body = ? WHERE kind = ? AND id = ? AND version = ?"
_PUT_EXPIRING = "INSERT OR REPLACE INTO expiring (kind, parent, id, expire_at) VALUES ('record', ?, ?, ?)"
_DELETE = "DELETE FROM records WHERE kind = ? AND id = ? AND version = ?"
_MAX_EXPANSION = 4
"""How many times larger than its JSON's characters a document can be as Firestore counts it."""


class SqliteRecords:
    """A `RecordStore` in the database of a `SqliteStore`."""

    def __init__(self, database: Database) -> None:
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
        body = record.to_stored_json()
        require_document_fits((record.collection, record.id), _MAX_EXPANSION * len(body), record.to_stored)
        if expected_version is None:
            version = secrets.randbits(48)  # so that a record that is created again never has its old version
            self._execute(record, _INSERT, record.collection, record.id, record.owner, version, body)
            return Version(version)
        known = expected_version.value
        self._execute(record, _UPDATE, record.owner, body, record.collection, record.id, known)
        return Version(int(str(known)) + 1)

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Delete a record that has the expected version."""
        self._execute(record_id, _DELETE, kind.collection, record_id, expected_version.value)

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Return the records of a kind, of all owners, by id, those after an id."""
        rows = self._database.read(_LIST_ALL, (kind.collection, after, limit))
        return skip_unreadable((key, partial(kind.from_stored_json, key, body)) for key, body in rows)

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Return an owner's records of a kind, by id, those after an id."""
        require_listed_by_owner(kind)
        rows = self._database.read(_LIST, (kind.collection, owner, after, limit))
        return skip_unreadable((key, partial(kind.from_stored_json, key, body)) for key, body in rows)

    def _execute(self, record: Record | str, statement: str, *values: object) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if connection.execute(statement, values).rowcount != 1:
                raise VersionConflict(f"record {record if isinstance(record, str) else record.id}")
            if not isinstance(record, str) and record.expire_at is not None:
                expiring = record.collection, record.id, to_microseconds(record.expire_at)
                connection.execute(_PUT_EXPIRING, expiring)

        self._database.write(work)
