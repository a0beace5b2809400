"""What clock changes do to a schedule: each policy, and zones with unusual clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.zone_plans import name_occurrence


def list_local_times(schedule: Schedule, start: str, count: int) -> list[str]:
    """Return the next occurrences after a UTC instant as local times with their offsets."""
    zone = time_zones.load_tzinfo(schedule.timezone)
    found = schedule.upcoming(datetime.fromisoformat(start + "+00:00"), count)
    return [f"{at.astimezone(zone):%m-%dT%H:%M%z}" for at in found]


def make_new_york_schedule(rule: str, **policies: str) -> Schedule:
    """Return a schedule from 2026 at 02:30 in New York, where clocks change on 2027-03-14 and 2027-11-07."""
    return Schedule(rrule=rule, dtstart="2026-01-01T02:30:00", timezone="America/New_York", **policies)


def test_gap_shift() -> None:
    """02:30 on the day that it does not exist fires at 03:30, and is 02:30 again the day after."""
    schedule = make_new_york_schedule("FREQ=DAILY")
    assert list_local_times(schedule, "2027-03-13T12:00", 2) == ["03-14T03:30-0400", "03-15T02:30-0400"]


def test_an_occurrence_shifted_out_of_a_gap_counts() -> None:
    """COUNT includes a shifted occurrence."""
    schedule = Schedule(rrule="FREQ=DAILY;COUNT=3", dtstart="2027-03-13T02:30:00", timezone="America/New_York")
    assert list_local_times(schedule, "2027-03-01T00:00", 9) == [
        "03-13T02:30-0500",
        "03-14T03:30-0400",
        "03-15T02:30-0400",
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"rrule": "FREQ=DAILY;BYHOUR=3;BYMINUTE=0"},
        {"rrule": "FREQ=WEEKLY;BYDAY=SU,MO;BYHOUR=3;BYMINUTE=0"},
        {"rrule": "FREQ=MINUTELY;BYHOUR=3;BYMINUTE=0", "sub_daily": "wall"},
    ],
)
def test_nothing_fires_before_a_dtstart_shifted_out_of_a_gap(fields: dict[str, str]) -> None:
    """DTSTART 02:30 means 03:30 on the day of the gap: 03:00 of that day comes before it, and does not fire."""
    schedule = Schedule(dtstart="2027-03-14T02:30:00", timezone="America/New_York", **fields)
    assert list_local_times(schedule, "2027-03-01T00:00", 1) == ["03-15T03:00-0400"]


def test_count_begins_at_a_dtstart_shifted_out_of_a_gap() -> None:
    """COUNT does not count what comes before DTSTART."""
    rule = "FREQ=DAILY;BYHOUR=3;BYMINUTE=0;COUNT=2"
    schedule = Schedule(rrule=rule, dtstart="2027-03-14T02:30:00", timezone="America/New_York")
    assert list_local_times(schedule, "2027-03-01T00:00", 9) == ["03-15T03:00-0400", "03-16T03:00-0400"]


def test_a_dtstart_skipped_by_a_gap_delays_nothing() -> None:
    """Under ``gap=skip`` DTSTART 02:30 is no instant; 03:00 of that day comes after it on the clock, and fires."""
    rule = "FREQ=DAILY;BYHOUR=3;BYMINUTE=0"
    schedule = Schedule(rrule=rule, dtstart="2027-03-14T02:30:00", timezone="America/New_York", gap="skip")
    assert list_local_times(schedule, "2027-03-01T00:00", 1) == ["03-14T03:00-0400"]


def test_gap_skip() -> None:
    """02:30 on the day that it does not exist does not fire."""
    schedule = make_new_york_schedule("FREQ=DAILY", gap="skip")
    assert list_local_times(schedule, "2027-03-13T12:00", 1) == ["03-15T02:30-0400"]


def test_gap_skip_does_not_count() -> None:
    """COUNT counts what fires."""
    schedule = Schedule(
        rrule="FREQ=DAILY;COUNT=2", dtstart="2027-03-13T02:30:00", timezone="America/New_York", gap="skip"
    )
    assert list_local_times(schedule, "2027-03-01T00:00", 9) == ["03-13T02:30-0500", "03-15T02:30-0400"]


def test_two_times_at_one_instant_are_one_occurrence() -> None:
    """If 02:30 is shifted to 03:30 and the rule names 03:30 too, it fires once and counts once."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30")
    assert list_local_times(schedule, "2027-03-14T00:00", 3) == [
        "03-14T03:30-0400",
        "03-15T02:30-0400",
        "03-15T03:30-0400",
    ]


