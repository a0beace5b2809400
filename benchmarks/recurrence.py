"""Measure `Schedule.next_after`, which finds the next occurrence of a schedule, compared with other libraries.

    python -m benchmarks.recurrence

Every figure is the median of many calls in one run, in microseconds of CPU time, for schedules that started one day,
one year and twenty years before the instant after which the next occurrence is searched. All schedules are warm: built
once and used for many calls. "fresh" is cloudsched with empty caches: parse, check and first search. Rivals that
support RRULE get the rule and its DTSTART. Cron rivals get the nearest cron expression, which has no DTSTART, so that
the age makes no difference to them. A dash means that a rival cannot express the rule. A rival that took more than half
a second for a younger schedule is not measured with the older ones.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import version
from itertools import cycle
from time import thread_time
from typing import Any, NamedTuple

from benchmarks.machine import find_site_packages
from dateutil.rrule import rrulestr

from cloudsched.domain.recurrence import recurrence_set, rrule, time_zones
from cloudsched.domain.schedules.schedule import Schedule

ZONE = "America/New_York"
NOW = datetime(2027, 6, 15, 12, 34, 56, tzinfo=UTC)
AGES = {"1 day": timedelta(days=1), "1 year": timedelta(days=365), "20 years": timedelta(days=7305)}
BUDGET_SECONDS = 0.3
"""Seconds of CPU time for one figure; at least one call is made."""
TOO_SLOW_MICROSECONDS = 0.5e6
"""A rival that takes longer than this is not measured with older schedules."""

NextOccurrence = Callable[[datetime], object]
"""Finds the next occurrence after an instant."""


class Case(NamedTuple):
    """A rule, and the cron expression that comes nearest to it."""

    name: str
    rule: str
    cron: str | None


CASES = [
    Case("MINUTELY", "FREQ=MINUTELY", "* * * * *"),
    Case("MINUTELY filtered", "FREQ=MINUTELY;INTERVAL=5;BYHOUR=9,10,11;BYDAY=MO", "*/5 9-11 * * 1"),
    Case("HOURLY", "FREQ=HOURLY;BYMINUTE=0", "0 * * * *"),
    Case("DAILY", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0", "0 9 * * *"),
    Case("WEEKLY", "FREQ=WEEKLY;INTERVAL=1;BYDAY=MO,WE;BYHOUR=9;BYMINUTE=0", "0 9 * * 1,3"),
    Case("MONTHLY", "FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=9;BYMINUTE=0", "0 9 31 * *"),
    Case("MONTHLY last Friday", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0", "0 9 * * 5L"),
    Case("YEARLY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYHOUR=9;BYMINUTE=0", "0 9 29 2 *"),
    Case("BYSETPOS", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;BYHOUR=9;BYMINUTE=0", None),
    Case("COUNT", "FREQ=DAILY;COUNT=20000", None),
]


def make_cloudsched(case: Case, start: datetime) -> NextOccurrence:
    """Return the search of cloudsched."""
    return Schedule(rrule=case.rule, dtstart=start.replace(tzinfo=None).isoformat(), timezone=ZONE).next_after


def make_dateutil(case: Case, start: datetime) -> NextOccurrence:
    """Return a search in naive local time, converted to UTC: so dateutil is correct for DAILY and longer periods."""
    rule: Any = rrulestr(case.rule, dtstart=start.replace(tzinfo=None))
    zone = time_zones.load_tzinfo(ZONE)

    def find_next(instant: datetime) -> object:
        occurrence = rule.after(instant.astimezone(zone).replace(tzinfo=None))
        return occurrence and occurrence.replace(tzinfo=zone).astimezone(UTC)

    return find_next


def make_cronsim(case: Case, _start: datetime) -> NextOccurrence:
    """Return a search that creates a new iterator for each instant."""
    module = import_module("cronsim").CronSim
    zone, text = time_zones.load_tzinfo(ZONE), require_cron(case)
    return lambda instant: next(module(text, instant.astimezone(zone)))


def require_cron(case: Case) -> str:
    """Return the case's cron expression; raise NotImplementedError if it has none."""
    if case.cron is None:
        raise NotImplementedError
    return case.cron


RIVALS = {"python-dateutil": make_dateutil, "cronsim": make_cronsim}


def measure_microseconds(find_next: NextOccurrence) -> float:
    """Return the median duration of one call, for instants in the three days after NOW."""
    instants = cycle([NOW + timedelta(minutes=37 * number) for number in range(117)])
    samples: list[float] = []
    deadline = thread_time() + BUDGET_SECONDS
    while not samples or (thread_time() < deadline and len(samples) < 3000):
        instant = next(instants)
        call_start = thread_time()
        find_next(instant)
        samples.append((thread_time() - call_start) * 1e6)
    return statistics.median(samples)


def measure_rival(make: Callable[[Case, datetime], NextOccurrence], case: Case, start: datetime) -> float | None:
    """Return a rival's figure, or None if it cannot express the rule."""
    try:
        return measure_microseconds(make(case, start))
    except NotImplementedError:
        return None


def measure_fresh(case: Case, start: datetime) -> float:
    """Return the microseconds for a schedule that is not cached: parse, check and first search."""
    samples = []
    for _ in range(50):
        recurrence_set.compile_recurrence.cache_clear()
        rrule.parse_rule.cache_clear()
        call_start = thread_time()
        make_cloudsched(case, start)(NOW)
        samples.append((thread_time() - call_start) * 1e6)
    return statistics.median(samples)


def main() -> None:
    """Measure all cases and print the table."""
    sys.path.append(str(find_site_packages()))
    installed = {name: version(name) for name in RIVALS}
    rivals = ", ".join(map(" ".join, installed.items()))
    print(f"Python {sys.version.split()[0]}, tzdata {time_zones.in_use.release}, {rivals}")
    print("microseconds, median of one call\n")
    print("| rule | age | fresh | cloudsched | " + " | ".join(installed) + " | dateutil / cloudsched | growth |")
    print("|---|---|" + "---:|" * (len(installed) + 4))
    for case in CASES:
        youngest_microseconds = dateutil = 0.0
        too_slow: dict[str, float] = {}
        for age_name, age in AGES.items():
            start = (NOW - age).replace(hour=9, minute=0, second=0).astimezone(time_zones.load_tzinfo(ZONE))
            ours = make_cloudsched(case, start)
            ours(NOW)  # warm, as the others are: the first search of a COUNT counts
            microseconds = measure_microseconds(ours)
            youngest_microseconds = youngest_microseconds or microseconds
            cells = []
            for name in installed:
                figure = None if name in too_slow else measure_rival(RIVALS[name], case, start)
                if figure and figure > TOO_SLOW_MICROSECONDS:
                    too_slow[name] = figure
                cells.append(f"{figure:,.1f}" if figure else f"> {too_slow[name]:,.0f}" if name in too_slow else "-")
                if name == "python-dateutil":
                    dateutil = figure or too_slow[name]
            fresh, growth = measure_fresh(case, start), microseconds / youngest_microseconds
            ratio = f"{dateutil / microseconds:,.1f}"
            print(
                f"| {case.name} | {age_name} | {fresh:,.0f} | {microseconds:.1f} | {' | '.join(cells)} "
                f"| {ratio} | {growth:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
