"""What a finished execution records about the calls that it made and never awaited."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import DAY, Create, Row, only_run, register_work_handler, run, run_to_end

from cloudsched import App, Context, Execution
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import Simulation


@pytest.fixture
def app(app: App) -> App:
    """Return an app whose handler ``c`` returns a number at once, fails if it is 0, or returns after so many days."""

    @app.handler("c", retry=False)
    def c(ctx: Context, row: Row) -> int:
        if row.n == 0:
            raise ConnectionError("no line")
        if row.n > 1:
            ctx.sleep(row.n * DAY)
        return row.n

    return app


def call_outcomes(execution: Execution) -> list[tuple[str, object]]:
    return [(each.status.value, each.error.status if each.error else each.result) for each in execution.steps]


@pytest.mark.parametrize("ending", ["returns", "raises", "fails"])
def test_the_record_has_the_results_of_unawaited_calls(app: App, sim: Simulation, create: Create, ending: str) -> None:
    """This holds however the handler ends; calls in progress are left as they are."""

    def call(ctx: Context) -> object:
        for n in (1, 0, 300):
            ctx.call("c", Row(n=n))
        ctx.sleep(DAY)
        if ending == "raises":
            raise ConnectionError("my own")
        return ctx.call("c", Row(n=1 if ending == "returns" else 0)).result()

    register_work_handler(app, call)
    task = create(retry=False)
    sim.advance(2 * DAY)
    execution = only_run(sim, task)
    assert call_outcomes(execution)[:4] == [
        ("SUCCEEDED", 1),
        ("FAILED", "FAILED"),
        ("WAITING", None),
        ("SUCCEEDED", None),
    ]
    assert {each.finished_at for each in execution.steps[:2]} == {execution.started_at}, (
        "when they ended, not when seen"
    )
    assert (execution.failure_cause.steps if execution.failure_cause else ()) == ((5,) if ending == "fails" else ())


def test_a_manual_retry_sees_the_recorded_results(app: App, sim: Simulation, create: Create) -> None:
    """Nothing is called again; what had failed and was not waited for fails in the same way, and is made anew then."""
    is_mended = list[bool]()

    def call(ctx: Context) -> Any:  # noqa: ANN401 - what it was told
        good, bad = ctx.call("c", Row(n=1)), ctx.call("c", Row(n=0))
        ctx.sleep(DAY)
        if not is_mended:
            raise ConnectionError("my own")
        return [str(each) for each in ctx.gather(good, bad, return_failures=True)]

    register_work_handler(app, call)
    task = create(retry=False)
    failed = run_to_end(sim, task)
    is_mended.append(True)
    app.retry(task.id)
    execution = run_to_end(sim, task)
    assert len(app.tree(task.id).children) == 2
    assert execution.content[0] == "1"
    assert "ConnectionError: no line" in execution.content[1]
    assert [each.model_copy(update={"is_made": None}) for each in execution.steps] == list(failed.steps)


def test_a_store_that_does_not_answer_just_then_loses_nothing_else(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()

    def fail_to_answer(*call: object) -> None:
        asked.append(call)
        raise StoreUnavailable("The store", "no answer")

    def call(ctx: Context) -> str:
        for _ in range(9):
            ctx.call("c", Row(n=1))
        ctx.sleep(DAY)
        return "done"

    monkeypatch.setattr("cloudsched.engine.durable.results.load_call_outcome", fail_to_answer)
    execution = run(app, call)
    assert (execution.status, execution.content, len(asked)) == ("SUCCEEDED", "done", 1)
    assert call_outcomes(execution)[0] == ("SUCCEEDED", None)
