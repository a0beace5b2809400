"""Claims: one worker gets a run, only that worker finishes it, and no crash, edit or outage loses or repeats it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, Simulate, only_run
from tests.features.pull.harness import (
    DONE,
    FAILED,
    claim,
    claim_all,
    claim_keys,
    claims_of,
    finish,
    give_back,
    offer,
    require_claim,
    statuses,
)

from cloudsched import App, Context, Overlap, Schedule, TaskStatus
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.outcome import Snooze
from cloudsched.errors import LeaseLost, NotFound, StoreUnavailable, VersionConflict
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, WorkerFilter
from cloudsched.testing import Simulation


class CommitReplyLostStore(SqliteStore):
    """A store whose next commit takes effect, but then raises an error."""

    error: Exception | None = None

    def commit(self, commit: Commit) -> VersionedTask:
        """Commit, then raise `error` if it is set."""
        committed = super().commit(commit)
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return committed


def test_a_worker_that_loses_a_race_claims_the_next_offers(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers that read the same offers claim different runs; the second one goes further down the queue."""
    for number in range(4):
        offer(sim, f"t{number}")
    sim.advance(MINUTE)
    ask = sim.app.container.store.list_offers
    answers = iter([ask(["gpu"], None, limit=2)])
    first = claim_all(sim, 2)
    monkeypatch.setattr(
        sim.app.container.store, "list_offers", lambda *args, **more: next(answers, None) or ask(*args, **more)
    )
    second = claim_all(sim, 2)
    names = [{each.task.id for each in found} for found in (first, second)]
    assert names == [{"t0", "t1"}, {"t2", "t3"}]


@pytest.mark.parametrize("error", [VersionConflict("task a"), StoreUnavailable("The store", "no answer")])
def test_a_claim_survives_a_lost_reply_of_the_store(app: App, error: Exception) -> None:
    """If the commit conflicts with itself, the worker has the claim; if no reply comes, its lease expires."""
    store = CommitReplyLostStore()
    with Simulation(app, store=store) as sim:
        offer(sim, "a")
        sim.advance(MINUTE)
        store.error = error
        if isinstance(error, VersionConflict):
            assert require_claim(sim).run.attempt == 1
        else:
            with pytest.raises(StoreUnavailable):
                claim(sim)
            assert claim(sim) is None
            sim.advance(10 * MINUTE)
            assert require_claim(sim).run.attempt == 2
    store.close()


def test_a_lock_is_handed_on_by_a_repeated_report_if_the_reply_of_the_store_was_lost(app: App) -> None:
    """The report took effect, but its worker could not notify the next run; no sweep is needed."""
    store = CommitReplyLostStore()
    with Simulation(app, store=store) as sim:
        offer(sim, "first", lock_key="k", expectedDuration=3600)
        sim.advance(2 * SECOND)
        first = require_claim(sim)
        app.handler("next")(lambda: "done")
        app.create(id="next", handler="next", schedule=Schedule.once(sim.now), lock_key="k")
        sim.queue.deliver_due()
        store.error = StoreUnavailable("The store", "no reply came")
        with pytest.raises(StoreUnavailable):
            finish(sim, first)
        assert statuses(sim, "next") == []
        finish(sim, first)
        sim.queue.deliver_due()
        assert statuses(sim, "next") == ["SUCCEEDED"]
    store.close()


# ── Its end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_that_is_sent_twice_costs_one_attempt(sim: Simulation) -> None:
    """This holds even if the next attempt is already offered when it is repeated."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(2):
        task = finish(sim, found, FAILED)
    assert task.runs[0].attempt == 2
    again = require_claim(sim)
    finish(sim, found, FAILED)
    assert finish(sim, again).status is TaskStatus.COMPLETED


@pytest.mark.parametrize("what", ["token", "execution", "task"])
def test_only_the_holder_of_a_claim_can_finish_it(sim: Simulation, what: str) -> None:
    """With another task, execution or token a result or a release is refused; a heartbeat finds no claim."""
    offer(sim, "a")
    sim.advance(MINUTE)
    task_id, execution_id, token = claim_keys(require_claim(sim))
    wrong = {"task": ("b", execution_id, token), "execution": (task_id, "20270101T000000Z", token)}
    given = wrong.get(what, (task_id, execution_id, token[:-1] + "?"))
    error = NotFound if what == "task" else LeaseLost
    with pytest.raises(error):
        claims_of(sim).finish_by_token(*given, DONE)
    with pytest.raises(error):
        claims_of(sim).release_by_token(*given, "no")
    if what == "task":
        with pytest.raises(NotFound):
            claims_of(sim).heartbeat(*given)
    else:
        assert claims_of(sim).heartbeat(*given).is_cancelled
    assert sim.app.get("a").runs[0].lease


def test_the_authorization_check_runs_before_any_change(sim: Simulation) -> None:
    """Its error is raised, and the claim remains."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)

    def authorize_nobody(task: object, queue: str | None) -> None:
        assert queue == "gpu"
        raise NotFound("task", str(task)[:0])

    guarded = claims_of(sim).for_caller(replace(THIS_PROCESS, authorize=authorize_nobody))
    verbs: list[Callable[[], object]] = [
        lambda: guarded.finish_by_token(*claim_keys(found), DONE),
        lambda: guarded.heartbeat(*claim_keys(found)),
        lambda: guarded.release_by_token(*claim_keys(found), "no"),
    ]
    for verb in verbs:
        with pytest.raises(NotFound):
            verb()
    assert sim.app.get("a").runs[0].lease == found.run.lease


