"""Whatever a user does, what is used beyond the budget is at most what was running when it was used up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.authorities import as_user
from tests.drafts_app import make_app as make_drafts_app
from tests.engine.harness import DAY, MINUTE, SECOND
from tests.engine.usage.harness import put_budget, status

from cloudsched import App, Context, Done, Settings, Task, TaskDraft
from cloudsched.domain.documents.owner_usage import UsageSheet
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.drafts.model_reader import DRAFTS
from cloudsched.drafts.wiring import DraftsWiring
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

BUDGET, MOST = 40, 10
"""What ada may use in the month, and the most that one attempt uses."""


class Spending:
    """What was used, as those see it who are paid for it: at once, whatever becomes of the attempt."""

    def __init__(self) -> None:
        self.used = 0
        self.starts_when_used_up = 0
        self.starts = 0
        self.limit: int | None = None

    def spend(self, ctx: Context, queries: int) -> None:
        self.starts += 1
        self.starts_when_used_up += self.limit is not None and self.used >= self.limit
        self.used += queries
        ctx.used(queries=queries)


@pytest.fixture
def spending() -> Spending:
    return Spending()


@pytest.fixture
def app(spending: Spending) -> App:
    """Handlers that spend in every way."""
    app = App(Settings())

    @app.handler("spend", access="users", retry=3, tool=True, user_queues=["gpu"], draft="Spends")
    def spend(ctx: Context, payload: dict[str, Any]) -> None:
        spending.spend(ctx, min(MOST, int(payload.get("queries", MOST))))
        if payload.get("fails"):
            raise ValueError("broken")

    @app.handler("walk", access="users")
    def walk(ctx: Context) -> None:
        for _ in range(5):
            ctx.step("spend", lambda: spending.spend(ctx, MOST))
            ctx.sleep(MINUTE)

    @app.handler("call", access="users")
    def call(ctx: Context) -> None:
        ctx.gather(*(ctx.call("spend", {}) for _ in range(5)))

    @app.handler("follow", access="users")
    def follow(ctx: Context) -> Done:
        spending.spend(ctx, MOST)
        later = {"at": (ctx.now() + MINUTE).isoformat()}
        return Done(then=[TaskDraft.of(owner="ada", handler="follow", schedule=later)])

    return app


def set_budget(sim: Simulation, spending: Spending, queries: int = BUDGET) -> None:
    put_budget(sim, queries)
    spending.limit = queries


def create(sim: Simulation, *, by_code: bool = False, **fields: Any) -> str:
    """Create a task as ada does through the API, or as a server does for ada."""
    handler = {} if "children" in fields else {"handler": "spend"}
    draft = {"owner": "ada", "schedule": {"at": sim.now.isoformat()}, **handler, **fields}
    return (sim.app if by_code else as_user(sim.app)).put(sim.app.to_draft(draft))[0].id


WAYS: dict[str, dict[str, Any]] = {
    "one-time tasks": {},
    "tasks that fail": {"payload": {"fails": True}},
    "a task every minute": {"schedule": {"rrule": "FREQ=MINUTELY"}},
    "steps": {"handler": "walk"},
    "calls": {"handler": "call"},
    "children": {"children": [{"handler": "spend"}] * 5},
    "parallel children": {"children": [{"handler": "spend"}] * 5, "parallel": True},
    "follow-ups": {"handler": "follow"},
    "workers": {"pull": {"queue": "gpu"}},
}


def work(sim: Simulation) -> None:
    """Let a worker run what is offered."""
    container = sim.app.container
    for claim in PullWiring.of(container).work_queue.claim(WorkerFilter(queue="gpu", worker="w"), THIS_PROCESS, 5):
        attempt = PullWiring.of(container).worker_claims.start(claim)
        if attempt is not None:
            PullWiring.of(container).worker_claims.finish(attempt, run_procedure(container.executor.call(attempt)))


@pytest.mark.parametrize("by_code", [False, True], ids=["by the owner", "by code"])
@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"workers"}))
def test_one_way_after_the_other_ends_at_the_budget(
    sim: Simulation, spending: Spending, way: str, *, by_code: bool
) -> None:
    """Ten of them, one a minute: no attempt starts once the budget is used up, and nothing is lost."""
    set_budget(sim, spending)
    made = []
    for _ in range(10):
        made.append(create(sim, by_code=by_code, **WAYS[way]))
        sim.advance(MINUTE)
    assert spending.starts_when_used_up == 0
    assert BUDGET <= spending.used < BUDGET + MOST
    statuses = {status(sim, each) for each in made}
    assert statuses <= {TaskStatus.PAUSED, TaskStatus.COMPLETED, TaskStatus.ACTIVE, TaskStatus.FAILED}
    assert "used up its budget" in sim.app.get(made[-1]).message or way in {"calls", "children", "parallel children"}
    spending.limit = None
    put_budget(sim, 10**9)
    if way in {"one-time tasks", "calls", "children", "parallel children", "steps"}:
        sim.run_until_idle(2 * DAY)
        assert {status(sim, each) for each in made} == {TaskStatus.COMPLETED}, "each has run in the end"


@pytest.mark.parametrize("way", ["delete each task", "erase everything"])
def test_what_is_deleted_was_used(sim: Simulation, spending: Spending, way: str) -> None:
    """Deleting tasks, or all that is stored of a person, between two looks makes no room in the budget."""
    set_budget(sim, spending)
    for _ in range(4):
        for _ in range(3):
            task_id = create(sim)
            sim.advance(SECOND)
            if way == "delete each task":
                sim.app.delete(task_id)
        if way == "erase everything":
            PeopleWiring.of(sim.app.container).person_jobs.erase("ada", by=OWN_CODE)
            sim.advance(20 * SECOND)
    assert spending.starts_when_used_up == 0
    assert spending.used == BUDGET


def test_attempts_at_the_same_moment_exceed_it_by_no_more_than_themselves(sim: Simulation, spending: Spending) -> None:
    """Many claims while none has reported anything: they were running when it was used up; no later one starts."""
    set_budget(sim, spending)
    container = sim.app.container
    for _ in range(12):
        create(sim, **WAYS["workers"])
    sim.advance(SECOND)
    running = [
        attempt
        for claim in PullWiring.of(container).work_queue.claim(WorkerFilter(queue="gpu", worker="w"), THIS_PROCESS, 6)
        if (attempt := PullWiring.of(container).worker_claims.start(claim)) is not None
    ]
    assert len(running) == 6
    for attempt in running:
        PullWiring.of(container).worker_claims.finish(attempt, run_procedure(container.executor.call(attempt)))
    assert spending.used == 6 * MOST
    for _ in range(3):
        work(sim)
        sim.advance(MINUTE)
    assert spending.used == 6 * MOST
    assert len([each for each in sim.app.tasks().items if each.status is TaskStatus.PAUSED]) == 6


def test_what_other_owners_code_makes_for_somebody_asks_from_the_beginning(app: App, spending: Spending) -> None:
    """A task of the system creates one a minute for ada, at once or as a follow-up: a burst between two looks, too."""

    @app.handler("make")
    def make(ctx: Context) -> Done:
        draft = {"owner": "ada", "handler": "spend", "schedule": {"at": ctx.now().isoformat()}}
        app.put(app.to_draft(draft))
        return Done(then=[app.to_draft(draft)])

    with Simulation(app) as sim:
        set_budget(sim, spending)
        app.create(handler="make", schedule={"rrule": "FREQ=SECONDLY;INTERVAL=10"})
        sim.advance(8 * MINUTE)
    assert spending.starts_when_used_up == 0
    assert BUDGET <= spending.used < BUDGET + MOST


def test_what_a_budget_never_pauses_asks_for_none(sim: Simulation, spending: Spending) -> None:
    """Deleting all that is stored of somebody, and exporting it, go on with nothing left."""
    set_budget(sim, spending, 0)
    job = PeopleWiring.of(sim.app.container).person_jobs.export("ada", by=OWN_CODE)
    sim.advance(MINUTE)
    assert isinstance(job, Task)
    assert status(sim, job) is TaskStatus.COMPLETED


# ── Drafts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Scripted:
    """A model that counts how often it is asked, and is of no use."""

    def __init__(self) -> None:
        self.asked = 0

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401, ARG002 - the port's
        """Answer what nobody can use."""
        self.asked += 1
        return {"decision": "nonsense"}


def test_drafts_are_counted_and_end_at_the_budget() -> None:
    """A hundred of them: each call of the model counts, and once it is used up the grammar reads alone, and says so."""
    model = Scripted()
    with Simulation(make_drafts_app()) as sim:
        DraftsWiring.of(sim.app.container).replace(model=model)
        put_budget(sim, 9)
        results = [sim.app.draft("Påminn mig varje måndag", timezone="UTC", owner="ada").missing for _ in range(100)]
        assert model.asked == 10, "a draft asks twice if the first answer is of no use"
        assert Budgets.of(sim.app.container).find_refusal("ada") is not None
        codes = [{each.code for each in missing} for missing in results]
        assert ["budget-used-up" in each for each in codes] == [False] * 5 + [True] * 95
        budgets = Budgets.of(sim.app.container)
        budgets.enforce_for("ada")
        assert budgets.get("ada").queries == 10
        (sheet,) = sim.app.container.store.records.list_all(UsageSheet, limit=9)
        assert [(each.handler, each.counts.queries) for each in sheet.sums] == [(DRAFTS, 10)]
        understood = sim.app.draft("remind me to stretch every weekday at 9:00", timezone="UTC", owner="ada")
        assert understood.draft_token is not None, "what the grammar understands costs nothing"
        sim.app.draft("Påminn mig varje måndag", timezone="UTC", owner="bob")
        assert model.asked == 12
