"""What a dispatch may do, decided from the task, the dispatch and the present instant alone."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from cloudsched import Done, Schedule, Task, TaskDraft
from cloudsched.domain.documents.execution import Run, WaitingFor
from cloudsched.domain.documents.task import MAX_OPEN_RUNS
from cloudsched.domain.transitions import lifecycle
from cloudsched.domain.transitions.claim import DeliveryResult, Hop, on_dispatch
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.edits import NO_LEAD, edit_or_restart, new_task
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.lease import on_heartbeat
from cloudsched.domain.transitions.outcome import Retry
from cloudsched.domain.transitions.suspend import on_journal_append
from cloudsched.domain.transitions.wakeups import Dispatch, executor_wakeups
from cloudsched.engine.signed_dispatches import dispatch_or_hop
from cloudsched.features.locks.option import has_missed_grant
from cloudsched.testing import START

HOUR = timedelta(hours=1)
LEASE = timedelta(minutes=5)
HOURLY = Schedule(rrule="FREQ=HOURLY", dtstart="2027-01-01T01:00:00")
AT_ONE = START + HOUR
CHANCE = Random(0)  # noqa: S311 - repeatable


def make_draft(**more: Any) -> TaskDraft:
    return TaskDraft.of(**{"id": "t", "owner": "ada", "handler": "h", "schedule": HOURLY, **more})


def plan_task(**more: Any) -> tuple[Task, Dispatch]:
    """Return a task, and the dispatch for its first occurrence, at one o'clock."""
    task = new_task(make_draft(**more), START)
    (wake,) = executor_wakeups(task)
    return task, dispatch_or_hop(task, wake, START)


def claim_run(**more: Any) -> tuple[Task, Dispatch]:
    """Return a task whose first occurrence is run under the lease "mine" until five past one."""
    task, dispatch = plan_task(**more)
    decision = on_dispatch(task, dispatch, AT_ONE, "mine")
    assert isinstance(decision, Commit)
    assert decision.effects.run
    return decision.task, dispatch


@pytest.mark.parametrize("change", ["edit", "pause", "cancel", "delete", "pause and resume"])
def test_a_dispatch_of_an_older_revision_runs_nothing(change: str) -> None:
    """Each of these changes increments the revision, which invalidates dispatches already in the queue."""
    task, dispatch = plan_task()
    paused = lifecycle.pause(task, START, paused_by=None).task
    later = {
        "edit": edit_or_restart(task, make_draft(title="New"), START, NO_LEAD, defined_by=None).task,
        "pause": paused,
        "cancel": lifecycle.cancel(task, START).task,
        "delete": lifecycle.delete(task, START).task,
        "pause and resume": lifecycle.resume(paused, START).task,
    }[change]
    assert isinstance(on_dispatch(later, dispatch, AT_ONE, "mine"), DeliveryResult)


def test_an_expired_lease_is_followed_by_the_next_attempt() -> None:
    """The lost attempt is in the record as TIMED_OUT, and the same commit claims the next one."""
    task, dispatch = claim_run()
    decision = on_dispatch(task, dispatch, AT_ONE + LEASE, "theirs")
    assert isinstance(decision, Commit)
    assert decision.effects.run
    assert (decision.effects.run.attempt, decision.effects.run.attempts[0].status) == (2, "TIMED_OUT")
    (record,) = decision.executions
    assert (record.status, record.id) == ("RETRYING", dispatch.execution_id)


@pytest.mark.parametrize("outcome", [Done(), Retry("x")])
def test_only_the_holder_of_the_lease_ends_an_attempt(outcome: Done | Retry) -> None:
    """A holder whose run was taken over or has ended changes nothing, by its result or by a heartbeat."""
    task, dispatch = claim_run()
    taken = on_dispatch(task, dispatch, AT_ONE + LEASE, "theirs")
    assert isinstance(taken, Commit)
    for other in (taken.task, task.model_copy(update={"runs": ()})):
        assert on_outcome(other, dispatch.execution_id, "mine", AttemptReport(outcome), AT_ONE, CHANCE) is None
        assert on_heartbeat(other, dispatch.execution_id, "mine", (), AT_ONE) is None
        assert on_journal_append(other, dispatch.execution_id, "mine", (), 0, AT_ONE) is None
    assert on_outcome(task, dispatch.execution_id, "mine", AttemptReport(outcome), AT_ONE + 9 * LEASE, CHANCE)


def test_the_number_of_open_runs_is_limited() -> None:
    """If its runs never end, the next one waits for a later instant, so that the task's document stays small."""
    task, dispatch = claim_run(overlap="allow")
    run = task.runs[0]
    runs = tuple(run.model_copy(update={"execution_id": f"e{number}"}) for number in range(MAX_OPEN_RUNS))
    full = task.model_copy(update={"runs": runs})
    later = dispatch._replace(scheduled_for=START + 2 * HOUR, execution_id="20270101T020000Z")
    now = START + 2 * HOUR
    decision = on_dispatch(full, later, now, "mine")
    assert isinstance(decision, Hop)
    assert decision.until > now


@pytest.mark.parametrize(
    ("waiting_for", "is_in_turn", "late", "is_missed"),
    [
        (WaitingFor.WORKER, False, HOUR, True),
        (WaitingFor.WORKER, False, timedelta(0), False),  # the dispatch of the occurrence itself
        (WaitingFor.WORKER, True, HOUR, False),
        (None, False, HOUR, False),
    ],
)
def test_a_turn_at_a_lock_is_missed_only_by_a_run_for_workers(
    waiting_for: WaitingFor | None, late: timedelta, *, is_in_turn: bool, is_missed: bool
) -> None:
    """The dispatch at the end of the grant finds the run still waiting for a worker, and its grant over."""
    _, dispatch = plan_task()
    turn_until = AT_ONE + HOUR if is_in_turn else None
    run = Run(
        execution_id=dispatch.execution_id,
        scheduled_for=AT_ONE,
        due_at=AT_ONE,
        waiting_for=waiting_for,
        turn_until=turn_until,
    )
    assert has_missed_grant(run, dispatch._replace(due_at=AT_ONE + late)) is is_missed


def test_a_deleted_task_is_left_to_its_purge() -> None:
    """It would miss what a dispatch of any revision writes meanwhile: a claim, or the record of a lease that ended."""
    task, dispatch = claim_run()
    gone = lifecycle.delete(task, AT_ONE).task
    for each in (dispatch, dispatch._replace(revision=gone.revision)):
        for until in (AT_ONE, AT_ONE + LEASE):
            assert isinstance(on_dispatch(gone, each, until, "theirs"), DeliveryResult)
