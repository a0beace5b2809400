"""The tries of one call: pauses that grow and are jittered, and a deadline of all together.

Google asks for this after contention and overload (cloud.google.com/firestore/docs/understand-error-codes,
cloud.google.com/storage/docs/retry-strategy): trying again at once would add to the load that caused the
error.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_INITIAL_PAUSE = 0.1
_MAX_PAUSE = 4.0
"""The first and the longest pause between two tries, in seconds. Each is twice the one before, or down to
half of that."""
_SHORTEST_TRY = 0.05
"""A try that has less of the whole deadline left is not made: it would time out, and hide why the others
failed."""


class Backoff:
    """The tries of one call, or of several calls that share a deadline.

    `deadline` is in seconds, for all tries and pauses together.
    """

    def __init__(self, deadline: float) -> None:
        self._give_up_at = time.monotonic() + deadline
        self._shortest_try = _SHORTEST_TRY * deadline

    @property
    def seconds_left(self) -> float:
        """Return how long the next try may take."""
        return max(0.0, self._give_up_at - time.monotonic())

    def retry(self, call: Callable[[float], T], is_retryable: Callable[[Exception], bool]) -> T:
        """Make a call, given the seconds that are left, and retry it after some errors until the deadline."""
        longest = _INITIAL_PAUSE
        while True:
            try:
                return call(self.seconds_left)
            except Exception as error:
                pause = longest * random.uniform(0.5, 1)  # noqa: S311 - spreads callers, keeps no secret
                if not is_retryable(error) or pause + self._shortest_try >= self.seconds_left:
                    raise
            time.sleep(pause)
            longest = min(2 * longest, _MAX_PAUSE)
