"""Fields that documents have for indexes alone, and those that deliveries hide from them.

Lists across tasks are led by the owner, or else by the shard; see `adapters.firestore.shards`.

A delivery has the fields by which tasks are listed and counted (`HIDDEN`) one level deeper, so that only lists of
deliveries have it. No index has a document without the field that it is for, so a delivery is in no other list and no
count, costs them nothing, and no web or mobile client that queries its owner's tasks has to leave deliveries out. The
sweep finds it, like every task, by ``wakeAt``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.adapters.firestore import messages
from cloudsched.adapters.firestore.messages import PRIVATE, build_precondition_write, get_private
from cloudsched.adapters.firestore.queries import OFFER_SHARD, UNLISTED
from cloudsched.adapters.firestore.values import encode_fields
from cloudsched.domain.documents.document import list_stored_fields
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.documents.pull import OfferEntry
from cloudsched.domain.documents.task import PublicTask, Task, find_list, find_open_position, find_trouble

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.documents.document import Document
    from cloudsched.engine.ports.store import DeliveryMark


HIDDEN: Final = ("createdAt", "nextExecutionTime", "status")
"""What is one level deeper in the documents of deliveries."""
SHOWN: Final = frozenset({"deletedAt", "delivery", "events", "history", "historyLeftOut", "runs", "wakeAt"})
"""What of a task is beside its private map though the API does not show it so: rules, indexes and pages read it."""
PRIVATE_FIELDS: Final = frozenset(
    each.key for each in list_stored_fields(Task) if each.name not in PublicTask.model_fields and each.key not in SHOWN
)
"""What of a task is in its private map: notes of the scheduler, in forms that are made to be short."""
_Write: Message = messages.Write


def hide_from_lists(fields: Message, document: Document) -> None:
    """Move the fields of a delivery that lists would find it by."""
    if getattr(document, "delivery", None) is None:
        return
    hidden = fields[UNLISTED].map_value
    hidden.SetInParent()
    for name in HIDDEN:
        if name in fields:
            hidden.fields[name].CopyFrom(fields[name])
            del fields[name]


def unhide(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document with its fields where they belong."""
    moved = data.pop(UNLISTED, None)
    return {**data, **moved} if isinstance(moved, dict) else data


def build_delivery_mark(documents: str, mark: DeliveryMark) -> list[Message]:
    """Return the write of `is_delivered` alone, or what fails the commit if another delivery has changed."""
    if mark.unfinished:
        return [build_precondition_write(f"{documents}/tasks/{each.task.id}", each.version) for each in mark.unfinished]
    write = _Write()
    write.update.name = f"{documents}/tasks/{mark.task_id}/executions/{mark.execution_id}"
    write.update.fields["isDelivered"].boolean_value = True
    write.update_mask.field_paths.append("isDelivered")
    write.current_document.exists = True
    return [write]


LISTED: Final = f"{PRIVATE}.listed"
"""Where a final record has these fields: only those that have them are listed across tasks."""
OPEN: Final = f"{PRIVATE}.open"
"""Where a task with an open run has them."""
CHANGED: Final = f"{PRIVATE}.changed"
"""Where every task has its shard, and `CHANGED_AT`."""
CHANGED_AT: Final = f"{CHANGED}.at"
"""When the task was stored last, by Firestore's clock."""


def add_list_fields(fields: Message, document: Document, shard: int) -> None:
    """Add these fields to those of a document, and move what is private; the shard is its task's."""
    if isinstance(document, Task):
        private = get_private(fields)
        for key in PRIVATE_FIELDS:
            if key in fields:
                private[key].CopyFrom(fields[key])
                del fields[key]
        encode_fields(private, {"changed": {"shard": shard}})
        if (position := find_open_position(document)) is not None:
            status, since = position
            encode_fields(private, {"open": {"shard": shard, "status": status, "since": since}})
        if (trouble := find_trouble(document)) is not None:
            kind, since = trouble
            encode_fields(private, {"trouble": {"shard": shard, "kind": kind, "since": since}})
    elif isinstance(document, Execution):
        if (is_failure := find_list(document)) is not None:
            encode_fields(get_private(fields), {"listed": {"shard": shard, "isFailure": is_failure}})
    elif isinstance(document, OfferEntry):
        encode_fields(fields, {OFFER_SHARD: shard})


def drop_list_fields(data: dict[str, Any]) -> dict[str, Any]:
    """Return a stored document without these fields, and with its own private ones where they belong."""
    private = data.pop(PRIVATE, None)
    data.pop(OFFER_SHARD, None)
    return {**data, **{key: private[key] for key in PRIVATE_FIELDS if key in private}} if private else data
