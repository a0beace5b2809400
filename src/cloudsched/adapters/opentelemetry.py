"""OpenTelemetry: spans, metrics derived from log records, and their export to Google Cloud.

A deployed function that has the extra installed (``pip install '../cloudsched[telemetry]'``) exports to Cloud
Trace and Cloud Monitoring. A program with its own providers sets ``app.container.tracer =
OpenTelemetryTracer()`` and calls ``logging.getLogger("cloudsched").addHandler(Meter())``.

``docs/reference/resources.md`` lists the metrics.

Metrics that concern one handler have the attribute ``handler``, and ``label.KEY`` for each key of a task's
labels that the operator has named. Owners and ids are in logs and spans, not in metrics.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics, propagate, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.tracing import Trace, Tracer, current_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

log: Final = own_logger(__name__)

_NAME = "cloudsched"
_EXPORT_MILLISECONDS = 60_000
_FLUSH_MILLISECONDS = 2_000
FLUSH_SECONDS = 10.0
"""The least seconds between two exports by requests. Cloud Monitoring takes a point of a series every five
seconds."""
MAX_VALUES = 100
"""The number of values of one label's key that a process tells apart: users choose them, and each is a time
series."""
OTHER_VALUES = "(other)"
"""The value that stands for all further ones. No label can have it."""
_FINAL_STATUSES = {status.lower(): status.value for status in ExecutionStatus if status.is_final}


class OpenTelemetryTracer(Tracer):
    """Records each unit of work as a span.

    Without `export`, background threads do that, in a process that never sleeps.
    """

    def __init__(
        self,
        provider: TracerProvider | None = None,
        export: Callable[[], object] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._export = export
        self._monotonic = monotonic
        self._exported_at = float("-inf")
        self._lock = threading.Lock()
        self._tracer = trace.get_tracer(_NAME, tracer_provider=provider)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self,
        name: str,
        parent: str = "",
        execution_id: str = "",
        **attributes: str | int,
    ) -> Iterator[None]:
        """Record the body of the ``with`` statement as one span.

        Its parent is `parent` (a ``traceparent``), or the current trace if that is empty.
        """
        before = parent or str(current_trace() or "")
        context = None
        if before:
            context = self._propagator.extract({"traceparent": before})
        named = {f"cloudsched.{key}": value for key, value in attributes.items()}
        with self._tracer.start_as_current_span(name, context, attributes=named) as span:
            own = span.get_span_context()
            ids = f"00-{own.trace_id:032x}-{own.span_id:016x}-{int(own.trace_flags):02x}"
            with self._activate(Trace.parse(ids), execution_id):
                yield

    def flush(self) -> None:
        """Export what is pending, unless that was done within `FLUSH_SECONDS`, since each export costs a call."""
        with self._lock:
            now = self._monotonic()
            if self._export is None or now < self._exported_at + FLUSH_SECONDS:
                return
            self._exported_at = now
        try:
            self._export()
        except Exception:  # a request never fails because of its telemetry
            log.exception("telemetry_export_failed", extra={"action": "telemetry_export_failed"})


class MetricsHandler(logging.Handler):
    """Derives metrics from log records, since every change is logged."""

    def __init__(self, provider: MeterProvider | None = None, label_keys: Sequence[str] = ()) -> None:
        super().__init__(logging.INFO)
        self._values: dict[str, set[str]] = {key: set() for key in label_keys}
        meter = metrics.get_meter(_NAME, meter_provider=provider)
        self._created = meter.create_counter("cloudsched.tasks.created")
        self._started = meter.create_counter("cloudsched.attempts.started")
        self._finished = meter.create_counter("cloudsched.executions.finished")
        self._lateness = meter.create_histogram("cloudsched.attempts.lateness", "s")
        self._backlog = meter.create_gauge("cloudsched.tasks.overdue")
        self._repaired = meter.create_counter("cloudsched.dispatches.repaired")
        self._unreadable = meter.create_counter("cloudsched.documents.unreadable")

    def emit(self, record: logging.LogRecord) -> None:
        """Count the event that a log record reports."""
        fields: dict[str, Any] = record.__dict__
        if "handler" in fields:
            labels = {"handler": fields["handler"], **self._read_labels(fields)}
        else:
            labels = {}
        match fields.get("action"):
            case "created":
                self._created.add(1, labels)
            case "started":
                self._started.add(1, labels)
                self._lateness.record(fields["latenessSeconds"], labels)
            case "swept":
                self._backlog.set(fields["examined"])
                self._repaired.add(fields["dispatched"])
            case "unreadable":
                self._unreadable.add(1)
            case action if action in _FINAL_STATUSES and "executionId" in fields:
                self._finished.add(1, {**labels, "status": _FINAL_STATUSES[action]})

    def _read_labels(self, fields: dict[str, Any]) -> dict[str, str]:
        """Return a task's labels of the named keys. `logging` has locked this handler."""
        found = {}
        for label in fields.get("labels") or ():
            key, _, value = str(label).partition("=")
            if (known := self._values.get(key)) is not None:
                if len(known) < MAX_VALUES:
                    known.add(value)
                found[f"label.{key}"] = value if value in known else OTHER_VALUES
        return found


def configure_exporters(project: str) -> Callable[[], object]:
    """Export spans and metrics to Cloud Trace and Cloud Monitoring for the rest of the process.

    Background threads send them in batches. Pending ones are flushed when the process exits. Cloud Run gives
    an instance no processor between requests, so the returned function exports at the end of one.
    """
    from opentelemetry.exporter.cloud_monitoring import (  # noqa: PLC0415 - needed only for export
        CloudMonitoringMetricsExporter,
    )
    from opentelemetry.exporter.cloud_trace import CloudTraceSpanExporter  # noqa: PLC0415 - the same
    from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - the same
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - the same

    # Many instances write the same metrics, so each needs a unique label.
    exporter = CloudMonitoringMetricsExporter(project_id=project, add_unique_identifier=True)
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=_EXPORT_MILLISECONDS)
    meters = MeterProvider([reader])
    spans = CloudTraceSpanExporter(project_id=project)  # type: ignore[no-untyped-call]  # it ships no types
    tracers = TracerProvider()
    tracers.add_span_processor(BatchSpanProcessor(spans))
    metrics.set_meter_provider(meters)
    trace.set_tracer_provider(tracers)
    propagate.set_global_textmap(TraceContextTextMapPropagator())
    atexit.register(meters.shutdown)
    atexit.register(tracers.shutdown)
    return lambda: (tracers.force_flush(_FLUSH_MILLISECONDS), meters.force_flush(_FLUSH_MILLISECONDS))
