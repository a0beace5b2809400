"""After each sweep, enforce the limits of what owners use. Once a day, sum up all usage."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.expiry import MIN_RETENTION
from cloudsched.errors import CloudschedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched.domain.documents.owner_usage import UsageFront
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.usage.usage_limit import UsageLimit
    from cloudsched.engine.usage.usage_report import UsageSummation

log: Final = own_logger(__name__)

SUMS_EVERY: Final = timedelta(days=1)
"""The interval at which all tasks are summed up: a task's own counts last two months."""
LOOKED_EVERY: Final = timedelta(minutes=5)
"""The interval at which a sweep looks for a pass that a request has begun, and goes on: a read."""
_SLACK: Final = timedelta(seconds=10)
"""The tolerance of intervals: a sweep comes every minute, and not to the second."""


class UsageWatch:
    """Looks after each sweep whether there is something to do."""

    def __init__(self, clock: Clock, limit: Callable[[], UsageLimit], summation: UsageSummation) -> None:
        self._clock = clock
        self._limit = limit
        self._summation = summation
        self._looked_at: datetime | None = None
        self._warned_at: datetime | None = None

    def run(self) -> None:
        """Do what is due. A failure is logged, and never makes a sweep fail."""
        now = self._clock.now()
        try:
            self._limit().enforce(now)
            if is_due(self._looked_at, now, LOOKED_EVERY):
                front = self._summation.sum_up(None, at_most_every=SUMS_EVERY - _SLACK)
                self._looked_at = None if front.page_token else now
                self._warn_if_behind(front, now)
        except CloudschedError as error:
            log.warning("usage is not summed up: %s", error, extra={"action": "usage_not_summed"})

    def _warn_if_behind(self, front: UsageFront, now: datetime) -> None:
        """Warn once a day that a pass is so slow that ended tasks may be removed before they are summed up."""
        began_at = front.pass_began_at if front.page_token else None
        is_behind = began_at is not None and now - began_at > MIN_RETENTION / 2
        if began_at is not None and is_behind and is_due(self._warned_at, now, SUMS_EVERY):
            self._warned_at = now
            about = {"action": "usage_behind", "since": began_at.isoformat()}
            log.warning(
                "The tasks that changed since %s are still being summed up",
                began_at.isoformat(),
                extra=about,
            )


def is_due(last: datetime | None, now: datetime, interval: timedelta) -> bool:
    """Return whether an interval is over, or nearly so."""
    return last is None or not timedelta(0) <= now - last < interval - _SLACK
