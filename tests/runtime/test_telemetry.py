"""Telemetry for operators: JSON lines with an action and a trace, spans from the API to the handler, and metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.harness import LocalClient
from tests.instants import DAY, HOUR, MINUTE
from werkzeug.wrappers import Request, Response

from cloudsched import App, Settings
from cloudsched.adapters import opentelemetry
from cloudsched.adapters.opentelemetry import MetricsHandler, OpenTelemetryTracer
from cloudsched.engine.tracing import Trace, Tracer, current_trace
from cloudsched.runtime.telemetry import configure_cloud_logging, make_tracer
from cloudsched.testing import Simulation
from cloudsched.web.functions import serve_api, serve_execute

pytestmark = pytest.mark.usefixtures("own_process")  # what is deployed configures its logging
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"
DAILY = {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00"}


@pytest.fixture
def app(app: App) -> App:
    """An app with a handler that logs a line, and one that fails."""

    @app.handler("work", retry=False)
    def work() -> str:
        logging.getLogger("handlers.own").warning("at work")
        return "done"

    @app.handler("fail", retry=1)
    def fail() -> None:
        raise ValueError("no")

    return app


def create(sim: Simulation, **task: Any) -> str:
    """Create a task through the API, within a trace."""
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))
    body = {"owner": "ada", "handler": "work", **task}
    answer: Response = client.post("/v1/tasks", json=body, headers={"traceparent": PARENT})
    return str(json.loads(answer.get_data())["id"])


def actions(lines: list[dict[str, Any]]) -> list[str]:
    return [line["action"] for line in lines if line["logger"] == "cloudsched.events"]


def test_each_change_of_state_is_one_line(app: App, sim: Simulation, lines: list[dict[str, Any]]) -> None:
    """From its creation to its end, a task's life can be read from the lines with its id: none missing, none twice."""
    task_id = create(sim, schedule=DAILY, maxRuns=2)
    sim.advance(10 * HOUR)
    app.pause(task_id)
    app.pause(task_id)
    app.resume(task_id)
    app.update(task_id, title="New")
    app.trigger(task_id)
    sim.advance(2 * DAY)
    app.delete(task_id)
    life = (
        "created started succeeded paused resumed edited run_requested started succeeded "
        "started completed succeeded deleted"
    )
    assert actions(lines) == life.split()
    assert {line["taskId"] for line in lines if "action" in line and line["action"] != "swept"} == {task_id}
    started = next(line for line in lines if line.get("action") == "started")
    assert (started["severity"], started["attempt"]) == ("INFO", 1)
    assert 0 <= started["latenessSeconds"] < 1


def test_lines_name_their_trace_through_the_queue(sim: Simulation, lines: list[dict[str, Any]]) -> None:
    """What the API, the executor and the handler log for one occurrence is in the trace of the request that made it.

    The next occurrence is not: it has a trace of its own, of which no spans are kept.
    """
    create(sim, schedule=DAILY)
    sim.advance(10 * HOUR)
    wanted = f"projects/demo/traces/{TRACE}"
    assert len(lines) >= 4
    told = {line.get("action", line["logger"]): line.get("logging.googleapis.com/trace") for line in lines}
    assert [told[name] for name in ("created", "started", "handlers.own", "succeeded")] == [wanted] * 4
    lines.clear()
    sim.advance(DAY)
    assert actions(lines) == ["started", "succeeded"]
    (trace,) = {line["logging.googleapis.com/trace"] for line in lines if "taskId" in line}
    assert trace != wanted
    assert {line["logging.googleapis.com/trace_sampled"] for line in lines if "taskId" in line} == {False}
    lines.clear()
    sim.advance(DAY)
    assert trace not in {line.get("logging.googleapis.com/trace") for line in lines}


@given(st.text())
def test_an_invalid_trace_header_gives_no_trace(text: str) -> None:
    """Any header gives a trace or None; a trace survives being written and read."""
    found = Trace.parse(text)
    assert found is None or Trace.parse(str(found)) == found
    with Tracer().span("x", text):
        assert current_trace() == found
    assert Trace.parse("00-" + "0" * 32 + "-b7ad6b7169203331-01") is None


