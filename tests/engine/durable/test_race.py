"""What a durable handler may rely on when it lets calls race: the first to end wins, once and for all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, Create, Row, register_work_handler, run, run_to_end

from cloudsched import App, Context, Schedule, Task
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, Lease, Run
from cloudsched.domain.documents.journal import FailureCause, StepKind, StepRecord, StepStatus
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.child_tasks import ChildTasks
from cloudsched.engine.durable.results import CallOutcome, load_call_outcome
from cloudsched.engine.execution import durable_services
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.engine.ports.store import Store
from cloudsched.errors import InvalidInput, StoreUnavailable
from cloudsched.testing import START, Simulation


@pytest.fixture(autouse=True)
def naps(app: App) -> None:
    """Register a handler that sleeps for some hours, and one that fails after some."""

    @app.handler("nap")
    def nap(ctx: Context, row: Row) -> int:
        ctx.sleep(timedelta(hours=row.n))
        return row.n

    @app.handler("bad", retry=False)
    def bad(ctx: Context, row: Row) -> None:
        ctx.sleep(timedelta(hours=row.n))
        raise ConnectionError("no")


def race_naps(ctx: Context, *hours: int, **options: bool) -> list[Any]:
    """Let naps race; return the winner's result, and its place among the arguments."""
    calls = [ctx.call("nap", Row(n=n)) for n in hours]
    result, winner = ctx.race(*calls, **options)
    return [result, calls.index(winner)]


def statuses(sim: Simulation, task: Task) -> list[str]:
    """Return the statuses of a task's calls in the order in which they were made."""
    calls = sim.app.container.store.list_tasks(TaskQuery(parent=task.id), limit=100).items
    return [str(each.status) for each in sorted(calls, key=lambda each: each.parent.step if each.parent else 0)]


def test_the_first_to_end_wins_and_resumes_its_caller_at_once(app: App) -> None:
    execution = run(app, lambda ctx: race_naps(ctx, 3, 1, 2))
    assert execution.content == [1, 1]
    assert execution.finished_at == START + HOUR


@pytest.mark.parametrize("cancels", [True, False])
def test_losers_are_cancelled_unless_they_are_to_go_on(
    app: App, sim: Simulation, create: Create, *, cancels: bool
) -> None:
    register_work_handler(app, lambda ctx: race_naps(ctx, 3, 1, 2, cancel_losers=cancels))
    task = create()
    sim.run_until_idle()
    loser = "CANCELLED" if cancels else "COMPLETED"
    assert statuses(sim, task) == [loser, "COMPLETED", loser]


def test_the_first_to_end_wins_by_its_record_whoever_is_seen_first(app: App) -> None:
    """Both have ended when the caller looks, and the one that ended first is the second argument."""

    def late(ctx: Context) -> int:
        slow, fast = ctx.call("nap", Row(n=2)), ctx.call("nap", Row(n=1))
        ctx.sleep(10 * HOUR)
        return int(ctx.race(slow, fast).result)

    assert run(app, late).content == 1


def test_a_replay_has_the_same_winner_after_the_loser_has_ended(app: App) -> None:
    winners = list[Any]()

    def race(ctx: Context) -> None:
        winners.append(race_naps(ctx, 2, 1, cancel_losers=False))
        ctx.sleep(9 * HOUR)

    run(app, race)
    assert len(winners) > 1
    assert all(each == [1, 1] for each in winners)


def test_a_failure_that_ends_first_raises_and_cancels_the_others(app: App, sim: Simulation, create: Create) -> None:
    register_work_handler(app, lambda ctx: ctx.race(ctx.call("nap", Row(n=2)), ctx.call("bad", Row(n=1))))
    task = create(retry=0)
    execution = run_to_end(sim, task)
    assert execution.error is not None
    assert execution.error.type == "CallFailed"
    assert execution.finished_at == START + HOUR
    assert statuses(sim, task)[0] == "CANCELLED"


def test_a_failure_that_ends_later_does_not_matter(app: App) -> None:
    assert run(app, lambda ctx: ctx.race(ctx.call("nap", Row(n=1)), ctx.call("bad", Row(n=2))).result).content == 1


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_process_that_dies_while_it_decides_decides_alike_afterwards(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch, *, is_cancelled: bool
) -> None:
    """Whether it had cancelled the first loser or not: the winner stays the winner, and all losers are cancelled."""
    cancel, tries = ChildTasks.cancel_call, list[str]()

    def fail_first(self: ChildTasks, task_id: str, reason: str) -> None:
        tries.append(task_id)
        if len(tries) > 1 or is_cancelled:
            cancel(self, task_id, reason)
        if len(tries) == 1:
            raise StoreUnavailable("The store", "died")

    monkeypatch.setattr(ChildTasks, "cancel_call", fail_first)
    register_work_handler(app, lambda ctx: race_naps(ctx, 3, 1, 4))
    task = create()
    execution = run_to_end(sim, task)
    assert execution.content == [1, 1]
    assert statuses(sim, task) == ["CANCELLED", "COMPLETED", "CANCELLED"]
    assert len(set(tries)) == 2


