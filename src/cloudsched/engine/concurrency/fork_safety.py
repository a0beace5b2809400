"""What a forked process finds free, whichever thread of its parent held it at that moment.

Only the thread that forks lives on in the child. A lock that another one held would never be released there. These
are our own locks, and the one under which pydantic builds a model at its first use, as ours wait for it: its build
begins anew in the child. A fork waits neither for what a program imports nor for what its other libraries do.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final
from weakref import WeakSet

from pydantic import main

_models: Final[Any] = getattr(main, "_rebuild_lock", None) or threading.RLock()
_locks: Final[WeakSet[Any]] = WeakSet()


def make_lock() -> threading.Lock:
    """Return a lock that is free in a forked process."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def make_reentrant_lock() -> threading.RLock:
    """Return a lock that its holder may acquire again, and that is free in a forked process."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in tuple(_locks):
        lock._at_fork_reinit()  # noqa: SLF001 - as the standard library does with its own
    if _models.acquire(blocking=False):  # no other thread had it
        _models.release()
    else:
        _models._at_fork_reinit()  # noqa: SLF001 - the same


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_locks)
