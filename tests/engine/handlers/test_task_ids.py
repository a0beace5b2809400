"""`@app.handler(..., task_id=...)`: creating a task about the same thing again edits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from cloudsched import App
from cloudsched.domain.documents.task import owner_id_prefix
from cloudsched.errors import InvalidInput, Misconfigured
from cloudsched.testing import Simulation

pytestmark = pytest.mark.usefixtures("sim")


class Order(BaseModel):
    order: str
    note: str = ""


@pytest.fixture(autouse=True)
def _remind(app: App) -> None:
    @app.handler("remind", task_id=lambda payload: f"remind-{payload.order}" if payload.order else None)
    def remind(_: Order) -> None: ...


def test_a_creation_about_the_same_thing_edits_its_task(sim: Simulation) -> None:
    """The id follows from the payload; the same again changes nothing, another payload edits."""
    first = sim.app.create(owner="ada", handler="remind", payload={"order": "7"})
    assert first.id == "remind-7"
    assert sim.app.create(owner="ada", handler="remind", payload={"order": "7"}).revision == 1
    edited = sim.app.create(owner="ada", handler="remind", payload={"order": "7", "note": "new"})
    assert (edited.id, edited.revision, edited.schedule) == ("remind-7", 2, first.schedule)
    assert sim.app.create(owner="ada", handler="remind", payload={"order": "8"}).id == "remind-8"


def test_an_id_from_the_caller_takes_precedence(sim: Simulation) -> None:
    """And a function that returns None leaves the id to chance."""
    wanted: dict[str, Any] = {"owner": "ada", "handler": "remind"}
    assert sim.app.create(**wanted, id="mine", payload={"order": "7"}).id == "mine"
    ids = {sim.app.create(**wanted, id=None, payload={"order": ""}).id for _ in range(2)}
    assert len(ids) == 2
    assert not any(each.startswith("remind") for each in ids)


def test_an_edit_keeps_the_id(sim: Simulation) -> None:
    """An edit may change the subject of the task, but not its id."""
    task = sim.app.create(owner="ada", handler="remind", payload={"order": "7"})
    assert sim.app.update(task.id, payload={"order": "9"}).id == "remind-7"


def test_another_owners_task_is_not_edited(sim: Simulation) -> None:
    sim.app.create(owner="ada", handler="remind", payload={"order": "7"})
    with pytest.raises(InvalidInput, match="id: is taken"):
        sim.app.create(owner="bob", handler="remind", payload={"order": "7"})


def test_users_cannot_take_each_others_ids(app: App) -> None:
    """If users may name the handler, the id begins with a hash of the owner, for servers' tasks as well."""

    @app.handler("mine", access="users", task_id=lambda payload: payload.order)
    def mine(_: Order) -> None: ...

    tasks = [app.create(owner=owner, handler="mine", payload={"order": "7"}) for owner in ("ada", "bob")]
    assert [each.id for each in tasks] == [f"{owner_id_prefix('ada')}7", f"{owner_id_prefix('bob')}7"]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda _: "a/b", "id: is 'a/b', says the task_id of handler 'odd' (It must be 1 to 128 letters"),
        (lambda _: "x" * 200, "says the task_id of handler 'odd'"),
        (lambda payload: payload.nothing, "payload: makes the task_id of handler 'odd' raise AttributeError"),
    ],
)
def test_an_invalid_id_is_refused(app: App, function: Callable[[Any], str], message: str) -> None:
    """The caller learns which handler's function it was, and nothing is stored."""

    @app.handler("odd", task_id=function)
    def odd(_: Order) -> None: ...

    with pytest.raises(InvalidInput) as refused:
        app.create(owner="ada", handler="odd", payload={"order": "7"})
    assert message in str(refused.value)
    assert not app.tasks().items


@pytest.mark.parametrize("wrong", ["remind-7", lambda: "x", lambda one, other: one + other, 7])
def test_a_task_id_that_is_no_function_of_the_payload_is_refused_at_registration(app: App, wrong: Any) -> None:  # noqa: ANN401 - mistakes
    with pytest.raises(Misconfigured, match="task_id=lambda payload:"):
        app.handler("odd", task_id=wrong)
