"""An instant that passed less than ten seconds ago is now; what ran at it is not run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND, only_run

from cloudsched import App, Context, Schedule
from cloudsched.domain.transitions.edits import JUST_NOW
from cloudsched.errors import InvalidInput
from cloudsched.testing import START, Simulation

RAN: list[str] = []
"""The executions that have run: a record could be overwritten."""
TOMORROW = Schedule.once(START + DAY)


@pytest.fixture
def app(app: App) -> App:
    """An app whose handler notes that it ran."""
    RAN.clear()

    @app.handler("work")
    def work(ctx: Context) -> None:
        RAN.append(ctx.execution_id)

    return app


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    """A simulation whose clock moves, as every real one."""
    with Simulation(app, each_look=timedelta(milliseconds=1)) as simulation:
        yield simulation


def create(sim: Simulation, **fields: Any) -> None:
    sim.app.create(**({"id": "t", "handler": "work"} | fields))


def edit(sim: Simulation, **fields: Any) -> None:
    """Change the task, which was to run tomorrow if there is none yet."""
    if not any(each.id == "t" for each in sim.app.tasks().items):
        create(sim, schedule=TOMORROW)
    sim.app.update("t", **fields)


def edit_without_schedule(sim: Simulation, schedule: object, **fields: Any) -> None:
    del schedule
    sim.app.update("t", **fields)


def count_runs(sim: Simulation) -> int:
    """Return how often the task has run, once everything that is due has."""
    sim.advance(2 * SECOND)
    return len(RAN)


either = pytest.mark.parametrize("ask", [create, edit])


@either
def test_what_passed_nine_seconds_ago_runs_at_once(sim: Simulation, ask: Callable[..., None]) -> None:
    """Its record has the instant that was asked for."""
    at = sim.now - 9 * SECOND
    ask(sim, schedule=at)
    sim.advance(timedelta(0))
    execution = only_run(sim, "t")
    assert (execution.scheduled_for, sim.app.get("t").status) == (at, "COMPLETED")


@either
def test_what_passed_eleven_seconds_ago_is_refused(sim: Simulation, ask: Callable[..., None]) -> None:
    """The error says what time it is."""
    with pytest.raises(InvalidInput, match="is in the past: it is 2027-01-01T00:00:00Z now"):
        ask(sim, schedule=sim.now - 11 * SECOND)


@either
def test_a_minimum_lead_refuses_it_as_too_near(app: App, ask: Callable[..., None]) -> None:
    """The time in the error is the clock's, not the one that was asked for."""
    with Simulation(app, minimum_lead=MINUTE) as sim:
        with pytest.raises(InvalidInput, match=r"nearer than the minimum lead of 0:01:00: it is 2027-01-01T00:00:00Z"):
            ask(sim, schedule=sim.now - 9 * SECOND)
        with pytest.raises(InvalidInput, match="is in the past"):
            ask(sim, schedule=sim.now - 11 * SECOND)


@either
def test_the_same_request_again_runs_nothing_twice(sim: Simulation, ask: Callable[..., None]) -> None:
    """Neither while it still counts as now, nor later."""
    at = sim.now - SECOND
    for _ in range(8):
        ask(sim, schedule=at)
        assert count_runs(sim) == 1
    assert sim.now > at + JUST_NOW


@pytest.mark.parametrize(
    "fields", [{"until": START + DAY}, {"max_runs": 5}, {"title": "New"}], ids=lambda each: next(iter(each))
)
@pytest.mark.parametrize("ask", [create, edit_without_schedule], ids=["create", "edit"])
def test_another_edit_does_not_start_it_again(
    sim: Simulation, ask: Callable[..., None], fields: dict[str, Any]
) -> None:
    """A task that ran a moment ago has ended, as one that ran long ago."""
    at = sim.now
    create(sim, schedule=at)
    assert count_runs(sim) == 1
    if "title" in fields:
        ask(sim, schedule=at, **fields)
    else:
        with pytest.raises(InvalidInput, match="is over: the task is COMPLETED"):
            ask(sim, schedule=at, **fields)
    assert (count_runs(sim), sim.app.get("t").status) == (1, "COMPLETED")


def test_an_instant_that_ran_is_not_run_again_after_others(sim: Simulation) -> None:
    """However many schedules there were in between."""
    instants = list[Any]()
    for number in range(1, 4):
        instants.append(sim.now)
        create(sim, schedule=instants[-1])
        assert count_runs(sim) == number
    for at in instants[:-1]:
        with pytest.raises(InvalidInput, match=r"is in the past|was processed already"):
            sim.app.update("t", schedule=at)
    assert count_runs(sim) == 3


def test_the_occurrence_of_a_rule_that_ran_is_not_run_again(sim: Simulation) -> None:
    """A single instant may be one of those of the schedule before it."""
    create(sim, schedule=Schedule.every(60 * SECOND, start=START + 60 * SECOND))
    sim.advance(61 * SECOND)
    assert count_runs(sim) == 1
    with pytest.raises(InvalidInput):
        sim.app.update("t", schedule=START + 60 * SECOND)
    assert count_runs(sim) == 1
    sim.app.update("t", schedule=sim.now - SECOND)
    assert count_runs(sim) == 2


def test_a_cancelled_run_is_not_revived_by_another_field(sim: Simulation) -> None:
    """The instant that it was to run at is over, although it passed only just now."""
    create(sim, schedule=sim.now + SECOND)
    sim.app.cancel("t")
    sim.advance(2 * SECOND)
    with pytest.raises(InvalidInput, match="is over: the task is CANCELLED"):
        sim.app.update("t", until=START + DAY)
    assert count_runs(sim) == 0
