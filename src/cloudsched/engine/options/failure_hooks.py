"""Call the `on_failure` hooks of executions that have failed permanently."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.documents.execution import FAILURE_STATUSES, Execution, ExecutionStatus
from cloudsched.domain.own_logger import own_logger
from cloudsched.engine.durable.suspension import is_handler_failure
from cloudsched.engine.durable.user_calls import call_function, is_async
from cloudsched.engine.engine_context import EngineContext, RunningHook
from cloudsched.engine.ports.procedure import LongCall
from cloudsched.engine.state.options import FailureCalls, Option

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.engine.handlers.registry import OnFailure, Registry

log: Final = own_logger(__name__)

T = TypeVar("T")
_S = ExecutionStatus


class FailureHooks(Option):
    """Calls the hooks of the executions that a commit ends as failed."""

    _engine: EngineContext

    def calls_for_failure(self, commit: Commit, before: Task) -> FailureCalls:
        """Return the calls. An attempt that timed out has said nothing: its hook gets the task as it was.

        A hook may take as long as its handler. One that hangs is not called again beside itself. The hook
        of a run that was lost too often may be what ends its process: it is called once, after the
        commit.
        """
        before_commit = self._list_calls(commit, before, lost=False)
        return FailureCalls(before_commit, self._list_calls(commit, before, lost=True))

    def _list_calls(self, commit: Commit, before: Task, *, lost: bool) -> Sequence[LongCall]:
        failures = [each for each in commit.executions if each.status in FAILURE_STATUSES and _was_lost(each) == lost]
        tasks = [(before if each.status is _S.TIMED_OUT else commit.task, each) for each in failures]
        until = self._engine.clock.now() + before.expected_duration
        return [
            LongCall(partial(self._run, *about, until), hangs=lambda: self._engine.clock.now() >= until)
            for about in tasks
            if (before.id, about[1].id) not in self._engine.hooks
        ]

    def _run(self, task: Task, execution: Execution, until: datetime) -> None:
        key = (task.id, execution.id)
        handler = describe_failed(task, execution).handler
        self._engine.hooks[key] = RunningHook(handler, self._engine.clock.now(), until)
        try:
            run_failure_hooks(self._engine.registry, task, execution)
        finally:
            self._engine.hooks.pop(key, None)


def _was_lost(execution: Execution) -> bool:
    """Return whether an execution has failed because its attempts were lost with their processes."""
    has_failed = execution.status is _S.FAILED and bool(execution.attempts)
    return has_failed and execution.attempts[-1].status is _S.TIMED_OUT


class AsyncHookDue(ControlFlow):
    """An asynchronous hook has to be awaited. Then the call that raised this is repeated (`HookCalls.run`)."""

    def __init__(self, hook: OnFailure, task: Task, execution: Execution) -> None:
        super().__init__(f"The on_failure hook of execution {execution.id} has to be awaited first.")
        self._hook = hook
        self._task = task
        self._execution = execution

    async def call(self) -> None:
        """Call the hook and await it.

        Meant for the event loop of handlers, which no error of the hook may end.
        """
        from cloudsched.engine.durable.event_loop import Outcome  # noqa: PLC0415 - imports asyncio

        outcome = Outcome()
        await outcome.capture(partial(self._hook, self._task, self._execution))
        _log_failure(outcome.unwrap, self._task, self._execution)


class HookCalls:
    """The hooks that were called for one result, so that an event loop can await the asynchronous ones."""

    def __init__(self) -> None:
        self._called = set[tuple[int, str]]()

    def run(self, function: Callable[[], T]) -> T:
        """Call a function that calls hooks, each of them once, however often this is repeated.

        Raises AsyncHookDue.
        """
        token = _hook_calls.set(self)
        try:
            return function()
        finally:
            _hook_calls.reset(token)

    def call(self, hook: OnFailure, task: Task, execution: Execution) -> None:
        """Call a hook, unless it was called for this execution."""
        key = (id(hook), execution.id)
        if key in self._called:
            return
        self._called.add(key)
        if is_async(hook):
            raise AsyncHookDue(hook, task, execution)
        _call_in_this_thread(hook, task, execution)


_hook_calls: ContextVar[HookCalls | None] = ContextVar("cloudsched_hook_calls", default=None)


def run_failure_hooks(registry: Registry, task: Task, execution: Execution) -> None:
    """Call the handler's hook, then the app's, for an execution that has failed permanently.

    They get the task with what the execution ran, payload included. A hook that fails is logged, and
    changes nothing. So is that this process does not have the handler with its hook, unless the worker
    has it that reported the failure.
    """
    about = describe_failed(task, execution)
    run_handler_hook(registry, about, execution)
    for hook in registry.registrations.failure_hooks:
        _call_hook(hook, about, execution)


def describe_failed(task: Task, execution: Execution) -> Task:
    """Return the task with what a failed execution ran: today's may be another handler or payload."""
    ran = task if execution.began_with is None else task.as_defined(execution.began_with)
    return ran if execution.payload is None else ran.model_copy(update={"payload": execution.payload})


def run_handler_hook(registry: Registry, task: Task, execution: Execution) -> None:
    """Call the hook of the task's handler, if this process has it. Log it if the handler is missing."""
    hook = failure_hook(registry, task)
    if hook is not None:
        _call_hook(hook, task, execution)
    elif task.handler not in registry and not _was_reported_by_worker(execution):
        message = "no on_failure is called: there is no handler %r in this process"
        about = {"action": "failure_hook_skipped", **_ids(task, execution)}
        log.warning(message, task.handler, extra=about)


def _call_hook(hook: OnFailure, task: Task, execution: Execution) -> None:
    calls = _hook_calls.get()
    if calls is None:
        _call_in_this_thread(hook, task, execution)
    else:
        calls.call(hook, task, execution)


def _call_in_this_thread(hook: OnFailure, task: Task, execution: Execution) -> None:
    _log_failure(partial(call_function, partial(hook, task, execution)), task, execution)


def _log_failure(call: Callable[[], object], task: Task, execution: Execution) -> None:
    try:
        call()
    except BaseException as error:
        if not is_handler_failure(error):
            raise
        log.exception(
            "The on_failure hook failed",
            extra={"action": "failure_hook_failed", **_ids(task, execution)},
        )


def _ids(task: Task, execution: Execution) -> dict[str, str]:
    return {"taskId": task.id, "executionId": execution.id, "handler": task.handler}


def failure_hook(registry: Registry, task: Task) -> OnFailure | None:
    """Return the hook that this process calls when an execution of the task has failed permanently."""
    handler = registry.find(task.handler)
    return None if handler is None else handler.on_failure


def _was_reported_by_worker(execution: Execution) -> bool:
    last = execution.attempts[-1] if execution.attempts else None
    return last is not None and last.worker is not None and last.status is ExecutionStatus.FAILED
