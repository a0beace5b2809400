"""Budgets: a warning, then a pause that loses nothing, then everything goes on; whatever users try meanwhile."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from tests.authorities import as_user
from tests.engine.harness import DAY, HOUR, MINUTE
from tests.engine.usage.harness import create_hourly, put_budget, status

from cloudsched import App, Context, Schedule, TaskDraft
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.queries.explanations import explain_task
from cloudsched.errors import NotAllowed, NotFound, StoreUnavailable
from cloudsched.features.budgets import budgets as budgets_module
from cloudsched.features.budgets.budget import Budget
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.features.budgets.looks import BudgetLooks
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation


@pytest.fixture
def app(app: App) -> App:
    @app.handler("spend", access="users")
    def spend(ctx: Context) -> None:
        ctx.used(queries=10)

    return app


@pytest.fixture
def without_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `Simulation.advance` leave budgets alone, so that a test looks at them itself."""
    monkeypatch.setattr(BudgetLooks, "find_next", lambda *_: None)


def get_budgets(sim: Simulation) -> Budgets:
    return Budgets.of(sim.app.container)


def sweep(sim: Simulation) -> None:
    sim.app.container.many_tasks.sweep(sim.app.sweep)


def advance(sim: Simulation, span: timedelta) -> None:
    """Let time pass with a sweep every half hour."""
    until = sim.now + span
    while sim.now < until:
        sim.advance(min(HOUR / 2, until - sim.now))
        sweep(sim)


def statuses(sim: Simulation, task_id: str) -> dict[str, int]:
    """Return how many of a task's occurrences have each status."""
    counts: dict[str, int] = {}
    token: str | None = None
    while True:
        page = sim.app.executions(task_id, limit=500, page_token=token)
        for each in page.items:
            counts[each.status] = counts.get(each.status, 0) + (1 if each.covers is None else each.covers.count)
        token = page.next_page_token
        if token is None:
            return counts


