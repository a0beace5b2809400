"""Whatever dies when, each step of a durable handler is recorded once, and the end is the same.

A workflow of every kind of step is run once for each call that its executors make to a port, and for each way in which
that call can go wrong; each run is compared with the calm one.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cloudsched import App, Context, Execution, Schedule, Settings
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.errors import QueueUnavailable, StoreUnavailable, VersionConflict
from cloudsched.testing import START, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cloudsched.engine.execution.attempts import DeliveryResult
    from cloudsched.engine.ports.store import Store

WAYS = (
    "dies before",
    "dies after",
    "fails before",
    "fails after",
    "dies after, and the queue forgets",
    "is made twice",
)
PARTS = 6
"""How many tests share the calls of one way, so that none takes long on a busy machine."""
_WRITES = ("commit", "commit_lock")
_READS = ("load", "load_lock", "load_journal", "list_tasks", "load_execution")


class Killed(BaseException):
    """The last thing that a process ever did."""


class Call(NamedTuple):
    """A call of a port, and when it is made."""

    name: str
    delivery: int
    """By which delivery, all of them counted."""
    effects: int
    """After how many external effects."""


class Fault:
    """One call of one port, counted over all of them, that goes wrong in one way."""

    def __init__(self, at: int | None, way: str, effects: Sequence[str] = ()) -> None:
        self.at = at
        self.way = way
        self.calls: list[Call] = []
        self._effects = effects
        self._deliveries = 0
        self.is_armed = False
        self.sim: Simulation | None = None

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def call_with_fault(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as the port's own
            if not self.is_armed:
                return call(*arguments, **named)
            self.calls.append(Call(name, self._deliveries, len(self._effects)))
            if len(self.calls) != self.at:
                return call(*arguments, **named)
            error: BaseException = QueueUnavailable("-", "-") if name == "create" else StoreUnavailable("-", "-")
            if self.way.startswith("dies"):
                error = Killed()
            if self.way.endswith("before"):
                raise error
            answer = call(*arguments, **named)
            if self.way == "is made twice":
                if name == "commit":
                    raise VersionConflict("itself")
                return answer
            if self.way.endswith("forgets"):
                assert self.sim
                self.sim.queue.purge()
            raise error

        return call_with_fault

    def store(self, inner: SqliteStore) -> Store:
        for name in (*_READS, *_WRITES):
            setattr(inner, name, self.wrap(name, getattr(inner, name)))
        return inner

    def deliver(self, deliver: Callable[[bytes, str], DeliveryResult]) -> Callable[[bytes, str], DeliveryResult]:
        def deliver_with_fault(body: bytes, token: str) -> DeliveryResult:
            self.is_armed = True
            self._deliveries += 1
            try:
                return deliver(body, token)
            except Killed:
                raise StoreUnavailable("The executor", "it died") from None
            finally:
                self.is_armed = False

        return deliver_with_fault


class Workflow:
    """A handler with every kind of step, and its external effects."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.app = App(Settings())
        self.app.handler("double")(self._double)
        self.app.handler("work", expected_duration=timedelta(minutes=1))(self._work)

    def _double(self, ctx: Context, payload: dict[str, int]) -> int:
        assert ctx.task.parent
        self.effects.append(f"double {payload['n']}")
        return 2 * payload["n"]

    def _work(self, ctx: Context) -> dict[str, Any]:
        key = str(ctx.uuid())
        began = ctx.now()
        first = ctx.step("first", self._perform, "first", key)
        doubled = ctx.gather(*[ctx.call("double", {"n": n}) for n in range(3)])
        ctx.sleep(timedelta(days=40))
        shaky = ctx.step("shaky", self._fail_twice, ctx.random.randrange(1000))
        approval = ctx.wait_for("approved")
        last = ctx.call("double", {"n": sum(doubled)})
        rest = ctx.step("rest", self._perform, "rest", str(ctx.now() - began > timedelta(days=40)))
        return {"first": first, "shaky": shaky, "by": approval.by, "last": last.result(), "rest": rest}

    def _perform(self, name: str, key: str) -> str:
        self.effects.append(f"{name} {key}")
        return key

    def _fail_twice(self, number: int) -> int:
        self.effects.append(f"shaky {number}")
        if len([each for each in self.effects if each.startswith("shaky")]) < 3:
            raise ConnectionError("not yet")
        return number


