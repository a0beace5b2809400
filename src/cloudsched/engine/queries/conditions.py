"""Look at what the next run of a task needs beside its own documents: the sweep, the queue, code, people, workers.

The receipt of a write and the explanation of a task tell what is found. Nothing of it is looked at before somebody
asks, and no dispatch asks. What cannot be looked at is told as that, and never makes a write fail.

* The note of the last sweep is kept for as long as it says that all is well, so that it is read once in two minutes.
* The owner is one read, if there is one. So is who paused a queue, if one is paused.
* Features have their own checks (`Feature.conditions`), which read something only for tasks that use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from cloudsched.domain.documents.authority import SYSTEM_OWNER
from cloudsched.domain.documents.person import Person
from cloudsched.domain.documents.policy import Priority
from cloudsched.domain.documents.queue_pause import QueuePause
from cloudsched.domain.documents.receipt import Doubt, Receipt
from cloudsched.domain.documents.run_counts import LATE, is_late
from cloudsched.domain.explanation.findings import (
    OVERDUE,
    Evidence,
    Finding,
    Reason,
    say_not_checked,
    say_queue_paused,
    say_sweep,
    say_unknown_handler,
)
from cloudsched.domain.explanation.receipt import make_receipt
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.recurrence import time_zones
from cloudsched.domain.transitions.lifecycle import end_pause
from cloudsched.domain.transitions.planning import find_sole_hold
from cloudsched.engine.ports.records import record_of
from cloudsched.engine.sweep.shard_sweeps import FRESH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.handlers.registry import Registry
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store
    from cloudsched.engine.sweep.shard_sweeps import SweepNote

    FeatureCheck = Callable[[Task, Person | None, datetime], Iterable[Finding]]
    """Returns what stands in the way of a task of an owner, who may not be stored."""

log = own_logger(__name__)

_OF_SWEEP = frozenset({Reason.SWEEP_IS_LATE, Reason.OVERDUE})
"""What a paused queue brings about as well."""
_TICK = timedelta(microseconds=1)
ASKED_EVERY = timedelta(seconds=10)
"""The time for which the state of a queue is kept, also if it could not be asked for."""


class QueueWatch(Protocol):
    """Says whether dispatches are held back."""

    def find_paused(self, priority: Priority) -> str | None:
        """Return the queue of a priority that is paused. None if none is. Raises QueueUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class PausedQueue:
    """A queue that is paused."""

    name: str
    priorities: Sequence[Priority]
    """The priorities of the tasks that it carries."""
    pause: QueuePause | None

    @property
    def found(self) -> Finding:
        """Return what operators are told."""
        if self.pause is None:
            return say_queue_paused(self.priorities, self.name)
        return say_queue_paused(self.priorities, self.name, self.pause.by, self.pause.created_at)

    @property
    def shown_to_users(self) -> Finding:
        """Return what the owners of tasks are told, without its name."""
        return say_queue_paused(self.priorities)


