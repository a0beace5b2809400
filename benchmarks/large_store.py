"""A store of 20,000 tasks and 50,000 runs with an outage of 36 hours in it, always the same.

It is written as documents, not played: a stack would take hours. The story, in UTC: everything ran until Monday
22 March 2027, 02:00. Then nothing started until Tuesday 14:00. What was due meanwhile started late, and what had
come due several times has a record of those that were skipped. One handler, ``broken``, fails for 2,668 tasks, and
amid these payroll has failed twice in a row. Now is Wednesday 24 March, 14:42:07.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.category import Category
from cloudsched.domain.documents.execution import (
    Attempt,
    CalledBy,
    Execution,
    ExecutionError,
    ExecutionStatus,
    OccurrenceRange,
    Run,
    Suspension,
    Trigger,
)
from cloudsched.domain.documents.journal import JournalEntry, StepKind
from cloudsched.domain.documents.task import Parent, Task, TaskStatus
from cloudsched.domain.schedules.schedule import Schedule
from cloudsched.domain.transitions.commit import Commit
from cloudsched.domain.transitions.planning import note_zone, occurrence_from, occurrence_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

NOW: Final = datetime(2027, 3, 24, 14, 42, 7, tzinfo=UTC)
CREATED: Final = datetime(2027, 3, 1, 8, tzinfo=UTC)
STOPPED: Final = datetime(2027, 3, 22, 2, tzinfo=UTC)
STARTED: Final = datetime(2027, 3, 23, 14, tzinfo=UTC)
"""The end of the outage, 36 hours later."""
_SINCE: Final = datetime(2027, 3, 20, tzinfo=UTC)
"""The earliest runs that are kept."""
_OWNERS: Final = ("ada", "grace", "shop", "ops", *(f"team-{number}" for number in range(56)))
_ZONES: Final = ("UTC", "Europe/Paris", "America/New_York")
_BATCH: Final = 500
_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@dataclass(frozen=True, slots=True)
class Kind:
    """Tasks that differ in their times and owners only."""

    name: str
    handler: str
    count: int
    rule: str | None
    """The rule, with the number of the task for ``{}`` where it differs. None for a single time."""
    kept: timedelta
    """The age of the earliest runs that are kept."""
    status: TaskStatus = TaskStatus.ACTIVE
    fails: bool = False


_KINDS: Final = (
    Kind("Tick", "tick", 7, "FREQ=MINUTELY", timedelta(hours=62)),
    Kind("Sync catalogue", "sync", 20, "FREQ=MINUTELY;INTERVAL=5", timedelta(hours=8)),
    Kind("Check prices", "prices", 40, "FREQ=MINUTELY;INTERVAL=15", timedelta(hours=50)),
    Kind("Refresh index", "index", 300, "FREQ=HOURLY", timedelta(hours=10)),
    Kind("Import feed", "broken", 2668, "FREQ=DAILY", timedelta(days=2), fails=True),
    Kind("Daily report", "report", 7365, "FREQ=DAILY", timedelta(days=3)),
    Kind("Weekday digest", "digest", 1200, "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", timedelta(days=3)),
    Kind("Weekly summary", "summary", 1000, "FREQ=WEEKLY;BYDAY={}", timedelta(days=5)),
    Kind("Monthly close", "close", 300, "FREQ=MONTHLY", timedelta(days=25)),
    Kind("Reminder", "remind", 5500, None, timedelta(0)),
    Kind("Greeting", "greet", 1054, None, timedelta(days=4), TaskStatus.COMPLETED),
    Kind("Called step", "step", 500, None, timedelta(days=4), TaskStatus.COMPLETED),
    Kind("Paused export", "export", 40, "FREQ=DAILY", timedelta(0), TaskStatus.PAUSED),
    Kind("Approve invoice", "asks", 5, None, timedelta(0), TaskStatus.COMPLETED),
)
HANDLERS: Final = ("payroll", *(each.handler for each in _KINDS))


def write_store(path: Path) -> None:
    """Write the store to a file that does not exist yet."""
    store = SqliteStore(path)
    writes = _make_all(random.Random(93))  # noqa: S311 - the same each time
    while batch := list(islice(writes, _BATCH)):
        for answer in store.commit_all(batch):
            if isinstance(answer, Exception):
                raise answer
    store.close()


def _make_all(chance: random.Random) -> Iterator[Commit]:
    yield _make_payroll(chance)
    for kind in _KINDS:
        for number in range(kind.count):
            if kind.rule is None:
                yield _make_single(kind, number, chance)
            else:
                yield _make_recurring(kind, number, kind.rule, chance)


def _make_payroll(chance: random.Random) -> Commit:
    kind = Kind("Payroll", "payroll", 1, "FREQ=DAILY", timedelta(days=20))
    written = _make_recurring(kind, 0, "FREQ=DAILY", chance, start=datetime(2027, 3, 1, 5, 30))  # noqa: DTZ001 - local
    task = written.task
    runs = [*written.executions]
    runs[-2:] = [_end_run(each, "the bank refused the file", is_bad=True) for each in runs[-2:]]
    return Commit(_sum_up(task, runs), executions=runs)


def _make_recurring(kind: Kind, number: int, rule: str, chance: random.Random, start: datetime | None = None) -> Commit:
    zone = _ZONES[number % 3] if kind.rule != "FREQ=MINUTELY" else "UTC"
    minute = chance.randrange(288) * 5
    if start is None:  # made on some day before, and due at a time of which people choose some 288
        start = datetime(2027, 1, 1 + number % 28) + timedelta(minutes=minute)  # noqa: DTZ001 - local
    schedule = Schedule(rrule=rule.format(_DAYS[number % 7]), dtstart=start, timezone=zone)
    is_paused = kind.status is TaskStatus.PAUSED
    task = _make_task(kind, number, schedule, zone, chance)
    begin = max(NOW - kind.kept, _SINCE if kind.name != "Payroll" else CREATED)
    runs = list(_make_runs(task, begin, kind, chance))
    coming = occurrence_from(task, NOW)
    task = task.model_copy(
        update={
            "next_execution_time": None if is_paused else coming,
            "wake_at": None if is_paused else coming,
            "planned_to": max(
                (each.covers.until if each.covers else each.scheduled_for for each in runs), default=None
            ),
        }
    )
    task = task.model_copy(update={"zone_plan": note_zone(task)})
    return Commit(_sum_up(task, runs), executions=runs)


def _find_last(record: Execution) -> datetime:
    return record.covers.until if record.covers else record.scheduled_for


def _make_single(kind: Kind, number: int, chance: random.Random) -> Commit:
    is_done = kind.status is TaskStatus.COMPLETED
    if is_done:
        at = NOW - timedelta(seconds=chance.randrange(60, int(timedelta(days=4).total_seconds())))
        if STOPPED <= at < STARTED:
            at = STARTED + (at - STOPPED) / 100
    else:
        at = NOW + timedelta(minutes=chance.randrange(1, 60 * 24 * 45))
    task = _make_task(kind, number, Schedule.once(at), "UTC", chance)
    if kind.handler == "asks":
        waits = Suspension(
            at=at, reason="waits for decision", events=("decision",), question="Approve?", asked_at=at,
            deadline=NOW + timedelta(days=number + 1),
        )  # fmt: skip
        run = Run(
            execution_id=occurrence_id(task, at), scheduled_for=at, due_at=NOW + timedelta(hours=1), started_at=at,
            suspension=waits, suspension_count=1, is_counted=True, steps=1,
        )  # fmt: skip
        asked = JournalEntry(
            execution_id=run.execution_id, number=1, kind=StepKind.EVENT, name="decision", started_at=at,
            due_at=waits.deadline,
        )  # fmt: skip
        suspended = task.model_copy(update={"runs": (run,), "run_count": 1, "wake_at": run.due_at})
        return Commit(suspended, entries=[asked])
    if not is_done:
        return Commit(task.model_copy(update={"next_execution_time": at, "wake_at": at}))
    runs = [_end_run(_make_record(task, at, at, chance))]
    if kind.handler == "step":
        parent = Parent(task_id="monthly-close-0", execution_id="20270301T000000Z", step=number + 1, depth=1)
        task = task.model_copy(update={"parent": parent})
        called = CalledBy(task_id=parent.task_id, execution_id=parent.execution_id)
        runs = [each.model_copy(update={"called_by": called}) for each in runs]
    task = task.model_copy(update={"status": kind.status})
    return Commit(_sum_up(task, runs), executions=runs)


def _make_task(kind: Kind, number: int, schedule: Schedule, zone: str, chance: random.Random) -> Task:
    paused = TaskStatus.PAUSED if kind.status is TaskStatus.PAUSED else TaskStatus.ACTIVE
    made = CREATED + timedelta(seconds=chance.randrange(86_400 * 10))
    return Task(
        id=f"{kind.name.lower().replace(' ', '-')}-{number}" if kind.count > 1 else kind.name.lower(),
        title=f"{kind.name} {number}" if kind.count > 1 else kind.name,
        owner=_OWNERS[chance.randrange(len(_OWNERS))],
        handler=kind.handler,
        category=[*Category][number % len(Category)],
        labels=(f"team={_OWNERS[number % 7]}",) if number % 3 == 0 else (),
        schedule=schedule,
        is_one_time=schedule.is_one_time,
        timezone=zone,
        status=paused,
        created_at=made,
        updated_at=made,
        status_changed_at=made,
    )


def _make_runs(task: Task, begin: datetime, kind: Kind, chance: random.Random) -> Iterator[Execution]:
    """Yield the records of a recurring task. Of those that were due in the outage, the last one ran late."""
    if not kind.kept:
        return
    times = []
    at = occurrence_from(task, begin)
    while at is not None and at <= NOW:
        times.append(at)
        at = occurrence_from(task, at + timedelta(seconds=1))
    missed = [at for at in times if STOPPED <= at < STARTED]
    for at in times:
        if at in missed[:-1]:
            if at == missed[0]:
                yield _make_skipped(task, missed[:-1])
            continue
        start = at
        if at in missed[-1:]:
            start = STARTED + timedelta(seconds=chance.randrange(5, 900))
        error = "the warehouse did not answer" if kind.fails or chance.random() < 0.004 else ""
        yield _end_run(_make_record(task, at, start, chance), error, is_bad=bool(error))


def _make_record(task: Task, at: datetime, start: datetime, chance: random.Random, **more: Any) -> Execution:
    begin = start + timedelta(milliseconds=chance.randrange(80, 900))
    return Execution(
        id=occurrence_id(task, at),
        task_id=task.id,
        owner=task.owner,
        title=task.title,
        handler=task.handler,
        category=task.category,
        labels=task.labels,
        scheduled_for=at,
        **{
            "started_at": begin,
            "finished_at": begin + timedelta(milliseconds=chance.randrange(50, 90_000)),
            "status": ExecutionStatus.SUCCEEDED,
            "trigger": Trigger.SCHEDULE,
            **more,
        },
    )


def _make_skipped(task: Task, times: Sequence[datetime]) -> Execution:
    covers = OccurrenceRange(until=times[-1], count=len(times)) if len(times) > 1 else None
    return Execution(
        id=occurrence_id(task, times[0]),
        task_id=task.id,
        owner=task.owner,
        title=task.title,
        handler=task.handler,
        category=task.category,
        labels=task.labels,
        scheduled_for=times[0],
        covers=covers,
        finished_at=STARTED,
        status=ExecutionStatus.SKIPPED,
        message="A newer run was due by Tue 23 Mar 2027 at 14:00 (UTC) (catchUp: latest).",
    )


def _end_run(record: Execution, error: str = "", *, is_bad: bool = False) -> Execution:
    status = ExecutionStatus.FAILED if is_bad else ExecutionStatus.SUCCEEDED
    told = ExecutionError(type="ValueError", message=error) if is_bad else None
    assert record.started_at is not None and record.finished_at is not None  # noqa: PT018 - both were made above
    attempt = Attempt(number=1, started_at=record.started_at, finished_at=record.finished_at, status=status, error=told)
    content = None if is_bad else "done"
    return record.model_copy(update={"status": status, "error": told, "attempts": (attempt,), "content": content})


def _sum_up(task: Task, runs: Sequence[Execution]) -> Task:
    """Return a task with what it remembers of its runs."""
    if not runs:
        return task
    statuses = [each.status for each in runs]
    failures = 0
    since = None
    for each in reversed(runs):
        if each.status is ExecutionStatus.SKIPPED:
            continue
        if each.status is not ExecutionStatus.FAILED:
            break
        failures += 1
        since = each.finished_at
    last = runs[-1]
    return task.model_copy(
        update={
            "recent_outcomes": tuple(statuses[-20:]),
            "outcome": last.status,
            "outcome_execution_id": last.id,
            "last_execution_id": last.id,
            "latest_run_at": last.scheduled_for,
            "run_count": len([each for each in statuses if each is not ExecutionStatus.SKIPPED]),
            "consecutive_failures": failures,
            "failing_since": since,
            "updated_at": last.finished_at or task.updated_at,
        }
    )
