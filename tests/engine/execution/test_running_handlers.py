"""A handler that hangs holds one thread: nothing can stop it, so its task is not called again beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import MINUTE, SECOND, elsewhere

from cloudsched import App, Context, Execution, RetryPolicy, Schedule, Settings, Task
from cloudsched.engine.execution import running_handlers
from cloudsched.testing import START, Simulation

SHORT = 5 * SECOND


class Server:
    """An app in a process that alone runs the tasks of its store. Its handler `hang` hangs for a while, once."""

    def __init__(self) -> None:
        self.app = App(Settings())
        self.calls: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens while it hangs."""
        self.app.handler("hang", expected_duration=SHORT, retry=RetryPolicy(max_retries=3, jitter=0.0))(self.hang)
        self.app.handler("other")(self.run_other)
        self.sim = Simulation(self.app).__enter__()
        before = self.app.container
        self.app.container = type(before)(
            before.registry, before.settings, store=before.store, dispatcher=before.dispatcher, clock=before.clock,
            holder="here",
        )  # fmt: skip

    def hang(self, ctx: Context) -> str:
        self.calls.append(f"{ctx.task.id} {ctx.attempt}")
        if len(self.calls) == 1:
            elsewhere(self.meanwhile)
        return "done"

    def run_other(self, ctx: Context) -> None:
        self.calls.append(ctx.task.id)

    def pass_minutes(self, minutes: int = 10) -> None:
        for _ in range(minutes):
            self.sim.clock.advance(MINUTE)
            self.app.sweep()
            self.sim.queue.deliver_due()

    def create(self, task_id: str, handler: str = "hang", **fields: Any) -> None:
        self.app.create(**{"id": task_id, "handler": handler, "schedule": Schedule.once(self.sim.now), **fields})

    def explain(self, task_id: str) -> str:
        from cloudsched.engine.queries.explanations import explain_task  # noqa: PLC0415 - not of the scene

        container = self.app.container
        return explain_task(container.store, container.clock, self.app.get(task_id), shows_holders=True).summary


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.sim.__exit__(None, None, None)


def test_a_retry_waits_until_the_attempt_before_it_has_returned(server: Server) -> None:
    """The attempt is recorded when its time is over, with its cause. The next begins a minute after it has returned."""
    told: list[str] = []

    def wait() -> None:
        server.pass_minutes()
        told.append(server.explain("it"))
        assert server.calls == ["it 1"]

    server.meanwhile = wait
    server.create("it")
    server.sim.advance(timedelta(0))
    server.sim.advance(2 * MINUTE)
    assert server.calls == ["it 1", "it 2"]
    (execution,) = server.sim.executions("it")
    assert execution.status == "SUCCEEDED"
    first = execution.attempts[0]
    assert (first.status, first.error and first.error.type) == ("TIMED_OUT", "StillRunning")
    assert "still runs" in told[0]
    assert "sweep seems not to run" not in told[0]


@pytest.mark.parametrize("overlap", ["skip", "buffer"])
def test_the_next_occurrence_waits_too(server: Server, overlap: str) -> None:
    server.meanwhile = server.pass_minutes
    every = Schedule.every(MINUTE, start=START)
    server.create("it", schedule=every, overlap=overlap, retry=RetryPolicy(max_retries=0))
    server.sim.advance(timedelta(0))
    assert server.calls == ["it 1"]
    server.sim.advance(3 * MINUTE)
    assert len(server.calls) > 1


def test_a_task_that_may_overlap_itself_is_called_beside_it(server: Server) -> None:
    """But the occurrence whose attempt hangs is not."""
    server.meanwhile = lambda: server.pass_minutes(3)
    server.create("it", schedule=Schedule.every(MINUTE, start=START), overlap="allow")
    server.sim.advance(timedelta(0))
    assert server.calls == ["it 1"] * 4


def test_other_tasks_run_meanwhile_until_too_many_hang(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then those of the handlers that hang are held back, and start when fewer do."""
    monkeypatch.setattr(running_handlers, "MAX_HANGING", 1)

    def wait() -> None:
        server.sim.clock.advance(MINUTE)
        server.create("same")
        server.create("unrelated", "other")
        server.pass_minutes(5)
        assert server.calls == ["it 1", "unrelated"]
        assert server.app.container.executor.handlers.describe().startswith("1 handler hangs: 'hang', since ")

    server.meanwhile = wait
    server.create("it")
    server.sim.advance(timedelta(0))
    server.sim.advance(2 * MINUTE)
    assert sorted(server.calls) == ["it 1", "it 2", "same 1", "unrelated"]
    assert server.app.container.executor.handlers.describe() == ""


def test_a_failure_hook_that_hangs_is_not_called_again_beside_itself(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is recorded when its time is over, and the process that calls the hook can replace its thread.

    Meanwhile the hook counts as a handler that hangs, and is named.
    """
    hooks, told = list[str](), list[object]()
    handlers = server.app.container.executor.handlers

    def wait() -> None:
        server.pass_minutes()
        with monkeypatch.context() as patch:
            patch.setattr(running_handlers, "MAX_HANGING", 1)
            told.extend((handlers.describe()[:45], handlers.refuses("fails"), handlers.refuses("other")))

    def hang(task: Task, _: Execution) -> None:
        hooks.append(task.id)
        if len(hooks) == 1:
            elsewhere(wait)

    @server.app.handler("fails", expected_duration=SHORT, retry=False, on_failure=hang)
    def fail() -> None:
        raise ValueError("no")

    server.create("it", "fails")
    server.create("beside", "fails")  # whose execution has the same id
    server.sim.advance(timedelta(0))
    assert told == ["1 handler hangs: on_failure of 'fails', since", True, False]
    assert hooks == ["it", "beside"]
    assert handlers.describe() == ""
    assert server.app.get("it").status == "FAILED"
    server.create("next", "fails")
    server.sim.advance(timedelta(0))
    assert hooks[2:] == ["next"]
