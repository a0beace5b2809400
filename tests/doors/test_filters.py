"""Every filter is read alike at every door: a value of another type is refused by the filter's name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, get_args

import pytest
from pydantic import AwareDatetime
from tests.web.callers import DAY

from cloudsched import App, AsyncApp, TaskQuery
from cloudsched.client.local_client import LocalClient
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
    "Client.summarize_failures": (ExecutionFields, lambda _, client, given: client.summarize_failures(**given)),
    "Client.count_matching": (TaskFilter, lambda _, client, given: client.count_matching("PAUSE", **given)),
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
