"""What a task counts for itself is what was billed and what its handler reported, once."""

from __future__ import annotations

from datetime import datetime

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND
from tests.engine.usage.harness import create_hourly

from cloudsched import Context
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.task import Task
from cloudsched.domain.documents.usage import MAX_HANDLERS, OTHER_HANDLERS, UsageCounts, add_usage
from cloudsched.testing import Simulation


class Killed(ControlFlow):
    """The process has died."""


@pytest.fixture
def sim(sim: Simulation) -> Simulation:
    failures = list[None]()

    @sim.app.handler("spend")
    def spend(ctx: Context) -> None:
        ctx.used(queries=3, tokens=7)
        if failures:
            failures.pop()
            raise ValueError("not yet")

    sim.app.handler("idle")(lambda: None)
    sim.failures = failures  # type: ignore[attr-defined]
    return sim


def counts(sim: Simulation, task_id: str) -> UsageCounts:
    return sum((each.counts for each in sim.app.get(task_id).usage), start=UsageCounts())


@pytest.mark.parametrize("more", [{}, {"lock_key": "door"}, {"query_per_execution": 2.5}], ids=str)
def test_operations_are_counted_as_they_are_billed(sim: Simulation, more: dict[str, object]) -> None:
    """Reads, writes, deletions and dispatches of a day agree with what the store and the queue were asked for."""
    task_id = create_hourly(sim, "idle", **more)
    sim.advance(HOUR)
    known, before = counts(sim, task_id), sim.counts.copy()
    sim.advance(DAY)
    billed, used = sim.counts.since(before), counts(sim, task_id)
    assert used.executions - known.executions == 24
    assert used.writes - known.writes == billed.writes
    assert used.deletes - known.deletes == billed.deletes
    assert used.dispatches - known.dispatches == billed.dispatches
    assert used.reads - known.reads == billed.reads
    assert used.estimated_queries == 25 * float(str(more.get("query_per_execution", 0)))


def test_a_claim_counts_with_the_end_of_its_lease(sim: Simulation) -> None:
    """While its handler runs, the sums are as before; then they are what was billed, though a process died."""
    seen = list[UsageCounts]()

    @sim.app.handler("look", retry=1)
    def look(ctx: Context) -> None:
        seen.append(counts(sim, ctx.task.id))
        if len(seen) == 1:
            raise Killed

    before = sim.counts.copy()
    task = sim.app.create(owner="ada", handler="look")
    created = counts(sim, task.id)
    with pytest.raises(Killed):
        sim.advance(10 * MINUTE)
    assert counts(sim, task.id) == created
    sim.advance(DAY)
    billed, used = sim.counts.since(before), counts(sim, task.id)
    (record,) = sim.app.executions(task.id).items
    assert (record.status, record.attempt_count) == ("SUCCEEDED", 2)
    assert seen[0] == created
    assert used.writes == billed.writes
    assert used.executions == 1


def test_hops_are_counted_without_writing_anything(sim: Simulation) -> None:
    """A year away is twelve hops: twelve reads and twelve dispatches more. Its creation was counted a year before."""
    task = sim.app.create(owner="ada", handler="idle", schedule=sim.now + 365 * DAY)
    sim.advance(366 * DAY)
    used = counts(sim, task.id)
    assert (used.reads, used.dispatches, used.writes, used.executions) == (13, 13, 3, 1)


def test_every_attempt_counts(sim: Simulation) -> None:
    """One that fails has used what it has used, and a retry by hand adds to that: the record and the month say so."""
    sim.failures.extend([None] * 2)  # type: ignore[attr-defined]
    task = sim.app.create(owner="ada", handler="spend", retry={"maxRetries": 1})
    sim.advance(HOUR)
    assert counts(sim, task.id).queries == 6
    sim.app.retry(task.id)
    sim.advance(HOUR)
    (record,) = sim.app.executions(task.id).items
    assert (record.status, record.queries, record.tokens, record.attempt_count) == ("SUCCEEDED", 9, 21, 3)
    used = counts(sim, task.id)
    assert (used.queries, used.tokens, used.executions) == (9, 21, 2)


def test_steps_of_an_attempt_whose_process_died_count_at_the_next_end(sim: Simulation) -> None:
    """They are in the journal, and a replay reports what was used beside them. Nothing is counted twice."""
    app, is_killed = sim.app, list[bool]()

    @app.handler("die", retry=3)
    def die(ctx: Context) -> None:
        ctx.step("look", lambda: ctx.used(queries=10))
        ctx.used(queries=1)
        ctx.sleep(SECOND)
        if not is_killed:
            is_killed.append(True)
            raise Killed

    task = app.create(owner="ada", handler="die")
    while not is_killed:
        try:
            sim.advance(10 * MINUTE)
        except Killed:
            break
    sim.advance(HOUR)
    (record,) = app.executions(task.id).items
    assert record.status == "SUCCEEDED"
    assert record.queries == 10 + 1
    assert counts(sim, task.id).queries == record.queries


@pytest.mark.parametrize("from_step", [None, 1, 2])
def test_a_durable_execution_that_is_retried_by_hand_counts_what_it_does_anew(
    sim: Simulation, from_step: int | None
) -> None:
    """What is kept is not counted again, whether in steps or beside them. From the first step, all is done anew."""
    down = [True]

    @sim.app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        ctx.used(queries=1)
        ctx.step("first", lambda: ctx.used(queries=10))
        ctx.sleep(HOUR)
        ctx.used(queries=2)
        ctx.step("second", lambda: ctx.used(queries=100))
        if down.pop():
            raise OSError

    task = sim.app.create(owner="ada", handler="work")
    sim.advance(2 * HOUR)
    assert counts(sim, task.id).queries == 113
    down.append(False)
    sim.app.retry(task.id, from_step=from_step)
    sim.advance(2 * HOUR)
    (record,) = sim.app.executions(task.id).items
    anew = {None: 0, 2: 100, 1: 113}[from_step]
    assert (record.status, record.queries, counts(sim, task.id).queries) == ("SUCCEEDED", 113 + anew, 113 + anew)


def count(task: Task, now: datetime) -> Task:
    return task.model_copy(update={"usage": add_usage(task.usage, task.handler, now, {"queries": 1})})


def test_the_month_before_january_is_december(sim: Simulation) -> None:
    """Which two months are kept does not depend on the year that they are in."""
    task = sim.app.create(owner="ada", handler="idle").model_copy(update={"usage": ()})
    kept = []
    for month in ("2026-11", "2026-12", "2027-01", "2027-02"):
        task = count(task, datetime.fromisoformat(f"{month}-15T12:00:00+00:00"))
        kept.append([each.month for each in task.usage])
    assert kept == [["2026-11"], ["2026-11", "2026-12"], ["2026-12", "2027-01"], ["2027-01", "2027-02"]]


def test_a_task_counts_for_a_bounded_number_of_handlers(sim: Simulation) -> None:
    """However often a user changes the handler, the document stays small, and nothing goes uncounted."""
    task = sim.app.create(owner="ada", handler="idle")
    now = datetime.fromisoformat("2027-01-01T00:00:00+00:00")
    for number in range(3 * MAX_HANDLERS):
        task = count(task.model_copy(update={"handler": f"h{number}"}), now)
    assert len(task.usage) <= MAX_HANDLERS + 1
    assert sum(each.counts.queries for each in task.usage) == 3 * MAX_HANDLERS
    assert task.usage[-1].handler == OTHER_HANDLERS
