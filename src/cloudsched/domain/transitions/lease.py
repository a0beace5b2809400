"""Renew and drop the lease of a running attempt. `claim` grants it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.lifecycle import with_changes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cloudsched.domain.documents.execution import ProgressNote, Run
    from cloudsched.domain.documents.task import Task


def on_heartbeat(
    task: Task, execution_id: str, token_hash: str, progress: Sequence[ProgressNote], now: datetime
) -> Commit | None:
    """Renew a lease, and store the progress so far. Return None if the caller does not hold the lease."""
    run = renew_lease(task, execution_id, token_hash, now, progress=tuple(progress))
    return None if run is None else Commit(with_changes(task, now, runs=task.runs_with(run)))


def renew_lease(task: Task, execution_id: str, token_hash: str, now: datetime, **changes: Any) -> Run | None:
    """Return a run with its lease renewed from now, and further changes, or None if the caller does not hold it.

    A lapsed lease is not renewed, even if nobody has taken over the run yet: another run may hold the
    lock. A lease is never shortened, even if the task's `expected_duration` was.
    """
    run = task.find_run(execution_id)
    # guard: lease of heartbeat
    if run is None or run.lease is None or run.lease.token_hash != token_hash or run.lease.until <= now:
        return None
    lease = run.lease.model_copy(update={"until": max(run.lease.until, now + task.expected_duration)})
    return run.model_copy(update={"lease": lease, **changes})


def drop_lease(run: Run, released_by: str | None = None, **changes: Any) -> Run:
    """Return the run without its lease. Keep a worker's claim, and the caller who released it."""
    claim = run.lease.token_hash if run.lease and run.lease.worker else None
    # guard: released lease
    return run.model_copy(
        update={"lease": None, "released_claim": claim, "released_by": released_by, **changes},
    )
