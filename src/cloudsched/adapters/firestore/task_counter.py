"""Count tasks with Firestore's aggregation queries: one billed read per 1,000 tasks counted, or part of it.

Source: cloud.google.com/firestore/docs/query-data/aggregation-queries.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from cloudsched.adapters.firestore.queries import Listing
from cloudsched.adapters.firestore.rpc import FirestoreRpc
from cloudsched.engine.ports.store import UNFINISHED_STATUSES

_DEADLINE = timedelta(seconds=5)


class FirestoreTaskCounter:
    """A `TaskCounter` over a Firestore database.

    Args:
        project: The Google Cloud project.
        database: The database's id.
        emulator: ``host:port`` of the emulator; None for the service itself.
    """

    def __init__(self, *, project: str, database: str, emulator: str | None) -> None:
        self._rpc = FirestoreRpc(f"projects/{project}/databases/{database}", emulator, _DEADLINE)
        self._parent = f"projects/{project}/databases/{database}/documents"

    def count_unfinished(self, owner: str, up_to: int) -> int:
        """Return how many of the owner's tasks are unfinished, at most `up_to`."""
        statuses = [str(status) for status in UNFINISHED_STATUSES]
        listing = Listing("tasks", "createdAt", is_descending=True, equals={"owner": owner, "status": statuses})
        return self._rpc.count(self._parent, listing.to_query(up_to, self._parent))

    def count_created_since(self, owner: str, since: datetime, up_to: int) -> int:
        """Return how many of the owner's tasks were created after `since`, at most `up_to`."""
        listing = Listing(
            "tasks",
            "createdAt",
            is_descending=True,
            equals={"owner": owner},
            start=since + timedelta(microseconds=1),
        )
        return self._rpc.count(self._parent, listing.to_query(up_to, self._parent))

    def close(self) -> None:
        """Close the channel."""
        self._rpc.close()
