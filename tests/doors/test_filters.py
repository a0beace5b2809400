"""Every filter is read alike at every door: a value of another type is refused by the filter's name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, get_args
from urllib.parse import urlencode

import pytest
from click import UsageError
from pydantic import AwareDatetime
from tests.cases import try_each
from tests.doors.world import URL, WORLDS, World, headers_of, key_of
from tests.web.callers import DAY
from werkzeug.test import Client as Browser
from werkzeug.wrappers import Response

from cloudsched import App, AsyncApp, TaskQuery
from cloudsched.agents.arguments import ToolRefused
from cloudsched.agents.tools import AgentTools
from cloudsched.cli.main import cloudsched as command_line
from cloudsched.client.local_client import LocalClient
from cloudsched.dashboard.application import Dashboard
from cloudsched.dashboard.forms.fields import name_field
from cloudsched.domain.documents.batch_change import RetryFilter, TaskFilter
from cloudsched.domain.documents.filters import (
    ExecutionFields,
    ExecutionQueryFields,
    RunConditions,
    TaskConditions,
    TaskQueryFields,
)
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.errors import InvalidInput
from cloudsched.testing import Simulation

Ask = Callable[[App, LocalClient, dict[str, Any]], object]
Give = Callable[[World, dict[str, Any]], object]


def greet() -> None:
    """Stand for a registered function."""


NO_TEXT = (7, True, ["a=b"], greet, object())
DOORS: dict[str, tuple[Any, Ask]] = {
    "App.tasks": (TaskQueryFields, lambda app, _, given: app.tasks(TaskQuery(**given))),
    "App.find_executions": (ExecutionQueryFields, lambda app, _, given: app.find_executions(ExecutionQuery(**given))),
    "App.executions": (RunConditions, lambda app, _, given: app.executions("t", **given)),
    "AsyncApp.executions": (RunConditions, lambda app, _, given: asyncio.run(AsyncApp(app).executions("t", **given))),
    "Client.tasks": (TaskConditions, lambda _, client, given: [*client.tasks(**given)]),
    "Client.find_executions": (ExecutionFields, lambda _, client, given: [*client.find_executions(**given)]),
    "Client.executions": (RunConditions, lambda _, client, given: [*client.executions("t", **given)]),
    "Client.batch_change": (TaskFilter, lambda _, client, given: client.batch_change("PAUSE", **given)),
    "Client.count_retries": (RetryFilter, lambda _, client, given: client.count_retries(**given)),
}


def walk_types(annotation: object) -> Iterator[object]:
    """Yield a type and those that it is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from walk_types(part)


def list_wrong(annotation: object) -> list[object]:
    """Return values that a filter of a type does not take."""
    kinds = {*walk_types(annotation)}
    if bool in kinds:
        return ["no", 2, greet]
    if timedelta in kinds:
        return [True, ["a=b"], greet, "soon"]
    wrong: list[object] = [*NO_TEXT]
    if any(isinstance(each, Enum) or (isinstance(each, type) and issubclass(each, Enum)) for each in kinds):
        wrong.append("nope")
    if AwareDatetime in kinds:
        wrong += [datetime(2027, 1, 1), "soon", DAY]  # noqa: DTZ001 - that is what is wrong
    return wrong


@pytest.mark.parametrize("door", DOORS)
def test_what_a_filter_does_not_take_is_refused_by_its_name(
    app: App, simulate: Callable[..., Simulation], door: str
) -> None:
    """Nothing is not found, or fails as if the store could not be reached, because a filter was not understood."""
    model, ask = DOORS[door]
    app.handler("greet")(greet)
    sim = simulate()
    sim.app.create(id="t", owner="ada", title="Tea", handler="greet", schedule="in 1 hour")
    client = sim.app.acting_for("ada")
    for name, field in model.model_fields.items():
        for value in () if name == "ids" else list_wrong(field.annotation):
            with pytest.raises(InvalidInput) as refused:
                ask(sim.app, client, {name: value})
            said = str(refused.value)
            assert name in said or str(field.alias) in said, (name, value, said)


