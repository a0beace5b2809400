"""Records in Firestore, ``{collection}/{id}``, and inboxes, ``inboxes/{owner}/messages/{messageId}``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import protos as messages
from cloudsched.adapters.firestore.list_fields import build_write, to_document
from cloudsched.adapters.firestore.protos import document_name, with_precondition
from cloudsched.adapters.firestore.queries import EQUAL, MESSAGES, Filter, build_query
from cloudsched.adapters.firestore.search import fetch_page
from cloudsched.adapters.firestore.values import Value
from cloudsched.domain.documents.execution import Message
from cloudsched.domain.transitions.commit import Version
from cloudsched.engine.ports.records import R, VersionedRecord, require_listed_by_owner
from cloudsched.engine.storage.pages import skip_unreadable
from cloudsched.errors import InvalidInput, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message as Proto
    from cloudsched.domain.documents.record import Record
    from cloudsched.engine.storage.pages import Page

_BATCH = 200


class FirestoreInbox:
    """An `InboxStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str) -> None:
        self._rpc = rpc
        self._documents = documents

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record the time at which a message was read, unless it already was. Return the message, or None."""
        name = document_name(self._documents, "inboxes", owner, "messages", message_id)
        while name is not None:
            found = self._rpc.get(name)[0]
            if found is None:
                return None
            message = to_document(Message, found)
            if message.is_read:
                return message
            message = message.model_copy(update={"is_read": True, "read_at": at})
            write = build_write(self._documents, ("inboxes", owner, "messages", message_id), message)
            version = Version(found.update_time.ToNanoseconds())
            if self._rpc.commit([with_precondition(write, version)]) is not None:
                return message
        return None

    def get(self, owner: str, message_id: str) -> Message | None:
        """Return a message as it is now, or None."""
        name = document_name(self._documents, "inboxes", owner, "messages", message_id)
        found = None if name is None else self._rpc.get(name)[0]
        return None if found is None else to_document(Message, found)

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        parent = document_name(self._documents, "inboxes", owner)
        if parent is None:
            return 0
        return self._rpc.count(parent, build_query("messages", up_to, ("isRead", EQUAL, False), order=()))

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages, and return their number."""
        parent = document_name(self._documents, "inboxes", owner)
        if parent is None:
            return 0
        found = self._rpc.query(parent, MESSAGES.to_query(_BATCH, parent))
        if found:
            self._rpc.commit([_Write(delete=each.name) for each in found])
        return len(found)

    def list(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first."""
        parent = document_name(self._documents, "inboxes", owner)
        return fetch_page(self._rpc, Message, parent, MESSAGES, ("inbox", owner), limit, page_token)


_Write: Proto = messages.Write


class FirestoreRecords:
    """A `RecordStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str) -> None:
        self._rpc = rpc
        self._documents = documents

    def load(self, kind: type[R], record_id: str) -> VersionedRecord[R] | None:
        """Return a record as it is now, or None. One document is read."""
        name = document_name(self._documents, kind.collection, record_id)
        found = None if name is None else self._rpc.get(name)[0]
        if found is None:
            return None
        return VersionedRecord(to_document(kind, found), Version(found.update_time.ToNanoseconds()))

    def write(self, record: Record, expected_version: Version | None) -> Version:
        """Create a record, or replace it if it has the expected version."""
        name = document_name(self._documents, record.collection, record.id)
        if name is None:
            raise InvalidInput(
                "id",
                "cannot be the name of a document",
                "Leave out slashes, and names like __x__.",
            )
        write = build_write(self._documents, (record.collection, record.id), record)
        response = self._rpc.commit([with_precondition(write, expected_version)])
        if response is None:
            raise VersionConflict(f"record {record.id}")
        return Version(response.write_results[0].update_time.ToNanoseconds())

    def delete(self, kind: type[Record], record_id: str, expected_version: Version) -> None:
        """Delete a record that has the expected version."""
        name = document_name(self._documents, kind.collection, record_id)
        write = None
        if name:
            write = with_precondition(_Write(delete=name), expected_version)
        if write is None or self._rpc.commit([write]) is None:
            raise VersionConflict(f"record {record_id}")

    def list_all(self, kind: type[R], *, limit: int, after: str = "") -> Sequence[R]:
        """Return the records of a kind, of all owners, by id, those after an id. Reads only those."""
        return self._list(kind, limit, after)

    def list(self, kind: type[R], owner: str, *, limit: int, after: str = "") -> Sequence[R]:
        """Return an owner's records of a kind, by id, those after an id. Reads only those."""
        require_listed_by_owner(kind)
        return self._list(kind, limit, after, ("owner", EQUAL, owner))

    def _list(self, kind: type[R], limit: int, after: str, *filters: Filter) -> Sequence[R]:
        last = None
        if after:
            last = document_name(self._documents, kind.collection, after)
        start = None if last is None else Value(reference_value=last)
        found = self._rpc.query(self._documents, build_query(kind.collection, limit, *filters, after=start))
        return skip_unreadable((each.name, partial(to_document, kind, each)) for each in found)
