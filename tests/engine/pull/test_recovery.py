"""Work of workers with crashes, edits and outages in between: no run is lost, confused or repeated without end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests.engine.harness import Simulate
from tests.engine.pull.harness import (
    DONE,
    FAILED,
    HOUR,
    MINUTE,
    SECOND,
    claim,
    claim_all,
    claim_keys,
    finish,
    offer,
    require_claim,
    statuses,
)

from cloudsched import App, Context, Overlap, Schedule, TaskStatus
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.outcome import Snooze
from cloudsched.engine.pull.offers import THIS_PROCESS, WorkerFilter
from cloudsched.errors import LeaseLost, NotFound, VersionConflict
from cloudsched.testing import Simulation

DAY = timedelta(days=1)


def add_parent_handler(app: App) -> None:
    """Register the handler ``parent``, which calls ``work`` and so waits for a worker."""

    @app.handler("parent")
    def parent(ctx: Context) -> str:
        result: str = ctx.call("work").result()
        return result


@pytest.mark.parametrize("retention", [None, HOUR])
def test_a_call_that_finishes_while_the_queue_is_down_notifies_its_parent(
    simulate: Simulate, app: App, retention: timedelta | None
) -> None:
    """Being marked as deferred does not end its retention, and the sweep notifies its parent."""
    add_parent_handler(app)
    sim = simulate(retention=retention)
    parent = app.create(owner="ada", title="p", handler="parent", schedule=Schedule.once(sim.now + SECOND))
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.queue.is_down = True
    finish(sim, found)
    assert app.get(found.task.id).deferred
    sim.queue.is_down = False
    sim.advance(2 * MINUTE)
    assert sim.executions(parent.id)[0].content == "done"
    assert not app.get(found.task.id).deferred


def test_a_result_may_be_sent_again_after_a_crash_before_its_dispatches(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated result is recognised, and the parent is notified then."""
    add_parent_handler(app)
    parent = app.create(owner="ada", title="p", handler="parent", schedule=Schedule.once(sim.now + SECOND))
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(100):
        sim.advance(4 * MINUTE)
        app.container.worker_claims.heartbeat(*claim_keys(found))
    with monkeypatch.context() as patch:
        patch.setattr("cloudsched.engine.execution.executor.Executor.dispatch", lambda *_: None)
        finish(sim, found)
    finish(sim, found)
    sim.advance(SECOND)
    assert app.get(parent.id).status is TaskStatus.COMPLETED


def test_a_task_without_workers_costs_next_to_nothing(sim: Simulation) -> None:
    """Once the task has as many waiting runs as it may, its dispatches become rare: fewer than 7 an hour."""
    offer(sim, "a", schedule=Schedule.every(MINUTE, start=sim.now + MINUTE), overlap=Overlap.ALLOW)
    sim.advance(HOUR)
    before = len(sim.queue.deliveries)
    sim.advance(DAY)
    assert len(sim.queue.deliveries) - before < 7 * 24


@pytest.mark.parametrize("is_redelivered", [False, True])
def test_a_granted_lock_is_kept_until_a_worker_claims(sim: Simulation, *, is_redelivered: bool) -> None:
    """Neither the offer of a second attempt nor a duplicate dispatch passes the grant to a later run."""
    sim.app.handler("inside")(lambda: None)
    offer(sim, "first", lock_key="k")
    sim.advance(MINUTE)
    finish(sim, require_claim(sim), FAILED)
    offer(sim, "holder", lock_key="k", pull="press")
    sim.advance(2 * SECOND)
    (holder,) = claim_all(sim, queue="press")
    assert claim(sim) is None
    offer(sim, "late", lock_key="k", handler="inside")
    sim.advance(2 * SECOND)
    finish(sim, holder)
    sim.queue.deliver_due()
    if is_redelivered:
        notified = [each for each in sim.queue.deliveries if b"first" in each.body][-1]
        sim.app.deliver(notified.body, sim.sign(notified.body))
        sim.queue.deliver_due()
    assert statuses(sim, "late") == []
    assert require_claim(sim).task.id == "first"


@pytest.mark.parametrize("pull", [None, "gpu"])
def test_a_grant_to_an_expired_run_is_passed_on(sim: Simulation, pull: str | None) -> None:
    """The expired run is recorded as EXPIRED, and the next waiter gets the lock."""
    sim.app.handler("inside")(lambda: None)
    offer(sim, "holder", lock_key="k", pull="press", expectedDuration=3600)
    sim.advance(MINUTE)
    (holder,) = claim_all(sim, queue="press")
    offer(sim, "late", lock_key="k", handler="inside", pull=pull, expiration=20 * MINUTE)
    sim.add_worker("gpu")
    sim.advance(2 * SECOND)
    offer(sim, "next", lock_key="k", handler="inside", pull=pull)
    sim.advance(21 * MINUTE)
    finish(sim, holder)
    sim.advance(2 * MINUTE)
    assert [statuses(sim, name) for name in ("late", "next")] == [["EXPIRED"], ["SUCCEEDED"]]