def test_shifted_times_fire_in_the_order_of_instants() -> None:
    """In a gap, the order on the wall clock differs from that of the instants: 02:30 becomes 03:30, after 03:00."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30")
    assert list_local_times(schedule, "2027-03-14T05:00", 2) == ["03-14T03:00-0400", "03-14T03:30-0400"]


def test_fold_first() -> None:
    """On the day with two 01:30s, the first one fires."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=1")
    assert list_local_times(schedule, "2027-11-06T12:00", 2) == ["11-07T01:30-0400", "11-08T01:30-0500"]


def test_fold_last() -> None:
    """The second one fires."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=1", fold="last")
    assert list_local_times(schedule, "2027-11-06T12:00", 2) == ["11-07T01:30-0500", "11-08T01:30-0500"]


def test_fold_both() -> None:
    """Both fire, in the order of their instants."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=1;BYMINUTE=0,30", fold="both")
    expected = ["11-07T01:00-0400", "11-07T01:30-0400", "11-07T01:00-0500", "11-07T01:30-0500", "11-08T01:00-0500"]
    assert list_local_times(schedule, "2027-11-07T00:00", 5) == expected


def test_both_runs_of_one_time_have_names_of_their_own() -> None:
    """A run is named by its local time where it follows a zone, so the second one says that it is the second."""
    schedule = make_new_york_schedule("FREQ=DAILY;BYHOUR=1", fold="both")
    first, second, after = schedule.upcoming(datetime(2027, 11, 7, tzinfo=UTC), 3)
    names = [name_occurrence(schedule, at) for at in (first, second, after)]
    assert len(set(names)) == 3
    assert names[0].replace("T013000", "T013000-2") == names[1]


def test_sub_daily_elapsed() -> None:
    """An hourly task fires once every real hour through both changes, whatever the other policies."""
    for policies in ({}, {"gap": "skip"}, {"fold": "last"}, {"fold": "both"}):
        schedule = make_new_york_schedule("FREQ=HOURLY", **policies)
        for start in ("2027-03-14T00:00", "2027-11-07T00:00"):
            found = schedule.upcoming(datetime.fromisoformat(start + "+00:00"), 12)
            assert {after - before for before, after in pairwise(found)} == {timedelta(hours=1)}


def test_sub_daily_elapsed_filters_by_local_hour() -> None:
    """BYHOUR=1 accepts both hours from 1 to 2 of that day; BYHOUR=2 accepts none on the day of the gap."""
    ones = make_new_york_schedule("FREQ=HOURLY;BYHOUR=1,2;BYMINUTE=0")
    assert list_local_times(ones, "2027-11-07T04:30", 3) == ["11-07T01:00-0400", "11-07T01:00-0500", "11-07T02:00-0500"]
    assert list_local_times(ones, "2027-03-14T05:30", 2) == ["03-14T01:00-0500", "03-15T01:00-0400"]


def test_sub_daily_wall() -> None:
    """Every six hours stays at 2, 8, 14 and 20 on both sides of a change."""
    schedule = Schedule(
        rrule="FREQ=HOURLY;INTERVAL=6", dtstart="2026-01-01T02:00:00", timezone="America/New_York", sub_daily="wall"
    )
    expected = ["03-13T20:00-0500", "03-14T03:00-0400", "03-14T08:00-0400", "03-14T14:00-0400"]
    assert list_local_times(schedule, "2027-03-13T23:00", 4) == expected
    expected = ["11-06T20:00-0400", "11-07T02:00-0500", "11-07T08:00-0500", "11-07T14:00-0500"]
    assert list_local_times(schedule, "2027-11-06T23:00", 4) == expected


