"""What a quick handler's result sends goes out with the one commit that counts: once, and nothing of the others."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.engine.execution.test_quick_runs import HOUR, SECOND, Stage

from cloudsched import Context, Done, RetryPolicy, Schedule, TaskDraft
from cloudsched.adapters.operation_counts import Counts
from cloudsched.errors import QueueUnavailable
from cloudsched.testing import START

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHANNELS = ("EMAIL", "MOBILE", "WEB")
URL = "https://example.com/done"


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    with made.sim:
        made.sim.add_person("ada")
        yield made


def sent(stage: Stage) -> dict[str, list[str]]:
    """Return what was sent to people, by channel, and what the callback was told."""
    bodies = {channel: [each.body for each in stage.sim.sent(channel, to="ada")] for channel in ("EMAIL", "MOBILE")}
    kinds = [each.message.kind for each in stage.sim.sent("COMPLETION")]
    return {**bodies, "WEB": [each.body for each in stage.sim.inbox("ada")], "COMPLETION": kinds}


def by_channel(bodies: list[str], *told: str) -> dict[str, list[str]]:
    """Return what `sent` does if each channel has sent these, and the callback was told so."""
    return {**dict.fromkeys(CHANNELS, bodies), "COMPLETION": [*told]}


def test_of_two_results_at_once_one_is_sent_by_each_channel(stage: Stage) -> None:
    """Mail, push, inbox and callback: what the losing call of the handler said reaches nobody."""
    stage.create(delivery_channels=CHANNELS, on_completion={"webhook": URL})
    stage.during = [stage.repeat]
    stage.sim.advance(HOUR)
    assert len(stage.calls) == 2
    assert sent(stage) == by_channel(["done"], "execution.succeeded")


def test_a_losing_failure_tells_nobody(stage: Stage) -> None:
    """Neither the callback nor the failure hook hears of it."""
    stage.create(delivery_channels=CHANNELS, on_completion={"webhook": URL})

    def fail(ctx: Context) -> None:
        stage.repeat(ctx)
        raise ValueError("late")

    stage.during = [fail]
    stage.sim.advance(HOUR)
    assert sent(stage)["COMPLETION"] == ["execution.succeeded"]
    assert stage.failures == []


def test_of_two_results_at_once_one_has_its_follow_up(stage: Stage) -> None:
    """The task that the losing call asked for is never made, not even for a moment."""

    def follow(name: str) -> Done:
        return Done(name, then=(TaskDraft.of(id=name, owner="ada", title=name, handler="work"),))

    def lose(ctx: Context) -> Done:
        stage.repeat(ctx)
        return follow("late")

    stage.create()
    stage.during = [lose, lambda _: follow("first")]
    stage.sim.advance(HOUR)
    assert stage.records == [("20270101T003000Z", "SUCCEEDED", "first")]
    assert {each.id for each in stage.app.tasks().items} == {"t", "first"}


def test_only_the_attempt_that_succeeds_is_sent(stage: Stage) -> None:
    """An attempt that is retried sends nothing, nor what it had notified."""
    stage.create(delivery_channels=CHANNELS, retry=RetryPolicy(max_retries=1, base=SECOND))

    def fail(ctx: Context) -> None:
        ctx.notify("Half", "half way")
        raise ValueError("first")

    stage.during = [fail]
    stage.sim.advance(HOUR)
    assert len(stage.calls) == 2
    assert sent(stage) == by_channel(["done"])


@pytest.mark.parametrize("verb", ["pause", "cancel", "delete"])
def test_a_task_that_is_stopped_while_it_runs_sends_nothing(stage: Stage, verb: str) -> None:
    """Its result is dropped, and what would have been sent with it."""
    stage.create(delivery_channels=CHANNELS)
    stage.during = [lambda _: getattr(stage.app, verb)("t") and None]
    stage.sim.advance(HOUR)
    assert sent(stage) == by_channel([])


def test_a_queue_that_is_down_after_the_commit_delays_what_is_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deliveries are stored with the result: the sweep dispatches them, and each is sent once."""
    stage.create(delivery_channels=CHANNELS)
    create = stage.sim.queue.create

    def refuse(_: object) -> None:
        raise QueueUnavailable("The queue", "for a test")

    def fail_from_now_on(_: Context) -> str:
        monkeypatch.setattr(stage.sim.queue, "create", refuse)
        return "done"

    stage.during = [fail_from_now_on]
    stage.sim.advance(timedelta(minutes=30, seconds=5))
    assert sent(stage)["EMAIL"] == []
    monkeypatch.setattr(stage.sim.queue, "create", create)
    stage.sim.advance(timedelta(minutes=20))
    assert sent(stage) == by_channel(["done"])
    assert len(stage.calls) == 1


def test_a_delivery_costs_what_it_costs_any_handler(stage: Stage) -> None:
    """Beside it, the quick run costs a commit and a write of the task less than an ordinary one."""

    @stage.app.handler("ordinary")
    def ordinary() -> str:
        return "done"

    def measure(handler: str) -> Counts:
        once = Schedule.once(stage.sim.now + SECOND)
        before = stage.sim.counts.copy()
        stage.create(id=handler, handler=handler, schedule=once, delivery_channels=("EMAIL",))
        stage.sim.advance(timedelta(minutes=5))
        return stage.sim.counts.since(before)

    stage.sim.advance_to(START + HOUR)
    measure("work")  # the first mail looks up more
    stage.app.delete("work")
    quick, usual = measure("work"), measure("ordinary")
    assert usual.since(quick) == Counts(commits=1, writes=1)


def retry_once(stage: Stage) -> None:
    def fail(_: Context) -> None:
        raise ValueError("first")

    stage.during.append(fail)


def keep_alive(stage: Stage) -> None:
    stage.during.append(lambda ctx: ctx.heartbeat() and "beat")


def follow(stage: Stage) -> None:
    after = TaskDraft.of(id="after", owner="ada", title="After", handler="work")
    stage.during.append(lambda _: Done("first", then=(after,)))


@pytest.mark.parametrize(
    ("does", "cost"),
    [
        (retry_once, Counts(reads=2, commits=2, writes=4, dispatches=3)),
        (keep_alive, Counts(reads=1, commits=2, writes=3, dispatches=1)),
        (follow, Counts(reads=2, commits=2, writes=5, dispatches=2)),
    ],
    ids=["a retry", "a heartbeat", "a follow-up"],
)
def test_nothing_is_dispatched_twice(stage: Stage, does: Callable[[Stage], None], cost: Counts) -> None:
    """A retry: itself, and at each attempt the next occurrence, as usual; a heartbeat: the next occurrence."""
    stage.create(retry=RetryPolicy(max_retries=1, base=SECOND))
    stage.sim.advance(HOUR)
    before = stage.sim.counts.copy()
    does(stage)
    stage.sim.advance(HOUR)
    assert stage.sim.counts.since(before) == cost
