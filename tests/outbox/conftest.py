"""Databases of the outbox: a file of SQLite, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pydantic import BaseModel
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool
from tests.outbox.orders import ORDERS
from tests.outbox.postgres_server import run_server
from tests.outbox.shops import DjangoShop, Shop, SqlalchemyShop, open_django_database

from cloudsched import App, Context
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox, metadata
from cloudsched.testing import Simulation

START = datetime(2027, 1, 4, 12, tzinfo=UTC)


class Reminder(BaseModel):
    """What the handler is given."""

    text: str


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server for the whole run. Without one the tests fail where CI is set, and are skipped else."""
    with run_server() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a database, as SQLAlchemy writes it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shop.db'}"
    return f"postgresql+psycopg://postgres@{request.getfixturevalue('postgres')}/postgres"


@pytest.fixture
def empty(url: str) -> Iterator[Engine]:
    """Return an engine of a database without tables of ours."""
    made = create_engine(url, poolclass=NullPool)
    with made.begin() as connection:
        for name in ("orders", "cloudsched_outbox", "django_migrations"):
            connection.execute(text(f"DROP TABLE IF EXISTS {name}"))
    yield made
    made.dispose()


@pytest.fixture
def engine(empty: Engine) -> Engine:
    """Return an engine of a database with the caller's table, and the outbox's."""
    for each in (ORDERS.metadata, metadata):
        each.create_all(empty)
    return empty


@pytest.fixture(params=["sqlalchemy", "django"])
def shop(request: pytest.FixtureRequest, url: str, empty: Engine, app: App, sim: Simulation) -> Iterator[Shop]:
    """Return a caller whose outbox hands over to the simulation."""
    assert sim.app is app
    if request.param == "sqlalchemy":
        metadata.create_all(empty)
        yield SqlalchemyShop(empty, app)
    else:
        with open_django_database(url) as alias:
            yield DjangoShop(alias, app)


@pytest.fixture
def app(app: App) -> App:
    @app.handler("remind")
    def remind(ctx: Context, reminder: Reminder) -> str:
        return f"{ctx.task.id}: {reminder.text}"

    return app


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    """Run the app's tasks, with a clock that stands at noon."""
    with Simulation(app, start=START) as made:
        yield made


@pytest.fixture
def outbox(engine: Engine, app: App, sim: Simulation) -> SqlalchemyOutbox:
    assert sim.app is app
    return SqlalchemyOutbox(engine, app)
