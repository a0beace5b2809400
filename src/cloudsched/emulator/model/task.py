"""What a task is and what may be said about its delivery: plain values, no I/O.

Instants are aware datetimes, durations are timedeltas. Limits and defaults are those of the v2 reference and of
https://cloud.google.com/tasks/docs/quotas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HORIZON: Final = timedelta(days=30)
"""The furthest ahead that a task may be scheduled."""
RETENTION: Final = timedelta(days=31)
"""How long a task is kept at most, done or not."""
MAX_TASK_BYTES: Final = 1024 * 1024
MAX_HEADER_BYTES: Final = 80 * 1024
MAX_URL_CHARACTERS: Final = 2083
DEFAULT_DEADLINE: Final = timedelta(minutes=10)
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
METHODS: Final = ("POST", "GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS")


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """When a failed attempt is followed by another."""

    max_attempts: int = 100
    """Attempts in all, the first included; -1 for no limit."""
    max_retry_duration: timedelta = timedelta(0)
    """Counted from the first attempt; zero for no limit."""
    min_backoff: timedelta = timedelta(milliseconds=100)
    max_backoff: timedelta = timedelta(hours=1)
    max_doublings: int = 16


@dataclass(frozen=True, slots=True)
class RateLimits:
    """How fast a queue dispatches."""

    max_dispatches_per_second: float = 500.0
    max_concurrent_dispatches: int = 1000
    burst: int | None = None
    """An explicit bucket size, as `queue.yaml` may state; unset, the service picks one."""

    @property
    def max_burst_size(self) -> int:
        """The bucket's size: a fifth of the rate, at least 10, which gives the documented 100 at the default rate."""
        return self.burst if self.burst is not None else max(10, math.ceil(self.max_dispatches_per_second / 5))


@dataclass(frozen=True, slots=True)
class OidcToken:
    """Asks for an OpenID Connect identity token in the Authorization header."""

    service_account_email: str
    audience: str = ""


@dataclass(frozen=True, slots=True)
class OAuthToken:
    """Asks for an OAuth access token in the Authorization header."""

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
class AppEngineRouting:
    """Which service, version and instance of an App Engine app is meant; empty is the default one."""

    service: str = ""
    version: str = ""
    instance: str = ""


@dataclass(frozen=True, slots=True)
class AppEngineTarget:
    """A request to the project's App Engine app."""

    relative_uri: str = "/"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    routing: AppEngineRouting = AppEngineRouting()


Target = HttpTarget | AppEngineTarget


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one attempt at the target.

    Exactly one of `status` and `failure` is set: either an HTTP answer came, or it did not and `failure` says why.
    """

    status: int | None = None
    failure: str = ""
    timed_out: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    retry_after: timedelta | None = None

    @property
    def ok(self) -> bool:
        """Only 2xx is success; a redirect is not."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004 - the range is HTTP's

    @property
    def reported_status(self) -> int | None:
        """The status that the next attempt reports as the previous response: a timeout is seen as 504."""
        return 504 if self.timed_out else self.status


@dataclass(frozen=True, slots=True)
class AttemptStatus:
    """What a task remembers of one of its attempts."""

    schedule_at: datetime
    dispatch_at: datetime
    response_at: datetime | None = None
    result: Answer | None = None


@dataclass(slots=True, eq=False)
class Task:
    """One task in a queue, with the counters that its deliveries move."""

    id: str
    target: Target
    schedule_at: datetime
    created_at: datetime
    dispatch_deadline: timedelta = DEFAULT_DEADLINE
    retry_config: RetryConfig | None = None
    is_named: bool = True
    number: int = 0
    """The order of creation in its queue; pages of a list continue after it."""
    delayed_until: datetime | None = None
    """Until when a fault holds the next attempt back, if one does."""
    ticket: int = 0
    """Which heap entry is the live one; zero while the task does not wait."""
    running_attempts: int = 0
    """Attempts that were sent and not yet answered."""
    dispatch_count: int = 0
    response_count: int = 0
    execution_count: int = 0
    """Answers that were received, 5xx not counted: the X-CloudTasks-TaskExecutionCount header."""
    first_dispatch_at: datetime | None = None
    last_attempt: AttemptStatus | None = None
    previous_status: int | None = None

    @property
    def expires_at(self) -> datetime:
        """When the service forgets the task, done or not."""
        return self.created_at + RETENTION
