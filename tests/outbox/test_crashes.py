"""Wherever a process ends: a task for each committed row, none for a rolled-back one, and none of them twice."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, select
from tests.harness import ROOT, process, wait_until
from tests.instants import HOUR
from tests.outbox.orders import ORDERS
from tests.outbox.shops import Shop
from tests.outbox.writer import make_app

from cloudsched import App, TaskDraft
from cloudsched.adapters.clocks import ManualClock
from cloudsched.outbox.handover import AppTarget, Handover
from cloudsched.outbox.outbox import KEEP
from cloudsched.outbox.rows import CLAIM, Rows, State
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from cloudsched.outbox.rows import Database, Execute

REMINDER: dict[str, Any] = {"handler": "remind", "payload": {"text": "Pay"}, "owner": "ada"}
KILLS = 4


class Death(BaseException):
    """The process ends here."""


class Life:
    """Counts what a process does, and ends it after so many steps: it does nothing from then on."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def step(self) -> None:
        if self._left == 0:
            raise Death
        self._left -= 1


class MortalDatabase:
    """A database whose user dies between two statements, or around a commit."""

    def __init__(self, inner: Database, life: Life) -> None:
        self._inner = inner
        self._life = life

    @property
    def locks_rows(self) -> bool:
        return self._inner.locks_rows

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        self._life.step()
        with self._inner.transaction() as execute:

            def execute_alive(statement: str, values: dict[str, Any]) -> list[Any]:
                self._life.step()
                return execute(statement, values)

            yield execute_alive
            self._life.step()
        self._life.step()


class MortalTarget(AppTarget):
    """An app whose caller dies before or after what it asks for is done."""

    def __init__(self, app: App, life: Life) -> None:
        super().__init__(app)
        self._life = life

    def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
        self._life.step()
        super().create(row_id, draft, written_at)
        self._life.step()

    def cancel(self, task_id: str) -> None:
        self._life.step()
        super().cancel(task_id)
        self._life.step()


def test_a_relay_may_die_between_any_two_statements(shop: Shop, sim: Simulation) -> None:
    """Another goes on when the claim ends: each task is created, edited, cancelled and run once.

    The tasks run before that, so whatever were created twice would run twice.
    """
    outbox = shop.outbox
    database = outbox._rows._database  # noqa: SLF001 - as the relay uses it
    for steps in itertools.count():
        ids = {name: f"{name}-{steps}" for name in ("once", "edited", "cancelled")}
        with shop.begin() as caller:
            caller.create(**REMINDER, id=ids["once"])
            caller.create(**REMINDER, id=ids["edited"], schedule="in 1 hour")
            caller.create(**REMINDER, id=ids["cancelled"], schedule="in 1 hour")
            caller.create(**REMINDER, id=ids["edited"], schedule="in 1 hour", title="Edited")
            caller.cancel(ids["cancelled"])
        life = Life(steps)
        mortal = Handover(Rows(MortalDatabase(database, life)), MortalTarget(sim.app, life), KEEP)
        has_died = False
        try:
            mortal.run()
        except Death:
            has_died = True
        sim.advance(CLAIM)
        outbox.hand_over()
        assert not outbox.rows(State.PENDING), steps
        assert not outbox.rows(State.FAILED), steps
        sim.advance(2 * HOUR)
        assert [run.status for run in sim.executions(ids["once"])] == ["SUCCEEDED"], steps
        assert [run.status for run in sim.executions(ids["edited"])] == ["SUCCEEDED"], steps
        assert sim.app.get(ids["edited"]).title == "Edited", steps
        assert sim.app.get(ids["edited"]).revision == 2, steps
        assert sim.app.get(ids["cancelled"]).status == "CANCELLED", steps
        assert not sim.executions(ids["cancelled"]), steps
        if not has_died:
            break
    assert steps > 20, "it died at every point"


def test_a_late_repetition_changes_nothing(shop: Shop, sim: Simulation) -> None:
    """Such as that of a relay which was stopped for longer than its claim: the task has been edited since."""
    outbox = shop.outbox
    with shop.begin() as caller:
        caller.create(**REMINDER, id="own", schedule="in 1 hour")
    _, (first,) = outbox._rows.claim(sim.now)  # noqa: SLF001 - as that relay has done
    sim.advance(CLAIM)
    with shop.begin() as caller:
        caller.create(**REMINDER, id="own", schedule="in 2 hours", title="Edited")
    assert outbox.hand_over() == 2
    outbox._handover._do(first)  # noqa: SLF001 - as that relay does when it goes on
    assert sim.app.get("own").title == "Edited"


def test_two_relays_share_the_rows(shop: Shop, sim: Simulation) -> None:
    """A thousand rows, each handed over by one of them."""
    calls: list[str] = []

    class Counting(AppTarget):
        def create(self, row_id: str, draft: TaskDraft, written_at: datetime) -> None:
            calls.append(row_id)
            super().create(row_id, draft, written_at)

    with shop.begin() as caller:
        ids = {caller.create(**REMINDER, schedule="in 1 hour") for _ in range(1000)}
    start = threading.Barrier(2)

    def relay() -> None:
        start.wait()
        Handover(shop.outbox._rows, Counting(sim.app), KEEP).run()  # noqa: SLF001 - as a relay does
        shop.outbox._give_back(is_last=True)  # noqa: SLF001 - the same

    threads = [threading.Thread(target=relay) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == len(set(calls)) == 1000
    assert not shop.outbox.rows(State.PENDING)
    assert {sim.app.get(task_id).id for task_id in ids} == ids


def test_processes_may_be_killed(engine: Engine, url: str, tmp_path: Path) -> None:
    """They write orders with their tasks, roll some back, and hand over, until SIGKILL ends them somewhere."""
    chance = random.Random(7)  # noqa: S311 - must be repeatable
    data = tmp_path / "tasks.db"
    for number in range(KILLS):
        enough = chance.randrange(20, 80)
        with process(sys.executable, "-m", "tests.outbox.writer", url, str(data), str(number), cwd=ROOT) as writer:
            wait_until(lambda: writer.output.count("\n") >= enough, writer.output)  # noqa: B023 - called here
            writer.kill()
    app = make_app(data, clock=ManualClock(datetime.now(UTC) + CLAIM))
    outbox = SqlalchemyOutbox(engine, app)
    outbox.hand_over()
    with engine.connect() as connection:
        orders = set(connection.scalars(select(ORDERS.c.id)))
    assert len(orders) >= 20 * KILLS * 2 // 3
    assert not outbox.rows(State.PENDING)
    assert not outbox.rows(State.FAILED)
    tasks = {}
    token = None
    while True:
        page = app.tasks(limit=100, page_token=token)
        tasks.update({task.id: task for task in page.items})
        token = page.next_page_token
        if token is None:
            break
    assert tasks.keys() == orders
    assert {task.revision for task in tasks.values()} == {1}
    app.close()
