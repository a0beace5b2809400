"""What does not answer, what is refused, and what is broken: nothing of it holds the other rows up, or is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from tests.harness import free_port, wait_until
from tests.instants import DAY, MINUTE, SECOND
from tests.outbox.conftest import START
from werkzeug.wrappers import Request

from cloudsched import App, Schedule, TaskDraft
from cloudsched.client import Client
from cloudsched.errors import (
    CloudschedError,
    Forbidden,
    InvalidInput,
    NotAllowed,
    QuotaExceeded,
    StoreUnavailable,
    Unauthenticated,
)
from cloudsched.local.wsgi_server import WebServer
from cloudsched.outbox.handover import LONGEST_DELAY, SILENCE, AppTarget, Handover
from cloudsched.outbox.outbox import KEEP
from cloudsched.outbox.rows import CLAIM, State
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api

HOUR = timedelta(hours=1)
REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Pay"}, "owner": "ada"}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """Return an engine of a file: what is tried here is the same in every database."""
    made = create_engine(f"sqlite:///{tmp_path / 'shop.db'}", poolclass=NullPool)
    SqlalchemyOutbox.metadata.create_all(made)
    yield made
    made.dispose()


class Moody(AppTarget):
    """An app that raises what it is told to raise, by the task's id, before it does anything."""

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.errors: dict[str, Exception] = {}
        self.calls: list[str] = []

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
        self.calls.append(str(draft.id))
        if (error := self.errors.get(str(draft.id), self.errors.get("*"))) is not None:
            raise error
        super().create(row_id, draft, written_at)


@pytest.fixture
def moody(sim: Simulation) -> Moody:
    return Moody(sim.app)


@pytest.fixture
def handover(outbox: SqlalchemyOutbox, moody: Moody) -> Handover:
    return Handover(outbox._rows, moody, KEEP)  # noqa: SLF001 - as the outbox makes its own


def write(outbox: SqlalchemyOutbox, engine: Engine, *ids: str) -> None:
    with Session(engine) as session, session.begin():
        for task_id in ids:
            outbox.create(session, **REMINDER, id=task_id, schedule="in 1 hour")
            session.flush()


BROKEN = [ValueError("a bug"), StoreUnavailable("The store", "it is down"), Unauthenticated("The token has expired.")]


@pytest.mark.parametrize("error", BROKEN, ids=lambda error: type(error).__name__)
def test_a_poisoned_row_waits_longer_each_time_and_holds_nothing_up(
    error: Exception, outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody, sim: Simulation
) -> None:
    """It is never given up, since its error says nothing of the row; once the cause is gone it is handed over."""
    moody.errors["poisoned"] = error
    write(outbox, engine, "poisoned", "after")
    write(outbox, engine, "poisoned")  # waits for the row before it
    assert handover.run().handed_over == 1
    tried = []
    for _ in range(95):
        sim.advance(SECOND)
        before = moody.calls.count("poisoned")
        write(outbox, engine, f"later-{sim.now:%H%M%S}")
        assert handover.run().handed_over == 1
        tried.append(moody.calls.count("poisoned") - before)
    assert set(tried) == {0, 1}, "the row behind it was tried, too"
    places = [second for second, count in enumerate(tried) if count]
    gaps = [later - earlier for earlier, later in pairwise(places)]
    assert gaps[:4] == [2, 4, 8, 16]
    assert gaps[4:] == [LONGEST_DELAY.seconds] * 2
    assert len(outbox.rows(State.PENDING)) == 2
    assert outbox.rows(State.PENDING)[0].error == f"{type(error).__name__}: {error}"
    moody.errors.clear()
    sim.advance(LONGEST_DELAY)
    assert handover.run().handed_over == 2
    assert not outbox.rows(State.PENDING)


def test_a_pass_ends_early_while_nothing_answers(
    outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody, sim: Simulation
) -> None:
    """However many rows there are, they cost a few calls then; and all are handed over once it answers."""
    moody.errors["*"] = StoreUnavailable("The store", "it is down")
    write(outbox, engine, *(f"task-{number}" for number in range(100)))
    done = handover.run()
    assert (done.handed_over, done.is_down, len(moody.calls)) == (0, True, SILENCE)
    moody.errors.clear()
    assert handover.run().handed_over == 100 - SILENCE
    sim.advance(SECOND)
    assert handover.run().handed_over == SILENCE


