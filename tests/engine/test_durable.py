"""What a durable handler may rely on."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from cloudsched import App, Context, Execution, RetryPolicy, Schedule, Settings, Snooze, Task
from cloudsched.domain import journal as limits
from cloudsched.engine.holding import Held
from cloudsched.errors import (
    CallFailed,
    EventTimedOut,
    InvalidInput,
    NotAllowed,
    StepFailed,
    WorkflowError,
)
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


@pytest.fixture
def app() -> App:
    return App(Settings())


def create(app: App, **fields: Any) -> Task:
    usual: dict[str, Any] = {"owner": "ada", "title": "Work", "handler": "work", "schedule": Schedule.once(START)}
    return app.create(**(usual | fields))


def run(app: App, limit: timedelta = 400 * DAY, **settings: Any) -> Execution:
    """Run the handler ``work`` once, and return its record."""
    with Simulation(app, **settings) as sim:
        task = create(app)
        sim.run_until_idle(limit)
        (execution,) = sim.executions(task.id)
        return app.execution(task.id, execution.id)


class Row(BaseModel):
    n: int


def test_a_step_is_called_once_and_its_result_is_what_its_annotation_says(app: App) -> None:
    calls, seen = list[int](), list[object]()

    def rows(count: int) -> list[Row]:
        calls.append(count)
        return [Row(n=n) for n in range(count)]

    @app.handler("work")
    def work(ctx: Context) -> int:
        found = ctx.step("rows", rows, 2)
        seen.append(found)
        ctx.sleep(DAY)
        return sum(row.n for row in found)

    assert run(app).content == 1
    assert calls == [2]
    assert seen == [[Row(n=0), Row(n=1)]] * 2


def test_what_is_not_json_is_the_same_the_first_time_and_in_a_replay(app: App) -> None:
    """A tuple without an annotation is a list at once, not only after a replay."""
    seen = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        seen.append(ctx.step("pair", lambda: (1, "two")))
        ctx.sleep(DAY)

    run(app)
    assert seen == [[1, "two"], [1, "two"]]


def test_nothing_runs_and_nothing_is_spent_while_it_sleeps(app: App) -> None:
    """Forty-five days are two hops of the queue, and not one call of the function."""
    calls = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        calls.append(None)
        ctx.sleep(timedelta(days=45))

    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        (execution,) = sim.executions(task.id)
        assert (execution.status, len(calls)) == ("SUSPENDED", 1)
        before = sim.counts.copy()
        sim.advance(timedelta(days=44))
        spent = sim.counts.since(before)
        assert (spent.commits, spent.dispatches, len(calls)) == (0, 1, 1)
        sim.advance(DAY)
        (execution,) = sim.executions(task.id)
        assert (execution.status, len(calls)) == ("SUCCEEDED", 2)
        assert execution.finished_at == START + timedelta(days=45)


def test_now_uuid_and_random_are_the_same_in_every_replay(app: App) -> None:
    seen = list[tuple[object, ...]]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        seen.append((ctx.now(), ctx.uuid(), ctx.uuid(), ctx.random.random(), ctx.random.choice(range(1000))))
        ctx.sleep(DAY)

    run(app)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert seen[0][0] == START
    assert seen[0][1] != seen[0][2]


def test_a_handler_that_is_not_durable_is_told_the_present_and_keeps_no_journal(app: App) -> None:
    seen = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> object:
        seen.append(ctx.now())
        for _ in range(limits.MAX_STEPS):
            ctx.now()
        return Snooze(DAY) if len(seen) == 1 else None

    assert run(app).steps == ()
    assert seen == [START, START + DAY]


@pytest.mark.parametrize("first", ["event", "handler"])
def test_an_event_is_taken_once_whether_it_comes_early_or_is_waited_for(app: App, first: str) -> None:
    @app.handler("work")
    def work(ctx: Context) -> list[Any]:
        if first == "event":
            ctx.sleep(DAY)
        answer = ctx.wait_for("answer")
        with pytest.raises(EventTimedOut):
            ctx.wait_for("answer", timeout=DAY)
        return [answer.by, answer["by"]]

    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        app.send_event(task.id, "other", {"by": "nobody"})
        app.send_event(task.id, "answer", {"by": "grace"})
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
        assert execution.status == "SUCCEEDED", execution.error
        assert execution.content == ["grace", "grace"]
        assert [event.name for event in app.get(task.id).events] == ["other"]
        with pytest.raises(NotAllowed):
            app.send_event(task.id, "answer")


def test_events_are_bounded(app: App) -> None:
    @app.handler("work")
    def work() -> None:
        """Take none."""

    with Simulation(app):
        task = create(app, schedule=Schedule.once(START + DAY))
        with pytest.raises(InvalidInput, match="bytes"):
            app.send_event(task.id, "large", "x" * 10_000)
        for _ in range(20):
            app.send_event(task.id, "answer")
        with pytest.raises(NotAllowed, match="full of 20 events"):
            app.send_event(task.id, "answer")


def test_a_step_is_tried_again_as_its_policy_says_without_a_function_in_between(app: App) -> None:
    tries = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> str:
        def flaky() -> str:
            tries.append(ctx.now())
            if len(tries) < 4:
                raise ConnectionError("no")
            return "done"

        policy = RetryPolicy(max_retries=3, first_delay=MINUTE, base=2 * MINUTE, factor=2, jitter=0)
        return ctx.step("flaky", flaky, retry=policy)

    execution = run(app)
    (step,) = execution.steps
    assert (execution.content, len(execution.attempts), step.attempts) == ("done", 1, 4)
    assert tries == [START, START + MINUTE, START + 3 * MINUTE, START + 7 * MINUTE]
    assert step.finished_at == START + 7 * MINUTE


def test_a_step_that_fails_for_good_is_an_exception_that_the_handler_may_catch(app: App) -> None:
    """It is the same exception in a replay, and the step is not tried again."""
    tries, caught = list[object](), list[str]()

    def broken() -> None:
        tries.append(None)
        raise KeyError("k")

    @app.handler("work")
    def work(ctx: Context) -> str:
        try:
            ctx.step("broken", broken, retry=1)
        except StepFailed as failure:
            caught.append(f"{failure.step} {failure.type} {failure}")
        ctx.sleep(DAY)
        return "went on"

    assert run(app).content == "went on"
    assert (len(tries), len(caught), len(set(caught))) == (2, 2, 1)


def test_a_failed_step_that_nobody_catches_fails_the_execution_at_once(app: App) -> None:
    """A replay would only meet the same failure, so the task's own retries are not spent on it."""

    @app.handler("work", retry=3)
    def work(ctx: Context) -> None:
        ctx.step("broken", lambda: 1 / 0, retry=False)

    execution = run(app)
    assert (execution.status, len(execution.attempts)) == ("FAILED", 1)
    assert execution.error
    assert (execution.error.type, execution.steps[0].error and execution.steps[0].error.type) == (
        "StepFailed",
        "ZeroDivisionError",
    )


