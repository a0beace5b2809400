"""What a forked process finds free, whichever thread of its parent held it at that moment.

Only the thread that forks lives on in the child. A lock that another one held would never be released there. Imports
and the building of pydantic's models have such locks too, and their work must not be cut off: a fork waits for them.
"""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any, Final
from weakref import WeakSet

from pydantic import main

_locks: Final[WeakSet[Any]] = WeakSet()
_ROUNDS: Final = 100
"""The most times that a fork waits for what is imported: the thread that forks may import something itself."""
_imports: Final[Any] = getattr(importlib, "_bootstrap")  # noqa: B009 - it is private
_models: Final[Any] = getattr(main, "_rebuild_lock", None) or threading.RLock()


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


def _wait() -> None:
    """Wait until nothing is imported and no model is built. Until the fork is over, no model is."""
    for _ in range(_ROUNDS):
        for name in tuple(_imports._module_locks):  # noqa: SLF001 - Python has no other way
            _imports._lock_unlock_module(name)  # noqa: SLF001 - the same
        _models.acquire()
        if not _imports._module_locks:  # noqa: SLF001 - the same
            return
        _models.release()
    _models.acquire()


def _free_locks() -> None:
    _models.release()
    for lock in tuple(_locks):
        lock._at_fork_reinit()  # noqa: SLF001 - as the standard library does with its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_parent=_models.release, after_in_child=_free_locks)
