"""What things cost, counted as Google bills it: the table of docs/run/costs.md."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE
from tests.engine.usage.harness import put_budget

from cloudsched import App, Context, Done, Schedule, Settings, TaskDraft
from cloudsched.adapters.operation_counts import Counts
from cloudsched.domain.documents.usage import UsageCounts
from cloudsched.testing import Simulation

app = App(Settings())


@app.handler("tick")
def tick() -> None: ...


@app.handler("say")
def say() -> str:
    return "It is time."


@app.handler("broken", retry=False)
def broken() -> None:
    raise ValueError("broken")


@app.handler("wait")
def wait(ctx: Context) -> None:
    ctx.sleep(9 * DAY)


@app.handler("follow")
def follow(ctx: Context) -> Done:
    return Done(then=[TaskDraft.of(owner="ada", handler="tick", schedule=ctx.now() + 9 * DAY)])


@app.handler("talk")
def talk(ctx: Context) -> None:
    ctx.progress("half way")
    ctx.heartbeat()
    ctx.notify("Hi", "there")


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation(app) as simulation:
        yield simulation


def measure_cost(sim: Simulation, span: timedelta) -> Counts:
    before = sim.counts.copy()
    sim.advance(span)
    return sim.counts.since(before)


def make(sim: Simulation, **more: object) -> str:
    """Create an hourly task that has run once."""
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T00:30:00")
    task = sim.app.create(TaskDraft.of(**{"owner": "ada", "handler": "tick", "schedule": hourly, **more}))
    sim.advance(HOUR)
    return task.id


def test_a_creation_costs_one_commit_and_one_dispatch(sim: Simulation) -> None:
    """No read comes before it: the commit itself says whether the id is taken.

    Once a minute, a process that creates tasks looks whether anybody has a budget.
    """
    for reads in (1, 0, 0):
        before = sim.counts.copy()
        sim.app.create(owner="ada", handler="tick")
        assert sim.counts.since(before) == Counts(reads=reads, commits=1, writes=1, dispatches=1)
    sim.advance(MINUTE)
    before = sim.counts.copy()
    sim.app.create(owner="ada", handler="tick", schedule=Schedule.after(HOUR))
    assert sim.counts.since(before).reads == 1


def test_where_somebody_has_a_budget_each_creation_asks_for_its_owners(sim: Simulation) -> None:
    """A budget that this process has set counts at once; one that another has set, within a minute."""
    sim.app.create(owner="ada", handler="tick")
    put_budget(sim, 10, owner="bob")
    assert sim.app.create(owner="bob", handler="tick").has_budget
    before = sim.counts.copy()
    assert not sim.app.create(owner="ada", handler="tick").has_budget
    assert sim.counts.since(before) == Counts(reads=1, commits=1, writes=1, dispatches=1)


def test_a_successful_occurrence_costs_one_read_two_commits_and_one_dispatch(sim: Simulation) -> None:
    """The claim is one document, the end two: the task and its record."""
    make(sim)
    assert measure_cost(sim, HOUR) == Counts(reads=1, commits=2, writes=3, dispatches=1)
    assert measure_cost(sim, 24 * HOUR) == Counts(reads=24, commits=48, writes=72, dispatches=24)


def test_the_page_counts_what_is_measured(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The dollars on the page about costs are made of its counts."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / ".ci" / "site"))
    import costs  # type: ignore[import-not-found]  # noqa: PLC0415 - a module of the site's own folder

    sim.add_worker("gpu")
    cases: tuple[tuple[dict[str, str], UsageCounts], ...] = (
        ({}, costs.OCCURRENCE),
        ({"lock_key": "door"}, costs.OCCURRENCE + costs.LOCK),
        ({"pull": "gpu"}, costs.OCCURRENCE + costs.WORKER),
    )
    for more, expected in cases:
        task = make(sim, **more)
        sim.advance(MINUTE)
        before = sum((each.counts for each in sim.app.get(task).usage), UsageCounts())
        sim.advance(10 * HOUR)
        after = sum((each.counts for each in sim.app.get(task).usage), UsageCounts())
        sim.app.cancel(task)
        for name in ("executions", "reads", "writes", "deletes", "dispatches"):
            assert getattr(after, name) - getattr(before, name) == 10 * getattr(expected, name), (more, name)


URL = "https://example.com/done"
MORE: dict[str, tuple[dict[str, object], Counts]] = {
    "a lock key": ({"lock_key": "door"}, Counts(reads=2, writes=1, deletes=1)),
    "a mail with nothing to say": ({"delivery_channels": ["EMAIL", "WEB"]}, Counts()),
    "a failure in a row": ({"handler": "broken", "delivery_channels": ["EMAIL", "WEB"]}, Counts()),
    "a mail": ({"handler": "say", "delivery_channels": ["EMAIL"]}, Counts(reads=2, commits=2, writes=5, dispatches=1)),
    "a callback": ({"on_completion": {"webhook": URL}}, Counts(reads=2, commits=2, writes=4, dispatches=1)),
    "a ping at the end": ({"ping": {"url": f"{URL}?x=1"}}, Counts(reads=2, commits=2, writes=4, dispatches=1)),
    "a ping at both ends": (
        {"ping": {"url": URL, "startUrl": f"{URL}?x=1"}},
        Counts(reads=5, commits=4, writes=8, dispatches=2),
    ),
}
"""What costs something, and how much, each time the task runs."""


@pytest.mark.parametrize("what", MORE)
def test_what_an_occurrence_costs_more(sim: Simulation, what: str) -> None:
    """The lock is read and written when it is taken, and read and deleted when it is freed; the others are tasks."""
    fields, more = MORE[what]
    sim.add_person("ada")
    plain = make(sim)
    without = measure_cost(sim, HOUR)
    sim.app.cancel(plain)
    make(sim, **fields)
    assert measure_cost(sim, HOUR).since(without) == more


def test_a_cancel_with_a_callback_costs_a_read_a_document_and_a_dispatch_more(sim: Simulation) -> None:
    """Sending it costs what any callback costs."""
    costs = []
    for callback in (None, {"webhook": URL}):
        task = sim.app.create(owner="ada", handler="wait", on_completion=callback)
        sim.advance(MINUTE)
        before = sim.counts.copy()
        sim.app.cancel(task.id)
        costs.append(sim.counts.since(before))
    assert costs[1].since(costs[0]) == Counts(reads=1, writes=1, dispatches=1)


def test_a_follow_up_costs_a_document_and_a_dispatch(sim: Simulation) -> None:
    """It is in the commit of the success."""
    make(sim, handler="follow")
    assert measure_cost(sim, HOUR) == Counts(reads=1, commits=2, writes=4, dispatches=2)


def test_progress_and_messages_cost_a_commit_or_a_document(sim: Simulation) -> None:
    """Progress and heartbeat are a commit each, a message one document of the last commit."""
    make(sim, handler="talk")
    assert measure_cost(sim, HOUR) == Counts(reads=1, commits=4, writes=6, dispatches=1)


def test_a_duplicate_delivery_costs_one_read_and_changes_nothing(sim: Simulation) -> None:
    """A delivery after the end of its run writes nothing, and its one dispatch is refused as a duplicate."""
    make(sim)
    sent = sim.queue.deliveries[-1]
    before, known = sim.counts.copy(), len(sim.queue.deliveries)
    verdict = sim.app.deliver(sent.body, sim.sign(sent.body))
    assert verdict.action == "dropped"
    assert sim.counts.since(before) == Counts(reads=1, commits=0, writes=0, dispatches=1)
    sim.advance(HOUR)
    assert len(sim.queue.deliveries) == known + 1


def test_a_sweep_that_finds_nothing_costs_one_read(sim: Simulation) -> None:
    """However many tasks there are."""
    for _ in range(20):
        sim.app.create(owner="ada", handler="tick", schedule=sim.now + 9 * DAY)
    sim.app.sweep()  # the first one looks everywhere, as one in ten minutes does
    before = sim.counts.copy()
    sim.app.sweep()
    assert sim.counts.since(before) == Counts(reads=1)
