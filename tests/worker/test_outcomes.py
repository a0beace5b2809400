"""What a handler can do with its attempt, with the same effect at the store and through the API."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from pydantic import BaseModel
from tests.engine.harness import MINUTE, SECOND
from tests.worker.harness import WorkerHarness

from cloudsched import App, Cancel, Context, Done, Fail, Retry, Snooze, TaskDraft
from cloudsched.domain.transitions.outcome import Outcome
from cloudsched.engine.ports.search import TaskQuery


class Frame(BaseModel):
    number: int


class Rendered(BaseModel):
    frames: int


def test_a_result_is_recorded(harness: WorkerHarness, app: App) -> None:
    """The payload comes as its model; the result, the progress, the costs and the notices are on the record."""

    @app.handler("render")
    def render(ctx: Context, frame: Frame) -> Rendered:
        ctx.progress("half of it")
        ctx.used(queries=2, tokens=30)
        ctx.notify("Rendered", f"frame {frame.number}")
        return Rendered(frames=frame.number)

    task = harness.offer("render", payload={"number": 7})
    harness.work()
    record = harness.record(task)
    assert (record.status, record.content, record.queries, record.tokens) == ("SUCCEEDED", {"frames": 7}, 2, 30)
    assert [step.text for step in record.progress] == ["half of it"]
    assert [message.body for message in harness.sim.inbox("ada")] == ["frame 7"]
    assert record.attempts[0].worker == "box-1"
    assert harness.statuses() == ["succeeded"]


@pytest.mark.parametrize("outcome", [None, "", Done(), Done("it", silent=True), Done("said")], ids=repr)
def test_a_silent_result_is_delivered_by_no_worker(harness: WorkerHarness, app: App, outcome: object) -> None:
    """The record has the result, and the owner gets it only if it says something."""

    @app.handler("render")
    def render() -> object:
        return outcome

    task = harness.offer("render", delivery_channels=["WEB", "EMAIL"])
    harness.work()
    assert harness.record(task).content == (outcome.content if isinstance(outcome, Done) else outcome)
    said = ["said"] if outcome == Done("said") else []
    assert [message.body for message in harness.sim.inbox("ada")] == said
    found = harness.app.container.store.list_tasks(TaskQuery(owner="ada", is_delivery=True), limit=10).items
    assert len(found) == len(said)


@pytest.mark.parametrize("handler", ["tell", "unknown"])
def test_follow_ups_come_with_the_success_or_fail_the_run(harness: WorkerHarness, app: App, handler: str) -> None:
    """The next run edits what the last one has made. The record says what was refused."""

    @app.handler("render")
    def render(ctx: Context) -> Done:
        when = {"schedule": ctx.now() + MINUTE, "labels": ["a=b"]}
        return Done("it", then=[TaskDraft.of(id="next", owner="ada", handler=handler, **when)])

    app.handler("tell")(lambda: None)
    for _ in range(2):
        harness.sim.advance(SECOND)
        task = harness.offer("render")
        harness.work()
        record = harness.record(task)
    if handler == "tell":
        follow_up = app.get("next")
        assert (record.content, follow_up.revision, follow_up.labels) == ("it", 2, ("a=b",))
    else:
        assert "then.0.handler: there is no handler named 'unknown'" in str(record.attempts[-1].error)


class Unusual(BaseException):
    pass


@pytest.mark.parametrize(
    ("outcome", "status", "what"),
    [
        (Done("it"), "SUCCEEDED", "succeeded"),
        (Retry("later", 5 * MINUTE), "RETRYING", "retrying"),
        (Snooze(5 * MINUTE, "too early"), "RETRYING", "snoozed"),
        (Fail("never"), "FAILED", "failed"),
        (Cancel("nothing to do"), "CANCELLED", "cancelled"),
        (RuntimeError("boom"), "RETRYING", "retrying"),
        (SystemExit(3), "FAILED", "failed"),
        (Unusual("odd"), "RETRYING", "retrying"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_every_outcome_ends_the_attempt_but_not_the_worker(
    harness: WorkerHarness, app: App, outcome: Outcome | BaseException, status: str, what: str
) -> None:
    """Every outcome of the closed set, and every exception of a handler, ends its attempt but not the worker."""

    @app.handler("act")
    def act() -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    @app.handler("greet")
    def greet() -> str:
        return "hello"

    task, other = harness.offer("act"), harness.offer("greet")
    harness.worker().run(once=True)
    record = harness.record(task)
    assert record.status == status
    assert next(ended.status for ended in harness.summaries if ended.work.task.id == task.id) == what
    assert harness.record(other).status == "SUCCEEDED"
    if isinstance(outcome, BaseException):
        assert record.error is not None
        assert type(outcome).__qualname__ in (record.error.traceback or "")
        assert "in act" in (record.error.traceback or "")


def test_a_handler_chooses_when_to_run_again(harness: WorkerHarness, app: App) -> None:
    """A postponed task is offered again at its time, not before; a snooze costs no attempt, a retry does."""

    @app.handler("act")
    def act(ctx: Context, when: Frame) -> object:
        if harness.sim.now < began + 5 * SECOND:
            return Snooze(5 * SECOND) if when.number else Retry("not yet", 5 * SECOND)
        return ctx.attempt

    began = harness.sim.now
    snoozed, failed = harness.offer("act", payload={"number": 1}), harness.offer("act", payload={"number": 0})
    harness.work()
    harness.sim.advance(4 * SECOND)
    harness.work()
    assert len(harness.summaries) == 2
    harness.sim.advance(2 * SECOND)
    harness.work()
    assert [harness.record(task).content for task in (snoozed, failed)] == [1, 2]


def test_durable_handlers(harness: WorkerHarness, app: App) -> None:
    """At the store they work in full; through the API they fail with words on where to run them, at the first step."""
    calls: list[int] = []

    def first() -> int:
        calls.append(1)
        return 1

    @app.handler("act")
    def act(ctx: Context) -> int:
        one = ctx.step("first", first)
        ctx.sleep(SECOND)
        return one + 1

    task = harness.offer("act")
    harness.work()
    harness.sim.advance(2 * SECOND)
    harness.work()
    record = harness.record(task)
    if harness.kind == "store":
        assert (record.status, record.content, calls) == ("SUCCEEDED", 2, [1])
        assert harness.statuses() == ["suspended", "succeeded"]
    else:
        assert (record.status, harness.statuses(), calls) == ("FAILED", ["failed"], [])
        assert record.error is not None
        assert "ctx.step('first') has to be recorded in the store" in record.error.message
        assert "without --url" in record.error.message


def test_time_and_randomness_come_from_the_server(harness: WorkerHarness, app: App) -> None:
    """`ctx.now` and `ctx.time_left` go by the scheduler's clock, chance and UUIDs are the same on every attempt."""
    seen: list[tuple[object, ...]] = []
    times: list[tuple[datetime, timedelta]] = []

    @app.handler("act", retry=1)
    def act(ctx: Context) -> None:
        seen.append((ctx.uuid(), ctx.random.random()))
        times.append((ctx.now(), ctx.time_left()))
        raise RuntimeError("once more")

    harness.offer("act")
    harness.work()
    harness.work()
    assert len(seen) == 2
    assert seen[0] == seen[1]
    for now, left in times:
        assert abs(now - harness.sim.now) < 30 * SECOND
        assert 4 * MINUTE < left <= 5 * MINUTE
