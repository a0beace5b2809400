"""What handlers log in the cloud: with the ids of their attempt, and failures in the form of Error Reporting."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from tests.instants import DAY, HOUR, SECOND

from cloudsched import App, Context, Execution, Fail, RetryPolicy, Schedule, Task
from cloudsched.testing import Simulation

own = logging.getLogger("my.handlers")
TRACE_FIELD = "logging.googleapis.com/trace"
TRACEBACK = re.compile(
    r'Traceback \(most recent call last\):\n(  File ".+", line \d+, in .+\n(    .*\n)*)+ValueError: no seat'
)


def book() -> None:
    raise ValueError("no seat")


@pytest.fixture
def app(app: App) -> App:
    """Handlers of every kind that log."""

    @app.handler("plain")
    def plain() -> None:
        own.info("plain at work")

    @app.handler("durable")
    def durable(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        own.info("durable at work")
        ctx.step("one", lambda: own.info("in a step"))
        ctx.step("two", lambda: own.info("in a step with a timeout"), timeout=30 * SECOND)
        ctx.sleep(HOUR)
        return ctx.call("plain").result()

    @app.handler("fail", retry=RetryPolicy(max_retries=1, jitter=0))
    def fail() -> None:
        book()

    @app.handler("refuse")
    def refuse() -> Fail:
        return Fail("sold out")

    return app


def run(sim: Simulation, handler: str, **fields: Any) -> Task:
    """Create a task that is due at once, and let a day pass."""
    task = sim.app.create(owner="ada", handler=handler, schedule=Schedule.once(sim.now), **fields)
    sim.advance(DAY)
    return task


def execution_lines(lines: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("action") in names and "executionId" in line]


def test_each_line_of_a_handler_names_its_attempt(sim: Simulation, lines: list[dict[str, Any]]) -> None:
    """Task, execution, handler, attempt, owner and trace: also in steps, in their threads and in called functions."""
    task = run(sim, "durable")
    told = [line for line in lines if line["logger"] == own.name]
    assert {line["message"] for line in told} == {
        "durable at work",
        "in a step",
        "in a step with a timeout",
        "plain at work",
    }
    for line in told:
        is_called = line["message"] == "plain at work"
        assert (line["taskId"] == task.id) != is_called
        assert (line["handler"], line["owner"], line["attempt"]) == ("plain" if is_called else "durable", "ada", 1)
        started = next(each for each in execution_lines(lines, "started") if each["taskId"] == line["taskId"])
        assert line["executionId"] == started["executionId"]
        assert line[TRACE_FIELD] == started[TRACE_FIELD], "what one occurrence logs is in one trace"


def test_a_final_failure_is_an_error_that_error_reporting_groups(sim: Simulation, lines: list[dict[str, Any]]) -> None:
    """ERROR, with the service, the whole traceback in the message, and the owner whom it concerns; and only once."""
    run(sim, "fail")
    (failed,) = [line for line in lines if line["severity"] == "ERROR"]
    assert failed["action"] == "failed"
    assert failed["serviceContext"] == {"service": "execute", "version": "execute-00007"}
    assert failed["@type"].endswith("v1beta1.ReportedErrorEvent")
    assert failed["context"]["user"] == "ada"
    message = failed["message"]
    assert message.startswith(
        f"failed {failed['executionId']} of 'fail', task {failed['taskId']}: ValueError: no seat\n"
    )
    assert TRACEBACK.fullmatch(message.partition("\n")[2])
    assert "in book\n" in message


def test_the_app_s_hook_is_called_for_every_handler(
    app: App, sim: Simulation, caplog: pytest.LogCaptureFixture
) -> None:
    """`App.on_failure` runs once for each final failure, after the handler's hook; its exceptions change nothing."""
    told: list[tuple[str, str]] = []

    @app.handler("hooked", retry=False, on_failure=lambda task, _: told.append(("own", task.handler)))
    def fail_with_hook() -> None:
        book()

    @app.on_failure
    def tell(task: Task, execution: Execution) -> None:
        told.append((execution.status.value, task.handler))
        raise RuntimeError("the pager is broken")

    assert callable(tell)
    tasks = [run(sim, name) for name in ("hooked", "fail", "refuse", "plain")]
    assert told == [("own", "hooked"), ("FAILED", "hooked"), ("FAILED", "fail"), ("FAILED", "refuse")]
    assert [sim.executions(task.id)[0].status for task in tasks] == ["FAILED", "FAILED", "FAILED", "SUCCEEDED"]
    assert caplog.text.count("RuntimeError: the pager is broken") == 3