def test_spans_lead_from_the_api_to_the_handler(sim: Simulation) -> None:
    """OpenTelemetry shows one trace: the caller's, the API's operation, the executor, and in it the handler."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sim.app.container.replace(tracer=OpenTelemetryTracer(provider))
    task_id = create(sim)
    sim.advance(5 * MINUTE)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert list(spans) == ["create_task", "handler work", "execute"]
    ids = {name: span.context.span_id for name, span in spans.items() if span.context}
    parents = {name: span.parent.span_id for name, span in spans.items() if span.parent}
    assert parents == {
        "create_task": int(PARENT.split("-")[2], 16),
        "execute": ids["create_task"],
        "handler work": ids["execute"],
    }
    assert {f"{span.context.trace_id:032x}" for span in spans.values() if span.context} == {TRACE}
    assert (spans["execute"].attributes or {})["cloudsched.taskId"] == task_id


def test_metrics_match_the_log(sim: Simulation) -> None:
    """Created, started, ended by status, lateness, backlog, lost and repaired."""
    reader = InMemoryMetricReader()
    meter = MetricsHandler(MeterProvider([reader]))
    log = logging.getLogger("cloudsched")
    before = log.level
    log.addHandler(meter)
    log.setLevel(logging.INFO)
    try:
        create(sim)
        create(sim, handler="fail")
        sim.queue.purge()
        sim.advance(30 * MINUTE)
    finally:
        log.removeHandler(meter)
        log.setLevel(before)
    data = reader.get_metrics_data()
    assert data is not None
    found = {
        metric.name: {tuple(sorted((point.attributes or {}).items())): point for point in metric.data.data_points}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }
    works, fails = ("handler", "work"), ("handler", "fail")
    count = {
        name: {key: getattr(point, "value", None) for key, point in points.items()} for name, points in found.items()
    }
    assert count["cloudsched.tasks.created"] == {(works,): 1, (fails,): 1}
    assert count["cloudsched.attempts.started"] == {(works,): 1, (fails,): 2}
    ended = count["cloudsched.executions.finished"]
    assert ended == {(works, ("status", "SUCCEEDED")): 1, (fails, ("status", "FAILED")): 1}
    assert count["cloudsched.dispatches.repaired"] == {(): 2}
    lateness: Any = found["cloudsched.attempts.lateness"][works,]
    assert 20 <= lateness.max <= 90, "the sweep found it within a minute and its grace"


def test_metrics_have_the_labels_that_the_operator_names(monkeypatch: pytest.MonkeyPatch, sim: Simulation) -> None:
    """And no others; a task without them has none, and of too many values the last ones are counted together."""
    monkeypatch.setattr(opentelemetry, "MAX_VALUES", 2)
    reader = InMemoryMetricReader()
    settings = Settings.from_environment({"CLOUDSCHED_METRIC_LABELS": "team env team"})
    assert Settings.from_environment(settings.to_environment()).metric_labels == ("team", "env")
    meter = MetricsHandler(MeterProvider([reader]), settings.metric_labels)
    log = logging.getLogger("cloudsched")
    monkeypatch.setattr(log, "handlers", [*log.handlers, meter])
    monkeypatch.setattr(log, "level", logging.INFO)
    monkeypatch.setattr(logging.getLogger("cloudsched.events"), "level", logging.INFO)
    for team in ("a", "b", "c", "d", "a"):
        create(sim, labels=[f"team={team}", "secret=x"])
    create(sim, labels=["env=prod"])
    create(sim)
    data = reader.get_metrics_data()
    assert data is not None
    (made,) = [
        metric
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "cloudsched.tasks.created"
    ]
    counts = {
        tuple(sorted((point.attributes or {}).items())): getattr(point, "value", 0) for point in made.data.data_points
    }
    work = ("handler", "work")
    assert counts == {
        (work, ("label.team", "a")): 2,
        (work, ("label.team", "b")): 1,
        (work, ("label.team", "(other)")): 2,
        (work, ("label.env", "prod")): 1,
        (work,): 1,
    }


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "CRITICAL"])
def test_a_deployed_function_writes_no_line_below_its_level(
    level: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """INFO is the default. Lines that are not written are still logged, so that metrics see each change of state."""
    root, own = logging.getLogger(), logging.getLogger("cloudsched")
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(own, "level", logging.NOTSET)  # a command of another test may have set it
    variables = {"K_SERVICE": "execute", **({} if level == "INFO" else {"CLOUDSCHED_LOG_LEVEL": level})}
    settings = Settings.from_environment(variables)
    assert Settings.from_environment(settings.to_environment()).log_level == level
    configure_cloud_logging(settings)
    log = logging.getLogger("cloudsched.events")
    severities = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    for severity in severities:
        log.log(logging.getLevelNamesMapping()[severity], "a line")
    written = [json.loads(line)["severity"] for line in capsys.readouterr().out.splitlines()]
    assert written == severities[severities.index(level) :]
    assert log.isEnabledFor(logging.INFO)


@pytest.mark.parametrize("has_own_logging", [False, True])
def test_a_mounted_scheduler_leaves_the_applications_logging_alone(
    has_own_logging: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its own lines are written as long as nobody else writes them; the application's are none of its business."""
    root, own = logging.getLogger(), logging.getLogger("cloudsched")
    for logger in (root, own):
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "level", logger.level)
    before = (root.level, root.handlers)
    settings = Settings.from_environment({"K_SERVICE": "shop"})
    for _ in range(2):
        configure_cloud_logging(settings, is_mounted=True)
    assert (root.level, root.handlers) == before
    if has_own_logging:
        root.addHandler(logging.NullHandler())
    logging.getLogger("shop").error("the application's")
    logging.getLogger("cloudsched.events").info("our own")
    written = [json.loads(line)["message"] for line in capsys.readouterr().out.splitlines()]
    assert written == ([] if has_own_logging else ["our own"])


