"""Offer the runs of a task to workers. An *offer* is the document by which they find its first waiting run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.execution import Run, WaitingFor
from cloudsched.domain.transitions.wakeups import offer_expiry
from cloudsched.features.pull.fields import Offer, OfferEntry

if TYPE_CHECKING:
    from cloudsched.domain.documents.task import Task


def list_offered_runs(task: Task) -> list[Run]:
    """Return the runs that wait for a worker, the earliest due first: the task's offer is for that one."""
    if task.pull is None or not task.is_active:  # guard: paused offer
        return []
    waiting = [run for run in task.runs if run.waiting_for is WaitingFor.WORKER]
    return sorted(waiting, key=lambda run: (run.due_at, run.execution_id))


def find_claimable_run(task: Task, now: datetime) -> Run | None:
    """Return the run that a worker would get of a task, or None if it offers none, or only expired ones."""
    offered = ((each, offer_expiry(task, each)) for each in list_offered_runs(task))
    return next((each for each, expiry in offered if expiry is None or expiry > now), None)


def build_offer_entry(task: Task) -> OfferEntry | None:
    """Return the document by which workers find the task, or None if it offers nothing."""
    if task.offer is None:
        return None
    runs = list_offered_runs(task)
    run = next(iter(runs), None)
    begun = task if run is None or run.definition is None else task.as_begun(run)
    return OfferEntry(
        task_id=task.id,
        owner=task.owner,
        handler=begun.handler,
        queue_key=task.offer.queue_key,
        order=task.offer.order,
        is_code_call=task.is_made_by_code,
        is_for_servers=None if begun.is_for_user else True,
        runs=max(1, len(runs)),
        expiries=tuple(at for each in runs if (at := offer_expiry(task, each))),
    )


def refresh_offer(task: Task, now: datetime) -> dict[str, Any]:
    """Return the changes to a task that offer exactly its due runs.

    A run that waits for a lock is left alone: the dispatch that the lock's release sends offers it again.
    """
    if task.pull is None:
        if not any(run.waiting_for for run in task.runs):
            return {} if task.offer is None else {"offer": None}
        return {
            "offer": None,
            "runs": tuple(run.model_copy(update={"waiting_for": None}) for run in task.runs),
        }
    if task.is_active:
        task = task.model_copy(update={"runs": tuple(_mark_offered(run, now) for run in task.runs)})
    return {"runs": task.runs, "offer": _build_offer(task)}


def _mark_offered(run: Run, now: datetime) -> Run:
    if run.lease is not None or run.waiting_for is not None or run.due_at > now:  # guard: taken run
        return run
    return run.model_copy(update={"waiting_for": WaitingFor.WORKER})


def _build_offer(task: Task) -> Offer | None:
    runs = list_offered_runs(task)
    if not runs or task.pull is None:
        return None
    since = runs[0].due_at.astimezone(UTC).isoformat(timespec="microseconds")
    return Offer(queue_key=task.pull.queue_key, order=f"{task.priority.rank} {since}")
