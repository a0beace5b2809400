"""Callers of both kinds, SQLAlchemy's and Django's, so that one suite tries them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol

from django.core.management import call_command
from django.db import connections, transaction
from sqlalchemy import Engine, make_url, select
from sqlalchemy.orm import Session
from tests.django_project import set_up_django

from cloudsched import App
from cloudsched.outbox.django import DjangoOutbox
from cloudsched.outbox.outbox import Outbox
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox, table


class RolledBack(Exception):
    """The caller gives its transaction or its savepoint up."""


class Caller(Protocol):
    """Who writes rows in one transaction."""

    @property
    def create(self) -> Callable[..., str]: ...

    def cancel(self, task_id: str, /) -> None: ...

    def savepoint(self) -> AbstractContextManager[object]: ...


class Shop(Protocol):
    @property
    def outbox(self) -> Outbox: ...

    def begin(self) -> AbstractContextManager[Caller]:
        """Begin a transaction, which is rolled back if the block raises."""
        ...

    def count_rows(self) -> int: ...


class SqlalchemyShop:
    def __init__(self, engine: Engine, app: App) -> None:
        self._engine = engine
        self.outbox = SqlalchemyOutbox(engine, app)

    @contextmanager
    def begin(self) -> Iterator[Caller]:
        with Session(self._engine) as session, session.begin():
            yield _SessionCaller(self.outbox, session)

    def count_rows(self) -> int:
        with self._engine.connect() as connection:
            return len(connection.execute(select(table.c.id)).all())


class _SessionCaller:
    def __init__(self, outbox: SqlalchemyOutbox, session: Session) -> None:
        self._outbox = outbox
        self._session = session

    def savepoint(self) -> AbstractContextManager[object]:
        return self._session.begin_nested()

    def create(self, **fields: Any) -> str:
        task_id = self._outbox.create(self._session, **fields)
        self._session.flush()
        return task_id

    def cancel(self, task_id: str) -> None:
        self._outbox.cancel(self._session, task_id)
        self._session.flush()


class DjangoShop:
    """A caller with Django's connection of its thread."""

    def __init__(self, alias: str, app: App) -> None:
        self._alias = alias
        self.outbox = DjangoOutbox(app, using=alias)

    @contextmanager
    def begin(self) -> Iterator[Caller]:
        with transaction.atomic(using=self._alias):
            yield _DjangoCaller(self.outbox, self._alias)

    def count_rows(self) -> int:
        with connections[self._alias].cursor() as cursor:
            cursor.execute("SELECT id FROM cloudsched_outbox")
            return len(cursor.fetchall())


class _DjangoCaller:
    def __init__(self, outbox: DjangoOutbox, alias: str) -> None:
        self._alias = alias
        self.create = outbox.create
        self.cancel = outbox.cancel

    def savepoint(self) -> AbstractContextManager[object]:
        found: AbstractContextManager[object] = transaction.atomic(using=self._alias)
        return found


@contextmanager
def open_django_database(url: str, alias: str = "shop") -> Iterator[str]:
    """Let Django's migration make its table in a database, and yield the database's alias."""
    set_up_django()
    found = make_url(url)
    kind = found.get_backend_name()
    place = {"NAME": found.database, "USER": found.username or "", "HOST": found.host or "", "PORT": found.port or ""}
    engine = {"sqlite": "django.db.backends.sqlite3", "postgresql": "django.db.backends.postgresql"}[kind]
    before = connections.settings.get(alias)
    databases = {"default": {}, alias: {"ENGINE": engine, **place}}
    with suppress(AttributeError):  # that of no database, in this thread
        del connections[alias]
    connections.settings[alias] = connections.configure_settings(databases)[alias]
    try:
        call_command("migrate", database=alias, verbosity=0)
        yield alias
    finally:
        connections[alias].close()
        del connections[alias]
        connections.settings[alias] = before or connections.configure_settings({"default": {}})["default"]
