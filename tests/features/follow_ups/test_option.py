"""Follow-ups: `Done(content, then=[...])` creates tasks in the commit that records the success, or not at all."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from pydantic import BaseModel
from tests.engine.harness import DAY, HOUR, MINUTE, SECOND, create, only_run, register_work_handler

from cloudsched import App, Context, Done, Execution, ExecutionStatus, Task, TaskDraft
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.transitions.commit import Commit, VersionedTask
from cloudsched.domain.transitions.lifecycle import ALLOWED
from cloudsched.engine.execution.call import MAX_FOLLOW_UPS
from cloudsched.errors import NotFound, StoreUnavailable, VersionConflict
from cloudsched.testing import START, Simulation


class Note(BaseModel):
    text: str


def draft(**fields: Any) -> TaskDraft:
    usual: dict[str, Any] = {"owner": "ada", "handler": "note", "payload": {"text": "hi"}}
    return TaskDraft.of(**(usual | fields))


@pytest.fixture
def notes(app: App) -> list[str]:
    """The texts with which the follow-ups' handler was called."""
    found = list[str]()

    @app.handler("note")
    def note(payload: Note) -> None:
        found.append(payload.text)

    return found


def register_follow_ups(app: App, *drafts: TaskDraft | object) -> None:
    """Register ``work``, which gives these follow-ups."""
    register_work_handler(app, lambda _: Done("done", then=list(drafts)))  # type: ignore[arg-type]  # also wrong ones


def run(sim: Simulation, **fields: Any) -> tuple[Task, Execution]:
    task = create(sim.app, **fields)
    sim.advance_to(START)
    record = only_run(sim, task)
    return sim.app.get(task.id), record


def test_a_follow_up_is_created_with_the_success_and_runs_when_it_is_due(app: App, notes: list[str]) -> None:
    """The result is recorded, the follow-up exists at the same instant, and runs by its own schedule."""
    register_follow_ups(
        app, draft(id="n1", schedule=START + 5 * MINUTE), draft(id="n2", owner="bob", schedule=START + 10 * MINUTE)
    )
    with Simulation(app) as sim:
        _, record = run(sim)
        assert (record.status, record.content) == (ExecutionStatus.SUCCEEDED, "done")
        assert [app.get(each).owner for each in ("n1", "n2")] == ["ada", "bob"]
        assert notes == []
        sim.advance(10 * MINUTE)
        assert notes == ["hi", "hi"]


def test_a_follow_up_may_be_due_at_once(app: App, notes: list[str]) -> None:
    """A handler may give its own now, although that has passed when its success is committed."""
    with Simulation(app) as sim:

        def work(ctx: Context) -> Done:
            now = ctx.now()
            sim.clock.advance(30 * SECOND)
            return Done(then=[draft(schedule=now)])

        register_work_handler(app, work)
        _, record = run(sim)
        assert record.status is ExecutionStatus.SUCCEEDED
        sim.advance(MINUTE)
    assert notes == ["hi"]


def test_a_follow_up_with_the_id_of_a_task_edits_it(app: App, notes: list[str]) -> None:
    """As for any creation: the same content changes nothing, other content edits, also a task that has ended."""
    again = draft(id="n1", payload={"text": "new"}, schedule=START + 2 * DAY)
    register_follow_ups(app, again)
    with Simulation(app) as sim:
        old = app.create(draft(id="n1", payload={"text": "old"}, schedule=sim.now + MINUTE))
        create(app, schedule=START + 2 * MINUTE)
        sim.advance_to(START + 2 * MINUTE)
        edited = app.get("n1")
        assert (edited.created_at, edited.payload, edited.revision) == (old.created_at, {"text": "new"}, 2)
        assert edited.status is TaskStatus.ACTIVE
        create(app, id="again", schedule=START + DAY)
        sim.advance_to(START + DAY)
        assert app.get("n1").revision == 2
        sim.advance_to(START + 2 * DAY)
    assert notes == ["old", "new"]


def test_a_handler_may_schedule_its_own_task_again(app: App) -> None:
    """A follow-up with the task's own id edits the task as its success leaves it, in the same commit."""
    calls = list[Any]()

    def work(ctx: Context) -> Done:
        calls.append(ctx.now())
        if len(calls) == 3:
            return Done()
        own = ctx.task
        return Done(then=[draft(id=own.id, title="Again", handler="work", payload={}, schedule=ctx.now() + MINUTE)])

    register_work_handler(app, work)
    with Simulation(app) as sim:
        task, _ = run(sim)
        assert task.status is TaskStatus.ACTIVE
        sim.advance(10 * MINUTE)
        assert calls == [START, START + MINUTE, START + 2 * MINUTE]
        assert app.get(task.id).status is TaskStatus.COMPLETED
        assert len(sim.executions(task.id)) == 3
    assert TaskStatus.ACTIVE in ALLOWED[TaskStatus.COMPLETED]


