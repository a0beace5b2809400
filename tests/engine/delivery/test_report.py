"""An execution says how far each of its deliveries has come, in words that people understand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from cloudsched import App, Settings
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.testing import Simulation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched import Task
    from cloudsched.domain.documents.responses import DeliveryReport

app = App(Settings())
HOUR = timedelta(hours=1)


@app.handler("say")
def say() -> str:
    """Return what is delivered."""
    return "Water the plants"


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """It is midnight in UTC."""
    with Simulation(app) as simulation:
        yield simulation


def make(sim: Simulation, *, after: timedelta = timedelta(0)) -> Task:
    at = sim.now + after
    return app.create(
        owner="ada", title="Plants", handler="say", schedule=at, delivery_channels=["EMAIL"], category="REMINDER"
    )


def put(sim: Simulation, **fields: Any) -> None:
    contact = {"email": {"address": "ada@example.com", "verified": True}}
    sim.app.container.people.put("ada", PersonSpec.model_validate({**contact, **fields}), by=OWN_CODE)


def read_report(sim: Simulation, task: Task) -> DeliveryReport:
    (execution,) = sim.executions(task.id)
    (report,) = app.deliveries(task.id, execution.id)
    return report


def test_what_quiet_hours_hold_is_held_even_after_a_failed_attempt(sim: Simulation) -> None:
    """RETRYING is what an attempt's failure alone delays."""
    put(sim, quietHours={"from": "03:00", "until": "08:00"})
    task = make(sim, after=3 * HOUR - timedelta(seconds=4))
    sim.channel("EMAIL").is_down = True
    sim.advance(3 * HOUR - timedelta(seconds=3))
    failed = read_report(sim, task)
    assert (failed.status, failed.attempts) == ("RETRYING", 1)
    assert "lets it fail" in str(failed.reason)
    sim.advance(HOUR)
    held = read_report(sim, task)
    assert (held.status, held.attempts, held.sent_at) == ("HELD", 1, None)
    assert "uiet hours" in str(held.reason)
    sim.channel("EMAIL").is_down = False
    sim.advance(8 * HOUR)
    assert read_report(sim, task).status == "SENT"


def test_what_the_person_does_not_want_is_suppressed(sim: Simulation) -> None:
    """With the reason."""
    put(sim, channels={"REMINDER": ["WEB"]})
    task = make(sim)
    sim.advance(HOUR)
    report = read_report(sim, task)
    assert (report.status, report.message_id) == ("SUPPRESSED", None)
    assert report.reason


def test_an_execution_without_deliveries_has_none(sim: Simulation) -> None:
    """Nor has one that was not delivered yet."""
    task = app.create(owner="ada", title="Plants", handler="say", schedule=sim.now, delivery_channels=["WEB"])
    sim.advance(HOUR)
    (execution,) = sim.executions(task.id)
    assert app.deliveries(task.id, execution.id) == []