REFUSALS: list[CloudschedError] = [
    InvalidInput("payload.text", "is missing"),
    Forbidden("Not yours."),
    NotAllowed("edit", "RUNNING"),
    QuotaExceeded("active tasks", 10, "Finish some."),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_a_refusal_fails_the_row(
    error: CloudschedError, outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody
) -> None:
    """What could not be known when it was written is told in the row, and later rows of the task follow it."""
    moody.errors["own"] = error
    write(outbox, engine, "own")
    done = handover.run()
    assert (done.handed_over, done.failed) == (0, 1)
    (failed,) = outbox.rows()
    assert failed.error == f"{type(error).__name__}: {error}"
    moody.errors.clear()
    write(outbox, engine, "own")
    assert handover.run().handed_over == 1


def test_rows_that_were_tried_before_come_last(
    outbox: SqlalchemyOutbox, engine: Engine, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may end its relay's process each time, which must not keep the others waiting."""
    monkeypatch.setattr("cloudsched.outbox.rows.BATCH", 1)
    write(outbox, engine, "deadly")
    _, (deadly,) = outbox._rows.claim(sim.now)  # noqa: SLF001 - by a relay that it kills
    assert deadly.task_id == "deadly"
    sim.advance(CLAIM)
    write(outbox, engine, "after")
    for expected in ("after", "deadly"):
        _, (entry,) = outbox._rows.claim(sim.now)  # noqa: SLF001 - by the next relay
        assert entry.task_id == expected


def test_a_row_waits_for_the_earlier_ones_of_its_task(
    outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody, sim: Simulation
) -> None:
    """Otherwise a cancellation would find no task, and its creation would run later."""
    moody.errors["own"] = StoreUnavailable("The store", "it is down")
    write(outbox, engine, "own")
    with Session(engine) as session, session.begin():
        outbox.cancel(session, "own")
    assert handover.run().failed == 0
    moody.errors.clear()
    sim.advance(LONGEST_DELAY)
    assert handover.run().handed_over == 2
    assert sim.app.get("own").status == "CANCELLED"


def test_a_rate_limit_is_waited_for(
    outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody, sim: Simulation
) -> None:
    """A quota that frees itself is not a refusal."""
    moody.errors["own"] = QuotaExceeded("creations a minute", 10, "Wait.", retry_after=20)
    write(outbox, engine, "own")
    handover.run()
    moody.errors.clear()
    sim.advance(19 * SECOND)
    assert handover.run().handed_over == 0
    sim.advance(SECOND)
    assert handover.run().handed_over == 1


def test_a_stopped_relay_releases_what_it_has_claimed(
    outbox: SqlalchemyOutbox, engine: Engine, handover: Handover, moody: Moody
) -> None:
    """Another one need not wait for the end of the claim."""
    write(outbox, engine, "first", "second")
    assert handover.run(lambda: bool(moody.calls)).handed_over == 1
    assert outbox.rows(State.PENDING)[0].attempts == 0
    assert handover.run().handed_over == 1


def test_a_relay_whose_claim_has_ended_changes_no_row(
    outbox: SqlalchemyOutbox, engine: Engine, sim: Simulation
) -> None:
    """Another one has claimed the row meanwhile, and handed it over."""
    write(outbox, engine, "a")
    rows = outbox._rows  # noqa: SLF001 - as its relay has them
    late, (entry,) = rows.claim(sim.now)
    other, (again,) = rows.claim(sim.now + CLAIM)
    rows.settle(other, [(again, State.DONE, sim.now, "")], sim.now)
    rows.settle(late, [(entry, State.FAILED, sim.now, "too late")], sim.now)
    assert [each.number for each in rows.list(State.DONE, 10)] == [entry.number]
    assert not rows.list(State.FAILED, 10)


def test_a_relay_outlives_what_its_database_raises(
    outbox: SqlalchemyOutbox, engine: Engine, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread logs the exception, and goes on."""
    failures: list[datetime] = []
    claim = outbox._rows.claim  # noqa: SLF001 - what the relay calls first

    def fail_twice(now: datetime) -> object:
        if len(failures) < 2:
            failures.append(now)
            raise OSError("the disk is full")
        return claim(now)

    monkeypatch.setattr(outbox._rows, "claim", fail_twice)  # noqa: SLF001
    write(outbox, engine, "own")
    with outbox.relay(poll=timedelta(milliseconds=1)):
        wait_until(lambda: app.tasks().items, "the row is handed over")
    assert len(failures) == 2


def make_api(app: App, port: int) -> WebServer:
    return WebServer(Request.application(lambda request: serve_api(app, request)), port=port)


def test_rows_wait_for_an_api_that_is_down(engine: Engine, sim: Simulation, app: App) -> None:
    """They are written and committed meanwhile, and handed over once it answers."""
    port = free_port()
    with Client(f"http://127.0.0.1:{port}", timeout=60) as client:
        outbox = SqlalchemyOutbox(engine, app, client=client)
        write(outbox, engine, "own")
        assert outbox.hand_over() == 0
        (waiting,) = outbox.rows(State.PENDING)
        assert waiting.error.startswith("Unavailable: ")
        with make_api(app, port) as server:
            server.serve()
            sim.advance(SECOND)
            wait_until(outbox.hand_over, "the API answers")
    assert sim.app.get("own").next_execution_time == START + HOUR


def test_an_api_creates_late_rows_at_once(engine: Engine, sim: Simulation, app: App) -> None:
    """It would refuse an instant in the past; a repetition finds the task, and runs it no second time."""
    port = free_port()
    with make_api(app, port) as server, Client(f"http://127.0.0.1:{port}", timeout=60) as client:
        server.serve()
        outbox = SqlalchemyOutbox(engine, app, client=client)
        with Session(engine) as session, session.begin():
            at = Schedule.once(START + 5 * MINUTE)
            outbox.create(session, **REMINDER, id="own", retention=9 * DAY, schedule=at)
        sim.advance(10 * MINUTE)
        _, (entry,) = outbox._rows.claim(sim.now)  # noqa: SLF001 - by a relay that dies
        outbox._handover._do(entry)  # noqa: SLF001
        sim.advance(HOUR)
        assert outbox.hand_over() == 1
        sim.advance(HOUR)
    (run,) = sim.executions("own")
    assert run.status == "SUCCEEDED"
