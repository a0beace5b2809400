"""Messages in SQLite: what deliveries change in them, and inboxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.execution import Message
from cloudsched.errors import VersionConflict

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime

    from cloudsched.adapters.sqlite.database import Database
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


_LOAD = "SELECT CAST(body AS BLOB) FROM messages WHERE owner = ? AND id = ?"
_UPDATE = "UPDATE messages SET body = ? WHERE owner = ? AND id = ?"
_COUNT = """SELECT count(*) FROM
    (SELECT 1 FROM messages WHERE owner = ? AND body ->> '$.isRead' = 0 LIMIT ?)"""
_REMOVE = """DELETE FROM messages WHERE (owner, id) IN (SELECT owner, id FROM messages WHERE owner = ? LIMIT 500)"""


class SqliteInbox:
    """An `InboxStore` in the database of a `SqliteStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def mark_read(self, owner: str, message_id: str, at: datetime) -> Message | None:
        """Record when a message was read, unless it already was; return it, or None."""

        def work(connection: sqlite3.Connection) -> Message | None:
            rows = connection.execute(_LOAD, (owner, message_id)).fetchall()
            if not rows:
                return None
            message = Message.from_stored_json(message_id, rows[0][0])
            if not message.is_read:
                message = message.model_copy(update={"is_read": True, "read_at": at})
                connection.execute(_UPDATE, (message.to_stored_json(), owner, message_id))
            return message

        return self._database.write(work)

    def count_unread(self, owner: str, up_to: int) -> int:
        """Return how many of an owner's messages were not read, at most `up_to`."""
        ((count,),) = self._database.read(_COUNT, (owner, up_to))
        return int(str(count))

    def remove_some(self, owner: str) -> int:
        """Delete some of an owner's messages; return how many."""
        return self._database.write(lambda connection: connection.execute(_REMOVE, (owner,)).rowcount)
