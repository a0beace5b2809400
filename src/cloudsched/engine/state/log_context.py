"""Adds the ids of the attempt to log lines, so that the lines of a handler can be found by its task.

While a handler runs, `current_log_fields` returns the ids of its attempt. Python does not pass context variables on to
threads: in a thread that a handler starts, run the function with ``contextvars.copy_context().run``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar

_NO_FIELDS: Mapping[str, object] = {}
attempt_fields: ContextVar[Mapping[str, object]] = ContextVar("cloudsched_log_fields", default=_NO_FIELDS)
"""Set by `attempt_log.AttemptLines`."""


def current_log_fields() -> Mapping[str, object]:
    """Return ``taskId``, ``executionId``, ``handler``, ``attempt`` and ``owner`` while a handler runs, else none."""
    return attempt_fields.get()


class AttemptFields(logging.Filter):
    """Adds the ids of the running attempt to each record, as attributes. The fields of the log call win.

    Put it on a `logging.Handler` of your own: ``handler.addFilter(AttemptFields())``.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields. Every record passes."""
        for name, value in current_log_fields().items():
            record.__dict__.setdefault(name, value)
        return True
