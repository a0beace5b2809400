"""Sums of usage are right whatever happens between two passes: nothing counts twice, nothing is missing."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE
from tests.engine.usage.harness import create_hourly

from cloudsched import App, Context
from cloudsched.adapters.sqlite.records import SqliteRecords
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents import owner_usage
from cloudsched.domain.documents.owner_usage import UsageFront
from cloudsched.domain.documents.record import Record
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.engine.sweep.sweeper import Sweep
from cloudsched.engine.usage import ledger as ledger_module
from cloudsched.engine.usage import usage_report as summation_module
from cloudsched.engine.usage.ledger import UsageLedger, sum_sheets
from cloudsched.engine.usage.usage_report import UsageSummation
from cloudsched.errors import NotFound
from cloudsched.testing import Simulation

MONTH = "2027-01"


class Killed(ControlFlow):
    """The process has died."""


@pytest.fixture
def app(app: App) -> App:
    @app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=3)

    return app


def make_summation(sim: Simulation) -> UsageSummation:
    store, clock = sim.app.container.store, sim.app.container.clock
    return UsageSummation(store, clock, UsageLedger(store.records, clock))


def sum_month(sim: Simulation, owner: str = "ada", month: str = MONTH) -> UsageCounts:
    sheets = sim.app.container.engine.usage().list_sheets(owner, month)
    return sum(sum_sheets(sheets).values(), start=UsageCounts())


def test_sums_follow_the_tasks(sim: Simulation) -> None:
    """Of each owner and of all, whoever is asked first, and as often as one likes."""
    for owner in ("ada", "ada", "bob"):
        create_hourly(sim, owner=owner)
    summation = make_summation(sim)
    for hours in (1, 5, 0, 7):
        sim.advance(hours * HOUR)
        summation.sum_up("ada")
        summation.sum_up(None)
        summation.sum_up("ada")
    assert sum_month(sim).queries == 2 * 13 * 3
    assert sum_month(sim, "bob").queries == 13 * 3
    assert sum_month(sim).executions == 26


@pytest.mark.parametrize("seed", range(6))
def test_a_process_that_dies_anywhere_counts_nothing_twice_and_loses_nothing(
    sim: Simulation, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after any write of a pass or of a deletion; tasks come and go meanwhile, with and without their id."""
    monkeypatch.setattr(owner_usage, "MAX_MARKS", 3)
    monkeypatch.setattr(ledger_module, "MAX_MARKS", 3)
    monkeypatch.setattr(ledger_module, "OTHER_SHEETS", 4)
    monkeypatch.setattr(summation_module, "_PAGE", 2)
    monkeypatch.setattr(summation_module, "MAX_TASKS", 4)
    chance, expected = random.Random(seed), 0  # noqa: S311 - which process dies
    write = SqliteRecords.write
    is_dangerous = False

    def write_or_die(self: Any, record: Record, expected_version: Any) -> Any:  # noqa: ANN401 - the adapter's
        fate = chance.random() if is_dangerous else 1
        if fate < 0.1:
            raise Killed
        version = write(self, record, expected_version)
        if fate < 0.2:
            raise Killed
        return version

    monkeypatch.setattr(SqliteRecords, "write", write_or_die)
    ids = [create_hourly(sim, id=f"t{number}") for number in range(6)]
    for _ in range(12):
        alive = len(sim.app.tasks().items)
        is_dangerous = False
        sim.advance(HOUR)
        expected += 3 * alive
        is_dangerous = True
        for act in chance.choices(("sum", "sum", "all", "delete", "create"), k=3):
            victim = chance.choice(ids)
            try:
                if act == "delete":
                    sim.app.delete(victim)
                elif act == "create":
                    create_hourly(sim, id=victim)
                else:
                    make_summation(sim).sum_up("ada" if act == "sum" else None)
            except (Killed, NotFound):
                continue
    is_dangerous = False
    sim.advance(5 * MINUTE)
    sim.app.sweep()
    for _ in range(10):
        make_summation(sim).sum_up("ada")
    assert sum_month(sim).queries == expected


def test_sums_outlive_the_tasks_and_their_records(sim: Simulation) -> None:
    """Tasks that ended are removed after their retention, and deleted ones at once; the sum stays the same."""
    task_id = create_hourly(sim, execution_retention=HOUR)
    once = sim.app.create(owner="ada", handler="spend", retention=HOUR)
    sim.advance(2 * DAY)
    with pytest.raises(NotFound):
        sim.app.get(once.id)
    sim.app.delete(task_id)
    assert sum_month(sim).queries == 48 * 3 + 3
    sim.advance(3 * DAY)
    sim.app.delete(create_hourly(sim))  # writes the sheet, which adds up what was gone for a day
    sim.advance(365 * DAY)
    (sheet,) = sim.app.container.engine.usage().list_sheets("ada", MONTH)
    assert len(json.loads(sheet.marks)) == 1
    assert sum_month(sim).queries == 48 * 3 + 3


def test_another_task_of_the_same_id_counts_anew(sim: Simulation) -> None:
    """Its counts begin at zero, and are added to those of the one before."""
    for _ in range(3):
        create_hourly(sim, id="t")
        sim.advance(2 * HOUR)
        make_summation(sim).sum_up("ada")
        sim.app.delete("t")
    assert sum_month(sim).queries == 3 * 2 * 3


def test_what_was_read_before_a_later_pass_changes_nothing(sim: Simulation) -> None:
    """Two passes at once: the one that read the tasks earlier writes later."""
    task_id = create_hourly(sim)
    sim.advance(HOUR)
    old = sim.app.get(task_id)
    sim.advance(HOUR)
    make_summation(sim).sum_up("ada")
    sim.app.container.engine.usage().note([old])
    assert sum_month(sim).queries == 6


def test_a_sum_that_takes_weeks_is_warned_of_once_a_day(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ended tasks may go by themselves before they are counted; nobody would see that otherwise."""
    began_at = sim.now
    front = UsageFront(id="all", owner="system", created_at=began_at, updated_at=began_at, pass_began_at=began_at)
    front = front.model_copy(update={"page_token": "more"})
    monkeypatch.setattr(UsageSummation, "sum_up", lambda *_, **__: front)

    def count_warnings() -> int:
        sim.app.container.many_tasks.sweep(Sweep)
        return sum(getattr(each, "action", "") == "usage_behind" for each in caplog.records)

    assert count_warnings() == 0
    sim.clock.advance(20 * DAY)
    assert [count_warnings(), count_warnings()] == [1, 1]
    sim.clock.advance(DAY)
    assert count_warnings() == 2
