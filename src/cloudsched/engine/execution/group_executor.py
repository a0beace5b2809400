"""Run many occurrences with few commits: the claims and the results of several runs are stored together.

One thread commits for all, and calls no handler; other threads call handlers, and never wait for a commit:

    what is due ──▶ `GroupExecutor.commit` ──▶ one call for each ──▶ the runs that have ended ──▶ `GroupExecutor.commit`

Each run is claimed before its handler is called, and each end is stored before what follows is dispatched, as if it was
alone; only what they wait for is shared. What needs more than a plain commit goes alone, in the thread that calls the
handler: what holds a lock or has a parent, a journal or deliveries, each failure, and whatever meets a conflict.
"""

from __future__ import annotations

import logging
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from cloudsched.engine.execution.attempts import STARTED_TOO_LATE, DeliveryAction
from cloudsched.engine.execution.claimed_run import ClaimedRun
from cloudsched.engine.ports.store import Committed
from cloudsched.engine.state.commits import log_commit
from cloudsched.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.domain.transitions.planning import Dispatch
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.attempts import AttemptEnd, AttemptRunner, DeliveryResult
    from cloudsched.engine.execution.executor import Executor, PlannedRun
    from cloudsched.engine.ports.queue import QueueMessage
    from cloudsched.engine.ports.store import Commit
    from cloudsched.engine.ports.tracing import Tracer

    Call = Callable[[], "EndedRun | None"]
    """Calls a handler, or does what else is left; returns how the run ended if that is to be committed."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run whose handler has returned, and what is to be committed of that."""

    dispatch: Dispatch
    run: ClaimedRun
    end: AttemptEnd
    commit: Commit
    context: Context
    """That of its thread: what is logged about the run belongs there."""


