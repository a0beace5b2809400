"""Databases of the outbox: a file of SQLite, and a PostgreSQL server."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel
from sqlalchemy import Engine, create_engine
from sqlalchemy.pool import NullPool
from tests.outbox.orders import ORDERS
from tests.outbox.postgres_server import run_server

from cloudsched import App, Context, Settings
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox, metadata
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
def engine(url: str) -> Iterator[Engine]:
    """Return an engine of a database with the caller's table, and the outbox's."""
    made = create_engine(url, poolclass=NullPool)
    for each in (ORDERS.metadata, metadata):
        each.drop_all(made)
        each.create_all(made)
    yield made
    made.dispose()


@pytest.fixture
def app() -> App:
    """Return an app with a handler."""
    made = App(Settings())

    @made.handler("remind")
    def remind(ctx: Context, reminder: Reminder) -> str:
        return f"{ctx.task.id}: {reminder.text}"

    return made


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    """Run the app's tasks, with a clock that stands at noon."""
    with Simulation(app, start=START) as made:
        yield made


@pytest.fixture
def outbox(engine: Engine, app: App, sim: Simulation) -> SqlalchemyOutbox:
    """Return an outbox that hands over to the simulation."""
    assert sim.app is app
    return SqlalchemyOutbox(engine, app)
