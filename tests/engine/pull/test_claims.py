"""Claims: one worker gets a run, only that worker finishes it, and the run survives any crash."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
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
    give_back,
    offer,
    require_claim,
    statuses,
)
from tests.harness import in_steps

from cloudsched import App, Schedule, Settings, TaskStatus
from cloudsched.adapters.clocks import SystemClock
from cloudsched.adapters.in_process_queue import InProcessDispatcher
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.outcome import Cancel
from cloudsched.engine.pull.offers import THIS_PROCESS, WorkerFilter
from cloudsched.errors import LeaseLost, NotFound, StoreUnavailable, VersionConflict
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


def test_concurrent_claims_give_each_run_to_one_worker(app: App, tmp_path: Path) -> None:
    """Sixteen workers on one file: every task is claimed, and none twice."""
    store = SqliteStore(tmp_path / "tasks.db")
    claimed: list[str] = []
    with (
        InProcessDispatcher(SystemClock(), in_steps(lambda *_: None)) as queue,
        # With a frozen clock a claim ends only when the queue is empty, however slow the machine is.
        app.override(Settings(secret="s" * 16), store=store, dispatcher=queue, monotonic=lambda: 0.0),
    ):
        for number in range(150):
            app.create(id=f"t{number}", owner="ada", title="x", handler="work", schedule=Schedule.every(HOUR))
            app.trigger(f"t{number}")

        def work() -> None:
            while found := app.container.work_queue.claim(WorkerFilter("gpu"), THIS_PROCESS, 2):
                claimed.extend(each.task.id for each in found)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    store.close()
    assert sorted(claimed) == sorted(f"t{number}" for number in range(150))


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
        app.create(id="next", owner="ada", title="N", handler="next", schedule=Schedule.once(sim.now), lock_key="k")
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


def test_a_result_can_be_sent_more_than_once(sim: Simulation) -> None:
    """Repeating the result of a claim changes nothing: there is one record and one attempt."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(3):
        assert finish(sim, found).status is TaskStatus.COMPLETED
    (record,) = sim.executions("a")
    assert (record.status, record.content, len(record.attempts)) == ("SUCCEEDED", "done", 1)


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
        sim.app.container.worker_claims.finish_by_token(*given, DONE)
    with pytest.raises(error):
        sim.app.container.worker_claims.release_by_token(*given, "no")
    if what == "task":
        with pytest.raises(NotFound):
            sim.app.container.worker_claims.heartbeat(*given)
    else:
        assert sim.app.container.worker_claims.heartbeat(*given).is_cancelled
    assert sim.app.get("a").runs[0].lease


def test_the_authorization_check_runs_before_any_change(sim: Simulation) -> None:
    """Its error is raised, and the claim remains."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)

    def authorize_nobody(task: object, queue: str | None) -> None:
        assert queue == "gpu"
        raise NotFound("task", str(task)[:0])

    guarded = sim.app.container.worker_claims.for_caller(replace(THIS_PROCESS, authorize=authorize_nobody))
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
    (record,) = sim.executions("a")
    assert [each.number for each in record.attempts] == [1, 2, 3]


def test_a_dead_worker_s_run_is_offered_again_by_the_sweep(sim: Simulation) -> None:
    """Each crash costs an attempt, recorded as TIMED_OUT; the retry policy limits their number."""
    offer(sim, "a", retry={"maxRetries": 1})
    sim.advance(MINUTE)
    found = require_claim(sim)
    sim.advance(4 * MINUTE + 30 * SECOND)
    assert claim(sim) is None, "its lease lasts five minutes"
    sim.advance(2 * MINUTE)
    second = require_claim(sim)
    with pytest.raises(LeaseLost):
        finish(sim, found)
    assert second.run.attempt == 2
    sim.advance(HOUR)
    (record,) = sim.executions("a")
    assert (record.status, [each.status.value for each in record.attempts]) == ("TIMED_OUT", ["TIMED_OUT"] * 2)


def test_heartbeats_keep_a_claim_for_any_time(sim: Simulation) -> None:
    """They keep it for hours; a heartbeat reports a cancelled task, which may still finish."""
    offer(sim, "a")
    sim.advance(MINUTE)
    found = require_claim(sim)
    for _ in range(60):
        sim.advance(4 * MINUTE)
        assert not sim.app.container.worker_claims.heartbeat(*claim_keys(found)).is_cancelled
    sim.app.cancel("a")
    assert sim.app.container.worker_claims.heartbeat(*claim_keys(found)).is_cancelled
    finish(sim, found, AttemptReport(Cancel("I stop.")))
    assert statuses(sim, "a") == ["CANCELLED"]


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
    (record,) = sim.executions("a")
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
    assert not sim.app.container.store.load_lock("k").lock.holders


def test_code_ends_no_claim_of_an_api_caller(sim: Simulation, app: App) -> None:
    """With the token alone, code in this process is nobody's caller: only who claimed it, or an admin, may end it."""
    offer(sim, "a")
    sim.advance(2 * SECOND)
    found = claim(sim, by=replace(THIS_PROCESS, subject="ada"))
    assert found
    with pytest.raises(LeaseLost):
        finish(sim, found)
    app.container.worker_claims.for_caller(replace(THIS_PROCESS, subject="ada")).finish_by_token(
        *claim_keys(found), DONE
    )
    assert statuses(sim, "a") == ["SUCCEEDED"]
