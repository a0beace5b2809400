"""What every store promises of the list of what is due: its pages have each occurrence once, in order."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from tests.conftest import NOW, MakeTask
from tests.engine.harness import HOUR, MINUTE

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import OccurrenceQuery
from cloudsched.engine.ports.store import Store
from cloudsched.engine.queries.occurrences import list_occurrences

AT_ONCE = NOW + HOUR
BEFORE = NOW + 30 * MINUTE


@pytest.mark.parametrize("since", [None, NOW])
@pytest.mark.parametrize("size", [1, 7])
def test_pages_begin_after_the_last_occurrence(
    store: Store, make_task: MakeTask, size: int, since: datetime | None
) -> None:
    """Also among those of one instant: some once, some each hour, some a fixed number of times, and one before."""
    plans = {
        "a": (Schedule.once(AT_ONCE), AT_ONCE, None, 1),
        "b": (Schedule.every(HOUR, start=AT_ONCE), AT_ONCE, None, 5),
        "c": (Schedule.every(2 * HOUR, start=AT_ONCE), AT_ONCE, 2, 2),
        "d": (Schedule.every(4 * HOUR, start=AT_ONCE), AT_ONCE, None, 2),
        "e": (Schedule.every(30 * MINUTE, start=BEFORE), BEFORE, None, 10),
    }
    expected: list[tuple[datetime, str]] = []
    for name, (schedule, at, most, times) in plans.items():
        step = schedule.interval or timedelta()
        for number in range(3):
            task_id = f"{number}{name}"
            is_once = schedule.is_one_time
            task = make_task(id=task_id, schedule=schedule, is_one_time=is_once, next_execution_time=at, max_runs=most)
            store.commit(Commit(task))
            expected += [(at + each * step, task_id) for each in range(times)]

    query = OccurrenceQuery(AT_ONCE + timedelta(hours=4, minutes=5), None, since)
    found: list[tuple[datetime, str]] = []
    token: str | None = ""
    while token is not None:
        page = list_occurrences(store, query, size, token or None)
        found += [(at, task.id) for at, task in page.items]
        assert page.complete_until is None
        token = page.next_page_token
    assert found == sorted(expected)
