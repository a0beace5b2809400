"""Plan a stored task again with newer time zone data, before anything else is decided about it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.planning import executor_wakeups
from cloudsched.engine.ports.store import Commit, VersionedTask

if TYPE_CHECKING:
    from cloudsched.engine.engine_context import EngineContext

log = logging.getLogger(__name__)


def replan_stored(engine: EngineContext, stored: VersionedTask) -> VersionedTask:
    """Return a task planned with the time zone data in use, committed and dispatched; as it is if it is so already.

    Raises:
        VersionConflict: It has changed since it was read.
        QueueUnavailable: It is planned, and a dispatch could not be created: the sweep sends it.
    """
    from cloudsched.domain.transitions.replan import replan_zone  # noqa: PLC0415 - once in a release

    now, task = engine.clock.now(), stored.task
    transition = replan_zone(task, now, engine.settings.minimum_lead)
    if transition.task is task:
        return stored
    committed = engine.committer.commit(Commit.build(stored, transition, reason="new time zone data"))
    release = "" if committed.task.zone_plan is None else committed.task.zone_plan.release
    log.info("replanned with tzdata %s", release, extra={"action": "replanned", "taskId": task.id})
    if committed.task.next_execution_time != task.next_execution_time:
        engine.sender.send(committed.task, executor_wakeups(committed.task), engine.clock.now())
    return committed
