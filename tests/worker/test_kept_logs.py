"""What a worker's handlers log is kept with their executions, whether it reaches them at the store or through the API.

`tests.engine.state.test_log_keeper` says what counts; this says that a worker collects it and that it arrives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from tests.engine.harness import HOUR
from tests.worker.harness import Gate, WorkerHarness

from cloudsched import App, Context, Task
from cloudsched.domain.documents.log_lines import RunLog
from cloudsched.engine.queries.execution_search import load_sealed_log
from cloudsched.errors import StoreUnavailable
from cloudsched.worker.api_source import ApiSource

log = logging.getLogger("tests.studio")


@pytest.fixture(autouse=True)
def _level() -> Iterator[None]:
    log.setLevel(logging.DEBUG)
    yield
    log.setLevel(logging.NOTSET)


def read(harness: WorkerHarness, task: Task) -> RunLog:
    """Return what the one execution of a task has logged so far."""
    engine, stored = harness.app.container.engine, harness.app.get(task.id)
    execution_id = stored.runs[0].execution_id if stored.runs else harness.record(task).id
    found = engine.logs.read(task.id, execution_id, load_sealed_log(engine, stored, execution_id)[1])
    assert found is not None
    return found


def texts(found: RunLog) -> list[str]:
    return [each.text for each in found.lines]


def test_they_are_seen_while_it_runs(app: App, harness: WorkerHarness, caplog: pytest.LogCaptureFixture) -> None:
    """After each heartbeat, the handler's own ones included; the end repeats nothing, and no request is among them."""
    caplog.set_level(logging.INFO)
    seen: list[list[str]] = []

    @app.handler("act")
    def act(ctx: Context) -> None:
        log.info("one")
        ctx.heartbeat()
        seen.append(texts(read(harness, ctx.task)))
        ctx.heartbeat()
        log.info("two")
        ctx.heartbeat()
        seen.append(texts(read(harness, ctx.task)))

    task = harness.offer("act")
    harness.work()
    assert seen == [["one"], ["one", "two"]]
    assert texts(read(harness, task)) == ["one", "two"]


def test_each_of_many_at_once_has_its_own(app: App, harness: WorkerHarness, gate: Gate) -> None:
    """Handlers that run beside each other in one worker do not get each other's lines."""

    @app.handler("act")
    def act(ctx: Context) -> None:
        log.info("%s begins", ctx.task.title)
        gate.wait()
        log.info("%s ends", ctx.task.title)

    tasks = [harness.offer("act", title=f"task {number}") for number in range(3)]
    worker = harness.worker(concurrency=3)
    with harness.run_beside(worker):
        gate.wait_until_inside(3)
        gate.open()
        harness.wait_for_outcomes(*["succeeded"] * 3)
    assert [texts(read(harness, each)) for each in tasks] == [
        [f"task {number} begins", f"task {number} ends"] for number in range(3)
    ]


def test_a_stopped_worker_s_lines_stay(app: App, harness: WorkerHarness, gate: Gate) -> None:
    """It reports them when it releases the run."""

    @app.handler("act", expected_duration=HOUR)
    def act() -> None:
        log.info("begins")
        gate.wait()

    task = harness.offer("act")
    worker = harness.worker(grace=timedelta(0))
    with harness.run_beside(worker):
        gate.wait_until_inside()
        worker.stop()
        harness.wait_for_outcomes("released")
        gate.open()
    assert texts(read(harness, task)) == ["begins"]


@pytest.mark.parametrize(("level", "kept"), [("off", []), ("error", ["broken"]), ("debug", ["detail", "broken"])])
def test_the_api_s_setting_says_what_is_kept(
    app: App, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch, level: str, kept: list[str]
) -> None:
    """The claim tells the worker: where nothing is kept, nothing is collected and nothing is sent."""
    keeper = harness.app.container.engine.logs
    number = None if level == "off" else logging.getLevelNamesMapping()[level.upper()]
    object.__setattr__(keeper, "level", number)
    sent: list[object] = []

    def note_log(_: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> object:
            sent.append(named.get("logs"))
            return method(*arguments, **named)

        return call

    answer_through(monkeypatch, note_log)

    @app.handler("act")
    def act(ctx: Context) -> None:
        log.debug("detail")
        log.error("broken")
        ctx.heartbeat()

    task = harness.offer("act")
    harness.work()
    assert texts(read(harness, task)) == kept
    assert len([each for each in sent if each is not None]) == (1 if kept and harness.kind == "api" else 0)


def answer_through(
    monkeypatch: pytest.MonkeyPatch, around: Callable[[str, Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Let the worker's clients call the API through functions of the test's own, by the methods' names."""
    connect = vars(ApiSource)["client"].fget

    class Through:
        def __init__(self, source: ApiSource) -> None:
            self._client = connect(source)

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the client
            return around(name, getattr(self._client, name))

    monkeypatch.setattr(ApiSource, "client", property(Through))


def test_lost_answers_lose_and_repeat_nothing(
    app: App, harness: WorkerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats and reports whose answers are lost after they took effect are sent again."""
    counts = [0]

    def lose_every_second(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> object:
            answer = method(*arguments, **named)
            counts[0] += 1
            if counts[0] % 2:
                raise StoreUnavailable("The API", "its answer was lost")
            return answer

        return call if name in {"heartbeat", "complete"} else method

    answer_through(monkeypatch, lose_every_second)

    @app.handler("act")
    def act(ctx: Context) -> None:
        for number in range(4):
            log.info("line %s", number)
            ctx.heartbeat()

    task = harness.offer("act")
    harness.work()
    assert texts(read(harness, task)) == [f"line {number}" for number in range(4)]
    assert counts[0] == (6 if harness.kind == "api" else 0), "three answers were lost"
