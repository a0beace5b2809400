"""An execution says how far each of its deliveries has come, in words that people understand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Settings, Task
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.domain.documents.responses import DeliveryReport
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.testing import Simulation

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


def make(sim: Simulation) -> Task:
    return app.create(
        owner="ada", title="Plants", handler="say", schedule=sim.now, delivery_channels=["EMAIL"], category="REMINDER"
    )


def put(sim: Simulation, **fields: Any) -> None:
    contact = {"email": {"address": "ada@example.com", "verified": True}}
    sim.app.container.people.put("ada", PersonSpec.model_validate({**contact, **fields}), by=OWN_CODE)


def read_report(sim: Simulation, task: Task) -> DeliveryReport:
    (execution,) = sim.executions(task.id)
    (report,) = app.deliveries(task.id, execution.id)
    return report


def test_what_an_attempt_s_failure_delays_is_retried(sim: Simulation) -> None:
    """With the attempt's reason, until it is sent."""
    put(sim)
    task = make(sim)
    sim.channel("EMAIL").is_down = True
    sim.advance(timedelta(seconds=1))
    failed = read_report(sim, task)
    assert (failed.status, failed.attempts, failed.sent_at) == ("RETRYING", 1, None)
    assert "lets it fail" in str(failed.reason)
    sim.channel("EMAIL").is_down = False
    sim.advance(HOUR)
    sent = read_report(sim, task)
    assert (sent.status, sent.sent_at is not None) == ("SENT", True)


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
