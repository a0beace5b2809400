"""Schedules that follow their owner from one time zone to another; see docs/guides/schedules.md."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from tests.engine.harness import HOUR, MINUTE

from cloudsched import Done, Schedule, Task, TaskDraft
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.documents.policy import CatchUp, CatchUpMode
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.documents.task_link import TaskLink, zone_key
from cloudsched.engine.authority import OWN_CODE
from cloudsched.engine.tasks import follow_changes
from cloudsched.errors import InvalidSchedule
from cloudsched.people.wiring import PeopleWiring
from cloudsched.testing import Simulation

AT_NINE = Schedule(rrule="FREQ=DAILY;BYHOUR=9", timezone="owner")
BERLIN, NEW_YORK, TOKYO = "Europe/Berlin", "America/New_York", "Asia/Tokyo"
SETTLE = 2 * MINUTE


@pytest.fixture(autouse=True)
def remind(sim: Simulation) -> None:
    @sim.app.handler("remind")
    def remind() -> None:
        pass


def be_in(sim: Simulation, zone: str, owner: str = "ada") -> None:
    """Let a person be in a zone, and let the tasks follow."""
    sim.app.put_person(owner, timezone=zone, replace=True)
    sim.advance(SETTLE)


def follow(sim: Simulation, schedule: Schedule | datetime = AT_NINE, task_id: str = "t", **more: Any) -> Task:
    return sim.app.create(id=task_id, owner="ada", handler="remind", schedule=schedule, **more)


def advance_to(sim: Simulation, day: int, hour: int, minute: int = 0) -> None:
    """Advance to a UTC time of December 2027."""
    sim.advance(datetime(2027, 12, day, hour, minute, tzinfo=UTC) - sim.now)


def local_days(sim: Simulation, task_id: str = "t") -> list[str]:
    """Return the local times that have run, as their ids have them, the earliest first."""
    return sorted(each.id for each in sim.executions(task_id) if each.status is ExecutionStatus.SUCCEEDED)


@pytest.fixture
def at_home(sim: Simulation) -> Simulation:
    """Ada is in Berlin, on 30 November 2027, and nothing has run."""
    sim.advance(datetime(2027, 11, 30, 12, tzinfo=UTC) - sim.now)
    be_in(sim, BERLIN)
    return sim


def test_west_the_hours_that_come_again_run_nothing_again(at_home: Simulation) -> None:
    """Ran at 9 in Berlin, then to New York, where it becomes 9 again: the next run is at 9 the day after."""
    follow(at_home)
    advance_to(at_home, 1, 10)
    be_in(at_home, NEW_YORK)
    advance_to(at_home, 3, 12)
    assert local_days(at_home) == ["20271201T090000-owner", "20271202T090000-owner"]
    latest = max(each.scheduled_for for each in at_home.executions("t"))
    assert latest == datetime(2027, 12, 2, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "policies", [{}, {"catch_up": CatchUp(mode=CatchUpMode.NONE)}, {"expiration": HOUR}, {"jitter": HOUR / 4}]
)
def test_east_what_the_clock_passes_over_runs_at_once(at_home: Simulation, policies: dict[str, Any]) -> None:
    """At 8 in New York it becomes 14 in Berlin: that day's 9 o'clock runs then, and no policy calls it late."""
    be_in(at_home, NEW_YORK)
    at_home.advance(HOUR * 6)
    follow(at_home, **policies)
    advance_to(at_home, 1, 13)
    be_in(at_home, BERLIN)
    at_home.advance(HOUR / 2)
    (run,) = at_home.executions("t")
    assert (run.id, run.status) == ("20271201T090000-owner", ExecutionStatus.SUCCEEDED)
    assert run.started_at is not None
    assert run.started_at >= datetime(2027, 12, 1, 13, tzinfo=UTC)
    advance_to(at_home, 3, 8, 30)
    assert local_days(at_home) == [f"2027120{day}T090000-owner" for day in (1, 2, 3)]


def test_several_times_that_a_flight_passes_over_are_for_catch_up(at_home: Simulation) -> None:
    """By default the latest of them runs, and the other is SKIPPED; with `all`, both run."""
    be_in(at_home, NEW_YORK)
    at_home.advance(HOUR * 6)
    twice = Schedule(rrule="FREQ=DAILY;BYHOUR=9,12", timezone="owner")
    follow(at_home, twice)
    follow(at_home, twice, "all", catch_up=CatchUp(mode=CatchUpMode.ALL))
    advance_to(at_home, 1, 13)
    be_in(at_home, BERLIN)
    statuses = {each.id: each.status for each in at_home.executions("t")}
    assert statuses == {
        "20271201T090000-owner": ExecutionStatus.SKIPPED,
        "20271201T120000-owner": ExecutionStatus.SUCCEEDED,
    }
    assert len(local_days(at_home, "all")) == 2


def test_once_at_a_local_time_moves_too(at_home: Simulation) -> None:
    """A single time is one of the clock's, wherever that is."""
    task = follow(at_home, datetime(2027, 12, 2, 8, tzinfo=UTC))
    assert not task.schedule.follows_owner
    task = follow(at_home, Schedule.once(datetime(2027, 12, 2, 8, tzinfo=UTC), "owner"), "once")
    assert task.is_one_time
    assert task.next_execution_time == datetime(2027, 12, 2, 8, tzinfo=UTC)
    be_in(at_home, NEW_YORK)
    assert at_home.app.get("once").next_execution_time == datetime(2027, 12, 2, 14, tzinfo=UTC)
    advance_to(at_home, 3, 0)
    said = follow(at_home, Schedule(local="2027-12-04T18:00", timezone="owner"), "said")
    assert said.next_execution_time == datetime(2027, 12, 4, 23, tzinfo=UTC)
    assert at_home.app.get("once").status is TaskStatus.COMPLETED
    assert local_days(at_home, "once") == ["20271202T090000-owner"]


