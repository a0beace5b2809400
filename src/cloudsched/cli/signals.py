"""Termination signals, raised as an exception in the main thread, so that ``finally`` blocks clean up."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from cloudsched.domain.control_flow import ControlFlow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

SIGNALS = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stopped(ControlFlow):
    """A termination signal arrived."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(signal.Signals(signum).name)

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for a process ended by this signal."""
        return 128 + self.signum


def wait_for_signal(event: threading.Event | None = None) -> None:
    """Wait for a signal, or until an event is set.

    The main thread alone handles signals. One that the system gives to another thread does not wake it, so it looks up
    each second.
    """
    event = event or threading.Event()
    while not event.wait(1.0):
        pass


@contextmanager
def raise_on_signal() -> Iterator[None]:
    """Raise `Stopped` in the main thread on the first termination signal. Ignore later ones, so that cleanup ends."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        if _deferred_signals:  # do not ignore signals yet: a child process would inherit that
            _deferred_signals[-1].append(signum)
            return
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signum)

    with signal_handlers(stop, SIGNALS):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals until the block exits, so that anything it started can be cleaned up."""
    _deferred_signals.append([])
    try:
        yield
    finally:
        signums = _deferred_signals.pop()
    if signums:
        signal.raise_signal(signums[0])


_deferred_signals: list[list[int]] = []
"""The signals that arrived during each active `defer_signals`."""


@contextmanager
def signal_handlers(stop: Callable[[int, FrameType | None], None], signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Call `stop` on these signals in this process, but not in processes forked from it.

    A process that a task's handler forks (with `multiprocessing`, say) would inherit `stop`, which has no effect there:
    `terminate` would do nothing, and joining the child would wait forever.
    """
    _register_fork_hooks()
    previous = {signum: signal.signal(signum, stop) for signum in signals}
    _child_handlers.update(previous)
    try:
        yield
    finally:
        for signum in previous:
            _child_handlers.pop(signum)
        for signum, handler in previous.items():
            signal.signal(signum, handler)


_child_handlers: dict[signal.Signals, Any] = {}
"""The handlers that a forked child restores, by signal."""
_blocked = threading.local()


@cache
def _register_fork_hooks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_block_signals, after_in_parent=_restore_signal_mask, after_in_child=_reset_child_handlers
        )


def _block_signals() -> None:
    """Block signals during a fork until the child has restored its own handlers."""
    _blocked.mask = signal.pthread_sigmask(signal.SIG_BLOCK, list(_child_handlers))


def _restore_signal_mask() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _blocked.mask)


def _reset_child_handlers() -> None:
    for signum, handler in _child_handlers.items():
        signal.signal(signum, handler)
    _restore_signal_mask()
