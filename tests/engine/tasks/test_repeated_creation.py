"""A creation that is repeated because its response was lost, and one that races a deletion of the same id."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE

from cloudsched import App, Schedule, Task, TaskStatus
from cloudsched.domain.transitions.commit import VersionedTask
from cloudsched.domain.transitions.task_draft import TaskDraft
from cloudsched.errors import InvalidInput, KeyReused, NotFound
from cloudsched.testing import START, Simulation

SOON = START + MINUTE


@pytest.fixture
def app(app: App) -> App:
    app.container.registry.register("work")(lambda: "done")
    return app


def draft(**fields: object) -> TaskDraft:
    """Return a task of ada's that is due in a minute."""
    usual = {"id": "t", "owner": "ada", "title": "Work", "handler": "work", "schedule": Schedule.once(SOON)}
    return TaskDraft.of(**(usual | fields))


@pytest.mark.parametrize("task_id", ["t", None], ids=["deleted", "no id"])
def test_a_first_creation_in_the_past_is_still_refused(sim: Simulation, task_id: str | None) -> None:
    """If no task has that id, the request repeats nothing, so the usual check applies and nothing is stored."""
    sim.app.put(draft())
    sim.app.delete("t")
    sim.advance(HOUR)
    with pytest.raises(InvalidInput, match="in the past"):
        sim.app.put(draft(id=task_id))
    assert not sim.app.tasks().items


def test_a_creation_that_races_a_deletion_creates_the_task(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the existing task is deleted between being found and being edited, the draft becomes a new task."""
    sim.app.put(draft())
    load, seen = app.container.store.load, list[str]()

    def delete_after_first_load(task_id: str) -> VersionedTask | None:
        stored = load(task_id)
        if not seen:
            seen.append(task_id)
            app.delete("t")
        return stored

    monkeypatch.setattr(app.container.store, "load", delete_after_first_load)
    task, is_new = sim.app.put(draft(title="New"))
    assert (is_new, task.title, app.get("t").title) == (True, "New", "New")


def test_a_refused_authorization_is_not_taken_for_a_deletion(sim: Simulation) -> None:
    """The error of the authorization check is raised, and the existing task is not changed."""
    sim.app.put(draft())

    def refuse(task: Task) -> None:
        raise NotFound("task", task.id)

    with pytest.raises(NotFound):
        sim.app.limit(refuse).put(draft(title="New"))
    assert sim.app.get("t").title == "Work"


@pytest.mark.parametrize("words", ["in 2 seconds", "PT2S", "today at 0:30", "every 10 minutes until today at 0:35"])
def test_a_call_that_is_repeated_changes_nothing(sim: Simulation, words: str) -> None:
    """`App.create` with an id of one's own returns its task as it is, whatever its words would mean by now."""
    fields: dict[str, Any] = {"id": "t", "handler": "work", "owner": "ada", "schedule": words}
    first = sim.app.create(**fields)
    sim.advance(HOUR)
    runs = sim.executions("t")
    assert runs
    sim.app.update("t", description="Edited")
    writes = sim.counts.writes
    assert sim.app.create(**fields) == sim.app.get("t")
    assert sim.app.create(TaskDraft.of(id="t", owner="ada", title="Work", handler="work")).title == "Work"
    assert sim.counts.writes == writes + 1  # another creation, which is an edit
    sim.advance(HOUR)
    assert (sim.executions("t"), sim.app.get("t").created_at) == (runs, first.created_at)


def test_a_draft_that_is_created_again_undoes_no_edit(sim: Simulation) -> None:
    """Also one that Python has made, with a schedule of its own."""
    sim.app.create(draft())
    edited = sim.app.update("t", title="Edited")
    assert sim.app.create(draft()) == edited
    assert sim.app.create(draft(priority="HIGH")).title == "Work"


def test_a_repetition_sends_what_the_first_call_could_not(
    sim: Simulation, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process has died between its commit and its dispatch, the repeated call sends that."""
    with monkeypatch.context() as patch:
        patch.setattr(app.container.engine.sender, "send", _die)
        with pytest.raises(KeyboardInterrupt):
            app.create(id="t", handler="work", schedule="in 2 seconds")
    assert app.create(id="t", handler="work", schedule="in 2 seconds").status is TaskStatus.ACTIVE
    assert len(sim.pending()) == 1


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_key_makes_one_task_that_runs_once(sim: Simulation, app: App) -> None:
    """However often it is asked, also once the run has ended; at once, whatever lead schedules need."""
    first = app.run_now("work", owner="ada", idempotency_key="größer als 1 %")
    again = app.run_now("work", owner="ada", idempotency_key="größer als 1 %")
    sim.advance(HOUR)
    late = app.run_now("work", owner="ada", idempotency_key="größer als 1 %")
    assert {first.id, again.id, late.id} == {first.id}
    assert late.status is TaskStatus.COMPLETED
    assert len(sim.executions(first.id)) == 1
    assert app.run_now("work", owner="ada", idempotency_key="another").id != first.id
    with pytest.raises(InvalidInput, match="idempotency_key"):
        app.run_now("work", id="mine", idempotency_key="k")


@pytest.mark.usefixtures("sim")
def test_a_draft_with_a_key_is_created_once(app: App) -> None:
    """As its fields are."""
    made = {app.create(draft(id=None), idempotency_key="k").id for _ in range(2)}
    assert len(made) == 1
    with pytest.raises(KeyReused):
        app.create(draft(id=None, title="Other"), idempotency_key="k")
    assert len(app.tasks().items) == len(made)
