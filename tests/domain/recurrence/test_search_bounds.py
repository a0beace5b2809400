"""No rule takes long: one that can never fire is refused quickly, and every search is limited.

Calls of functions are counted: they are the same on every machine. A hundred thousand take about 10 ms.
"""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from tests.call_counts import count_calls
from tests.cases import try_each

from cloudsched.domain.recurrence import recurrence_set as recurrence
from cloudsched.domain.recurrence import rrule, time_zones
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

START = {"dtstart": "2027-01-01T09:00:00", "timezone": "Europe/Paris"}
ALL_SECONDS = ",".join(map(str, range(60)))
ALL_HOURS = ",".join(map(str, range(24)))
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def count_schedule(rule: str, later: datetime | None = None) -> tuple[int, int, Schedule | InvalidSchedule]:
    """Return the calls that create a schedule and those that search it, and the schedule itself.

    If it is refused, nothing is searched, and the reason is returned instead of the schedule.
    """
    time_zones.load_zone(START["timezone"])  # reading a zone's file is not the rule's work
    recurrence.compile_recurrence.cache_clear()
    rrule.parse_rule.cache_clear()
    result: Schedule | InvalidSchedule
    with count_calls() as made:
        try:
            result = Schedule(rrule=rule, **START)
        except InvalidSchedule as refused:
            result = refused
    if later is None or not isinstance(result, Schedule):
        return made.count, 0, result
    with count_calls() as asked:
        result.next_after(later)
    return made.count, asked.count, result


@try_each(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=4,6,9,11;BYMONTHDAY=31",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;INTERVAL=7;BYDAY=MO",
        "FREQ=DAILY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=29;BYDAY=TU",
        "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3",
        "FREQ=WEEKLY;BYMONTH=1;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=8",
        "FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=WEEKLY;INTERVAL=7;BYMONTHDAY=1,2,3;BYYEARDAY=10,20,30",
        "FREQ=WEEKLY;INTERVAL=2;BYWEEKNO=25;BYSETPOS=104",
        "FREQ=YEARLY;BYWEEKNO=20;BYMONTH=1",
        "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=11",
        "FREQ=YEARLY;INTERVAL=4;BYYEARDAY=366",
        "FREQ=YEARLY;INTERVAL=400;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=MONTHLY;BYDAY=6MO",
        "FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=8,15,22",
        "FREQ=MONTHLY;INTERVAL=12;BYMONTH=2",
        "FREQ=DAILY;BYHOUR=1,2;BYSETPOS=3",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=3,4;BYDAY=MO;BYMONTH=1",
        "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=30",
        "FREQ=SECONDLY;INTERVAL=86400;BYHOUR=3",
        "FREQ=SECONDLY;BYSETPOS=2;BYSECOND=1",
        "FREQ=HOURLY;BYMINUTE=1,2;BYSETPOS=3",
        "FREQ=SECONDLY;INTERVAL=10;BYSECOND=5",
        "FREQ=MINUTELY;BYSECOND=1,2;BYSETPOS=3;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_a_rule_that_can_never_fire_is_refused_quickly(rule: str) -> None:
    made, _, result = count_schedule(rule)
    assert isinstance(result, InvalidSchedule), result.first()
    assert result.field == "rrule"
    assert "can never fire" in result.problem
    assert made < 250_000


@pytest.mark.parametrize(
    "rule",
    [
        f"FREQ=DAILY;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS}",
        f"FREQ=YEARLY;BYHOUR={ALL_HOURS};BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS};BYDAY=MO,TU,WE;BYSETPOS=-1",
        f"FREQ=HOURLY;BYMINUTE={ALL_SECONDS};BYSECOND={ALL_SECONDS};BYSETPOS=-1,300",
        f"FREQ=SECONDLY;BYSECOND={ALL_SECONDS}",
        "FREQ=SECONDLY;COUNT=9999999999",
        "FREQ=DAILY;COUNT=100000",
        "FREQ=YEARLY;INTERVAL=9999999999",
        "FREQ=SECONDLY;INTERVAL=9999999999",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
        "FREQ=YEARLY;INTERVAL=7;BYWEEKNO=53;BYDAY=MO",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO;BYHOUR=3",
        "FREQ=DAILY;INTERVAL=999;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=MINUTELY;INTERVAL=1439;BYHOUR=3;BYMINUTE=3",
    ],
)
def test_dense_and_sparse_rules_are_searched_quickly(rule: str) -> None:
    """Creating and searching such a rule takes a few calls, however many occurrences it has."""
    made, asked, result = count_schedule(rule, datetime(2031, 5, 5, tzinfo=UTC))
    assert isinstance(result, Schedule)
    assert made < 500_000
    assert 0 < asked < (6_000_000 if "COUNT" in rule else 250_000)  # COUNT is resolved once


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY;BYHOUR=9,10;COUNT=100001",
        "FREQ=SECONDLY;INTERVAL=86399;BYHOUR=8;BYMINUTE=59;BYSECOND=58;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=SECONDLY;BYSECOND=" + ",".join(["0"] * 5000),
        "FREQ=DAILY;" + "BYHOUR=1;" * 2000,
    ],
)
def test_a_search_beyond_the_limit_is_a_clear_error(rule: str) -> None:
    made, _, result = count_schedule(rule)
    assert isinstance(result, InvalidSchedule)
    assert result.hint
    assert made < 200_000


