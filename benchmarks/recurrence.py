"""The next occurrence of a schedule: how long `Schedule.after` takes beside what one would use instead.

    pip install cronsim croniter apscheduler recurring-ical-events
    python benchmarks/recurrence.py

Every figure is the median of many calls in one run, in microseconds of CPU time, for schedules that began one day,
one year and twenty years before the instant asked about. All are warm: built once, asked again and again; "fresh" is
ours when nothing is known yet: parse, check and first search. Rivals that take RRULE get the rule and its DTSTART; cron
rivals get the nearest cron expression, which has no DTSTART, so that their schedules have no age. What a rival cannot
say is a dash, one that is not installed is left out, and one that took more than half a second for a younger schedule
is not made to work off the older ones.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle
from time import thread_time
from typing import Any, NamedTuple

from dateutil.rrule import rrulestr

from cloudsched.domain.recurrence import recurrence_set as recurrence
from cloudsched.domain.recurrence import rrule
from cloudsched.domain.recurrence import time_zones as zones
from cloudsched.domain.recurrence.schedule import Schedule

ZONE = "America/New_York"
NOW = datetime(2027, 6, 15, 12, 34, 56, tzinfo=UTC)
AGES = {"1 day": timedelta(days=1), "1 year": timedelta(days=365), "20 years": timedelta(days=7305)}
TARGET_MICROSECONDS, TARGET_GROWTH, TARGET_RATIO = 50, 1.5, 1.2
BUDGET = 0.3
TOO_SLOW = 0.5e6
"""Seconds that one figure may take; at least one call is made."""

Ask = Callable[[datetime], object]


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


def ours(case: Case, start: datetime) -> Ask:
    """Ask cloudsched."""
    return Schedule(rrule=case.rule, dtstart=start.replace(tzinfo=None).isoformat(), timezone=ZONE).after


def dateutil(case: Case, start: datetime) -> Ask:
    """Run naively on wall time and put on the time line: the way in which dateutil is right for days and longer."""
    rule: Any = rrulestr(case.rule, dtstart=start.replace(tzinfo=None))
    zone = zones.load_tzinfo(ZONE)

    def ask(instant: datetime) -> object:
        found = rule.after(instant.astimezone(zone).replace(tzinfo=None))
        return found and found.replace(tzinfo=zone).astimezone(UTC)

    return ask


def recurring_ical_events(case: Case, start: datetime) -> Ask:
    """Ask it for the first event after an instant."""
    icalendar, rival = import_module("icalendar"), import_module("recurring_ical_events")
    event = icalendar.Event()
    event.add("dtstart", start)
    event.add("rrule", icalendar.vRecur.from_ical(case.rule))
    calendar = icalendar.Calendar()
    calendar.add_component(event)
    query = rival.of(calendar)
    return lambda instant: next(query.after(instant), None)


def cronsim(case: Case, _start: datetime) -> Ask:
    """Ask it; its iterator begins anew at each instant."""
    rival = import_module("cronsim").CronSim
    zone, text = zones.load_tzinfo(ZONE), expression(case)
    return lambda instant: next(rival(text, instant.astimezone(zone)))


def croniter(case: Case, _start: datetime) -> Ask:
    """Ask it; its iterator begins anew at each instant."""
    rival = import_module("croniter").croniter
    zone, text = zones.load_tzinfo(ZONE), expression(case).replace("5L", "L5")
    return lambda instant: rival(text, instant.astimezone(zone)).get_next(datetime)


def apscheduler(case: Case, _start: datetime) -> Ask:
    """Ask the trigger of APScheduler 3."""
    rival = import_module("apscheduler.triggers.cron").CronTrigger
    if case.cron and case.cron.endswith("5L"):
        trigger = rival(day="last fri", hour=9, timezone=zones.load_tzinfo(ZONE))
    else:
        names = expression(case).replace(" 1,3", " mon,wed").replace(" * * 1", " * * mon")
        trigger = rival.from_crontab(names, timezone=zones.load_tzinfo(ZONE))
    return lambda instant: trigger.get_next_fire_time(None, instant)


def expression(case: Case) -> str:
    """Return the cron expression of a case that has one."""
    if case.cron is None:
        raise NotImplementedError
    return case.cron


RIVALS = {
    "python-dateutil": dateutil,
    "recurring-ical-events": recurring_ical_events,
    "cronsim": cronsim,
    "croniter": croniter,
    "apscheduler": apscheduler,
}


def microseconds(ask: Ask) -> float:
    """Return the median of one call, over instants within three days of NOW."""
    instants = cycle([NOW + timedelta(minutes=37 * number) for number in range(117)])
    samples: list[float] = []
    finished = thread_time() + BUDGET
    while not samples or (thread_time() < finished and len(samples) < 3000):
        instant = next(instants)
        begin = thread_time()
        ask(instant)
        samples.append((thread_time() - begin) * 1e6)
    return statistics.median(samples)


def figure(make: Callable[[Case, datetime], Ask], case: Case, start: datetime) -> float | None:
    """Return a rival's figure; None for what it cannot say."""
    try:
        return microseconds(make(case, start))
    except (NotImplementedError, ImportError):
        return None


def fresh(case: Case, start: datetime) -> float:
    """Return what a schedule costs that the process has not seen: parse, check, first search; in microseconds."""
    samples = []
    for _ in range(50):
        recurrence.compile_recurrence.cache_clear()
        rrule.parse_rule.cache_clear()
        begin = thread_time()
        ours(case, start)(NOW)
        samples.append((thread_time() - begin) * 1e6)
    return statistics.median(samples)


def main() -> None:
    """Print the table."""
    installed = {}
    for name in RIVALS:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            print(f"{name} is not installed and left out")
    print(f"Python {sys.version.split()[0]}, tzdata {zones.version()}, {', '.join(map(' '.join, installed.items()))}")
    print("microseconds, median of one call\n")
    print("| rule | age | fresh | cloudsched | " + " | ".join(installed) + " | dateutil / ours | growth |")
    print("|---|---|" + "---:|" * (len(installed) + 4))
    missed = []
    for case in CASES:
        youngest = rival = 0.0
        too_slow: dict[str, float] = {}
        for age, since in AGES.items():
            start = (NOW - since).replace(hour=9, minute=0, second=0).astimezone(zones.load_tzinfo(ZONE))
            own = microseconds(ours(case, start))
            youngest = youngest or own
            cells = []
            for name in installed:
                other = None if name in too_slow else figure(RIVALS[name], case, start)
                if other and other > TOO_SLOW:
                    too_slow[name] = other
                cells.append(f"{other:,.1f}" if other else f"> {too_slow[name]:,.0f}" if name in too_slow else "-")
                if name == "python-dateutil":
                    rival = other or too_slow[name]
            ratio = f"{rival / own:,.1f}"
            print(
                f"| {case.name} | {age} | {fresh(case, start):,.0f} | {own:.1f} | {' | '.join(cells)} "
                f"| {ratio} | {own / youngest:.2f} |",
                flush=True,
            )
            if own > TARGET_MICROSECONDS or own > TARGET_GROWTH * youngest or own > TARGET_RATIO * rival:
                missed.append(f"{case.name}, {age}")
    print(f"\nTargets missed: {', '.join(missed) or 'none'}")


if __name__ == "__main__":
    main()
