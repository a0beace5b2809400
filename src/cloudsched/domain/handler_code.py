"""Whose code runs: a handler's own, or other code. Apps and clients ask, before they change anything."""

from __future__ import annotations

import os
import signal
import sys
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task


class HandlerCode(Protocol):
    """The code of one attempt of a handler, with its steps and its dependencies."""

    task: Task
    execution_id: str

    def note_change(self, call: str) -> None:
        """Note that it makes a change with `call`.

        Raises WorkflowError if a replay would make that change again.
        """

    def note_outcome(self, outcome: object, place: str) -> None:
        """Note that it has made an outcome, which it is to return, at a line of a file."""

    def note_signal(self) -> None:
        """Note that it has sent its own process a signal to end."""


running_handler: Final = ContextVar[HandlerCode | None]("running_handler", default=None)
"""The handler whose code runs. A thread that the handler has started by itself does not know it."""


def note_change(call: str) -> None:
    """Note that the running code makes a change with `call`, such as ``app.create``. Raises WorkflowError."""
    code = running_handler.get()
    if code is not None:
        code.note_change(call)


_ENDING: Final = {getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")}
"""The signals on which a process ends in order."""
_SENDING: Final = frozenset({"os.kill", "os.killpg", "signal.pthread_kill"})


@cache
def watch_signals() -> None:
    """Note from now on which handler sends this process a signal to end.

    Nothing else says who has sent one.
    """
    sys.addaudithook(_note_signal)


def _note_signal(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _SENDING or arguments[1] not in _ENDING:
        return
    code = running_handler.get()
    is_own = event == "signal.pthread_kill"
    if code is not None and (is_own or arguments[0] in {0, os.getpid(), os.getpgrp()}):
        code.note_signal()
