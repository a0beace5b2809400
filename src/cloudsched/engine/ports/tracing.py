"""Which trace the present work belongs to, so that a task can be followed from the API to its handler.

A trace is named by W3C Trace Context (w3.org/TR/trace-context): its id and its latest span, in one line of text. A
request brings one along; a dispatch carries it in its signed body, where it is no part of its name; the executor goes
on with it. It ends with the occurrence: the next one begins a trace of its own, or a task of many years would be one.

Without OpenTelemetry there are no spans, but each log line still names its trace.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


@dataclass(frozen=True, slots=True)
class Trace:
    """A place in a trace."""

    trace_id: str
    span_id: str
    is_sampled: bool

    @classmethod
    def parse(cls, text: str) -> Trace | None:
        """Read a ``traceparent``; None if it is none."""
        match = _PARENT.fullmatch(text)
        if match is None or not int(match[1], 16) or not int(match[2], 16):
            return None
        return cls(match[1], match[2], bool(int(match[3], 16) & 1))

    def __str__(self) -> str:
        """Return it as a ``traceparent``."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


@dataclass(frozen=True, slots=True)
class _TraceContext:
    trace: Trace | None
    execution_id: str
    """The execution that it is about; empty for a caller's request."""


_current: ContextVar[_TraceContext | None] = ContextVar("cloudsched_work", default=None)


def current_trace() -> Trace | None:
    """Return where the present work stands in its trace, if it has one."""
    work = _current.get()
    return None if work is None else work.trace


def trace_for(execution_id: str) -> str:
    """Return the ``traceparent`` for a dispatch of an execution: the present one, unless it is another execution's."""
    work = _current.get()
    if work is None or work.trace is None or work.execution_id not in {"", execution_id}:
        return ""
    return str(work.trace)


class Tracer:
    """Knows where the present work stands. This one makes no spans of its own."""

    @contextmanager
    def span(self, name: str, parent: str = "", execution_id: str = "", **attributes: str | int) -> Iterator[None]:
        """Do what is in the ``with`` as one span of a trace.

        Args:
            name: What is done, such as ``create_task``.
            parent: The ``traceparent`` to go on with; empty for the present one.
            execution_id: The execution that it is about.
            attributes: What is known of it.
        """
        del name, attributes  # nobody looks at them here
        with self._activate(Trace.parse(parent) if parent else current_trace(), execution_id):
            yield

    @staticmethod
    @contextmanager
    def _activate(trace: Trace | None, execution_id: str) -> Iterator[None]:
        token = _current.set(_TraceContext(trace, execution_id))
        try:
            yield
        finally:
            _current.reset(token)
