"""A client belongs to no process and to no event loop: others have connections of their own."""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
from typing import Any

import pytest

from cloudsched import Schedule
from cloudsched.client import AsyncClient, Client
from cloudsched.testing import START, Simulation

REQUESTS = 30


@pytest.fixture
def tasks(sim: Simulation) -> list[str]:
    names = [f"t{number}" for number in range(5)]
    for name in names:
        sim.app.create(
            id=name, owner="ada", title=name, handler="greet", payload={"name": name}, schedule=Schedule.once(START)
        )
    return names


def _ask(client: Client, names: list[str], results: Any) -> None:  # noqa: ANN401 - a queue of multiprocessing
    results.put([client.get(names[n % len(names)]).id for n in range(REQUESTS)])


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_process_gets_its_own_answers(url: str, tasks: list[str]) -> None:
    """Though its parent had used the client before, and both go on at the same time."""
    forks: Any = multiprocessing.get_context("fork")
    with Client(url) as client:
        client.get(tasks[0])
        results = forks.Queue()
        children = [forks.Process(target=_ask, args=(client, tasks[n:] + tasks[:n], results)) for n in range(3)]
        for child in children:
            child.start()
        _ask(client, tasks, results)
        found = [results.get(timeout=60) for _ in range(4)]
        for child in children:
            child.join()
        assert all(each == (each[:5] * REQUESTS)[:REQUESTS] for each in found)
        assert sorted(each[0] for each in found) == sorted([tasks[0], *tasks[:3]])


def test_one_client_serves_several_event_loops(url: str, tasks: list[str]) -> None:
    client = AsyncClient(url)

    async def ask(name: str) -> str:
        return (await client.get(name)).id

    assert [asyncio.run(ask(name)) for name in tasks] == tasks
    asyncio.run(client.close())
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(ask(tasks[0]))
