"""Two versions of the code run side by side during a rollout, and the older one alone after a rollback."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.engine.harness import HOUR, MINUTE, SECOND, only_run
from werkzeug.test import Client
from werkzeug.wrappers import Request

from cloudsched import App, Context, Schedule
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.claim import DeliveryAction, DeliveryResult
from cloudsched.testing import Simulation
from cloudsched.web.functions import TOKEN_HEADER, serve_execute


class Rollout:
    """One store and one queue, and executors of two versions of the code; one of them gets what is due."""

    def __init__(self, sim: Simulation, old: App) -> None:
        self.sim, self.old, self.ran = sim, old, list[str]()
        self.is_rolled_back = True
        deliver = sim.queue.deliver

        def choose(body: bytes, token: str) -> DeliveryResult:
            return self._post(body, token) if self.is_rolled_back else deliver(body, token)

        sim.queue.deliver = choose

    def _post(self, body: bytes, token: str) -> DeliveryResult:
        """Deliver to the older code's function, which accepts it: the queue need not deliver it again."""
        client = Client(Request.application(lambda request: serve_execute(self.old, request)))
        answer = client.post("/", data=body, headers={TOKEN_HEADER: token})
        assert answer.status_code == 200, answer.text
        said = dict(answer.json or {})
        return DeliveryResult(DeliveryAction(said["action"]), said["reason"])


@pytest.fixture
def rollout() -> Iterator[Rollout]:
    new, old = App(), App()
    old.handler("known")(lambda: None)
    with Simulation(new) as sim:
        parts = new.container
        with old.override(parts.settings, store=parts.store, dispatcher=parts.dispatcher, clock=parts.clock):
            rollout = Rollout(sim, old)

            @new.handler("later")
            def later(ctx: Context) -> str:
                rollout.ran.append(f"{ctx.task.id} {ctx.attempt}")
                return "ran"

            @new.handler("steps")
            def steps(ctx: Context) -> str:
                ctx.step("one", lambda: rollout.ran.append("one"))
                ctx.sleep(MINUTE)
                return ctx.step("two", lambda: "two")

            yield rollout


def test_older_code_leaves_what_it_does_not_know_to_newer_code(rollout: Rollout) -> None:
    """Its attempts fail and are retried by the policy; once code with the handler is there, that runs it."""
    sim = rollout.sim
    sim.app.create(id="t", handler="later", schedule=Schedule.once(sim.now))
    sim.advance(10 * SECOND)
    record = only_run(sim, "t")
    assert (record.status, record.error and record.error.type) == (ExecutionStatus.RETRYING, "UnknownHandler")
    rollout.is_rolled_back = False
    sim.advance(MINUTE)
    assert rollout.ran == ["t 4"]
    assert [each.status for each in sim.executions("t")] == [ExecutionStatus.SUCCEEDED]


def test_its_attempts_are_those_of_the_policy(rollout: Rollout) -> None:
    """If no code that has the handler comes in time, the execution fails after its last attempt, and can be retried."""
    sim = rollout.sim
    sim.app.create(id="t", handler="later", schedule=Schedule.once(sim.now), retry=2)
    sim.advance(HOUR)
    record = only_run(sim, "t")
    assert (record.status, len(record.attempts)) == (ExecutionStatus.FAILED, 3)
    rollout.is_rolled_back = False
    sim.app.retry("t")
    sim.advance(SECOND)
    assert [each.status for each in sim.executions("t")] == [ExecutionStatus.SUCCEEDED]


def test_durable_work_that_newer_code_began_waits_for_it(rollout: Rollout) -> None:
    """After a rollback its steps are kept, and the next rollout goes on behind them."""
    sim = rollout.sim
    rollout.is_rolled_back = False
    sim.app.create(id="t", handler="steps", schedule=Schedule.once(sim.now))
    sim.advance(SECOND)
    rollout.is_rolled_back = True
    sim.advance(timedelta(minutes=1, seconds=10))
    assert [each.status for each in sim.executions("t")] == [ExecutionStatus.RETRYING]
    rollout.is_rolled_back = False
    sim.advance(MINUTE)
    assert rollout.ran == ["one"]
    assert [each.status for each in sim.executions("t")] == [ExecutionStatus.SUCCEEDED]