def test_a_loser_that_was_cancelled_by_a_clock_that_is_behind_does_not_win(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process died before it recorded the winner, and its clock said that the loser ended first."""
    cancel, tries, ends = ChildTasks.cancel_call, list[str](), dict[str, Any]()

    def die_after(self: ChildTasks, task_id: str, reason: str) -> None:
        tries.append(task_id)
        cancel(self, task_id, reason)
        ends[task_id] = START
        raise StoreUnavailable("The store", "died")

    monkeypatch.setattr(ChildTasks, "cancel_call", die_after)
    load = load_call_outcome

    def load_by_that_clock(store: Store, handler: str, task_id: str) -> CallOutcome | None:
        found = load(store, handler, task_id)
        return found and found._replace(finished_at=ends.get(task_id, START + MINUTE))

    monkeypatch.setattr(durable_services, "load_call_outcome", load_by_that_clock)
    execution = run(app, lambda ctx: race_naps(ctx, 3, 1))
    assert execution.content == [1, 1]
    assert len(tries) == 1


def test_no_loser_goes_on_when_the_execution_ends_before_the_winner_is_recorded(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No replay comes any more that could cancel it: what is recorded as cancelled has been cancelled before."""
    cancel = ChildTasks.cancel_call

    def end_it(self: ChildTasks, task_id: str, reason: str) -> None:
        cancel(self, task_id, reason)
        app.cancel(task.id)

    monkeypatch.setattr(ChildTasks, "cancel_call", end_it)
    register_work_handler(app, lambda ctx: race_naps(ctx, 3, 1))
    task = create()
    sim.run_until_idle()
    assert statuses(sim, task) == ["CANCELLED", "COMPLETED"]


def test_what_is_below_a_loser_is_cancelled_though_the_process_dies_before(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No replay comes back to a loser that is cancelled already, and there may be none at all: the sweep does."""
    cancel, died = ChildTasks.cancel_descendants, list[str]()

    def die_once(self: ChildTasks, task: Task) -> bool:
        if died:
            return cancel(self, task)
        died.append(task.id)
        raise StoreUnavailable("The store", "died")

    monkeypatch.setattr(ChildTasks, "cancel_descendants", die_once)

    @app.handler("mid")
    def mid(ctx: Context) -> object:
        return ctx.call("nap", Row(n=8)).result()

    register_work_handler(app, lambda ctx: ctx.race(ctx.call("mid"), ctx.call("nap", Row(n=1))).result)
    create()
    sim.advance(2 * HOUR)
    assert len(died) == 1
    assert not [each for each in app.container.store.list_tasks(TaskQuery(), limit=100).items if each.is_active]


def test_a_retried_race_runs_again_without_what_failed(app: App, sim: Simulation, create: Create) -> None:
    """The cancelled loser starts anew: its cancellation must not win the second race."""
    is_up = list[bool]()

    @app.handler("flaky", retry=False)
    def flaky(ctx: Context) -> str:
        ctx.sleep(MINUTE)
        if not is_up:
            raise ConnectionError("down")
        return "up"

    register_work_handler(app, lambda ctx: ctx.race(ctx.call("nap", Row(n=1)), ctx.call("flaky")).result)
    task = create(retry=0)
    execution = run_to_end(sim, task)
    is_up.append(True)
    app.retry(task.id, execution.id)
    execution = run_to_end(sim, task)
    assert execution.content == "up"


@pytest.mark.parametrize("misuse", ["nothing", "twice", "result", "list", "flag"])
def test_a_race_of_what_cannot_race_is_refused(app: App, misuse: str) -> None:
    def race(ctx: Context) -> None:
        call = ctx.call("nap", Row(n=1))
        wrong: dict[str, tuple[Any, ...]] = {"nothing": (), "twice": (call, call), "result": (1,), "list": ([call],)}
        with pytest.raises(InvalidInput):
            ctx.race(*wrong.get(misuse, (call,)), **({"cancel_losers": "no"} if misuse == "flag" else {}))  # type: ignore[arg-type]

    assert run(app, race).status == "SUCCEEDED"


@pytest.mark.usefixtures("sim")
@pytest.mark.parametrize(("status", "is_called_again"), [("CANCELLED", True), ("ACTIVE", False)])
def test_a_cancelled_loser_whose_attempt_still_runs_is_called_again_by_a_retry(
    app: App, create: Create, status: str, *, is_called_again: bool
) -> None:
    """A call that made a race fail is awaited by a retry only if it was itself retried; cancelled, it is made anew."""
    register_work_handler(app, lambda ctx: ctx.sleep(MINUTE))
    parent, child = create(), create(schedule=Schedule.once(START + DAY))
    store = app.container.store
    stored = store.load(child.id)
    assert stored is not None
    lease = Lease(token_hash="0", started_at=START, until=START + MINUTE)  # noqa: S106 - no password
    run_of_call = Run(execution_id="run", scheduled_for=START, due_at=START, lease=lease)
    changes = {"status": TaskStatus(status), "next_execution_time": None, "runs": (run_of_call,)}
    store.commit(Commit(stored.task.model_copy(update=changes), stored))
    failed = StepRecord(
        number=1, kind=StepKind.CALL, name="nap", status=StepStatus.FAILED, child=child.id, started_at=START
    )
    record = Execution(
        id="e1",
        task_id=parent.id,
        owner="ada",
        scheduled_for=START,
        status=ExecutionStatus.FAILED,
        steps=(failed, failed.model_copy(update={"number": 2, "kind": StepKind.STEP, "child": None})),
        failure_cause=FailureCause(steps=(1,), position=2),
    )
    loaded = store.load(parent.id)
    assert loaded is not None
    store.commit(Commit(loaded.task, loaded, (record,)))
    app.retry(parent.id, "e1")
    (entry, *_) = store.load_journal(parent.id, "e1")
    assert (entry.child != child.id) is is_called_again
