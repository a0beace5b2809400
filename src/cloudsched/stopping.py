"""Signals that ask a command to stop, raised where it is, so that all it has begun is ended."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
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
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(signum)

    before = {signum: signal.signal(signum, stop) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
