"""Log lines of a worker's handlers carry the ids of their attempt, with either source."""

from __future__ import annotations

import logging
from typing import Any

from tests.worker.harness import WorkerHarness

from cloudsched import App, RetryPolicy
from cloudsched.engine.ports.tracing import current_trace
from cloudsched.engine.state.log_context import AttemptFields

own = logging.getLogger("my.handlers")


def test_a_worker_s_handler_logs_with_its_ids_and_a_trace(harness: WorkerHarness, app: App) -> None:
    """Task, execution, handler, attempt and owner; the trace is that of the occurrence, which all its lines share."""
    found: list[tuple[dict[str, Any], object]] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append((dict(record.__dict__), current_trace()))

    collector = Collector()
    collector.addFilter(AttemptFields())
    own.addHandler(collector)

    @app.handler("act", retry=RetryPolicy(max_retries=0))
    def act() -> None:
        own.warning("at work")
        raise ValueError("no seat")

    try:
        task = harness.offer("act")
        harness.work()
    finally:
        own.removeHandler(collector)
    ((fields, trace),) = found
    told = {name: fields[name] for name in ("taskId", "executionId", "handler", "attempt", "owner")}
    record = harness.record(task)
    assert told == {"taskId": task.id, "executionId": record.id, "handler": "act", "attempt": 1, "owner": "ada"}
    assert trace is not None
    (summary,) = harness.summaries
    assert summary.traceback.startswith("Traceback")
    assert "ValueError: no seat" in summary.traceback
