"""The simulation refuses what the cloud would refuse, and takes its users' time in order."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest

from cloudsched import App, Schedule, Settings
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.errors import QueueUnavailable
from cloudsched.testing import START, Simulation

app = App(Settings())
DAY = timedelta(days=1)


@app.handler("tick")
def tick() -> None: ...


def test_its_queue_takes_nothing_beyond_thirty_days() -> None:
    """As Cloud Tasks does; so a test that passes here does not fail there."""
    with Simulation(app) as sim:
        sim.queue.create(QueueMessage("near", START + 30 * DAY, b"", ""))
        with pytest.raises(QueueUnavailable, match="30 days"):
            sim.queue.create(QueueMessage("far", START + 30 * DAY + timedelta(seconds=1), b"", ""))


def test_a_name_is_taken_once() -> None:
    """Also after it was delivered: what is sent again under its name is not delivered again."""
    with Simulation(app) as sim:
        app.create(owner="ada", title="T", handler="tick")
        (task,) = sim.queue._model.tasks.values()  # noqa: SLF001 - to send it again
        again = QueueMessage(task.id, START, task.target.body, task.target.headers["X-Cloudsched-Token"])
        for _ in range(3):
            sim.queue.create(again)
            sim.advance(timedelta(minutes=5))
        assert len(sim.queue.deliveries) == 1


@pytest.mark.parametrize("is_lost", [True, False])
def test_a_decade_of_birthdays(is_lost: bool) -> None:  # noqa: FBT001 - a parameter
    """A yearly task runs ten times in ten years, each on its instant; within a minute of it if the queue loses all."""
    with Simulation(app) as sim:
        yearly = Schedule(rrule="FREQ=YEARLY", dtstart="2027-03-28T02:30:00", timezone="Europe/Paris")
        task = app.create(owner="ada", title="Birthday", handler="tick", schedule=yearly)
        for _ in range(10):
            sim.advance(100 * DAY)
            if is_lost:
                sim.queue.purge()
            sim.advance(265.25 * DAY)
        found = sim.executions(task.id)
        late = [one.started_at - one.scheduled_for for one in found if one.started_at]
        assert [one.scheduled_for.year for one in found] == list(range(2027, 2037))
        assert max(late) <= timedelta(seconds=80 if is_lost else 0)


def test_the_app_has_its_own_parts_back_afterwards() -> None:
    """Also when the test inside has failed."""
    settings = app.settings

    def fails() -> None:
        with Simulation(app) as sim:
            assert sim.app.settings is not settings
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert app.settings is settings


def test_a_worker_finds_the_same_on_a_machine_that_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the queue ends after seconds of real time, for whoever waits for it elsewhere; here nobody does."""
    monkeypatch.setattr("cloudsched.runtime.container.time", SimpleNamespace(monotonic=count(step=10).__next__))
    with Simulation(app) as sim:
        made = [app.create(owner="ada", title="T", handler="tick", pull="gpu") for _ in range(3)]
        sim.add_worker("gpu")
        sim.advance(timedelta(minutes=5))
        assert {app.get(task.id).status.value for task in made} == {"COMPLETED"}
