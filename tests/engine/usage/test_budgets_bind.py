"""Whatever a user does, what is used beyond the budget is at most what was running when it was used up."""

from __future__ import annotations

import random
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.authorities import as_user
from tests.drafts_app import make_app as make_drafts_app

from cloudsched import App, Context, Done, Settings, Task, TaskDraft
from cloudsched.config.features import AssistantSettings
from cloudsched.domain.documents.owner_usage import UsageSheet
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.drafts.service import DRAFTS, Drafts
from cloudsched.engine.ports.authority import OWN_CODE
from cloudsched.engine.pull.claim_caller import THIS_PROCESS
from cloudsched.engine.pull.offers import WorkerFilter
from cloudsched.errors import CloudschedError
from cloudsched.runtime.container import Container
from cloudsched.testing import Simulation
from cloudsched.testing.simulation import BudgetLooks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.drafts.situation import Situation

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
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
        """Use some queries, and report them."""
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
        return Done(then=[TaskDraft.of(owner="ada", title="More", handler="follow", schedule=later)])

    return app


@pytest.fixture
def sim(app: App) -> Iterator[Simulation]:
    with Simulation(app) as simulation:
        yield simulation


def set_budget(sim: Simulation, spending: Spending, queries: int = BUDGET) -> None:
    sim.app.container.many_tasks.budgets.put("ada", queries, by=OWN_CODE)
    spending.limit = queries


def create(sim: Simulation, *, by_code: bool = False, **fields: Any) -> str:
    """Create a task as ada does through the API, or as a server does for ada."""
    handler = {} if "children" in fields else {"handler": "spend"}
    draft = {"owner": "ada", "title": "T", "schedule": {"at": sim.now.isoformat()}, **handler, **fields}
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
    for claim in container.work_queue.claim(WorkerFilter(queue="gpu", worker="w"), THIS_PROCESS, 5):
        attempt = container.worker_claims.start(claim)
        if attempt is not None:
            container.worker_claims.finish(attempt, container.attempt_runner.invoke(attempt))


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
    statuses = {sim.app.get(each).status for each in made}
    assert statuses <= {TaskStatus.PAUSED, TaskStatus.COMPLETED, TaskStatus.ACTIVE, TaskStatus.FAILED}
    assert "budget is used up" in sim.app.get(made[-1]).message or way in {"calls", "children", "parallel children"}
    spending.limit = None
    sim.app.container.many_tasks.budgets.put("ada", 10**9, by=OWN_CODE)
    if way in {"one-time tasks", "calls", "children", "parallel children", "steps"}:
        sim.run_until_idle(timedelta(days=2))
        assert {sim.app.get(each).status for each in made} == {TaskStatus.COMPLETED}, "each has run in the end"


# ── Whatever a user does ─────────────────────────────────────────────────────────────────────────────────────────────


class User:
    """Does at random what a user may, and lets time pass."""

    def __init__(self, sim: Simulation, chance: random.Random) -> None:
        self._sim = sim
        self._chance = chance
        self._ids: list[str] = []
        self.done = 0

    def act(self) -> None:
        """Do one thing; what is refused changes nothing."""
        self.done += 1
        with suppress(CloudschedError):
            self._chance.choice(self._list_acts())()

    def _list_acts(self) -> Sequence[Callable[[], None]]:
        return self._create, self._create, self._edit, self._revive, self._start, self._stop, self._work, self._wait

    def _create(self) -> None:
        way, by_code = WAYS[self._chance.choice(sorted(WAYS))], self._chance.random() < 0.3
        self._ids.append(create(self._sim, by_code=by_code, **way))

    def _choose(self) -> str:
        return self._chance.choice(self._ids or [""])

    def _edit(self) -> None:
        change = self._chance.choice(
            (
                {"payload": {"queries": 7}},
                {"schedule": {"rrule": "FREQ=MINUTELY"}},
                {"title": "Other"},
                {"handler": "call"},
            )
        )
        as_user(self._sim.app).patch(self._choose(), change)

    def _revive(self) -> None:
        soon = {"schedule": {"at": (self._sim.now + MINUTE).isoformat()}}
        task_id = self._choose()
        self._sim.app.cancel(task_id)
        self._chance.choice((self._sim.app, as_user(self._sim.app))).patch(task_id, soon)

    def _start(self) -> None:
        app, task_id = self._sim.app, self._choose()
        self._chance.choice(
            (
                lambda: as_user(app).trigger(task_id),
                lambda: as_user(app).retry(task_id),
                lambda: as_user(app).resume(task_id),
                lambda: as_user(app).backfill(task_id, self._sim.now - HOUR, self._sim.now),
            )
        )()

    def _stop(self) -> None:
        app, task_id = self._sim.app, self._choose()
        self._chance.choice((app.cancel, app.delete, app.pause))(task_id)

    def _work(self) -> None:
        work(self._sim)

    def _wait(self) -> None:
        self._sim.advance(self._chance.choice((MINUTE, 5 * MINUTE, HOUR)))


