"""What an `App` itself adds to the engine: schedules in plain words."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from cloudsched import App, Schedule
from cloudsched.errors import AmbiguousSchedule, InvalidInput
from cloudsched.testing import Simulation


@pytest.fixture
def greeter(app: App) -> App:
    """The app, with a handler that needs no payload."""

    @app.handler("greet")
    def greet() -> None: ...

    return app


def test_words_name_the_occurrences_of_their_zone(greeter: App, sim: Simulation) -> None:
    """`schedule="…", timezone="…"` runs when the words say, and words change the schedule that there is."""
    task = greeter.create(
        owner="ada", title="Greet", handler="greet", schedule="every weekday at 9:00", timezone="Europe/Paris"
    )
    sim.advance(timedelta(days=1))
    greeter.update(task.id, schedule="not on Mondays")
    sim.advance(timedelta(days=6))
    assert [f"{each.scheduled_for:%a %H:%M}" for each in sim.executions(task.id)] == [
        *("Fri 08:00", "Tue 08:00", "Wed 08:00", "Thu 08:00")
    ]


def test_a_question_stores_nothing(greeter: App, sim: Simulation) -> None:
    """Its readings are schedules that can be given back as they are."""
    with pytest.raises(AmbiguousSchedule, match="can mean") as caught:
        greeter.create(owner="ada", title="Greet", handler="greet", schedule="every second Tuesday at 9:00")
    assert len(caught.value.readings) == 2
    assert all(Schedule.model_validate(each["schedule"]) for each in caught.value.readings)
    assert list(greeter.tasks().items) == []
    assert sim.now is not None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"schedule": "whenever it suits"}, "schedule"),
        ({"schedule": "every day at 9:00", "timezone": "Paris, Texas, USA"}, "timezone"),
        ({"schedule": Schedule(rrule="FREQ=DAILY"), "timezone": "Europe/Paris"}, "timezone"),
        ({"schedule": "every day at 9:00", "timezone": 7}, "timezone"),
    ],
)
def test_what_is_no_schedule_names_its_field(greeter: App, sim: Simulation, fields: dict[str, Any], field: str) -> None:
    """Nothing is stored, and the error says which field to mend."""
    with pytest.raises(InvalidInput) as caught:
        greeter.create(owner="ada", title="Greet", handler="greet", **fields)
    assert caught.value.field == field
    assert list(greeter.tasks().items) == []
    assert sim.now is not None
