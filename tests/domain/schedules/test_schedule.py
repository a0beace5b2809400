"""The schedule as a value: what it accepts, refuses, stores and returns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cases import try_each

from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

START = {"dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
NOW = datetime(2027, 3, 1, 12, 17, 42, 500_000, tzinfo=UTC)

SCHEDULES = [
    Schedule.once(NOW),
    Schedule.once(NOW, timezone="Europe/Paris"),
    Schedule(rrule="FREQ=DAILY", **START),
    Schedule(rrule="FREQ=DAILY;BYHOUR=9", timezone="Asia/Tokyo"),
    Schedule(rrule=["FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SA;BYHOUR=11"], **START),
    Schedule(rrule="FREQ=DAILY", rdates=["2027-02-01T18:00:00"], exdates=["2027-02-02"], **START),
    Schedule(rrule="FREQ=HOURLY", gap="skip", fold="both", sub_daily="wall", **START),
    Schedule(dtstart="2027-01-01T09:00:00", rdates=["2027-02-01T18:00:00Z"]),
]


@try_each("schedule", SCHEDULES)
def test_survives_json_and_python_documents(schedule: Schedule) -> None:
    """With or without its defaults, what is written is read back as an equal schedule."""
    for options in ({}, {"exclude_none": True}, {"exclude_defaults": True}):
        document = schedule.model_dump(mode="json", by_alias=True, **options)  # type: ignore[arg-type]  # booleans all
        assert Schedule.model_validate(json.loads(json.dumps(document))) == schedule
    assert Schedule.model_validate(schedule.model_dump()) == schedule
    assert Schedule.model_validate_json(schedule.model_dump_json(by_alias=True)) == schedule
    assert hash(Schedule.model_validate(schedule.model_dump())) == hash(schedule)


@try_each(
    "fields, field",
    [
        ({"rrule": "FREQ=DAILY", "timezone": "../etc/passwd"}, "timezone"),
        ({"rrule": "FREQ=DAILY", "dtstart": "2027-02-30T09:00:00"}, "dtstart"),
        ({"rrule": "FREQ=DAILY", "dtstart": "0001-01-01"}, "dtstart"),
        ({"rrule": "FREQ=DAILY", "rdates": ["2027-01-01", "nonsense"]}, "rdates.1"),
        ({"rrule": "FREQ=DAILY", "exdates": ["2027-01-01"] * 1001}, "exdates"),
        ({"rrule": ["FREQ=DAILY"] * 21}, "rrule"),
        ({"rrule": ["FREQ=DAILY", "FREQ=NEVER"]}, "rrule"),
        ({"rrule": " ", **START}, "rrule"),
        ({"rrule": "FREQ=DAILY;UNTIL=20261231T000000Z", **START}, "rrule"),
        ({"rrule": "FREQ=DAILY;COUNT=1", "exdates": ["2027-01-01T09:00:00"], **START}, "rrule"),
        ({"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", **START}, "rrule"),
    ],
)
def test_an_invalid_field_is_refused_by_name(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule(**fields)
    assert refused.value.field == field
    assert refused.value.hint


@try_each("fields", [{"rrule": 5}, {"gap": "jump"}, {"every": "day"}, {"rrule": "FREQ=DAILY", "at": 1j}])
def test_unknown_fields_and_wrong_types_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        Schedule(**fields)
    assert refused.value.field.split(".")[0] in fields


def test_a_stored_schedule_is_not_validated_again() -> None:
    """Loading a task parses no rule: the schedule was validated when it was created."""
    document = {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "dtstart": "2027-01-01T09:00:00"}
    assert Schedule.model_validate(document, context={"stored": True}).is_anchored


def test_a_copy_with_other_fields_shares_no_cached_values() -> None:
    """Values computed for one schedule are not used for the other."""
    paris = Schedule(rrule="FREQ=DAILY", **START)
    assert paris.first() == datetime(2027, 1, 1, 8, tzinfo=UTC)
    assert paris.model_copy(update={"timezone": "UTC"}).first() == datetime(2027, 1, 1, 9, tzinfo=UTC)


def test_once_fires_once_to_the_microsecond() -> None:
    schedule = Schedule.once(NOW)
    assert schedule.is_one_time
    assert schedule.next_after(NOW - timedelta(microseconds=1)) == NOW
    assert schedule.next_after(NOW) is None
    assert schedule.first() == NOW
    assert schedule.upcoming(NOW - timedelta(days=1), 5) == [NOW]


def test_after_is_strictly_later() -> None:
    """An instant between two seconds is later than the first."""
    schedule = Schedule(rrule="FREQ=DAILY", **START)
    first = datetime(2027, 1, 1, 8, tzinfo=UTC)
    assert schedule.next_after(first - timedelta(microseconds=1)) == first
    assert schedule.next_after(first) == first + timedelta(days=1)
    assert schedule.next_after(first + timedelta(microseconds=1)) == first + timedelta(days=1)
    assert schedule.next_after(datetime.min.replace(tzinfo=UTC)) == first
    assert schedule.next_after(datetime.max.replace(tzinfo=UTC)) is None
    assert schedule.occurs(first)
    assert not schedule.occurs(first + timedelta(seconds=1))


def test_between_includes_its_start_and_not_its_end() -> None:
    schedule = Schedule(rrule="FREQ=DAILY", **START)
    first = datetime(2027, 1, 1, 8, tzinfo=UTC)
    assert schedule.between(first, first + timedelta(days=2)) == [first, first + timedelta(days=1)]


def test_between_refuses_an_endless_list() -> None:
    schedule = Schedule(rrule="FREQ=SECONDLY", **START)
    with pytest.raises(InvalidSchedule, match="100000"):
        schedule.between(NOW, NOW + timedelta(days=2))


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="time zone"):
        SCHEDULES[2].next_after(datetime(2027, 1, 1))  # noqa: DTZ001 -- what must be refused


def test_a_schedule_is_unanchored_until_its_start_is_set() -> None:
    schedule = Schedule(rrule="FREQ=DAILY;INTERVAL=2", timezone="Europe/Paris")
    assert not schedule.is_anchored
    with pytest.raises(InvalidSchedule, match="dtstart"):
        schedule.next_after(NOW)
    anchored = schedule.anchor(NOW)
    assert anchored.dtstart == "2027-03-01T13:17:43"
    assert anchored.first() == NOW.replace(microsecond=0) + timedelta(seconds=1)
    assert anchored.anchor(NOW + timedelta(days=1)) is anchored


@try_each(
    "rule, dtstart",
    [
        ("FREQ=DAILY;BYHOUR=9", "2027-03-01T14:00:00"),
        ("FREQ=DAILY;BYHOUR=9;BYMINUTE=30", "2027-03-01T13:18:00"),
        ("FREQ=HOURLY;BYMINUTE=0", "2027-03-01T13:18:00"),
        ("FREQ=DAILY;BYHOUR=9;BYSECOND=7", "2027-03-01T14:00:00"),
        ("FREQ=WEEKLY;BYDAY=MO", "2027-03-01T13:17:43"),
    ],
)
def test_a_start_is_rounded_to_the_units_that_the_rule_names(rule: str, dtstart: str) -> None:
    """A person who says nine o'clock does not mean seventeen minutes past it."""
    assert Schedule(rrule=rule, timezone="Europe/Paris").anchor(NOW).dtstart == dtstart