def test_a_failed_attempt_is_offered_again_up_to_the_limit(sim: Simulation) -> None:
    """It is offered at once or after the delay of the policy; after the last attempt it has failed."""
    offer(sim, "a", retry={"maxRetries": 2, "firstDelay": 0, "base": 60, "jitter": 0})
    sim.advance(MINUTE)
    assert finish(sim, require_claim(sim), FAILED).status is TaskStatus.ACTIVE
    assert finish(sim, require_claim(sim), FAILED).status is TaskStatus.ACTIVE
    assert claim(sim) is None
    sim.advance(59 * SECOND)
    assert claim(sim) is None
    sim.advance(SECOND)
    assert finish(sim, require_claim(sim), FAILED).status is TaskStatus.FAILED
    record = only_run(sim, "a")
    assert [each.number for each in record.attempts] == [1, 2, 3]


def test_a_released_run_costs_no_attempt_and_keeps_its_position(sim: Simulation) -> None:
    """The next worker gets it before any run that came due later, without help of the executor."""
    for name, second in (("a", 1), ("b", 2)):
        offer(sim, name, schedule=Schedule.once(sim.now + second * SECOND))
    sim.advance(MINUTE)
    sim.queue.is_down = True
    for _ in range(3):
        found = require_claim(sim)
        assert (found.task.id, found.run.attempt) == ("a", 1)
        give_back(sim, found)
    record = only_run(sim, "a")
    assert (record.status, record.message, record.attempts) == ("RETRYING", "The worker stops.", ())
    give_back(sim, found, "said again, since no answer came")
    assert require_claim(sim).run.attempt == 1
    with pytest.raises(LeaseLost):
        give_back(sim, found, "it is another's by now")


def test_a_run_released_after_its_task_was_cancelled_has_ended(sim: Simulation) -> None:
    """No worker would claim it again, so it is recorded and frees its lock, however soon it is released."""
    offer(sim, "a", lock_key="k")
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.app.cancel("a")
    give_back(sim, found)
    assert statuses(sim, "a") == ["CANCELLED"]
    assert not sim.app.get("a").runs
    assert sim.app.get("a").run_count == 0
    assert not sim.app.container.store.locks.load("k").lock.holders


def test_code_ends_no_claim_of_an_api_caller(sim: Simulation) -> None:
    """With the token alone, code in this process is nobody's caller: only who claimed it, or an admin, may end it."""
    offer(sim, "a")
    sim.advance(2 * SECOND)
    found = claim(sim, by=replace(THIS_PROCESS, subject="ada"))
    assert found
    with pytest.raises(LeaseLost):
        finish(sim, found)
    claims_of(sim).for_caller(replace(THIS_PROCESS, subject="ada")).finish_by_token(*claim_keys(found), DONE)
    assert statuses(sim, "a") == ["SUCCEEDED"]


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
    parent = app.create(handler="parent", schedule=Schedule.once(sim.now + SECOND))
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.queue.is_down = True
    finish(sim, found)
    assert app.get(found.task.id).deferred
    sim.queue.is_down = False
    sim.advance(2 * MINUTE)
    assert only_run(sim, parent).content == "done"
    assert not app.get(found.task.id).deferred


def test_a_result_may_be_sent_again_after_a_crash_before_its_dispatches(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The repeated result is recognised, and the parent is notified then."""
    add_parent_handler(app)
    parent = app.create(handler="parent", schedule=Schedule.once(sim.now + SECOND))
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(100):
        sim.advance(4 * MINUTE)
        claims_of(sim).heartbeat(*claim_keys(found))
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

    pulls = claims_of(sim).for_caller(replace(THIS_PROCESS, authorize=authorize_gpu))
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
    monkeypatch.setattr("cloudsched.features.pull.work_queue.MAX_SCANNED", 7)
    for number in range(9):
        offer(sim, f"t{number}", handler="work" if is_known else "theirs", pull="gpu")
    sim.advance(MINUTE)
    before = sim.counts.copy()
    found = PullWiring.of(sim.app.container).work_queue.claim(WorkerFilter("gpu", handlers={"work"}), THIS_PROCESS, 9)
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
