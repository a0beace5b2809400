"""What is counted as due is what the list of occurrences has, for any tasks, parts and filters."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.harness import DAY, HOUR

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.run_counts import PartLength
from cloudsched.domain.documents.task import DueRange, Task
from cloudsched.domain.responses.count import Count
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.planning import note_zone, occurrence_from, upcoming_occurrences
from cloudsched.engine.ports.search import OccurrenceQuery
from cloudsched.engine.queries import occurrences
from cloudsched.engine.queries.due_counts import count_due
from cloudsched.engine.queries.occurrences import list_occurrences
from cloudsched.engine.queries.time_parts import split_time
from cloudsched.testing import START

BEGIN = datetime(2027, 3, 24, 14, 42, 7, tzinfo=UTC)
"""Four days before clocks go forward in Paris, and some before and after other zones' changes."""
RULES = (
    "FREQ=DAILY",
    "FREQ=DAILY;INTERVAL=2",
    "FREQ=DAILY;BYDAY=MO,SU",
    "FREQ=DAILY;BYHOUR=1,2,3",
    "FREQ=DAILY;COUNT=12",
    "FREQ=WEEKLY",
    "FREQ=WEEKLY;BYDAY=SU,WE",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU,TH",
    "FREQ=HOURLY",
    "FREQ=HOURLY;INTERVAL=7",
    "FREQ=HOURLY;COUNT=200",
    "FREQ=MINUTELY;INTERVAL=50;UNTIL=20270327T000000Z",
    "FREQ=MINUTELY;INTERVAL=90",
    "FREQ=MINUTELY;BYHOUR=9;INTERVAL=20",
    "FREQ=MONTHLY;BYDAY=-1SU",
    "FREQ=MONTHLY",
    "FREQ=DAILY;UNTIL=20270401T000000Z",
)
TASKS = st.lists(
    st.tuples(
        st.sampled_from(RULES),
        st.sampled_from(("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe")),
        st.integers(0, 3),
        st.sampled_from((0, 90, 150, 1380)),
        st.integers(-30, 60),
        st.sampled_from(("", "until", "max_runs", "backlog", "once", "skip", "both", "exdate")),
    ),
    min_size=1,
    max_size=8,
)


def build(**fields: Any) -> Task:
    usual: dict[str, Any] = dict.fromkeys(("created_at", "updated_at", "status_changed_at"), START)
    usual |= {"owner": "ada", "title": "A task", "handler": "do", "timezone": "UTC"}
    return Task(**usual | {"is_one_time": fields["schedule"].is_one_time} | fields)


def make_task(number: int, drawn: tuple[str, str, int, int, int, str]) -> Task | None:
    rule, zone, day, minute, hours, twist = drawn
    local = datetime(2027, 3, 20 + day) + timedelta(minutes=minute)  # noqa: DTZ001 - local
    more: dict[str, Any] = {"gap": "SKIP"} if twist == "skip" else {"fold": "BOTH"} if twist == "both" else {}
    if twist == "exdate":
        more["exdates"] = ("2027-03-26",)
    schedule = Schedule(rrule=rule, dtstart=local, timezone=zone, **more)
    if twist == "once":
        schedule = Schedule.once(BEGIN + timedelta(hours=hours))
    policy: dict[str, Any] = {}
    if twist == "until":
        policy["until"] = BEGIN + timedelta(days=3, minutes=minute)
    if twist == "max_runs":
        policy |= {"max_runs": 5, "run_count": 2}
    if twist == "backlog":
        until = BEGIN + 2 * HOUR
        policy |= {"backlog": (DueRange(next_at=BEGIN - DAY, until=until),), "plan_from": until}
    task = build(
        id=f"task-{number}", owner="ada" if number % 2 else "grace", handler=f"do-{number % 3}",
        schedule=schedule, timezone=zone, labels=("a=b",) if number % 3 else (), **policy,
    )  # fmt: skip
    coming = occurrence_from(task, BEGIN + timedelta(hours=hours))
    if coming is None:
        return None
    task = task.model_copy(update={"next_execution_time": coming, "wake_at": coming})
    return task.model_copy(update={"zone_plan": note_zone(task)})


