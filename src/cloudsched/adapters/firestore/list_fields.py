"""Fields that documents have for indexes alone, and that nothing else reads.

Lists across tasks are led by the owner, or else by the shard; see `adapters.firestore.shards`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.adapters.firestore.queries import OFFER_SHARD
from cloudsched.adapters.firestore.values import encode_fields
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.pull import OfferEntry
from cloudsched.domain.documents.task import Task, find_open_position, is_failure, is_listed

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.documents.document import Document

LISTED: Final = "listed"
"""Where a final record has these fields: only those that have them are listed across tasks."""
OPEN: Final = "open"
"""Where a task with an open run has them."""
CHANGED: Final = "changed"
"""Where every task has its shard, and `CHANGED_AT`."""
CHANGED_AT: Final = f"{CHANGED}.at"
"""When the task was stored last, by Firestore's clock."""


def add_list_fields(fields: Message, document: Document, shard: int) -> None:
    """Add these fields to those of a document; the shard is its task's."""
    if isinstance(document, Task):
        encode_fields(fields, {CHANGED: {"shard": shard}})
        if (position := find_open_position(document)) is not None:
            status, since = position
            encode_fields(fields, {OPEN: {"shard": shard, "status": status, "since": since}})
    elif isinstance(document, Execution):
        if is_listed(document):
            encode_fields(fields, {LISTED: {"shard": shard, "isFailure": is_failure(document)}})
    elif isinstance(document, OfferEntry):
        encode_fields(fields, {OFFER_SHARD: shard})


def drop_list_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document without these fields."""
    data.pop(LISTED, None)
    data.pop(OPEN, None)
    data.pop(CHANGED, None)
    data.pop(OFFER_SHARD, None)
    return data
