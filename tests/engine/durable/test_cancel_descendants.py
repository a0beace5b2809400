"""What cancelling or deleting a task stops below it: all that is under way, wherever it was left behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.engine.harness import DAY, Create, register_work_handler

from cloudsched import App, Context, Schedule
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import StoreUnavailable
from cloudsched.testing import START, Simulation

MONTHLY = Schedule.every(30 * DAY, start=START)


@pytest.fixture
def app(app: App) -> App:
    """Return an app with calls that take long, fail, and leave others behind."""

    @app.handler("long")
    def long(ctx: Context) -> None:
        ctx.sleep(10 * DAY)

    @app.handler("bad", retry=False)
    def bad() -> None:
        raise ConnectionError("no")

    @app.handler("mid")
    def mid(ctx: Context) -> None:
        ctx.call("long")

    return app


def leave_unawaited_call(ctx: Context) -> None:
    ctx.call("long")


def call_next_to_failed_call(ctx: Context) -> None:
    ctx.gather(ctx.call("long"), ctx.call("bad").result())


def call_under_finished_call(ctx: Context) -> None:
    ctx.call("mid").result()
    ctx.sleep(20 * DAY)


def call_under_two_finished_calls(ctx: Context) -> None:
    ctx.call("mid").result()


@pytest.mark.parametrize("verb", ["cancel", "delete"])
@pytest.mark.parametrize(
    "call", [leave_unawaited_call, call_next_to_failed_call, call_under_finished_call, call_under_two_finished_calls]
)
def test_all_open_descendants_are_cancelled(
    app: App, sim: Simulation, create: Create, call: Callable[[Context], None], verb: str
) -> None:
    """This includes calls made by an execution, or by a call, that has ended."""
    register_work_handler(app, call)
    task = create(schedule=MONTHLY)
    sim.advance(DAY)
    tree = app.tree(task.id)
    branches = [*tree.children, *(leaf for branch in tree.children for leaf in branch.children)]
    (running,) = [each.task for each in branches if each.task.handler == "long"]
    assert not running.has_ended
    getattr(app, verb)(task.id)
    assert app.get(running.id).status == "CANCELLED"
    if verb == "cancel":
        assert not app.get(task.id).deferred


@pytest.mark.parametrize("verb", ["cancel", "delete"])
@pytest.mark.parametrize("fails", range(5))
def test_a_call_is_cancelled_even_if_the_commit_that_recorded_it_failed_before(
    app: App, sim: Simulation, create: Create, monkeypatch: pytest.MonkeyPatch, fails: int, verb: str
) -> None:
    """The commit that records it fails some times, and it goes in with the suspension that follows from that."""
    commit, left = SqliteStore.commit, [None] * fails

    def commit_and_fail_once(store: SqliteStore, change: Commit) -> VersionedTask:
        if change.entries and left:
            left.pop()
            raise StoreUnavailable("The store", "is away")
        return commit(store, change)

    monkeypatch.setattr(SqliteStore, "commit", commit_and_fail_once)
    register_work_handler(app, lambda ctx: ctx.call("long").result())
    task = create()
    sim.advance(DAY)
    assert not left
    (below,) = app.tree(task.id).children
    getattr(app, verb)(task.id)
    assert app.get(below.task.id).status == "CANCELLED"
