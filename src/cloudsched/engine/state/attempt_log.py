"""Collect the log of a handler, to keep it with its run, and encrypt it.

The log has the lines that Python's `logging` lets through in the handler's context: in its own thread, in a coroutine
of its own, in a step, and in a thread that got its context (`asyncio.to_thread` passes it on). Text that it prints
there counts as lines of INFO. Lines that a replay repeats are not collected again, nor are this package's own.

A task's owner can read its documents in Firestore, and a log may hold what is not for users. The API shows it to those
that may see it. Lines are compressed and encrypted by AES-256 in GCM (NIST SP 800-38D), with a key that is derived from
the settings' secret, and bound to their execution. While a secret is being rotated, logs of the previous one can be
read.
"""

from __future__ import annotations

import base64
import builtins
import hashlib
import hmac
import logging
import os
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from cloudsched.domain.documents.json_limits import exception_text, truncate
from cloudsched.domain.documents.log_lines import MAX_LINE_BYTES, LogLine, RunLog
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.tracing import attempt_fields

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock

log = own_logger(__name__)

_NONCE_BYTES = 12
_VERSION = "1."


@dataclass(frozen=True, slots=True)
class LogSeal:
    """The secret that logs are encrypted with, and the previous one. Neither appears in the repr."""

    current: str = field(repr=False)
    previous: str | None = field(default=None, repr=False)

    def seal(self, found: RunLog, about: str) -> str:
        """Return a log as text that only this secret opens, and only for its execution, which is `about`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - only where something is logged

        nonce, content = os.urandom(_NONCE_BYTES), zlib.compress(found.model_dump_json(by_alias=True).encode())
        sealed = nonce + AESGCM(_derive_key(self.current)).encrypt(nonce, content, about.encode())
        return _VERSION + base64.b64encode(sealed).decode()

    def open(self, sealed: str | None, about: str) -> RunLog | None:
        """Return the log, an empty one if there is none, or None if it cannot be read with these secrets."""
        if sealed is None:
            return RunLog()
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only where something is logged
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - likewise

        data = base64.b64decode(sealed.removeprefix(_VERSION))
        for secret in filter(None, (self.current, self.previous)):
            try:
                cipher = AESGCM(_derive_key(secret))
                content = cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], about.encode())
            except InvalidTag:
                continue
            return RunLog.model_validate_json(zlib.decompress(content))
        log.warning("a log cannot be read: it was encrypted with another secret", extra={"action": "log_unreadable"})
        return None


def _derive_key(secret: str) -> bytes:
    return hmac.new(secret.encode(), b"cloudsched logs v1", hashlib.sha256).digest()


_OWN = "cloudsched"
PRINTED: Final = "print"
"""The logger's name of printed lines."""
_MAX_MESSAGE_BYTES = 300
"""The bytes of a message that are kept beside its traceback."""
_CLAIM_CHARACTERS = 16
_current: ContextVar[AttemptLog | None] = ContextVar("cloudsched_attempt_log", default=None)
_NOTHING: Final = RunLog.build()
_threads: Final[dict[tuple[str, str, int], str]] = {}
"""The names of the threads that run the attempts of this process."""
_install_lock = threading.Lock()
_has_installed = False


class AttemptLog:
    """Assigns the lines that are logged in the ``with`` block to an attempt, and collects them. Thread-safe.

    Without a level nothing is collected, not even for an outer block. `is_muted` returns whether the lines logged now
    were logged before, and are only repeated.
    """

    __slots__ = ("_clock", "_fields", "_fields_token", "_is_muted", "_key", "_level", "_lock", "_token", "found")

    def __init__(
        self, task: Task, run: Run, clock: Clock, level: int | None, is_muted: Callable[[], bool] = lambda: False
    ) -> None:
        self._key = task.id, run.execution_id, run.attempt
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
        self._lock = threading.Lock()
        self.found = _NOTHING
        """The latest lines so far, and how many earlier ones there were."""

    def __enter__(self) -> None:
        _threads[self._key] = threading.current_thread().name
        if self._level is not None and not _has_installed:
            _install()
        self._fields_token = attempt_fields.set(self._fields)
        self._token = _current.set(None if self._level is None else self)

    def __exit__(self, *_error: object) -> None:
        _threads.pop(self._key, None)
        _current.reset(self._token)
        attempt_fields.reset(self._fields_token)

    def note(self, record: logging.LogRecord) -> None:
        """Keep a record's line, if it counts."""
        is_kept = self._level is not None and record.levelno >= self._level and record.name.partition(".")[0] != _OWN
        if not is_kept or self._is_muted():
            return
        at = self._clock.now()
        line = LogLine(
            at=at, level=record.levelname, logger=record.name, text=_write_text(record), attempt=self._key[-1]
        )
        with self._lock:
            self.found = self.found.add([line.cut()])


