"""What is going to run, over HTTP: merged by time, paged, bounded, and each caller's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conftest import MakeTask
from tests.web.callers import DAY, HOUR
from tests.web.conftest import Call, create, fetch

from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.engine.ports.search import OccurrenceQuery
from cloudsched.engine.queries import occurrences
from cloudsched.engine.queries.occurrences import list_occurrences
from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)


def test_only_tasks_that_are_due_are_read(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """One read each, however many others there are; and no more than the bound, which is said."""
    counts = Counts()
    store = count_store(SqliteStore(), counts)
    for number in range(30):
        at = NOW + timedelta(hours=number)
        store.commit(Commit(make_task(id=f"t{number:02}", schedule=Schedule.once(at), next_execution_time=at)))
    before = counts.copy()
    page = list_occurrences(store, OccurrenceQuery(NOW + 5 * HOUR, None), 50)
    assert (len(page.items), counts.since(before).reads) == (5, 5)
    monkeypatch.setattr(occurrences, "_PART", 10)
    before = counts.copy()
    assert len(list_occurrences(store, OccurrenceQuery(NOW + 9 * DAY, None), 3).items) == 3
    assert counts.since(before).reads <= 10
    monkeypatch.setattr(occurrences, "MAX_TASKS", 20)
    page = list_occurrences(store, OccurrenceQuery(NOW + 9 * DAY, None), 50)
    assert (len(page.items), page.complete_until) == (20, NOW + 19 * HOUR)
    store.close()


def test_a_deep_page_is_complete_beside_thousands_of_tasks_due_before_it(
    call: Call, sim: Simulation, make_task: MakeTask
) -> None:
    """More than a request may read otherwise, and their rules take more steps than it may search."""
    sim.app.container.many_tasks.has_free_counts = True  # as with the settings of SQLite
    day, expected = NOW + 9 * DAY, []
    for number in range(4_000):
        at = NOW + timedelta(seconds=number * 7919 % 86_400 // 60 * 60)
        rule = Schedule(rrule="FREQ=DAILY;COUNT=20", dtstart=at.replace(tzinfo=None))
        more = {"schedule": rule, "is_one_time": False, "next_execution_time": at, "payload": {"text": "x" * 700}}
        sim.app.container.store.commit(Commit(make_task(id=f"t{number:04}", **more)))
        if at < NOW + timedelta(minutes=10):
            expected.append((f"{at + 9 * DAY:%Y-%m-%dT%H:%M:%SZ}", f"t{number:04}"))
    path = f"/v1/occurrences?from={day:%Y-%m-%dT%H:%M:%SZ}&until={day:%Y-%m-%d}T09:10:00Z&pageSize=20"
    listed, token = [], ""
    while True:
        shown = fetch(call, path + token)
        assert "completeUntil" not in shown
        listed += [(each["utc"], each["taskId"]) for each in shown["occurrences"]]
        if "nextPageToken" not in shown:
            break
        token = f"&pageToken={shown['nextPageToken']}"
    assert listed == sorted(expected)


def test_many_that_are_due_at_once_are_all_listed(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine o'clock of a hundred people has more tasks than one request reads: each page reads about its own."""
    monkeypatch.setattr(occurrences, "MAX_TASKS", 30)
    store = SqliteStore()
    daily = {"schedule": Schedule.every(DAY, start=NOW), "is_one_time": False, "next_execution_time": NOW}
    for number in range(100):
        store.commit(Commit(make_task(id=f"t{number}", **daily)))
    found, token = list[str](), None
    for _ in range(30):
        page = list_occurrences(store, OccurrenceQuery(NOW + 3 * DAY, None, since=NOW), 10, token)
        assert page.complete_until is None, "it has read too many"
        found += [task.id for _, task in page.items]
        token = page.next_page_token
    store.close()
    assert token is None
    assert found == sorted(f"t{number}" for number in range(100)) * 3


def test_the_api_shows_both_clocks(call: Call) -> None:
    """The instant in UTC and in the task's zone, on both sides of a clock change; paused tasks are left out."""
    schedule = {"rrule": "FREQ=DAILY;BYHOUR=9", "dtstart": "2027-03-26T09:00:00", "timezone": "Europe/Paris"}
    create(call, id="a", schedule=schedule)
    create(call, id="b", schedule=schedule)
    call("POST", "/v1/tasks/b/pause")
    shown = fetch(call, "/v1/occurrences?from=2027-03-27T00:00:00Z&until=2027-03-29T00:00:00Z")
    assert [(one["utc"], one["local"]) for one in shown["occurrences"]] == [
        ("2027-03-27T08:00:00Z", "2027-03-27T09:00:00+01:00"),
        ("2027-03-28T07:00:00Z", "2027-03-28T09:00:00+02:00"),
    ]
    assert {one["taskId"] for one in shown["occurrences"]} == {"a"}
    first = fetch(call, "/v1/occurrences?until=2027-04-09T00:00:00Z&pageSize=1")
    token = first["nextPageToken"]
    assert call("GET", f"/v1/occurrences?until=2027-05-09T00:00:00Z&pageToken={token}").status_code == 400


@pytest.mark.parametrize(
    ("query", "says"), [("", "until"), ("until=soon", "until"), ("until=2027-05-09T00:00:00Z&status=ACTIVE", "label")]
)
def test_what_cannot_be_listed_is_refused(call: Call, query: str, says: str) -> None:
    answer = call("GET", f"/v1/occurrences?{query}")
    assert answer.status_code == 400
    assert says in answer.text
