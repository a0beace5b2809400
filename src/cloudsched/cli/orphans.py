"""End a command whose caller has died: nobody reads what it prints, and nobody would ever stop it."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECK_SECONDS = 1.0
"""How often the caller is looked for."""
CLEANUP_SECONDS = 10.0
"""How long the command may take to clean up before it is ended at once."""


@contextmanager
def end_with_caller() -> Iterator[None]:
    """Send this process SIGTERM, and end it if that does not, when its caller dies during the block.

    The caller is the parent process, unless SIGHUP is ignored (as under ``nohup``), and whoever reads its standard
    output or standard error, if that is a pipe.
    """
    if os.name != "posix":
        yield
        return
    parent = None if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else os.getppid()
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(parent, _open_pipes(), ended), name="caller", daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(parent: int | None, pipes: list[int], ended: threading.Event) -> None:
    while not ended.wait(CHECK_SECONDS):
        if parent not in {None, os.getppid()} or _is_any_unread(pipes):
            os.kill(os.getpid(), signal.SIGTERM)
            if not ended.wait(CLEANUP_SECONDS):
                os._exit(128 + signal.SIGTERM)
            return


def _open_pipes() -> list[int]:
    """Return which of standard output and standard error are pipes."""
    found = list[int]()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or replaced by something without a descriptor
            number = stream.fileno()
            if stat.S_ISFIFO(os.fstat(number).st_mode):
                found.append(number)
    return found


def _is_any_unread(pipes: list[int]) -> bool:
    """Whether the reader of one of these pipes is gone."""
    poll = select.poll()
    for each in pipes:
        poll.register(each, 0)  # an error is reported in any case
    return any(event & select.POLLERR for _, event in poll.poll(0))
