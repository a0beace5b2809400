"""Fields that documents have for indexes alone, and that nothing else reads.

Lists across tasks are led by the owner, or else by `shard`, so that a later version can spread each of them over
several ranges: Firestore takes some 500 writes a second into one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.open_runs import find_open_position, is_failure, is_listed
from cloudsched.domain.documents.task import Task

if TYPE_CHECKING:
    from cloudsched.domain.documents.document import Document

LISTED: Final = "listed"
"""Where a final record has these fields: only those that have them are listed across tasks."""
OPEN: Final = "open"
"""Where a task with an open run has them."""
CHANGED: Final = "changed"
"""Where every task has its shard, and `CHANGED_AT`."""
CHANGED_AT: Final = f"{CHANGED}.at"
"""When the task was stored last, by Firestore's clock."""
SHARD: Final = 0
"""The only shard."""


def add_list_fields(document: Document, data: dict[str, Any]) -> dict[str, Any]:
    """Return what is stored of a document, with these fields."""
    if isinstance(document, Task):
        data = {**data, CHANGED: {"shard": SHARD}}
        if (position := find_open_position(document)) is not None:
            status, since = position
            data[OPEN] = {"shard": SHARD, "status": str(status), "since": since}
    if isinstance(document, Execution) and is_listed(document):
        return {**data, LISTED: {"shard": SHARD, "isFailure": is_failure(document)}}
    return data


def drop_list_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document without these fields."""
    data.pop(LISTED, None)
    data.pop(OPEN, None)
    data.pop(CHANGED, None)
    return data
