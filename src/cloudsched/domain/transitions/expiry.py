"""Which ended tasks the store removes by itself, with their records, once their retention has passed.

A store removes each document alone, at an instant that it has (`expire_at`). So that no record is left
without its task, this is only for a task all of whose records are written by the commit that ends it, as
those of most one-time tasks are. The sweep removes all others.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar

from cloudsched.domain.documents.task import Task, TaskStatus
from cloudsched.domain.transitions.commit import TaskWrite

if TYPE_CHECKING:
    from cloudsched.domain.documents.execution import Execution

W = TypeVar("W", bound=TaskWrite)

MIN_RETENTION: Final = timedelta(days=30)
"""The least retention of a task that the store removes by itself.

What tasks have used is summed up every day (`engine.usage.usage_watch`, which warns before it is this
late): after that, nobody has to read an ended one again.
"""


def leaves_nothing(task: Task) -> bool:
    """Return whether an ended task leaves nothing behind when its retention ends, but for its records.

    Its use has been summed up by then. One that was cancelled or expired may still wait for its lock: it
    never had it.
    """
    is_summed_up = task.wake_at is not None and task.wake_at >= task.updated_at + MIN_RETENTION
    return is_summed_up and (not task.has_lock or task.status in {TaskStatus.COMPLETED, TaskStatus.FAILED})


def settle_expiry(write: W) -> W:
    """Return a change that says whether the store removes its task: if it has no other record than this one.

    The sweep removes calls, which stay as long as their parents may read them, and records with their own
    retention.
    """
    task = write.task
    kept: list[Execution] = []
    for each in write.executions:
        if each.status.is_final and each.expire_at is None:
            kept.append(each)
    if kept and task.last_execution_id is None:  # so that it is known later that there is one
        task = task.model_copy(update={"last_execution_id": kept[-1].id})
        write = replace(write, task=task)

    ids = {None, *map(attrgetter("id"), kept)}
    has_others = not ids <= {None, task.last_execution_id}
    if write.base is not None and not has_others:
        before = write.base.task
        has_others = bool(before.recent_outcomes) or before.last_execution_id not in ids
    is_call = task.parent is not None and task.delivery is None
    is_sweeps = has_others or is_call or task.execution_retention is not None
    if is_sweeps or not task.waits_for_removal or task.wake_at is None or not leaves_nothing(task):
        return write
    own = tuple(each.model_copy(update={"expire_at": task.wake_at}) for each in kept)
    rest = tuple(each for each in write.executions if each not in kept)
    expiring = task.model_copy(update={"wake_at": None, "expire_at": task.wake_at})
    return replace(write, task=expiring, executions=(*own, *rest))


def goes_on(write: TaskWrite) -> bool:
    """Return whether a change of a task that was to be removed by the store keeps it, and so its record."""
    return write.task.expire_at is None and write.task.deleted_at is None


def keep_record(write: W, record: Execution | None) -> W:
    """Return the change of a task that goes on (`goes_on`), whose only record no longer expires."""
    is_ours = record is not None and write.base is not None and record.expire_at == write.base.task.expire_at
    if record is None or not is_ours or any(each.id == record.id for each in write.executions):
        return write
    return replace(write, kept_record=record.id)
