"""Events sent to a durable handler: which wait consumes one, how many may be stored, and when they are removed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.engine.harness import DAY, MINUTE

from cloudsched import App, Context, EventTimedOut, Overlap, Schedule, Settings, Task
from cloudsched.domain.transitions.suspend import MAX_EVENTS
from cloudsched.errors import NotAllowed
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

MONTHLY = Schedule.every(30 * DAY, start=START)
"""One execution after the other."""


@pytest.fixture
def app() -> App:
    """Return an app whose handler waits a week for an approval, and then rests for a day."""
    app = App(Settings())

    @app.handler("work")
    def work(ctx: Context) -> object:
        try:
            return ctx.wait_for("approved", timeout=7 * DAY)
        except EventTimedOut:
            return "nobody approved"
        finally:
            ctx.sleep(DAY)

    return app


def test_an_awaited_event_is_accepted_when_the_task_is_full_of_others(
    app: App, sim: Simulation, create: Callable[..., Task]
) -> None:
    """Twenty events with a name that no handler awaits do not keep out the one that a handler awaits."""
    task = create()
    sim.advance(MINUTE)
    for _ in range(MAX_EVENTS):
        app.send_event(task.id, "aproved")
    app.send_event(task.id, "approved", "yes")
    with pytest.raises(NotAllowed, match="full of 20 events"):
        app.send_event(task.id, "approved", "once more, before the first is taken")
    with pytest.raises(NotAllowed, match="full of 20 events"):
        app.send_event(task.id, "aproved")
    sim.run_until_idle()
    assert sim.executions(task.id)[0].content == "yes"


def test_each_waiting_execution_can_receive_its_event_when_the_task_is_full(
    app: App, sim: Simulation, create: Callable[..., Task]
) -> None:
    """There is room for one event for each of them, and for no more."""
    task = create(schedule=Schedule.every(DAY, start=START), overlap=Overlap.ALLOW, maxRuns=2)
    sim.advance(DAY + MINUTE)
    first, second = (run.execution_id for run in app.get(task.id).runs)
    for _ in range(MAX_EVENTS):
        app.send_event(task.id, "aproved")
    for only in (second, first):
        app.send_event(task.id, "approved", only, execution_id=only)
        with pytest.raises(NotAllowed, match="full of 20 events"):
            app.send_event(task.id, "approved", "twice", execution_id=only)
    sim.run_until_idle()
    assert {each.id: each.content for each in sim.executions(task.id)} == {first: first, second: second}


@pytest.mark.parametrize(("is_named", "answers"), [(True, ["yes", "nobody approved"]), (False, ["yes", "yes, yes"])])
def test_an_event_for_one_execution_reaches_no_other(
    app: App, sim: Simulation, create: Callable[..., Task], answers: list[str], *, is_named: bool
) -> None:
    """A second click on January's approval does not approve February, if the event names its execution."""
    task = create(schedule=MONTHLY, maxRuns=2)
    sim.advance(MINUTE)
    (run,) = app.get(task.id).runs
    for answer in ("yes", "yes, yes"):
        app.send_event(task.id, "approved", answer, execution_id=run.execution_id if is_named else None)
    sim.advance(2 * DAY)
    assert len(app.get(task.id).events) == (0 if is_named else 1), "it goes with what it was for"
    sim.run_until_idle()
    assert [each.content for each in sim.executions(task.id)] == answers


@pytest.mark.parametrize("when", ["before it begins", "when it has ended", "of another one"])
def test_an_event_for_an_execution_that_is_not_open_is_refused(
    app: App, sim: Simulation, create: Callable[..., Task], when: str
) -> None:
    task = create(schedule=Schedule.every(30 * DAY, start=START + DAY))
    sim.advance(timedelta(0) if when == "before it begins" else 20 * DAY)
    only = "20261224T180000Z" if when == "of another one" else "20270102T000000Z"
    with pytest.raises(NotAllowed, match=f"without an open execution '{only}'. Name an open execution"):
        app.send_event(task.id, "approved", execution_id=only)
    assert app.get(task.id).events == ()


def test_a_wait_ends_at_the_very_instant_of_its_timeout(sim: Simulation, create: Callable[..., Task]) -> None:
    """The wake-up at that instant ends it: it is not put off to a later one again and again."""
    task = create(schedule=START + MINUTE)
    sim.run_until_idle()
    (execution,) = sim.executions(task.id)
    assert (execution.content, execution.finished_at) == ("nobody approved", START + MINUTE + 8 * DAY)


@pytest.mark.parametrize("end", ["cancel", "delete"])
def test_the_events_of_an_execution_are_removed_when_its_task_ends(
    app: App, sim: Simulation, create: Callable[..., Task], end: str
) -> None:
    task = create()
    sim.advance(8 * DAY - MINUTE)
    (run,) = app.get(task.id).runs
    app.send_event(task.id, "approved", "too late", execution_id=run.execution_id)
    app.send_event(task.id, "later", "for whoever comes")
    getattr(app, end)(task.id)
    left = [] if end == "delete" else [event.name for event in app.get(task.id).events]
    assert left == ([] if end == "delete" else ["later"])


def test_an_execution_consumes_the_earliest_event_that_it_may(
    app: App, sim: Simulation, create: Callable[..., Task]
) -> None:
    """An earlier event for another execution does not delay it."""
    task = create(schedule=Schedule.every(DAY, start=START), overlap=Overlap.ALLOW, maxRuns=2)
    sim.advance(DAY + MINUTE)
    first, second = (run.execution_id for run in app.get(task.id).runs)
    app.send_event(task.id, "approved", "the second's", execution_id=second)
    app.send_event(task.id, "approved", "anybody's")
    sim.run_until_idle()
    found = {each.id: each.content for each in sim.executions(task.id)}
    assert found[second] == "the second's"
    assert found[first] == "anybody's"
