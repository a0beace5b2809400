"""What is called when an execution has failed for good."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.transitions.finish import FAILURE_STATUSES
from cloudsched.engine.durable.exits import is_handler_failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cloudsched.domain.documents.execution import Execution
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import OnFailure, Registry

log = logging.getLogger(__name__)


def run_failure_hooks(registry: Registry, task: Task, executions: Iterable[Execution]) -> None:
    """Call the hook of the task's handler for each execution that has failed for good.

    A hook that fails is logged, and changes nothing. So is one that cannot be called since the handler is not here,
    unless it was a worker who said that it failed: that has the handler, and hears what came of it.
    """
    failed = [execution for execution in executions if execution.status in FAILURE_STATUSES]
    hook = failure_hook(registry, task)
    for execution in failed:
        about = {"taskId": task.id, "executionId": execution.id, "handler": task.handler}
        if hook is not None:
            try:
                hook(task, execution)
            except BaseException as error:
                if not is_handler_failure(error):
                    raise
                log.exception("The on_failure hook failed", extra={"action": "failure_hook_failed", **about})
        elif task.handler not in registry and not _was_reported_by_worker(execution):
            why = "no on_failure is called: there is no handler %r in this process"
            log.warning(why, task.handler, extra={"action": "failure_hook_skipped", **about})


def failure_hook(registry: Registry, task: Task) -> OnFailure | None:
    """Return what is called here when an occurrence of the task has failed for good."""
    return registry.get(task.handler).on_failure if task.handler in registry else None


def _was_reported_by_worker(execution: Execution) -> bool:
    last = execution.attempts[-1] if execution.attempts else None
    return last is not None and last.worker is not None and last.status is ExecutionStatus.FAILED
