"""What goes wrong on the way: a process that dies at any moment, and a model's server that answers badly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.assistant.harness import ScriptedModel, Tools, answer, call, create, run, simulate
from tests.engine.durable.test_crash_matrix import WAYS, Fault
from tests.model_server import ModelServer

from cloudsched.adapters.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cloudsched import Execution


def run_with_fault(at: int | None, way: str) -> tuple[Fault, Tools, ScriptedModel, Execution]:
    """Run a task that calls two tools, one of which fails, with one fault."""
    fault, tools, store = Fault(at, way), Tools(), SqliteStore()
    model = ScriptedModel(lambda data: TURNS[len(data["done"])])
    with simulate(tools, model, store=fault.store(store)) as sim:
        fault.sim = sim
        sim.queue.deliver = fault.deliver(sim.queue.deliver)
        sim.queue.create = fault.wrap("create", sim.queue.create)  # type: ignore[method-assign]
        task = create(sim, "search", "fails", id="w")
        sim.run_until_idle()
        [execution] = sim.executions(task.id)
    store.close()
    return fault, tools, model, execution


TURNS: list[dict[str, Any]] = [call("search", text="a"), call("fails"), answer("Done.")]


@pytest.mark.parametrize("way", WAYS)
def test_a_crash_repeats_nothing_that_is_done(way: str) -> None:
    """Wherever a process dies: at most the turn or the call that was under way is made again, and none before it."""
    fault, tools, model, execution = run_with_fault(None, "")
    assert (execution.content, len(model.asked), len(tools.made)) == ("Done.", 3, 2)
    steps = [(each.kind, each.name, each.status) for each in execution.steps]
    assert len(fault.calls) > 20
    for at in range(1 + WAYS.index(way) % 3, len(fault.calls) + 1, 3):  # the ways take turns: two meet at each call
        _, tools, model, execution = run_with_fault(at, way)
        assert (execution.status, execution.content) == ("SUCCEEDED", "Done."), (at, execution.error)
        assert [(each.kind, each.name, each.status) for each in execution.steps] == steps, at
        assert len(model.asked) <= 4, at
        assert len(tools.made) <= 3, at
        assert "search" in {name for name, *_ in tools.made}, at


@pytest.fixture(params=["gemini", "openai"])
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    """A model's server on this machine, which speaks the documented wire formats."""
    with ModelServer(request.param) as made:
        yield made


def test_the_wire_carries_turns_and_usage(server: ModelServer) -> None:
    """Both formats: the schema of the tools goes out, calls and the result come back, and tokens are counted."""
    tools = Tools()
    server.say(call("search", text="bikes"))
    server.say(answer("7 bikes."))
    with simulate(tools, server.model()) as sim:
        execution = run(sim, "search", "fails")
    assert (execution.content, execution.queries, execution.tokens) == ("7 bikes.", 2, 250)
    assert "anyOf" in str(server.requests[0])
    assert "bikes: 7 sold" in str(server.requests[1])


@pytest.mark.parametrize(("status", "asked"), [(429, 2), (500, 2), (403, 1)])
def test_a_server_that_refuses_is_asked_again(server: ModelServer, status: int, asked: int) -> None:
    """429 and 5xx once more at once; then, like any other status, when the task's retry policy says."""
    for _ in range(asked):
        server.answer({"error": "x"}, status=status, Retry_After="1")
    server.say(answer("At last."))
    with simulate(Tools(), server.model()) as sim:
        execution = run(sim, retry=3)
    assert (execution.status, execution.content) == ("SUCCEEDED", "At last.")
    assert len(server.requests) == asked + 1
    assert execution.queries == 2


def test_a_server_that_stays_away_fails_the_task(server: ModelServer) -> None:
    """Slow, as far as one request may take: after the retries the execution has failed, and says why."""
    server.answer(None)
    with simulate(Tools(), server.model(timeout=0.05)) as sim:
        execution = run(sim, retry=1)
    assert execution.status == "FAILED"
    assert execution.error is not None
    assert "did not answer within 0.05 s" in execution.error.message


@pytest.mark.parametrize("garbage", ["no JSON", '{"decision": "ca', b"<html>", "[1]", '{"decision": NaN}', '"call"'])
def test_garbage_is_repaired_once(server: ModelServer, garbage: str | bytes) -> None:
    """Cut off, not JSON, or another form: the model is told; a second one fails the execution, with its tokens."""
    say = server.answer if isinstance(garbage, bytes) else server.say
    say(garbage)
    server.say(answer("Repaired."))
    with simulate(Tools(), server.model()) as sim:
        assert run(sim).content == "Repaired."
    server.replies.clear()
    say(garbage)
    with simulate(Tools(), server.model()) as sim:
        execution = run(sim)
    assert (execution.status, execution.queries, execution.attempt_count) == ("FAILED", 2, 1)
