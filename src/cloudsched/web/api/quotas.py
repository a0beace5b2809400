"""Quotas for one user: unfinished tasks, and creations a minute.

Quotas apply to callers that see only their own tasks. The tasks themselves are counted, so there is no counter that
could drift: each configured quota costs one count for each creation, which Firestore bills as one read for every 1,000
tasks counted; a batch costs the same as one task. Concurrent requests of one user do not see each other's tasks yet, so
they can exceed a quota by as many tasks as they create.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.errors import QuotaExceeded

if TYPE_CHECKING:
    from cloudsched.app import App
    from cloudsched.web.auth.roles import Caller

_MINUTE = timedelta(minutes=1)


def remaining(app: App, caller: Caller, requested: int) -> tuple[int, QuotaExceeded | None]:
    """Return how many of the requested tasks a caller may create, and the error for the rest, if there is a rest."""
    access, owner = app.settings.access, caller.visible_owner
    allowed: int = requested
    refusal: QuotaExceeded | None = None
    if owner is None:
        return allowed, refusal
    if (limit := access.max_active_tasks) is not None:
        left = limit - app.task_counter.count_unfinished(owner, limit)
        if left < allowed:
            allowed, refusal = left, QuotaExceeded("tasks that have not ended", limit, "Cancel or delete some of them.")
    if (limit := access.max_creations) is not None:
        left = limit - app.task_counter.count_created_since(owner, app.clock.now() - _MINUTE, limit)
        if left < allowed:
            allowed, refusal = left, QuotaExceeded("creations a minute", limit, "Try again in a minute.", 60)
    return max(0, allowed), refusal


def require_quota(app: App, caller: Caller) -> None:
    """Check that a caller may create one more task. Raises QuotaExceeded."""
    _, refusal = remaining(app, caller, 1)
    if refusal is not None:
        raise refusal
