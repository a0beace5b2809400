"""What an app's own code does with runs by hand: trigger a task, retry an execution, run a past range again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.authority import Authority
from cloudsched.runtime.parts import ReplaceableParts

if TYPE_CHECKING:
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.trigger import TriggerMark
    from cloudsched.engine.tasks.scheduler import Scheduler


class ManualRunCalls(ReplaceableParts):
    """Starts runs of tasks by hand."""

    @property
    def _scheduler(self) -> Scheduler:
        return self.container.scheduler

    def trigger(
        self,
        task_id: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        *,
        mark: TriggerMark | None = None,
        authority: Authority = Authority.SERVERS,
    ) -> Task:
        """Run a task once, now, without changing its plan.

        Args:
            task_id: The task.
            payload: What this run gets in place of the task's payload, which stays as it is. The run keeps it in its
                retries and replays, and its record has it.
            mark: Makes it safe to repeat; see `TriggerMark`.
            authority: Whose request it is.

        Raises:
            InvalidInput: The payload does not fit the handler, or is too large.
            NotAllowed: The task is not active, or has too many open runs.
        """
        return self._scheduler.manual_runs.trigger(task_id, payload, mark, authority=authority)

    def retry(
        self,
        task_id: str,
        execution_id: str | None = None,
        *,
        from_step: int | None = None,
        authority: Authority = Authority.SERVERS,
    ) -> Task:
        """Retry an execution, by default the last, from its failure, or from a step: forget it and all after it."""
        return self._scheduler.manual_runs.retry(task_id, execution_id, from_step=from_step, authority=authority)

    def backfill(
        self, task_id: str, start: datetime, end: datetime, *, authority: Authority = Authority.SERVERS
    ) -> Task:
        """Run the past occurrences from `start` to `end` (both included), one after the other."""
        return self._scheduler.manual_runs.backfill(task_id, start, end, authority=authority)
