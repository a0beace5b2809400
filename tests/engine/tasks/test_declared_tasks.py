"""Schedules declared in code, and how the stored tasks are brought in line with them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Literal

import pytest
from pydantic import BaseModel
from tests.engine.harness import DAY, MINUTE

from cloudsched import App, Schedule, TaskStatus
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.engine.handlers.registry import Declaration
from cloudsched.engine.tasks.declared_tasks import Change, DeclaredAction
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import Simulation


class Report(BaseModel):
    name: str = "all"


def declaring(schedule: object = "every weekday at 9:00", **options: object) -> App:
    app = App()

    @app.scheduled(schedule, **options)  # type: ignore[arg-type]
    def report(report: Report) -> str:
        return report.name

    return app


def declarations(app: App) -> dict[str, Declaration]:
    """Return what the app's code declares; a test changes it as another version of the code would."""
    return app.container.registry.registrations.declarations


def compare(app: App, *, prunes: bool = False) -> list[Change]:
    return app.declared_tasks().compare(
        list(declarations(app).values()), ("system",), gone=DeclaredAction.DELETE if prunes else DeclaredAction.PAUSE
    )


def test_a_declared_task_exists_at_once_and_runs() -> None:
    """In a simulation the task is there when it opens, and runs when its words say, in its zone."""
    app = declaring(timezone="Europe/Paris", payload=Report(name="sales"))
    with Simulation(app) as sim:
        task = app.get("report")
        assert (task.owner, task.handler, task.timezone) == ("system", "report", "Europe/Paris")
        sim.advance(7 * DAY)
        contents = [(each.content, each.scheduled_for.hour) for each in sim.executions("report")]
        assert contents == [("sales", 8)] * 5


@pytest.mark.parametrize(
    "schedule",
    [
        "every weekday at 9:00",
        "0 9 * * 1-5",
        "every 2 hours",
        Schedule.every(90 * MINUTE),
        Schedule.every(3 * DAY),
    ],
    ids=str,
)
def test_a_redeployment_that_changes_nothing_writes_nothing(schedule: object) -> None:
    """Whatever notation the code uses, a second comparison, days later, finds no difference."""
    app = declaring(schedule)
    with Simulation(app) as sim:
        sim.advance(timedelta(days=3, hours=5))
        stored, writes = app.get("report"), sim.counts.writes
        assert compare(app) == []
        app.apply_declarations()
        assert app.get("report") == stored
        assert sim.counts.writes == writes