def test_an_execution_that_is_retried_by_hand_goes_on_from_the_step_that_failed(app: App) -> None:
    done = list[str]()

    def second() -> None:
        done.append("second")
        if done.count("second") == 1:
            raise ConnectionError("no")

    @app.handler("work")
    def work(ctx: Context) -> str:
        ctx.step("first", lambda: done.append("first"))
        ctx.step("second", second, retry=False)
        return "done"

    with Simulation(app) as sim:
        task = create(app)
        sim.run_until_idle()
        assert app.get(task.id).status == "FAILED"
        app.retry(task.id)
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert done == ["first", "second", "second"]
    assert (execution.content, [step.name for step in execution.steps]) == ("done", ["first", "second"])


def test_a_step_that_takes_too_long_is_given_up(app: App) -> None:
    never = threading.Event()

    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("slow", never.wait, timeout=timedelta(milliseconds=20), retry=1)

    execution = run(app)
    never.set()
    assert execution.steps[0].status == "TIMED_OUT"
    assert execution.steps[0].attempts == 2


def test_inside_a_step_the_present_is_the_present_and_other_steps_are_refused(app: App) -> None:
    """Nothing inside it is asked for again in a replay, so nothing of it may be numbered."""

    def inside(ctx: Context) -> list[str]:
        ctx.now(), ctx.uuid(), ctx.random.random()
        with pytest.raises(WorkflowError, match="step 'inner' inside it belongs beside it"):
            ctx.step("inner", lambda: 1)
        return []

    seen = list[object]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("outer", inside, ctx)
        seen.append((ctx.uuid(), ctx.random.random(), ctx.now()))
        ctx.sleep(DAY)

    assert run(app).status == "SUCCEEDED"
    assert seen[0] == seen[1]


