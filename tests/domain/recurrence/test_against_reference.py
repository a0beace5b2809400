"""Comparison with a second, slow implementation of the RFC that checks one candidate after the other.

Where the search jumps, the reference tries every day of a period, every time of a day, or every second of an hour,
and applies the definition to each. It shares only the time zone data with the search. It covers what dateutil gets
wrong, the policies for clock changes, SKIP, and rules finer than a day.

``CLOUDSCHED_TEST_RECURRENCE_CASES`` sets how many random rules are compared.
"""

from __future__ import annotations

import os
import random
from calendar import isleap, monthrange
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache

import pytest

from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.errors import InvalidSchedule

CASES = int(os.environ.get("CLOUDSCHED_TEST_RECURRENCE_CASES", "1500"))
BATCHES = 20
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
SUB_DAILY = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Reference:
    """The occurrences of a rule between two instants, by definition."""

    def __init__(self, rule: str, start: datetime, zone: str, **policies: str) -> None:
        parts = dict(part.split("=") for part in rule.split(";"))
        self.frequency = parts["FREQ"]
        self.interval = int(parts.get("INTERVAL", "1"))
        self.week_start = DAYS.index(parts.get("WKST", "MO"))
        self.skip = parts.get("SKIP", "OMIT")
        self.lists = {
            name: sorted({int(number) for number in value.split(",")})
            for name, value in parts.items()
            if name.startswith("BY") and name != "BYDAY"
        }
        self.weekdays = [(int(day[:-2] or 0), DAYS.index(day[-2:])) for day in parts.get("BYDAY", "").split(",") if day]
        self.hours, self.minutes, self.seconds = map(self.lists.get, ("BYHOUR", "BYMINUTE", "BYSECOND"))
        self.passes_on = cache(self.day_passes)
        self.start, self.zone = start, time_zones.load_tzinfo(zone)
        self.gap = policies.get("gap", "shift")
        self.fold = policies.get("fold", "first")
        self.elapsed = self.frequency in SUB_DAILY and policies.get("sub_daily", "elapsed") == "elapsed"

    def between(self, begin: datetime, end: datetime) -> list[datetime]:
        if self.elapsed:
            first = self.instants(self.start, gap="shift")[0]
            return self.fine(first, max(begin, first), end, lambda instant: instant.astimezone(self.zone))
        margin = self.largest_change(begin, end)
        wall_begin = max(self.start, begin.astimezone(self.zone).replace(tzinfo=None) - margin)
        wall_end = end.astimezone(self.zone).replace(tzinfo=None) + margin
        if self.frequency in SUB_DAILY:
            walls = self.fine(self.start, wall_begin, wall_end, lambda wall: wall)
        else:
            walls = self.coarse(wall_begin, wall_end)
        instants = {instant for wall in walls for instant in self.instants(wall, self.gap)}
        return sorted(instant for instant in instants if begin <= instant < end)

    def largest_change(self, begin: datetime, end: datetime) -> timedelta:
        """Return the largest shift of a wall-clock time by a clock change near a span."""
        days = range(-2, (end - begin).days + 4)
        offsets = [(begin + timedelta(days=day)).astimezone(self.zone).utcoffset() or timedelta() for day in days]
        return max(offsets) - min(offsets) + timedelta(hours=1)

    def instants(self, wall: datetime, gap: str) -> list[datetime]:
        first, second = (
            (wall - (wall.replace(tzinfo=self.zone, fold=fold).utcoffset() or timedelta())).replace(tzinfo=UTC)
            for fold in (0, 1)
        )
        if first == second:
            return [first]
        if first > second:
            return [first] if gap == "shift" else []
        return {"first": [first], "last": [second], "both": [first, second]}[self.fold]

    def fine(
        self, start: datetime, begin: datetime, end: datetime, clock: Callable[[datetime], datetime]
    ) -> list[datetime]:
        """Return the members of the hours, minutes or seconds that begin with ``start``'s."""
        unit = SUB_DAILY[self.frequency]
        into = (self.start.minute * 60 + self.start.second) % unit
        period = start - into * SECOND
        step = unit * self.interval
        skipped = int((begin - period).total_seconds()) // step - 1
        period += max(0, skipped) * step * SECOND
        found: list[datetime] = []
        while period < end:
            each = [period + second * SECOND for second in self.seconds_of_period(unit)]
            members = [at for at in each if self.passes(clock(at), at - period, unit)]
            found += [at for at in self.picked(members) if begin <= at < end and at >= start]
            period += step * SECOND
        return found

    def seconds_of_period(self, unit: int) -> range:
        """Return the seconds to try: all of them, or only DTSTART's if the rule names no seconds."""
        return range(unit) if unit == 1 or "BYSECOND" in self.lists else range(self.start.second, unit, 60)

    def passes(self, shown: datetime, into_period: timedelta, unit: int) -> bool:
        if unit > 60 and self.minutes is None and into_period // MINUTE != self.start.minute:
            return False
        return (
            (self.hours is None or shown.hour in self.hours)
            and (self.minutes is None or shown.minute in self.minutes)
            and (self.seconds is None or shown.second in self.seconds)
            and self.passes_on(shown.date())
        )

    def coarse(self, begin: datetime, end: datetime) -> list[datetime]:
        found: set[datetime] = set()
        for period in self.periods(begin.date(), end.date()):
            days = [day for day in period if self.day_passes(day)] if self.skip == "OMIT" else self.skipped_days(period)
            times = [
                timedelta(hours=hour, minutes=minute, seconds=second)
                for hour in self.lists.get("BYHOUR", [self.start.hour])
                for minute in self.lists.get("BYMINUTE", [self.start.minute])
                for second in self.lists.get("BYSECOND", [self.start.second])
            ]
            members = [datetime(day.year, day.month, day.day) + time for day in days for time in times]  # noqa: DTZ001
            found.update(self.picked(members))
        return sorted(wall for wall in found if begin <= wall < end)

    def periods(self, begin: date, end: date) -> Iterator[list[date]]:
        """Yield the days of every period around a span that INTERVAL reaches from DTSTART's."""
        days: list[date] = []
        margin = timedelta(days=740 if self.frequency == "YEARLY" else 70)
        day, number = begin - margin, None
        first = self.period_number(self.start.date())
        while day < end + margin:
            if self.period_number(day) != number:
                if number is not None and number >= first and (number - first) % self.interval == 0:
                    yield days
                days, number = [], self.period_number(day)
            days.append(day)
            day += timedelta(days=1)

    def period_number(self, day: date) -> int:
        match self.frequency:
            case "YEARLY":
                return day.year
            case "MONTHLY":
                return day.year * 12 + day.month
            case "WEEKLY":
                return (day.toordinal() - 1 - self.week_start) // 7
            case _:
                return day.toordinal()

    def day_passes(self, day: date) -> bool:
        lists = self.lists
        named = self.weekdays or any(name in lists for name in ("BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"))
        if not named:
            if self.frequency == "WEEKLY" and day.weekday() != self.start.weekday():
                return False
            if self.frequency in {"MONTHLY", "YEARLY"} and day.day != self.start.day:
                return False
            if self.frequency == "YEARLY" and "BYMONTH" not in lists and day.month != self.start.month:
                return False
        only_weeks = "BYWEEKNO" in lists and not (self.weekdays or "BYMONTHDAY" in lists or "BYYEARDAY" in lists)
        if self.frequency == "YEARLY" and only_weeks and day.weekday() != self.start.weekday():
            return False
        month = monthrange(day.year, day.month)[1]
        year = 365 + isleap(day.year)
        of_year = day.timetuple().tm_yday
        return (
            day.month in lists.get("BYMONTH", [day.month])
            and bool({day.day, day.day - month - 1} & set(lists.get("BYMONTHDAY", [day.day])))
            and bool({of_year, of_year - year - 1} & set(lists.get("BYYEARDAY", [of_year])))
            and ("BYWEEKNO" not in lists or bool(set(self.week_numbers(day)) & set(lists["BYWEEKNO"])))
            and (not self.weekdays or any(self.is_weekday(day, nth, weekday) for nth, weekday in self.weekdays))
        )

    def week_numbers(self, day: date) -> tuple[int, int]:
        """Return the number of a day's week from the start and from the end of its year."""
        return week_numbers(day - timedelta(days=(day.weekday() - self.week_start) % 7))

    def is_weekday(self, day: date, nth: int, weekday: int) -> bool:
        if day.weekday() != weekday:
            return False
        if nth == 0:
            return True
        in_month = self.frequency == "MONTHLY" or "BYMONTH" in self.lists
        number, length = day.timetuple().tm_yday, 365 + isleap(day.year)
        if in_month:
            number, length = day.day, monthrange(day.year, day.month)[1]
        return nth in {(number - 1) // 7 + 1, -((length - number) // 7 + 1)}

    def skipped_days(self, period: list[date]) -> list[date]:
        """Return the days of whole months that BYMONTHDAY names; SKIP moves those that do not exist."""
        moved = set()
        for first in (day for day in period if day.day == 1 and day.month in self.lists.get("BYMONTH", [day.month])):
            length = monthrange(first.year, first.month)[1]
            for number in self.lists["BYMONTHDAY"]:
                if number <= length:
                    moved.add(first + timedelta(days=number - 1))
                else:
                    moved.add(first + timedelta(days=length - (self.skip == "BACKWARD")))
        return sorted(moved)

    def picked(self, members: list[datetime]) -> list[datetime]:
        if "BYSETPOS" not in self.lists:
            return members
        places = {place - 1 if place > 0 else len(members) + place for place in self.lists["BYSETPOS"]}
        return [members[place] for place in sorted(places) if 0 <= place < len(members)]


@cache
def week_numbers(begin: date) -> tuple[int, int]:
    """Return the numbers, from the start and the end of its year, of the week that begins on a day."""
    year = (begin + timedelta(days=3)).year  # most of the week's days lie in it
    weeks = [begin + timedelta(weeks=number) for number in range(-53, 54)]
    weeks = [week for week in weeks if (week + timedelta(days=3)).year == year]
    return weeks.index(begin) + 1, weeks.index(begin) - len(weeks)


def choose_numbers(chance: random.Random, low: int, high: int, most: int) -> str:
    return ",".join(
        str(chance.choice([n for n in (chance.randint(low, high),) if n] or [1]))
        for _ in range(chance.randint(1, most))
    )


def make_random_rule(chance: random.Random) -> str:
    frequency = chance.choice(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY", "HOURLY"])
    fine = frequency in SUB_DAILY
    parts = {"FREQ": frequency, "INTERVAL": str(chance.choice([1, 1, 2, 3, 5, 6, 7, 12, 20, 45, 90]))}

    def maybe_add(likelihood: float, name: str, value: str) -> None:
        if chance.random() < likelihood:
            parts[name] = value

    maybe_add(0.15 if fine else 0.25, "BYMONTH", choose_numbers(chance, 1, 12, 6))
    if chance.random() < (0.35 if frequency == "YEARLY" else 0.08):
        parts["BYWEEKNO"] = choose_numbers(chance, -53, 53, 6)
    maybe_add(0.15, "BYMONTHDAY", choose_numbers(chance, -31, 31, 8))
    maybe_add(0.1, "BYYEARDAY", choose_numbers(chance, -366, 366, 60))
    names = chance.sample(DAYS, chance.randint(1, 5))
    if frequency in {"YEARLY", "MONTHLY"} and "BYWEEKNO" not in parts:
        names = [f"{chance.choice(['', '', 1, 2, -1, -2, 5, -5])}{name}" for name in names]
    maybe_add(0.3, "BYDAY", ",".join(names))
    maybe_add(0.3, "BYHOUR", choose_numbers(chance, 0, 23, 8))
    maybe_add(0.3, "BYMINUTE", choose_numbers(chance, 0, 59, 6))
    maybe_add(0.08 if frequency == "HOURLY" else 0.2, "BYSECOND", choose_numbers(chance, 0, 59, 3))
    maybe_add(0.2, "WKST", chance.choice(DAYS))
    if any(name.startswith("BY") for name in parts):
        maybe_add(0.25, "BYSETPOS", choose_numbers(chance, -4, 4, 2))
    alone = "BYMONTHDAY" in parts and not set(parts) & {"BYYEARDAY", "BYWEEKNO", "BYDAY"}
    if alone and frequency in {"YEARLY", "MONTHLY"} and "-" not in parts["BYMONTHDAY"]:
        maybe_add(0.6, "SKIP", chance.choice(["BACKWARD", "FORWARD"]))
    return ";".join(f"{name}={value}" for name, value in parts.items())


@pytest.mark.parametrize("batch", range(BATCHES))
def test_agrees_with_the_reference_around_clock_changes(batch: int) -> None:
    """Under every policy, in every zone and however old the schedule is, the instants are those of the reference."""
    chance = random.Random(1000 + batch)  # noqa: S311 -- reproducible examples, no secret
    names = [name for name in time_zones.in_use.names if name not in {"EST", "MST"}]  # a schedule asks which is meant
    for number in range(CASES // BATCHES):
        zone = names[(batch * (CASES // BATCHES) + number) % len(names)]
        rule = make_random_rule(chance)
        policies = {
            "gap": chance.choice(["shift", "skip"]),
            "fold": chance.choice(["first", "last", "both"]),
            "sub_daily": chance.choice(["elapsed", "wall"]),
        }
        start = datetime(2026, 1, 1) - timedelta(seconds=chance.randrange(30 * 365 * 86_400))  # noqa: DTZ001
        if chance.random() < 0.7:
            start = start.replace(second=0)
        if chance.random() < 0.5:
            start = start.replace(minute=chance.choice([0, 30]))
        begin = choose_instant_near_change(chance, zone, start.replace(tzinfo=UTC))
        hours = {"SECONDLY": 1, "MINUTELY": 7, "HOURLY": 40}.get(rule.split(";")[0][5:], 24 * 40)
        if "HOURLY" in rule and "BYSECOND" in rule:
            hours = 8
        end = begin + timedelta(hours=hours)
        case = f"{rule} from {start.isoformat()} in {zone} with {policies}, from {begin.isoformat()}"
        expected = Reference(rule, start, zone, **policies).between(begin, end)
        found = list_between(begin, end, rrule=rule, dtstart=start.isoformat(), timezone=zone, **policies)
        assert found == expected, case


def list_between(begin: datetime, end: datetime, **fields: str) -> list[datetime]:
    """Return a schedule's occurrences; none if it is refused because it can never fire, or too rarely to find."""
    try:
        return Schedule(**fields).between(begin, end)
    except InvalidSchedule as error:
        if "never fire" in error.problem:
            return []
        raise


def choose_instant_near_change(chance: random.Random, zone: str, start: datetime) -> datetime:
    """Return an instant up to a day before a clock change after ``start`` or, where there is none, any instant."""
    changes = [
        change
        for change in time_zones.load_zone(zone).table_for(0).changes
        if start.timestamp() < change < 2_000_000_000
    ]
    if not changes or chance.random() < 0.1:
        return start + timedelta(hours=chance.randrange(-30, 40_000))
    change = datetime.fromtimestamp(chance.choice(changes), UTC)
    return change - timedelta(minutes=chance.choice([chance.randrange(90), chance.randrange(1500)]))
