"""Whether a failed task is retried, and when.

Source: the `RetryConfig` message of the v2 reference. Its example, 10 s to 300 s with 3 doublings, gives
10, 20, 40, 80, 160, 240, 300, 300 ...
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cloudsched.emulator.model.task import HttpResult, RetryConfig

_MAX_DOUBLINGS: Final = 60
"""2**60 of the shortest backoff (a microsecond) is 36,000 years: past any maximum."""


def backoff(config: RetryConfig, retry: int) -> timedelta:
    """Return how long to wait before retry number `retry`, counted from 1.

    Doubles `max_doublings` times, then grows linearly by the last doubled step, and never exceeds `max_backoff`.
    """
    if config.min_backoff <= timedelta(0):
        return timedelta(0)
    doublings = config.max_doublings
    doubled = 1 << min(retry - 1, doublings, _MAX_DOUBLINGS)
    factor = doubled * max(1, retry - doublings)
    if factor >= config.max_backoff / config.min_backoff:
        return config.max_backoff
    return factor * config.min_backoff


def is_exhausted(config: RetryConfig, attempts: int, first_dispatch_at: datetime, now: datetime) -> bool:
    """Whether no further attempt follows.

    Both limits must be reached: the number of attempts and, if one is set, the duration since the first attempt. No
    limit on either means that the task is retried for as long as the service keeps it.
    """
    unlimited_attempts = config.max_attempts < 0
    unlimited_duration = config.max_retry_duration <= timedelta(0)
    if unlimited_attempts and unlimited_duration:
        return False
    attempts_spent = unlimited_attempts or attempts >= config.max_attempts
    duration_spent = unlimited_duration or now - first_dispatch_at >= config.max_retry_duration
    return attempts_spent and duration_spent


def next_attempt_at(
    config: RetryConfig, attempts: int, first_dispatch_at: datetime, result: HttpResult, now: datetime
) -> datetime | None:
    """Return when the attempt after `attempts` failed ones is due, or None if there is none.

    The target's `Retry-After` can only make the wait longer.
    """
    if is_exhausted(config, attempts, first_dispatch_at, now):
        return None
    wait = backoff(config, attempts)
    if result.retry_after is not None:
        wait = max(wait, result.retry_after)
    return now + wait
