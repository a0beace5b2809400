"""How fast a queue may dispatch: a token bucket, and the brake that a struggling target pulls.

The bucket is the one that `RateLimits.max_burst_size` describes in the v2 reference. How the service slows down on
429 and 503 is documented only in words ("will use a higher backoff rate"): here each such answer halves the rate, at
most once a second and down to a sixty-fourth, and each success gives a tenth back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cloudsched.emulator.model.task import Answer, RateLimits

_ONE_TOKEN: Final = 1.0 - 1e-9
"""A token that only rounding keeps from being whole is whole."""
_MIN_THROTTLE: Final = 1 / 64
_OVERLOAD_STATUSES: Final = frozenset({429, 503})
_THROTTLE_INTERVAL: Final = timedelta(seconds=1)


@dataclass(slots=True)
class TokenBucket:
    """A token bucket with a brake. It starts full."""

    limits: RateLimits
    filled_at: datetime
    tokens: float = 0.0
    throttle: float = 1.0
    """The part of the configured rate that is in force."""
    throttled_at: datetime | None = None

    @classmethod
    def full(cls, limits: RateLimits, now: datetime) -> TokenBucket:
        """A bucket as a new queue has it."""
        return cls(limits=limits, filled_at=now, tokens=float(limits.max_burst_size))

    @property
    def rate(self) -> float:
        """Tokens a second that are in force now."""
        return self.limits.max_dispatches_per_second * self.throttle

    def take(self, now: datetime) -> bool:
        """Take one token, if there is a whole one."""
        self._refill(now)
        if self.tokens < _ONE_TOKEN:
            return False
        self.tokens = max(0.0, self.tokens - 1.0)
        return True

    def ready_at(self) -> datetime:
        """The instant from which a token can be taken; past or present if one is there."""
        if self.tokens >= _ONE_TOKEN:
            return self.filled_at
        return self.filled_at + timedelta(microseconds=math.ceil((1.0 - self.tokens) / self.rate * 1_000_000))

    def rewind(self, now: datetime) -> None:
        """Go on from an earlier instant: a clock that was set back gives nothing and takes nothing."""
        self.filled_at = min(self.filled_at, now)

    def set_limits(self, limits: RateLimits, now: datetime) -> None:
        """Go on with other limits; what is in the bucket stays, as far as it fits."""
        self._refill(now)
        self.limits = limits
        self.tokens = min(self.tokens, float(limits.max_burst_size))

    def on_response(self, result: Answer, now: datetime) -> None:
        """Brake on 429 and 503, ease on success."""
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
