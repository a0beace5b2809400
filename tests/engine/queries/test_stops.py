"""The stops of the last days: hours in which something was due and nothing started in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.engine.harness import DAY, HOUR, MINUTE

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import Execution, ExecutionStatus, OccurrenceRange, Trigger
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.documents.task import Task
from cloudsched.domain.recurrence.time_zones import load_tzinfo
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.emulator.runtime.clock import MovableClock
from cloudsched.engine.ports.search import ExecutionQuery
from cloudsched.engine.queries.overview import Overview, count_by_time
from cloudsched.engine.queries.stops import find_latest_stops
from cloudsched.engine.sweep.shard_sweeps import SweepNotes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cloudsched.domain.responses.overview_responses import StopCounts


NOW = datetime(2027, 3, 24, 14, 42, tzinfo=UTC)
STOPPED = datetime(2027, 3, 22, 2, tzinfo=UTC)
STARTED = datetime(2027, 3, 22, 9, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    """An empty store."""
    made = SqliteStore(tmp_path / "tasks.db")
    yield made
    made.close()


def write(
    store: SqliteStore, *runs: tuple[datetime, timedelta | int], name: str = "hourly", message: str | None = None
) -> None:
    """Write a task with runs: when each was due, and how long it waited, or how many were skipped."""
    records = []
    for at, how in runs:
        resumed = STARTED if at < STARTED else NOW
        fields: dict[str, object] = {"status": ExecutionStatus.SKIPPED, "finished_at": resumed, "message": message}
        if isinstance(how, timedelta):
            fields = {"status": ExecutionStatus.SUCCEEDED, "started_at": at + how, "finished_at": at + how}
        elif how > 1:
            fields["covers"] = OccurrenceRange(until=at + how * HOUR, count=how)
        shown = {"task_id": name, "owner": "ada", "title": "T", "handler": "h", "trigger": Trigger.SCHEDULE}
        records.append(Execution.model_validate({"id": f"{at:%m%d%H%M}", "scheduled_for": at, **shown, **fields}))
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


TOO_LATE = "It was more than 1 h late (catchUp: skip)."


def look(store: SqliteStore, since: datetime, days: float, per: PartLength, zone: str = "UTC") -> Sequence[StopCounts]:
    """Return the stops beside the counts of some days."""
    until = since + timedelta(days=days)
    return count_by_time(store.search, ExecutionQuery(), since, until, load_tzinfo(zone), per, now=NOW).stops


def test_an_outage_is_found_days_later_with_its_numbers(store: SqliteStore) -> None:
    """All that was due in it is counted, also what another owner does not see."""
    ran = [(at, wait) for at, wait in live() if not STOPPED <= at < STARTED]
    write(store, *ran, (STOPPED + HOUR / 2, 6), (STARTED - HOUR / 2, HOUR / 2))
    write(store, (STOPPED + HOUR / 4, STARTED - STOPPED - HOUR / 4), name="daily")
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert (stop.start, stop.end, stop.skipped, stop.late) == (STOPPED + HOUR / 4, STARTED, 6, 2)
    assert find_latest_stops(store.search, "ada", NOW) == (stop,)
    assert find_latest_stops(store.search, "bob", NOW) == ()
    assert find_latest_stops(store.search, None, NOW + 8 * DAY) == ()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns", "Europe/Paris"])
def test_each_look_at_an_outage_tells_one_length(store: SqliteStore, zone: str) -> None:
    """Home, a month, a week and a day say the same, whatever the zone of the page."""
    minutes = [STARTED - 4 * DAY + number * timedelta(minutes=5) for number in range(24 * 12 * 6)]
    write(store, *((at, STARTED - at if STOPPED <= at < STARTED else timedelta(0)) for at in minutes if at < NOW))
    expected = [(each.start, each.end) for each in find_latest_stops(store.search, None, NOW)]
    assert expected == [(STOPPED, STARTED)]
    midnight = datetime(2027, 3, 22, tzinfo=load_tzinfo(zone)).astimezone(UTC)
    first = datetime(2027, 3, 1, tzinfo=load_tzinfo(zone)).astimezone(UTC)
    spans: list[tuple[datetime, float, PartLength]] = [(midnight, 7, PartLength.HOUR), (first, 31, PartLength.DAY)]
    spans += [(midnight, 1, PartLength.QUARTER), (STOPPED + 3 * HOUR, 2, PartLength.QUARTER)]
    spans += [(STOPPED - 2 * DAY, 2.25, PartLength.DAY), (STOPPED + HOUR, 0.1, PartLength.HOUR)]
    for span in spans:
        assert [(each.start, each.end) for each in look(store, *span, zone)] == expected, span


@pytest.mark.parametrize("others", [1, 30], ids=["few", "many"])
def test_a_stop_begins_with_the_first_that_waited(store: SqliteStore, others: int) -> None:
    """Within an hour: what was skipped together is counted where the first of it was due, which is mostly there."""
    began = STOPPED + 20 * MINUTE
    write(store, *((at, wait) for at, wait in live() if not began <= at < STARTED), name="other")
    early = [(STOPPED + timedelta(minutes=minute), timedelta(0)) for minute in range(20)]
    write(store, *early, (began, 400), message=TOO_LATE, name="minutely")
    for number in range(others):
        write(store, (began + 10 * MINUTE, 6), (STARTED - HOUR / 2, HOUR), message=TOO_LATE, name=f"{number}")
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert (stop.start, stop.end) == (began, STARTED)
    assert (stop.skipped, stop.late) == (400 + 6 * others, others)
    assert look(store, datetime(2027, 3, 22, tzinfo=UTC), 1, PartLength.QUARTER) == (stop,)


def test_a_stop_is_over_once_something_starts_in_time(store: SqliteStore) -> None:
    """Until then it goes on, also if all that was due since was as late. The hour that has begun counts for this."""
    late = [(NOW - number * HOUR, number * HOUR) for number in range(1, 6)]
    write(store, *((at, wait) for at, wait in live() if at < late[-1][0]), *late)
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert (stop.start, stop.is_over) == (late[-1][0], False)
    write(store, (NOW - 2 * MINUTE, timedelta(0)), name="other")
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert stop.is_over


def test_an_outage_in_which_all_was_skipped_is_one(store: SqliteStore) -> None:
    """Nothing ran late after it: catchUp says so for each task."""
    ran = [(at, wait) for at, wait in live() if not STOPPED <= at < STARTED]
    write(store, *ran, (STOPPED + HOUR / 2, 6), message=TOO_LATE)
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert (stop.start, stop.skipped, stop.late) == (STOPPED + HOUR / 2, 6, 0)
    assert look(store, STOPPED, 3, PartLength.HOUR) == (stop,)


def test_a_month_in_which_each_day_has_something_late_has_its_outage(store: SqliteStore) -> None:
    """Only some days are counted by the hour: those with the most."""
    start = NOW - 24 * DAY
    outage = [start + HOUR * 5 + timedelta(minutes=number) for number in range(-42, 18)]
    write(store, *(each for each in live(hours=24 * 24) if each[0] not in outage))
    write(store, *((NOW - timedelta(days=number, minutes=1), HOUR) for number in range(1, 24)), name="late")
    write(store, *((at, HOUR) for at in outage), name="stopped")
    (stop,) = look(store, start.replace(hour=0, minute=0), 25, PartLength.DAY)
    assert (stop.start, stop.end, stop.late) == (outage[0], outage[0] + HOUR, 60)


@pytest.mark.parametrize(
    "runs",
    [
        live(),
        live(wait=5 * MINUTE),
        [(at, 1) for at, _ in live()],
        [*live(), (STOPPED + HOUR / 4, HOUR)],
    ],
    ids=["all in time", "a lock held all back for minutes", "a policy skipped all", "one of many was late"],
)
def test_what_is_no_outage_is_not_called_one(store: SqliteStore, runs: list[tuple[datetime, timedelta | int]]) -> None:
    """A run that waited for long has to be among those of the hour, and none that started in time."""
    write(store, *runs)
    assert find_latest_stops(store.search, None, NOW) == ()
    assert look(store, NOW - 4 * DAY, 4, PartLength.HOUR) == ()


@pytest.mark.parametrize("minute", [0, 13])
def test_an_outage_of_what_recurs_within_the_hour_is_found(store: SqliteStore, minute: int) -> None:
    """Its hours have no runs, and the record of all that was skipped may stand in an hour in which some ran."""
    began = STOPPED + timedelta(minutes=minute)
    every = [NOW - number * timedelta(minutes=5) for number in range(12 * 80)]
    ran = [(at, timedelta(0)) for at in every if not began <= at < STARTED]
    write(store, *ran, (min(at for at in every if at >= began), 84), message=TOO_LATE, name="often")
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert began <= stop.start < began + 5 * MINUTE
    assert (stop.end, stop.skipped, stop.is_over) == (STARTED, 84, True)
    assert look(store, datetime(2027, 3, 22, tzinfo=UTC), 1, PartLength.QUARTER) == (stop,)
    assert look(store, datetime(2027, 3, 1, tzinfo=UTC), 31, PartLength.DAY) == (stop,)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_each_day_of_a_long_outage_tells_of_it_and_no_other_day_does(store: SqliteStore, zone: str) -> None:
    """Also one in which nothing has a record, and one that began before it had any."""
    began = STARTED - 2 * DAY - HOUR / 2
    every = [NOW - number * timedelta(minutes=5) for number in range(12 * 140)]
    ran = [(at, timedelta(0)) for at in every if not began <= at < STARTED]
    write(store, *ran, (min(at for at in every if at >= began), 48), message=TOO_LATE, name="often")
    (stop,) = find_latest_stops(store.search, None, NOW)
    midnight = datetime(2027, 3, 19, tzinfo=load_tzinfo(zone)).astimezone(UTC)
    for per in (PartLength.HOUR, PartLength.QUARTER):
        told = [look(store, midnight + day * DAY, 1, per, zone) for day in range(5)]
        assert told == [(), (stop,), (stop,), (stop,), ()], per


def test_a_pause_of_the_only_task_is_no_outage(store: SqliteStore) -> None:
    """Nothing was too late: what came due meanwhile was left out by somebody's wish."""
    every = [NOW - number * timedelta(minutes=5) for number in range(12 * 80)]
    ran = [(at, timedelta(0)) for at in every if not STOPPED <= at < STARTED]
    write(store, *ran, (STOPPED + 2 * MINUTE, 84), message="Its task was paused.", name="often")
    assert find_latest_stops(store.search, None, NOW) == ()