def test_a_delay_in_words_stays_the_instant_that_it_was(at_home: Simulation) -> None:
    """In 26 hours is the same everywhere, though its other words would follow the owner."""
    task = at_home.app.create(owner="ada", handler="remind", schedule="in 26 hours", timezone="owner")
    assert (task.schedule.timezone, task.schedule.follows_owner) == (BERLIN, False)
    due_at = at_home.now.replace(microsecond=0) + 26 * HOUR
    be_in(at_home, NEW_YORK)
    moved = at_home.app.get(task.id).next_execution_time
    assert moved is not None
    assert abs(moved - due_at) < MINUTE


def test_elapsed_hours_are_the_same_everywhere(at_home: Simulation) -> None:
    """Every five hours stays every five hours; its limits are read on the owner's clock."""
    follow(at_home, Schedule(rrule="FREQ=HOURLY;INTERVAL=5", timezone="owner"))
    daytime = Schedule(rrule="FREQ=HOURLY;BYHOUR=9,10,11,12,13,14,15,16,17", timezone="owner")
    follow(at_home, daytime, "day")
    be_in(at_home, "Asia/Kolkata")
    advance_to(at_home, 2, 0)
    be_in(at_home, NEW_YORK)
    advance_to(at_home, 4, 0)
    starts = sorted(each.scheduled_for for each in at_home.executions("t"))
    assert len(starts) >= 15
    assert {after - before for before, after in pairwise(starts)} == {5 * HOUR}
    new = [each for each in at_home.executions("day") if each.scheduled_for > datetime(2027, 12, 2, 1, tzinfo=UTC)]
    assert {each.scheduled_for.hour for each in new} == set(range(14, 23))


def test_others_stay_where_they_are(at_home: Simulation) -> None:
    """A journey moves the tasks of the person who makes it, and of these only those that follow."""
    be_in(at_home, BERLIN, "bob")
    at_home.app.create(id="bobs", owner="bob", handler="remind", schedule=AT_NINE)
    follow(at_home, Schedule(rrule="FREQ=DAILY;BYHOUR=9", timezone=BERLIN), "fixed")
    before = at_home.app.get("bobs"), at_home.app.get("fixed")
    be_in(at_home, TOKYO)
    assert (at_home.app.get("bobs"), at_home.app.get("fixed")) == before


def test_an_edit_on_the_way_runs_nothing_twice(at_home: Simulation) -> None:
    """Between the change of the zone and the plan, a new schedule is read in the zone in which the task still is."""
    follow(at_home)
    advance_to(at_home, 1, 10)
    at_home.app.update_person("ada", timezone=NEW_YORK)
    edited = at_home.app.update("t", schedule=Schedule(rrule="FREQ=DAILY;BYHOUR=9,20", timezone="owner"))
    assert edited.schedule.timezone == BERLIN
    advance_to(at_home, 2, 16)
    assert local_days(at_home) == ["20271201T090000-owner", "20271201T200000-owner", "20271202T090000-owner"]


