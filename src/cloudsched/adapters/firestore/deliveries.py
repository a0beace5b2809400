"""How deliveries are stored, so that only lists of deliveries have them, and what their end writes.

A delivery has the fields by which tasks are listed and counted (`HIDDEN`) one level deeper. No index has a document
without the field that it is for, so a delivery is in no other list and no count, costs them nothing, and no web or
mobile client that queries its owner's tasks has to leave deliveries out. The sweep finds it, like every task, by
``wakeAt``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cloudsched.adapters.firestore import messages
from cloudsched.adapters.firestore.preconditions import build_precondition_write
from cloudsched.adapters.firestore.queries import UNLISTED

if TYPE_CHECKING:
    from cloudsched.adapters.google.channel import Message
    from cloudsched.domain.documents.document import Document
    from cloudsched.engine.ports.store import DeliveryMark

HIDDEN: Final = ("createdAt", "nextExecutionTime", "status")
"""What is one level deeper in the documents of deliveries."""
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
