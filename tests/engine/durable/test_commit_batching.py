"""The work of a durable handler between two commits is bounded, so that each commit fits into one request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from pydantic import BaseModel, field_validator
from tests.engine.harness import HOUR, MINUTE, Create, register_work_handler, run_to_end

from cloudsched import App, Context
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.journal import MAX_COMMIT_ENTRIES
from cloudsched.domain.documents.json_limits import stored_size
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.errors import InvalidInput, StepFailed
from cloudsched.testing import Simulation

LARGE = "x" * 16_000
MOST = 2_200_000
"""What one commit may have of entries: two MiB, and the one that went beyond."""


class Strict(BaseModel):
    """A model that accepts no payload, and has a long error message."""

    n: int

    @field_validator("n")
    @classmethod
    def _refuse(cls, _: int) -> int:
        raise ValueError("中" * 1_000)


class Weighed(SqliteStore):
    """A store that remembers how much of a journal each commit brought, and checks that none is before its time."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []
        self.known: set[int] = set()

    def commit(self, commit: Commit) -> VersionedTask:
        committed, entries = super().commit(commit), commit.entries
        if entries:
            assert len(entries) <= MAX_COMMIT_ENTRIES
            self.sizes.append(sum(stored_size(entry.to_stored()) for entry in entries))
            self.known |= {entry.number for entry in entries}
            assert self.known == set(range(1, len(self.known) + 1))
        return committed


@pytest.fixture
def app(app: App) -> App:
    """Return an app with calls that return as much as an entry keeps."""
    app.handler("page")(lambda: LARGE)

    @app.handler("strict")
    def take_strict(_: Strict) -> None: ...

    return app


def gather_many(ctx: Context) -> int:
    return sum(map(len, ctx.gather(*[ctx.call("page") for _ in range(300)])))


def gather_after_too_many_calls(ctx: Context) -> int:
    calls = [ctx.call("page") for _ in range(500)]
    ctx.sleep(5 * MINUTE)
    ctx.call("page").result()
    return sum(map(len, ctx.gather(*calls[:300])))


def make_refused_calls(ctx: Context) -> int:
    for _ in range(600):
        with pytest.raises(InvalidInput):
            ctx.call("strict", {"n": 1})
    ctx.sleep(HOUR)
    return 300 * len(LARGE)


def ask_time_before_step(ctx: Context) -> int:
    times = [ctx.now() for _ in range(4_000)]
    ctx.step("first", lambda: 1)
    return 300 * len(LARGE) if times else 0


@pytest.mark.parametrize(
    "call",
    [
        gather_many,
        gather_after_too_many_calls,
        make_refused_calls,
        ask_time_before_step,
    ],
    ids=lambda call: call.__name__,
)
def test_the_size_of_one_commit_is_bounded(app: App, create: Create, call: Callable[[Context], int]) -> None:
    """Each entry is recorded after the one before it, and all of them are in the record at the end."""
    register_work_handler(app, call)
    with closing(Weighed()) as store, Simulation(app, store=store) as sim:
        task = create(expected_duration=HOUR)
        listed = run_to_end(sim, task)
        execution = app.execution(task.id, listed.id)
    assert (execution.status, execution.content) == ("SUCCEEDED", 300 * len(LARGE)), execution.error
    assert [step.number for step in execution.steps] == sorted(store.known)
    assert max(store.sizes) < MOST


def test_steps_too_large_for_their_record_are_loaded_with_it(app: App, sim: Simulation, create: Create) -> None:
    """Errors and names count as results do; lists say where the steps are."""

    def fail_at_length() -> None:
        raise ValueError("x" * 1000)

    def call(ctx: Context) -> str:
        for _ in range(300):
            with pytest.raises(StepFailed):
                ctx.step("bad", fail_at_length, retry=False)
        return "done"

    register_work_handler(app, call)
    task = create()
    listed = run_to_end(sim, task)
    execution = app.execution(task.id, listed.id)
    assert (len(listed.steps), listed.steps_reference is None) == (0, False)
    assert (len(execution.steps), execution.steps_reference) == (300, None)
    assert execution.model_copy(update={"steps": (), "steps_reference": listed.steps_reference}) == listed
