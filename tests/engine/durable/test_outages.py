"""While the store, the queue or the blob store is away, a durable handler waits and does not fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND, Create, create, only_run, run, run_to_end

from cloudsched import App, Context, Execution, Fail, Settings
from cloudsched.adapters.blobs import FileBlobs
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.execution import running_handlers as running
from cloudsched.engine.execution.call import call_handler
from cloudsched.errors import BlobsUnavailable, QueueUnavailable, StoreUnavailable
from cloudsched.features.locks.sqlite import SqliteLocks
from cloudsched.testing import START, Simulation
from cloudsched.testing.simulated_queue import SimulatedQueue

LARGE = "x" * 40_000
PORTS: dict[type, tuple[str, ...]] = {
    SqliteStore: ("load", "commit", "load_journal", "list_tasks", "load_execution"),
    SqliteLocks: ("load", "commit"),
    FileBlobs: ("put", "get"),
    SimulatedQueue: ("create",),
}


class Outage:
    """Some calls of some ports fail, counted over all that are made while a handler runs."""

    def __init__(
        self, patch: pytest.MonkeyPatch, ports: dict[type, tuple[str, ...]], which: Callable[[int], bool]
    ) -> None:
        self.calls = 0
        self._which = which
        self._is_armed = False
        for port, names in ports.items():
            for name in names:
                patch.setattr(port, name, self._wrap(getattr(port, name)))
        patch.setattr(running, "call_handler", self._arm_during(call_handler))

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_or_fail(port: object, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the port's own
            if self._is_armed:
                self.calls += 1
                if self._which(self.calls):
                    is_queue = isinstance(port, SimulatedQueue)
                    raise QueueUnavailable("-", "-") if is_queue else StoreUnavailable("-", "-")
            return call(port, *arguments, **named)

        return call_or_fail

    def _arm_during(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_armed(*arguments: Any) -> Any:  # noqa: ANN401 - the procedure of the call
            self._is_armed = True
            try:
                return (yield from call(*arguments))
            finally:
                self._is_armed = False

        return call_armed


class OutageWorkflow:
    """A handler that asks for one of everything, and the effects that it has had."""

    def __init__(self, first: str) -> None:
        self.effects: list[str] = []
        self.app = App(Settings())
        self.app.handler("double")(self._double)
        self.app.handler("work", retry=0)(self._work)
        self._first = first

    def _double(self, payload: dict[str, int]) -> int:
        return 2 * payload["n"]

    def _work(self, ctx: Context) -> list[Any]:
        """The first operation is the one that reads the journal in a replay."""
        asks: dict[str, Callable[[], object]] = {
            "now": ctx.now,
            "version": lambda: ctx.version("v", 2),
            "uuid": ctx.uuid,
            "random": ctx.random.random,
            "step": lambda: ctx.step("effect", self._perform, retry=False),
            "sleep": lambda: ctx.sleep(DAY),
            "event": lambda: ctx.wait_for("go"),
            "call": lambda: ctx.call("double", {"n": 4}).result(),
        }
        first = asks.pop(self._first)()
        results = [first, *(ask() for ask in asks.values())]
        ctx.sleep(DAY)
        ctx.call("double", {"n": 1})  # for which nobody waits
        return [str(each) for each in results]

    def _perform(self) -> str:
        self.effects.append("effect")
        return LARGE

    def run(self) -> tuple[Execution, int]:
        with Simulation(self.app) as sim:
            task = create(self.app)
            self.app.send_event(task.id, "go", {"by": "grace"}, early=True)
            execution = run_to_end(sim, task, 366 * DAY)
            return execution, len(self.app.tree(task.id).children)


@pytest.mark.parametrize("first", ["now", "version", "step", "event", "call"])
def test_an_outage_while_a_handler_runs_is_not_its_failure(first: str) -> None:
    """Each call of each port fails once, with a task that is not retried; no effect is had twice."""
    with pytest.MonkeyPatch.context() as patch:
        calm = Outage(patch, PORTS, lambda _: False)
        expected, children = OutageWorkflow(first).run()
    assert (expected.status, children) == ("SUCCEEDED", 2), expected.error
    assert calm.calls > 10
    for at in range(1, calm.calls + 1):
        with pytest.MonkeyPatch.context() as patch:
            Outage(patch, PORTS, at.__eq__)
            asking = OutageWorkflow(first)
            execution, calls = asking.run()
        assert (execution.status, len(execution.attempts)) == ("SUCCEEDED", 1), (at, execution.error)
        assert [(s.kind, s.status) for s in execution.steps] == [(s.kind, s.status) for s in expected.steps]
        assert (calls, asking.effects) == (2, ["effect"])


def test_a_large_step_result_survives_an_outage_of_the_blob_storage(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes into its journal entry if it fits there; otherwise the step is repeated, and costs no attempt."""
    done = list[str]()
    is_away = iter([True] * 8)

    def put(blobs: FileBlobs, key: str, content: bytes) -> None:
        if next(is_away, False):
            raise StoreUnavailable("Cloud Storage", "503")
        stored(blobs, key, content)

    stored = FileBlobs.put
    monkeypatch.setattr(FileBlobs, "put", put)

    def make(size: int) -> str:
        done.append(f"{size}")
        return "x" * size

    def call(ctx: Context) -> list[int]:
        return [len(ctx.step("make", make, size, retry=False)) for size in (40_000, 600_000)]

    execution = run(app, call, retry={"maxRetries": 0})
    assert (execution.content, len(execution.attempts)) == ([40_000, 600_000], 1), execution.error
    assert [step.reference is None for step in execution.steps] == [True, False]
    assert done == ["40000", "600000", "600000"]
    assert execution.finished_at == START + 5 * SECOND


@pytest.mark.parametrize("pull", [None, {"queue": "gpu"}])
@pytest.mark.parametrize(("fails", "status"), [(False, "SUCCEEDED"), (True, "FAILED")])
def test_a_handler_keeps_its_outcome_through_an_outage_of_the_blob_storage(
    app: App,
    sim: Simulation,
    create: Create,
    monkeypatch: pytest.MonkeyPatch,
    *,
    fails: bool,
    status: str,
    pull: dict[str, str] | None,
) -> None:
    """Its record cannot hold them: it is replayed until they are archived, at no cost, and reports its failure once.

    The outage lasts more than twice as long as the five minutes that a run may take.
    """
    until, announced = START + 11 * MINUTE, list[str]()

    def put(blobs: FileBlobs, key: str, content: bytes) -> None:
        if sim.now < until:
            raise BlobsUnavailable("Cloud Storage", "503")
        stored(blobs, key, content)

    stored = FileBlobs.put
    monkeypatch.setattr(FileBlobs, "put", put)

    @app.handler("work", on_failure=lambda _, execution: announced.append(execution.id))
    def work(ctx: Context) -> str | Fail:
        for number in range(30):
            ctx.step(f"{number}", lambda: "x" * 12_000)
        return Fail("It is no use.") if fails else "done"

    task = create(retry={"maxRetries": 0}, pull=pull)
    sim.add_worker("gpu")
    sim.advance(15 * MINUTE)
    execution = only_run(sim, task)
    whole = app.execution(task.id, execution.id)
    assert (execution.status, [each.number for each in execution.attempts]) == (status, [1])
    assert execution.finished_at is not None
    assert until <= execution.finished_at < until + MINUTE
    assert len(whole.steps) == 30
    assert len(announced) == fails
