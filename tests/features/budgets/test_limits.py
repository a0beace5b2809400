"""A task's own limit for a month: it pauses the task at once, says so once, and lets it go on by itself."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.authorities import as_user
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, only_run
from tests.engine.usage.harness import put_budget, status

from cloudsched import App, Context, Done, Settings, Task, TaskDraft, TaskQuery
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.usage import sum_usage
from cloudsched.engine.authority import OWN_CODE
from cloudsched.errors import InvalidInput, NotAllowed
from cloudsched.features.budgets.budgets import Budgets
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

FEBRUARY = datetime(2027, 2, 1, tzinfo=UTC)


@pytest.fixture
def app(app: App) -> App:
    """Handlers that use queries and tokens."""

    @app.handler("spend", access="users")
    def spend(ctx: Context) -> None:
        ctx.used(queries=10, tokens=1_000)

    @app.handler("call")
    def call(ctx: Context) -> None:
        for _ in range(3):
            ctx.call("spend").result()

    @app.handler("nest")
    def nest(ctx: Context) -> None:
        ctx.sleep(MINUTE)
        ctx.call("call").result()
        ctx.sleep(MINUTE)

    @app.handler("stride", access="users")
    def stride(ctx: Context) -> None:
        for _ in range(12):
            ctx.step("spend", lambda: ctx.used(tokens=100))

    return app


def create(sim: Simulation, **more: Any) -> Task:
    """Create a task that uses 10 queries an hour, as its owner does."""
    fields: dict[str, Any] = {"owner": "ada", "handler": "spend", "schedule": "every hour", **more}
    return as_user(sim.app).put(sim.app.to_draft(fields))[0]


def count(sim: Simulation, task: Task) -> int:
    return sum(each.status == "SUCCEEDED" for each in sim.executions(task.id))


def inbox(sim: Simulation) -> list[str]:
    return [each.title for each in sim.app.inbox("ada").items]


def test_a_workflow_stops_before_the_step_after_its_limit_and_goes_on_there(sim: Simulation) -> None:
    """It has used no more than the step that reached the limit. Its owner is told once."""
    task = create(sim, handler="stride", schedule="in a minute", max_tokens_per_month=250)
    sim.advance(3 * HOUR)
    assert status(sim, task) is TaskStatus.PAUSED
    assert sum_usage(sim.app.get(task.id).usage).tokens == 300
    assert str(only_run(sim, task).message).startswith("It waits until its task is resumed. It has used up its limit")
    assert len(inbox(sim)) == 1
    for limit, used in ((550, 600), (5_000, 1_200)):
        as_user(sim.app).update(task.id, max_tokens_per_month=limit)
        sim.advance(HOUR)
        assert sum_usage(sim.app.get(task.id).usage).tokens == used
    assert count(sim, task) == 1


@pytest.mark.parametrize("limit", [{"max_queries_per_month": 30}, {"max_tokens_per_month": 3_000}], ids=str)
def test_a_task_pauses_at_its_limit_and_goes_on_in_the_next_month(sim: Simulation, limit: dict[str, int]) -> None:
    """The run that reaches it pauses the task, which says why everywhere. The month's first instant resumes it."""
    task, other = create(sim, **limit), create(sim)
    sim.advance(3 * HOUR)
    held = sim.app.get(task.id)
    assert count(sim, task) == 3
    assert held.status is TaskStatus.PAUSED
    assert held.paused_until == FEBRUARY
    assert "used up its limit" in held.message
    assert held.message in {each.reason for each in held.history}
    assert held.message.rstrip(".") in sim.app.explain(task.id).summary
    assert status(sim, other) is TaskStatus.ACTIVE
    assert sim.app.upcoming(task.id, 1) == [], "the first of them is a run that was missed"

    sim.advance_to(FEBRUARY - SECOND)
    assert count(sim, task) == 3
    sim.advance_to(FEBRUARY + 9 * HOUR)
    assert count(sim, task) == 6
    assert status(sim, task) is TaskStatus.PAUSED
    assert inbox(sim).count(f"Paused: {task.title}") == 2, "once in each month in which it was reached"


