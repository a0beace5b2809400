"""The pauses between the tries of one call: exponential, jittered, and never past the call's own deadline.

Google asks for this after contention and overload (cloud.google.com/firestore/docs/understand-error-codes,
cloud.google.com/storage/docs/retry-strategy): trying again at once would add to the load that caused the error.
"""

from __future__ import annotations

import random
import time

_INITIAL_PAUSE = 0.1
_MAX_PAUSE = 4.0
"""The first and the longest pause between two tries, in seconds; each is twice the one before."""


class Backoff:
    """The tries of one call.

    Args:
        deadline: How many seconds all tries and pauses may take together.
    """

    def __init__(self, deadline: float) -> None:
        self._give_up_at = time.monotonic() + deadline
        self._pause = _INITIAL_PAUSE

    @property
    def seconds_left(self) -> float:
        """How long the next try may take."""
        return max(0.0, self._give_up_at - time.monotonic())

    def wait(self) -> bool:
        """Pause before the next try; return False at once if the deadline would be over before that."""
        pause = self._pause * random.uniform(0.5, 1)  # noqa: S311 - spreads callers out, protects no secret
        if pause >= self.seconds_left:
            return False
        time.sleep(pause)
        self._pause = min(2 * self._pause, _MAX_PAUSE)
        return True
