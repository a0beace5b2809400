"""What a system's own task need not say: its title and its owner; and handlers that are given as functions."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from tests.engine.harness import MINUTE, only_run

from cloudsched import App, Context, TaskDraft
from cloudsched.errors import Forbidden, InvalidInput
from cloudsched.testing import Simulation
from cloudsched.web.auth.roles import Caller, Right, Role


class Note(BaseModel):
    text: str


@pytest.fixture
def app(app: App) -> App:
    @app.handler("send-note")
    def note(payload: Note) -> str:
        return payload.text

    @app.handler("tidy")
    def tidy(ctx: Context) -> Any:  # noqa: ANN401 - any JSON
        return ctx.call(note, Note(text="by function")).result()

    return app


def test_a_task_needs_only_its_handler(app: App) -> None:
    """It has the handler's name as its title, and belongs to the system."""
    with Simulation(app) as sim:
        task = app.create(handler="tidy")
        assert (task.title, task.owner) == ("tidy", "system")
        sim.advance(6 * MINUTE)
        record = only_run(sim, task)
        assert record.content == "by function"
        assert app.update(task.id, title="Tidy up").title == "Tidy up"
        assert app.update(task.id, title=None).title == "tidy"


def test_a_wrong_handler_is_still_what_is_reported() -> None:
    """A title that cannot be made from it is no second error."""
    for wrong in ({}, {"handler": 5}, {"handler": "x" * 300}):
        with pytest.raises(InvalidInput) as refused:
            TaskDraft.of(**wrong)
        assert refused.value.field == "handler"


def test_a_function_stands_for_its_handler(app: App) -> None:
    """In app.create and in ctx.call; the stored task has the name."""
    function = app.container.registry.get("tidy").function
    with Simulation(app):
        assert app.create(handler=function).handler == "tidy"
        with pytest.raises(InvalidInput, match="handler: is the function 'unknown', which is not registered"):
            app.create(handler=unknown)
        app.handler("tidy-too")(function)
        with pytest.raises(InvalidInput, match=r"has several names .Give one of its names: tidy, tidy-too"):
            app.create(handler=function)


def unknown() -> None: ...


def test_no_user_can_be_the_system() -> None:
    """Else a user of that name would see the system's tasks."""
    with pytest.raises(Forbidden, match="'system' owns what belongs to no user"):
        Caller("user:system", Role.USER, "system").require(Right.READ)
    Caller("key:w", Role.WORKER, "system").require(Right.WORK)