def test_a_raised_limit_resumes_at_once(sim: Simulation) -> None:
    """With what was due last, as its catch-up policy says. One that is removed, too."""
    task = create(sim, max_queries_per_month=20)
    sim.advance(5 * HOUR + 20 * MINUTE)
    assert count(sim, task) == 2
    raised = as_user(sim.app).update(task.id, max_queries_per_month=40)
    assert raised.status is TaskStatus.ACTIVE
    sim.advance(MINUTE)
    assert count(sim, task) == 3
    late = max(each.scheduled_for for each in sim.executions(task.id) if each.status == "SUCCEEDED")
    told = str(sim.app.acting_for("ada").explain(task.id, at=late))
    assert "It began 20 min after it was due" in told
    assert "Until Fri 1 Jan 2027 at 05:20 (UTC), its task was paused: It has used up its limit" in told
    assert "resumes next month" not in told
    sim.advance(3 * HOUR)
    assert status(sim, task) is TaskStatus.PAUSED
    assert as_user(sim.app).update(task.id, max_queries_per_month=None).status is TaskStatus.ACTIVE
    assert len(inbox(sim)) == 2


def test_a_limit_below_what_is_used_pauses_at_once(sim: Simulation) -> None:
    """The answer to the change says so, and so does the receipt."""
    task = create(sim)
    sim.advance(5 * HOUR)
    held = as_user(sim.app).update(task.id, max_queries_per_month=20)
    assert held.status is TaskStatus.PAUSED
    receipt = sim.app.update(task.id, title="Other").receipt
    assert receipt is not None
    assert "BUDGET_USED_UP" in {each.reason for each in receipt.doubts}
    assert not receipt.scheduled
    assert min(receipt.next) >= FEBRUARY
    moved = sim.app.update(task.id, schedule="every day at 8:00").receipt
    assert moved is not None
    assert moved.next[0] == FEBRUARY + 8 * HOUR


@pytest.mark.parametrize("way", ["call", "nest", "children", "parallel children"])
def test_what_calls_use_counts_for_the_task_above(sim: Simulation, way: str) -> None:
    """At every depth, once, replay or not. For the owner it counts once as well: the calls count it themselves."""
    ways: dict[str, dict[str, Any]] = {
        "children": {"children": [{"handler": "spend"}] * 3},
        "parallel children": {"children": [{"handler": "spend"}] * 3, "parallel": True},
    }
    fields = ways.get(way, {"handler": way})
    fields |= {"owner": "ada", "schedule": "every hour", "max_queries_per_month": 50}
    task = sim.app.put(sim.app.to_draft(fields))[0]
    sim.advance(DAY)
    assert status(sim, task) is TaskStatus.PAUSED
    used = put_budget(sim, 1_000).queries
    assert 50 <= used <= 60
    assert " of 50 queries" in sim.app.get(task.id).message
    sim.app.update(task.id, max_queries_per_month=61)
    sim.advance(10 * MINUTE)
    assert count(sim, task) >= 2, "a run goes on between two calls"


def test_users_cannot_raise_what_servers_have_set(sim: Simulation) -> None:
    """Nor remove it, by an edit of anything else in between, or a whole new body. Lower ones are theirs."""
    task = sim.app.create(id="mine", owner="ada", handler="spend", schedule="every hour", max_queries_per_month=20)
    ada = as_user(sim.app)
    ada.update(task.id, title="Other")
    for limit in (21, None):
        with pytest.raises(InvalidInput, match="that an admin has set"):
            ada.update(task.id, max_queries_per_month=limit)
    with pytest.raises(InvalidInput, match="that an admin has set"):
        create(sim, id="mine", handler="spend")
    assert ada.update(task.id, max_queries_per_month=10, max_tokens_per_month=99).max_queries_per_month == 10
    sim.app.update(task.id, title="By an admin")
    assert ada.update(task.id, max_queries_per_month=20, max_tokens_per_month=None).max_queries_per_month == 20
    sim.app.update(task.id, max_queries_per_month=None)
    assert ada.update(task.id, max_queries_per_month=1_000).max_queries_per_month == 1_000


