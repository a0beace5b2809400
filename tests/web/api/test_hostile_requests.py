"""No operation takes much of the processor, whatever it is sent: steps of searches and calls of functions are counted.

`python -m benchmarks.hostile_requests` measures the same requests, and more of them, in milliseconds.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from math import inf

import pytest
from tests.call_counts import count_calls
from tests.hostile_requests import ALL_BY_IDS, HostileRequest, fill, iter_hostile_requests, prepare
from tests.web.conftest import Call

from cloudsched.domain.recurrence import allowance
from cloudsched.domain.recurrence.allowance import REQUEST_STEPS, Allowance
from cloudsched.engine.ports.search import TaskQuery
from cloudsched.testing import Simulation
from cloudsched.web.api.operations import OPERATIONS
from cloudsched.web.auth.roles import Right

MAX_ANSWER, MAX_MEMORY = 5_000_000, 64_000_000
"""How large an answer is, and how much memory is taken to make it, in bytes: a function has 512 MB, and serves many."""
TASKS = 60
"""How many of the largest tasks there are: with payloads of 90 kB, several times what one request may read."""
MAX_CALLS = 1_500_000
"""How many functions one request calls at most: a hundred thousand take about 10 ms."""
EACH = 6
"""Every which request is sent: another one of each field and value than of the next."""
SPARED = {"openapi"}
"""Builds the description of the API once, which depends on nothing that a caller sends."""


@pytest.fixture
def requests(sim: Simulation, call: Call) -> Iterator[HostileRequest]:
    """Return the requests, at a store with a user's dearest tasks."""
    return iter_hostile_requests(prepare(sim, call))


def test_no_request_searches_or_calls_more_than_it_may(
    call: Call, requests: Iterator[HostileRequest], monkeypatch: pytest.MonkeyPatch, *, everything: bool
) -> None:
    """Each operation is sent one, with `--all` many; none fails with a server's error, each is within its limits."""
    made: list[Allowance] = []

    class KnownAllowance(Allowance):
        __slots__ = ()

        def __init__(self, steps: int, within: Allowance | None = None, max_bytes: float = inf) -> None:
            super().__init__(steps, within, max_bytes)
            made.append(self)

    monkeypatch.setattr(allowance, "Allowance", KnownAllowance)
    sent = Counter[str]()
    for number, each in enumerate(requests):
        is_first = not sent[each.operation]
        if each.operation in SPARED or not (is_first or (everything and number % EACH == 0)):
            continue
        made.clear()
        with count_calls() as calls:
            answer = call(each.method, each.path, each.body, headers=each.headers)
        assert answer.status_code < 500 or answer.status_code == 503, f"{each}: {answer.get_data(as_text=True)}"
        assert calls.count < MAX_CALLS, f"{each}: {calls.count} calls"
        spent = max((one.steps - one.remaining for one in made), default=0)
        assert spent < REQUEST_STEPS + 20_000, f"{each}: {spent} steps"
        sent[each.operation] += 1
    assert set(sent) | SPARED == {each.name for each in OPERATIONS}
    assert sent.total() > 300 or not everything


def test_no_answer_is_large_however_large_what_is_stored(call: Call, sim: Simulation) -> None:
    """Each operation that reads, asked for as much as there is, and each search, with a key and without.

    What a batch would change is asked for by POST. An export is made by a task, part by part.
    """
    known = prepare(sim, call)
    ids = fill(call, TASKS)
    tried, before = set[str](), count_tasks(sim)
    for each in iter_hostile_requests({**known, "taskId": ids[0]}, ids):
        is_wide = each.what in {"as it is", "as much as there is"} or each.what.startswith("search is ")
        if each.operation in SPARED or not ((is_wide and each.method == "GET") or each.what == ALL_BY_IDS):
            continue
        tracemalloc.start()
        try:
            answer = call(each.method, each.path, each.body, headers=each.headers)
            size, (_, peak) = len(answer.get_data()), tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert size <= MAX_ANSWER, f"{each}: {size} bytes"
        assert peak <= MAX_MEMORY, f"{each}: {peak} bytes of memory"
        tried.add(each.operation)
    assert {"get_feed", "list_tasks", "find_executions", "batch_change_tasks"} <= tried
    assert count_tasks(sim) == before, "a question made a task"


def test_what_is_asked_for_by_get_needs_no_right_to_write() -> None:
    """A browser sends a GET for any page that shows a picture, and a proxy sends it again."""
    assert not [each.name for each in OPERATIONS if each.method == "GET" and each.right is Right.WRITE]


def count_tasks(sim: Simulation) -> int:
    """Return how many tasks of people and of the system are stored."""
    store, token, count = sim.app.container.store, None, 0
    while True:
        page = store.list_tasks(TaskQuery(owner=None), limit=500, page_token=token)
        token, count = page.next_page_token, count + len(page.items)
        if token is None:
            return count
