"""The trace that the current work belongs to, so that a task can be followed from the API to its handler.

A trace is identified as in W3C Trace Context (w3.org/TR/trace-context): by its id and its latest span, in
one line of text. A request brings one along. A dispatch carries it in its signed body, but not in its
name, and the executor continues it. A trace ends with the occurrence, and the next occurrence starts a
new one: otherwise a task that runs for years would be a single trace.

Without OpenTelemetry there are no spans, but each log line still names its trace. An occurrence that
continues no trace gets one that is derived from its ids: so the lines of all its attempts, also those of
workers, share it. While a handler runs, the lines have the ids of its attempt, too. Python does not pass
context variables on to threads: in a thread that a handler starts, run the function with
``contextvars.copy_context().run``.
"""

from __future__ import annotations

import hashlib
import logging
import re
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Trace:
    """A position in a trace: its id and a span."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @classmethod
    def parse(cls, text: str) -> Trace | None:
        """Parse a ``traceparent``. Return None if it is invalid."""
        match = _PARENT.fullmatch(text)
        if match is None or not int(match[1], 16) or not int(match[2], 16):
            return None
        return cls(match[1], match[2], bool(int(match[3], 16) & 1))

    @classmethod
    def for_execution(cls, task_id: str, execution_id: str) -> Trace:
        """Return the trace of an execution that continues no other. It is always the same."""
        digest = hashlib.sha256(f"{task_id} {execution_id}".encode()).hexdigest()
        return cls(digest[:32], digest[32:48], is_sampled=False)

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


@dataclass(slots=True)
class _Position:
    trace: Trace | None
    """The trace that it continues. If None, that of the execution is derived when it is asked for."""
    task_id: str
    execution_id: str
    """The execution that is processed, empty for an API request."""
    token: Token[_Position | None] | None = None

    def __enter__(self) -> None:
        self.token = _current.set(self)

    def __exit__(self, *_error: object) -> None:
        if self.token is not None:
            _current.reset(self.token)


_current: ContextVar[_Position | None] = ContextVar("cloudsched_work", default=None)
_UNCHANGED: Final = nullcontext()


def current_trace() -> Trace | None:
    """Return the current position in the trace, or None."""
    position = _current.get()
    if position is None:
        return None
    if position.trace is None and position.execution_id:
        position.trace = Trace.for_execution(position.task_id, position.execution_id)
    return position.trace


def trace_for(execution_id: str) -> str:
    """Return the ``traceparent`` for a dispatch of an execution, or "" if the current one is another's."""
    position = _current.get()
    if position is None or position.execution_id not in {"", execution_id}:
        return ""
    return str(current_trace() or "")


class Tracer:
    """Tracks the current position in a trace. This implementation creates no spans."""

    def span(
        self, name: str, parent: str = "", execution_id: str = "", **attributes: str | int
    ) -> AbstractContextManager[None]:
        """Run the body of the ``with`` as one span of a trace.

        Args:
            name: The operation, such as ``create_task``.
            parent: The ``traceparent`` to continue, empty for the current one.
            execution_id: The execution that is processed.
            attributes: The attributes of the span. `taskId` belongs to `execution_id`.
        """
        del name  # not used without spans
        task_id = str(attributes.get("taskId", ""))
        position = _current.get()
        if parent:
            return _Position(Trace.parse(parent), task_id, execution_id)
        if position is not None and (position.task_id, position.execution_id) == (task_id, execution_id):
            return _UNCHANGED
        return _Position(None if position is None else current_trace(), task_id, execution_id)

    def flush(self) -> None:
        """Export pending spans at the end of a request: a process that sleeps between requests would not."""

    @staticmethod
    def _activate(trace: Trace | None, execution_id: str) -> AbstractContextManager[None]:
        return _Position(trace, "", execution_id)


_NO_FIELDS: Mapping[str, object] = {}
attempt_fields: ContextVar[Mapping[str, object]] = ContextVar("cloudsched_log_fields", default=_NO_FIELDS)
"""Set by `AttemptLog`."""


def current_log_fields() -> Mapping[str, object]:
    """Return the ids of the attempt while its handler runs: ``taskId``, ``executionId``, ``attempt`` and more."""
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
