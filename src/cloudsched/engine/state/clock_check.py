"""Load a task with the time for which everything is decided: the clock may be set in a moment."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from cloudsched.engine.ports.clock import MAX_SKEW, Clock, measure_skew
from cloudsched.errors import ClockSkewed

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.ports.store import Store

    Loaded: TypeAlias = tuple[VersionedTask | None, datetime]

log = logging.getLogger(__name__)


def load(store: Store, clock: Clock, task_id: str) -> Loaded:
    """Return a task, or None, and the time."""
    return store.load(task_id), clock.now()


def load_checked(store: Store, clock: Clock, task_id: str) -> Loaded:
    """Return the same. Raises ClockSkewed if this machine's clock does not agree with the store's."""
    before = clock.now()
    stored, now = load(store, clock, task_id)
    if now - before > MAX_SKEW:  # a difference could hide in a read that took so long
        before = now
        stored, now = load(store, clock, task_id)
    if stored is None or stored.read_at is None:
        return stored, now
    skew = measure_skew(before, stored.read_at, now)
    if abs(skew) > MAX_SKEW:
        error = ClockSkewed(skew, MAX_SKEW)
        log.error("%s", error, extra={"action": "clock_skewed", "taskId": task_id})
        raise error
    return stored, now
