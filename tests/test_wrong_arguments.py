"""What a caller hands to a method in place of an id, a mark or an owner is refused, by each method of each interface.

Nothing is opened, read or sent for it.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta  # noqa: F401 - some are in what is advised
from functools import partial
from typing import Any

import pytest

from cloudsched import App, AsyncApp, Task, TaskDraft  # noqa: F401 - as above
from cloudsched.client import AsyncClient, Client
from cloudsched.domain.call_arguments import check_arguments
from cloudsched.domain.documents.authority import EventSender  # noqa: F401 - as above
from cloudsched.domain.transitions.idempotency import RequestMark  # noqa: F401 - as above
from cloudsched.engine.ports.search import ExecutionQuery, TaskQuery  # noqa: F401 - as above
from cloudsched.engine.storage.pages import Page
from cloudsched.errors import InvalidArgument, InvalidInput, NotAllowed
from cloudsched.outbox.sqlalchemy import SqlalchemyOutbox
from cloudsched.testing import START, Simulation

REFUSED_AT_IMPORT = ("handler", "scheduled", "deliver")
"""What registers something tells mistakes in its own words, and a delivery has no caller who makes some."""


def list_parameters(kind: type, only: str = "str", *beside: str) -> list[tuple[str, str]]:
    """Return the methods of a class that take a text, or another type alone or beside others, with the parameter."""
    public = [name for name in dir(kind) if not name.startswith("_") and name not in REFUSED_AT_IMPORT]
    found = [(name, inspect.unwrap(getattr(kind, name))) for name in public]
    methods = [(name, method) for name, method in found if inspect.isfunction(method)]
    return [
        (name, parameter.name)
        for name, method in methods
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
        if only in (types := {*str(parameter.annotation).split(" | ")}) and types <= {only, "None", *beside}
    ]


APP = list_parameters(App)
CLIENT = list_parameters(Client)


@pytest.fixture(scope="module")
def task() -> Task:
    app = App()
    app.handler("greet")(lambda: None)
    with Simulation(app):
        return app.create(handler="greet", owner="ada")


def call_with(target: Any, method: str, name: str, value: object) -> object:  # noqa: ANN401 - an app or a client
    """Call a method with a wrong argument. All others are right, or missing, which is found out later."""
    function = getattr(target, method)
    taken = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    before = [each for each in taken[: [each.name for each in taken].index(name)] if each.kind is not each.KEYWORD_ONLY]
    if taken[len(before)].kind is inspect.Parameter.KEYWORD_ONLY:
        return function(**{name: value})
    rights = {"datetime": START, "int": 1, "datetime | str": "next"}
    return function(*(rights.get(str(each.annotation), "x") for each in before), value)


def test_ids_of_tasks_are_among_what_is_tried() -> None:
    """Both interfaces take ids in many places, so the tests below are about something."""
    for tried in (APP, CLIENT):
        assert {("pause", "task_id"), ("execution", "execution_id"), ("inbox", "owner")} <= {*tried}


DOORS: dict[Callable[[], object], list[tuple[str, str]]] = {
    App: APP,
    lambda: AsyncApp(App()): [each for each in APP if hasattr(AsyncApp, each[0])],
    partial(Client, "http://127.0.0.1:9", key="k"): CLIENT,
    partial(AsyncClient, "http://127.0.0.1:9", key="k"): CLIENT,
    lambda: object.__new__(SqlalchemyOutbox): list_parameters(SqlalchemyOutbox),
}


@pytest.mark.parametrize(("make", "method", "name"), [(make, *each) for make, found in DOORS.items() for each in found])
def test_a_task_is_no_text(task: Task, make: Callable[[], object], method: str, name: str) -> None:
    """The answer says which id to give; no request is made and no row written. The await raises it, if there is one."""

    async def call() -> None:
        answer: Any = call_with(make(), method, name, task)
        if inspect.isawaitable(answer):
            await answer

    with asyncio.Runner() as runner, pytest.raises(InvalidArgument, match=f"Give its id, '{task.id}'") as refused:
        runner.run(call())
    assert refused.value.field == name


ADVISED = ("EventSender", "ExecutionQuery", "RequestMark", "TaskDraft", "TaskQuery")
TIMES = [each for each in list_parameters(App, "str", "datetime", "timedelta") if each not in APP]


@pytest.mark.parametrize(
    ("method", "name"), [*TIMES, *(each for kind in ADVISED for each in list_parameters(App, kind))]
)
def test_what_is_advised_is_not_refused(method: str, name: str) -> None:
    """A number is no time, query or mark. This is told before a read, with what to write, which is then taken."""
    app = App()
    app.handler("greet")(lambda: None)
    with Simulation(app):
        app.create(handler="greet", id="x", schedule="every day at 9")
        with pytest.raises(InvalidArgument) as refused:
            call_with(app, method, name, 600)
        advised = str(re.search(r"[\w.]+\(.*?\)", refused.value.hint)[0])  # type: ignore[index]  # or it advises nothing
        with suppress(NotAllowed, TypeError):  # of the arguments that are missing
            call_with(app, method, name, eval(advised, globals()))  # noqa: S307 - our own text


def test_an_instant_has_a_time_zone() -> None:
    """Wherever one is asked, it is told at once that a zone is missing."""
    for target in (App(), Client("http://127.0.0.1:9", key="k")):
        for method, name in list_parameters(type(target), "datetime", "str"):
            with pytest.raises(InvalidInput, match="has no time zone"):
                call_with(target, method, name, START.replace(tzinfo=None))


def test_what_is_no_id_is_refused_with_what_to_write() -> None:
    """None, a number, a function and a document in JSON are told apart."""
    app = App()
    for value, line in ((None, "Give text"), (7, "'7'"), ({"id": "t1"}, "'t1'"), (len, "'len'"), (b"t", "Give text")):
        with pytest.raises(InvalidArgument, match=line):
            app.get(value)  # type: ignore[arg-type]  # which is what this is about


def test_a_wrong_argument_is_both_our_error_and_pythons() -> None:
    """A misspelt one says which is meant."""
    with pytest.raises(TypeError, match="Did you mean execution_id"):
        App().retry("t", executionid="e")  # type: ignore[call-arg]  # as above
    with pytest.raises(InvalidArgument, match=r"timedelta\(minutes=5\)"):
        Client("http://127.0.0.1:9", key="k").wait("t", 5)  # type: ignore[arg-type]  # as above


def test_subclasses_are_what_they_derive_from() -> None:
    """And None is only what may be None."""

    class Name(str):
        __slots__ = ()

    def take(name: str, length: timedelta | None = None, more: Any = 5) -> tuple[object, ...]:  # noqa: ANN401 - not checked
        return name, length, more

    checked = check_arguments(take)
    assert checked(Name("a"), None, more=len) == ("a", None, len)
    with pytest.raises(InvalidArgument):
        checked(None)  # type: ignore[arg-type]  # as above


def test_a_page_is_no_list() -> None:
    """The rest of a list would be missed in silence, so a page has neither an order nor a length."""
    page: Any = Page([1, 2], "more")
    attempts: list[Callable[[], object]] = [lambda: page[0], lambda: len(page), lambda: list(page), lambda: bool(page)]
    for attempt in attempts:
        with pytest.raises(TypeError, match=r"page\.items"):
            attempt()


@pytest.mark.parametrize("kind", [App, Client])
def test_the_occurrences_of_one_task_are_found_where_they_are(kind: type, task: Task) -> None:
    """Who asks `occurrences` for a task by its id is told of `upcoming`."""
    for given in (task, task.id):
        with pytest.raises(InvalidArgument, match=r"For those of one task, call upcoming\(id\)"):
            kind.occurrences(None, given)  # type: ignore[attr-defined]
