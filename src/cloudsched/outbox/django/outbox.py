"""The outbox for Django: a row is written in the transaction of the caller's database connection.

::

    from cloudsched.outbox.django import DjangoOutbox

    outbox = DjangoOutbox(app)

    with transaction.atomic():
        order = Order.objects.create(owner="ada")
        outbox.create(handler=remind, payload=Reminder(text="Pay"), owner="ada", schedule="in 3 days")
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack

from cloudsched.config.imports import require_extra
from cloudsched.domain.call_arguments import check_methods
from cloudsched.outbox.outbox import KEEP, Outbox
from cloudsched.outbox.rows import INSERT, can_lock_rows

with require_extra("cloudsched.outbox.django"):
    from django.db import DEFAULT_DB_ALIAS, connections, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from cloudsched.app import App
    from cloudsched.client import Client
    from cloudsched.domain.transitions.task_arguments import TaskArguments
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.outbox.rows import Execute

_PARAMETER: Final = re.compile(r":(\w+)")


@check_methods()
class DjangoOutbox(Outbox):
    """An outbox in a database of Django's, SQLite or PostgreSQL.

    Args:
        app: As for `Outbox`.
        client: As for `Outbox`.
        using: The database's alias.
        keep: As for `Outbox`.

    Raises:
        Misconfigured: There is neither an app nor a client.
    """

    def __init__(
        self,
        app: App | None = None,
        *,
        client: Client | None = None,
        using: str = DEFAULT_DB_ALIAS,
        keep: timedelta = KEEP,
    ) -> None:
        super().__init__(_AliasDatabase(using), app, client, keep)
        self._using = using

    def create(self, draft: TaskDraft | None = None, /, **fields: Unpack[TaskArguments]) -> str:
        """Write a row that creates a task, or edits the one of the same id, once the transaction is committed.

        That wakes this process's relay. Outside a transaction, the row is committed at once.

        Args:
            draft: The task.
            fields: The task, in place of a draft. See `App.create`. Times count from now.

        Returns:
            The task's id: yours, the one that the handler makes of the payload, or a random one.

        Raises:
            InvalidInput: A field is not valid. Nothing was written.
        """
        row = self._creation(draft, dict(fields))
        self._write(row)
        return str(row["task_id"])

    def cancel(self, task_id: str, /) -> None:
        """Write a row that cancels a task once the transaction is committed, after earlier rows of the same task.

        A task that has ended by then stays as it is.
        """
        self._write(self._cancellation(task_id))

    def _write(self, row: dict[str, Any]) -> None:
        with connections[self._using].cursor() as cursor:
            cursor.execute(_to_django(INSERT), row)
        transaction.on_commit(self.wake, using=self._using)

    def _give_back(self, *, is_last: bool) -> None:
        connection = connections[self._using]
        if is_last:
            connection.close()
        else:
            connection.close_if_unusable_or_obsolete()


class _AliasDatabase:
    """The database of an alias. Each thread has a connection of its own."""

    def __init__(self, using: str) -> None:
        self._using = using

    @property
    def locks_rows(self) -> bool:
        return can_lock_rows(connections[self._using].vendor)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        with transaction.atomic(using=self._using), connections[self._using].cursor() as cursor:

            def execute(statement: str, values: dict[str, Any]) -> list[Any]:
                cursor.execute(_to_django(statement), values)
                return [] if cursor.description is None else list(cursor.fetchall())

            yield execute


def _to_django(statement: str) -> str:
    """Return a statement with its parameters as Django writes them."""
    return _PARAMETER.sub(r"%(\1)s", statement)