class ModelUser(User):
    """Has a model asked, too: for drafts, and by tasks that an assistant does, which call what spends as well."""

    def __init__(self, sim: Simulation, chance: random.Random, model: SpendingModel) -> None:
        super().__init__(sim, chance)
        self._model = model

    def _list_acts(self) -> Sequence[Callable[[], None]]:
        return *super()._list_acts(), *[self._draft] * 2, *[self._ask] * 6, *[self._wait] * 3

    def _draft(self) -> None:
        with self._model.one_draft():
            self._sim.app.draft("Herinner me elke maandag", timezone="UTC", owner="ada")

    def _ask(self) -> None:
        source = {"chatId": "c", "messages": [{"role": "user", "content": "Spend some"}]}
        often = {"schedule": {"rrule": "FREQ=MINUTELY"}} if self._chance.random() < 0.3 else {}
        does = {"handler": "assistant", "payload": {"tools": ["spend"]}, "source": source, "purpose": "Spend"}
        self._ids.append(create(self._sim, by_code=self._chance.random() < 0.3, **does, **often))


class SpendingModel:
    """A model that decides at random, and costs a query each time. A draft may ask it twice, and was running then."""

    def __init__(self, spending: Spending, chance: random.Random) -> None:
        self.asked, self.asked_for_drafts = 0, 0
        self._spending, self._chance = spending, chance
        self._of_draft: int | None = None

    @contextmanager
    def one_draft(self) -> Iterator[None]:
        """Judge the first question of the ``with`` block alone."""
        self._of_draft = 0
        try:
            yield
        finally:
            self.asked_for_drafts += self._of_draft
            self._of_draft = None

    def complete(self, instructions: str, data: Any, schema: dict[str, Any]) -> Any:  # noqa: ANN401, ARG002 - the port's
        """Have a tool called, or one that is not there, or answer."""
        spending, self.asked = self._spending, self.asked + 1
        if not self._of_draft:
            spending.starts_when_used_up += spending.limit is not None and spending.used >= spending.limit
        if self._of_draft is not None:
            self._of_draft += 1
        spending.used += 1
        call = {"decision": "call", "tool": "spend", "arguments": {"queries": 2}}
        missing = {"decision": "call", "tool": "none", "arguments": {}}
        return self._chance.choice((call, missing, missing, missing, {"decision": "answer", "content": "Done."}))


def live_with_a_model(app: App, spending: Spending, seed: int) -> SpendingModel:
    """Let a user act at random beside a model, until the budget is used up and long after; return the model."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    model = SpendingModel(spending, chance)
    with Simulation(app, language_model=model, assistant=AssistantSettings(is_on=True)) as sim:
        set_budget(sim, spending)
        user = ModelUser(sim, chance, model)
        user._ask()  # noqa: SLF001 - before others have used up everything
        user._wait()  # noqa: SLF001
        for _ in range(60):
            user.act()
    return model


@pytest.mark.parametrize("seed", range(8))
def test_nor_is_a_model_asked_once_it_is_used_up(app: App, spending: Spending, seed: int) -> None:
    """Drafts and an assistant's turns among all the others: none begins, and none goes on to another question."""
    model = live_with_a_model(app, spending, seed)
    assert model.asked > 0
    assert spending.starts_when_used_up == 0
    assert spending.used < BUDGET + MOST