def test_a_handler_that_raises_is_replayed_and_its_steps_are_not_done_again(app: App) -> None:
    done, attempts = list[str](), list[int]()

    @app.handler("work")
    def work(ctx: Context) -> str:
        attempts.append(ctx.attempt)
        ctx.step("once", lambda: done.append("once"))
        if len(attempts) < 3:
            raise ConnectionError("no")
        return "done"

    execution = run(app)
    assert (execution.content, done, attempts) == ("done", ["once"], [1, 2, 3])


def test_attempts_count_anew_once_the_handler_has_got_further(app: App) -> None:
    """Ninety days with a failure on each of them are no reason to give up, where one retry is allowed."""
    failures = list[int]()

    @app.handler("work", retry=1)
    def work(ctx: Context) -> int:
        for day in range(90):
            ctx.sleep(DAY)
            if day == len(failures):
                failures.append(day)
                raise ConnectionError("no")
        return len(failures)

    assert run(app).content == 90


# ── Calls ────────────────────────────────────────────────────────────────────────────────────────────────────────


def calling(app: App, call: Callable[[Context], Any]) -> None:
    @app.handler("work")
    def work(ctx: Context) -> Any:  # noqa: ANN401 - whatever the test says
        return call(ctx)


def test_calls_run_side_by_side_and_come_back_in_their_order(app: App) -> None:
    @app.handler("nap")
    def nap(ctx: Context, row: Row) -> Row:
        ctx.sleep(timedelta(hours=10 - row.n))
        return row

    calling(app, lambda ctx: ctx.gather(*[ctx.call("nap", Row(n=n)) for n in range(5)]))
    execution = run(app)
    assert execution.content == [{"n": n} for n in range(5)]
    assert execution.finished_at == START + timedelta(hours=10)


def test_only_the_last_call_of_many_wakes_its_parent(app: App) -> None:
    @app.handler("nap")
    def nap(ctx: Context, row: Row) -> int:
        ctx.sleep(row.n * timedelta(seconds=1))
        return row.n

    replays = list[object]()

    def call(ctx: Context) -> int:
        replays.append(None)
        return sum(ctx.gather(*[ctx.call("nap", Row(n=n)) for n in range(1, 31)]))

    calling(app, call)
    assert run(app).content == 465
    assert len(replays) == 2


