"""A commit of one process wakes the relays of all, in PostgreSQL, for each kind of caller."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.pool import NullPool
from tests.harness import wait_until
from tests.outbox.shops import RolledBack, SqlalchemyShop, open_django_database

from cloudsched.outbox.django import DjangoOutbox
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox, metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Engine

    from cloudsched import App
    from cloudsched.testing import Simulation

HOUR = timedelta(hours=1)
REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Pay"}, "owner": "ada"}
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"


@pytest.fixture
def url(postgres: str) -> str:
    return f"postgresql+psycopg://postgres@{postgres}/postgres"


@pytest.fixture
def relay(engine: Engine, app: App, sim: Simulation) -> Iterator[None]:
    """Relays of another process: what this one commits does not wake them, and they poll once an hour."""
    assert sim.app is app
    with SqlalchemyOutbox(engine, app, notify=True).relay(poll=HOUR):
        wait_until(lambda: find_listeners(engine), "it listens")
        yield
    wait_until(lambda: not find_listeners(engine), "its connection is closed")


def find_listeners(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return [row.pid for row in connection.execute(text(LISTENERS))]


def has_task(app: App, task_id: str) -> bool:
    return task_id in {task.id for task in app.tasks().items}


@pytest.mark.usefixtures("relay")
def test_a_session_and_a_connection_wake_the_relays_of_others(engine: Engine, app: App) -> None:
    """At the commit; what is rolled back wakes nobody, and takes nothing away."""
    shop = SqlalchemyShop(engine, app, notify=True)
    for number in range(3):
        with suppress(RolledBack), shop.begin() as caller:
            caller.create(**REMINDER, id=f"never-{number}")
            raise RolledBack
        with shop.begin() as caller:
            caller.create(**REMINDER, id=f"s-{number}")
        wait_until(lambda: has_task(app, f"s-{number}"), "a session's row is handed over")  # noqa: B023 - called here
        with engine.begin() as connection:
            shop.outbox.create(connection, **REMINDER, id=f"c-{number}")
        wait_until(lambda: has_task(app, f"c-{number}"), "a connection's row is")  # noqa: B023 - called here
    assert len(app.tasks().items) == 6


@pytest.mark.usefixtures("relay")
def test_an_asynchronous_session_does_too(url: str, engine: Engine, app: App) -> None:
    """Its flush runs the statement where a driver may wait."""
    outbox = SqlalchemyOutbox(engine, app, notify=True)

    async def write() -> None:
        made = create_async_engine(url, poolclass=NullPool)
        async with AsyncSession(made) as session, session.begin():
            outbox.create(session, **REMINDER, id="a")
        await made.dispose()

    with asyncio.Runner() as runner:
        runner.run(write())
    wait_until(lambda: has_task(app, "a"), "it is handed over")


def test_django_wakes_the_relays_of_others_and_is_woken(url: str, app: App, sim: Simulation) -> None:
    """Both ways, through connections of Django's."""
    assert sim.app is app
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        for name in ("cloudsched_outbox", "django_migrations"):
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
    with open_django_database(url) as alias, DjangoOutbox(app, using=alias, notify=True).relay(poll=HOUR):
        wait_until(lambda: find_listeners(engine), "it listens")
        DjangoOutbox(app, using=alias, notify=True).create(**REMINDER, id="a")
        wait_until(lambda: has_task(app, "a"), "it is handed over")
    wait_until(lambda: not find_listeners(engine), "its connection is closed")


def test_a_lost_connection_is_opened_again(engine: Engine, app: App, sim: Simulation) -> None:
    """And what was committed meanwhile is handed over: the relay looks when it listens again."""
    assert sim.app is app
    shop = SqlalchemyShop(engine, app, notify=True)
    with SqlalchemyOutbox(engine, app, notify=True).relay(poll=HOUR):
        wait_until(lambda: find_listeners(engine), "it listens")
        for number in range(3):
            (before,) = find_listeners(engine)
            with engine.begin() as connection:
                connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": before})
            with shop.begin() as caller:
                caller.create(**REMINDER, id=f"n-{number}")
            wait_until(lambda: has_task(app, f"n-{number}"), "it is handed over")  # noqa: B023 - called here
            wait_until(lambda: set(find_listeners(engine)) - {before}, "it listens again")  # noqa: B023 - likewise


def test_without_notify_nobody_is_told(engine: Engine, app: App, sim: Simulation) -> None:
    """Neither a notification is sent, whose commits wait for each other, nor is there a connection that listens."""
    assert sim.app is app
    metadata.create_all(engine)
    shop = SqlalchemyShop(engine, app)
    with shop.outbox.relay(), engine.connect() as connection:
        assert not find_listeners(engine)
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("LISTEN cloudsched_outbox"))
        with shop.begin() as caller:
            caller.create(**REMINDER, id="a")
        wait_until(lambda: has_task(app, "a"), "it is handed over")
        assert not list(connection.connection.driver_connection.notifies(timeout=0))  # type: ignore[union-attr]