def test_home_learns_of_a_stop_as_soon_as_a_calendar(store: SqliteStore) -> None:
    """The stops are kept for minutes, but not once an hour has come in which nothing started in time."""
    elapsed = iter(range(0, 1000, 10))
    clock = MovableClock(NOW, frozen=True)
    overview = Overview(store, clock, lambda: float(next(elapsed)), SweepNotes(store, clock))
    write(store, *live(hours=8)[4:])
    assert overview.count(None)[0].stops == ()
    write(store, *live(hours=5, wait=HOUR), name="waiting")
    (stop,) = overview.count(None)[0].stops
    assert look(store, NOW - DAY, 1, PartLength.HOUR) == (stop,)
    assert not stop.is_over
    write(store, (NOW - MINUTE, timedelta(0)), name="prompt")
    (stop,) = overview.count(None)[0].stops
    assert stop.is_over


def test_a_stop_ends_when_what_waited_starts(store: SqliteStore) -> None:
    """Within an hour in which others started in time later, and it has the numbers until then."""
    resumed = STARTED + 36 * MINUTE
    every = [NOW - number * timedelta(minutes=5) for number in range(12 * 80)]
    write(store, *((at, resumed - at if STOPPED <= at < resumed else timedelta(0)) for at in every), name="often")
    (stop,) = find_latest_stops(store.search, None, NOW)
    assert (stop.start, stop.end) == (STOPPED, resumed)
    assert stop.late == sum(STOPPED <= at < resumed for at in every)
