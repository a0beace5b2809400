"""The port for the messages in inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Message
    from cloudsched.engine.storage.pages import Page


class InboxStore(Protocol):
    """Reads, marks, counts and removes messages. They are written by the commits that deliver them.

    * A mark changes a message once: the first one stays.
    * Counting costs a small part of a read for each message that is counted.
    """

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was first read, and return it, or None. Costs one read, and at most one write."""
        ...

    def get(self, owner: str, message_id: str) -> Message | None:
        """Return a message as it is now, or None. One document is read."""
        ...

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        ...

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages, and return how many. 0 means that none is left."""
        ...

    def list(self, owner: str, *, limit: int, page_token: str | None = None) -> Page[Message]:
        """Return a page of an owner's messages, the newest first (createdAt, then id, both descending)."""
        ...
