"""A person's preferences are the default channels of new tasks, and cost nothing where people are unused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.authorities import A_USER
from tests.engine.harness import HOUR

from cloudsched import App, Settings
from cloudsched.adapters.operation_counts import Counts
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.delivery_channels import DeliveryChannel
from cloudsched.domain.documents.person import PersonSpec
from cloudsched.engine.state.record_changes import change_person
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

app = App(Settings())


@app.handler("say", access="users")
def say() -> str:
    """Return the text of a mail."""
    return "water them"


@pytest.fixture
def sim() -> Iterator[Simulation]:
    """A simulation with a person who wants reminders by mail."""
    with Simulation(app, preferred_channels=True) as simulation:
        email = {"address": "ada@example.com", "verified": True}
        app.put_person("ada", email=email, channels={"REMINDER": ["EMAIL", "WEB"]})
        make(simulation, owner="eve")  # the first creation of a minute looks whether anybody has a budget
        yield simulation


def make(sim: Simulation, **more: Any) -> tuple[str, ...]:
    """Create a task, and return its channels."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "say", "category": "REMINDER", **more}
    return sim.app.create(**fields).delivery_channels


def test_a_task_that_names_no_channels_gets_those_that_its_owner_prefers(sim: Simulation) -> None:
    """Those of its category, and it delivers by them."""
    assert make(sim) == ("EMAIL", "WEB")
    assert make(sim, category="REPORT") == ()
    assert make(sim, owner="bob") == ()
    sim.advance(HOUR)
    assert [mail.address for mail in sim.sent("EMAIL")] == ["ada@example.com"]


def test_a_task_that_names_channels_keeps_them_and_reads_nothing(sim: Simulation) -> None:
    """An empty list is a choice, too."""
    before = sim.counts.copy()
    assert make(sim, delivery_channels=["WEB"]) == ("WEB",)
    assert make(sim, delivery_channels=[]) == ()
    assert sim.counts.since(before) == Counts(reads=0, commits=2, writes=2, dispatches=2)


def test_preferences_cost_one_read_and_tasks_of_the_system_none(sim: Simulation) -> None:
    """The system is nobody who could prefer anything."""
    before = sim.counts.copy()
    make(sim)
    assert sim.counts.since(before) == Counts(reads=1, commits=1, writes=1, dispatches=1)
    before = sim.counts.copy()
    make(sim, owner="system")
    assert sim.counts.since(before) == Counts(reads=0, commits=1, writes=1, dispatches=1)


def test_a_later_change_of_preferences_changes_no_task(sim: Simulation) -> None:
    """They are read at the creation; an opt-out counts at sending."""
    task = sim.app.create(owner="ada", handler="say", category="REMINDER")
    web_only = {Category.REMINDER: (DeliveryChannel.WEB,)}
    parts = sim.app.container
    change_person(
        parts.store.records, parts.clock, "ada", lambda known: known.model_copy(update={"channels": web_only})
    )
    assert sim.app.get(task.id).delivery_channels == ("EMAIL", "WEB")
    sim.advance(HOUR)
    assert sim.sent("EMAIL") == []


def test_preferences_never_reach_the_channels_of_the_operator(sim: Simulation) -> None:
    """Users may not name OPERATOR, and so not by their preferences either."""
    PeopleWiring.of(sim.app.container).people.put(
        "eve", PersonSpec.model_validate({"channels": {"REMINDER": ["OPERATOR", "WEB"]}}), by=A_USER
    )
    assert make(sim, owner="eve") == ("WEB",)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), False),
        (Settings(smtp_url="smtps://mail.example.com", mail_from="ada@example.com"), True),
        (Settings(fcm_project="plants"), True),
        (Settings(preferred_channels=True), True),
        (Settings(preferred_channels=False, smtp_url="smtps://mail.example.com", mail_from="ada@example.com"), False),
    ],
)
def test_preferences_are_read_where_people_are_reached(settings: Settings, *, expected: bool) -> None:
    """An app without mail and pushes pays nothing, unless it asks for it; and asking survives the environment."""
    assert settings.reads_preferences is expected
    assert Settings.from_environment(settings.to_environment()).reads_preferences is expected
