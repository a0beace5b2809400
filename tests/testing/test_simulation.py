"""The simulation refuses what the cloud refuses, and runs everything in order of time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.instants import HOUR, SECOND

from cloudsched import App, Context, Schedule
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import QueueUnavailable, Unauthenticated
from cloudsched.testing import START, Simulation

DAY = timedelta(days=1)


@pytest.fixture
def app(app: App) -> App:
    """An app with a handler that does nothing."""
    app.handler("tick")(lambda: None)
    return app


def test_its_queue_refuses_dispatches_beyond_thirty_days(sim: Simulation) -> None:
    """Cloud Tasks refuses it as well, so a test that passes here does not fail in production."""
    sim.queue.create(QueueMessage("near", START + 30 * DAY, b"", ""))
    with pytest.raises(QueueUnavailable, match="30 days"):
        sim.queue.create(QueueMessage("far", START + 30 * DAY + SECOND, b"", ""))


def test_each_look_moves_the_clock(app: App, sim: Simulation) -> None:
    """As every real clock: cloudsched never sees an instant twice, and who reads `now` moves nothing."""
    before = sim.now
    task = app.create(owner="ada", handler="tick", schedule=sim.now)
    assert before < task.created_at <= sim.now == sim.clock.at
    assert task.next_execution_time == before
    sim.advance(timedelta(0))
    (execution,) = sim.executions(task.id)
    assert execution.started_at is not None
    assert execution.finished_at is not None
    assert execution.scheduled_for < task.created_at < execution.started_at < execution.finished_at
    assert execution.finished_at < before + SECOND


def test_a_redelivered_dispatch_runs_nothing_twice(app: App, sim: Simulation) -> None:
    """`redeliver` passes a dispatch to the executor at any time: early it hops, late it is dropped."""
    task = app.create(owner="ada", handler="tick", schedule=sim.now + DAY)
    (sent,) = sim.pending()
    sim.redeliver(sent)
    assert not sim.executions(task.id)
    sim.advance(DAY)
    assert sim.redeliver(sent).action == "dropped"
    assert len(sim.executions(task.id)) == 1
    with pytest.raises(Unauthenticated):
        sim.redeliver(replace(sent, body=b"{}"))


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_yearly_task_runs_each_year_for_a_decade(app: App, is_lost: bool, sim: Simulation) -> None:  # noqa: FBT001 - a parameter
    """A yearly task runs ten times in ten years, each on its instant; within a minute of it if the queue loses all."""
    yearly = Schedule(rrule="FREQ=YEARLY", dtstart="2027-03-28T02:30:00", timezone="Europe/Paris")
    task = app.create(owner="ada", title="Birthday", handler="tick", schedule=yearly)
    for _ in range(10):
        sim.advance(100 * DAY)
        if is_lost:
            sim.queue.purge()
        sim.advance(265.25 * DAY)
    executions = sim.executions(task.id)
    late = [one.started_at - one.scheduled_for for one in executions if one.started_at]
    assert [one.scheduled_for.year for one in executions] == list(range(2027, 2037))
    assert max(late) <= timedelta(seconds=80 if is_lost else 1)


def test_the_app_s_own_settings_are_restored_afterwards(app: App) -> None:
    """They return even if the body of the simulation has failed."""
    settings = app.container.settings

    def fail_in_simulation() -> None:
        with Simulation(app) as sim:
            assert sim.app.container.settings is not settings
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_simulation()
    assert app.container.settings is settings


def test_whom_nobody_has_stored_gets_nothing_as_in_production(app: App, sim: Simulation) -> None:
    """`add_person` stores somebody whom every channel reaches, but for what the test says otherwise."""

    @app.handler("tell")
    def tell(ctx: Context) -> None:
        ctx.notify("Plants", "Water them")

    channels = [DeliveryChannel(each) for each in ("EMAIL", "MOBILE", "WEBHOOK", "WEB")]
    sim.add_person("user:ada@home")
    sim.add_person("grace", email={"address": "g@example.com", "verified": False})
    for owner in ("user:ada@home", "grace", "nobody"):
        app.create(owner=owner, handler="tell", delivery_channels=channels)
    sim.advance(DAY)
    reached = {
        owner: [each for each in channels[:-1] if sim.sent(each, to=owner)]
        for owner in ("user:ada@home", "grace", "nobody")
    }
    assert reached == {"user:ada@home": channels[:-1], "grace": ["MOBILE", "WEBHOOK"], "nobody": []}
    assert [len(sim.inbox(owner)) for owner in reached] == [1, 1, 1]


def test_it_runs_until_idle_for_a_day_at_most_unless_it_is_told_more(app: App, sim: Simulation) -> None:
    """A recurring task is never idle: the clock moves by no year without being asked to; what is left is said."""
    app.create(owner="ada", title="Once", handler="tick", schedule=START + 3 * HOUR)
    assert sim.run_until_idle()
    app.create(owner="ada", title="Hourly", handler="tick", schedule=Schedule.every(HOUR, start=START + DAY))
    assert not sim.run_until_idle()
    assert sim.now <= START + 3 * HOUR + DAY + SECOND
    assert not sim.run_until_idle(7 * DAY)
    assert sim.now > START + 7 * DAY
