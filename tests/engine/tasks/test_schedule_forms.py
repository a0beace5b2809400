"""The forms in which Python and JSON give a schedule: each means the same wherever it is given."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import HOUR, SECOND

from cloudsched import App, Schedule, TaskDraft
from cloudsched.errors import AmbiguousSchedule, InvalidSchedule
from cloudsched.testing import START, Simulation

FORMS: dict[str, tuple[Any, datetime]] = {
    "a schedule": (Schedule.once(START + HOUR), START + HOUR),
    "a datetime": (START + HOUR, START + HOUR),
    "once, after a delay": (Schedule.after(HOUR), START + HOUR),
    "a delay in JSON": ({"delay": "PT1H"}, START + HOUR),
    "now": ("now", START),
    "no delay": ("PT0S", START),
    "every so often": (Schedule.every(HOUR), START),
    "cron": ("0 9 * * *", START.replace(hour=9)),
    "cron with a zone": ({"cron": "0 9 * * *", "timezone": "Europe/Paris"}, START.replace(hour=8)),
    "a rule": ("FREQ=DAILY;BYHOUR=7;BYMINUTE=0;BYSECOND=0", START.replace(hour=7)),
    "an instant": ("2027-01-01T11:00:00Z", START.replace(hour=11)),
}


@pytest.fixture
def app(app: App) -> App:
    app.handler("tick")(lambda: None)
    return app


@pytest.mark.parametrize(("form", "first"), FORMS.values(), ids=FORMS)
def test_every_form_is_taken_wherever_a_schedule_is_given(app: App, form: Any, first: datetime) -> None:  # noqa: ANN401 - of any form
    """By create and update, by a draft from Python and by one from JSON."""
    wanted: dict[str, Any] = {"handler": "tick"}
    with Simulation(app) as sim:
        created = app.create(**wanted, schedule=form)
        other = app.create(**wanted, schedule=START + 30 * HOUR)
        drafted = app.create(TaskDraft.of(**wanted, schedule=form))
        edited = app.update(other.id, schedule=form)
        assert {each.next_execution_time for each in (created, drafted, edited)} == {first}
        made = app.create(TaskDraft(**wanted, schedule=form))
        assert made.next_execution_time == first
        assert sim.now == START


@pytest.mark.parametrize("at", [START, START + timedelta(microseconds=1), START + 0.999999 * SECOND])
def test_a_rule_without_a_start_begins_within_the_second(app: App, at: datetime) -> None:
    """Whatever the clock's fraction of a second is: it is the same in production as in a simulation."""
    with Simulation(app, start=at) as sim:
        task = app.create(handler="tick", schedule=Schedule.every(HOUR))
        assert task.next_execution_time is not None
        assert at <= task.next_execution_time < at + SECOND
        sim.advance(2 * HOUR + SECOND)
        assert len(sim.executions(task.id)) == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("0 0 9 * * 1-5", "schedule: '0 0 9 * * 1-5' has 6 fields, and cron has five (leave out seconds"),
        (HOUR, "schedule: is datetime.timedelta(seconds=3600), which says neither once nor repeatedly (Give"),
        ({"delay": "-PT1S"}, "schedule.delay: is -1 day, 23:59:59, in the past"),
        ({"delay": "PT1H", "rrule": "FREQ=DAILY"}, "schedule.rrule: cannot stand beside `delay`"),
        (START.replace(tzinfo=None), "schedule.at: has no time zone"),
        ({"cron": "0 9 * * *", "timezone": "Europe/Pariss"}, "schedule.timezone: "),
        ({"rrule": [f"FREQ=DAILY;BYHOUR={hour}" for hour in range(21)]}, "schedule.rrule: 21 rules (at most 20)"),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_field_and_a_hint(app: App, wrong: Any, message: str) -> None:  # noqa: ANN401 - of any form
    """The same by each way in."""
    wanted: dict[str, Any] = {"handler": "tick"}
    with Simulation(app):
        task = app.create(**wanted)
        for give in (
            lambda: app.create(**wanted, schedule=wrong),
            lambda: app.update(task.id, schedule=wrong),
            lambda: TaskDraft.of(**wanted, schedule=wrong),
        ):
            with pytest.raises(InvalidSchedule) as refused:
                give()
            assert str(refused.value).startswith(message)


def test_a_draft_without_an_app_does_not_read_words() -> None:
    """Their meaning depends on the clock and the settings; the error names the methods that read them."""
    with pytest.raises(InvalidSchedule, match=r"give them to app\.create or app\.update\."):
        TaskDraft.of(handler="tick", schedule="every day at 9")


def test_a_question_stores_nothing(app: App) -> None:
    """Its readings are schedules that can be given back as they are."""
    with Simulation(app):
        with pytest.raises(AmbiguousSchedule, match="can mean") as caught:
            app.create(handler="tick", schedule="every second Tuesday at 9:00")
        assert len(caught.value.readings) == 2
        assert all(Schedule.model_validate(each["schedule"]) for each in caught.value.readings)
        assert list(app.tasks().items) == []
