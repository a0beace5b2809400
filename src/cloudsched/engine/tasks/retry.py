"""Retry an execution by hand: load what it did, and decide what of that is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloudsched.domain.documents.journal import StepKind
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.requirements import missing_steps_error, open_run_error
from cloudsched.domain.transitions.retry_execution import keep_before, require_step
from cloudsched.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.lifecycle import Transition
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext


@dataclass(frozen=True, slots=True)
class RetryRequest:
    """What a caller asks for."""

    execution_id: str | None
    """The execution; the one that finished last if None."""
    from_step: int | None
    """The first step to forget; None if only what made it fail is."""
    require_start: Callable[[Task], None]
    """Checks that the caller may start the task."""


def decide_retry(
    engine: EngineContext, child_tasks: ChildTasks, request: RetryRequest, task: Task, now: datetime
) -> Transition:
    """Decide to give an execution one more attempt; by default the one that finished last.

    Raises:
        NotFound: There is no such execution.
        InvalidInput: It has no such step, or there is no room for its payload.
        NotAllowed: It succeeded or is open, none has finished, its task is paused or cancelled, or its completed steps
            are missing.
    """
    from_step = request.from_step
    chosen_id = request.execution_id or lifecycle.last_finished_execution_id(task)
    execution = engine.store.load_execution(task.id, chosen_id)
    if execution is None and (run := task.find_run(chosen_id)) is not None:
        raise open_run_error(run)
    if execution is None:
        raise NotFound("execution", chosen_id)
    loaded = engine.archive.load_execution(execution)
    kept = loaded.model_copy(update={"steps": tuple(keep_before(loaded.steps, from_step))})
    cancelled, retried = child_tasks.cancelled_calls(kept.steps), child_tasks.retried_calls(kept)
    transition = lifecycle.retry(task, loaded, now, cancelled, retried, from_step=from_step)
    if loaded.steps_reference is not None:  # without them, completed steps would run again
        raise missing_steps_error(loaded.steps_reference)
    if from_step is not None and transition.executions:
        require_step(loaded, from_step)
        request.require_start(task)
        for run in transition.task.runs:
            if run.execution_id == chosen_id:
                request.require_start(transition.task.as_begun(run))
        _cancel_forgotten_calls(child_tasks, loaded, from_step)
    return engine.archive.restore_for_retry(transition, chosen_id)


def _cancel_forgotten_calls(child_tasks: ChildTasks, execution: Execution, from_step: int) -> None:
    """Cancel the calls under way that a retry from a step is about to forget.

    This comes before the commit of the retry, once all its checks have passed, as with the losers of a race: after it,
    a crash would leave calls that nobody awaits. If the commit fails, the execution has ended without success as
    before, and a retry makes again what it still needs of these calls.
    """
    for step in execution.steps:
        if step.number >= from_step and step.kind is StepKind.CALL and step.child is not None:
            child_tasks.cancel_call(step.child, "Its caller was retried from an earlier step.")
