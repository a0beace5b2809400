"""What an operator sees: log lines as Cloud Logging reads them, and the spans and metrics of OpenTelemetry.

In the cloud each line of the log is one JSON object on standard output. Cloud Logging takes its severity, its message
and its trace from fields of their own (cloud.google.com/logging/docs/structured-logging); what else a line says is kept
as it is, so that ``jsonPayload.taskId="…"`` finds all that happened to a task.
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
"""What each record has; all else was said by whoever logged it."""


class CloudFormatter(logging.Formatter):
    """Formats a record as one line of JSON.

    Args:
        project: The Google Cloud project that traces belong to.
    """

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. A traceback stands at the end of the message, where Error Reporting looks for it."""
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
    """Return what makes spans: in the cloud OpenTelemetry, if it is installed, whose spans and metrics are exported."""
    is_local = settings.firestore_emulator or settings.tasks_emulator
    if not settings.is_deployed or is_local or not _has_exporters():
        return Tracer()
    from cloudsched.adapters.opentelemetry import Meter, OpenTelemetryTracer, configure_exporters  # noqa: PLC0415 - an extra

    try:
        configure_exporters(settings.project)
    except Exception:  # whatever is wrong with it, tasks run without being watched
        logging.getLogger(__name__).exception("nothing is exported", extra={"action": "nothing is exported"})
        return Tracer()
    logging.getLogger("cloudsched").addHandler(Meter())
    return OpenTelemetryTracer()


def configure_cloud_logging(settings: Settings) -> None:
    """Log as Cloud Logging reads it, if this is the cloud. Harmless to repeat."""
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