def test_a_warning_at_80_percent_then_a_pause_with_the_reason(
    sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """Once a month each; of that owner's tasks only, and `explain` says why."""
    caplog.set_level(logging.INFO)
    mine, other = create_hourly(sim), create_hourly(sim, owner="bob")
    put_budget(sim, 100)
    advance(sim, 7 * HOUR)
    assert not [each for each in caplog.records if getattr(each, "action", "") == "budget_nearly_used"]
    advance(sim, HOUR)
    advance(sim, HOUR)
    warnings = [each for each in caplog.records if getattr(each, "action", "") == "budget_nearly_used"]
    assert [(each.levelname, getattr(each, "owner", "")) for each in warnings] == [("WARNING", "ada")]
    assert status(sim, mine) is TaskStatus.ACTIVE
    advance(sim, 3 * HOUR)
    task = sim.app.get(mine)
    assert task.status is TaskStatus.PAUSED
    assert "used up its budget (100 of 100 queries of 2027-01)" in task.message
    store, clock = sim.app.container.store, sim.app.container.clock
    assert "used up its budget" in explain_task(store, clock, task, shows_holders=False).summary
    assert status(sim, other) is TaskStatus.ACTIVE
    assert statuses(sim, mine) == {"SUCCEEDED": 10}
    assert len([each for each in caplog.records if getattr(each, "action", "") == "budget_nearly_used"]) == 1


@pytest.mark.usefixtures("without_looks")
def test_a_task_that_was_asked_for_before_its_owners_budget_knows_of_it(sim: Simulation) -> None:
    """An outbox hands over late what was written while nobody had one, and another process has set it meanwhile."""
    draft, written_at = TaskDraft.of(owner="ada", handler="spend"), sim.now
    assert not sim.app.create(owner="bob", handler="spend").has_budget
    sim.advance(HOUR)
    budget = Budget(id="ada", owner="ada", created_at=sim.now, updated_at=sim.now, max_queries_per_month=10)
    sim.app.container.store.records.write(budget, None)
    assert sim.app.put(draft, as_of=written_at)[0].has_budget


@pytest.mark.parametrize(
    ("catch_up", "ran"), [("latest", 1), ("all", 10), ({"mode": "latest", "window": 1}, 0)], ids=str
)
def test_a_raised_budget_resumes_and_nothing_is_lost(sim: Simulation, catch_up: object, ran: int) -> None:
    """What came due meanwhile runs late or is recorded as SKIPPED, as the catch-up policy says."""
    task_id = create_hourly(sim, catch_up=catch_up)
    put_budget(sim, 50)
    advance(sim, 15 * HOUR)
    assert statuses(sim, task_id) == {"SUCCEEDED": 5}
    put_budget(sim, 10_000)
    assert status(sim, task_id) is TaskStatus.ACTIVE
    sim.advance(5 * MINUTE)
    found = statuses(sim, task_id)
    assert found["SUCCEEDED"] == 5 + ran
    assert sum(found.values()) == 15


@pytest.mark.usefixtures("without_looks")
def test_a_resume_in_vain_says_so_before_any_look(sim: Simulation) -> None:
    """The start that was refused has counted what is used, and no look has yet."""
    put_budget(sim, 10)
    task_id = create_hourly(sim)
    sim.advance(3 * HOUR)
    assert status(sim, task_id) is TaskStatus.PAUSED
    receipt = sim.app.resume(task_id).receipt
    assert receipt is not None
    assert "ada has used up its budget (10 of 10 queries" in receipt.doubts[0].sentence


@pytest.mark.usefixtures("without_looks")
def test_the_sweep_alone_resumes_in_the_next_month(sim: Simulation) -> None:
    """Without anybody asking for it."""
    task_id = create_hourly(sim)
    put_budget(sim, 10)
    advance(sim, 2 * HOUR)
    assert status(sim, task_id) is TaskStatus.PAUSED
    sim.advance(31 * DAY)
    sweep(sim)
    task = sim.app.get(task_id)
    assert (task.status, task.message) == (TaskStatus.ACTIVE, "Its owner has a budget again.")


def test_users_cannot_get_around_it(sim: Simulation) -> None:
    """No start of any kind while it is used up, and a task made meanwhile is paused by the next look.

    A user's own pause of such a task stays when the budget lets it go.
    """
    first, second = create_hourly(sim), create_hourly(sim)
    put_budget(sim, 10)
    advance(sim, 2 * HOUR)
    for task_id in (first, second):
        with pytest.raises(NotAllowed, match="used up its budget"):
            as_user(sim.app).resume(task_id)
        with pytest.raises(NotAllowed):
            as_user(sim.app).trigger(task_id)
    as_user(sim.app).pause(first)
    with pytest.raises(NotAllowed, match="it may use no more"):
        as_user(sim.app).resume(first)
    third = create_hourly(sim)
    sweep(sim)
    sim.advance(5 * MINUTE)
    sweep(sim)
    assert status(sim, third) is TaskStatus.PAUSED
    put_budget(sim, 1000)
    assert status(sim, first) is TaskStatus.PAUSED
    assert status(sim, second) is TaskStatus.ACTIVE
    as_user(sim.app).resume(first)
    assert status(sim, first) is TaskStatus.ACTIVE


def test_a_pause_of_before_stays(sim: Simulation) -> None:
    """A task that its owner has paused is not touched, neither when the budget is used up nor afterwards."""
    task_id, other = create_hourly(sim), create_hourly(sim)
    as_user(sim.app).pause(task_id)
    put_budget(sim, 10)
    advance(sim, 2 * HOUR)
    assert status(sim, other) is TaskStatus.PAUSED
    get_budgets(sim).delete("ada", by=OWN_CODE)
    assert status(sim, task_id) is TaskStatus.PAUSED
    assert status(sim, other) is TaskStatus.ACTIVE
    with pytest.raises(NotFound):
        get_budgets(sim).get("ada")


def test_a_cancel_records_what_came_due_while_paused(sim: Simulation) -> None:
    """As CANCELLED; an edit of the schedule begins anew."""
    cancelled, edited = create_hourly(sim), create_hourly(sim)
    put_budget(sim, 20)
    advance(sim, 6 * HOUR)
    sim.app.cancel(cancelled)
    found = statuses(sim, cancelled)
    assert found["SUCCEEDED"] == 1
    assert sum(found.values()) == 6
    sim.app.update(edited, schedule=Schedule(rrule="FREQ=DAILY", dtstart="2027-01-01T09:00:00"))
    assert status(sim, edited) is TaskStatus.PAUSED
    put_budget(sim, 1000)
    sim.advance(MINUTE)
    task = sim.app.get(edited)
    assert task.status is TaskStatus.ACTIVE
    assert task.next_execution_time is not None
    assert task.next_execution_time > sim.now


@pytest.mark.usefixtures("without_looks")
def test_a_process_that_dies_while_it_pauses_or_resumes_is_continued(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some at a time: what is left is done by the next looks."""
    monkeypatch.setattr(budgets_module, "MAX_CHANGES", 2)
    ids = [create_hourly(sim) for _ in range(5)]
    put_budget(sim, 50)
    sim.advance(HOUR)
    budgets = get_budgets(sim)
    assert not budgets.enforce_for("ada")
    assert sum(status(sim, each) is TaskStatus.PAUSED for each in ids) == 2
    assert not budgets.enforce_all()
    assert budgets.enforce_all()
    assert {status(sim, each) for each in ids} == {TaskStatus.PAUSED}
    budgets.delete("ada", by=OWN_CODE)
    assert sum(status(sim, each) is TaskStatus.ACTIVE for each in ids) == 2
    assert not budgets.enforce_all()
    assert budgets.enforce_all()
    assert {status(sim, each) for each in ids} == {TaskStatus.ACTIVE}
    assert not sim.app.container.store.records.list(Budget, "ada", limit=1)


def test_deleting_everything_does_not_bring_a_new_budget(sim: Simulation) -> None:
    """The budget is the operator's: it stays with what was used this month, when the sheets that say so are gone."""
    create_hourly(sim)
    put_budget(sim, 100)
    advance(sim, 6 * HOUR)
    PeopleWiring.of(sim.app.container).person_jobs.erase("ada", by=OWN_CODE)
    advance(sim, HOUR)
    create_hourly(sim)
    advance(sim, 4 * HOUR)
    assert get_budgets(sim).get("ada").queries == 100


def test_the_use_of_a_task_that_is_long_gone_counts(sim: Simulation) -> None:
    """Its mark is not kept for ever, and the sum of those that are gone is: a budget that is set later finds it."""
    task = create_hourly(sim)
    advance(sim, 3 * HOUR)
    sim.app.delete(task)
    advance(sim, 48 * HOUR)
    create_hourly(sim)
    advance(sim, 30 * HOUR)
    assert any(
        task not in sheet.marks and sheet.sums
        for sheet in sim.app.container.many_tasks.ledger.list_sheets("ada", f"{sim.now:%Y-%m}")
    )
    put_budget(sim, 1000)
    assert get_budgets(sim).get("ada").queries == 330


def test_a_store_that_does_not_answer_fails_no_sweep(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged, and tried again."""
    create_hourly(sim)
    put_budget(sim, 10)
    sim.advance(HOUR)

    def fail(_owner: str) -> bool:
        raise StoreUnavailable("the store", "no answer")

    monkeypatch.setattr(get_budgets(sim), "enforce", fail)
    sweep(sim)
    assert [each for each in caplog.records if getattr(each, "action", "") == "usage_not_summed"]
    monkeypatch.undo()
    sim.advance(5 * MINUTE)
    sweep(sim)
    assert {each.status for each in sim.app.tasks().items} == {TaskStatus.PAUSED}
