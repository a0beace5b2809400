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
def stoppable() -> Iterator[None]:
    """Let a signal to stop raise `Stopped`, in the main thread, once: whatever is being ended then, is ended."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        if _put_off:  # and until then nothing is ignored: what is begun would go on ignoring it
            _put_off[-1].append(signum)
            return
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signum)

    with heard(stop, SIGNALS):
        yield


@contextmanager
def put_off() -> Iterator[None]:
    """Let `Stopped` be raised at the end of this, in the main thread: what is begun in it is known by then."""
    _put_off.append([])
    try:
        yield
    finally:
        signums = _put_off.pop()
    if signums:
        signal.raise_signal(signums[0])


_put_off: list[list[int]] = []
"""For each `put_off` that is under way the signals that came meanwhile."""


@contextmanager
def heard(stop: Callable[[int, FrameType | None], None], signals: Sequence[signal.Signals]) -> Iterator[None]:
    """Let these signals call `stop` in this process, and in none that is forked from it.

    What a handler forks (`multiprocessing`, say) would take it along, and nobody looks there at what it notes:
    `terminate` would do nothing, and who waits for the child's end would wait for ever.
    """
    _heed_forks()
    before = {signum: signal.signal(signum, stop) for signum in signals}
    _in_children.update(before)
    try:
        yield
    finally:
        for signum in before:
            _in_children.pop(signum)
        for signum, handler in before.items():
            signal.signal(signum, handler)


_in_children: dict[signal.Signals, Any] = {}
"""What a forked child is to do with each of the signals that are heard here."""
_held_back = threading.local()


@cache
def _heed_forks() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_forget)


def _hold_back() -> None:
    """Keep signals from a child until it no longer does with them what its parent does."""
    _held_back.mask = signal.pthread_sigmask(signal.SIG_BLOCK, list(_in_children))


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _held_back.mask)


def _forget() -> None:
    for signum, handler in _in_children.items():
        signal.signal(signum, handler)
    _let_through()
