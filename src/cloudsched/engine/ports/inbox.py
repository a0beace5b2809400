"""The port for inboxes: what becomes of messages after they were delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.execution import Message


class InboxStore(Protocol):
    """Marks, counts and removes messages. They are written by the commits that deliver them.

    * A mark changes a message once; the first one stays.
    * Counting costs a small part of a read for each message that is counted.
    """

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was read, unless it already was; return it, or None. One read, at most one write."""
        ...

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        ...

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages; return how many. 0 means that none is left."""
        ...
