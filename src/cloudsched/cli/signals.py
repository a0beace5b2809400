"""Signals that ask a command to stop, heard where it is, so that all it has begun is ended."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

SIGNALS = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(BaseException):
    """Somebody wants this process to stop.

    Attributes:
        signum: The signal that said so.
    """

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signal.Signals(signum).name)

    @property
    def exit_code(self) -> int:
        """What a shell calls the end of a process by this signal."""
        return 128 + self.signum


@contextmanager
def raise_on_signal() -> Iterator[None]:
    """Let a signal to stop raise `Stopped`, in the main thread, once: whatever is being ended then, is ended."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        if _deferred_signals:  # and until then nothing is ignored: what is begun would go on ignoring it
            _deferred_signals[-1].append(signum)
            return
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signum)

    with signal_handlers(stop, SIGNALS):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Let `Stopped` be raised at the end of this, in the main thread: what is begun in it is known by then."""
    _deferred_signals.append([])
    try:
        yield
    finally:
        signums = _deferred_signals.pop()
    if signums:
        signal.raise_signal(signums[0])


_deferred_signals: list[list[int]] = []
"""For each `defer_signals` that is under way the signals that came meanwhile."""


@contextmanager
def signal_handlers(stop: Callable[[int, FrameType | None], None], signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Let these signals call `stop` in this process, and in none that is forked from it.

    What a handler forks (`multiprocessing`, say) would take it along, and nobody looks there at what it notes:
    `terminate` would do nothing, and who waits for the child's end would wait for ever.
    """
    _register_fork_hooks()
    before = {signum: signal.signal(signum, stop) for signum in signals}
    _child_handlers.update(before)
    try:
        yield
    finally:
        for signum in before:
            _child_handlers.pop(signum)
        for signum, handler in before.items():
            signal.signal(signum, handler)


_child_handlers: dict[signal.Signals, Any] = {}
"""What a forked child is to do with each of the signals that are heard here."""
_blocked = threading.local()


@cache
def _register_fork_hooks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_block_signals, after_in_parent=_restore_signal_mask, after_in_child=_reset_child_handlers
        )


def _block_signals() -> None:
    """Keep signals from a child until it no longer does with them what its parent does."""
    _blocked.mask = signal.pthread_sigmask(signal.SIG_BLOCK, list(_child_handlers))


def _restore_signal_mask() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _blocked.mask)


def _reset_child_handlers() -> None:
    for signum, handler in _child_handlers.items():
        signal.signal(signum, handler)
    _restore_signal_mask()
