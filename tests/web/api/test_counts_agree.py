"""Every number of runs is the same wherever it stands, over stores in which all kinds of runs are mixed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from tests.mixed_runs import HOUR, OWNERS, live, make_mixed_app
from tests.web.conftest import Call

from cloudsched import App
from cloudsched.domain.documents.execution import Execution
from cloudsched.domain.responses.count import Count, RunCounts, count_runs
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.queries.execution_search import find_executions
from cloudsched.testing import Simulation


@pytest.fixture
def app() -> App:
    """Handlers that end in every way."""
    return make_mixed_app()


def list_all(sim: Simulation, query: ExecutionQuery) -> Iterator[Execution]:
    token = None
    while True:
        page = find_executions(sim.app.container.store.search, query, 100, token)
        yield from page.items
        token = page.next_page_token
        if token is None:
            return


def add_up(parts: list[dict[str, Any]]) -> RunCounts:
    sums: dict[str, Any] = {name: sum(each[name] for each in parts) for name in ("ran", "failed", "calls", "late")}
    skipped = (Count.model_validate(each["skipped"]) for each in parts)
    return RunCounts(**sums, skipped=sum(skipped, Count(value=0)))


@pytest.mark.parametrize("seed", range(4))
def test_every_number_is_that_of_the_records(call: Call, sim: Simulation, seed: int) -> None:
    """The overview, and counts by day and hour. Pages have those of lists and of usage."""
    begin = sim.now
    live(sim, random.Random(seed))  # noqa: S311 - the same tasks in each run
    end = sim.now + HOUR
    span = {"from": begin.isoformat(), "until": end.isoformat()}
    records = [each for each in list_all(sim, ExecutionQuery()) if each.status.is_final]
    expected = count_runs(records)
    assert expected.ran, "hardly anything was tried"
    assert expected.failed + expected.skipped.value + expected.calls > 9, "hardly anything was tried"

    for per in ("P1D", "PT1H"):
        counted = ask(call, "/v1/executions/counts", **span, per=per, timezone="Europe/Paris")["parts"]
        assert add_up(counted) == expected
    for owner in OWNERS:
        mine = ask(call, "/v1/executions/counts", **span, owner=owner)["parts"]
        assert add_up(mine) == count_runs(each for each in records if each.owner == owner)

    sim.app.container.many_tasks.overview.forget()
    for hour in ask(call, "/v1/overview")["hours"]:
        start, finish = datetime.fromisoformat(hour["start"]), datetime.fromisoformat(hour["end"])
        within = [each for each in records if start <= each.scheduled_for < finish]
        assert add_up([hour]) == count_runs(within)


def ask(call: Call, path: str, **query: str) -> dict[str, Any]:
    answer = call("GET", path, query_string=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json
    return found