def test_a_call_that_ends_while_its_parent_is_being_suspended_lets_it_go_on_at_once(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its word comes while the parent still holds the lease; nobody waits for the parent's own look a minute later."""

    @app.handler("fine")
    def fine() -> str:
        return "fine"

    calling(app, lambda ctx: ctx.call("fine").result())
    with Simulation(app) as sim:
        task = create(app)
        finish = Held.finish

        def finish_late(held: Held, *arguments: Any) -> Task | None:
            if held.task.id == task.id:
                sim.queue.deliver_due()
            return finish(held, *arguments)

        monkeypatch.setattr(Held, "finish", finish_late)
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert (execution.content, execution.finished_at) == ("fine", START)


def test_what_was_sent_for_an_earlier_suspension_runs_nothing(app: App) -> None:
    """An event brings a run forward; the dispatch for its timeout is dropped, however often that happens."""

    def call(ctx: Context) -> int:
        return sum(ctx.wait_for("more", timeout=timedelta(hours=1)) for _ in range(10))

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        for _ in range(10):
            app.send_event(task.id, "more", 1)
            sim.advance(timedelta(seconds=1))
        assert sim.executions(task.id)[0].content == 10
        before = len(sim.queue.deliveries)
        sim.advance(DAY)
        late = [each.verdict.why for each in sim.queue.deliveries[before:] if each.verdict]
    assert len(late) == 10
    assert set(late) == {"the task is COMPLETED"}


def test_an_early_dispatch_of_an_earlier_suspension_is_not_sent_on(app: App) -> None:
    """Each of a hundred events leaves one dispatch behind; none of them becomes another one."""

    def call(ctx: Context) -> int:
        for _ in range(15):
            ctx.wait_for("more", timeout=MINUTE)
        ctx.sleep(DAY)
        return 1

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(timedelta(seconds=1))
        for _ in range(15):
            app.send_event(task.id, "more")
            sim.advance(timedelta(seconds=1))
        before = len(sim.queue.deliveries)
        sim.advance(timedelta(hours=23))
        late = [each.verdict.action for each in sim.queue.deliveries[before:] if each.verdict]
    assert late == ["dropped"] * 15


def test_nobody_can_put_a_task_of_their_own_in_the_place_of_a_call(app: App) -> None:
    """The ids of calls can be worked out; a task that has one already is not taken for the call."""

    @app.handler("fine")
    def fine() -> str:
        return "fine"

    calling(app, lambda ctx: ctx.call("fine").result())
    with Simulation(app) as sim:
        task = create(app, id="parent")
        taken = limits.call_id("parent", "20270101T000000Z", 1, 1)
        create(app, id=taken, owner="eve", handler="fine", schedule=Schedule.once(START + DAY))
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert execution.error
    assert taken in execution.error.message


def test_a_failed_call_is_an_exception_in_its_parent(app: App) -> None:
    @app.handler("broken", retry=False)
    def broken() -> None:
        raise KeyError("no such account")

    @app.handler("fine")
    def fine() -> str:
        return "fine"

    caught = list[CallFailed]()

    def call(ctx: Context) -> Any:  # noqa: ANN401 - a list or more
        calls = [ctx.call("fine"), ctx.call("broken")]
        try:
            ctx.gather(*calls)
        except CallFailed as failure:
            caught.append(failure)
        ctx.sleep(DAY)
        return [str(each) for each in ctx.gather(*calls, return_failures=True)]

    calling(app, call)
    content = run(app).content
    assert content[0] == "fine"
    assert {str(failure) for failure in caught} == {content[1]}
    assert (caught[0].handler, caught[0].status, caught[0].type) == ("broken", "FAILED", "KeyError")


def test_a_call_that_its_owner_cancels_or_deletes_fails_in_its_parent(app: App) -> None:
    @app.handler("forever")
    def forever(ctx: Context) -> None:
        ctx.wait_for("never")

    calling(app, lambda ctx: [f.status for f in ctx.gather(*[ctx.call("forever") for _ in "ab"], return_failures=True)])
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        first, second = app.tree(task.id).children
        app.cancel(first.task.id)
        app.delete(second.task.id)
        sim.advance(MINUTE)
        (execution,) = sim.executions(task.id)
    assert execution.content == ["CANCELLED", "DELETED"]


def test_cancelling_a_task_cancels_all_that_runs_below_it(app: App) -> None:
    """Two levels down; and nothing of it runs afterwards."""

    @app.handler("leaf")
    def leaf(ctx: Context) -> None:
        ctx.sleep(DAY)

    @app.handler("branch")
    def branch(ctx: Context) -> None:
        ctx.gather(*[ctx.call("leaf") for _ in range(3)])

    calling(app, lambda ctx: ctx.gather(*[ctx.call("branch") for _ in range(2)]))
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        tree = app.tree(task.id)
        leaves = [leaf.task for branch in tree.children for leaf in branch.children]
        assert (len(tree.children), len(leaves)) == (2, 6)
        app.cancel(task.id)
        before = len(sim.queue.deliveries)
        sim.run_until_idle()
        everything = [task, *(each.task for each in tree.children), *leaves]
        assert {app.get(each.id).status.value for each in everything} == {"CANCELLED"}
        assert {e.status.value for each in everything for e in sim.executions(each.id)} == {"CANCELLED"}
        assert not app.get(task.id).deferred
        verdicts = {each.verdict.action.value for each in sim.queue.deliveries[before:] if each.verdict}
        assert verdicts == {"dropped"}


def test_a_cancel_that_dies_halfway_is_finished_by_the_sweep(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.handler("leaf")
    def leaf(ctx: Context) -> None:
        ctx.sleep(DAY)

    calling(app, lambda ctx: ctx.gather(*[ctx.call("leaf") for _ in range(2)]))
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        with monkeypatch.context() as patch:
            patch.setattr("cloudsched.engine.nesting.Nesting.cancel_below", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                app.cancel(task.id)
        sim.advance(2 * MINUTE)
        assert {branch.task.status.value for branch in app.tree(task.id).children} == {"CANCELLED"}


def test_the_journal_lies_under_the_execution_while_it_runs_and_in_its_record_afterwards(app: App) -> None:
    @app.handler("fine")
    def fine() -> str:
        return "fine"

    def call(ctx: Context) -> str:
        ctx.step("first", lambda: 1)
        answer = ctx.call("fine").result()
        ctx.sleep(DAY)
        return f"{answer}!"

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(MINUTE)
        (execution,) = sim.executions(task.id)
        open_steps = app.execution(task.id, execution.id).steps
        assert [entry.folded() for entry in app.store.journal(task.id, execution.id)] == list(open_steps)
        sim.run_until_idle()
        ended = app.execution(task.id, execution.id)
        assert app.store.journal(task.id, execution.id) == []
    assert [(step.kind, step.result) for step in ended.steps] == [("STEP", 1), ("CALL", "fine"), ("SLEEP", None)]
    assert open_steps[:2] == ended.steps[:2]


# ── Changed code ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (lambda ctx: ctx.step("other", lambda: 1), "Step 1 was step 'first' when it was recorded, and is step 'other'"),
        (lambda ctx: ctx.sleep(DAY), "Step 1 was step 'first' when it was recorded, and is sleep now"),
        (lambda _: None, "Step 1 was step 'first' when it was recorded, and is the handler's end"),
    ],
)
def test_a_replay_that_diverges_stops_and_says_where(
    app: App, after: Callable[[Context], object], expected: str
) -> None:
    replays = list[object]()

    def call(ctx: Context) -> None:
        replays.append(None)
        if len(replays) > 1:
            after(ctx)
            return
        ctx.step("first", lambda: 1)
        ctx.sleep(DAY)

    calling(app, call)
    execution = run(app)
    assert execution.status == "FAILED"
    assert execution.error
    assert execution.error.type == "JournalMismatch"
    assert execution.error.message.startswith(expected)


def test_a_version_lets_code_change_while_executions_are_under_way(app: App) -> None:
    """Those that had passed keep to the old code, those that come follow the new one, each in all its replays."""
    code = {"is_new": False}

    def call(ctx: Context) -> list[str]:
        said = []
        if code["is_new"] and ctx.version("better", 2) >= 2:
            said.append(ctx.step("new", lambda: "new"))
        else:
            said.append(ctx.step("old", lambda: "old"))
        ctx.sleep(DAY)
        if code["is_new"]:
            said.append(str(ctx.version("better", 2)))
        return said

    calling(app, call)
    with Simulation(app) as sim:
        before = create(app)
        sim.advance(MINUTE)
        code["is_new"] = True
        after = create(app, schedule=Schedule.once(sim.now))
        sim.run_until_idle()
        contents = [sim.executions(task.id)[0].content for task in (before, after)]
    assert contents == [["old", "1"], ["new", "2"]]


def test_replaying_at_each_step_finds_what_is_not_deterministic(app: App) -> None:
    """A handler that passes otherwise, since nothing interrupts it."""
    names = iter("abcdefgh")

    def call(ctx: Context) -> None:
        for _ in range(3):
            ctx.step(next(names), lambda: 1)

    calling(app, call)
    assert run(app).status == "SUCCEEDED"
    execution = run(app, replay=True)
    assert execution.error
    assert execution.error.type == "JournalMismatch"


def test_a_handler_that_catches_its_suspension_is_told_what_it_did(app: App) -> None:
    def call(ctx: Context) -> str:
        try:
            ctx.sleep(DAY)
        except BaseException:  # noqa: BLE001 - just that
            return "caught"
        return "slept"

    calling(app, call)
    execution = run(app)
    assert execution.error
    assert "catch Exception instead" in execution.error.message


# ── Bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_depth_is_bounded(app: App) -> None:
    @app.handler("work")
    def work(ctx: Context) -> str:
        try:
            return str(ctx.call("work").result())
        except CallFailed as failure:
            return failure.message

    assert "nested 11 deep" in run(app).content


def test_fan_out_is_bounded(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.engine.journal.MAX_CALLS", 3)

    @app.handler("fine")
    def fine() -> None:
        """Do nothing."""

    calling(app, lambda ctx: [ctx.call("fine") for _ in range(4)])
    execution = run(app)
    assert execution.error
    assert "3 calls are under way" in execution.error.message


def test_the_journal_is_bounded(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudsched.engine.walking.MAX_STEPS", 20)
    calling(app, lambda ctx: [ctx.step("one", lambda: 1) for _ in range(21)])
    execution = run(app)
    assert execution.error
    assert execution.error.type == "LimitExceeded"
    assert len(execution.steps) == 20


def test_large_results_go_by_reference_and_come_back_whole(app: App) -> None:
    """A megabyte from a step and from a call; neither is in a document."""
    large = "x" * 400_000

    @app.handler("large")
    def from_call() -> str:
        return large

    def call(ctx: Context) -> list[int]:
        one, two = ctx.step("large", lambda: [large] * 3), ctx.call("large").result()
        ctx.sleep(DAY)
        return [len(json.dumps(one)), len(two)]

    calling(app, call)
    execution = run(app)
    assert execution.content == [3 * 400_002 + 6, 400_000]
    assert [step.reference is not None for step in execution.steps] == [True, True, False]
    assert len(execution.model_dump_json()) < 10_000


def test_many_results_together_go_by_reference_and_a_retry_by_hand_has_them(app: App) -> None:
    calls = list[int]()

    def page(n: int) -> str:
        calls.append(n)
        return "x" * 15_000

    def call(ctx: Context) -> int:
        total = sum(len(ctx.step("page", page, n)) for n in range(30))
        ctx.step("flaky", lambda: 1 // (len(calls) - 30), retry=False)
        return total

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app)
        sim.run_until_idle()
        (failed,) = sim.executions(task.id)
        assert failed.steps_reference is not None
        assert len(failed.model_dump_json()) < 20_000
        calls.append(-1)
        app.retry(task.id)
        sim.run_until_idle()
        assert sim.executions(task.id)[0].content == 30 * 15_000
    assert len(calls) == 31


def test_a_handler_near_its_functions_time_limit_goes_on_in_another_call(app: App) -> None:
    """Steps of three minutes each, in a function that may run for nine."""
    calls, steps = list[object](), list[int]()

    with Simulation(app) as sim:

        def slow(n: int) -> None:
            steps.append(n)
            sim.clock.move_to(sim.now + timedelta(minutes=3))

        def call(ctx: Context) -> str:
            calls.append(None)
            for n in range(10):
                ctx.step("slow", slow, n)
            return "done"

        calling(app, call)
        task = create(app)
        sim.run_until_idle()
        (execution,) = sim.executions(task.id)
    assert execution.content == "done"
    assert steps == list(range(10))
    assert len(calls) == 4
    assert len(execution.attempts) == 1


def test_a_paused_task_stops_at_its_next_durable_point_and_goes_on_when_resumed(app: App) -> None:
    done = list[str]()

    def first(ctx: Context) -> None:
        done.append("first")
        app.pause(ctx.task.id)

    def call(ctx: Context) -> str:
        ctx.step("first", first, ctx)
        ctx.step("second", lambda: done.append("second"))
        return "done"

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app)
        sim.advance(DAY)
        assert (done, app.get(task.id).status) == (["first"], "PAUSED")
        app.resume(task.id)
        sim.advance(MINUTE)
        assert sim.executions(task.id)[0].content == "done"
    assert done == ["first", "second"]


def test_a_lock_is_free_while_its_holder_is_suspended(app: App) -> None:
    order = list[str]()

    @app.handler("work")
    def work(ctx: Context) -> None:
        ctx.step("first", lambda: order.append(f"{ctx.task.id} begins"))
        ctx.sleep(timedelta(hours=1) if ctx.task.id == "a" else MINUTE)
        ctx.step("second", lambda: order.append(f"{ctx.task.id} ends"))

    with Simulation(app) as sim:
        for name in ("a", "b"):
            create(app, id=name, lock_key="one")
        sim.run_until_idle()
        assert {app.get(name).status.value for name in "ab"} == {"COMPLETED"}
        assert app.store.load_lock("one").lock.is_empty
    assert order == ["a begins", "b begins", "b ends", "a ends"]


def test_results_of_calls_are_kept_until_their_parent_has_asked_for_them(app: App) -> None:
    """Ended tasks are removed after a day here; this parent asks after ten."""

    @app.handler("fine")
    def fine() -> str:
        return "fine"

    def call(ctx: Context) -> Any:  # noqa: ANN401 - a call or its result
        begun = ctx.call("fine")
        ctx.sleep(10 * DAY)
        return begun

    calling(app, call)
    with Simulation(app, retention=DAY) as sim:
        task = create(app)
        sim.advance(10 * DAY + MINUTE)
        assert sim.executions(task.id)[0].content == "fine"
        sim.run_until_idle()
        assert not app.tasks().items


def test_every_day_of_a_recurring_task_has_a_journal_of_its_own(app: App) -> None:
    def call(ctx: Context) -> str:
        day = ctx.step("day", lambda: str(ctx.scheduled_for))
        ctx.sleep(MINUTE)
        return day

    calling(app, call)
    with Simulation(app) as sim:
        task = create(app, schedule=Schedule.every(DAY, start=START))
        sim.advance(3 * DAY - MINUTE)
        assert [e.content for e in sim.executions(task.id)] == [str(START + n * DAY) for n in range(3)]
