"""Simultaneous creations of one owner exceed a limit by no more than the stated bound, on each store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.authorities import as_user, with_authority
from tests.engine.harness import DAY, MINUTE, RecordingQueue
from tests.harness import new_project

from cloudsched import App, Settings, Task
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.config.access import Access
from cloudsched.domain.documents.authority import Requesters
from cloudsched.domain.recurrence.allowance import limit_search
from cloudsched.engine.state.quotas import MAX_EXCESS, QuotaLimits
from cloudsched.engine.state.record_changes import count_recent
from cloudsched.errors import InvalidInput, QuotaExceeded
from cloudsched.testing import START

THREADS = 32


@pytest.fixture(params=["sqlite", "firestore"])
def limited_app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Wire an app with these limits to a new store of each kind, as in production."""
    made: list[App] = []

    def make(**limits: int) -> App:
        access = Access(**limits)  # type: ignore[arg-type]  # the two limits, by name
        if request.param == "sqlite":
            settings = Settings(store="sqlite", data=tmp_path / "tasks.db", access=access, secret="x" * 40)
        else:
            address, project = request.getfixturevalue("firestore_address"), new_project()
            settings = Settings(firestore_emulator=address, project=project, access=access, secret="x" * 40)
        app = App(settings, dispatcher=RecordingQueue(), clock=ManualClock(START))
        app.handler("work", access="users")(lambda: None)
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()


@pytest.fixture
def app() -> Iterator[App]:
    settings = Settings(secret="x" * 40)
    with closing(App(settings, store=SqliteStore(), dispatcher=RecordingQueue(), clock=ManualClock(START))) as made:
        made.handler("work", access="users")(lambda: None)
        yield made


def create(app: App, owner: str = "ada", requesters: Requesters = Requesters.USERS) -> bool:
    """Create a task; return whether there was room."""
    try:
        app.acting_with(with_authority(requesters)).put(app.to_draft({"owner": owner, "handler": "work"}))
    except QuotaExceeded:
        return False
    return True


@pytest.mark.parametrize("limit", [5, 32])
@pytest.mark.parametrize("name", ["max_active_tasks", "max_creations"])
def test_simultaneous_creations_exceed_a_limit_by_the_stated_bound(
    limited_app: Callable[..., App], name: str, limit: int
) -> None:
    """Many threads create until there is no room: the limit is reached, and exceeded by at most the bound."""
    app = limited_app(**{name: limit})
    start = threading.Barrier(THREADS)

    def keep_creating(_: int) -> int:
        start.wait()
        made = 0
        while create(app):
            made += 1
        return made

    with ThreadPoolExecutor(THREADS) as threads:
        made = sum(threads.map(keep_creating, range(THREADS)))
    bound = limit // 10
    assert QuotaLimits(limit).max_excess == bound
    assert limit <= made <= limit + bound
    assert app.container.store.search.count_unfinished("ada", 1000) == made
    assert create(app, "bob"), "each owner has a limit of their own"
    assert create(app, requesters=Requesters.SERVERS), "servers have none"


def test_simultaneous_revivals_exceed_a_limit_by_the_stated_bound(limited_app: Callable[..., App]) -> None:
    """Many threads give tasks that have ended new schedules, beside others that create: the bound is the same."""
    limit = 10
    app = limited_app(max_active_tasks=limit)
    drafts = [{"owner": "ada", "handler": "work", "id": f"t{number}"} for number in range(64)]
    for draft in drafts:
        app.cancel(app.put(app.to_draft(draft))[0].id)
    start = threading.Barrier(THREADS)

    def revive(thread: int) -> int:
        start.wait()
        made = 0
        for number in range(thread, len(drafts), THREADS):
            change = {"schedule": {"at": (START + DAY).isoformat()}}
            with suppress(QuotaExceeded):
                as_user(app).patch(f"t{number}", change)
                made += 1
        return made + create(app)

    with ThreadPoolExecutor(THREADS) as threads:
        made = sum(threads.map(revive, range(THREADS)))
    assert limit <= made <= limit + limit // 10
    assert app.container.store.search.count_unfinished("ada", 1000) == made


