"""What clock changes do to a schedule: each policy, and zones with unusual clock changes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cases import try_each

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.planning import name_occurrence


def list_local_times(schedule: Schedule, start: str, count: int) -> list[str]:
    """Return the next occurrences after a UTC instant as local times with their offsets."""
    zone = time_zones.load_tzinfo(schedule.timezone)
    found = schedule.upcoming(datetime.fromisoformat(start).replace(tzinfo=UTC), count)
    return [f"{at.astimezone(zone):%m-%dT%H:%M%z}" for at in found]


@try_each(
    "rule, dtstart, policies, after, expected",
    [
        # Gap: 02:30 of 14 March does not exist.
        ("DAILY", "2026-01-01T02:30", {}, "2027-03-13T12", ["03-14T03:30-0400", "03-15T02:30-0400"]),
        ("DAILY", "2026-01-01T02:30", {"gap": "skip"}, "2027-03-13T12", ["03-15T02:30-0400"]),
        # Fold: there are two 01:30s on 7 November.
        ("DAILY", "2026-01-01T01:30", {}, "2027-11-06T12", ["11-07T01:30-0400", "11-08T01:30-0500"]),
        ("DAILY", "2026-01-01T01:30", {"fold": "last"}, "2027-11-06T12", ["11-07T01:30-0500", "11-08T01:30-0500"]),
        ("DAILY", "2026-01-01T01:30", {"fold": "both"}, "2027-11-06T12", ["11-07T01:30-0400", "11-07T01:30-0500"]),
        # COUNT counts what fires, from DTSTART on.
        ("DAILY;COUNT=2", "2027-03-13T02:30", {}, "2027-03-01", ["03-13T02:30-0500", "03-14T03:30-0400", None]),
        (
            "DAILY;COUNT=2",
            "2027-03-13T02:30",
            {"gap": "skip"},
            "2027-03-01",
            ["03-13T02:30-0500", "03-15T02:30-0400", None],
        ),
        (
            "DAILY;BYHOUR=3;BYMINUTE=0;COUNT=2",
            "2027-03-14T02:30",
            {},
            "2027-03-01",
            ["03-15T03:00-0400", "03-16T03:00-0400", None],
        ),
        # A DTSTART of 02:30 means 03:30 on the day of the gap, after 03:00; under gap=skip it delays nothing.
        ("WEEKLY;BYDAY=SU,MO;BYHOUR=3;BYMINUTE=0", "2027-03-14T02:30", {}, "2027-03-01", ["03-15T03:00-0400"]),
        ("DAILY;BYHOUR=3;BYMINUTE=0", "2027-03-14T02:30", {"gap": "skip"}, "2027-03-01", ["03-14T03:00-0400"]),
        # Elapsed: BYHOUR accepts both hours from 1 to 2. Wall: the clock's hours stay on both sides.
        (
            "HOURLY;BYHOUR=1,2",
            "2026-01-01T00:00",
            {},
            "2027-11-07T04:30",
            ["11-07T01:00-0400", "11-07T01:00-0500", "11-07T02:00-0500"],
        ),
        (
            "HOURLY;INTERVAL=6",
            "2026-01-01T02:00",
            {"sub_daily": "wall"},
            "2027-03-13T23",
            ["03-13T20:00-0500", "03-14T03:00-0400", "03-14T08:00-0400"],
        ),
    ],
)
def test_policies(rule: str, dtstart: str, policies: dict[str, str], after: str, expected: list[str | None]) -> None:
    """In New York, whose clocks change on 2027-03-14 and 2027-11-07: one example of each, as the pages tell them."""
    schedule = Schedule(rrule=f"FREQ={rule}", dtstart=dtstart, timezone="America/New_York", **policies)
    times = [each for each in expected if each]
    assert list_local_times(schedule, after, len(expected)) == times


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        ("America/Havana", "2024-03-09T12:00", ["03-10T01:00-0400", "03-11T00:00-0400"]),
        ("Africa/Cairo", "2027-04-29T12:00", ["04-30T01:00+0300", "05-01T00:00+0300"]),
    ],
)
def test_clocks_that_change_at_midnight(zone: str, start: str, expected: list[str]) -> None:
    """On a day without midnight, a midnight task fires when the day begins."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2020-01-01T00:00:00", timezone=zone)
    assert list_local_times(schedule, start, 2) == expected