class GroupExecutor:
    """Claims what is due, and stores how runs ended, many at a time.

    Args:
        deliver: Delivers a dispatch alone, from its body and token.
    """

    def __init__(
        self,
        engine: EngineContext,
        executor: Executor,
        attempt_runner: AttemptRunner,
        tracer: Tracer,
        deliver: Callable[[bytes, str], object],
    ) -> None:
        self._engine = engine
        self._executor = executor
        self._in_progress = executor.in_progress
        self._attempt_runner = attempt_runner
        self._tracer = tracer
        self._deliver = deliver

    def commit(
        self, messages: Sequence[QueueMessage], ends: Sequence[EndedRun]
    ) -> tuple[Sequence[Call], Sequence[Call | None]]:
        """Claim the runs that are due and store those that have ended, in one commit.

        Returns:
            What to call for each dispatch, and for each end what is left to be done, in any thread; None if nothing is.
            Such a call may take as long as a handler. If it raises, its dispatch is to be delivered again.

        Raises:
            StoreUnavailable: The tasks could not be read. Nothing was committed.
        """
        planned: Sequence[PlannedRun | None] = ()
        try:
            planned = self._executor.decide_claims(messages, {each.dispatch.task_id for each in ends})
            claims = [each.claim for each in planned if each is not None and each.claim is not None]
            results = iter(self._engine.committer.commit_many([*claims, *(each.commit for each in ends)]))
        except BaseException:  # all of them are delivered again
            given_up = [each.dispatch for each in planned if each is not None] + [each.dispatch for each in ends]
            for dispatch in given_up:
                self._in_progress.end(dispatch)
            raise
        calls = [
            self._to_call(message, each, None if each is None or each.claim is None else next(results))
            for message, each in zip(messages, planned, strict=True)
        ]
        return calls, [self._follow(each, next(results)) for each in ends]

    def _to_call(self, message: QueueMessage, planned: PlannedRun | None, result: Committed | Exception | None) -> Call:
        if planned is not None and planned.claimed is not None:
            return partial(self._run, planned.dispatch, planned.claimed, None)
        if planned is not None and isinstance(result, Committed) and result.commit.run is not None:
            claimed = ClaimedRun(self._engine, result.stored, result.commit.run)
            return partial(self._run, planned.dispatch, claimed, result.commit)
        if planned is not None:
            self._in_progress.end(planned.dispatch)
        if isinstance(result, Unavailable):
            return partial(_raise, result)
        return partial(self._deliver_alone, message)

    def _deliver_alone(self, message: QueueMessage) -> None:
        self._deliver(message.body, message.token)

    def _run(self, dispatch: Dispatch, claimed_run: ClaimedRun, claim: Commit | None) -> EndedRun | None:
        """Run a claimed attempt; return its end if others can be committed with it: then it is still in progress."""
        ended = None
        try:
            ended = self._try_to_run(dispatch, claimed_run, claim)
        finally:
            if ended is None:
                self._in_progress.end(dispatch)
        return ended

    def _try_to_run(self, dispatch: Dispatch, claimed_run: ClaimedRun, claim: Commit | None) -> EndedRun | None:
        ids: dict[str, str | int] = {
            "taskId": dispatch.task_id,
            "executionId": dispatch.execution_id,
            "attempt": dispatch.attempt,
        }
        with self._tracer.span("execute", dispatch.trace, dispatch.execution_id, **ids):
            if claim is not None:
                log_commit(claim)
            attempt = self._attempt_runner.start(claimed_run)
            if attempt is None:
                _log_result(dispatch, STARTED_TOO_LATE)
                return None
            end = self._attempt_runner.decide(attempt, self._attempt_runner.invoke(attempt))
            commit = self._decide_end(claimed_run, end)
            if commit is not None:
                return EndedRun(dispatch, claimed_run, end, commit, copy_context())
            self._finish_alone(dispatch, claimed_run, end)
            return None

    def _decide_end(self, claimed_run: ClaimedRun, end: AttemptEnd) -> Commit | None:
        """Return what to commit of an end; None if it is to be committed alone."""
        task = claimed_run.task
        if not end.is_plain or task.parent is not None or task.delivery is not None or task.delivery_channels:
            return None
        if task.tells_somebody or task.deleted_at is not None or task.deferred:
            return None
        try:
            commit = claimed_run.decide(end.decide)
        except InvalidInput:
            return None
        return commit if commit is not None and self._engine.committer.is_plain(commit) else None

    def _finish_alone(self, dispatch: Dispatch, claimed_run: ClaimedRun, end: AttemptEnd) -> None:
        committed = self._attempt_runner.commit(claimed_run, end)
        self._dispatch(dispatch, claimed_run, end, committed)

    def _follow(self, ended: EndedRun, result: Committed | Exception) -> Call | None:
        """Do what follows from an end that is committed, and return what is left to do."""
        if isinstance(result, Exception) and not isinstance(result, Unavailable):
            return partial(ended.context.run, self._finish_conflicting, ended)
        try:
            if isinstance(result, Exception):
                return partial(_raise, result)
            ended.context.run(self._accept, ended, result)
        except Exception as error:  # noqa: BLE001 - one must not keep the others from what follows
            return partial(_raise, error)
        finally:
            self._in_progress.end(ended.dispatch)
        return None

    def _finish_conflicting(self, ended: EndedRun) -> None:
        try:
            self._finish_alone(ended.dispatch, ended.run, ended.end)
        finally:
            self._in_progress.end(ended.dispatch)

    def _accept(self, ended: EndedRun, committed: Committed) -> None:
        log_commit(committed.commit)
        ended.run.accept(committed)
        self._dispatch(ended.dispatch, ended.run, ended.end, committed)

    def _dispatch(
        self, dispatch: Dispatch, claimed_run: ClaimedRun, end: AttemptEnd, committed: Committed | None
    ) -> None:
        self._attempt_runner.dispatch(claimed_run, committed, claimed_run.sent_wakeups)
        _log_result(dispatch, self._attempt_runner.describe(claimed_run, end, committed))


def _log_result(dispatch: Dispatch, result: DeliveryResult) -> None:
    level = logging.DEBUG if result.action is DeliveryAction.RAN else logging.INFO  # the event log has its line
    if log.isEnabledFor(level):
        ids = {"taskId": dispatch.task_id, "executionId": dispatch.execution_id, "attempt": dispatch.attempt}
        log.log(level, "%s: %s", result.action, result.reason, extra={"action": result.action.value, **ids})


def _raise(error: Exception) -> None:
    raise error