@pytest.mark.parametrize("text", ["FAILED", "failed"])
def test_a_text_names_the_member_of_an_enum_as_over_http(text: str) -> None:
    """In every query, in any case, and an instant with an offset is one, too."""
    query = ExecutionQuery(status=text, since="2027-01-01T09:00:00+01:00")  # type: ignore[arg-type]  # as over HTTP
    assert query == ExecutionQuery(status=ExecutionQuery(status=text).status, since=query.since)  # type: ignore[arg-type]
    assert query.statuses == ("FAILED",)
    assert str(query.since) == "2027-01-01 08:00:00+00:00"
    assert TaskQuery(status=text).status is not None  # type: ignore[arg-type]


def require_accepted(answer: Response) -> None:
    if answer.status_code == 400:
        raise InvalidInput("", answer.get_data(as_text=True))


def ask_http(path: str) -> Give:
    return lambda world, given: require_accepted(
        world.ask("GET", f"/v1/{path}?{urlencode(given)}", None, headers_of("ada"))
    )


def post_http(path: str, **body: object) -> Give:
    return lambda world, given: require_accepted(
        world.ask("POST", f"/v1/{path}", {**body, "filter": given}, headers_of("ada"))
    )


def open_page(path: str, **form: str) -> Give:
    def give(world: World, given: dict[str, Any]) -> None:
        browser = Browser(Dashboard(world.client("ada"), place="a test", hosts=None))
        if form:
            require_accepted(browser.post(path, data={**form, **given}, base_url=URL, headers={"Origin": URL}))
        else:
            require_accepted(browser.get(f"/{path}{urlencode(given)}", base_url=URL))

    return give


def type_words(*words: str) -> Give:
    typed = ["tasks", "--url", URL, "--key", key_of("ada"), *words]
    return lambda _, given: command_line(
        [*typed, *(f"--{name}={value}" for name, value in given.items())], standalone_mode=False
    )


def call_tool(world: World, given: dict[str, Any]) -> None:
    async def call() -> None:
        await (await AgentTools.of(world.async_client("ada"))).call("find_tasks", given)

    asyncio.run(call())


GIVEN: tuple[tuple[str, object], ...] = (("nope", 1), ("status", "nope"), ("dueFrom", "soon"), ("from", "soon"))
"""A filter that there is nowhere, and some of another type. Where one of these is not known, it is refused as well."""
LISTS = ("tasks", "executions", "executions/counts", "occurrences", "occurrences/counts")
PAGES = ("tasks?", "tasks.csv?", "runs?", "runs.csv?", "due?", "calendar?", "audit?", "bulk?action=pause&", "retry?")
OTHER_DOORS: dict[str, Give] = {
    **{path: ask_http(path) for path in LISTS},
    **{path: open_page(path) for path in PAGES},
    "count of a change": post_http("tasks/batchChange", action="PAUSE", dryRun=True),
    "change": post_http("tasks/batchChange", action="PAUSE"),
    "count of a retry": post_http("executions/batchRetry", dryRun=True),
    "retry": post_http("executions/batchRetry"),
    "form of a change": open_page("/bulk", action="pause", handler="tea"),
    "form of a retry": open_page("/retry", handler="tea"),
    "cloudsched tasks list": type_words("list"),
    "cloudsched tasks logs": type_words("logs", "t"),
    "cloudsched tasks pause-all": type_words("pause-all", "--yes"),
    "find_tasks": call_tool,
}


@try_each("door, name, value", [(door, *each) for door in OTHER_DOORS for each in GIVEN])
def test_no_door_leaves_out_a_filter(door: str, name: str, value: object) -> None:
    """What it does not know, or cannot read, is refused by its name; nothing is listed, counted or changed without.

    Pages have the label of a filter that they know.
    """
    with WORLDS.enter() as (world, _), pytest.raises((InvalidInput, UsageError, ToolRefused)) as refused:
        OTHER_DOORS[door](world, {name: value})
    said = refused.value.format_message() if isinstance(refused.value, UsageError) else str(refused.value)
    assert name in said or f"{name_field(name)}: " in said
