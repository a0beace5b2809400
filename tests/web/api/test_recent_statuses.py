"""A task says how its latest executions ended, from its own document: in lists, too, and at no further operation."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.web.callers import DAY, HOUR, MINUTE, SECOND
from tests.web.conftest import fetch

from cloudsched import App, Context, Schedule, Settings
from cloudsched.domain.transitions.run_records import MAX_RECENT
from cloudsched.testing import Simulation

BAD: set[int] = set()
"""The hours at which the handler fails."""


@pytest.fixture
def app() -> App:
    app = App(Settings())
    BAD.clear()

    @app.handler("work", retry=0)
    def work(ctx: Context) -> None:
        if ctx.scheduled_for.hour in BAD:
            raise ValueError("not now")

    @app.handler("asks")
    def asks(ctx: Context) -> None:
        ctx.wait_for("approved", timeout=9 * DAY)

    return app


def create(sim: Simulation, handler: str = "work", **fields: Any) -> str:
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    return sim.app.create(owner="ada", handler=handler, schedule=hourly, **fields).id


@pytest.mark.parametrize("seed", range(3))
def test_it_has_the_statuses_of_the_latest_executions(sim: Simulation, call: Callable[..., Any], seed: int) -> None:
    """However many ran and whichever failed: the last twelve in their order, alone and in lists."""
    chance = random.Random(seed)  # noqa: S311 - a test's
    BAD.update(chance.sample(range(24), 9))
    task_id = create(sim)
    assert fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"] == []
    for _ in range(4):
        sim.advance(HOUR * chance.randint(1, 9))
        wanted = [each.status.value for each in sim.executions(task_id)][-MAX_RECENT:]
        assert fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"] == wanted
        (listed,) = fetch(call, "/v1/tasks")["tasks"]
        assert listed["recentStatuses"] == wanted


@pytest.mark.parametrize(
    "retries", [[(2, True), (3, True)], [(3, True), (2, True)], [(2, False), (3, True), (2, True)]]
)
def test_an_earlier_run_that_is_retried_counts_once_too(
    sim: Simulation, call: Callable[..., Any], retries: list[tuple[int, bool]]
) -> None:
    """In whatever order, and while the retry waits. One that fails again replaces its failure, and adds none."""
    BAD.update({2, 3})
    task_id = create(sim)
    sim.advance(4 * HOUR)
    for hour, succeeds in retries:
        (run,) = (each for each in sim.executions(task_id) if each.scheduled_for.hour == hour)
        if succeeds:
            BAD.discard(hour)
        sim.app.retry(task_id, run.id)
        assert len(fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"]) == 4
        sim.advance(30 * SECOND)
        wanted = sorted(each.status.value for each in sim.executions(task_id))
        assert sorted(fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"]) == wanted


def test_what_is_skipped_and_what_is_open_count(sim: Simulation, call: Callable[..., Any]) -> None:
    """Occurrences that an open one keeps from running are skipped; the open one is last, whatever came after it."""
    task_id = create(sim, "asks")
    sim.advance(4 * HOUR)
    assert fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"][-1] == "SUSPENDED"
    sim.app.send_event(task_id, "approved")
    sim.advance(MINUTE)
    found = fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"]
    assert found[0] == "SUCCEEDED"
    assert "SKIPPED" in found
    assert len(found) <= MAX_RECENT
    sim.advance(HOUR)
    sim.app.cancel(task_id)
    assert fetch(call, f"/v1/tasks/{task_id}")["recentStatuses"][-1] == "CANCELLED", "its run waited for an answer"