class Conditions:
    """Looks at the conditions of tasks, and makes receipts of them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        registry: Registry,
        load_sweep: Callable[[], SweepNote | None],
        queue: QueueWatch | None,
        checks: Sequence[FeatureCheck],
    ) -> None:
        """Take the last sweep, the queue if it can be asked, and the checks of features."""
        self._store = store
        self._clock = clock
        self._registry = registry
        self._load_sweep = load_sweep
        self._queue = queue
        self._checks = checks
        self._swept: SweepNote | None = None
        self._paused: dict[Priority, tuple[datetime, str | None]] = {}
        self._pauses: dict[str, QueuePause | None] = {}
        """Who paused each queue, as far as the store has that."""

    def make_receipt(self, task: Task) -> Receipt:
        """Return the receipt of a task as it is. It never raises: what has been written stays written."""
        try:
            now = self._clock.now()
            ends = task.paused_until
            is_held = find_sole_hold(task) is not None
            if ends is not None:  # it goes on by itself
                task = end_pause(task, ends).task
            person, findings = self._look(task, now)
            if ends is not None and is_held:  # what comes due until then runs no earlier
                now = max(now, ends - _TICK)
            zone = time_zones.load_shown(task.timezone if person is None else person.timezone)
            return make_receipt(Evidence(task=task, now=now, conditions=findings), zone)
        except Exception:  # the write has happened, and its answer must arrive
            log.exception("no receipt", extra={"action": "receipt_failed", "taskId": task.id})
            found = say_not_checked("Its next run")
            return Receipt(scheduled=False, doubts=(Doubt(reason=found.reason, sentence=found.sentence),))

    def find(self, task: Task, now: datetime, *, shows_queue: bool = False) -> Sequence[Finding]:
        """Return what stands in the way of the next run of an active task. Only operators are shown its queue."""
        return self._look(task, now, shows_queue=shows_queue)[1]

    def _look(self, task: Task, now: datetime, *, shows_queue: bool = False) -> tuple[Person | None, list[Finding]]:
        """Return the owner, if one is stored, and what was found for an active task."""
        people: list[Person] = []
        parts: dict[str, Callable[[], Iterable[Finding]]] = {}
        if task.is_active:
            parts["Its handler"] = lambda: self._check_handler(task)
            parts["The queue that carries its dispatches"] = lambda: self._check_queue(
                task, now, shows_queue=shows_queue
            )
            parts["The sweep"] = lambda: self._check_sweep(now)
        parts["Its owner, and what features need"] = lambda: self._check_features(task, people, now)

        found = list[Finding]()
        for what, look in parts.items():
            try:
                found += look()
            except Exception as error:  # noqa: BLE001 - whatever it is, the answer to a write must arrive
                log.warning("not checked: %s", error, extra={"action": "condition_unknown", "taskId": task.id})
                found.append(say_not_checked(what))
        if any(each.reason is Reason.QUEUE_PAUSED for each in found):  # that is why, and not the sweep
            found = [each for each in found if each.reason not in _OF_SWEEP]
        return next(iter(people), None), found

    def _check_handler(self, task: Task) -> Iterator[Finding]:
        """Yield whether nobody has the handler. What only workers have is not known here."""
        if task.workers is None and self._registry.find(task.handler) is None:
            yield say_unknown_handler(task.handler)

    def _check_queue(self, task: Task, now: datetime, *, shows_queue: bool) -> Iterator[Finding]:
        name = self._find_paused(task.priority, now)
        if name == "":
            yield say_not_checked("The queue that carries its dispatches")
        elif name is not None:
            paused = next(each for each in self.find_paused_queues(now) if each.name == name)
            yield paused.found if shows_queue else paused.shown_to_users

    def find_paused_queues(self, now: datetime) -> Iterator[PausedQueue]:
        """Yield the paused queue of each priority, with all priorities whose tasks it carries, by whom and since when.

        One that could not be asked is left out.
        """
        names = {each: self._find_paused(each, now) for each in Priority}
        for name in filter(None, dict.fromkeys(names.values())):
            priorities = [each for each in Priority if names[each] == name]
            if name not in self._pauses:
                self._pauses[name] = record_of(self._store.records.load(QueuePause, name))
            yield PausedQueue(name, tuple(priorities), self._pauses[name])

    def _find_paused(self, priority: Priority, now: datetime) -> str | None:
        """Return the queue of a priority that is paused, or an empty string if it did not answer."""
        if self._queue is None:
            return None
        asked_at, name = self._paused.get(priority, (now, None))
        if priority not in self._paused or not asked_at <= now < asked_at + ASKED_EVERY:
            try:
                name = self._queue.find_paused(priority)
            except Exception as error:  # noqa: BLE001 - kept, so that not each write waits for a service that is down
                log.warning("queue not asked: %s", error, extra={"action": "condition_unknown"})
                name = ""
            self._paused[priority] = (now, name)
            self._pauses.pop(name or "", None)
        return name

    def forget(self) -> None:
        """Forget the states of queues, as after one was paused here."""
        self._paused.clear()
        self._pauses.clear()

    def _check_sweep(self, now: datetime) -> Iterator[Finding]:
        note = self._swept
        if note is None or abs(now - note.updated_at) > FRESH or _has_overdue(note):
            note = self._swept = self._load_sweep()
        if note is None or is_late(note.updated_at, now):
            yield say_sweep(None if note is None else note.updated_at)
        elif _has_overdue(note) and not any(self.find_paused_queues(now)):  # which may hold that
            yield OVERDUE

    def _check_features(self, task: Task, people: list[Person], now: datetime) -> Iterator[Finding]:
        """Load the owner into `people`, and yield what features find for an active task."""
        stored = None if task.owner == SYSTEM_OWNER else self._store.records.load(Person, task.owner)
        person = record_of(stored)
        if person is not None:
            people.append(person)
        for check in self._checks if task.is_active else ():
            yield from check(task, person, now)


def _has_overdue(note: SweepNote) -> bool:
    return note.overdue_seconds > LATE.total_seconds()
