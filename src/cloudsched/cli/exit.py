"""End a process even if its handlers have left threads or processes behind.

Python waits for threads that are no daemons, for executors and for processes of `multiprocessing`, for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Final

LEFT_SECONDS: Final = 2.0
"""The seconds for which a process that stops waits for what its handlers have left behind."""


_is_own = threading.Event()


def own_process() -> None:
    """Note that the command owns this process and may end it, and that no other program calls its functions."""
    _is_own.set()


def exit_within(seconds: float, code: int, who: str) -> None:
    """End this process with an exit code, after `seconds` at most, and report what still runs then."""
    if not _is_own.is_set():
        return
    timer = threading.Timer(seconds, _end, (code, who))
    timer.daemon = True
    timer.start()


def _end(code: int, who: str) -> None:
    left = ", ".join(_list_left()) or "handlers that still run"
    exit_now(code, f"{who}: ends, and leaves behind: {left}")


def exit_now(code: int, reason: str = "") -> None:
    """End this process at once, after flushing its output."""
    try:
        if reason:
            os.write(sys.stderr.fileno(), f"{reason}\n".encode())
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _list_left() -> list[str]:
    """Return the threads and processes that keep this process alive, or stay after it. End those of multiprocessing."""
    executors = sys.modules.get("concurrent.futures.thread")
    main = threading.main_thread()
    awaited = set() if executors is None else set(executors._threads_queues)  # noqa: SLF001 - Python waits for these
    awaited |= {each for each in threading.enumerate() if not each.daemon} - {main}
    left = [f"thread {each.name!r}" for each in sorted(awaited, key=lambda each: each.name) if each.is_alive()]
    multiprocessing = sys.modules.get("multiprocessing")
    children = {} if multiprocessing is None else {each.pid: each for each in multiprocessing.active_children()}
    for pid, child in children.items():
        child.terminate()
        left.append(f"process {pid} ({child.name}), which is ended")
    return left + [f"process {pid}, which goes on" for pid in _list_children() if pid not in children]


def _list_children() -> list[int]:
    """Return the ids of this process's children, where the system lists them."""
    files = Path("/proc/self/task").glob("*/children")
    try:
        return sorted(int(pid) for file in files for pid in file.read_text().split())
    except OSError:
        return []
