"""A snooze: what has run last runs again later, and the schedule stays as it is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND

from cloudsched import App, Context, Schedule, TaskStatus
from cloudsched.domain.documents.execution import ExecutionStatus, Trigger
from cloudsched.domain.documents.verbs import Action, Verb
from cloudsched.domain.transitions.manual_verbs import find_task_verbs
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.queries.explanations import explain_task
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.testing import START, Simulation


@pytest.fixture
def app(app: App) -> App:
    @app.handler("remind")
    def remind(ctx: Context) -> str:
        return f"{ctx.scheduled_for:%H:%M}"

    @app.handler("long", expected_duration=HOUR)
    def long(ctx: Context) -> str:
        if ctx.scheduled_for == START:
            app.snooze(ctx.task.id)
        return "done"

    return app


def make(sim: Simulation, **more: Any) -> str:
    return sim.app.create(id="t", **{"handler": "remind", "schedule": "every hour", **more}).id


def ran(sim: Simulation) -> list[tuple[datetime, str]]:
    return sorted((each.scheduled_for, each.trigger.value) for each in sim.executions("t"))


def at(minutes: float) -> datetime:
    return START + minutes * MINUTE


def test_it_runs_again_in_ten_minutes_and_the_schedule_stays(sim: Simulation) -> None:
    """The record names its own trigger and what was snoozed; the history says who did it."""
    make(sim)
    sim.advance(5 * MINUTE)
    before = sim.app.get("t")
    snoozed = sim.app.snooze("t")
    assert (snoozed.schedule, snoozed.next_execution_time) == (before.schedule, before.next_execution_time)
    assert snoozed.history[-1].action is Action.SNOOZED
    explained = explain_task(sim.app.container.store, sim.app.container.clock, snoozed, shows_holders=True)
    assert explained.summary == "The snoozed run starts on Fri 1 Jan 2027 at 00:15 (UTC)."
    sim.advance(HOUR)
    assert ran(sim) == [(at(0), "SCHEDULE"), (at(15), "SNOOZE"), (at(60), "SCHEDULE")]
    record = next(each for each in sim.executions("t") if each.trigger is Trigger.SNOOZE)
    assert (record.status, record.message) == (
        ExecutionStatus.SUCCEEDED,
        "20270101T000000Z again, since it was snoozed.",
    )
    assert sim.app.get("t").run_count == 2


def test_what_comes_due_before_it_runs_too(sim: Simulation) -> None:
    """Whatever the overlap policy: a run that waits is no open run."""
    make(sim, schedule=Schedule.every(5 * MINUTE), overlap="skip")
    sim.advance(MINUTE)
    sim.app.snooze("t", 12 * MINUTE)
    sim.advance(16 * MINUTE)
    assert [when for when, why in ran(sim) if why == "SCHEDULE"] == [at(0), at(5), at(10), at(15)]
    assert [when for when, why in ran(sim) if why == "SNOOZE"] == [at(13)]


def test_a_second_click_does_not_run_it_twice(sim: Simulation) -> None:
    """Within the minute nothing changes; later, the snooze that waits is moved."""
    make(sim, schedule="every day at 0:00")
    sim.app.trigger("t")
    sim.advance(timedelta(0))
    first = sim.app.snooze("t")
    sim.advance(59 * SECOND)
    assert sim.app.snooze("t") == first
    sim.advance(5 * MINUTE)
    sim.app.snooze("t", "20 minutes")
    sim.advance(HOUR)
    assert [why for _, why in ran(sim)].count("SNOOZE") == 1
    assert max(when for when, why in ran(sim) if why == "SNOOZE") == at(20) + 5 * MINUTE + 59 * SECOND


@pytest.mark.parametrize("failing", [False, True])
def test_a_reminder_that_was_for_once_can_be_snoozed(sim: Simulation, *, failing: bool) -> None:
    """It is active again until it has run; then it has ended as before, and can be snoozed once more."""
    if failing:
        sim.app.handler("fails", retry=0)(lambda: 1 / 0)
    make(sim, schedule="in 5 minutes", handler="fails" if failing else "remind")
    sim.advance(6 * MINUTE)
    ended = sim.app.get("t").status
    assert ended is (TaskStatus.FAILED if failing else TaskStatus.COMPLETED)
    for _ in range(2):
        assert sim.app.snooze("t").status is TaskStatus.ACTIVE
        sim.advance(11 * MINUTE)
        assert sim.app.get("t").status is ended
    assert [why for _, why in ran(sim)] == ["SCHEDULE", "SNOOZE", "SNOOZE"]


def test_a_pause_holds_it_and_a_cancel_ends_it(sim: Simulation) -> None:
    """As they do with any run that waits."""
    make(sim, schedule="every day at 0:00")
    sim.app.trigger("t")
    sim.advance(timedelta(0))
    sim.app.snooze("t")
    sim.app.pause("t")
    sim.advance(HOUR)
    assert "SNOOZE" not in [why for _, why in ran(sim)]
    sim.app.resume("t")
    sim.advance(timedelta(0))
    assert [why for _, why in ran(sim)].count("SNOOZE") == 1
    sim.app.snooze("t")
    sim.app.cancel("t")
    sim.advance(HOUR)
    assert {each.status for each in sim.executions("t") if each.trigger is Trigger.SNOOZE} == {
        ExecutionStatus.SUCCEEDED,
        ExecutionStatus.CANCELLED,
    }


@pytest.mark.parametrize("state", ["not run", "paused", "cancelled"])
def test_what_has_nothing_to_snooze_says_so(sim: Simulation, state: str) -> None:
    """And the verb is not offered."""
    make(sim, schedule="every day at 12:00")
    if state != "not run":
        sim.app.trigger("t")
        sim.advance(timedelta(0))
        sim.app.pause("t") if state == "paused" else sim.app.cancel("t")
    with pytest.raises(NotAllowed, match=r"snooze"):
        sim.app.snooze("t")
    assert Verb.SNOOZE not in find_task_verbs(sim.app.get("t"), lambda: sim.now, OWN_CODE.actor)


@pytest.mark.parametrize(
    "duration",
    ["PT0S", "now", "every day at 9", "blue", "", "yesterday", 30 * DAY + MINUTE, timedelta(0), -HOUR],
    ids=str,
)
def test_a_duration_that_is_none_is_refused(sim: Simulation, duration: str | timedelta) -> None:
    """With its field, and nothing is changed."""
    make(sim)
    sim.advance(MINUTE)
    before = sim.app.get("t")
    with pytest.raises(InvalidInput) as refused:
        sim.app.snooze("t", duration)
    assert refused.value.field == "duration"
    assert sim.app.get("t") == before


def test_a_run_that_is_under_way_can_be_snoozed(sim: Simulation) -> None:
    """A reminder is read while its handler still runs."""
    make(sim, handler="long", schedule="now")
    sim.advance(HOUR)
    assert ran(sim) == [(at(0), "SCHEDULE"), (at(10), "SNOOZE")]
    assert sim.app.get("t").status is TaskStatus.COMPLETED
