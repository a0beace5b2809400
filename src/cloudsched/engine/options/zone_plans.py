"""Plan a task with the time zone data in use, before anything is decided on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloudsched.domain.transitions.planning import can_replan
from cloudsched.engine.state.options import Option

if TYPE_CHECKING:
    from cloudsched.domain.transitions.commit import VersionedTask
    from cloudsched.engine.engine_context import EngineContext


class ZonePlans(Option):
    """Plans a task with the time zone data in use."""

    _engine: EngineContext

    def before_decision(self, stored: VersionedTask) -> VersionedTask:
        """Return the task as it is planned now."""
        return self._engine.replan(stored) if can_replan(stored.task) else stored