@given(
    TASKS,
    st.sampled_from((PartLength.DAY, PartLength.HOUR, PartLength.QUARTER)),
    st.sampled_from(("UTC", "Europe/Paris", "Asia/Kathmandu")),
    st.sampled_from(({}, {"owner": "ada"}, {"handler": "do-1"}, {"label": "a=b"})),
)
def test_each_part_counts_what_the_list_has_there(
    drawn: list[tuple[str, str, int, int, int, str]], per: PartLength, zone: str, filters: dict[str, Any]
) -> None:
    """Parts join, in every zone and over clock changes, and each counts the listed occurrences in it."""
    store = SqliteStore()
    for number, each in enumerate(drawn):
        if (task := make_task(number, each)) is not None:
            store.commit(Commit(task))
    until = BEGIN + timedelta(days={PartLength.DAY: 12, PartLength.HOUR: 8, PartLength.QUARTER: 2}[per])
    edges = split_time(BEGIN, until, ZoneInfo(zone), per)
    assert (edges[0], edges[-1]) == (BEGIN, until)
    third = len(edges) // 3
    for part in (edges, edges, edges[third : 2 * third]):  # most is remembered from the first, of the whole
        found = count_due(store, OccurrenceQuery(part[-1], **{"owner": None, "since": part[0], **filters}), part)
        query = OccurrenceQuery(part[-1], filters.get("owner"), part[0], filters.get("handler"), filters.get("label"))
        listed = [at for at, _ in list_occurrences(store, query, 10_000).items]
        expected = [len([at for at in listed if start <= at < end]) for start, end in pairwise(part)]
        assert found == [Count(value=each) for each in expected]
    store.close()


def test_a_task_of_every_second_is_counted_without_a_walk_over_its_month() -> None:
    """Two and a half million occurrences are complete within what one request may search."""
    store = SqliteStore()
    schedule = Schedule(rrule="FREQ=SECONDLY", dtstart=BEGIN.replace(tzinfo=None))
    store.commit(Commit(build(id="each-second", schedule=schedule, next_execution_time=BEGIN)))
    until = BEGIN + 30 * DAY
    found = count_due(store, OccurrenceQuery(until, None), split_time(BEGIN, until, ZoneInfo("UTC"), PartLength.DAY))
    assert sum(found, Count(value=0)) == Count(value=30 * 86_400)


def test_a_count_that_is_cut_says_from_when_on_it_is() -> None:
    """A rule that has to be walked over ends at its part of the search; all before that is counted."""
    store = SqliteStore()
    schedule = Schedule(rrule="FREQ=SECONDLY;BYHOUR=0,2,4,6,8,10,12,14,16,18,20,22", dtstart=BEGIN.replace(tzinfo=None))
    first = schedule.next_after(BEGIN)
    store.commit(Commit(build(id="walked", schedule=schedule, next_execution_time=first)))
    until = BEGIN + 30 * DAY
    begin = BEGIN.replace(minute=0, second=0, microsecond=0)
    edges = [begin + number * timedelta(minutes=15) for number in range(30 * 96 + 5)]
    found = count_due(store, OccurrenceQuery(until, None), edges)
    assert first is not None
    assert [each.at_least for each in found] == sorted(each.at_least for each in found), "it ends once"
    assert found[-1].at_least
    whole = [each for each, start in zip(found, edges, strict=False) if start >= first and not each.at_least]
    assert whole
    assert {each.value for each in whole} <= {0, 900}


