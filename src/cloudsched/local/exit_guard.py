"""Keep a handler that ends the process from ending the whole local stack.

In the cloud an executor that exits takes its instance with it, and the sweep finds the attempt. Here everything is in
one process: `sys.exit` raises an exception, which already ends only the attempt, and within the guard `os._exit` does
the same. What kills the process from outside Python (a signal, a crash of native code) cannot be caught.
"""

from __future__ import annotations

import faulthandler
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def guard_against_exits() -> Iterator[None]:
    """Raise `SystemExit` where a thread other than the main one calls `os._exit`; a forked child may end itself."""
    exit_process, pid, main_thread = os._exit, os.getpid(), threading.main_thread()

    def exit_attempt(status: int) -> None:
        if os.getpid() != pid or threading.current_thread() is main_thread:
            exit_process(status)
        raise SystemExit(f"os._exit({status})")

    with suppress(AttributeError, ValueError, OSError):  # there is no such stream, or it has no descriptor
        faulthandler.enable()  # so that a crash of native code says where it was
    os._exit = exit_attempt  # type: ignore[assignment]  # it never returns either
    try:
        yield
    finally:
        os._exit = exit_process
