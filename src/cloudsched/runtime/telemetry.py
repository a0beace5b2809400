"""Logs for Cloud Logging, and OpenTelemetry spans and metrics.

In the cloud each log line is one JSON object on standard output. Cloud Logging reads severity, message and trace from
special fields (cloud.google.com/logging/docs/structured-logging); all other fields are kept, so that
``jsonPayload.taskId="…"`` finds everything that happened to a task.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from cloudsched.engine.ports.tracing import Tracer, current_trace

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings

_STANDARD_ATTRIBUTES: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""The standard attributes of a record; all others came with the log call."""


class CloudFormatter(logging.Formatter):
    """Formats a record as one line of JSON.

    Args:
        project: The Google Cloud project that traces belong to.
    """

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. A traceback goes at the end of the message, where Error Reporting expects it."""
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + self.formatException(record.exc_info)
        line: dict[str, object] = {
            "severity": record.levelname,
            "message": message,
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
        }
        trace = current_trace()
        if trace is not None:
            line["logging.googleapis.com/trace"] = f"projects/{self._project}/traces/{trace.trace_id}"
            line["logging.googleapis.com/spanId"] = trace.span_id
            line["logging.googleapis.com/trace_sampled"] = trace.is_sampled
        more = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_ATTRIBUTES}
        return json.dumps({**more, **line}, default=str)


def make_tracer(settings: Settings) -> Tracer:
    """Return the tracer: in the cloud OpenTelemetry with exporters, if installed; else one that does nothing."""
    is_local = settings.firestore_emulator or settings.tasks_emulator
    if not settings.is_deployed or is_local or not _has_exporters():
        return Tracer()
    from cloudsched.adapters.opentelemetry import Meter, OpenTelemetryTracer, configure_exporters  # noqa: PLC0415 - an extra

    try:
        configure_exporters(settings.project)
    except Exception:  # whatever is wrong, tasks must run, even without telemetry
        logging.getLogger(__name__).exception("telemetry_export_failed", extra={"action": "telemetry_export_failed"})
        return Tracer()
    logging.getLogger("cloudsched").addHandler(Meter())
    return OpenTelemetryTracer()


def configure_cloud_logging(settings: Settings) -> None:
    """Log in Cloud Logging's format when deployed. May be called more than once."""
    root = logging.getLogger()
    if not settings.is_deployed or any(isinstance(each.formatter, CloudFormatter) for each in root.handlers):
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(CloudFormatter(settings.project))
    root.addHandler(handler)
    root.setLevel(logging.INFO)


def _has_exporters() -> bool:
    try:
        return find_spec("opentelemetry.exporter.cloud_trace") is not None
    except ModuleNotFoundError:
        return False
