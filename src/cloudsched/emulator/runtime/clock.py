"""A clock that can be moved: real time plus an offset, or frozen.

`MovableClock` only tells the time. Moving it through the emulator (`advance`) delivers what falls due on
the way. Setting it here is a jump, after which everything that fell due in between is due now.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Mode = Literal["running", "frozen"]


class MovableClock:
    """The clock of the emulator, which other components may share. Safe to use from any thread.

    Args:
        at: The instant to start at, by default the real time.
        frozen: True to start with the clock frozen.

    Raises:
        ValueError: if an instant has no time zone. The same holds for every method that takes one.
    """

    def __init__(self, at: datetime | None = None, *, frozen: bool = False) -> None:
        self._lock = threading.Lock()
        self._watchers: list[Callable[[], None]] = []
        real = _real_now()
        self._offset = (_to_utc(at) - real) if at is not None else timedelta(0)
        self._frozen_at: datetime | None = real + self._offset if frozen else None

    @property
    def mode(self) -> Mode:
        """Return whether the clock runs or is frozen."""
        return "running" if self._frozen_at is None else "frozen"

    def now(self) -> datetime:
        """Return the present instant, in UTC."""
        frozen_at = self._frozen_at
        return frozen_at if frozen_at is not None else _real_now() + self._offset

    def freeze(self, at: datetime | None = None) -> None:
        """Freeze the clock at that instant, by default the present one."""
        with self._lock:
            self._frozen_at = _to_utc(at) if at is not None else self.now()
        self._notify()

    def resume(self) -> None:
        """Let the clock run from its present instant, whatever its distance from the real time."""
        with self._lock:
            if self._frozen_at is not None:
                self._offset = self._frozen_at - _real_now()
                self._frozen_at = None
        self._notify()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` after each change of the clock, in the thread that changes it."""
        with self._lock:
            self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        """Stop calling `watcher`."""
        with self._lock:
            self._watchers.remove(watcher)

    def _notify(self) -> None:
        for watcher in tuple(self._watchers):
            watcher()


def _real_now() -> datetime:
    return datetime.now(UTC)


def _to_utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at!r} has no time zone; an instant needs one, for example UTC.")
    return at.astimezone(UTC)