def test_both_runs_of_one_time_have_names_of_their_own() -> None:
    """A run is named by its local time where it follows a zone, so the second one says that it is the second."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2026-01-01T01:30", timezone="America/New_York", fold="both")
    first, second, after = schedule.upcoming(datetime(2027, 11, 7, tzinfo=UTC), 3)
    names = [name_occurrence(schedule, at) for at in (first, second, after)]
    assert len(set(names)) == 3
    assert names[0].replace("T013000", "T013000-2") == names[1]


def test_a_skipped_day() -> None:
    """Samoa had no 30 December 2011: its occurrence coincides with that of the 31st, or is skipped."""
    daily = {"rrule": "FREQ=DAILY", "dtstart": "2011-12-28T09:00:00", "timezone": "Pacific/Apia"}
    expected = ["12-28T09:00-1000", "12-29T09:00-1000", "12-31T09:00+1400", "01-01T09:00+1400"]
    for gap in ("shift", "skip"):
        assert list_local_times(Schedule(**daily, gap=gap), "2011-12-01T00:00", 4) == expected
    monthly = Schedule(rrule="FREQ=MONTHLY", dtstart="2011-10-30T09:00:00", timezone="Pacific/Apia")
    assert list_local_times(monthly, "2011-11-01T00:00", 3) == [
        "11-30T09:00-1000",
        "12-31T09:00+1400",
        "01-30T09:00+1400",
    ]
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2011-12-29T22:00:00", timezone="Pacific/Apia")
    assert list_local_times(hourly, "2011-12-30T08:00", 2) == ["12-29T23:00-1000", "12-31T00:00+1400"]


@pytest.mark.parametrize("rule", ["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU", "FREQ=HOURLY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"])
def test_the_far_future(rule: str) -> None:
    """Decades ahead, where rules extend the table of clock changes, schedules go on as before."""
    schedule = Schedule(rrule=rule, dtstart="2027-01-01T09:00:00", timezone="Europe/Paris")
    zone = time_zones.load_tzinfo("Europe/Paris")
    found = schedule.between(datetime(2097, 12, 1, tzinfo=UTC), datetime(2099, 12, 1, tzinfo=UTC))
    assert {at.astimezone(zone).hour for at in found} == {9}
    assert len(found) == (105 if "SU" in rule else 730)
    late = schedule.upcoming(datetime(9998, 12, 1, tzinfo=UTC), 50)
    assert late[-1].year == 9998
    assert {at.astimezone(zone).hour for at in late} == {9}


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ({}, ["03-14T03:30-0400", "11-07T01:30-0400"]),
        ({"gap": "skip", "fold": "last"}, ["11-07T01:30-0500"]),
        ({"fold": "both"}, ["03-14T03:30-0400", "11-07T01:30-0400", "11-07T01:30-0500"]),
    ],
)
def test_single_dates_follow_the_policies(policies: dict[str, str], expected: list[str]) -> None:
    """Local RDATEs and EXDATEs follow the gap and fold policies like any other local time."""
    dates = ["2027-03-14T02:30:00", "2027-11-07T01:30:00"]
    fields = {"dtstart": "2027-01-01T09:00:00", "timezone": "America/New_York"} | policies
    assert list_local_times(Schedule(**fields, rdates=dates), "2027-02-01T00:00", 9) == expected
    hourly = Schedule(**fields, rrule="FREQ=HOURLY;BYMINUTE=30", exdates=dates)
    assert not set(
        list_local_times(hourly, "2027-03-14T00:00", 24) + list_local_times(hourly, "2027-11-07T00:00", 24)
    ) & set(expected)


def test_a_start_within_a_fold() -> None:
    """The fold policy says which of the two local times an elapsed rule begins at, and ends at with a local UNTIL."""
    fields = {"dtstart": "2027-11-07T01:30:00", "timezone": "America/New_York"}
    for fold, offset in {"first": "-0400", "last": "-0500", "both": "-0400"}.items():
        hourly = Schedule(rrule="FREQ=HOURLY", fold=fold, **fields)
        assert list_local_times(hourly, "2027-11-07T00:00", 1) == [f"11-07T01:30{offset}"]
    until = {"rrule": "FREQ=HOURLY;UNTIL=20271107T013000", **fields}
    assert list_local_times(Schedule(**until), "2027-11-07T00:00", 9) == ["11-07T01:30-0400"]
    assert list_local_times(Schedule(**until, fold="both"), "2027-11-07T00:00", 9) == [
        "11-07T01:30-0400",
        "11-07T01:30-0500",
    ]


def test_until_and_exdates_are_instants() -> None:
    """An UNTIL in UTC may fall between the two halves of a fold; an EXDATE removes only the one that it names."""
    both = {"rrule": "FREQ=DAILY;BYHOUR=1", "dtstart": "2027-11-05T01:00:00", "timezone": "America/New_York"}
    schedule = Schedule(**both | {"rrule": "FREQ=DAILY;BYHOUR=1;UNTIL=20271107T053000Z"}, fold="both")
    assert list_local_times(schedule, "2027-11-06T06:00", 9) == ["11-07T01:00-0400"]
    schedule = Schedule(**both, fold="both", exdates=["2027-11-07T05:00:00Z"])
    assert list_local_times(schedule, "2027-11-06T06:00", 2) == ["11-07T01:00-0500", "11-08T01:00-0500"]
    schedule = Schedule(**both, fold="both", exdates=["2027-11-07T01:00:00"])
    assert list_local_times(schedule, "2027-11-06T06:00", 1) == ["11-08T01:00-0500"]


def test_one_time_is_named_as_a_clock_shows_it() -> None:
    """A local time of a zone keeps its name if the zone's clock is changed; an instant is named by itself."""
    local = Schedule.parse("2027-07-01 09:00", timezone="America/New_York")
    assert (
        name_occurrence(local, local.upcoming(datetime(2027, 1, 1, tzinfo=UTC), 1)[0])
        == "20270701T090000-America.New_York"
    )
    instant = Schedule.once(datetime(2027, 7, 1, 13, tzinfo=UTC))
    assert name_occurrence(instant, datetime(2027, 7, 1, 13, tzinfo=UTC)) == "20270701T130000Z"