def test_a_task_edited_during_a_claim_goes_to_the_workers_it_names_now(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the task changes between the read and the claim, the claim is checked again."""
    offer(sim, "a")
    sim.advance(MINUTE)
    commit, once = sim.app.container.store.commit, [True]

    def commit_after_edit(change: Commit) -> VersionedTask:
        if once and any(run.lease for run in change.task.runs):
            once.clear()
            sim.app.update("a", pull={"queue": "press", "skill": "ink"})
        return commit(change)

    monkeypatch.setattr(sim.app.container.store, "commit", commit_after_edit)
    assert claim(sim) is None
    assert not claim_all(sim, queue="press")
    assert sim.app.container.work_queue.claim(WorkerFilter("press", ("ink",)), THIS_PROCESS)


def test_an_unreadable_document_does_not_hide_the_offers_behind_it(sim: Simulation) -> None:
    """A worker that is older than the API skips documents that it cannot read."""
    for number in range(3):
        offer(sim, f"t{number}", schedule=Schedule.once(sim.now + (number + 1) * SECOND))
    sim.advance(MINUTE)
    stored = sim.app.container.store.load("t0")
    assert stored
    sim.app.container.store.commit(Commit(stored.task.model_copy(update={"schema_version": 99}), stored))
    assert [require_claim(sim).task.id for _ in range(2)] == ["t1", "t2"]


def test_an_expired_run_does_not_hide_the_one_behind_it(sim: Simulation) -> None:
    """A worker gets the first run of the task that has not expired, even before the expiry is recorded."""
    offer(sim, "a", schedule=Schedule.every(HOUR, start=sim.now + HOUR), overlap=Overlap.ALLOW, expiration=90 * MINUTE)
    sim.advance(2 * HOUR)
    sim.clock.advance(45 * MINUTE)
    assert require_claim(sim).run.execution_id == "20270101T020000Z"


def test_an_explicit_null_survives_an_edit(simulate: Simulate, app: App) -> None:
    """A task created with null for `pull` and `retention` does not get the defaults when another field is edited."""
    app.handler("g", pull="gpu")(lambda: None)
    sim = simulate(retention=DAY)
    offer(sim, "a", handler="g", pull=None, retention=None)
    edited = app.update("a", title="b")
    assert (edited.title, edited.pull, edited.retention) == ("b", None, None)


def test_a_snooze_can_be_sent_twice(sim: Simulation) -> None:
    """Like any result of a claim, it may be repeated until another worker has claimed the run."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(2):
        finish(sim, found, AttemptReport(Snooze(HOUR)))
    assert statuses(sim, "a") == ["RETRYING"]
    sim.advance(HOUR)
    require_claim(sim)
    with pytest.raises(LeaseLost):
        finish(sim, found, AttemptReport(Snooze(HOUR)))


def test_a_claim_can_be_finished_after_its_task_moved_to_another_queue(sim: Simulation) -> None:
    """The authorization check sees the queue that the claim came from."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.app.update("a", pull="press")
    seen: list[str | None] = []

    def authorize_gpu(task: object, queue: str | None) -> None:
        seen.append(queue)
        if queue != "gpu":
            raise NotFound("task", str(task)[:0])

    pulls = sim.app.container.worker_claims.for_caller(replace(THIS_PROCESS, authorize=authorize_gpu))
    assert not pulls.heartbeat(*claim_keys(found)).is_cancelled
    pulls.finish_by_token(*claim_keys(found), DONE)
    with pytest.raises(NotFound):
        pulls.heartbeat("a", "20270101T000000Z", "guessed")
    assert seen == ["gpu", "gpu", "press"]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_queue_blocked_by_other_work_is_logged(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_known: bool
) -> None:
    """A poll reads at most MAX_SCANNED offers that the worker cannot run, then logs what to do about it."""
    monkeypatch.setattr("cloudsched.engine.pull.offers.MAX_SCANNED", 7)
    for number in range(9):
        offer(sim, f"t{number}", handler="work" if is_known else "theirs", pull="gpu")
    sim.advance(MINUTE)
    before = sim.counts.copy()
    found = sim.app.container.work_queue.claim(WorkerFilter("gpu", handlers={"work"}), THIS_PROCESS, 9)
    assert len(found) == (9 if is_known else 0)
    assert sim.counts.since(before).reads == (18 if is_known else 9)  # a task is read only to claim it
    assert ("a separate queue" in caplog.text) is not is_known


def test_an_attempt_that_is_claimed_after_a_lost_answer_has_a_token_of_its_own(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of the claim whose answer was lost has ended meanwhile: a late result of it is not this attempt's."""
    offer(sim, "t", pull="gpu")
    sim.advance(MINUTE)
    store, commit = app.container.store, app.container.store.commit

    def lose_answer(change: Commit) -> None:
        commit(change)
        monkeypatch.setattr(store, "commit", commit)
        sim.advance(7 * MINUTE)
        raise VersionConflict("t")

    monkeypatch.setattr(store, "commit", lose_answer)
    found = require_claim(sim)
    assert [each.claim == found.lease.token_hash for each in found.run.attempts] == [False]
