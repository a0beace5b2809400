"""Attempts that end without a result: released, lost with their process or worker, or out of time.

One that is released or lost uses up no retry. One that takes longer than it may does, as nobody knows more of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import (
    ExecutionError,
    ExecutionStatus,
    ProgressNote,
    Run,
    is_orphaned,
)
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.recurrence.iso8601 import add_duration
from cloudsched.domain.transitions.finish import (
    finish_run,
    retry_or_finish,
    wait_for_retry,
    with_finished_attempt,
)
from cloudsched.domain.transitions.lease import drop_lease

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cloudsched.domain.transitions.commit import Commit
    from cloudsched.domain.transitions.wakeups import Dispatch

UNSTARTED_GRACE = timedelta(seconds=30)
"""A run that is released this soon after its claim counts as not started: its worker stopped or refused it."""


def on_release(
    task: Task,
    execution_id: str,
    token_hash: str,
    progress: Sequence[ProgressNote],
    reason: str,
    now: datetime,
    *,
    released_by: str | None = None,
) -> Commit | None:
    """Release an attempt that its process could not finish: it costs no attempt, and the run keeps its place.

    A run that its worker releases at once, without progress, counts as never started: its expiration
    keeps running. None if the caller does not hold the lease.
    """
    run = task.find_run(execution_id)
    if run is None or run.lease is None or run.lease.token_hash != token_hash:  # guard: lease of release
        return None
    waiting = drop_lease(run, released_by, progress=tuple(progress))
    if waiting.losses:
        waiting = waiting.model_copy(update={"due_at": add_duration(now, LOSS_PAUSE)})
    elif run.lease.worker is None:  # else it keeps its place in its queue
        waiting = waiting.model_copy(update={"due_at": now})
    has_progress = waiting.attempts or waiting.steps or waiting.progress
    is_first = run.started_at == run.lease.started_at and run.lease.worker is not None
    if is_first and now - run.lease.started_at <= UNSTARTED_GRACE and not has_progress:
        waiting = waiting.model_copy(update={"started_at": None})
    return wait_for_retry(task, waiting, now, message=reason)


def on_lease_expired(task: Task, run: Run, now: datetime) -> Commit:
    """Close the leased attempt of a run as TIMED_OUT. The run waits for its next attempt, or has ended.

    A worker renews its lease however long the handler takes, so if it lapses, the worker was lost. An
    executor's process may have died, or its handler may have taken too long, so that attempt counts.
    """
    if run.lease is not None and run.lease.worker is not None:
        return on_lost_attempt(task, run, WORKER_LOST, now)
    error = ExecutionError(
        type="LeaseExpired",
        message=("No result came within the task's expectedDuration: its process died, was stopped, or took longer."),
    )
    lost = with_finished_attempt(run, ExecutionStatus.TIMED_OUT, error, now)
    return retry_or_finish(task, lost, timedelta(0), now, ExecutionStatus.TIMED_OUT)


STOPPED = "Its process was stopped."
"""The reason of a release by a process that stops in order."""


PROCESS_ENDED = ExecutionError.build(
    type="ProcessEnded", message="Its process ended before there was a result: it crashed, or was killed."
)
"""The error of an attempt that ended with its process."""


WORKER_LOST = ExecutionError.build(
    type="WorkerLost",
    message="Its worker no longer renewed its lease: it died, was cut off, or gave up on it after its time limit.",
)
"""The error of an attempt whose worker was not heard of in time."""


RESULT_LOST = ExecutionError.build(
    type="ResultLost",
    message="Its process could not store the result, as when the disk is full, or failed before there was one.",
)
"""The error of an attempt that its process no longer runs, and has stored no result of."""


MAX_LOSSES = 3
"""The number of attempts in a row that may be lost with their process, before their run has failed."""


LOSS_PAUSE = timedelta(seconds=5)
"""The wait after the second lost attempt: a handler could crash its process as fast as that is restarted.

A run waits as long if a worker releases it because other lost runs come first.
"""


def on_lost_attempt(task: Task, run: Run, error: ExecutionError, now: datetime) -> Commit:
    """Close an attempt whose process is gone as TIMED_OUT. It uses up no retry.

    The run goes on, at first without a wait. After `MAX_LOSSES` in a row it has failed: its handler may
    be what ends its process, and with it the attempts of others.
    """
    losses = run.losses + 1
    if losses >= MAX_LOSSES and task.status not in FINAL_STATUSES:
        why = (
            f"{error.message} That happened {losses} times in a row, so the run is not tried again. Its handler "
            f"{task.as_begun(run).handler!r} may be the cause. Read the log of its process, then retry the run by hand."
        )
        named = ExecutionError.build(type=error.type, message=why)
        return finish_run(
            task,
            with_finished_attempt(run, ExecutionStatus.TIMED_OUT, named, now),
            ExecutionStatus.FAILED,
            now,
        )
    waiting = {
        "attempt": run.attempt + 1,
        "uncounted_attempts": run.uncounted_attempts + 1,  # guard: uncounted loss
        "losses": losses,
        "due_at": add_duration(now, LOSS_PAUSE) if losses > 1 else now,
    }
    lost = with_finished_attempt(run, ExecutionStatus.TIMED_OUT, error, now)
    return wait_for_retry(task, lost.model_copy(update=waiting), now)


STILL_RUNNING = ExecutionError.build(
    type="StillRunning",
    message=(
        "Its handler has not returned within its expectedDuration, and still runs: nothing can stop a thread from "
        "outside. Its task is not called again until it has returned. Give what it waits for a timeout."
    ),
)
"""The error of an attempt whose time is over, and whose handler runs on."""


def on_hanging_attempt(task: Task, run: Run, now: datetime, wait: timedelta) -> Commit:
    """Close the leased attempt of a run as TIMED_OUT while its handler still runs. The next one waits."""
    lost = with_finished_attempt(run, ExecutionStatus.TIMED_OUT, STILL_RUNNING, now)
    return retry_or_finish(task, lost, wait, now, ExecutionStatus.TIMED_OUT)


def on_orphaned_lease(
    task: Task, dispatch: Dispatch, now: datetime, holder: str, stopped: str | None, *, runs_here: bool
) -> Commit | None:
    """Close an attempt that nobody runs any more. Return None if there is no such attempt.

    Its retry has a dispatch of its own: the attempt's hold on its lock has to end first, and others may
    be next. `holder` is this process, `stopped` is the one before if that was told to stop, and
    `runs_here` says whether this one may be running an attempt of the execution.
    """
    run = task.find_run(dispatch.execution_id)
    if task.deleted_at is not None or run is None or run.lease is None:
        return None
    if stopped is not None and run.lease.holder == stopped:
        released = on_release(task, run.execution_id, run.lease.token_hash, run.progress, STOPPED, now)
        return None if released is None else released.because(f"the process of attempt {run.attempt} was stopped")
    if is_orphaned(run.lease, holder):
        ended = on_lost_attempt(task, run, PROCESS_ENDED, now)
        return ended.because(f"the process of attempt {run.attempt} had ended")
    if run.lease.holder == holder and not runs_here:
        ended = on_lost_attempt(task, run, RESULT_LOST, now)
        return ended.because(f"the result of attempt {run.attempt} could not be stored")
    return None
