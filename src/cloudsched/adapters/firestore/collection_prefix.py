"""The prefix of all collections, with which a deployment lives in a database that an app has already.

Indexes, TTL policies and collection groups are known by the ID of a collection alone, wherever it is. So
every collection has the prefix, those below a document, too:
``cs_tasks/{taskId}/cs_executions/{executionId}``. The store has names without it. Calls add it to what they
send, and remove it from what they got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message


class CollectionPrefix:
    """The prefix of the collections in a database, empty for none."""

    def __init__(self, database: str, prefix: str = "") -> None:
        self.text = prefix
        self._root = f"{database}/documents"

    def add(self, name: str) -> str:
        """Return the name of a document, or of the database's documents, as Firestore has it."""
        segments = name[len(self._root) :].split("/")  # an empty text, then collections and ids in turn
        segments[1::2] = [self.text + each for each in segments[1::2]]
        return self._root + "/".join(segments)

    def remove(self, name: str) -> str:
        """Return such a name as the store has it."""
        segments = name[len(self._root) :].split("/")
        segments[1::2] = [each[len(self.text) :] for each in segments[1::2]]
        return self._root + "/".join(segments)

    def add_to_write(self, write: Message) -> None:
        """Change a write to what Firestore is sent."""
        if write.delete:
            write.delete = self.add(write.delete)
        else:
            write.update.name = self.add(write.update.name)

    def add_to_query(self, query: Message) -> None:
        """Change a query to what Firestore is sent."""
        if not self.text:
            return
        for collection in query.from_:
            collection.collection_id = self.text + collection.collection_id
        for value in query.start_at.values:
            if value.reference_value:
                value.reference_value = self.add(value.reference_value)

    def remove_from(self, document: Message) -> Message:
        """Return a document that was read, with the name that the store has."""
        if self.text:
            document.name = self.remove(document.name)
        return document
