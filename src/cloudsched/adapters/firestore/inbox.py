"""Inboxes in Firestore: ``inboxes/{owner}/messages/{messageId}``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.adapters.firestore import messages
from cloudsched.adapters.firestore.names import document_name
from cloudsched.adapters.firestore.preconditions import COMMIT_ID, with_precondition
from cloudsched.adapters.firestore.queries import MESSAGES, build_unread_query
from cloudsched.adapters.firestore.values import decode, encode_model
from cloudsched.domain.documents.execution import Message
from cloudsched.engine.ports.records import Version

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.adapters.firestore.rpc import FirestoreRpc
    from cloudsched.adapters.google.channel import Message as Proto

_Write: Proto = messages.Write
_BATCH = 200


class FirestoreInbox:
    """An `InboxStore` in the database of a `FirestoreStore`."""

    def __init__(self, rpc: FirestoreRpc, documents: str) -> None:
        """Take the store's connection, and the full name of its documents."""
        self._rpc = rpc
        self._documents = documents

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was read, unless it already was; return it, or None."""
        name = document_name(self._documents, "inboxes", owner, "messages", message_id)
        while name is not None:
            found = self._rpc.get(name)[0]
            if found is None:
                return None
            data = decode(found.fields)
            data.pop(COMMIT_ID, None)
            message = Message.from_stored(message_id, data)
            if message.is_read:
                return message
            message = message.model_copy(update={"is_read": True, "read_at": at})
            write = _Write()
            write.update.name = name
            encode_model(write.update.fields, message)
            version = Version(found.update_time.ToNanoseconds())
            if self._rpc.commit([with_precondition(write, version)]) is not None:
                return message
        return None

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        parent = document_name(self._documents, "inboxes", owner)
        return 0 if parent is None else self._rpc.count(parent, build_unread_query(up_to))

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages; return how many."""
        parent = document_name(self._documents, "inboxes", owner)
        if parent is None:
            return 0
        found = self._rpc.query(parent, MESSAGES.to_query(_BATCH, parent))
        if found:
            self._rpc.commit([_Write(delete=each.name) for each in found])
        return len(found)
