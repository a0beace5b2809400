"""Moving from a table, a Redis list or a Firestore collection: each row is one task, however often it is imported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.instants import DAY, SECOND, about
from tests.recipes.conftest import Load

from cloudsched import App, Settings, Task
from cloudsched.testing import Simulation

PAGE = "../run/migrate.md"
NOW = datetime.now(UTC).replace(microsecond=0)
"""The functions of the page ask the system's clock what is overdue."""
LATER, EARLIER = NOW + 3 * DAY, NOW - 3 * DAY


def mail(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what it got."""
    return payload


@pytest.fixture(name="app")
def make_app() -> App:
    app = App(Settings())
    app.handler("mail")(mail)
    return app


def import_twice(app: App, call: Callable[[], None]) -> list[Task]:
    """Import at the present time, twice, and return the tasks by their ids."""
    with Simulation(app, NOW) as sim:
        call()
        once = sorted(app.tasks().items, key=lambda each: each.id)
        call()
        assert sorted(app.tasks().items, key=lambda each: each.id) == once
        sim.advance(SECOND)
        overdue = [each for each in once if each.next_execution_time is not None and each.next_execution_time <= NOW]
        assert all(len(sim.executions(each.id)) == 1 for each in overdue)
        return once


def test_rows_of_a_table(load: Load, app: App) -> None:
    """Once and again and again; a number as the owner, naive times, an empty rule; what is overdue runs at once."""
    module = load(PAGE, "from_table")
    common = {"user_id": 7, "name": "Letter", "job_type": "mail", "data": json.dumps({"to": "x"})}
    rows = [
        {"id": 1, "run_at": LATER, "rrule": "", **common},
        {"id": 2, "run_at": EARLIER.replace(tzinfo=None), "rrule": None, **common},
        {"id": 3, "run_at": EARLIER, "rrule": "FREQ=WEEKLY", **common},
    ]
    later, overdue, weekly = import_twice(app, lambda: module.import_table(app, rows))
    assert [each.owner for each in (later, overdue, weekly)] == ["7"] * 3
    assert (later.next_execution_time, later.is_one_time, later.payload) == (LATER, True, {"to": "x"})
    assert overdue.next_execution_time == about(NOW)
    assert (weekly.next_execution_time, weekly.is_one_time) == (EARLIER + 7 * DAY, False)


class Redis:
    """What `redis.Redis` answers to the two commands of the page."""

    def lrange(self, key: str, start: int, end: int) -> list[bytes]:
        assert (key, start, end) == ("ready", 0, -1)
        job = {"type": "mail", "args": {"to": "x"}}
        return [json.dumps(each).encode() for each in ({"id": "a", "user": "ada", **job}, job, job)]

    def zrange(self, key: str, start: int, end: int, *, withscores: bool) -> list[tuple[bytes, float]]:
        assert (key, start, end, withscores) == ("delayed", 0, -1, True)
        job = {"type": "mail", "args": {"to": "x"}}
        return [
            (json.dumps({"id": name, **job}).encode(), at.timestamp()) for name, at in (("b", LATER), ("c", EARLIER))
        ]


def test_jobs_of_redis(load: Load, app: App) -> None:
    """A list and a sorted set; two equal jobs without an id are two tasks."""
    module = load(PAGE, "from_redis")
    tasks = {each.id: each for each in import_twice(app, lambda: module.import_redis(app, Redis(), "ready", "delayed"))}
    assert len(tasks) == 5
    assert tasks["redis-a"].owner == "ada"
    assert tasks["redis-b"].next_execution_time == LATER
    assert tasks["redis-c"].next_execution_time == about(NOW)


class Document:
    """A snapshot of Firestore."""

    def __init__(self, name: str, at: datetime) -> None:
        self.id = name
        self._at = at

    def to_dict(self) -> dict[str, Any]:
        """Return its fields."""
        return {"userId": "ada", "purposeOfTask": "Letter", "taskType": "mail", "timestamp": self._at}


class Query:
    """Two documents."""

    def stream(self) -> Iterator[Document]:
        """Return them."""
        yield from (Document("a", LATER), Document("b", EARLIER))


def test_documents_of_firestore(load: Load, app: App) -> None:
    """By the ids of the documents."""
    module = load(PAGE, "from_firestore")
    first, second = import_twice(app, lambda: module.import_collection(app, Query()))
    assert (first.id, first.next_execution_time, first.title) == ("doc-a", LATER, "Letter")
    assert (second.id, second.next_execution_time) == ("doc-b", about(NOW))
