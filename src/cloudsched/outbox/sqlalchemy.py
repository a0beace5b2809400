"""The outbox for SQLAlchemy: a row is written through the caller's own session or connection.

::

    from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox

    outbox = SqlalchemyOutbox(engine, app)

    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.create(session, handler=remind, payload=Reminder(text="Pay"), owner=order.owner, schedule="in 3 days")
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Unpack

from cloudsched.config.imports import require_extra
from cloudsched.domain.call_arguments import check_methods
from cloudsched.errors import Misconfigured
from cloudsched.outbox.outbox import KEEP, Outbox
from cloudsched.outbox.rows import (
    ID_LENGTH,
    INSTANT_LENGTH,
    TABLE,
    TASK_ID_LENGTH,
    WORD_LENGTH,
    can_lock_rows,
)

with require_extra("cloudsched.outbox.sqlalchemy"):
    from sqlalchemy import (
        BigInteger,
        Column,
        Connection,
        Engine,
        Index,
        Integer,
        MetaData,
        String,
        Table,
        Text,
        event,
        insert,
        text,
    )
    from sqlalchemy.orm import Session, SessionTransaction, registry, scoped_session

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session

    from cloudsched.app import App
    from cloudsched.client import Client
    from cloudsched.domain.transitions.task_arguments import TaskArguments
    from cloudsched.domain.transitions.task_draft import TaskDraft
    from cloudsched.outbox.rows import Execute

    Writer = Session | scoped_session[Any] | AsyncSession | async_scoped_session[Any] | Connection

metadata: Final = MetaData()
"""Has the outbox's table, for `create_all` and for Alembic's ``target_metadata``."""
table: Final = Table(
    TABLE,
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(ID_LENGTH), nullable=False, unique=True),
    Column("task_id", String(TASK_ID_LENGTH), nullable=False),
    Column("action", String(WORD_LENGTH), nullable=False),
    Column("content", Text, nullable=False),
    Column("written_at", String(INSTANT_LENGTH), nullable=False),
    Column("state", String(WORD_LENGTH), nullable=False),
    Column("due_at", String(INSTANT_LENGTH), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("claim", String(ID_LENGTH), nullable=False),
    Column("error", Text, nullable=False),
    Index(f"{TABLE}_due", "state", "due_at"),
    Index(f"{TABLE}_task", "task_id", "state"),
    Index(f"{TABLE}_claim", "claim"),
)
_IS_WRITTEN: Final = "cloudsched.outbox"
"""Says in a session's `info` that its transaction has written a row."""


class _NewRow:
    """A row, as a session writes it."""

    def __init__(self, **columns: object) -> None:
        for name, value in columns.items():
            setattr(self, name, value)


registry(metadata=metadata).map_imperatively(_NewRow, table)


@check_methods()
class SqlalchemyOutbox(Outbox):
    """An outbox in a database of SQLAlchemy's, SQLite or PostgreSQL.

    Args:
        engine: Connects the relay to the database. It is not asynchronous, even where your sessions are.
        app: As for `Outbox`.
        client: As for `Outbox`.
        keep: As for `Outbox`.

    Attributes:
        metadata: Has the outbox's table.

    Raises:
        Misconfigured: The engine is asynchronous, or there is neither an app nor a client.
    """

    metadata: Final = metadata

    def __init__(
        self,
        engine: Engine,
        app: App | None = None,
        *,
        client: Client | None = None,
        keep: timedelta = KEEP,
    ) -> None:
        if not isinstance(engine, Engine):
            hint = "give it an engine of create_engine, beside your asynchronous one"
            raise Misconfigured(f"The outbox's relay is a thread: {hint}.")
        super().__init__(_EngineDatabase(engine), app, client, keep)
        self._engine = engine

    def create_table(self) -> None:
        """Create the outbox's table if it is missing. A migration of your own can do it instead."""
        metadata.create_all(self._engine)

    def create(self, session: Writer, draft: TaskDraft | None = None, /, **fields: Unpack[TaskArguments]) -> str:
        """Write a row that creates a task, or edits the one of the same id, once the transaction is committed.

        Args:
            session: Your session, also an asynchronous one, or your connection. With a session, the row is
                written by its next flush, and its commit wakes this process's relay.
            draft: The task.
            fields: The task, in place of a draft. See `App.create`. Times count from now.

        Returns:
            The task's id: yours, the one that the handler makes of the payload, or a random one.

        Raises:
            InvalidInput: A field is not valid. Nothing was written.
        """
        row = self._creation(draft, dict(fields))
        self._write(session, row)
        return str(row["task_id"])

    def cancel(self, session: Writer, task_id: str, /) -> None:
        """Write a row that cancels a task once the transaction is committed, after earlier rows of the same task.

        A task that has ended by then stays as it is.
        """
        self._write(session, self._cancellation(task_id))

    def _write(self, session: Writer, row: dict[str, Any]) -> None:
        if isinstance(session, Connection):
            session.execute(insert(table).values(**row))
            return
        found = _unwrap(session)
        found.add(_NewRow(**row))
        found.info[_IS_WRITTEN] = True
        if not event.contains(found, "after_transaction_end", self._on_end):
            event.listen(found, "after_transaction_end", self._on_end)

    def _on_end(self, session: Session, transaction: SessionTransaction) -> None:
        """Wake the relay at the end of a session's outermost transaction."""
        if transaction.parent is None and session.info.pop(_IS_WRITTEN, False):
            self.wake()


def _unwrap(session: Any) -> Session:  # noqa: ANN401 - what says which it is, is asked
    """Return the session itself of a scoped or an asynchronous one. Raises TypeError."""
    if not isinstance(session, Session) and callable(getattr(session, "registry", None)):
        session = session.registry()
    found = getattr(session, "sync_session", session)
    if not isinstance(found, Session):
        raise TypeError(f"{session!r} is neither a session nor a connection; use run_sync with an AsyncConnection.")
    return found


class _EngineDatabase:
    """The database of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def locks_rows(self) -> bool:
        return can_lock_rows(self._engine.dialect.name)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        with self._engine.begin() as connection:

            def execute(statement: str, values: dict[str, Any]) -> list[Any]:
                result = connection.execute(text(statement), values)
                return list(result) if result.returns_rows else []

            yield execute