@pytest.mark.parametrize("words", ["in 2 seconds", "PT2S", "every 2 days"])
def test_words_mean_the_same_at_each_deployment(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """They count from the instant at which they were read first, on a clock that goes on meanwhile."""
    app = declaring("every weekday at 9:00")
    with Simulation(app) as sim:
        now = sim.app.container.clock.now
        ticks = count(900_000, step=60_000)
        monkeypatch.setattr(
            sim.app.container.clock, "now", lambda: now() + timedelta(microseconds=next(ticks)), raising=False
        )
        app.scheduled(words, id="words")(lambda: None)
        app.apply_declarations()
        assert compare(app) == []
        sim.advance(MINUTE)
        assert compare(app) == []


def test_a_changed_declaration_edits_its_task() -> None:
    """Schedule and payload follow the code; the change names what differs, and is made once."""
    app = declaring()
    with Simulation(app):
        declarations(app).clear()
        other = declaring("0 7 * * *", payload={"name": "sales"})
        declarations(app).update(declarations(other))
        (change,) = compare(app)
        assert change.action is DeclaredAction.UPDATE
        assert "schedule:" in change.detail
        assert "payload" in change.detail
        app.apply_declarations()
        assert app.get("report").payload == {"name": "sales"}
        assert compare(app) == []


def test_what_is_gone_from_the_code_is_paused_or_deleted() -> None:
    """Paused by default, deleted if asked to prune; a task that somebody created stays as it is."""
    app = declaring()
    with Simulation(app):
        own = app.create(handler="report", schedule="every day at 9")
        declarations(app).clear()
        declared = app.declared_tasks()
        declared.apply(compare(app))
        assert app.get("report").status is TaskStatus.PAUSED
        assert compare(app) == []
        declared.apply(compare(app, prunes=True))
        assert [task.id for task in app.tasks().items] == [own.id]


def test_another_name_leaves_these_tasks_alone() -> None:
    """Two services that share a store, under different names, neither prune nor edit each other's tasks."""
    app = declaring()
    with Simulation(app):
        assert app.declared_tasks("other").compare([], ("system",), gone=DeclaredAction.DELETE) == []
        with pytest.raises(InvalidInput, match="did not declare"):
            app.declared_tasks("other").compare(list(declarations(app).values()))


def test_a_handler_may_have_several_schedules() -> None:
    """Each has its own id; two with the same id are a mistake at import."""
    app = App()

    @app.scheduled("every day at 9")
    @app.scheduled("every day at 17", id="evening")
    @app.handler("daily")
    def report() -> None: ...

    assert set(declarations(app)) == {"daily", "evening"}
    with pytest.raises(Misconfigured, match="another one with the id"):
        app.scheduled("every day at 12")(report)
    with pytest.raises(Misconfigured, match="cannot be a task's id"):
        app.scheduled("every day at 12", id="a b")(report)
    with pytest.raises(Misconfigured, match="give words"):
        app.scheduled(5, id="five")(report)  # type: ignore[arg-type]


def test_all_faults_of_a_declaration_are_told_at_once() -> None:
    """Words that are not understood hide neither a zone nor a payload."""
    app = declaring()
    with Simulation(app):
        declared = declarations(app)["report"]
        wrong = replace(declared, schedule="every blursday", timezone="Mars/Base", payload={"name": 5})
        with pytest.raises(InvalidInput) as caught:
            list(app.declared_tasks().compare_one(wrong))
    assert {each.field for each in caught.value.faults} == {"schedule", "timezone", "payload.name"}


def test_words_that_are_not_understood_store_nothing() -> None:
    """All declarations are read before the first is stored."""
    app = declaring()
    with Simulation(App()) as sim:
        app.scheduled("every blue moon", id="bad")(next(iter(app.container.registry)).function)
        with app.override(
            sim.app.container.settings,
            store=sim.app.container.store,
            dispatcher=sim.app.container.dispatcher,
            clock=sim.clock,
        ):
            with pytest.raises(InvalidInput):
                app.apply_declarations()
            assert not app.tasks().items


def forget(app: App) -> dict[str, Declaration]:
    """Apply the code without its declarations; return them."""
    known = dict(declarations(app))
    declarations(app).clear()
    app.apply_declarations(["system"])
    return known


def test_a_declaration_that_comes_back_resumes_its_task() -> None:
    """What `apply` paused because the declaration was gone runs again when it is there again, changed or not."""
    app = declaring("every day at 9")
    with Simulation(app) as sim:
        known = forget(app)
        sim.advance(3 * DAY)
        assert app.get("report").message == "Its declaration is gone from the code."
        assert sim.executions("report") == []
        declarations(app)["report"] = replace(known["report"], payload={"name": "sales"})
        assert [change.action for change in compare(app)] == [DeclaredAction.UPDATE, DeclaredAction.RESUME]
        app.apply_declarations()
        assert compare(app) == []
        sim.advance(2 * DAY)
        assert [each.content for each in sim.executions("report")] == ["sales", "sales"]


@pytest.mark.parametrize("moment", ["before", "while it is gone", "between comparison and change"])
def test_a_pause_by_a_person_outlives_the_return_of_a_declaration(moment: str) -> None:
    """Whenever somebody pauses the task themselves, only they resume it."""
    app = declaring("every day at 9")
    with Simulation(app):
        if moment == "before":
            app.pause("report")
        known = forget(app)
        if moment == "while it is gone":
            app.pause("report")
        declarations(app).update(known)
        changes = compare(app)
        app.pause("report")
        app.declared_tasks().apply(changes)
        assert app.get("report").status is TaskStatus.PAUSED
        assert app.get("report").message == "Paused by the app's own code."
        assert compare(app) == []
        app.resume("report")
        assert compare(app) == []


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("commit_number", [1, 2, 3, 4])
def test_a_killed_apply_is_continued_by_the_next(commit_number: int, is_after: bool) -> None:  # noqa: FBT001
    """Wherever the process dies, before or after a commit, running the command again brings all tasks in line."""
    app = App()

    @app.scheduled("every day at 9", id="changed")
    @app.scheduled("every day at 9", id="old")
    @app.scheduled("every day at 9", id="back")
    @app.handler("report")
    def report() -> None: ...

    with closing(SqliteStore()) as store, Simulation(app, store=store):
        back = declarations(app).pop("back")
        app.apply_declarations()
        del declarations(app)["old"], declarations(app)["changed"]
        declarations(app)["back"] = back
        app.scheduled("every day at 10", id="changed")(report)
        app.scheduled("every day at 11", id="new")(report)
        made, commit = list[int](), store.commit

        def commit_until_killed(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - whatever a store takes
            made.append(1)
            if len(made) == commit_number and not is_after:
                raise Killed
            version = commit(*arguments, **options)
            if len(made) == commit_number:
                raise Killed
            return version

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "commit", commit_until_killed)
            with pytest.raises(Killed):
                app.apply_declarations()
        app.apply_declarations()
        assert compare(app) == []
        stored = {task.id: (task.status.value, "9:00" in task.schedule.describe()) for task in app.tasks().items}
        assert stored == {
            "back": ("ACTIVE", True),
            "changed": ("ACTIVE", False),
            "new": ("ACTIVE", False),
            "old": ("PAUSED", True),
        }


@pytest.mark.parametrize("gone", [DeclaredAction.PAUSE, DeclaredAction.DELETE])
def test_two_applies_at_once_change_the_tasks_once(gone: Literal[DeclaredAction.PAUSE, DeclaredAction.DELETE]) -> None:
    """Both compare before either changes anything; the second one finds its work done, and fails at nothing."""
    app = declaring("every day at 9", id="old")
    with Simulation(app):
        declarations(app).clear()
        app.scheduled("every day at 10", id="new")(next(iter(app.container.registry)).function)
        both = [app.declared_tasks().compare(list(declarations(app).values()), gone=gone) for _ in range(2)]
        assert [change.action for change in both[1]] == [DeclaredAction.CREATE, gone]
        for changes in both:
            app.declared_tasks().apply(changes)
        assert app.get("new").revision == 1
        assert sorted(task.id for task in app.tasks().items if task.is_active) == ["new"]


def test_a_task_that_somebody_creates_meanwhile_stays_theirs() -> None:
    """Between comparison and change, too, and the error says which id it is."""
    app = declaring("every day at 9")
    known = dict(declarations(app))
    declarations(app).clear()
    with Simulation(app):
        declarations(app).update(known)
        changes = compare(app)
        before = app.create(id="report", handler="report", schedule="every day at 12")
        with pytest.raises(InvalidInput, match="did not declare: 'report'"):
            app.declared_tasks().apply(changes)
        assert app.get("report") == before
