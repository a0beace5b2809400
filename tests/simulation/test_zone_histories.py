"""Random histories in which processes have different time zone data, and some get newer ones midway.

Several processes share a store and a queue. Each has the data of 2022a or 2023c; from a random moment on, processes are
replaced one after the other by ones with 2023c. Any of them gets the next dispatch or the next sweep, commits fail
before or after they took effect, and dispatches are lost or delivered twice. Everything is judged by names: an
occurrence is what the clock shows.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.zone_data import AMMAN, CAIRO, MEXICO, load_release

from cloudsched import App, Schedule, Settings
from cloudsched.adapters.clocks import ManualClock
from cloudsched.adapters.sqlite.store import SqliteStore
from cloudsched.domain.documents.execution import ExecutionStatus
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.zone_plans import name_occurrence
from cloudsched.errors import CloudschedError, StoreUnavailable
from cloudsched.testing.simulation import SimulatedQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloudsched import Task
    from cloudsched.engine.execution.attempts import DeliveryResult
    from cloudsched.engine.ports.store import Commit, VersionedTask

START: Final = datetime(2027, 4, 25, 3, tzinfo=UTC)
LENGTH: Final = timedelta(days=9)
_MINUTE: Final = timedelta(minutes=1)
_RULES: Final = (
    "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0",
    "FREQ=DAILY;BYHOUR=9,10,14;BYMINUTE=30;BYSECOND=0",
    "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYHOUR=23;BYMINUTE=15;BYSECOND=0",
    "FREQ=HOURLY;INTERVAL=4;BYMINUTE=0;BYSECOND=0",
)


class UnreliableStore:
    """A store whose commits sometimes fail, before or after they took effect."""

    def __init__(self, store: SqliteStore, chance: random.Random, faults: float) -> None:
        self._store = store
        self._chance = chance
        self.faults = faults

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self._store, name)

    def commit(self, commit: Commit) -> VersionedTask:
        """Commit, unless it fails; its answer may be lost."""
        if self._chance.random() < self.faults:
            raise StoreUnavailable("The store", "it failed before it wrote")
        committed = self._store.commit(commit)
        if self._chance.random() < self.faults:
            raise StoreUnavailable("The store", "its answer was lost")
        return committed


@dataclass
class Process:
    """One process: an app over the shared parts, and its own time zone data."""

    app: App
    data: time_zones.ZoneData

    def call(self, what: Callable[[App], Any]) -> Any:  # noqa: ANN401 - whatever it returns
        """Do something with its data."""
        with time_zones.use(self.data):
            return what(self.app)


@dataclass
class History:
    """One history: its processes, and when the first of them with newer data swept."""

    seed: int
    faults: float
    first_swept_at: datetime | None = None
    runs: list[tuple[str, str, datetime]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311 - a history is to be repeatable
        self.clock = ManualClock(START)
        self.inner = SqliteStore()
        self.store = UnreliableStore(self.inner, self.chance, self.faults)
        self.queue = SimulatedQueue(self.clock, self.deliver)
        self.processes = [self._start("2022a") for _ in range(3)]
        moments = sorted(START + LENGTH * self.chance.random() * 0.6 for _ in self.processes)
        self.replacements = dict(zip(moments, range(len(self.processes)), strict=True))

    def _start(self, release: str) -> Process:
        settings = Settings(secret="a" * 32, executor_url="http://executor")
        app = App(settings, store=self.store, dispatcher=self.queue, clock=self.clock, chance=random.Random(1))  # noqa: S311

        @app.handler("note", retry=20)
        def note() -> None:
            pass

        return Process(app, load_release(release))

    def deliver(self, body: bytes, token: str) -> DeliveryResult:
        """Let any process have a delivery; a second one may get it, too."""
        result = self.chance.choice(self.processes).call(lambda app: app.deliver(body, token))
        if self.chance.random() < self.faults:
            with suppress(CloudschedError):
                self.chance.choice(self.processes).call(lambda app: app.deliver(body, token))
        return result  # type: ignore[no-any-return]

    def run(self, tasks: int) -> list[Task]:
        """Create tasks, live through it all, and return the tasks as they are in the end."""
        made = [self._create(number) for number in range(tasks)]
        while self.clock.now() < START + LENGTH:
            self._live_to(self.clock.now() + _MINUTE * self.chance.choice([1, 1, 1, 7, 30]))
        self.store.faults = 0
        for _ in range(40):
            self._live_to(self.clock.now() + _MINUTE)
        return [self.processes[0].app.get(each) for each in made]

    def _create(self, number: int) -> str:
        zone = self.chance.choice([MEXICO, MEXICO, CAIRO, AMMAN, "Europe/Berlin"])
        sub_daily = self.chance.choice(["wall", "elapsed"])
        instants = [
            (START + timedelta(days=self.chance.randrange(1, 8), minutes=self.chance.randrange(7, 720, 15))).isoformat()
            for _ in range(self.chance.choice([0, 0, 8]))
        ]
        schedule = Schedule(
            rrule=self.chance.choice(_RULES),
            dtstart="2027-04-24T00:00:00",
            timezone=zone,
            rdates=instants,
            sub_daily=sub_daily,
        )
        fields: dict[str, Any] = {
            "owner": "ada",
            "title": "T",
            "handler": "note",
            "schedule": schedule,
            "catch_up": {"mode": "all"},
        }
        while True:
            with suppress(StoreUnavailable):
                process = self.chance.choice(self.processes)
                return str(process.call(lambda app: app.create(id=f"t{number}", **fields)).id)

    def _live_to(self, until: datetime) -> None:
        while (at := self.queue.wake_at()) is not None and at <= until:
            self.clock.move_to(max(at, self.clock.now()))
            self.queue.deliver_due()
        self.clock.move_to(until)
        for moment, number in [*self.replacements.items()]:
            if moment <= until:
                self.processes[number] = self._start("2023c")
                del self.replacements[moment]
        if self.faults and self.chance.random() < 0.01:
            self.queue.purge()
        process = self.chance.choice(self.processes)
        with suppress(CloudschedError):
            process.call(lambda app: app.container.many_tasks.sweep(app.sweep))
            if process.data.release == "2023c" and self.first_swept_at is None:
                self.first_swept_at = until


@pytest.mark.parametrize("faults", [0.0, 0.03], ids=["reliable", "unreliable"])
@pytest.mark.parametrize("seed", range(3))
def test_each_name_runs_once_and_at_its_hour(seed: int, faults: float) -> None:
    """Nothing is lost, nothing runs twice; once a newer process has swept, nothing runs before its hour."""
    history = History(seed, faults)
    tasks = history.run(8)
    new = load_release("2023c")
    for task in tasks:
        records = history.inner.list_executions(task.id, limit=1000).items
        names = Counter(record.id for record in records)
        assert max(names.values()) == 1
        assert {record.status for record in records} == {ExecutionStatus.SUCCEEDED}, f"{seed}: {task.id}"
        if not task.schedule.has_clock:
            continue  # elapsed hours stay where they are
        with time_zones.use(new):
            due = task.schedule.between(START + timedelta(days=1), START + LENGTH - timedelta(hours=2))
            clock = {name_occurrence(task.schedule, at): at for at in due}
        assert clock.keys() <= names.keys(), f"{seed}: lost {sorted(clock.keys() - names.keys())} of {task.id}"
        swept_at = history.first_swept_at or START + LENGTH
        for record in records:
            if record.id in clock and record.started_at is not None and record.started_at > swept_at:
                assert record.started_at >= clock[record.id], f"{seed}: {task.id}'s {record.id} ran early"