@pytest.mark.parametrize("place", ["turns", "drafts"])
def test_a_model_that_nobody_checks_shows(
    app: App, spending: Spending, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Without the look before each turn, or before a draft, one of these users is beyond the budget."""
    if place == "turns":
        monkeypatch.setattr(Container, "_find_refusal", lambda *_: None)
    else:
        make = Drafts._situation  # noqa: SLF001 - what is broken

        def make_unchecked(*arguments: Any) -> Situation:
            return replace(make(*arguments), find_refusal=lambda: None)

        monkeypatch.setattr(Drafts, "_situation", make_unchecked)
    for seed in range(8):
        spending.starts_when_used_up = spending.used = 0
        live_with_a_model(app, spending, seed)
        if spending.starts_when_used_up:
            return
    pytest.fail("nothing shows")


@pytest.mark.parametrize("seed", range(8))
def test_whatever_a_user_does_nothing_starts_once_it_is_used_up(sim: Simulation, spending: Spending, seed: int) -> None:
    """Creation, edits, revivals, starts, calls, follow-ups, workers, in any order: at most what was running is beyond.

    Handlers run one after the other here, so that is nothing: the attempt that uses up the budget ends before the next.
    """
    chance = random.Random(seed)  # noqa: S311 - no secret
    set_budget(sim, spending)
    user = User(sim, chance)
    for _ in range(60):
        user.act()
    assert spending.starts > 0
    assert spending.starts_when_used_up == 0
    assert spending.used < BUDGET + MOST


@pytest.mark.parametrize("way", ["delete each task", "erase everything"])
def test_what_is_deleted_was_used(sim: Simulation, spending: Spending, way: str) -> None:
    """Deleting tasks, or all that is stored of a person, between two looks makes no room in the budget."""
    set_budget(sim, spending)
    for _ in range(4):
        for _ in range(3):
            task_id = create(sim)
            sim.advance(timedelta(seconds=1))
            if way == "delete each task":
                sim.app.delete(task_id)
        if way == "erase everything":
            sim.app.container.person_jobs.erase("ada", by=OWN_CODE)
            sim.advance(timedelta(seconds=20))
    assert spending.starts_when_used_up == 0
    assert spending.used == BUDGET


def test_attempts_at_the_same_moment_exceed_it_by_no_more_than_themselves(sim: Simulation, spending: Spending) -> None:
    """Many claims while none has reported anything: they were running when it was used up; no later one starts."""
    set_budget(sim, spending)
    container = sim.app.container
    for _ in range(12):
        create(sim, **WAYS["workers"])
    sim.advance(timedelta(seconds=1))
    running = [
        attempt
        for claim in container.work_queue.claim(WorkerFilter(queue="gpu", worker="w"), THIS_PROCESS, 6)
        if (attempt := container.worker_claims.start(claim)) is not None
    ]
    assert len(running) == 6
    for attempt in running:
        container.worker_claims.finish(attempt, container.attempt_runner.invoke(attempt))
    assert spending.used == 6 * MOST
    for _ in range(3):
        work(sim)
        sim.advance(MINUTE)
    assert spending.used == 6 * MOST
    assert len([each for each in sim.app.tasks().items if each.status is TaskStatus.PAUSED]) == 6


def test_what_waits_goes_on_in_the_next_month_by_itself(sim: Simulation, spending: Spending) -> None:
    """Each occurrence that came due meanwhile has a record; the owner reads why it waited, in the task's history."""
    set_budget(sim, spending)
    task_id = create(sim, schedule={"rrule": "FREQ=DAILY;BYHOUR=6", "timezone": "UTC"}, catchUp="all")
    once = [create(sim, schedule={"at": (sim.now + day * timedelta(days=1)).isoformat()}) for day in range(1, 8)]
    sim.advance(timedelta(days=30))
    assert spending.used == BUDGET
    reasons = [each.reason or "" for each in sim.app.get(once[-1]).history]
    assert len([reason for reason in reasons if "budget is used up" in reason]) == 1, "it is told once"
    spending.limit = None
    sim.app.container.many_tasks.budgets.put("ada", 10**6, by=OWN_CODE)
    sim.advance(timedelta(days=2))
    assert {sim.app.get(each).status for each in once} == {TaskStatus.COMPLETED}
    found = sim.executions(task_id)
    assert [each.status for each in found] == ["SUCCEEDED"] * len(found)
    assert len(found) == 32


def test_tasks_of_those_without_a_budget_ask_nothing(
    sim: Simulation, spending: Spending, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another owner's tasks, and code's own, start as they did, at no further read."""
    monkeypatch.setattr(BudgetLooks, "find_next", lambda *_: None)  # a look reads, too
    set_budget(sim, spending, 0)
    sim.app.create(owner="bob", title="T", handler="spend", schedule={"rrule": "FREQ=HOURLY"})
    sim.advance(HOUR)
    before = sim.counts.copy()
    sim.advance(10 * HOUR)
    assert sim.counts.since(before).reads == 10


def test_what_other_owners_code_makes_for_somebody_asks_from_the_beginning(app: App, spending: Spending) -> None:
    """A task of the system creates one a minute for ada, at once or as a follow-up: a burst between two looks, too."""

    @app.handler("make")
    def make(ctx: Context) -> Done:
        draft = {"owner": "ada", "title": "T", "handler": "spend", "schedule": {"at": ctx.now().isoformat()}}
        app.put(app.to_draft(draft))
        return Done(then=[app.to_draft(draft)])

    with Simulation(app) as sim:
        set_budget(sim, spending)
        app.create(title="Make", handler="make", schedule={"rrule": "FREQ=SECONDLY;INTERVAL=10"})
        sim.advance(8 * MINUTE)
    assert spending.starts_when_used_up == 0
    assert BUDGET <= spending.used < BUDGET + MOST


def test_what_a_budget_never_pauses_asks_for_none(sim: Simulation, spending: Spending) -> None:
    """Deleting all that is stored of somebody, and exporting it, go on with nothing left."""
    set_budget(sim, spending, 0)
    job = sim.app.container.person_jobs.export("ada", by=OWN_CODE)
    sim.advance(MINUTE)
    assert isinstance(job, Task)
    assert sim.app.get(job.id).status is TaskStatus.COMPLETED


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
        sim.app.container.replace(model=model)
        sim.app.container.many_tasks.budgets.put("ada", 9, by=OWN_CODE)
        results = [sim.app.draft("Herinner me elke maandag", timezone="UTC", owner="ada").missing for _ in range(100)]
        assert model.asked == 10, "a draft asks twice if the first answer is of no use"
        assert sim.app.container.many_tasks.budgets.find_refusal("ada") is not None
        codes = [{each.code for each in missing} for missing in results]
        assert ["budget-used-up" in each for each in codes] == [False] * 5 + [True] * 95
        budgets = sim.app.container.many_tasks.budgets
        budgets.enforce("ada")
        assert budgets.get("ada").queries == 10
        (sheet,) = sim.app.container.store.records.list_all(UsageSheet, limit=9)
        assert [(each.handler, each.counts.queries) for each in sheet.marks] == [(DRAFTS, 10)]
        understood = sim.app.draft("remind me to stretch every weekday at 9:00", timezone="UTC", owner="ada")
        assert understood.draft_token is not None, "what the grammar understands costs nothing"
        sim.app.draft("Herinner me elke maandag", timezone="UTC", owner="bob")
        assert model.asked == 12
