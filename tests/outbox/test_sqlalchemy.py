"""What a session commits is a task, and what it rolls back is none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool
from tests.instants import MINUTE, SECOND, about
from tests.outbox.conftest import START, Reminder

from cloudsched import App, Schedule, TaskDraft
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.testing import Simulation

HOUR = timedelta(hours=1)
REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Pay"}, "owner": "ada"}


def task_ids(app: App) -> set[str]:
    return {task.id for task in app.tasks().items}


def test_a_connection_writes_rows_too(outbox: SqlalchemyOutbox, engine: Engine, app: App) -> None:
    """For callers without an ORM."""
    with engine.begin() as connection:
        kept = outbox.create(connection, **REMINDER)
    with engine.connect() as connection:
        outbox.create(connection, **REMINDER)
        connection.rollback()
    assert outbox.hand_over() == 1
    assert task_ids(app) == {kept}


def test_a_scoped_session_is_the_session_of_its_thread(outbox: SqlalchemyOutbox, engine: Engine, app: App) -> None:
    """As Flask-SQLAlchemy has it."""
    scoped = scoped_session(sessionmaker(engine))
    kept = outbox.create(scoped, **REMINDER)
    scoped.commit()
    scoped.remove()
    assert outbox.hand_over() == 1
    assert task_ids(app) == {kept}


def test_an_asynchronous_session_writes_rows(outbox: SqlalchemyOutbox, url: str, app: App) -> None:
    """`create` is called as on any session, without ``await``: the row is written by the flush."""
    import asyncio  # noqa: PLC0415

    async def write() -> set[str]:
        made = create_async_engine(url.replace("sqlite:", "sqlite+aiosqlite:"), poolclass=NullPool)
        maker = async_sessionmaker(made)
        async with maker() as session, session.begin():
            kept = {outbox.create(session, **REMINDER)}
        async with maker() as session:
            outbox.create(session, **REMINDER)
            await session.rollback()
        scoped = async_scoped_session(maker, scopefunc=asyncio.current_task)
        kept |= {outbox.create(scoped, **REMINDER)}
        await scoped.commit()
        await scoped.remove()
        async with made.begin() as connection:
            kept |= {await connection.run_sync(lambda given: outbox.create(given, **REMINDER))}
        await made.dispose()
        return kept

    kept = asyncio.run(write())
    assert outbox.hand_over() == 3
    assert task_ids(app) == kept


def test_relative_times_count_from_the_writing(outbox: SqlalchemyOutbox, engine: Engine, sim: Simulation) -> None:
    """However late a row is handed over; what has come due by then runs at once."""
    with Session(engine) as session, session.begin():
        schedules: list[Schedule | str] = ["in 10 minutes", Schedule.after(10 * MINUTE), "every 10 minutes"]
        ids = [outbox.create(session, **REMINDER, schedule=schedule) for schedule in schedules]
        late = outbox.create(session, **REMINDER, schedule="in 3 minutes")
        at_once = outbox.create(session, **REMINDER)
        over = outbox.create(session, **REMINDER, schedule=Schedule(rrule="FREQ=MINUTELY;COUNT=2"))
    sim.advance(4 * MINUTE)
    assert outbox.hand_over() == 6
    for task_id in ids[:2]:
        assert sim.app.get(task_id).next_execution_time == about(START + 10 * MINUTE)
    sim.advance(SECOND)
    for task_id in (late, at_once, over):
        assert sim.executions(task_id)[-1].status == "SUCCEEDED", task_id


def test_a_function_a_draft_and_an_id_are_given_as_to_the_app(
    outbox: SqlalchemyOutbox, engine: Engine, app: App
) -> None:
    """What `App.create` takes, with an id that the handler makes of the payload among it."""

    @app.handler("greet", task_id=lambda payload: f"greet-{payload.text}")
    def greet(reminder: Reminder) -> str:
        return reminder.text

    with Session(engine) as session, session.begin():
        assert outbox.create(session, handler=greet, payload=Reminder(text="Ada")) == "greet-Ada"
        assert outbox.create(session, TaskDraft.of(id="own", **REMINDER)) == "own"
        assert outbox.create(session, **REMINDER, id="mine") == "mine"
        with pytest.raises(InvalidInput):
            outbox.create(session, TaskDraft.of(**REMINDER), title="Twice")
    assert outbox.hand_over() == 3
    assert task_ids(app) == {"greet-Ada", "own", "mine"}


def test_a_cancellation_of_what_has_ended_changes_nothing(
    outbox: SqlalchemyOutbox, engine: Engine, sim: Simulation
) -> None:
    """That is a race which its caller cannot win; but an id that no task has is a mistake, which is told."""
    ended = sim.app.create(**REMINDER)
    sim.advance(HOUR)
    with Session(engine) as session, session.begin():
        outbox.cancel(session, ended.id)
        outbox.cancel(session, "unknown")
        with pytest.raises(InvalidInput):
            outbox.cancel(session, "a/b")
    assert outbox.hand_over() == 1
    (failed,) = outbox.rows()
    assert (failed.task_id, failed.error) == ("unknown", "NotFound: There is no task 'unknown'.")


def test_other_databases_are_refused(app: App) -> None:
    """A relay on one of which nothing is known would lose or double rows."""
    engine = create_engine("sqlite://")
    engine.dialect.name = "oracle"
    with pytest.raises(Misconfigured, match="not in oracle"):
        SqlalchemyOutbox(engine, app).hand_over()
