"""Runs on probation take turns: those that were lost with a process, and those of a handler that hangs.

Nobody knows which of the handlers that ran in a process ended it, or whether any did. If all of them ran
together again, a handler that ends its process would take the others with it each time. So they take
turns: first one, and one more beside each other for each that has ended. A run that was lost a second
time is alone in its turn. So the third loss in a row is that of a handler that ends its process.

A handler of which a call hangs may hang again, and take every thread. So its next runs are alone in their
turns, too, apart from those of all others, until one of its calls has ended in time.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

FIRST_TURN: Final = 20.0
"""The seconds after which runs that were lost once, as by a power failure, no longer run one by one."""
MIN_WAIT: Final = 0.05
"""The least number of seconds after which a run asks again whether it is its turn."""


class _Turn(NamedTuple):
    began: float
    losses: int
    duration: float
    """The seconds that its handler may take."""
    hanging: str
    """The handler that hangs, if that is why."""

    def end_for(self, losses: int) -> float:
        """Return until when a run waits for it that was lost so often.

        After a second loss in a row, it runs alone, and so does one of a handler that hangs.
        """
        is_first = self.losses == losses == 1
        return self.began + (min(FIRST_TURN, self.duration) if is_first else self.duration)


class Probation:
    """The turns of the runs of one process that are on probation. Thread-safe."""

    def __init__(self) -> None:
        self._turns: dict[Hashable, _Turn] = {}
        self._ended = 0
        """The number of turns of lost runs that have ended, and this process with none of them."""
        self._lock = threading.Lock()

    def await_turn(self, run: Hashable, losses: int, duration: float, now: float, hanging: str = "") -> float:
        """Return after how many seconds a run asks again. Zero: its turn begins, and lasts until `end`.

        A run that was lost waits for others that were, and one of a handler that is `hanging` for that handler's.
        None is waited for longer than its handler may take, in seconds: one that hangs is given up then.
        """
        with self._lock:
            others = [turn for other, turn in self._turns.items() if other != run and turn.hanging == hanging]
            until = max((turn.end_for(losses) for turn in others), default=now)
            is_room = len(others) <= self._ended and max(losses, *(turn.losses for turn in others), 1) == 1
            if until > now and not is_room:
                newest = max(turn.began for turn in others)
                return min(max(now - newest, MIN_WAIT), until - now)
            self._turns.setdefault(run, _Turn(now, losses, duration, hanging))
            return 0.0

    def end(self, run: Hashable) -> None:
        """End the turn of a run, if it has one."""
        with self._lock:
            turn = self._turns.pop(run, None)
            self._ended += turn is not None and not turn.hanging