WRONG: list[tuple[object, str]] = [
    (draft(handler="nothing"), "then.0.handler: there is no handler named 'nothing'"),
    (draft(payload={"text": 5}), "then.0.payload.text"),
    (draft(schedule=START - DAY), "then.0.schedule.at: is in the past"),
    (draft(id="own"), "then.0.id: is that of a task that runs 'work', not 'note'"),
    ({"handler": "note"}, "then.0: is a dict (Give a list of drafts"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[text[:30] for _, text in WRONG])
@pytest.mark.parametrize("pull", [None, "gpu"])
def test_a_refused_follow_up_fails_the_occurrence(
    app: App, notes: list[str], wrong: object, message: str, pull: str | None
) -> None:
    """No attempt follows, since it would give the same; and no other follow-up of it is created."""
    drafts = [wrong, draft(id="fine")]
    register_work_handler(app, lambda _: Done(then=drafts))  # type: ignore[arg-type]  # a mistake
    with Simulation(app) as sim:
        if pull:
            sim.add_worker(pull)
        _, record = run(sim, id="own", pull=pull)
        assert record.status is ExecutionStatus.FAILED
        assert record.attempts[-1].error is not None
        assert message in record.attempts[-1].error.message
        assert record.attempt_count == 1
        with pytest.raises(NotFound):
            app.get("fine")
    assert notes == []


def test_the_id_of_another_owners_task_is_refused(app: App, notes: list[str]) -> None:
    """As for any creation."""
    register_follow_ups(app, draft(id="n1", owner="bob"))
    with Simulation(app) as sim:
        app.create(draft(id="n1", schedule=START + DAY))
        _, record = run(sim)
        assert record.status is ExecutionStatus.FAILED
        assert "then.0.id: is taken" in str(record.attempts[-1].error)
        assert app.get("n1").revision == 1
    assert notes == []


def test_two_follow_ups_cannot_have_one_id(app: App, notes: list[str]) -> None:
    register_follow_ups(app, draft(id="n1"), draft(id="n1"))
    with Simulation(app) as sim:
        _, record = run(sim)
        assert "then.1.id: is 'n1', like that of another one" in str(record.attempts[-1].error)
    assert notes == []


def test_number_and_size_are_bounded(app: App, notes: list[str]) -> None:
    """A commit has limits: the twenty-first follow-up, or a mebibyte of them, is refused."""
    many = [draft() for _ in range(MAX_FOLLOW_UPS + 1)]
    large = [draft(payload={"text": "x" * 120_000}) for _ in range(9)]
    for drafts, message in ((many, "then: has more than 20 tasks"), (large, "then: has 108")):
        register_follow_ups(other := App(), *drafts)
        other.handler("note")(app.container.registry.get("note").function)
        with Simulation(other) as sim:
            _, record = run(sim)
            assert message in str(record.attempts[-1].error)
    register_follow_ups(app, *many[1:])
    with Simulation(app) as sim:
        _, record = run(sim)
        assert record.status is ExecutionStatus.SUCCEEDED
        sim.advance(5 * MINUTE)
    assert len(notes) == MAX_FOLLOW_UPS


class Flaky(SqliteStore):
    """A store whose commits with follow-ups fail a number of times, before or after they took effect."""

    def __init__(self, *failures: type[Exception], takes_effect: bool = False) -> None:
        super().__init__()
        self.failures = list(failures)
        self.takes_effect = takes_effect
        self.commits_with_others = 0

    def commit(self, commit: Commit) -> VersionedTask:
        if commit.others:
            self.commits_with_others += 1
            if self.failures:
                failure = self.failures.pop(0)
                if self.takes_effect:
                    super().commit(commit)
                raise failure("The store", "its answer was lost") if failure is StoreUnavailable else failure("task")
        return super().commit(commit)


@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize("failure", [StoreUnavailable, VersionConflict])
@pytest.mark.parametrize("pull", [None, "gpu"])
def test_follow_ups_are_created_once_however_often_the_commit_is_tried(
    app: App, notes: list[str], failure: type[Exception], pull: str | None, *, takes_effect: bool
) -> None:
    """The answer is lost, the commit conflicts, the dispatch is delivered again: one follow-up, one run of it."""
    if failure is VersionConflict and takes_effect:
        pytest.skip("a conflict means that it took no effect")
    register_follow_ups(app, draft(schedule=START + 10 * MINUTE))
    with closing(Flaky(failure, failure, takes_effect=takes_effect)) as store, Simulation(app, store=store) as sim:
        if pull:
            sim.add_worker(pull)
        task = create(app, pull=pull)
        sim.advance_to(START + HOUR)
        assert store.commits_with_others >= 1
        assert [each.status for each in sim.executions(task.id)] == [ExecutionStatus.SUCCEEDED]
        assert len(app.tasks().items) == 2
    assert notes == ["hi"]


def test_follow_ups_of_a_task_that_was_deleted_meanwhile_are_dropped(app: App, notes: list[str]) -> None:
    """The success is not recorded, so no follow-up is created."""

    def work(ctx: Context) -> Done:
        app.delete(ctx.task.id)
        return Done(then=[draft(id="n1")])

    register_work_handler(app, work)
    with Simulation(app) as sim:
        create(app)
        sim.advance_to(START + DAY)
        with pytest.raises(NotFound):
            app.get("n1")
    assert notes == []
