"""Tasks, their targets and their results: plain values, no I/O.

Instants are aware datetimes, durations are timedeltas. Limits and defaults are those of the v2 reference
and of https://cloud.google.com/tasks/docs/quotas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HORIZON: Final = timedelta(days=30)
"""The maximum distance of a task's schedule time from now."""
RETENTION: Final = timedelta(days=31)
"""The default of the longest time that the service keeps a task."""
MAX_TASK_BYTES: Final = 1024 * 1024
MAX_HEADER_BYTES: Final = 80 * 1024
MAX_URL_CHARACTERS: Final = 2083
DEFAULT_DEADLINE: Final = timedelta(minutes=10)
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
METHODS: Final = ("POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS")


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """The rules by which a failed attempt is retried."""

    max_attempts: int = 100
    """The number of attempts, including the first, -1 for no limit."""
    max_retry_duration: timedelta = timedelta(0)
    """The time from the first attempt, zero for no limit."""
    min_backoff: timedelta = timedelta(milliseconds=100)
    max_backoff: timedelta = timedelta(hours=1)
    max_doublings: int = 16


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rate and concurrency limits of a queue."""

    max_dispatches_per_second: float = 500.0
    max_concurrent_dispatches: int = 1000
    burst: int | None = None
    """An explicit bucket size, which clients cannot give. By default the service chooses one."""

    @property
    def max_burst_size(self) -> int:
        """The bucket's size: a fifth of the rate, at least 10. It is the documented 100 at the default rate."""
        if self.burst is not None:
            return self.burst
        return max(10, math.ceil(self.max_dispatches_per_second / 5))


@dataclass(frozen=True, slots=True)
class OidcToken:
    """Requests an OpenID Connect identity token in the Authorization header."""

    service_account_email: str
    audience: str = ""


@dataclass(frozen=True, slots=True)
class OAuthToken:
    """Requests an OAuth access token in the Authorization header."""

    service_account_email: str
    scope: str = ""


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A request to any URL."""

    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    auth: OidcToken | OAuthToken | None = None


@dataclass(frozen=True, slots=True)
class HttpResult:
    """The result of one attempt.

    Exactly one of `status` and `failure` is set: the status of an HTTP response, or the reason why there
    was none.
    """

    status: int | None = None
    failure: str = ""
    timed_out: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    retry_after: timedelta | None = None

    @property
    def ok(self) -> bool:
        """Return whether it succeeded: only 2xx is success, a redirect is not."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004 - the range is HTTP's

    @property
    def reported_status(self) -> int | None:
        """The previous response's status as the next attempt reports it: a timeout counts as 504."""
        return 504 if self.timed_out else self.status


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """The record of one of a task's attempts."""

    schedule_at: datetime
    dispatch_at: datetime
    response_at: datetime | None = None
    result: HttpResult | None = None


@dataclass(slots=True, eq=False)
class CloudTask:
    """One task in a queue, with its counters."""

    id: str
    target: HttpTarget
    schedule_at: datetime
    created_at: datetime
    dispatch_deadline: timedelta = DEFAULT_DEADLINE
    retry_config: RetryConfig | None = None
    number: int = 0
    """Numbers tasks in order of creation within a queue. A page token is such a number."""
    delayed_until: datetime | None = None
    """The instant until which a fault delays the next attempt. None if none does."""
    ticket: int = 0
    """Identifies the task's valid heap entry. Zero while the task does not wait."""
    running_attempts: int = 0
    """Attempts in progress."""
    dispatch_count: int = 0
    response_count: int = 0
    execution_count: int = 0
    """Responses received, without 5xx: the TaskExecutionCount header."""
    first_dispatch_at: datetime | None = None
    last_attempt: AttemptStatus | None = None
    previous_status: int | None = None
