"""A retry from a chosen step keeps what came before it, and forgets that step and all after it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.authorities import as_user
from tests.engine.harness import DAY, Row, create, only_run, register_work_handler, run_to_end

from cloudsched import App, Context, Execution, Schedule
from cloudsched.config.access import Access
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.errors import InvalidInput, NotAllowed, QuotaExceeded
from cloudsched.testing import Simulation

STEPS = 5


class Flow:
    """A handler of five steps, the last of which fails until it is mended; it notes each effect."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.effects = list[str]()
        self.is_broken = True
        register_work_handler(app, self.run)

    def run(self, ctx: Context) -> list[str]:
        done = [ctx.step(f"s{number}", self.act, f"s{number}") for number in range(1, STEPS)]
        return [*done, ctx.step(f"s{STEPS}", self.act_if_mended, retry=False)]

    def act(self, name: str) -> str:
        self.effects.append(name)
        return f"{name} {self.effects.count(name)}"

    def act_if_mended(self) -> str:
        if self.is_broken:
            raise ConnectionError("broken")
        return self.act(f"s{STEPS}")


def fail(app: App, sim: Simulation) -> tuple[str, Execution]:
    """Run a task until it has failed; return its id and its execution."""
    task = create(app, retry={"maxRetries": 0})
    failed = run_to_end(sim, task, 10 * DAY)
    assert failed.status == "FAILED", failed
    return task.id, app.execution(task.id, failed.id)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
@pytest.mark.parametrize("replay", [False, True])
def test_what_came_before_is_kept_and_the_rest_is_done_again(app: App, step: int, *, replay: bool) -> None:
    """Steps before the chosen one have their recorded results; it and those after it run once more, each once."""
    flow = Flow(app)
    with Simulation(app, replay=replay) as sim:
        task_id, failed = fail(app, sim)
        assert flow.effects == ["s1", "s2", "s3", "s4"]
        flow.is_broken = False
        app.retry(task_id, failed.id, from_step=step)
        sim.run_until_idle(10 * DAY)
        ended = app.execution(task_id, failed.id)
        assert (ended.status, len(ended.attempts)) == ("SUCCEEDED", 2)
        again = [f"s{number}" for number in range(step, STEPS + 1)]
        assert flow.effects[STEPS - 1 :] == again
        expected = [f"s{n} {2 if step <= n < STEPS else 1}" for n in range(1, STEPS + 1)]
        assert ended.content == expected
        assert [each.number for each in ended.steps] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("step", [0, -1, STEPS + 1, 10_000])
def test_a_step_that_there_is_not_is_refused(app: App, step: int) -> None:
    """The error says which steps there are, and nothing is retried."""
    flow = Flow(app)
    with Simulation(app) as sim:
        task_id, failed = fail(app, sim)
        flow.is_broken = False
        with pytest.raises(InvalidInput, match="from 1 to 5") as refused:
            app.retry(task_id, failed.id, from_step=step)
        assert refused.value.field == "fromStep"
        sim.run_until_idle(10 * DAY)
        assert app.execution(task_id, failed.id).status == "FAILED"


@pytest.fixture
def calling(app: App) -> dict[str, Any]:
    """A handler that makes a call of a day before and one after its second step, and fails while both are under way."""
    state: dict[str, Any] = {"is_broken": True, "made": []}

    @app.handler("slow", retry=False)
    def slow(ctx: Context, row: Row) -> int:
        ctx.step("note", lambda: state["made"].append(row.n))
        ctx.sleep(DAY)
        return row.n

    def call(ctx: Context) -> list[int]:
        first = ctx.call("slow", Row(n=1))
        ctx.step("between", lambda: None)
        second = ctx.call("slow", Row(n=2))
        ctx.sleep(DAY / 24)
        if state["is_broken"]:
            raise KeyError("the code")
        return [first.result(), second.result()]

    register_work_handler(app, call)
    return state


def fail_while_calling(app: App, sim: Simulation) -> tuple[str, Execution]:
    task = create(app, retry={"maxRetries": 0})
    sim.advance(DAY / 12)
    failed = only_run(sim, task)
    assert failed.status == "FAILED", failed
    return task.id, app.execution(task.id, failed.id)


def test_forgotten_calls_under_way_are_cancelled_and_made_again(app: App, calling: dict[str, Any]) -> None:
    """A call before the step goes on and is awaited; one after it is cancelled, and made anew as another task."""
    with Simulation(app) as sim:
        task_id, failed = fail_while_calling(app, sim)
        first, second = (step.child for step in failed.steps if step.kind == "CALL")
        assert first is not None
        assert second is not None
        calling["is_broken"] = False
        app.retry(task_id, failed.id, from_step=2)
        assert (app.get(first).status, app.get(second).status) == ("ACTIVE", "CANCELLED")
        sim.run_until_idle(10 * DAY)
        ended = app.execution(task_id, failed.id)
        assert (ended.status, ended.content) == ("SUCCEEDED", [1, 2])
        assert calling["made"] == [1, 2, 2]
        assert ended.steps[0].child == first
        assert ended.steps[2].child not in {first, second}


def test_a_refused_retry_cancels_nothing(app: App, calling: dict[str, Any]) -> None:
    """The calls under way are as they were if the task is paused, or there is no such step."""
    with Simulation(app) as sim:
        task_id, failed = fail_while_calling(app, sim)
        with pytest.raises(InvalidInput):
            app.retry(task_id, failed.id, from_step=99)
        stored = app.container.store.load(task_id)
        assert stored is not None
        app.container.store.commit(Commit(stored.task.model_copy(update={"status": TaskStatus.CANCELLED}), stored))
        with pytest.raises(NotAllowed):
            app.retry(task_id, failed.id, from_step=1)
        assert {app.get(step.child).status for step in failed.steps if step.child} == {"ACTIVE"}
        assert calling["made"] == [1, 2]


def test_a_retry_that_a_quota_refuses_cancels_nothing(app: App) -> None:
    """It would make the task active again, for which there is no room: that is asked before calls are cancelled."""

    @app.handler("slow", access="users")
    def sleep(ctx: Context) -> None:
        ctx.sleep(DAY)

    @app.handler("calls", access="users")
    def call(ctx: Context) -> None:
        ctx.call("slow")
        ctx.sleep(DAY / 24)
        raise KeyError("the code")

    with Simulation(app, access=Access(max_active_tasks=1)) as sim:
        task = create(app, handler="calls", retry={"maxRetries": 0})
        sim.advance(DAY / 12)
        create(app, handler="slow", schedule=Schedule.once(sim.now + DAY))
        failed = only_run(sim, task)
        (step, _) = app.execution(task.id, failed.id).steps
        assert step.child is not None
        for from_step in (1, None):
            with pytest.raises(QuotaExceeded):
                as_user(app).retry(task.id, failed.id, from_step=from_step)
            assert app.get(step.child).status is TaskStatus.ACTIVE


def test_a_second_retry_changes_nothing(app: App) -> None:
    """Two callers who ask at once get one attempt: the second is told that it is under way."""
    flow = Flow(app)
    with Simulation(app) as sim:
        task_id, failed = fail(app, sim)
        flow.is_broken = False
        app.retry(task_id, failed.id, from_step=3)
        app.retry(task_id, failed.id, from_step=1)
        sim.run_until_idle(10 * DAY)
        assert flow.effects == ["s1", "s2", "s3", "s4", "s3", "s4", "s5"]
