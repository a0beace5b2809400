"""A model's server that answers badly, or not at all."""

from __future__ import annotations

import pytest
from tests.drafts.assistant.harness import Tools, answer, call, run, simulate
from tests.model_server import ModelServer, server

__all__ = ["server"]  # a fixture


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