def test_sub_daily_wall_fires_each_instant_once() -> None:
    """An hour shifted to the next one does not fire twice; a repeated hour follows the fold policy."""
    hourly = {"rrule": "FREQ=HOURLY", "dtstart": "2026-01-01T00:00:00", "timezone": "America/New_York"}
    schedule = Schedule(**hourly, sub_daily="wall")
    assert list_local_times(schedule, "2027-03-14T05:00", 3) == [
        "03-14T01:00-0500",
        "03-14T03:00-0400",
        "03-14T04:00-0400",
    ]
    assert list_local_times(schedule, "2027-11-07T04:00", 2) == ["11-07T01:00-0400", "11-07T02:00-0500"]
    schedule = Schedule(**hourly, sub_daily="wall", fold="both")
    assert list_local_times(schedule, "2027-11-07T04:00", 3) == [
        "11-07T01:00-0400",
        "11-07T01:00-0500",
        "11-07T02:00-0500",
    ]


def test_half_hour_changes() -> None:
    """Clocks on Lord Howe Island change by half an hour: 02:15 becomes 02:45, and half an hour is repeated."""
    daily = {"rrule": "FREQ=DAILY", "timezone": "Australia/Lord_Howe"}
    spring = Schedule(**daily, dtstart="2026-01-01T02:15:00")
    assert list_local_times(spring, "2027-10-02T00:00", 2) == ["10-03T02:45+1100", "10-04T02:15+1100"]
    autumn = Schedule(**daily, dtstart="2026-01-01T01:45:00", fold="both")
    assert list_local_times(autumn, "2027-04-03T00:00", 3) == [
        "04-04T01:45+1100",
        "04-04T01:45+1030",
        "04-05T01:45+1030",
    ]
    hourly = Schedule(rrule="FREQ=HOURLY", dtstart="2027-04-03T23:00:00", timezone="Australia/Lord_Howe")
    assert list_local_times(hourly, "2027-04-03T13:59", 2) == ["04-04T01:00+1100", "04-04T01:30+1030"]


@pytest.mark.parametrize(
    ("rule", "zone", "start", "after", "expected"),
    [
        (
            "FREQ=HOURLY;BYMINUTE=0,45",
            "Australia/Lord_Howe",
            "2027-04-01T00:10:00",
            "2027-04-03T14:10",
            ["04-04T01:45+1100", "04-04T01:45+1030", "04-04T02:00+1030", "04-04T02:45+1030"],
        ),
        (
            "FREQ=HOURLY;BYMINUTE=0;BYSECOND=0",
            "Africa/Monrovia",
            "1972-01-06T20:10:10",
            "1972-01-06T23:00",
            ["01-06T23:00-004430", "01-07T01:00+0000", "01-07T02:00+0000"],
        ),
    ],
)
def test_minutes_and_seconds_are_those_of_the_local_clock(
    rule: str, zone: str, start: str, after: str, expected: list[str]
) -> None:
    """BYMINUTE and BYSECOND follow the local clock where it changes by half an hour, or by odd seconds."""
    schedule = Schedule(rrule=rule, dtstart=start, timezone=zone)
    assert list_local_times(schedule, after, len(expected)) == expected
    found = schedule.upcoming(datetime.fromisoformat(after + "+00:00"), len(expected))
    assert {at.astimezone(time_zones.load_tzinfo(zone)).second for at in found} == {0}


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


@pytest.mark.parametrize(
    ("zone", "start", "expected"),
    [
        ("America/Havana", "2024-03-09T12:00", ["03-10T01:00-0400", "03-11T00:00-0400"]),
        ("Africa/Cairo", "2027-04-29T12:00", ["04-30T01:00+0300", "05-01T00:00+0300"]),
        ("Asia/Beirut", "2027-03-27T12:00", ["03-28T01:00+0300", "03-29T00:00+0300"]),
    ],
)
def test_clocks_that_change_at_midnight(zone: str, start: str, expected: list[str]) -> None:
    """On a day without midnight, a midnight task fires when the day begins."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2020-01-01T00:00:00", timezone=zone)
    assert list_local_times(schedule, start, 2) == expected


def test_southern_summer_time() -> None:
    """In the southern hemisphere, 09:00 stays 09:00 on both sides of both changes."""
    schedule = Schedule(rrule="FREQ=DAILY", dtstart="2000-01-01T09:00:00", timezone="America/Santiago")
    occurrences = schedule.between(datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC))
    zone = time_zones.load_tzinfo("America/Santiago")
    assert {f"{at.astimezone(zone):%H:%M}" for at in occurrences} == {"09:00"}
    assert len({at.astimezone(zone).utcoffset() for at in occurrences}) == 2


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
