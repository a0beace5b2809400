"""A lock is released by the end of its run only, and handed on by a commit first and a dispatch after it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.engine.harness import DAY, MINUTE, SECOND
from tests.features.locks.test_locks import waiter
from tests.features.pull.harness import lock_wait_list

from cloudsched import App, Context, Schedule
from cloudsched.domain.control_flow import ControlFlow
from cloudsched.domain.transitions.claim import on_dispatch
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.queue import QueueMessage
from cloudsched.engine.signed_dispatches import parse_dispatch
from cloudsched.errors import VersionConflict
from cloudsched.features.locks.lock import Holder, Lock, WaitFilter, cancel_waits
from cloudsched.features.locks.locks import Locks
from cloudsched.testing import START, Simulation


def test_nothing_that_comes_late_touches_the_lock_of_a_run_in_progress(app: App, sim: Simulation) -> None:
    """A dispatch of an older revision is dropped, and cancelling the wait of the run has no effect.

    A delivery that read the task before the run was claimed conflicts when it asks for the lock afterwards.
    """
    held: list[int] = []

    @app.handler("hold")
    def hold(ctx: Context) -> None:
        assert sim.redeliver(stale).action == "dropped"
        locks = Locks(app.container.store, app.container.engine.sender)
        locks.cancel("door", "t", ctx.execution_id, ctx.now())  # as a late finisher does
        dispatch = parse_dispatch(json.loads(sent.body))
        decision = on_dispatch(before, dispatch, ctx.now(), "theirs")
        assert isinstance(decision, Commit)
        assert decision.effects.run
        run = decision.effects.run.model_copy(update={"lock_key": "door"})
        with pytest.raises(VersionConflict):
            locks.acquire("door", before, run, dispatch, ctx.now())  # as a duplicate does
        held.append(len(app.container.store.locks.load("door").lock.holders))

    app.create(id="t", handler="hold", lock_key="door")
    (stale,) = sim.pending()
    before = app.update("t", title="New")
    (sent,) = (each for each in sim.pending() if each != stale)
    sim.advance(10 * MINUTE)
    assert app.container.store.locks.load("door").lock.is_empty
    assert held == [1]


@pytest.fixture
def grants(app: App, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """For each dispatch that grants the lock ``k``, the waiters that were stored as notified when it was created."""
    found: list[list[str]] = []
    create: Callable[[QueueMessage], None] = sim.queue.create

    def note_and_create(message: QueueMessage) -> None:
        if b"lockKey" in message.body:
            waiters = app.container.store.locks.load("k").lock.waiters
            found.append([one.task_id for one in waiters if one.notified_at is not None])
        create(message)

    monkeypatch.setattr(sim.queue, "create", note_and_create)
    return found


def test_a_waiter_is_notified_only_after_an_expired_run_was_closed(
    app: App, sim: Simulation, grants: list[list[str]]
) -> None:
    """When a dispatch of the next waiter exists, the end of the lapsed run and its grant are stored."""

    @app.handler("hold", retry=False, expected_duration=MINUTE)
    def hold(ctx: Context) -> None:
        if ctx.task.id == "dies":
            sim.queue.deliver_due()  # the second task asks for the lock, and waits
            raise ControlFlow  # the process ends, and its lease goes on

    for name in ("dies", "waits"):
        app.create(id=name, handler="hold", schedule=Schedule.once(sim.now), lock_key="k")
    with pytest.raises(ControlFlow):
        sim.queue.deliver_due()
    sim.clock.advance(3 * MINUTE)
    app.sweep()
    repair = next(each for each in sim.pending() if b'"dies"' in each.body)
    assert sim.redeliver(repair).action == "recorded"
    assert grants[0] == ["waits"]
    assert [each.status for each in sim.executions("dies")] == ["TIMED_OUT"]
    sim.queue.deliver_due()
    assert [each.status for each in sim.executions("waits")] == ["SUCCEEDED"]


def test_a_grant_of_an_edited_task_is_taken_back_at_once(app: App, sim: Simulation) -> None:
    """The process that edited it died before it removed the wait; the stale dispatch removes it, and the next runs."""
    order: list[str] = []
    wait_lists: list[list[str]] = []

    @app.handler("hold")
    def hold(ctx: Context) -> None:
        order.append(ctx.task.id)
        if ctx.task.id == "first":
            sim.clock.advance(SECOND)
            sim.queue.deliver_due()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Locks, "cancel_task", lambda *_: None)
                app.update("edited", jitter=DAY)  # the same occurrence, at another time
            wait_lists.append(lock_wait_list(sim))

    for name in ("first", "edited", "next"):
        app.create(id=name, handler="hold", schedule=Schedule.once(sim.now), lock_key="k")
        sim.clock.advance(timedelta(milliseconds=1))
    sim.queue.deliver_due()
    assert wait_lists == [["edited", "next"]]
    assert order == ["first", "next"]


def test_a_stale_grant_does_not_remove_the_wait_of_a_newer_revision() -> None:
    """Only the wait of the dispatch's own revision goes: the edited task has asked for the lock anew."""
    lock = Lock(key="k", holders=(Holder(task_id="t", execution_id="e", until=START + MINUTE),), waiters=(waiter(1),))
    older, same = (WaitFilter("t1", "e", waiter(1).revision - age) for age in (1, 0))
    assert cancel_waits(lock, older, START) == (lock, (), ())
    assert cancel_waits(lock, same, START)[0].waiters == ()