@contextmanager
def simulate_workflow(workflow: Workflow, fault: Fault) -> Iterator[Simulation]:
    store = SqliteStore()
    with Simulation(workflow.app, store=fault.store(store)) as sim:
        fault.sim = sim
        sim.queue.deliver = fault.deliver(sim.queue.deliver)
        create = fault.wrap("create", sim.queue.create)
        sim.queue.create = create  # type: ignore[method-assign]
        yield sim
    store.close()


def run_with_fault(at: int | None, way: str) -> tuple[Fault, Workflow, list[Execution], dict[str, Any]]:
    """Run the workflow to its end, with one fault; return the final state."""
    workflow = Workflow()
    fault = Fault(at, way, workflow.effects)
    app = workflow.app
    with simulate_workflow(workflow, fault) as sim:
        task = app.create(id="w", owner="ada", title="W", handler="work", schedule=Schedule.once(START))
        sim.advance(timedelta(days=40, minutes=10))  # a longer wait only asks more often, in the same calls
        app.send_event(task.id, "approved", {"by": "grace"})
        sim.run_until_idle()
        children = [branch.task for branch in app.tree(task.id).children]
        executions = sim.executions(task.id)
        facts = {
            "task": (app.get(task.id).status, app.get(task.id).runs, app.get(task.id).events),
            "children": [(child.id, child.status) for child in children],
            "of children": [[each.status for each in sim.executions(child.id)] for child in children],
            "journal": list(app.container.store.load_journal(task.id, executions[0].id)),
            "content": [execution.content for execution in executions],
            "steps": [[(s.number, s.kind, s.name, s.status) for s in e.steps] for e in executions],
        }
    return fault, workflow, executions, facts


def comparable_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts that must be equal; the ids of calls may differ between attempts."""
    return {**facts, "children": [status for _, status in facts["children"]]}


@pytest.fixture(scope="module")
def undisturbed_run() -> tuple[list[Call], list[str], dict[str, Any]]:
    """The calls, the external effects and the final state of a run without faults."""
    fault, workflow, executions, facts = run_with_fault(None, "")
    (execution,) = executions
    assert execution.status == "SUCCEEDED", execution.error
    assert facts["journal"] == []
    assert facts["task"][0] == "COMPLETED"
    return fault.calls, workflow.effects, comparable_facts(facts)


def choose_calls(calls: list[Call], way: str) -> list[int]:
    """Return the calls, from 1 on, at which a way to go wrong differs from the others.

    A process that dies leaves what it wrote and did, and nothing else. So it dies once between two writes or effects,
    however many calls only read in between, and after a call only where it would not die before the next one. A process
    that lives on is told of an error at every call. To fail before a read is the same as after it. Only a commit says
    that it was made twice; any other call would be a run without a fault.
    """
    return [at for at in range(1, len(calls) + 1) if _differs(calls, at, way)]


def _differs(calls: list[Call], at: int, way: str) -> bool:
    call, before = calls[at - 1], calls[at - 2] if at > 1 else None
    after = calls[at] if at < len(calls) else None
    is_read = call.name in _READS
    follows_at_once = before is not None and before[1:] == call[1:]
    match way:
        case "dies before":
            return not follows_at_once or (before is not None and before.name not in _READS)
        case "dies after":
            return not is_read and (after is None or after[1:] != call[1:])
        case "dies after, and the queue forgets":
            return not is_read or not follows_at_once
        case "fails after":
            return not is_read
        case "is made twice":
            return call.name == "commit"
    return True


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("way", WAYS)
def test_each_step_is_recorded_once_wherever_a_fault_strikes(
    undisturbed_run: tuple[list[Call], list[str], dict[str, Any]], way: str, part: int
) -> None:
    """Every call of every port, one after the other; at most the one effect that was under way is done again."""
    calls, effects, expected = undisturbed_run
    assert len(calls) > 95
    for at in choose_calls(calls, way)[part::PARTS]:
        _, workflow, executions, facts = run_with_fault(at, way)
        assert len(executions) == 1, (at, executions)
        assert comparable_facts(facts) == expected, (at, [(e.status, e.error) for e in executions])
        assert set(workflow.effects) == set(effects), at
        assert len(workflow.effects) <= len(effects) + 1, (at, workflow.effects)
