"""A task's policies for failure, lateness and overlap.

Retry: the attempt after the n-th failure starts ``first_delay`` later for n = 1 (at once by default), then
``base``, ``base * factor``, ``base * factor²`` …, never more than ``cap``. Each wait is lengthened by
``jitter``. With the defaults that is: at once, 5 s, 25 s, 125 s. A ``base`` without ``first_delay`` is the first
wait, and the second one is ``base * factor``.

Catch-up, for occurrences that came due while nothing could run them (an outage, a purged queue): ``LATEST``
runs only the newest of them, ``ALL`` runs each in order (those older than ``window`` excepted), ``NONE`` runs
one only if it is no later than ``window``. Occurrences that are not run are recorded as SKIPPED, with the
reason.

Overlap, for occurrences that come due while a run of the same task is still open (running, or waiting for its
next attempt): ``SKIP`` records them as SKIPPED, ``BUFFER`` runs the newest one when the run has ended and
skips the others, ``ALLOW`` runs them concurrently.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from pydantic import Field, ValidationInfo, model_validator

from cloudsched.domain.documents.document import STORED_CONTEXT, Duration, InputModel, Integer, StoredEnum

if TYPE_CHECKING:
    from random import Random


class RetryPolicy(InputModel):
    """The number of times that a failing handler is called again, and the delays before these calls."""

    max_retries: Integer = Field(default=3, ge=0, le=20)
    """Calls after the first one. 0 means that a failure is final."""
    first_delay: Duration = Field(default=timedelta(0), ge=timedelta(0))
    """The wait before the first retry. If only `base` is given, it is this one."""
    base: Duration = Field(default=timedelta(seconds=5), ge=timedelta(0))
    """The wait before the second retry."""
    factor: float = Field(default=5.0, strict=True, ge=1, le=100)
    """The factor by which each further wait is longer."""
    cap: Duration = Field(default=timedelta(hours=1), ge=timedelta(0), le=timedelta(days=30))
    """No wait is longer than this."""
    jitter: float = Field(default=0.1, strict=True, ge=0, le=1)
    """Each wait is lengthened by a random part of itself, at most this one."""

    @model_validator(mode="after")
    def _begin_with_base(self, info: ValidationInfo) -> Self:
        given = self.model_fields_set
        if "base" in given and "first_delay" not in given and info.context != STORED_CONTEXT:
            vars(self).update(first_delay=self.base, base=self._backoff(1))
            given.add("first_delay")
        return self

    def delay(self, failures: int, random: Random) -> timedelta:
        """Return the wait before the next attempt after `failures` failed ones (1 or more)."""
        wait = self.first_delay if failures == 1 else self._backoff(failures - 2)
        return min(wait, self.cap) * (1 + self.jitter * random.random())

    def _backoff(self, exponent: int) -> timedelta:
        try:
            return self.base * self.factor**exponent
        except OverflowError:
            return self.cap


def to_retry_policy(retry: RetryPolicy | int | bool) -> RetryPolicy:  # noqa: FBT001 - True, 3 or a policy
    """Convert a policy, a number of retries, True (the default policy) or False (no retries) to a policy."""
    if isinstance(retry, RetryPolicy):
        return retry
    if retry is True:
        return RetryPolicy.build()
    return RetryPolicy(max_retries=0 if retry is False else retry)


class Priority(StoredEnum):
    """The urgency of a task: it selects the queue, each with its own rate, and the order of repairs."""

    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    NORMAL = "NORMAL"
    LOW = "LOW"

    @cached_property
    def rank(self) -> int:
        """Its place in the order, from 0 for the most urgent."""
        return tuple(Priority).index(self)


class CatchUpMode(StoredEnum):
    """The policy that selects which of several missed occurrences are run."""

    LATEST = "LATEST"
    ALL = "ALL"
    NONE = "NONE"


class CatchUp(InputModel):
    """The policy for occurrences that nothing could run in time. On the wire, the mode alone may replace it."""

    mode: CatchUpMode = CatchUpMode.LATEST
    window: Duration | None = Field(default=None, gt=timedelta(0))
    """The greatest lateness of a run. None: any for ``LATEST`` and ``ALL``, a minute for ``NONE``."""

    @model_validator(mode="before")
    @classmethod
    def _expand_mode(cls, value: object) -> object:
        return {"mode": value} if isinstance(value, str) else value


class Overlap(StoredEnum):
    """The policy for an occurrence that comes due while a run is open."""

    SKIP = "SKIP"
    BUFFER = "BUFFER"
    ALLOW = "ALLOW"


class TellFailures(StoredEnum):
    """The failed runs of a task about which its owner gets a message."""

    FIRST = "FIRST"
    """The first of a row, and that it works again."""
    EACH = "EACH"
    """Each, and that it works again."""
    NEVER = "NEVER"


QUOTA_PREFIX: Final = "quota:"
"""The keys of the documents that creations for an owner with a quota pass through begin with it, and no
others do."""