def test_users_cannot_start_what_has_nothing_left(sim: Simulation) -> None:
    """Their own pause replaces the hold. After it, the next start finds the limit again."""
    task = create(sim, max_queries_per_month=10)
    sim.advance(HOUR)
    with pytest.raises(NotAllowed, match="used up its limit"):
        as_user(sim.app).resume(task.id)
    with pytest.raises(NotAllowed):
        as_user(sim.app).trigger(task.id)
    as_user(sim.app).pause(task.id)
    assert sim.app.get(task.id).paused_until is None
    as_user(sim.app).resume(task.id)
    sim.advance(2 * HOUR)
    assert sim.app.get(task.id).paused_until == FEBRUARY
    assert count(sim, task) == 1
    as_user(sim.app).pause(task.id)
    sim.advance_to(FEBRUARY + DAY)
    assert status(sim, task) is TaskStatus.PAUSED, "a pause of its owner's stays"


def test_runs_at_the_same_time_all_count(sim: Simulation) -> None:
    """What is beyond the limit is at most what was running when it was reached."""
    task = create(sim, max_queries_per_month=20, overlap="ALLOW")
    for _ in range(5):
        sim.app.trigger(task.id)
    sim.advance(HOUR / 2)
    assert status(sim, task) is TaskStatus.PAUSED
    assert 2 <= count(sim, task) <= 5


def test_a_task_that_ends_as_it_reaches_its_limit_has_ended(sim: Simulation) -> None:
    """Nobody is told. Started again in the same month, it waits for the next one, and does run then."""
    task = create(sim, schedule="in 1 minute", max_queries_per_month=10)
    sim.advance(HOUR)
    assert status(sim, task) is TaskStatus.COMPLETED
    assert inbox(sim) == []
    again = as_user(sim.app).update(task.id, schedule="in 1 hour").receipt
    assert again is not None
    assert "BUDGET_USED_UP" in {each.reason for each in again.doubts}
    sim.advance(2 * HOUR)
    assert sim.app.get(task.id).paused_until == FEBRUARY
    sim.advance_to(FEBRUARY + HOUR)
    assert status(sim, task) is TaskStatus.COMPLETED
    assert count(sim, task) == 2


@pytest.mark.parametrize("number", [-1, 0, 10**13, 1.5, "10", True])
def test_what_is_no_limit_is_refused(sim: Simulation, number: object) -> None:
    with pytest.raises(InvalidInput, match="maxTokensPerMonth"):
        create(sim, maxTokensPerMonth=number)


def test_an_owners_budget_and_a_tasks_limit_hold_together(sim: Simulation) -> None:
    """What a budget lets go stays held by its limit, and the other way round."""
    put_budget(sim, 30)
    task = create(sim, max_queries_per_month=20)
    other = create(sim)
    sim.advance(5 * HOUR)
    assert {status(sim, each) for each in (task, other)} == {TaskStatus.PAUSED}
    put_budget(sim, 1_000)
    sim.advance(5 * HOUR)
    assert status(sim, other) is TaskStatus.ACTIVE
    assert status(sim, task) is TaskStatus.PAUSED
    assert count(sim, task) <= 2
    put_budget(sim, 1)
    as_user(sim.app).update(task.id, max_queries_per_month=None)
    before = count(sim, task)
    sim.advance(5 * HOUR)
    assert status(sim, task) is TaskStatus.PAUSED
    assert count(sim, task) == before


def test_a_follow_up_sets_the_limit_as_code_does(app: App) -> None:
    """Users cannot raise it, in a task that is new and in one that it edits."""

    @app.handler("plan")
    def plan(ctx: Context, payload: dict[str, Any]) -> Done:
        later = {"at": (ctx.now() + DAY).isoformat()}
        limit = payload["limit"]
        return Done(
            then=[TaskDraft.of(id="next", owner="ada", handler="spend", schedule=later, max_tokens_per_month=limit)]
        )

    with Simulation(app) as sim:
        for limit in (10, 5):
            app.create(handler="plan", payload={"limit": limit})
            sim.run_until_idle(9 * SECOND)
            with pytest.raises(InvalidInput, match=f"limit of {limit}"):
                as_user(app).update("next", max_tokens_per_month=11)