def test_what_is_pending_is_exported_at_the_end_of_a_request(simulate: Callable[..., Simulation]) -> None:
    """A function has no processor between requests; each export takes a call, so there is one in ten seconds at most.

    One that fails is logged, and the request is answered all the same. A mounted scheduler's process never sleeps.
    """
    sim = simulate(is_deployed=True, tasks_emulator="none")
    exported: list[float] = []
    seconds = [100.0]

    def export() -> None:
        exported.append(seconds[0])
        if len(exported) == 2:
            raise ConnectionError("Cloud Trace is down")

    tracer = OpenTelemetryTracer(TracerProvider(), export, lambda: seconds[0])
    sim.app.container.tracer = tracer
    client = LocalClient(Request.application(lambda request: serve_api(sim.app, request)))
    for moment in (100.0, 105.0, 110.0, 119.0, 121.0):
        seconds[0] = moment
        assert client.get("/health").status_code == 200
    assert exported == [100.0, 110.0, 121.0]
    mounted = LocalClient(Request.application(lambda request: serve_api(sim.app, request, is_mounted=True)))
    seconds[0] = 200.0
    assert mounted.get("/health").status_code == 200
    assert exported[-1] == 121.0


def test_nothing_is_exported_outside_the_cloud() -> None:
    """A laptop or a test exports nothing, even if the exporter is installed."""
    assert type(make_tracer(Settings())) is Tracer


def test_a_forged_trace_changes_nothing(sim: Simulation) -> None:
    """The trace in a dispatch is under its token, like the rest of the body."""
    create(sim)
    sim.advance(5 * MINUTE)
    (delivery,) = sim.queue.deliveries
    client = LocalClient(Request.application(lambda request: serve_execute(sim.app, request)))
    forged = delivery.body.replace(TRACE.encode(), b"1" * 32)
    assert forged != delivery.body
    assert client.post("/", data=forged, headers={"X-Cloudsched-Token": "v1=" + "0" * 64}).status_code == 401
