"""What is going to run, over HTTP: merged by time, paged, bounded, and each caller's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import MakeTask
from tests.web.callers import DAY, HOUR
from tests.web.conftest import Call, create, fetch

from cloudsched.adapters.operation_counts import Counts, count_store
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.planning import upcoming_occurrences
from cloudsched.engine.ports.search import OccurrenceQuery
from cloudsched.engine.queries import occurrences
from cloudsched.engine.queries.occurrences import list_occurrences
from cloudsched.testing import Simulation

NOW = datetime(2027, 1, 1, 9, tzinfo=UTC)
_TASKS = st.lists(
    st.fixed_dictionaries(
        {
            "every": st.integers(1, 9),
            "first": st.integers(0, 20),
            "max_runs": st.none() | st.integers(1, 4),
            "owner": st.sampled_from(["ada", "bob"]),
        }
    ),
    max_size=6,
)


def make_repeating(make_task: MakeTask, number: int, each: dict[str, Any]) -> Any:  # noqa: ANN401 - a task
    """Return a task that repeats every so many minutes."""
    first = NOW + timedelta(minutes=each["first"])
    schedule = Schedule.every(timedelta(minutes=each["every"]), start=first)
    return make_task(
        id=f"t{number}",
        owner=each["owner"],
        schedule=schedule,
        is_one_time=False,
        next_execution_time=first,
        max_runs=each["max_runs"],
    )


@settings(max_examples=40, deadline=None)
@given(
    tasks=_TASKS,
    since=st.none() | st.integers(-5, 30),
    until=st.integers(0, 40),
    owner=st.none() | st.just("ada"),
    limit=st.integers(1, 7),
)
def test_the_list_is_what_the_tasks_say_one_by_one(
    make_task: MakeTask, tasks: list[dict[str, Any]], since: int | None, until: int, owner: str | None, limit: int
) -> None:
    """On whatever pages, in order of time, then of the task's id; each occurrence once."""
    store = SqliteStore()
    start = None if since is None else NOW + timedelta(minutes=since)
    end = NOW + timedelta(minutes=until)
    expected = []
    for number, each in enumerate(tasks):
        task = make_repeating(make_task, number, each)
        store.commit(Commit(task))
        if owner in {None, task.owner}:
            times = upcoming_occurrences(task, 50)
            expected += [(at, task.id) for at in times if at < end and (start is None or at >= start)]
    found, token = [], None
    for _ in range(400):
        page = list_occurrences(store, OccurrenceQuery(end, owner, start), limit, token)
        found += [(at, task.id) for at, task in page.items]
        assert page.complete_until is None
        token = page.next_page_token
        if token is None:
            break
        assert len(page.items) == limit
    store.close()
    assert found == sorted(expected)


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
    for number in range(100):
        each = {"every": 1440, "first": 5, "max_runs": None, "owner": "ada"}
        store.commit(Commit(make_repeating(make_task, number, each)))
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
