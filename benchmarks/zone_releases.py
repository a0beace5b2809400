"""Plan tasks with one release of the time zone data and run them with the next: is any occurrence lost, or run twice?

All consecutive releases of ``tzdata`` on PyPI since 2020, all zones, 50 sampled rules each (daily to yearly, once,
with exceptions, finer than a day; every policy for gaps and folds):

    python -m benchmarks.zone_releases                       # downloads the wheels into .cache/tzdata with pip
    python -m benchmarks.zone_releases --rules 5 --from 2022.1 --to 2023.3

A task is made some days before the zone's clocks first differ, runs until a random moment around that with the older
data, and from then on with the newer. Its decisions are the engine's own (`on_dispatch`, `on_outcome`, `replan_zone`).
A zone whose fingerprint is the same in both releases has the same clock changes, so that nothing can differ: it is
counted as equal and not run. Of zones with the same two clocks, one stands for all.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cloudsched import Schedule, TaskDraft
from cloudsched.adapters.zone_releases import open_release
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.domain.explanation.zone_changes import compare_zones
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.claim import Claim, on_dispatch
from cloudsched.domain.transitions.edits import new_task
from cloudsched.domain.transitions.finish import AttemptReport, on_outcome
from cloudsched.domain.transitions.outcome import Done
from cloudsched.domain.transitions.planning import dispatch_for, executor_wakeups
from cloudsched.domain.transitions.replan import replan_zone
from cloudsched.domain.transitions.zone_plans import name_occurrence
from cloudsched.errors import InvalidInput, InvalidSchedule

if TYPE_CHECKING:
    from cloudsched import Task
    from cloudsched.domain.recurrence.time_zones import ZoneData

CACHE: Final = Path(".cache/tzdata")
SPAN: Final = timedelta(days=6)
_SINCE: Final = datetime(2020, 1, 1, tzinfo=UTC)
_QUIET: Final = datetime(2025, 3, 1, tzinfo=UTC)
"""Around when zones are tried that differ only before 2020."""
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@dataclass
class Result:
    """What was tried, and what went wrong."""

    pairs: int = 0
    equal: int = 0
    """Zones of a pair of releases with the same clocks in both."""
    same: int = 0
    """Zones with the same two clocks as one that was run."""
    zones: int = 0
    scenarios: int = 0
    runs: int = 0
    moved: int = 0
    """Runs that were planned with the older data, and moved."""
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Runs at another instant than what the newer data say, after they were there."""


def make_schedule(chance: random.Random, zone: str, at: datetime) -> Schedule:
    """Return a random schedule with occurrences around an instant."""
    local = (at - timedelta(days=10)).replace(tzinfo=None, microsecond=0)
    start = local.replace(hour=chance.randrange(24), minute=chance.choice([0, 15, 30, 59]), second=0)
    hours = ",".join(map(str, sorted(chance.sample(range(24), 3))))
    day = chance.choice(_DAYS)
    near = at.replace(tzinfo=None) + timedelta(days=chance.randrange(-3, 4))
    timed = near.replace(hour=start.hour, minute=start.minute, second=0, microsecond=0)
    yearly = timed.replace(year=near.year - 1, day=min(near.day, 28))
    policies: dict[str, Any] = {
        "gap": chance.choice(["shift", "shift", "skip"]),
        "fold": chance.choice(["first", "first", "last", "both"]),
        "sub_daily": chance.choice(["elapsed", "wall"]),
    }
    rules: list[tuple[str | None, dict[str, Any]]] = [
        ("FREQ=DAILY", {}),
        (f"FREQ=DAILY;BYHOUR={hours};BYMINUTE=0,30;BYSECOND=0", {}),
        ("FREQ=DAILY;INTERVAL=2", {}),
        ("FREQ=DAILY;COUNT=13", {}),
        (f"FREQ=DAILY;UNTIL={at + timedelta(days=3):%Y%m%dT%H%M%SZ}", {}),
        ("FREQ=DAILY", {"exdates": ((near + timedelta(days=1)).date().isoformat(),)}),
        ("FREQ=DAILY", {"rdates": (near.replace(minute=7, second=0, microsecond=0).isoformat(),)}),
        (f"FREQ=WEEKLY;BYDAY={day},SA", {}),
        (f"FREQ=MONTHLY;BYMONTHDAY={near.day}", {}),
        ("FREQ=YEARLY", {"dtstart": yearly.isoformat()}),
        (f"FREQ=HOURLY;INTERVAL={chance.choice([1, 3, 5, 6])}", {}),
        (f"FREQ=HOURLY;BYHOUR={hours}", {}),
        (f"FREQ=MINUTELY;INTERVAL={chance.choice([45, 90, 240])}", {}),
        (None, {}),
        (None, {}),
    ]
    rule, more = chance.choice(rules)
    if rule is None:
        return Schedule.once_at(timed, zone)
    return Schedule(**{"rrule": rule, "dtstart": start.isoformat(), "timezone": zone, **policies, **more})


