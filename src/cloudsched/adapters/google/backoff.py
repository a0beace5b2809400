"""The tries of one call, by `tenacity`: pauses that grow and are jittered, and a deadline of all together.

Google asks for this after contention and overload (cloud.google.com/firestore/docs/understand-error-codes,
cloud.google.com/storage/docs/retry-strategy): trying again at once would add to the load that caused the error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")

_INITIAL_PAUSE = 0.1
_MAX_PAUSE = 4.0
"""The first and the longest pause between two tries, in seconds. Each is twice the one before."""
_SHORTEST_TRY = 0.05
"""A try that has less of the whole deadline left is not made: it would time out, and hide why the others failed."""


class Backoff:
    """The tries of one call, or of several calls that share a deadline.

    Args:
        deadline: The most seconds that all tries and pauses may take together.
    """

    def __init__(self, deadline: float) -> None:
        self._give_up_at = time.monotonic() + deadline
        self._shortest_try = _SHORTEST_TRY * deadline

    @property
    def seconds_left(self) -> float:
        """Return how long the next try may take."""
        return max(0.0, self._give_up_at - time.monotonic())

    def retry(self, call: Callable[[float], T], is_retryable: Callable[[BaseException], bool]) -> T:
        """Make a call, given the seconds that are left, and retry it after some errors until the deadline.

        Raises:
            BaseException: The error of the last try.
        """
        try:
            return call(self.seconds_left)
        except Exception as error:
            if not is_retryable(error):
                raise
            return self._retry_after(error, call, is_retryable)

    def _retry_after(
        self, error: Exception, call: Callable[[float], T], is_retryable: Callable[[BaseException], bool]
    ) -> T:
        """Continue after a first try that failed with this error."""
        # Few processes ever retry, and importing tenacity would be a tenth of a cold start.
        from tenacity import Retrying, retry_if_exception, wait_exponential, wait_random  # noqa: PLC0415

        first: Exception | None = error

        def repeat() -> T:
            nonlocal first
            if first is not None:
                failed, first = first, None
                raise failed
            return call(self.seconds_left)

        half = wait_exponential(multiplier=_INITIAL_PAUSE / 2, max=_MAX_PAUSE / 2)
        tries = Retrying(
            stop=self._is_too_late,
            wait=lambda state: half(state) * (1 + wait_random(0, 1)(state)),
            retry=retry_if_exception(is_retryable),
            sleep=time.sleep,
            reraise=True,
        )
        return tries(repeat)

    def _is_too_late(self, state: RetryCallState) -> bool:
        """Return whether the next try would have no time before the deadline."""
        return state.upcoming_sleep + self._shortest_try >= self.seconds_left
