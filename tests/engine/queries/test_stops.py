"""The stops of the last days: hours in which something was due and nothing started in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, OccurrenceRange, Trigger
from cloudsched.domain.documents.task import Task
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.queries.stops import find_stops

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


NOW = datetime(2027, 3, 24, 14, 42, tzinfo=UTC)
STOPPED = datetime(2027, 3, 22, 2, tzinfo=UTC)
STARTED = datetime(2027, 3, 22, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    made = SqliteStore(tmp_path / "tasks.db")
    yield made
    made.close()


def write(store: SqliteStore, *runs: tuple[datetime, timedelta | int], name: str = "hourly") -> None:
    """Write a task with runs: when each was due, and how long it waited, or how many were skipped."""
    records = []
    for at, how in runs:
        fields: dict[str, object] = {"status": ExecutionStatus.SKIPPED, "finished_at": NOW}
        if isinstance(how, timedelta):
            fields = {"status": ExecutionStatus.SUCCEEDED, "started_at": at + how, "finished_at": at + how}
        elif how > 1:
            fields["covers"] = OccurrenceRange(until=at + how * HOUR, count=how)
        shown = {"task_id": name, "owner": "ada", "title": "T", "handler": "h", "trigger": Trigger.SCHEDULE}
        records.append(Execution.model_validate({"id": f"{at:%d%H%M}", "scheduled_for": at, **shown, **fields}))
    task = Task(
        id=name,
        title="T",
        owner="ada",
        handler="h",
        schedule=Schedule.once(NOW),
        is_one_time=True,
        timezone="UTC",
        created_at=NOW,
        updated_at=NOW,
        status_changed_at=NOW,
    )
    for answer in store.commit_all([Commit(task, executions=records)]):
        assert not isinstance(answer, Exception), answer


def live(*, wait: timedelta = timedelta(0), hours: int = 100) -> list[tuple[datetime, timedelta | int]]:
    """Return hourly runs until now, each of which waited so long."""
    return [(NOW - number * HOUR, wait) for number in range(1, hours)]


def test_an_outage_is_found_days_later_with_its_numbers(store: SqliteStore) -> None:
    """All that was due in it is counted, also what another owner does not see."""
    ran = [(at, wait) for at, wait in live() if not STOPPED <= at < STARTED]
    write(store, *ran, (STOPPED + HOUR / 2, 6), (STARTED - HOUR / 2, HOUR))
    write(store, (STOPPED + HOUR / 4, STARTED - STOPPED), name="daily")
    (stop,) = find_stops(store.search, None, NOW)
    assert (stop.start, stop.end, stop.skipped, stop.late) == (STOPPED, STARTED, 6, 2)
    assert find_stops(store.search, "ada", NOW) == (stop,)
    assert find_stops(store.search, "bob", NOW) == ()
    assert find_stops(store.search, None, NOW + timedelta(days=8)) == ()


@pytest.mark.parametrize(
    "runs",
    [
        live(),
        live(wait=timedelta(minutes=5)),
        [(at, 1) for at, _ in live()],
        [*live(), (STOPPED + HOUR / 4, HOUR)],
    ],
    ids=["all in time", "a lock held all back for minutes", "a policy skipped all", "one of many was late"],
)
def test_what_is_no_outage_is_not_called_one(store: SqliteStore, runs: list[tuple[datetime, timedelta | int]]) -> None:
    """A run that waited for long has to be among those of the hour, and none that started in time."""
    write(store, *runs)
    assert find_stops(store.search, None, NOW) == ()
