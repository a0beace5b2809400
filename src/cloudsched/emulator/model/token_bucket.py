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

_WHOLE: Final = 1.0 - 1e-9
"""A token that only rounding keeps from being whole is whole."""
_SLOWEST: Final = 1 / 64
_OVERLOAD: Final = frozenset({429, 503})
_BRAKE_PAUSE: Final = timedelta(seconds=1)


@dataclass(slots=True)
class Bucket:
    """A token bucket with a brake. It starts full."""

    limits: RateLimits
    filled_at: datetime
    tokens: float = 0.0
    brake: float = 1.0
    """The part of the configured rate that is in force."""
    braked_at: datetime | None = None

    @classmethod
    def full(cls, limits: RateLimits, now: datetime) -> Bucket:
        """A bucket as a new queue has it."""
        return cls(limits=limits, filled_at=now, tokens=float(limits.max_burst_size))

    @property
    def rate(self) -> float:
        """Tokens a second that are in force now."""
        return self.limits.max_dispatches_per_second * self.brake

    def take(self, now: datetime) -> bool:
        """Take one token, if there is a whole one."""
        self._fill(now)
        if self.tokens < _WHOLE:
            return False
        self.tokens = max(0.0, self.tokens - 1.0)
        return True

    def ready_at(self) -> datetime:
        """The instant from which a token can be taken; past or present if one is there."""
        if self.tokens >= _WHOLE:
            return self.filled_at
        return self.filled_at + timedelta(microseconds=math.ceil((1.0 - self.tokens) / self.rate * 1_000_000))

    def set_back(self, now: datetime) -> None:
        """Go on from an earlier instant: a clock that was set back gives nothing and takes nothing."""
        self.filled_at = min(self.filled_at, now)

    def change(self, limits: RateLimits, now: datetime) -> None:
        """Go on with other limits; what is in the bucket stays, as far as it fits."""
        self._fill(now)
        self.limits = limits
        self.tokens = min(self.tokens, float(limits.max_burst_size))

    def heed(self, answer: Answer, now: datetime) -> None:
        """Brake on 429 and 503, ease on success."""
        if answer.status in _OVERLOAD:
            if self.braked_at is None or now - self.braked_at >= _BRAKE_PAUSE:
                self._fill(now)
                self.brake = max(_SLOWEST, self.brake / 2)
                self.braked_at = now
        elif answer.ok and self.brake < 1.0:
            self._fill(now)
            self.brake = min(1.0, self.brake * 1.1)

    def _fill(self, now: datetime) -> None:
        elapsed = (now - self.filled_at).total_seconds()
        self.filled_at = now
        if elapsed > 0:
            self.tokens = min(float(self.limits.max_burst_size), self.tokens + elapsed * self.rate)
