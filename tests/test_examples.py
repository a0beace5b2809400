"""The examples in the docstrings of what users call most run, and print what they say.

An example has `app`, a client of it, a simulation and a task. One of `Context` is the body of a handler.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import io
import logging
import random
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.instants import DAY, HOUR, MINUTE

import cloudsched
from cloudsched import App, AsyncApp, Context, Execution, ExecutionStatus, Schedule, Task, TaskQuery, TaskStatus
from cloudsched.client import AsyncClient, Client
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.errors import NotAwaited
from cloudsched.testing import Simulation

USED: dict[type, str] = {
    App: "handler scheduled create run_now get tasks update pause resume cancel delete trigger snooze skip move retry "
    "backfill send_event upcoming execution executions find_executions put_person update_person inbox draft confirm "
    "acting_for watch search wait explain logs history describe_schedule preview create_many validate_task "
    "batch_change pause_all restore unread mark_read handlers occurrences",
    Schedule: "parse every once once_at after",
    Context: "step sleep wait_for call gather notify progress",
    Simulation: "advance run_until_idle executions inbox sent add_person",
}
"""What users call most. The other faces have what apps have, but for what registers functions."""
USED[Client] = USED[App].removeprefix("handler scheduled ")
AWAITED = USED[Client].replace("acting_for ", "").split()
"""What the faces on an event loop have with the same text."""
METHODS = [(face, name) for face, names in USED.items() for name in names.split()]
log = logging.getLogger(__name__)
CHECKER = doctest.OutputChecker()


class Reminder(BaseModel):
    """What a reminder says."""

    about: str = "something"


@pytest.fixture(name="names")
def open_world() -> Iterator[dict[str, Any]]:
    """Return the names that examples have. Their task has succeeded on one day, and failed on the next."""
    app = App()

    @app.handler("remind", retry=False, access="users", draft="Reminds somebody of something", logs="owner")
    def remind(ctx: Context, reminder: Reminder) -> str:
        if ctx.scheduled_for == datetime(2027, 1, 2, 9, tzinfo=UTC) and ctx.attempt == 1:
            raise OSError("the pump is dry")
        log.warning("reminded of %s", reminder.about)
        ctx.notify("Do not forget", reminder.about)
        return reminder.about

    @app.handler("order", access="users")
    def order(ctx: Context) -> str:
        return str(ctx.wait_for("approved"))

    with Simulation(app) as sim:
        sim.add_person("ada")
        task = app.create(
            id="water",
            owner="ada",
            title="Water the plants",
            handler="remind",
            payload={"about": "plants"},
            schedule="every day at 9",
        )
        sim.advance(36 * HOUR)
        own = (App, Context, Execution, ExecutionQuery, ExecutionStatus, Schedule, Task, TaskQuery, TaskStatus)
        imported: dict[str, Any] = {
            each.__name__: each for each in (*own, BaseModel, date, datetime, timedelta, random)
        }
        yield {"app": app, "client": app.acting_for("ada"), "sim": sim, "task": task, "UTC": UTC, **imported}


def read_examples(face: type, name: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(inspect.getdoc(getattr(face, name)) or "")


def find_all(*faces: type) -> list[tuple[type, str]]:
    """Return the public methods that have examples."""
    return [(face, name) for face in faces for name in dir(face) if name[0] != "_" and read_examples(face, name)]


def get_name(each: type | str) -> str:
    return each if isinstance(each, str) else each.__name__


def run(examples: list[doctest.Example], names: dict[str, Any]) -> None:
    """Run a docstring's examples, one after the other. A handler that is suspended in one leaves it."""
    for example in examples:
        with redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.source, "<example>", "single", dont_inherit=True), names)  # noqa: S102 - our own examples
        shown = printed.getvalue()
        assert CHECKER.check_output(example.want, shown, 0), f"{example.source}printed {shown}and not {example.want}"


@pytest.mark.parametrize(("face", "name"), METHODS, ids=get_name)
def test_what_users_call_most_has_an_example(face: type, name: str) -> None:
    """`help` and editors show how it is called."""
    assert read_examples(face, name)


@pytest.mark.parametrize("name", AWAITED)
def test_an_example_is_shown_where_it_is_awaited(name: str) -> None:
    """It is that of the method which is not."""
    assert read_examples(AsyncApp, name) == read_examples(App, name)
    assert read_examples(AsyncClient, name) == read_examples(Client, name)


@pytest.mark.parametrize(("face", "name"), find_all(App, Client, Schedule, Simulation), ids=get_name)
def test_an_example_runs(face: type, name: str, names: dict[str, Any]) -> None:
    """It prints what stands below it."""
    run(read_examples(face, name), names)


@pytest.mark.parametrize(("face", "name"), find_all(Context), ids=get_name)
def test_an_example_for_handlers_runs(face: type, name: str, names: dict[str, Any]) -> None:
    """In a handler, which may be suspended, and is then replayed."""
    app: App = names["app"]
    sim: Simulation = names["sim"]

    @app.handler("example", retry=False)
    def example(ctx: Context) -> None:
        run(read_examples(face, name), {**names, "ctx": ctx})

    task = app.run_now(example, owner="ada")
    sim.advance(MINUTE)
    with suppress(NotAwaited):
        app.send_event(task.id, "approved", {"by": "grace"})
    sim.advance(31 * DAY)
    [ended] = sim.executions(task.id)
    assert ended.status is ExecutionStatus.SUCCEEDED, ended.error


def test_no_example_stands_where_none_runs() -> None:
    """Those of other classes and modules would grow stale."""
    run_here = {inspect.getdoc(getattr(face, name)) for face, name in find_all(*USED)}
    written = list[str]()
    for path in Path(cloudsched.__path__[0]).rglob("*.py"):
        text = path.read_text("utf-8")
        if ">>> " in text:
            documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            nodes = [each for each in ast.walk(ast.parse(text)) if isinstance(each, documented)]
            written += [about for each in nodes if ">>> " in (about := ast.get_docstring(each) or "")]
    assert set(written) - run_here == {inspect.getdoc(cloudsched)}


def test_the_first_program_runs() -> None:
    """It is the first thing that `help(cloudsched)` shows."""
    run(doctest.DocTestParser().get_examples(cloudsched.__doc__ or ""), {})