def test_a_creation_that_is_repeated_elsewhere_changes_nothing(at_home: Simulation) -> None:
    """The same draft with the same id, from a program that starts again, is not another schedule, whatever the zone."""
    for task_id, rule in (("t", "FREQ=DAILY;BYHOUR=9"), ("e", "FREQ=HOURLY;INTERVAL=5")):
        schedule = Schedule(rrule=rule, dtstart="2027-11-01T09:00:00", timezone="owner")
        follow(at_home, schedule, task_id)
        be_in(at_home, TOKYO)
        before = at_home.app.get(task_id)
        assert follow(at_home, schedule, task_id) == before
        assert follow(at_home, before.schedule, task_id) == before
        unanchored = Schedule(rrule=rule, timezone="owner")
        assert follow(at_home, unanchored, task_id) == before
        be_in(at_home, BERLIN)


def test_a_zone_that_is_changed_alone_moves_tasks_as_a_whole_one_does(at_home: Simulation) -> None:
    """A change of something else moves none, and replans none."""
    follow(at_home)
    revision = at_home.app.get("t").revision
    at_home.app.update_person("ada", name="Ada", email={"address": "ada@example.com"})
    at_home.advance(SETTLE)
    assert at_home.app.get("t").revision == revision
    at_home.app.update_person("ada", timezone=TOKYO)
    at_home.advance(SETTLE)
    assert at_home.app.get("t").schedule.timezone == TOKYO
    assert at_home.app.get("t").next_execution_time == datetime(2027, 12, 1, tzinfo=UTC)
    at_home.app.update_person("ada", timezone=None)
    at_home.advance(SETTLE)
    assert at_home.app.get("t").schedule.timezone == "UTC"
    assert at_home.app.person("ada").name == "Ada"


def test_an_owner_without_a_zone_is_refused(sim: Simulation) -> None:
    """The error says what is missing, and nothing is stored. So is the system, which is nobody."""
    for owner in ("ada", "system"):
        with pytest.raises(InvalidSchedule, match="PUT /v1/people") as caught:
            sim.app.create(id="t", owner=owner, handler="remind", schedule=AT_NINE)
        assert caught.value.field == "schedule.timezone"
    assert not sim.app.tasks().items
    sim.app.put_person("ada")
    assert follow(sim).schedule.timezone == "UTC"


def test_all_that_is_stored_of_a_person_has_its_links_too(at_home: Simulation) -> None:
    """Erasing leaves no link to the tasks that followed."""
    follow(at_home)
    records = at_home.app.container.store.records
    assert records.list(TaskLink, zone_key("ada"), limit=5)
    PeopleWiring.of(at_home.app.container).person_jobs.erase("ada", by=OWN_CODE)
    at_home.advance(HOUR)
    assert not records.list(TaskLink, zone_key("ada"), limit=5)
    assert PeopleWiring.of(at_home.app.container).people.find("ada") is None


def test_any_number_of_tasks_follows(at_home: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run plans some pages, and the next one goes on; one task that cannot be planned stops none."""
    monkeypatch.setattr(follow_changes, "PAGE_SIZE", 2)
    monkeypatch.setattr(follow_changes, "MAX_PAGES", 2)
    for number in range(11):
        follow(at_home, task_id=f"t{number}")
    be_in(at_home, TOKYO)
    at_home.advance(HOUR / 2)
    zones = {at_home.app.get(f"t{number}").schedule.timezone for number in range(11)}
    assert zones == {TOKYO}


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"rrule": "FREQ=DAILY", "rdates": ["2027-12-01T09:00:00Z"]}, "rdates.0"),
        ({"rrule": "FREQ=DAILY", "exdates": ["2027-12-01T09:00:00+01:00"]}, "exdates.0"),
        ({"rrule": ["FREQ=DAILY", "FREQ=HOURLY"]}, "rrule"),
        ({"rrule": "FREQ=HOURLY", "rdates": ["2027-12-01T09:00:00"]}, "rrule"),
        ({"rrule": "FREQ=DAILY", "startZone": BERLIN}, "startZone"),
    ],
)
def test_what_cannot_follow_is_refused(fields: dict[str, Any], field: str) -> None:
    """Instants, and elapsed time beside local times: the error names the part."""
    with pytest.raises(InvalidSchedule) as caught:
        Schedule.model_validate({**fields, "dtstart": "2027-11-01T09:00:00", "timezone": "owner"})
    assert caught.value.field == field


def test_a_follow_up_cannot_follow(at_home: Simulation) -> None:
    """Nothing would link it to its owner: the run fails with what to do instead."""

    @at_home.app.handler("chain")
    def chain() -> Done:
        return Done(then=[TaskDraft(handler="remind", owner="ada", schedule=AT_NINE)])

    at_home.app.create(id="c", owner="ada", handler="chain", schedule=at_home.now + HOUR)
    at_home.advance(2 * HOUR)
    (run,) = at_home.executions("c")
    assert run.error is not None
    assert "follow" in run.error.message
