"""The final status of a one-time task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE, only_run

from cloudsched import App, Cancel, Context, Fail, Schedule, TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import START, Simulation

IN_A_MINUTE = Schedule.once(START + MINUTE)
AT_TWO = {"dtstart": "2027-01-01T02:00:00"}
ONE_RUN: dict[str, dict[str, Any]] = {
    "an instant": {"at": "2027-01-01T02:00:00Z"},
    "a local time": {"local": "2027-01-01T03:00:00", "timezone": "Europe/Paris"},
    "an empty rule": {"rrule": "", **AT_TWO},
    "a start alone, elsewhere": {"dtstart": "2027-01-01T03:00:00", "timezone": "Europe/Paris"},
    "a start alone that leaves out another day": {**AT_TWO, "exdates": ["2027-01-05"]},
    "a start alone on a calendar": {**AT_TWO, "calendars": [{"id": "weekends"}]},
    "the owner's time": {**AT_TWO, "timezone": "owner"},
    "a count of one": {"rrule": "FREQ=DAILY;COUNT=1", **AT_TWO},
    "a count of one, without a start": {"rrule": "FREQ=DAILY;COUNT=1;BYHOUR=2"},
    "a count of one on a calendar": {"rrule": "COUNT=1;FREQ=HOURLY;BYHOUR=2", "calendars": [{"id": "weekends"}]},
}


OUTAGE = None
"""Nothing is delivered until long after the run was due."""


def succeed() -> str:
    return "done"


def fail() -> Fail:
    return Fail("no")


def cancel() -> Cancel:
    return Cancel("not needed")


@pytest.mark.parametrize("form", ONE_RUN.values(), ids=ONE_RUN)
@pytest.mark.parametrize(
    ("what", "more", "status"),
    [
        (succeed, {}, "COMPLETED"),
        (fail, {}, "FAILED"),
        (fail, {"pause_after_failures": 1}, "FAILED"),
        (cancel, {}, "CANCELLED"),
        (OUTAGE, {"expiration": HOUR}, "EXPIRED"),
        (OUTAGE, {"catch_up": "none"}, "EXPIRED"),
        (OUTAGE, {}, "COMPLETED"),
    ],
)
def test_one_run_ends_its_task_in_the_same_way_however_it_is_written(
    sim: Simulation,
    form: dict[str, Any],
    what: Callable[[], object] | None,
    more: dict[str, Any],
    status: TaskStatus,
) -> None:
    """As its run did: so many tables have an empty rule and a start where others have an instant."""
    app = sim.app
    app.handler("work", retry=False)(what or succeed)
    app.put_person("ada", timezone="UTC")
    task = app.create(owner="ada", handler="work", schedule=form, **more)
    assert task.next_execution_time == START + 2 * HOUR
    if what is OUTAGE:
        sim.clock.advance(4 * HOUR)
    sim.advance(3 * HOUR)
    ended = app.get(task.id)
    assert (ended.is_one_time, ended.status) == (True, status)


def test_what_may_run_twice_is_not_one_time(sim: Simulation) -> None:
    """A clock that shows a time twice, a second date, a second rule, a count of more."""
    app = sim.app
    app.handler("work")(succeed)
    forms: list[dict[str, Any]] = [
        {"dtstart": "2027-10-31T02:30:00", "timezone": "Europe/Paris", "fold": "both"},
        {**AT_TWO, "rdates": ["2027-01-02"]},
        {"rrule": "FREQ=DAILY;COUNT=1", **AT_TWO, "rdates": ["2027-01-02"]},
        {"rrule": ["FREQ=DAILY;COUNT=1", "FREQ=DAILY;COUNT=1;BYHOUR=3"], **AT_TWO},
        {"rrule": "FREQ=DAILY;COUNT=10", **AT_TWO},
    ]
    for number, form in enumerate(forms):
        task = app.create(id=f"t{number}", handler="work", schedule=form)
        assert not task.is_one_time
        assert len(app.upcoming(task.id, 2)) == 2


def test_a_start_alone_is_changed_in_words_as_an_instant_is(sim: Simulation) -> None:
    """So "at 5" moves it, and no rule is missed."""
    app = sim.app
    app.handler("work")(succeed)
    for form in ({"rrule": "", **AT_TWO}, {"at": "2027-01-01T02:00:00Z"}):
        task = app.create(handler="work", schedule=form)
        assert app.update(task.id, schedule="at 05:00").next_execution_time == START + 5 * HOUR


def test_a_task_that_was_stored_as_recurring_still_runs_and_is_known_again(app: App, sim: Simulation) -> None:
    """Releases before this one stored a start alone as recurring. Its task ends as they said, and starts not again."""
    app.handler("work", retry=False)(fail)
    spec: dict[str, Any] = {
        "id": "t",
        "owner": "ada",
        "handler": "work",
        "schedule": {"rrule": "", **AT_TWO},
    }
    app.create(**spec)
    stored = app.container.store.load("t")
    assert stored is not None
    app.container.store.commit(Commit(stored.task.model_copy(update={"is_one_time": False}), stored))
    sim.advance(3 * HOUR)
    assert [each.status for each in sim.executions("t")] == ["FAILED"]
    assert (app.get("t").status, app.create(**spec).revision) == ("COMPLETED", 1)


def test_a_count_of_one_that_is_created_again_does_not_run_again(app: App, sim: Simulation) -> None:
    """It counts from where it began, as every rule does."""
    app.handler("work")(succeed)
    for _ in range(2):
        task = app.create(id="t", handler="work", schedule="FREQ=HOURLY;COUNT=1")
        sim.advance(2 * HOUR)
    assert app.get("t").revision == task.revision == 1
    assert len(sim.executions("t")) == 1


def test_a_manual_run_does_not_decide_the_final_status(app: App, sim: Simulation) -> None:
    """If the scheduled run failed, the task is FAILED, even though a manual run succeeded later."""

    @app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        if "manual" not in ctx.execution_id:
            app.trigger(ctx.task.id)
            raise ValueError("no")

    task = app.create(handler="work", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    assert [e.status for e in sim.executions(task.id)] == ["FAILED", "SUCCEEDED"]
    assert app.get(task.id).status == "FAILED"


def test_a_failure_while_the_task_was_paused_decides_its_status(app: App, sim: Simulation) -> None:
    """When the task is resumed with nothing left to run, it is FAILED and not COMPLETED."""

    @app.handler("work", retry=False)
    def work(ctx: Context) -> None:
        app.pause(ctx.task.id)
        raise ValueError("no")

    task = app.create(handler="work", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    assert app.resume(task.id).status == "FAILED"


def test_a_short_store_outage_while_a_handler_reports_progress_does_not_fail_it(app: App, sim: Simulation) -> None:
    """The lease is still valid, so the handler continues; its progress is stored with its result."""

    @app.handler("work")
    def work(ctx: Context) -> None:
        commit = app.container.store.commit
        app.container.store.commit = fail  # type: ignore[assignment, method-assign]
        ctx.progress("half way")
        app.container.store.commit = commit  # type: ignore[method-assign]

    def fail(*_arguments: object, **_named: object) -> None:
        raise StoreUnavailable("The store", "a short outage")

    task = app.create(handler="work", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    execution = only_run(sim, task)
    assert execution.status == "SUCCEEDED"
    assert [step.text for step in execution.progress] == ["half way"]
