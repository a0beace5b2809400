"""Comparison with python-dateutil, run naively from DTSTART on wall time, for the rules where it is right.

dateutil is not compared where it is wrong: BYWEEKNO without BYDAY, from the end or beyond 51, weekdays with and
without a number together, BYSETPOS in a week that DTSTART divides, and what is finer than a day near clock changes.

``CLOUDSCHED_TEST_RECURRENCE_CASES`` sets how many random rules are compared.
"""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

CASES = int(os.environ.get("CLOUDSCHED_TEST_RECURRENCE_CASES", "3000"))
BATCHES = 20
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
COMPARED = 12
MOST = 12_000  # occurrences that dateutil is made to count
LAST_YEAR = 2065


def choose_values(chance: random.Random, values: range, most: int) -> str:
    return ",".join(map(str, chance.sample(values, chance.randint(1, most))))


def choose_signed_values(chance: random.Random, highest: int, most: int) -> str:
    return (
        choose_values(chance, range(1, highest + 1), most)
        if chance.random() < 0.6
        else choose_values(chance, range(-highest, 0), most)
    )


def make_random_rule(chance: random.Random) -> str:
    """Return a rule with a period of a day or more that dateutil reads correctly and that is likely to fire."""
    frequency = chance.choice(["YEARLY", "MONTHLY", "WEEKLY", "DAILY"])
    parts = {"FREQ": frequency}

    def maybe_add(likelihood: float, name: str, value: str) -> None:
        if chance.random() < likelihood:
            parts[name] = value

    maybe_add(0.5, "INTERVAL", str(chance.choice([1, 2, 3, 4, 5, 7, 13, 24])))
    maybe_add(0.3, "BYMONTH", choose_values(chance, range(1, 13), 4))
    maybe_add(
        0.35, "BYDAY", choose_weekdays(chance, frequency, 5 if frequency == "MONTHLY" or "BYMONTH" in parts else 52)
    )
    maybe_add(0.0 if frequency == "WEEKLY" else 0.3, "BYMONTHDAY", choose_signed_values(chance, 31, 6))
    maybe_add(0.2 if frequency == "YEARLY" else 0.0, "BYYEARDAY", choose_signed_values(chance, 366, 20))
    if frequency == "YEARLY" and chance.random() < 0.15:
        parts |= {"BYWEEKNO": choose_values(chance, range(1, 52), 6), "BYDAY": choose_weekdays(chance, "WEEKLY", 1)}
    maybe_add(0.3, "BYHOUR", choose_values(chance, range(24), 4))
    maybe_add(0.3, "BYMINUTE", choose_values(chance, range(60), 3))
    maybe_add(0.1, "BYSECOND", choose_values(chance, range(60), 2))
    maybe_add(0.25, "WKST", chance.choice(DAYS))
    if frequency != "WEEKLY" and any(name.startswith("BY") for name in parts):
        maybe_add(0.25, "BYSETPOS", choose_signed_values(chance, 4, 2))
    maybe_add(0.15, "COUNT", str(chance.randint(1, 400)))
    if "COUNT" not in parts:
        maybe_add(0.1, "UNTIL", f"{chance.randint(1995, 2030)}0615T120000")
    return ";".join(f"{name}={value}" for name, value in parts.items())


def choose_weekdays(chance: random.Random, frequency: str, highest: int) -> str:
    names = chance.sample(DAYS, chance.randint(1, 4))
    if frequency in {"WEEKLY", "DAILY"} or chance.random() < 0.5:
        return ",".join(names)
    return ",".join(f"{chance.choice([-1, 1]) * chance.randint(1, highest)}{name}" for name in names)


def to_instant(naive: datetime, zone: str) -> datetime:
    """Return the instant of a wall-clock time as PEP 495 reads it with fold=0: before the gap, the first of a fold."""
    return naive.replace(tzinfo=time_zones.load_tzinfo(zone)).astimezone(UTC)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_agrees_with_dateutil_in_every_zone(batch: int) -> None:
    """The occurrences after a random instant are those of dateutil, converted to instants."""
    chance = random.Random(batch)  # noqa: S311 -- reproducible examples, no secret
    names = time_zones.in_use.names
    for number in range(CASES // BATCHES):
        zone = names[(batch * (CASES // BATCHES) + number) % len(names)]
        years_ago = chance.choice([0, 1, 3, 10, 30])
        start = datetime(2027 - years_ago, 1, 1) + timedelta(minutes=chance.randrange(366 * 1440))  # noqa: DTZ001
        rule = make_random_rule(chance)
        case = f"{rule} from {start.isoformat()} in {zone}"
        asked = start.replace(tzinfo=UTC) + timedelta(minutes=chance.randrange(-3000, (years_ago + 2) * 525_600))
        if chance.random() < 0.3:
            asked = find_next_change(zone, asked) + timedelta(minutes=chance.randrange(-180, 180))
        try:
            schedule = Schedule(rrule=rule, dtstart=start.isoformat(), timezone=zone)
        except InvalidSchedule:
            continue  # refused as never firing; another test settles whether rightly, as dateutil takes seconds for it
        first = schedule.first()
        if first is None or first.year > LAST_YEAR:
            continue
        expected = expand_with_dateutil(rule, start, zone, asked)
        distinct = sorted(set(expected))[:-1][:COMPARED]  # the last may have company that was not reached
        if "COUNT" in rule and has_clock_change(zone, start, distinct):
            continue  # two wall-clock times on one instant count once; dateutil knows no instants
        assert schedule.upcoming(asked, len(distinct)) == distinct, f"{case}, after {asked.isoformat()}"


def expand_with_dateutil(rule: str, start: datetime, zone: str, asked: datetime) -> list[datetime]:
    """Return dateutil's instants after ``asked``, unsorted, a few more than are compared; max at the end of all."""
    found: list[datetime] = []
    long_before = asked.replace(tzinfo=None) - timedelta(days=2)  # no zone is further from UTC
    for count, when in enumerate(rrulestr(rule, dtstart=start, ignoretz=True)):
        if count > MOST or when.year > LAST_YEAR or len(found) > COMPARED + 8:
            return found
        if when < long_before:
            continue
        instant = to_instant(when, zone)
        if instant > asked:
            found.append(instant)
    return [*found, datetime.max.replace(tzinfo=UTC)]


def find_next_change(zone: str, after: datetime) -> datetime:
    """Return the first clock change after an instant, or the instant itself if there is none."""
    table = time_zones.load_zone(zone).table_for(4_000_000_000)
    seconds = after.timestamp()
    return next((datetime.fromtimestamp(change, UTC) for change in table.changes if change > seconds), after)


def has_clock_change(zone: str, start: datetime, found: list[datetime]) -> bool:
    changes = time_zones.load_zone(zone).table_for(4_000_000_000).changes
    end = found[-1].timestamp() if found else 4_000_000_000
    return any(start.replace(tzinfo=UTC).timestamp() - 90_000 < change < end for change in changes)
