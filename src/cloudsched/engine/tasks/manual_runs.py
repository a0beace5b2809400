"""Start runs of a task by hand: trigger it, retry an execution, run a past range again."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.history import Action
from cloudsched.domain.transitions import manual_runs
from cloudsched.engine.handlers.user_access import require_user_start
from cloudsched.engine.tasks.retry import RetryRequest, decide_retry
from cloudsched.engine.tasks.trigger import OWN_PAYLOAD, TriggerRequest, to_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.drafts import TaskDraft
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.domain.transitions.manual_runs import TriggerMark
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.ports.authority import Authority

    Act = Callable[[str, Action, Callable[[Task, datetime], Transition], Authority, str | None], Task]
    """Changes a task as a decision says, and notes in its history who did what, with a reason if there is one."""


class ManualRuns:
    """Starts runs by hand.

    Args:
        engine: What the engine's parts work with.
        child_tasks: The tasks that handlers call.
        validate: Checks a draft as the caller of an edit of some fields could store it.
        act: Changes a task for a caller.
    """

    def __init__(
        self,
        engine: EngineContext,
        child_tasks: ChildTasks,
        validate: Callable[[TaskDraft, Authority, Collection[str]], TaskDraft],
        act: Act,
    ) -> None:
        self._engine = engine
        self._child_tasks = child_tasks
        self._validate = validate
        self._act = act

    def trigger(
        self,
        task_id: str,
        payload: Any = None,  # noqa: ANN401 - as the handler takes it
        mark: TriggerMark | None = None,
        *,
        by: Authority,
    ) -> Task:
        """Run a task now, in addition to its schedule; with a payload, this run gets that in place of the task's.

        Raises:
            InvalidInput: The caller could not edit the task to have that payload, or there is no room for it.
            KeyReused: The mark's key was used for another request.
        """
        given = None if payload is None else to_payload(payload)
        request = TriggerRequest(given, mark, lambda draft: self._validate(draft, by, ("payload",)))
        reason = None if given is None else OWN_PAYLOAD
        return self.start(task_id, Action.TRIGGERED, request.decide, by, reason)

    def retry(
        self,
        task_id: str,
        execution_id: str | None = None,
        *,
        from_step: int | None = None,
        by: Authority,
    ) -> Task:
        """Give an execution one more attempt, if need be from a step on; see `decide_retry`."""
        request = RetryRequest(execution_id, from_step, partial(self._require_start, by=by))
        decide = partial(decide_retry, self._engine, self._child_tasks, request)
        return self.start(task_id, Action.RETRIED, decide, by)

    def backfill(self, task_id: str, start: datetime, end: datetime, by: Authority) -> Task:
        """Run the task's occurrences of a past range, one after another."""
        request = secrets.token_hex(8)

        def decide(task: Task, now: datetime) -> Transition:
            return manual_runs.backfill(task, start, end, now, request)

        return self.start(task_id, Action.BACKFILLED, decide, by)

    def start(
        self,
        task_id: str,
        action: Action,
        decide: Callable[[Task, datetime], Transition],
        by: Authority,
        reason: str | None = None,
    ) -> Task:
        """Change a task so that it runs.

        Raises:
            Forbidden: A user may not start it, or what one of its executions began with before an edit, which would run
                by a retry or at the end of a pause; see `require_user_start`.
            QuotaExceeded: It would revive a task that has ended, for a user who has no room for one more.
        """

        def decide_allowed(task: Task, now: datetime) -> Transition:
            started = decide(task, now)
            if started.task is not task:
                self._require_start(task, by)
                for run in started.task.runs if started.task.earlier_definitions else ():
                    if not task.is_active or task.find_run(run.execution_id) is None:
                        self._require_start(started.task.as_begun(run), by)
            return started

        return self._act(task_id, action, decide_allowed, by, reason)

    def _require_start(self, task: Task, by: Authority) -> None:
        if by.is_user:
            require_user_start(task, self._engine.registry)
