"""Log lines for people: those of the stack, and what handlers log, with the task that each belongs to.

Lines are coloured on a terminal, and plain elsewhere (or where ``NO_COLOR`` is set).
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import click

from cloudsched.domain.own_logger import own_logger
from cloudsched.local.untrusted_text import to_printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.engine.ports.clock import Clock

_OWN_LOGGER = "cloudsched"
_COLOURS = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


class LineFormatter(logging.Formatter):
    """Formats a record as a line, and its traceback on the lines below."""

    def __init__(self, prefix: Callable[[], str], *, is_coloured: bool) -> None:
        super().__init__()
        self._prefix = prefix
        self._is_coloured = is_coloured

    def format(self, record: logging.LogRecord) -> str:
        """Return the lines, without control characters, which could move the terminal's cursor."""
        fields = record.__dict__
        colour = _COLOURS.get(record.levelno)
        parts = [self._colour(self._prefix(), dim=True)]
        if task := fields.get("taskId"):
            parts.append(self._colour(to_printable(str(task)), fg="cyan"))
        message = to_printable(record.getMessage())
        if not _is_own(record):
            attempt = f" (attempt {fields['attempt']})" if "attempt" in fields else ""
            level = "" if record.levelno == logging.INFO else f"{record.levelname} "
            message = f"{fields.get('handler', record.name)}{attempt}: {level}{message}"
        parts.append(self._colour(message, fg=colour))
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        lines = [self._colour(f"  {to_printable(line)}", fg=colour, dim=True) for line in trace.splitlines()]
        return "\n".join([" ".join(part for part in parts if part), *lines])

    def _colour(self, text: str, *, fg: str | None = None, dim: bool | None = None) -> str:
        return click.style(text, fg=fg, dim=dim) if self._is_coloured and text and (fg or dim) else text


def configure_line_logging(prefix: Callable[[], str], *more_filters: Callable[[logging.LogRecord], bool]) -> None:
    """Print on standard error what the package logs from INFO on, what handlers log, and all warnings.

    A handler of the root logger that prints on the terminal, as `logging.basicConfig` adds one, is replaced: each line
    is printed once, and with its task. Our own lines have a handler of their own, at their own logger, which a later
    configuration of the root logger does not remove.
    """
    from cloudsched.engine.tracing import AttemptFields  # noqa: PLC0415 - not needed for --help

    root = logging.root
    own = own_logger(_OWN_LOGGER)
    for old in list(root.handlers):
        if type(old) is logging.StreamHandler and old.stream in {sys.stderr, sys.stdout}:
            root.removeHandler(old)
    formatter = LineFormatter(prefix, is_coloured=_has_colours())
    for logger, fits in ((root, _is_foreign), (own, _is_own)):
        handler = logging.StreamHandler()
        handler.setFormatter(formatter)
        handler.addFilter(AttemptFields())
        for each in (fits, _is_of_interest, *more_filters):
            handler.addFilter(each)
        logger.addHandler(handler)
    if root.level == logging.NOTSET or root.level > logging.INFO:
        root.setLevel(logging.INFO)
    own.setLevel(logging.INFO)


def configure_stack_logging(clock: Clock) -> None:
    """Print what `dev` or `serve` and its handlers log, with the time of its clock."""
    configure_line_logging(lambda: clock.now().isoformat(timespec="seconds").replace("+00:00", "Z"), _is_busy_sweep)


def _is_busy_sweep(record: logging.LogRecord) -> bool:
    """Return False for sweeps that had nothing to do: there is one a minute."""
    return getattr(record, "action", "") != "swept" or bool(getattr(record, "dispatched", 0))


def _has_colours() -> bool:
    try:
        from rich.console import Console  # noqa: PLC0415 - knows NO_COLOR, FORCE_COLOR and dumb terminals
    except ModuleNotFoundError:  # of the extra `dev`, which a worker does not need
        return False
    console = Console(stderr=True)
    return console.is_terminal and console.color_system is not None and not console.no_color


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OWN_LOGGER


def _is_foreign(record: logging.LogRecord) -> bool:
    return not _is_own(record)


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Keep our own lines, those of a running attempt, and warnings. Drop what libraries report in between.

    The client sends a worker's heartbeats within an attempt, so the lines of its HTTP library are never of interest.
    """
    if record.levelno >= logging.WARNING or _is_own(record):
        return True
    return "executionId" in record.__dict__ and record.name.partition(".")[0] not in {"httpx", "httpcore"}
