"""The rate limit of a queue: a token bucket that slows down when the target is overloaded.

The bucket is the one that `RateLimits.max_burst_size` describes in the v2 reference. The slowdown of the
service on 429 and 503 is documented only in words ("will use a higher backoff rate"). Here each such
response halves the rate, at most once a second and down to a sixty-fourth, and each success restores a
tenth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cloudsched.emulator.model.task import HttpResult, RateLimits

_ONE_TOKEN: Final = 1.0 - 1e-9
"""Tolerates rounding errors in a full token."""
_MIN_THROTTLE: Final = 1 / 64
_OVERLOAD_STATUSES: Final = frozenset({429, 503})
_THROTTLE_INTERVAL: Final = timedelta(seconds=1)


@dataclass(slots=True)
class TokenBucket:
    """A token bucket with throttling. It starts full."""

    limits: RateLimits
    filled_at: datetime
    tokens: float = 0.0
    throttle: float = 1.0
    """The fraction of the configured rate that is in effect."""
    throttled_at: datetime | None = None

    @classmethod
    def full(cls, limits: RateLimits, now: datetime) -> TokenBucket:
        """Return the full bucket of a new queue."""
        return cls(limits=limits, filled_at=now, tokens=float(limits.max_burst_size))

    @property
    def rate(self) -> float:
        """The present rate in tokens per second."""
        return self.limits.max_dispatches_per_second * self.throttle

    def take(self, now: datetime) -> bool:
        """Take one token, and return whether there was one."""
        self._refill(now)
        if self.tokens < _ONE_TOKEN:
            return False
        self.tokens = max(0.0, self.tokens - 1.0)
        return True

    def ready_at(self) -> datetime:
        """Return the instant from which a token can be taken, past or present if there is one."""
        if self.tokens >= _ONE_TOKEN:
            return self.filled_at
        return self.filled_at + timedelta(microseconds=math.ceil((1.0 - self.tokens) / self.rate * 1_000_000))

    def rewind(self, now: datetime) -> None:
        """Continue from an earlier instant. Setting the clock back neither adds nor removes tokens."""
        self.filled_at = min(self.filled_at, now)

    def set_limits(self, limits: RateLimits, now: datetime) -> None:
        """Replace the limits and keep the tokens, up to the new size."""
        self._refill(now)
        self.limits = limits
        self.tokens = min(self.tokens, float(limits.max_burst_size))

    def on_response(self, result: HttpResult, now: datetime) -> None:
        """Throttle on 429 and 503, and recover on success."""
        if result.status in _OVERLOAD_STATUSES:
            if self.throttled_at is None or now - self.throttled_at >= _THROTTLE_INTERVAL:
                self._refill(now)
                self.throttle = max(_MIN_THROTTLE, self.throttle / 2)
                self.throttled_at = now
        elif result.ok and self.throttle < 1.0:
            self._refill(now)
            self.throttle = min(1.0, self.throttle * 1.1)

    def _refill(self, now: datetime) -> None:
        elapsed = (now - self.filled_at).total_seconds()
        self.filled_at = now
        if elapsed > 0:
            self.tokens = min(float(self.limits.max_burst_size), self.tokens + elapsed * self.rate)