def run_task(task: Task, until: datetime, ran: list[tuple[str, datetime]], begin: datetime) -> Task:
    """Run what is due until an instant; note each run's id, and when it started."""
    for _ in range(2000):
        wakes = [wake for wake in executor_wakeups(task) if wake.due_at <= until]
        if not wakes or task.status is not TaskStatus.ACTIVE:
            return task
        wake = min(wakes, key=lambda each: each.due_at)
        now = max(wake.due_at, begin)
        decision = on_dispatch(task, dispatch_for(task, wake, now), now, "token")
        if not isinstance(decision, Claim):
            raise AssertionError(f"{wake}: {decision}")  # noqa: TRY004 - a decision of another kind is a bug
        task = decision.transition.task
        if decision.run is None:
            continue
        ran.append((decision.run.execution_id, now))
        ended = on_outcome(task, decision.run.execution_id, "token", AttemptReport(Done(None)), now, random.Random(0))  # noqa: S311
        if ended is None:
            raise AssertionError(f"{wake}: its lease is lost")
        task = ended.task
    return task


def try_one(old: ZoneData, new: ZoneData, zone: str, at: datetime, seed: str, result: Result) -> None:
    """Plan one schedule with the older data, and run it with the newer from a random moment on."""
    chance = random.Random(seed)  # noqa: S311 - to be repeatable
    begin, end = at - SPAN, at + SPAN
    change = at + timedelta(seconds=chance.randrange(-3 * 86_400, 3 * 86_400))
    ran: list[tuple[str, datetime]] = []
    with time_zones.use(old):
        try:
            schedule = make_schedule(chance, zone, at)
            draft = TaskDraft.of(id="t", owner="a", title="T", handler="h", schedule=schedule, catch_up={"mode": "all"})
            task = new_task(draft, begin)
        except (InvalidSchedule, InvalidInput):
            return  # it has no occurrence there
        task = run_task(task, change, ran, begin)
        expected_old = {name_occurrence(schedule, each): each for each in schedule.between(begin, end)}
    before = len(ran)
    with time_zones.use(new):
        task = replan_zone(task, change).task
        task = run_task(task, end, ran, change)
        moved = schedule.relocate()
        expected = {name_occurrence(moved, each): each for each in moved.between(begin, end)}
    result.scenarios += 1
    result.runs += len(ran)
    result.moved += any(each.action == "MOVED" for each in task.history)
    names = [name for name, _ in ran]
    shown = schedule.model_dump_json(exclude_defaults=True)
    what = f"{old.release} > {new.release}, {shown} at {change:%Y-%m-%dT%H:%M:%S} ({seed})"
    if len({*names}) < len(names):
        result.doubled.append(what)
    day, inside = timedelta(days=1), end - timedelta(days=1)
    due = {name for name, each in expected.items() if change + day < each < inside}
    due |= {name for name in expected.keys() & expected_old.keys() if max(expected[name], expected_old[name]) < inside}
    if lost := due - {*names}:
        result.lost.append(f"{what}: {sorted(lost)[:3]}")
    for name, started in ran[before:]:
        if name in expected and started != max(expected[name], change):
            result.wrong.append(f"{what}: {name} at {started}")
            break


def list_versions() -> list[str]:
    """Return the versions of ``tzdata`` on PyPI, oldest first."""
    done = subprocess.run(
        (sys.executable, "-m", "pip", "index", "versions", "tzdata", "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    versions = json.loads(done.stdout)["versions"] if done.returncode == 0 else []
    return sorted(versions, key=lambda each: tuple(int(part.removeprefix("post")) for part in each.split(".")))


def main() -> None:
    """Try all pairs, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", type=int, default=50, help="how many rules of each zone")
    parser.add_argument("--from", dest="first", help="the first version")
    parser.add_argument("--to", dest="last", help="the last version")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where wheels are kept")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    versions = list_versions()
    first = versions.index(options.first) if options.first else 0
    last = versions.index(options.last) if options.last else len(versions) - 1
    chosen, result, begun = versions[first : last + 1], Result(), time.process_time()
    old = open_release(chosen[0], options.cache)
    for version in chosen[1:]:
        new = open_release(version, options.cache)
        result.pairs += 1
        changes = [each for each in compare_zones(old, new, _SINCE) if old.knows(each.name) and new.knows(each.name)]
        result.equal += len({*old.names} & {*new.names}) - len(changes)
        seen = set[tuple[str, str]]()
        for change in changes:
            clocks = old.fingerprint(change.name), new.fingerprint(change.name)
            if clocks in seen:
                result.same += 1
                continue
            seen.add(clocks)
            result.zones += 1
            for number in range(options.rules):
                try_one(old, new, change.name, change.at or _QUIET, f"{version} {change.name} {number}", result)
        print(
            f"{old.release} > {new.release}: {len(changes)} zones differ, {len(seen)} kinds; {_summary(result)}",
            flush=True,
        )
        old = new
    for each in (*result.lost, *result.doubled, *result.wrong):
        print(each)
    seconds = time.process_time() - begun
    zones = f"{result.equal} equal by their fingerprint, {result.zones} run, {result.same} like one that was run"
    tried = f"{result.scenarios} schedules, {result.runs} runs, {result.moved} plans moved"
    print(f"{result.pairs} pairs; zones: {zones}; {tried}; {_summary(result)}; {seconds:.0f} s CPU")
    sys.exit(bool(result.lost or result.doubled or result.wrong))


def _summary(result: Result) -> str:
    return f"{len(result.lost)} lost, {len(result.doubled)} doubled, {len(result.wrong)} at a wrong hour"


if __name__ == "__main__":
    main()
