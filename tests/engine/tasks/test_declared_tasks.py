"""Schedules declared in code, and how the stored tasks are brought in line with them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import BaseModel

from cloudsched import App, Schedule, TaskStatus
from cloudsched.engine.tasks.declared_tasks import Action, Change
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import Simulation


class Report(BaseModel):
    name: str = "all"


def declaring(schedule: object = "every weekday at 9:00", **options: object) -> App:
    """Return an app with one declared task, `report`."""
    app = App()

    @app.scheduled(schedule, **options)  # type: ignore[arg-type]
    def report(report: Report) -> str:
        return report.name

    return app


def compare(app: App, *, prunes: bool = False) -> list[Change]:
    return app.declared_tasks().compare(list(app.registry.declarations.values()), ("system",), prunes=prunes)


def test_a_declared_task_exists_at_once_and_runs() -> None:
    """In a simulation the task is there when it opens, and runs when its words say, in its zone."""
    app = declaring(timezone="Europe/Paris", payload=Report(name="sales"))
    with Simulation(app) as sim:
        task = app.get("report")
        assert (task.owner, task.handler, task.timezone) == ("system", "report", "Europe/Paris")
        sim.advance(timedelta(days=7))
        contents = [(each.content, each.scheduled_for.hour) for each in sim.executions("report")]
        assert contents == [("sales", 8)] * 5


@pytest.mark.parametrize(
    "schedule",
    ["every weekday at 9:00", "0 9 * * 1-5", "every 2 hours", timedelta(minutes=90), Schedule.every(timedelta(days=3))],
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


def test_a_changed_declaration_edits_its_task() -> None:
    """Schedule and payload follow the code; the change names what differs, and is made once."""
    app = declaring()
    with Simulation(app):
        app.registry.declarations.clear()
        other = declaring("0 7 * * *", payload={"name": "sales"})
        app.registry.declarations.update(other.registry.declarations)
        (change,) = compare(app)
        assert change.action is Action.UPDATE
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
        app.registry.declarations.clear()
        declared = app.declared_tasks()
        declared.apply(compare(app))
        assert app.get("report").status is TaskStatus.PAUSED
        assert compare(app) == []
        declared.apply(compare(app, prunes=True))
        assert [task.id for task in app.tasks().items] == [own.id]


def test_a_task_that_somebody_created_is_never_overwritten() -> None:
    """A declaration with the id of such a task is refused, and the task stays as it is."""
    app = App()

    @app.handler("report")
    def report(report: Report) -> str:
        return report.name

    with Simulation(app):
        before = app.create(id="report", handler=report, schedule="every day at 9")
        app.scheduled("every day at 10")(report)
        with pytest.raises(InvalidInput, match="did not declare"):
            app.apply_declarations()
        assert app.get("report") == before


def test_another_name_leaves_these_tasks_alone() -> None:
    """Two services that share a store, under different names, neither prune nor edit each other's tasks."""
    app = declaring()
    with Simulation(app):
        assert app.declared_tasks("other").compare([], ("system",), prunes=True) == []
        with pytest.raises(InvalidInput, match="did not declare"):
            app.declared_tasks("other").compare(list(app.registry.declarations.values()))


def test_a_handler_may_have_several_schedules() -> None:
    """Each has its own id; two with the same id are a mistake at import."""
    app = App()

    @app.scheduled("every day at 9")
    @app.scheduled("every day at 17", id="evening")
    @app.handler("daily")
    def report() -> None: ...

    assert set(app.registry.declarations) == {"daily", "evening"}
    with pytest.raises(Misconfigured, match="another one with the id"):
        app.scheduled("every day at 12")(report)
    with pytest.raises(Misconfigured, match="cannot be a task's id"):
        app.scheduled("every day at 12", id="a b")(report)
    with pytest.raises(Misconfigured, match="give words"):
        app.scheduled(5, id="five")(report)  # type: ignore[arg-type]


def test_words_that_are_not_understood_store_nothing() -> None:
    """All declarations are read before the first is stored."""
    app = declaring()
    with Simulation(App()) as sim:
        app.scheduled("every blue moon", id="bad")(next(iter(app.registry)).function)
        with app.override(sim.app.settings, store=sim.app.store, dispatcher=sim.app.dispatcher, clock=sim.clock):
            with pytest.raises(InvalidInput):
                app.apply_declarations()
            assert not app.tasks().items
