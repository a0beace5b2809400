"""What the end of a delivery writes beside its own task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3

    from cloudsched.engine.ports.store import DeliveryMark

_FIND: Final = "SELECT 1 FROM tasks WHERE id = ? AND version = ?"
_MARK: Final = "UPDATE executions SET body = json_set(body, '$.isDelivered', json('true')) WHERE task_id = ? AND id = ?"


def mark_delivered(connection: sqlite3.Connection, mark: DeliveryMark) -> None:
    """Set `is_delivered`, or check that the other deliveries have not ended.

    Raises:
        VersionConflict: Another one has changed, or there is no such record.
    """
    for each in mark.unfinished:
        if connection.execute(_FIND, (each.task.id, each.version.value)).fetchone() is None:
            raise VersionConflict(f"task {each.task.id}")
    if not mark.unfinished and connection.execute(_MARK, (mark.task_id, mark.execution_id)).rowcount != 1:
        raise VersionConflict(f"execution {mark.execution_id} of {mark.task_id}")