@given(limits=st.tuples(*2 * [st.none() | st.integers(1, 10**6)]))
def test_the_bound_is_a_tenth_of_the_limit(limits: tuple[int | None, int | None]) -> None:
    """And never more than MAX_EXCESS; of two limits the smaller one decides."""
    smallest = min((each for each in limits if each is not None), default=0)
    excess = QuotaLimits(*limits).max_excess
    assert 0 <= excess <= min(MAX_EXCESS, smallest / 10)
    assert excess == MAX_EXCESS or excess > smallest / 10 - 1


OFTEN = [
    "every second",
    "every 10 seconds",
    {"rrule": "FREQ=SECONDLY;INTERVAL=59"},
    {"rrule": "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0,30"},
    {"rrule": ["FREQ=DAILY", "FREQ=SECONDLY;BYMONTH=7"]},
    {"rrule": ["FREQ=DAILY", "FREQ=YEARLY;BYMONTH=7;BYHOUR=9;BYSECOND=0,1"]},
    {"rrule": ["FREQ=DAILY;BYSECOND=0", "FREQ=YEARLY;BYMONTH=7;BYSECOND=0", "FREQ=YEARLY;BYMONTH=7;BYSECOND=20"]},
    {"rrule": "FREQ=DAILY", "dtstart": "2027-01-01T09:00:00", "rdates": ["2027-03-01T09:00:05", "2027-03-01T09:00:06"]},
]
SELDOM = [
    "every minute",
    "every day at 9:00",
    {"rrule": "FREQ=MINUTELY"},
    {"rrule": ["FREQ=DAILY;BYHOUR=9", "FREQ=DAILY;BYHOUR=9;BYMINUTE=1"]},
    {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29"},
]


@pytest.mark.parametrize("door", ["create", "edit"])
def test_a_user_s_schedule_keeps_a_least_interval(app: App, door: str) -> None:
    """A minute, if nothing else is set, whenever in the year it would be shorter; servers may do as they like."""

    def give(by: App, schedule: Any) -> Task:  # noqa: ANN401 - words or fields
        if door == "create":
            return by.create(owner="ada", handler="work", schedule=schedule)
        task = app.create(owner="ada", handler="work", schedule="every day at 9:00")
        return by.update(task.id, schedule=schedule)

    for schedule in OFTEN:
        with pytest.raises(InvalidInput, match="Leave at least 1 minute between two runs"):
            give(as_user(app), schedule)
        give(app, schedule)
    for schedule in SELDOM:
        give(as_user(app), schedule)


COSTLY = (
    "FREQ=DAILY;INTERVAL={};BYMONTH=2;BYMONTHDAY=29",
    "FREQ=MINUTELY;INTERVAL={};BYMONTH=3;BYMONTHDAY=31;BYHOUR=3",
)


def test_a_costly_schedule_hides_no_frequent_one(app: App) -> None:
    """A search that is out of steps has not found that all is well: no number of costly rules gets a rule past it."""
    for number in range(1, 19):
        for costly in COSTLY:
            rules = ["FREQ=DAILY", *(costly.format(7 * each + 7) for each in range(number)), "FREQ=SECONDLY;BYMONTH=7"]
            schedule: Any = {"rrule": rules, "dtstart": "2027-01-01T09:00:00"}
            with pytest.raises(InvalidInput), limit_search():
                as_user(app).create(owner="ada", handler="work", schedule=schedule)


def test_a_user_may_have_a_thousand_tasks_unless_it_is_set_otherwise(app: App) -> None:
    """And what runs more often than it may stays editable: only a new schedule is looked at."""
    often = app.create(owner="ada", handler="work", schedule="every second")
    assert as_user(app).update(often.id, title="New").title == "New"
    assert Access().max_active_tasks == 1000
    assert Access.from_environment({"CLOUDSCHED_MAX_ACTIVE_TASKS": "unlimited"}).max_active_tasks is None


def test_room_that_is_left_does_not_wait_for_another_machine_s_clock() -> None:
    """An event that was noted by a clock which is ahead takes one place, and holds up no other event."""
    with closing(SqliteStore()) as store:

        def count(at: datetime) -> None:
            clock, span = ManualClock(at), MINUTE
            count_recent(store.records, clock, "events", limit=2, span=span, quota="events", hint="Wait.")

        count(START + timedelta(milliseconds=40))
        count(START)
        with pytest.raises(QuotaExceeded, match="Try again in"):
            count(START)
