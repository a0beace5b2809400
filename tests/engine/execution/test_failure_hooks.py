"""The failure options of a handler: `retry_on`, the exceptions that are retried, and the hook `on_failure`."""

from __future__ import annotations

import pytest
from tests.engine.harness import HOUR, MINUTE, only_run

from cloudsched import App, Execution, ExecutionStatus, RetryPolicy, Schedule, Task
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.testing import START, Simulation

TWICE = RetryPolicy(max_retries=1, jitter=0)
IN_A_MINUTE = Schedule.once(START + MINUTE)


@pytest.mark.parametrize(("error", "attempts"), [(ConnectionError, 2), (TimeoutError, 2), (ValueError, 1)])
def test_only_the_named_exceptions_are_retried(
    app: App, sim: Simulation, error: type[Exception], attempts: int
) -> None:
    """An exception that is not an instance of a class in `retry_on` fails the occurrence at once."""

    @app.handler("flaky", retry=TWICE, retry_on=(ConnectionError, TimeoutError))
    def flaky() -> None:
        raise error("no")

    task = app.create(handler="flaky", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    execution = only_run(sim, task)
    assert execution.status is ExecutionStatus.FAILED
    assert len(execution.attempts) == attempts


@pytest.mark.parametrize("its_own", [RuntimeError, SystemExit])
def test_the_hook_runs_once_and_only_for_the_final_failure(
    app: App, sim: Simulation, its_own: type[BaseException]
) -> None:
    """`on_failure` gets the task and the final record, once; an exception of the hook changes nothing."""
    told: list[tuple[Task, Execution]] = []

    def hook(task: Task, execution: Execution) -> None:
        told.append((task, execution))
        raise its_own("the hook fails, too")

    @app.handler("flaky", retry=TWICE, on_failure=hook)
    def flaky() -> None:
        raise ConnectionError("no")

    task = app.create(handler="flaky", schedule=IN_A_MINUTE)
    sim.advance(HOUR)
    ((told_task, execution),) = told
    assert told_task.id == task.id
    assert execution == only_run(sim, task)
    assert execution.status is ExecutionStatus.FAILED
    assert app.get(task.id).status == "FAILED"


def test_the_hook_runs_if_the_executor_died_in_the_last_attempt(app: App, sim: Simulation) -> None:
    """After a last lease without a result, the occurrence is TIMED_OUT; the process that finds it runs the hook."""
    told: list[Execution] = []

    class Killed(ControlFlow):
        """The process dies here."""

    @app.handler("deadly", retry=False, on_failure=lambda _, execution: told.append(execution))
    def deadly() -> None:
        raise Killed

    app.create(handler="deadly", schedule=IN_A_MINUTE)
    with pytest.raises(Killed):
        sim.advance(2 * MINUTE)
    sim.advance(HOUR)
    assert [execution.status for execution in told] == [ExecutionStatus.TIMED_OUT]