def test_counts_of_any_size_end_at_the_computed_occurrence() -> None:
    schedule = Schedule(rrule="FREQ=SECONDLY;INTERVAL=10;COUNT=1000000000", **START)
    first = datetime(2027, 1, 1, 8, tzinfo=UTC)
    last = first + timedelta(seconds=10 * 999_999_999)
    assert schedule.next_after(last - timedelta(seconds=1)) == last
    assert schedule.next_after(last) is None


def test_random_rules_are_searched_or_refused_quickly() -> None:
    """For any combination, neither creation nor a search a century later takes long."""
    chance = random.Random(7)  # noqa: S311 -- reproducible examples, no secret
    spans = {"BYSECOND": 60, "BYMINUTE": 60, "BYHOUR": 24, "BYMONTHDAY": 31, "BYYEARDAY": 366, "BYWEEKNO": 53}
    most = (0, "")
    for _ in range(700):
        parts = [f"FREQ={chance.choice(list(rrule.Frequency)).name}", f"INTERVAL={chance.choice([1, 2, 7, 97, 1000])}"]
        for name, highest in spans.items():
            if chance.random() < 0.25:
                parts.append(
                    f"{name}={','.join(str(chance.randrange(1, highest)) for _ in range(chance.choice([1, 30])))}"
                )
        for name, highest in {"BYMONTH": 12, "BYSETPOS": 300}.items():
            if chance.random() < 0.2:
                parts.append(f"{name}={chance.randint(1, highest)}")
        rule = ";".join(parts)
        with count_calls() as calls, suppress(InvalidSchedule):
            Schedule(rrule=rule, **START).next_after(NOW + timedelta(days=36_500))
        most = max(most, (calls.count, rule))
    assert most[0] < 2_000_000, most


def test_the_search_stops_at_until() -> None:
    """A rule with UNTIL has no occurrence after its last, however sparse the rule is."""
    rule = "FREQ=SECONDLY;INTERVAL=86413;BYHOUR=0;BYMINUTE=0;BYSECOND=0;UNTIL=20280101T000000"
    for policy in ("elapsed", "wall"):
        schedule = Schedule(rrule=rule, dtstart="2027-01-01T00:00:00", timezone="UTC", sub_daily=policy)
        assert schedule.upcoming(datetime(2026, 1, 1, tzinfo=UTC), 9) == [datetime(2027, 1, 1, tzinfo=UTC)]


def test_a_sparse_rule_is_not_mistaken_for_an_ended_one() -> None:
    """If a rule may fire again beyond the search limit, the result is an error that says so, never None."""
    rule = "FREQ=SECONDLY;INTERVAL=86413;BYHOUR=0;BYMINUTE=0;BYSECOND=0"
    schedule = Schedule(rrule=rule, dtstart="2027-01-01T00:00:00", timezone="UTC")
    with pytest.raises(InvalidSchedule, match="8000 steps"):
        schedule.next_after(datetime(2027, 1, 1, tzinfo=UTC))
