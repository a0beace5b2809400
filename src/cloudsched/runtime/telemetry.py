"""Logs for Cloud Logging, and OpenTelemetry spans and metrics.

In the cloud each log line is one JSON object on standard output. Cloud Logging reads severity, message and
trace from special fields (cloud.google.com/logging/docs/structured-logging). All other fields are kept, so
that ``jsonPayload.taskId="…"`` finds everything that happened to a task, and what its handler logged.

Errors are in the form that Error Reporting groups
(cloud.google.com/error-reporting/docs/formatting-error-messages).
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.script import SCRIPT_HANDLER
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.tracing import AttemptFields, Tracer, current_trace

if TYPE_CHECKING:
    from cloudsched.config.settings import Settings

log: Final = own_logger(__name__)

_STANDARD_ATTRIBUTES: Final = frozenset(logging.makeLogRecord({}).__dict__) | {
    "message",
    "asctime",
    "taskName",
}
"""The standard attributes of a record. All others came with the log call."""

_REPORTED_ERROR: Final = "type.googleapis.com/google.devtools.clouderrorreporting.v1beta1.ReportedErrorEvent"
_FAILURE_ACTIONS: Final = {"failed", "timed_out"}
"""The actions of lines that report a final failure."""


class CloudFormatter(logging.Formatter):
    """Formats a record as a line of JSON, which Error Reporting files under the service and its version."""

    def __init__(self, project: str, service: str = "cloudsched", version: str = "") -> None:
        super().__init__()
        self._project = project
        self._service = {"service": service, **({"version": version} if version else {})}
        self._attempt_fields = AttemptFields()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line.

        An error's traceback goes at the end of the message, where Error Reporting expects it. That of
        anything less goes in the field ``traceback``, where it does not look.
        """
        self._attempt_fields.filter(record)
        line: dict[str, object] = {
            "severity": record.levelname,
            "message": record.getMessage(),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
        }
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        if record.levelno >= logging.ERROR:
            line |= self._error_fields(record, trace)
        elif trace:
            line["traceback"] = trace
        position = current_trace()
        if position is not None:
            line["logging.googleapis.com/trace"] = f"projects/{self._project}/traces/{position.trace_id}"
            line["logging.googleapis.com/spanId"] = position.span_id
            line["logging.googleapis.com/trace_sampled"] = position.is_sampled
        more = {name: value for name, value in record.__dict__.items() if name not in _STANDARD_ATTRIBUTES}
        return json.dumps({**more, **line}, default=str)

    def _error_fields(self, record: logging.LogRecord, trace: str) -> dict[str, object]:
        fields: dict[str, object] = {"serviceContext": self._service}
        attributes = record.__dict__
        handler = attributes.get("handler")
        owner = attributes.get("owner")
        if trace:
            fields |= {"message": f"{record.getMessage()}\n{trace}", "@type": _REPORTED_ERROR}
        elif attributes.get("action") in _FAILURE_ACTIONS and handler != SCRIPT_HANDLER:
            # Without a traceback it is grouped by where it was reported. A user's script is not the
            # operator's code.
            location = {"filePath": "handlers", "lineNumber": 0, "functionName": handler}
            fields |= {"@type": _REPORTED_ERROR, "context": {"reportLocation": location}}
        if owner and "@type" in fields:
            context = fields.get("context")
            fields["context"] = {**(context if isinstance(context, dict) else {}), "user": owner}
        return fields


def make_tracer(settings: Settings) -> Tracer:
    """Return the tracer: OpenTelemetry in the cloud, if it is installed, else one that does nothing."""
    is_local = settings.firestore_emulator or settings.tasks_emulator
    if not settings.is_deployed or is_local or not _has_exporters():
        return Tracer()
    from cloudsched.adapters.opentelemetry import MetricsHandler, OpenTelemetryTracer, configure_exporters

    try:
        export = configure_exporters(settings.project)
    except Exception:  # no error here may keep tasks from running without telemetry
        log.exception("telemetry_export_failed", extra={"action": "telemetry_export_failed"})
        return Tracer()
    own_logger("cloudsched").addHandler(MetricsHandler(label_keys=settings.metric_labels))
    return OpenTelemetryTracer(export=export)


def configure_cloud_logging(settings: Settings, *, is_mounted: bool = False) -> None:
    """Log in Cloud Logging's format when deployed. May be called more than once.

    The level is the output's and not the logger's: metrics are counted from lines that are not written, too.
    In a mounted process, only cloudsched's own lines are written, as long as the application has not
    configured logging itself.
    """
    root = logging.root
    logger = own_logger("cloudsched") if is_mounted else root
    if not settings.is_deployed or any(isinstance(each.formatter, CloudFormatter) for each in logger.handlers):
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(CloudFormatter(settings.project, settings.service, settings.service_version))
    handler.setLevel(settings.log_level)
    if is_mounted:
        handler.addFilter(lambda _line: not root.handlers)
    logger.addHandler(handler)
    # Our own level stays if the application sets the root's later.
    for each in (logger, own_logger("cloudsched")):
        each.setLevel(min(logging.INFO, handler.level))


def _has_exporters() -> bool:
    try:
        return find_spec("opentelemetry.exporter.cloud_trace") is not None
    except ModuleNotFoundError:
        return False