@given(TASKS, st.integers(0, 200), st.sampled_from((1, 7)), st.sampled_from((1, 4)))
def test_pages_that_begin_later_have_each_occurrence_of_each_task_once(
    drawn: list[tuple[str, str, int, int, int, str]], hours: int, limit: int, copies: int
) -> None:
    """In order, also of many tasks at once and of those that are due before, however few a bounded list may read."""
    store = SqliteStore()
    tasks = [task for number, each in enumerate(drawn * copies) if (task := make_task(number, each)) is not None]
    since = BEGIN + timedelta(hours=hours)
    until = since + 9 * HOUR
    expected: list[tuple[datetime, str]] = []
    for task in tasks:
        store.commit(Commit(task))
        times = itertools.takewhile(lambda at: at < until, upcoming_occurrences(task, 500))
        expected += [(at, task.id) for at in times if at >= since]
    expected.sort()
    listed: list[tuple[datetime, str]] = []
    token: str | None = ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occurrences, "MAX_TASKS", 2)
        patch.setattr(occurrences, "_PART", 3)
        while token is not None and len(listed) < 20:
            page = list_occurrences(store, OccurrenceQuery(until, None, since), limit, token or None, is_bounded=False)
            listed += [(at, task.id) for at, task in page.items]
            assert page.complete_until is None
            token = page.next_page_token
    assert listed == (expected[: len(listed)] if token else expected)
    store.close()


@given(TASKS, st.sampled_from(({"handler": "do-1"}, {"label": "a=b"})), st.integers(0, 60))
def test_a_filter_finds_all_that_it_means_beside_any_number_of_others(
    drawn: list[tuple[str, str, int, int, int, str]], filters: dict[str, Any], hours: int
) -> None:
    """However few tasks a list may read, those that a filter leaves out are not among them."""
    store = SqliteStore()
    tasks = [task for number, each in enumerate(drawn) if (task := make_task(number, each)) is not None]
    for task in tasks:
        store.commit(Commit(task))
    since = BEGIN + timedelta(hours=hours)
    query = OccurrenceQuery(since + 3 * DAY, None, since, **filters)
    meant = [task.id for task in tasks if query.matches(task)]
    whole = list_occurrences(store, replace(query, handler=None, label=None), 10_000).items
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(occurrences, "MAX_TASKS", len(meant) + 1)
        found = list_occurrences(store, query, 10_000)
    assert [(at, task.id) for at, task in found.items] == [(at, task.id) for at, task in whole if task.id in meant]
    assert found.complete_until is None
    store.close()


def test_beyond_a_bound_counts_say_at_least_and_lists_are_whole() -> None:
    """A thousand are counted exactly. A list has each of them on its pages together, again and again, in order."""
    store = SqliteStore()
    edges = (BEGIN, BEGIN + HOUR, BEGIN + 3 * HOUR)
    expected: list[tuple[datetime, str]] = []
    for number in range(1100):
        at = BEGIN + timedelta(seconds=number // 2)
        schedule = Schedule.every(HOUR, start=at) if number % 2 else Schedule.once(at)
        owner = "ada" if number < 1000 else "grace"
        task = build(id=f"t{number:04}", owner=owner, schedule=schedule, next_execution_time=at, wake_at=at)
        store.commit(Commit(task))
        expected += [(at + timedelta(hours=each), task.id) for each in range(3 if number % 2 else 1)]
    exact = count_due(store, OccurrenceQuery(edges[-1], "ada", edges[0]), edges)
    assert exact == [Count(value=1000), Count(value=1000)]
    some = count_due(store, OccurrenceQuery(edges[-1], None, edges[0]), edges)
    assert all(each.at_least and 0 < each.value <= 1100 for each in some)
    listed: list[tuple[datetime, str]] = []
    token: str | None = ""
    while token is not None:
        page = list_occurrences(store, OccurrenceQuery(edges[-1], None, edges[0]), 200, token or None)
        assert page.complete_until is None
        listed += [(at, task.id) for at, task in page.items]
        token = page.next_page_token
    assert listed == sorted(expected)
    store.close()
