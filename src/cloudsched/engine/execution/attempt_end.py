"""Decide what the end of an attempt changes: its task, its lock, what follows from it, and what is delivered.

The decision depends on the task as it is when it is committed, so it is made again after each conflict.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloudsched.domain.transitions.finish import on_outcome
from cloudsched.domain.transitions.outcome import Done, Fail, Suspend
from cloudsched.engine.durable.journal_cursor import OUTAGE_PAUSE
from cloudsched.engine.execution.follow_ups import plan_follow_ups
from cloudsched.engine.execution.invoke import truncate_text
from cloudsched.engine.ports.store import NO_GRANTS, Commit
from cloudsched.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.journal import JournalEntry
    from cloudsched.domain.documents.task import Task
    from cloudsched.domain.transitions.finish import AttemptReport
    from cloudsched.engine.children.child_tasks import ChildTasks
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.execution.follow_ups import FollowUps
    from cloudsched.engine.ports.store import TaskWrite, VersionedTask
    from cloudsched.engine.state.deliveries import DeliveryPlanner
    from cloudsched.errors import BlobsUnavailable, InvalidInput

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EndServices:
    """What the end of an attempt is decided with."""

    engine: EngineContext
    child_tasks: ChildTasks
    deliveries: DeliveryPlanner


class AttemptEnd:
    """How one attempt ends, on whatever version of its task is read.

    Args:
        services: What it is decided with.
        run: The run as it was claimed.
        report: The outcome, with what the handler reported.
        journal: The whole journal of the run, if it has been loaded.
    """

    def __init__(
        self, services: EndServices, run: Run, report: AttemptReport, journal: Sequence[JournalEntry] | None = None
    ) -> None:
        self._services = services
        self._run = run
        self._report = report
        self._journal = journal
        self._follow_ups: FollowUps | None = None
        self._has_decided = False

    def decide(self, task: Task, base: VersionedTask) -> Commit | None:
        """Return what to commit; None if the lease is no longer held.

        At first, what it creates is taken to be new. If this is called again, there was a conflict: then that is read.

        Raises:
            InvalidInput: A follow-up is refused.
        """
        engine, report, run = self._services.engine, self._report, task.find_run(self._run.execution_id)
        is_repeat, self._has_decided = self._has_decided, True
        if run is None or self._run.lease is None:
            return None
        if isinstance(report.outcome, Done) and report.outcome.then:
            if self._follow_ups is None:
                children, drafts = self._services.child_tasks, report.outcome.then
                self._follow_ups = plan_follow_ups(engine, children, task, self._run, drafts)
            elif is_repeat:
                self._follow_ups.reload()
        now, suspends = engine.now(), isinstance(report.outcome, Suspend) and run.call_finished_while_running
        calls = self._find_calls_in_progress(task, run) if suspends else ()
        transition = on_outcome(
            task, run.execution_id, self._run.lease.token_hash, report, now, engine.random, calls_in_progress=calls
        )
        if transition is None:
            return None
        writes: tuple[TaskWrite, ...] = ()
        if self._follow_ups is not None:
            transition, writes = self._follow_ups.apply(transition, run, now)
        deliveries = self._services.deliveries
        writes += deliveries.plan(task, run, report, now, records=transition.executions, is_repeat=is_repeat)
        delivered = deliveries.mark(task, report, is_repeat=is_repeat)
        holds_lock = self._run.lock_key is not None
        lock, grants = engine.locks.release(task.id, self._run, now) if holds_lock else (None, NO_GRANTS)
        return Commit.build(
            base,
            transition,
            lock=lock,
            others=writes,
            delivered=delivered,
            reads=0,
            journals={} if self._journal is None else {run.execution_id: self._journal},
            grants=grants,
            has_calls_in_progress=bool(calls),
        )

    def _find_calls_in_progress(self, task: Task, run: Run) -> Collection[int]:
        """Return which of the awaited calls are in progress, if one ended while the handler ran.

        None if that is unknown: their parent checks when it runs.
        """
        outcome = self._report.outcome
        if isinstance(outcome, Suspend) and outcome.calls:
            with suppress(StoreUnavailable):
                return self._services.child_tasks.calls_in_progress(task.id, run.execution_id, outcome.calls)
        return ()

    def to_failure(self, error: InvalidInput, task_id: str) -> AttemptEnd:
        """Return the end as a failure, since a follow-up or the outcome was refused, which would happen every time.

        It is without notices and progress, which may have been too large.
        """
        ids = {"taskId": task_id, "executionId": self._run.execution_id}
        log.error("The result was rejected", exc_info=error, extra={"action": "result_rejected", **ids})
        outcome = self._report.outcome
        is_refused = isinstance(outcome, Done) and outcome.then != () and error.field.startswith("then.")
        what = (
            "Its follow-ups are refused" if is_refused else f"The store rejected the outcome {type(outcome).__name__}"
        )
        failure = Fail(truncate_text(f"{what}: {error}"))
        return self._with_report(replace(self._report, outcome=failure, error=None, notices=(), progress=()))

    def to_suspension(self, error: BlobsUnavailable) -> AttemptEnd:
        """Return the end as a suspension until later, since the blob store has no room for the steps now."""
        outcome = Suspend(str(error), self._services.engine.now() + OUTAGE_PAUSE)
        return self._with_report(replace(self._report, outcome=outcome, error=None))

    def _with_report(self, report: AttemptReport) -> AttemptEnd:
        return AttemptEnd(self._services, self._run, report, self._journal)