@given(
    start=st.datetimes(datetime(2027, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001 - of `timezones`
    rule=st.sampled_from(["DAILY", "DAILY;BYHOUR=9", "DAILY;BYHOUR=9;BYMINUTE=20", "HOURLY;BYMINUTE=20", "MINUTELY"]),
    timezone=st.sampled_from(["UTC", "Europe/Paris", "Asia/Kathmandu"]),
)
@example(
    start=datetime(2027, 10, 31, 1, 10, 20, tzinfo=UTC), rule="MINUTELY", timezone="Europe/Paris"
)  # the second 2:10 of that night
def test_a_rule_that_begins_now_runs_as_often_as_it_says(start: datetime, rule: str, timezone: str) -> None:
    """As text and as an object alike: none of its COUNT lies before the moment at which it was given."""
    text = f"FREQ={rule};COUNT=3"
    schedule = Schedule.parse(text, timezone, now=start)
    assert schedule == Schedule(rrule=text, timezone=timezone).anchor(start)
    assert len(schedule.upcoming(start - timedelta(microseconds=1), 5)) == 3


def test_every() -> None:
    assert Schedule.every(timedelta(minutes=90)).rrule == "FREQ=MINUTELY;INTERVAL=90"
    assert Schedule.every(timedelta(days=1)).rrule == "FREQ=DAILY"
    assert Schedule.every(timedelta(weeks=2)).rrule == "FREQ=WEEKLY;INTERVAL=2"
    start = NOW.replace(microsecond=0)
    assert Schedule.every(timedelta(hours=6), start=start).upcoming(start, 1) == [NOW.replace(hour=18, microsecond=0)]
    for interval in (timedelta(0), timedelta(seconds=-1), timedelta(milliseconds=1500)):
        with pytest.raises(InvalidSchedule):
            Schedule.every(interval)


def test_rdates_add_and_exdates_remove_occurrences() -> None:
    """An RDATE that the rule names too is one occurrence; an RDATE without a time has that of DTSTART; EXDATEs win."""
    schedule = Schedule(
        rrule="FREQ=WEEKLY;COUNT=3",
        rdates=["2027-01-08T09:00:00", "2027-01-03", "2027-01-04T06:00:00Z", "2027-01-05"],
        exdates=["2027-01-15", "2027-01-05T08:00:00Z"],
        **START,
    )
    found = schedule.upcoming(datetime(2026, 1, 1, tzinfo=UTC), 9)
    assert [f"{at:%m-%dT%H}" for at in found] == ["01-01T08", "01-03T08", "01-04T06", "01-08T08"]


def test_an_exdate_without_a_time_removes_the_whole_local_day() -> None:
    """It removes all of that day in the schedule's zone, and nothing of the next."""
    schedule = Schedule(rrule="FREQ=HOURLY;INTERVAL=6", exdates=["2027-01-02", "2027-01-03"], **START)
    found = schedule.upcoming(datetime(2027, 1, 1, tzinfo=UTC), 4)
    assert [f"{at:%m-%dT%H}" for at in found] == ["01-01T08", "01-01T14", "01-01T20", "01-04T02"]


def test_count_includes_occurrences_removed_by_exdate() -> None:
    schedule = Schedule(rrule="FREQ=DAILY;COUNT=3", exdates=["2027-01-02T09:00:00"], **START)
    assert len(schedule.upcoming(datetime(2026, 1, 1, tzinfo=UTC), 9)) == 2


def test_the_union_of_rules_has_each_instant_once() -> None:
    rules = ["FREQ=DAILY;COUNT=3", "FREQ=WEEKLY;COUNT=2", "FREQ=DAILY;INTERVAL=2;UNTIL=20270105T090000"]
    found = Schedule(rrule=rules, **START).upcoming(datetime(2026, 1, 1, tzinfo=UTC), 9)
    assert [at.day for at in found] == [1, 2, 3, 5, 8]


@given(st.integers(1, 60), st.sampled_from(["DAILY", "WEEKLY", "MONTHLY;BYDAY=MO", "HOURLY;BYHOUR=1,2", "MINUTELY"]))
def test_count_is_the_beginning_of_the_endless_rule(count: int, rule: str) -> None:
    """COUNT=n yields the first n occurrences of the rule without it, wherever the search begins."""
    endless = Schedule(rrule=f"FREQ={rule}", **START)
    expected = endless.upcoming(datetime(2026, 1, 1, tzinfo=UTC), count)
    counted = Schedule(rrule=f"FREQ={rule};COUNT={count}", **START)
    assert counted.next_after(expected[-1]) is None
    assert counted.upcoming(datetime(2026, 1, 1, tzinfo=UTC), count + 5) == expected


def test_a_copy_is_checked_like_a_new_schedule() -> None:
    """A mistake in a copy is found at once, since a schedule that was made is not checked again."""
    hourly = Schedule(rrule="FREQ=HOURLY", **START)
    with pytest.raises(InvalidSchedule, match="Nowhere"):
        hourly.model_copy(update={"timezone": "Europe/Nowhere"})
    with pytest.raises(InvalidSchedule):
        hourly.model_copy(update={"no_such_field": 1})