def find_thread(task_id: str, execution_id: str, attempt: int) -> str | None:
    """Return the name of the thread in which this process runs an attempt, or None if it does not."""
    return _threads.get((task_id, execution_id, attempt))


@contextmanager
def collect_nothing() -> Iterator[None]:
    """Collect nothing that is logged in the ``with`` block: it is not the handler's."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class LogKeeper:
    """Keeps logs with runs, as the settings say."""

    level: int | None
    """The least level that is kept, or None to keep nothing."""
    make_seal: Callable[[], LogSeal]
    """Returns the seal that encrypts them. Called when there is something to keep, or to read."""

    def accept(self, run: Run, reported: RunLog | None, now: datetime) -> RunLog | None:
        """Return a worker's reported log as lines of this attempt, within the bounds, or None if nothing is kept.

        Lines from before the claim, or from the future, get the nearest instant of the claim's time.
        """
        if self.level is None or reported is None or run.lease is None:
            return None
        levels, since = logging.getLevelNamesMapping(), run.lease.started_at
        lines = [
            line.model_copy(update={"at": max(since, min(line.at, now)), "attempt": run.attempt}).cut()
            for line in reported.lines
            if levels.get(line.level, self.level) >= self.level
        ]
        return RunLog(omitted_lines=reported.omitted_lines).add(lines)

    def keep(self, task_id: str, run: Run, token_hash: str, found: RunLog) -> Run:
        """Return a run with all that the holder of a lease has logged, after what was logged before its claim."""
        about, seal = f"{task_id}/{run.execution_id}", self.make_seal()
        kept = (seal.open(run.log, about) or RunLog()).with_lines_of(token_hash[:_CLAIM_CHARACTERS], found)
        return run.model_copy(update={"log": seal.seal(kept, about)})

    def read(self, task_id: str, execution_id: str, sealed: str | None) -> RunLog | None:
        """Return the log of an execution, or None if it cannot be read any more."""
        return RunLog() if sealed is None else self.make_seal().open(sealed, f"{task_id}/{execution_id}")


def _write_text(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except Exception as error:  # noqa: BLE001 - the arguments' own code, or a wrong format
        message = f"{record.msg} ({exception_text(error)})"
    if not record.exc_info or record.exc_info[1] is None:
        return message
    trace = "".join(traceback.format_exception(record.exc_info[1]))
    head = truncate(message, _MAX_MESSAGE_BYTES)
    room = MAX_LINE_BYTES - len(head.encode("utf-8", "replace")) - 1
    return f"{head}\n{truncate(trace.rstrip(), room, keeps_end=True)}"


def _install() -> None:
    """Let `logging` and `print` tell us of each line: `logging` after its loggers' and its handlers' filters.

    A handler of the root logger would not do: with one, `logging.basicConfig` configures nothing, warnings are no
    longer printed where nobody has configured logging, and loggers that do not propagate are missed.
    """
    global _has_installed  # noqa: PLW0603 - logging is one for the process
    with _install_lock:
        if _has_installed:
            return
        _has_installed = True
        original = logging.Logger.callHandlers

        def call_handlers(logger: logging.Logger, record: logging.LogRecord, *more: Any) -> Any:  # noqa: ANN401 - as it is
            answer = original(logger, record, *more)
            found = _current.get()
            if found is not None:
                found.note(record)
            return answer

        setattr(logging.Logger, "callHandlers", call_handlers)  # noqa: B010 - a method is assigned
        original_print = print

        @wraps(original_print)
        def print_and_note(*values: object, file: Any = None, **how: Any) -> None:  # noqa: ANN401 - as it is
            original_print(*values, file=file, **how)
            found = _current.get()
            if found is not None and any(file is each for each in (None, sys.stdout, sys.stderr)):
                text = (how.get("sep") or " ").join(map(str, values)).rstrip()
                if text:
                    fields = {"name": PRINTED, "levelno": logging.INFO, "levelname": "INFO", "msg": text}
                    found.note(logging.makeLogRecord(fields))

        builtins.print = print_and_note
