"""An attempt fails if the store refuses to commit its outcome, even though every check before the commit passed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from tests.engine.harness import HOUR, MINUTE, create, only_run, register_work_handler

from cloudsched import App, Context
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.engine.handlers.context import truncate_progress
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation


class Narrow(SqliteStore):
    """A store that accepts much less than the limits allow, and refuses with the error that Firestore gives."""

    def commit(self, commit: Commit) -> VersionedTask:
        documents = (commit.task, *commit.executions, *commit.messages, *commit.entries)
        if sum(stored_size(document.to_stored()) for document in documents) > 5_000:
            raise InvalidInput("task", "is not taken by Firestore")
        return super().commit(commit)


def return_much(_: Context) -> str:
    return "x" * 6_000


def notify_much(ctx: Context) -> None:
    ctx.notify("Much", "x" * 6_000)


def fail_after_much(ctx: Context) -> None:
    ctx.replace_progress([truncate_progress(ctx.now(), "x" * 200)] * 30)
    raise ValueError("no")


def wait_after_much(ctx: Context) -> None:
    ctx.replace_progress([truncate_progress(ctx.now(), "x" * 200)] * 30)
    ctx.sleep(MINUTE)


@pytest.mark.parametrize("pull", [None, "gpu"])
@pytest.mark.parametrize("call", [return_much, notify_much, fail_after_much, wait_after_much])
def test_an_outcome_that_the_store_refuses_fails_the_attempt(
    app: App, call: Callable[[Context], object], pull: str | None
) -> None:
    """The failure is recorded at once with the store's error, and the handler is not called again."""
    calls = list[object]()

    def count_and_call(ctx: Context) -> object:
        calls.append(None)
        return call(ctx)

    register_work_handler(app, count_and_call)
    with closing(Narrow()) as store, Simulation(app, store=store) as sim:
        task = create(app, pull=pull)
        if pull:
            sim.add_worker(pull)
        sim.advance(3 * HOUR)
        execution = only_run(sim, task)
    assert execution.status == "FAILED"
    assert execution.error
    assert "is not taken by Firestore" in execution.error.message
    assert len(calls) == 1
