"""A clock that can be moved: real time plus an offset, or standing still.

`MovableClock` only tells the time. Moving it through the emulator (`advance`) delivers what is due on the way; setting
it here is a jump, after which all that came due by it is due now.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

Mode = Literal["running", "frozen"]


class MovableClock:
    """The time of the emulator, and of whatever else is given the same clock. Safe to use from any thread.

    Args:
        at: The instant to begin at; the real time if none is given.
        frozen: Whether it begins standing still.

    Raises:
        ValueError: if an instant is naive, here and in every method that takes one.
    """

    def __init__(self, at: datetime | None = None, *, frozen: bool = False) -> None:
        self._lock = threading.Lock()
        self._watchers: list[Callable[[], None]] = []
        real = _real_now()
        self._offset = (_to_utc(at) - real) if at is not None else timedelta(0)
        self._frozen_at: datetime | None = real + self._offset if frozen else None

    def __repr__(self) -> str:
        return f"<MovableClock {self.mode} at {self.now().isoformat()}>"

    @property
    def mode(self) -> Mode:
        """Whether it runs or stands still."""
        return "running" if self._frozen_at is None else "frozen"

    def now(self) -> datetime:
        """The present instant, in UTC."""
        stands_at = self._frozen_at
        return stands_at if stands_at is not None else _real_now() + self._offset

    def freeze(self, at: datetime | None = None) -> None:
        """Stand still, at that instant or at the present one."""
        with self._lock:
            self._frozen_at = _to_utc(at) if at is not None else self.now()
        self._notify()

    def resume(self) -> None:
        """Run on from the present instant, which may be any distance from the real time."""
        with self._lock:
            if self._frozen_at is not None:
                self._offset = self._frozen_at - _real_now()
                self._frozen_at = None
        self._notify()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher`, in the thread of whoever moves the clock, after each change of it."""
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
        raise ValueError(f"{at!r} has no time zone; an instant needs one, such as UTC.")
    return at.astimezone(UTC)
