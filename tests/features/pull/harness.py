"""Shared by the tests of pull workers: an app with work for a queue, and the calls of a worker, one by one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.engine.harness import HOUR, MINUTE, SECOND

from cloudsched import App, Context, Schedule, Settings, Task
from cloudsched.domain.documents.execution import ExecutionError
from cloudsched.domain.transitions.finish import AttemptReport
from cloudsched.domain.transitions.outcome import Done, Retry
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.features.pull.claims import WorkerClaims
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import THIS_PROCESS, ClaimCaller, WorkerFilter
from cloudsched.testing import Simulation

DONE = AttemptReport(Done("done"))
FAILED = AttemptReport(Retry("no"), ExecutionError(type="ValueError", message="no"))


def work_app() -> tuple[App, list[str]]:
    """Return an app whose handler ``work`` is for the queue ``gpu``, and the list of the tasks that it has run."""
    app = App(Settings())
    run_ids: list[str] = []

    @app.handler("work", pull="gpu")
    def work(ctx: Context) -> str:
        run_ids.append(ctx.task.id)
        return ctx.task.title

    return app, run_ids


def offer(sim: Simulation, task_id: str, **fields: Any) -> Task:
    """Create a task of ``work`` that is due in a second."""
    usual = {"owner": "ada", "title": task_id, "handler": "work", "schedule": Schedule.once(sim.now + SECOND)}
    return sim.app.create(**{"id": task_id, **usual, **fields})


def claim(sim: Simulation, *skills: str, by: ClaimCaller = THIS_PROCESS, **more: Any) -> Attempt | None:
    """Claim one run of the queue ``gpu``; without heartbeats its lease ends, as for a dead worker."""
    found = PullWiring.of(sim.app.container).work_queue.claim(WorkerFilter("gpu", skills, **more), by)
    return found[0] if found else None


def require_claim(sim: Simulation, *skills: str) -> Attempt:
    """Claim one run; fail if none is offered."""
    found = claim(sim, *skills)
    assert found
    return found


def claim_all(sim: Simulation, limit: int = 1, queue: str = "gpu") -> list[Attempt]:
    return list(PullWiring.of(sim.app.container).work_queue.claim(WorkerFilter(queue), THIS_PROCESS, limit))


def claims_of(sim: Simulation) -> WorkerClaims:
    """Return what takes the reports of workers."""
    return PullWiring.of(sim.app.container).worker_claims


def finish(sim: Simulation, found: Attempt, report: AttemptReport = DONE) -> Task:
    """Report how a claim has ended, as a remote worker does."""
    return claims_of(sim).finish_by_token(*claim_keys(found), report)


def give_back(sim: Simulation, found: Attempt, why: str = "The worker stops.") -> None:
    """Release a claim, as a remote worker does that stops."""
    claims_of(sim).release_by_token(*claim_keys(found), why)


def claim_keys(found: Attempt) -> tuple[str, str, str]:
    """Return what identifies a claim for a remote worker: the ids of task and execution, and the lease token."""
    return found.task.id, found.run.execution_id, found.lease_token


def statuses(sim: Simulation, task_id: str) -> list[str]:
    """Return the statuses of the task's executions, the earliest first."""
    return [execution.status.value for execution in sim.executions(task_id)]


def claim_lock_holder(sim: Simulation, **fields: Any) -> Attempt:
    """Return a claim that holds the lock ``k``, of a worker of the queue ``press``."""
    offer(sim, "holder", lock_key="k", pull="press", expectedDuration=3600, **fields)
    sim.advance(2 * SECOND)
    (found,) = PullWiring.of(sim.app.container).work_queue.claim(WorkerFilter("press"), THIS_PROCESS)
    return found


def wait_long(sim: Simulation, holder: Attempt) -> None:
    """Let an hour pass in which the holder keeps its lease by heartbeats."""
    for _ in range(4):
        sim.advance(15 * MINUTE)
        claims_of(sim).heartbeat(*claim_keys(holder))


def lock_wait_list(sim: Simulation) -> list[str]:
    """Return the ids of the tasks that wait for the lock ``k``, in order."""
    locks = sim.app.container.store.locks
    waiters = [*locks.load("k").lock.waiters, *locks.list_waiters("k", limit=5000)]
    return [one.task_id for one in sorted(waiters, key=lambda one: one.order)]


def advance_until_run(sim: Simulation, task_id: str) -> timedelta:
    """Advance until a task has succeeded, and return how long that took."""
    since = sim.now
    while statuses(sim, task_id) != ["SUCCEEDED"]:
        assert sim.now - since < HOUR
        sim.advance(10 * SECOND)
    return sim.now - since