# ── What owners are told ─────────────────────────────────────────────────────────────────────────────────────────────


def want_mail(sim: Simulation) -> None:
    email = {"address": "ada@example.com", "verified": True}
    sim.app.put_person("ada", email=email, channels={"OTHERS": ["EMAIL"]})


def test_one_message_tells_of_a_budget_whatever_it_pauses(sim: Simulation) -> None:
    """In the inbox, and by the channels of the tasks. It comes again once the budget is reached again."""
    want_mail(sim)
    for number in range(6):
        channels = ["EMAIL"] if number in {2, 4} else []
        create(sim, schedule="every day at 9:00", delivery_channels=channels)
    put_budget(sim, max_tokens_per_month=50_000)
    sim.advance(20 * DAY)
    told = [mail for mail in sim.sent("EMAIL") if mail.title == "Your tasks are paused"]
    assert len(told) == 1
    sent = sim.app.tasks(TaskQuery(is_delivery=True, owner="ada")).items
    assert f"EMAIL: {told[0].title}" in {each.title for each in sent}, "not that of a task"
    assert "50,000 tokens" in told[0].body
    assert "1 Feb 2027" in told[0].body
    assert not re.search("All of|lost", told[0].body), "some are paused by hand, and most occurrences are skipped"
    assert inbox(sim) == ["Your tasks are paused"]
    sim.advance_to(FEBRUARY + 20 * DAY)
    assert inbox(sim) == ["Your tasks are paused"] * 2
    put_budget(sim, max_tokens_per_month=10**9)
    sim.advance(60 * DAY)
    assert inbox(sim) == ["Your tasks are paused"] * 2


def test_a_limit_is_told_by_the_tasks_channels_unless_it_tells_no_failures(sim: Simulation) -> None:
    """The inbox has it anyway."""
    want_mail(sim)
    loud = create(sim, max_queries_per_month=10, delivery_channels=["EMAIL"], title="Loud")
    create(sim, max_queries_per_month=10, delivery_channels=["EMAIL"], title="Quiet", tell_failures="NEVER")
    sim.advance(DAY)
    assert [mail.title for mail in sim.sent("EMAIL")] == [f"Paused: {loud.title}"]
    assert sorted(inbox(sim)) == ["Paused: Loud", "Paused: Quiet"]


# ── Tokens of an owner ───────────────────────────────────────────────────────────────────────────────────────────────


def test_tokens_alone_use_up_a_budget(sim: Simulation) -> None:
    """One that limits tokens counts no queries. Deleting tasks, or all of a person, brings nothing back."""
    budgets = Budgets.of(sim.app.container)
    budgets.put("ada", max_tokens_per_month=5_000, by=OWN_CODE)
    for _ in range(10):
        task = create(sim, schedule="now")
        sim.advance(SECOND)
        sim.app.delete(task.id)
    PeopleWiring.of(sim.app.container).person_jobs.erase("ada", by=OWN_CODE)
    sim.advance(20 * SECOND)
    task = create(sim)
    sim.advance(DAY)
    assert budgets.get("ada").tokens == 5_000
    assert "5,000 of 5,000 tokens" in sim.app.get(task.id).message


def test_a_budget_of_tokens_replaces_one_of_queries(sim: Simulation) -> None:
    """A new budget is a whole one: what it does not name has no limit any more, and what that paused goes on."""
    task = create(sim)
    put_budget(sim, 0)
    assert status(sim, task) is TaskStatus.PAUSED
    put_budget(sim, max_tokens_per_month=7)
    assert status(sim, task) is TaskStatus.ACTIVE


@pytest.mark.parametrize("used", [-1, 10**10, True, 1.5])
def test_no_handler_reports_what_is_no_amount(used: int) -> None:
    """A negative one would make room again."""
    app = App(Settings())

    @app.handler("odd", retry=False)
    def odd(ctx: Context) -> None:
        ctx.used(tokens=used)

    with Simulation(app) as sim:
        task = app.create(handler="odd")
        sim.run_until_idle()
        assert [each.status for each in sim.executions(task.id)] == ["FAILED"]
