"""Collect what a handler logs.

The log has the records of Python's `logging` that reach the root logger from the handler's context: from
its own thread, a coroutine of its own, a step, and a thread that got its context (`asyncio.to_thread`
passes it on). What the handler prints is only collected if the settings say so. Lines that a replay
repeats are not collected again, nor are this package's own.
"""

from __future__ import annotations

import builtins
import logging
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import exception_text, truncate
from cloudsched.domain.documents.log_lines import MAX_LINE_BYTES, LogLine, RunLog
from cloudsched.domain.raised_errors import format_raised
from cloudsched.engine.concurrency.fork_safety import make_lock
from cloudsched.engine.tracing import attempt_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock

_OWN = "cloudsched"
PRINTED: Final = "print"
"""The logger's name of printed lines."""
_MAX_MESSAGE_BYTES = 300
"""The bytes of a message that are kept beside its traceback."""
_current: ContextVar[AttemptLog | None] = ContextVar("cloudsched_attempt_log", default=None)
_NOTHING: Final = RunLog.build()


class AttemptLog:
    """Assigns the lines that are logged in the ``with`` block to an attempt, and collects them. Thread-safe.

    Without a level nothing is collected, not even for an outer block. `is_muted` returns whether the
    lines logged now were logged before, and are only repeated.
    """

    def __init__(
        self,
        task: Task,
        run: Run,
        clock: Clock,
        level: int | None,
        is_muted: Callable[[], bool] = lambda: False,
        *,
        keeps_print: bool = False,
    ) -> None:
        self._attempt = run.attempt
        self._fields: dict[str, object] = {
            "taskId": task.id,
            "executionId": run.execution_id,
            "handler": task.handler,
            "attempt": run.attempt,
            "owner": task.owner,
        }
        self._clock = clock
        self._level = level
        self._is_muted = is_muted
        self.keeps_print = keeps_print
        self._lock = threading.Lock()
        self.found: RunLog = _NOTHING
        """The latest lines so far, and how many earlier ones there were."""

    def __enter__(self) -> None:
        if self._level is not None:
            _COLLECTOR.begin()
            if self.keeps_print:
                _note_prints()
        self._fields_token = attempt_fields.set(self._fields)
        self._token = _current.set(None if self._level is None else self)

    def __exit__(self, *_error: object) -> None:
        if self._level is not None:
            _COLLECTOR.end()
        _current.reset(self._token)
        attempt_fields.reset(self._fields_token)

    def note(self, record: logging.LogRecord) -> None:
        """Keep a record's line, if it counts."""
        is_kept = self._level is not None and record.levelno >= self._level and record.name.partition(".")[0] != _OWN
        if not is_kept or self._is_muted():
            return
        at = self._clock.now()
        line = LogLine(
            at=at, level=record.levelname, logger=record.name, text=_write_text(record), attempt=self._attempt
        )
        with self._lock:
            self.found = self.found.add([line.cut()])


@contextmanager
def collect_nothing() -> Iterator[None]:
    """Collect nothing that is logged in the ``with`` block: it is not the handler's."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


def _write_text(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except Exception as error:  # noqa: BLE001 - the arguments' own code, or a wrong format
        message = f"{record.msg} ({exception_text(error)})"
    if not record.exc_info or record.exc_info[1] is None:
        return message
    trace = format_raised(record.exc_info[1], record.exc_info[2])
    head = truncate(message, _MAX_MESSAGE_BYTES)
    room = MAX_LINE_BYTES - len(head.encode("utf-8", "replace")) - 1
    return f"{head}\n{truncate(trace.rstrip(), room, keeps_end=True)}"


class _Collector(logging.Handler):
    """Hands each record to the attempt in whose context it was made.

    The root logger has it only while an attempt runs. With any handler there, `logging.basicConfig` does
    nothing, and Python no longer prints the warnings of an app that has not configured logging: this
    handler prints those.
    """

    def __init__(self) -> None:
        super().__init__()
        self._attempts = 0
        self._count_lock = make_lock()

    def begin(self) -> None:
        """Collect for one more attempt."""
        with self._count_lock:
            self._attempts += 1
            logging.root.addHandler(self)  # once; a new configuration may have removed it

    def end(self) -> None:
        """Collect for one attempt less."""
        with self._count_lock:
            self._attempts -= 1
            if not self._attempts:
                logging.root.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Note the record, and print it if nobody else does."""
        found = _current.get()
        if found is not None:
            found.note(record)
        last = logging.lastResort
        if last is not None and record.levelno >= last.level and self._is_alone(record.name):
            last.handle(record)

    def _is_alone(self, name: str) -> bool:
        """Return whether no other handler gets the records of a logger."""
        logger: Any = logging.root.manager.loggerDict.get(name)  # no new one is made for the name of a record
        while isinstance(logger, logging.Logger):
            if logger.handlers and logger.handlers != [self]:
                return False
            logger = logger.parent
        return logging.root.handlers == [self]


_COLLECTOR: Final = _Collector()


@cache
def _note_prints() -> None:
    """Let `print` tell the running attempt of each line, from now on."""
    original = print

    @wraps(original)
    def print_and_note(*values: object, file: Any = None, **how: Any) -> None:  # noqa: ANN401 - as it is
        original(*values, file=file, **how)
        found = _current.get()
        if found is None or not found.keeps_print or not any(file is each for each in (None, sys.stdout, sys.stderr)):
            return
        text = (how.get("sep") or " ").join(map(str, values)).rstrip()
        if text:
            fields = {"name": PRINTED, "levelno": logging.INFO, "levelname": "INFO", "msg": text}
            found.note(logging.makeLogRecord(fields))

    builtins.print = print_and_note
