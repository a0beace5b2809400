"""Quotas for one user: unfinished tasks, creations a minute, calls included, and the interval between runs.

The limits apply to creating a task and to reviving one that has ended, since both make a task unfinished.
Below, "creation" means both. Only the first counts for the minute.

The tasks themselves are counted, so no counter can drift. Two creations at the same moment do not see
each other's tasks. So each commits together with one of the owner's few quota locks, on the version that
it read before it counted. Of creations that share a lock only one takes effect, and the others count
again. So once an owner is at a limit, at most one creation for each of the other locks still takes
effect.

More locks let more creations of one owner take effect in a second, since a document takes few writes in
that time. So their number grows with the limit: with n locks, simultaneous creations exceed it by at most
n - 1 tasks, which is a tenth of the limit, rounded down, and never more than `MAX_EXCESS`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from cloudsched.domain.documents.policy import QUOTA_PREFIX
from cloudsched.domain.documents.task import FINAL_STATUSES, Task
from cloudsched.domain.in_words import to_words
from cloudsched.errors import InvalidInput, QuotaExceeded

if TYPE_CHECKING:
    from random import Random

    from cloudsched.domain.schedules.schedule import Schedule
    from cloudsched.domain.transitions.commit import LinkedWrite
    from cloudsched.engine.authority import Authority
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store

MAX_EXCESS = 7
"""The most tasks by which simultaneous creations of one owner exceed a limit."""
_EXCESS_SHARE = 10
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_SHARES = 20
"""The number of parts of a limit that are noted in the store, each as a whole."""
_MAX_CREATORS = 10_000
"""The number of runs of which a process remembers that they have created a task."""
RUN_CREATIONS = "CLOUDSCHED_MAX_RUN_CREATIONS_A_MINUTE"
"""The setting that each refusal of what a run creates names."""
_RUN_HINT = f"If no handler creates them without end, raise {RUN_CREATIONS}."
_CREATION = "creation"
_FREE_SHARE = 10
"""The part of a limit that a process uses without asking, as a divisor."""


@dataclass(frozen=True, slots=True)
class QuotaLimits:
    """The limits of one user. None means no limit."""

    unfinished: int | None = None
    """Tasks that have not ended."""
    creations_a_minute: int | None = None
    least_interval: timedelta = timedelta(0)
    """Between two runs of a schedule."""
    run_creations_a_minute: int | None = None
    """Tasks that runs create for one owner, whoever that is. See `Quotas.require_run_room`."""

    @property
    def counts(self) -> bool:
        """Return whether tasks are to be counted."""
        return self.unfinished is not None or self.creations_a_minute is not None

    @property
    def max_excess(self) -> int:
        """The number of tasks by which simultaneous creations may exceed a limit."""
        limits = (each for each in (self.unfinished, self.creations_a_minute) if each is not None)
        return min(MAX_EXCESS, min(limits, default=0) // _EXCESS_SHARE)


@dataclass(frozen=True, slots=True)
class QuotaCheck:
    """The result of counting an owner's tasks."""

    refusal: QuotaExceeded | None
    """The error if no more tasks may be created, or None if one more may."""
    _read: Any
    """The document that this creation passes through, as it was before the tasks were counted."""

    def guard(self, task: Task) -> LinkedWrite:
        """Return what to commit with the task.

        The commit fails if another creation passed through it since.
        """
        guard: LinkedWrite = self._read.held_by(task.id, _CREATION, task.updated_at)
        return guard

    def has_passed(self, store: Store) -> bool:
        """Return whether another creation has passed through the document since."""
        return bool(store.locks.load(self._read.lock.key).version != self._read.version)


class _RunCreations:
    """What the runs of this process may still create this minute, by owner, before the store is asked."""

    def __init__(self) -> None:
        self._minute: datetime | None = None
        self._room: dict[str, int] = {}

    def take(self, owner: str, now: datetime, room: int) -> bool:
        """Return whether there is room for one more, and take it. `room` is what each minute begins with."""
        minute = now.replace(second=0, microsecond=0)
        if self._minute != minute:
            self._minute = minute
            self._room = {}
        left = self._room.get(owner, room)
        self._room[owner] = max(left - 1, 0)
        return left > 0

    def add_room(self, owner: str, room: int) -> None:
        """Note the room that the store has shown."""
        self._room[owner] = room


class _Multiplication:
    """What the runs of this process have created beside others, by owner, and who may not go on.

    It counts only runs of tasks that runs have created. Each may create one task without being counted.
    """

    def __init__(self) -> None:
        self._creators = set[str]()
        self._counts: dict[str, int] = {}
        self._stopped_until: dict[str, datetime] = {}

    def is_due(self, owner: str, run: str, share: int) -> bool:
        """Count a creation, and return whether a whole share was counted since the last one."""
        if run not in self._creators:
            if len(self._creators) >= _MAX_CREATORS:
                self._creators = set()
            self._creators.add(run)
            return False
        count = self._counts.get(owner, 0) + 1
        self._counts[owner] = count % share
        return count >= share

    def stop(self, owner: str, until: datetime) -> None:
        """Note until when runs of such tasks may create nothing for an owner."""
        self._stopped_until[owner] = until

    def find_stop(self, owner: str, now: datetime) -> datetime | None:
        """Return until when an owner is stopped, None if not."""
        until = self._stopped_until.get(owner)
        if until is not None and until <= now:
            self._stopped_until.pop(owner, None)
            return None
        return until


def is_revival(before: Task, after: Task) -> bool:
    """Return whether a change starts a task again that has ended."""
    return before.status in FINAL_STATUSES and after.status not in FINAL_STATUSES


class Quotas:
    """Counts what owners have, where a limit is set. Without one, nothing is read and nothing is written."""

    def __init__(self, *, store: Store, clock: Clock, random: Random, limits: QuotaLimits) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._limits = limits
        self._run_creations = _RunCreations()
        self._multiplication = _Multiplication()

    def check(self, owner: str) -> QuotaCheck | None:
        """Count an owner's tasks before one is created. Return None if there is no limit.

        Costs one read, and one count for each limit.
        """
        if not self._limits.counts:
            return None
        number = self._random.randrange(self._limits.max_excess + 1)
        read = self._store.locks.load(f"{QUOTA_PREFIX}{number}:{owner}")  # before counting: see the module
        return QuotaCheck(self._find_refusal(owner), read)

    def require_run_room(self, owner: str, maker: Task, execution_id: str) -> None:
        """Check that a run may create another task for an owner: a runaway handler is stopped.

        Raises QuotaExceeded.

        A process counts by itself, and asks the store only once its runs have created a tenth of the
        limit in a minute, and then the more seldom the more room it has found. So processes may exceed
        the limit together, by a tenth of it each, and the usual creation costs no read.
        """
        limit = self._limits.run_creations_a_minute
        if limit is None:
            return
        now = self._clock.now()
        if maker.is_made_by_run:
            self._require_no_multiplication(owner, f"{maker.id} {execution_id}", limit, now)
        if self._run_creations.take(owner, now, limit // _FREE_SHARE):
            return
        created = self._store.search.count_created_since(owner, now - _MINUTE, limit)
        if created >= limit:
            raise QuotaExceeded("tasks a minute that runs create", limit, _RUN_HINT, 60)
        self._run_creations.add_room(owner, (limit - created) // _FREE_SHARE)

    def _require_no_multiplication(self, owner: str, run: str, limit: int, now: datetime) -> None:
        """Check that tasks which runs have created do not multiply by their own runs.

        Those that create one task each, as chains do, go on for ever. What they create beside it is counted,
        in all processes together, a share at a time. Beyond the limit in an hour, none of them creates
        anything for the owner, so that they die out. A process learns of that with its next whole share.
        """
        until = self._multiplication.find_stop(owner, now)
        share = -(-limit // _SHARES)
        if until is None and self._multiplication.is_due(owner, run, share):
            from cloudsched.engine.state.record_changes import count_recent  # noqa: PLC0415 - few runs multiply

            key = f"multiplication-{hashlib.sha256(owner.encode()).hexdigest()[:32]}"
            about: dict[str, Any] = {"span": _HOUR, "quota": "shares", "hint": ""}
            try:
                count_recent(self._store.records, self._clock, key, limit=limit // share, **about)
            except QuotaExceeded as full:
                until = now + timedelta(seconds=full.retry_after or 0)
                self._multiplication.stop(owner, until)
        if until is not None:
            what = "tasks an hour that multiply by their own runs"
            raise QuotaExceeded(what, limit, _RUN_HINT, -(-(until - now) // timedelta(seconds=1)))

    def require_interval(self, schedule: Schedule, now: datetime) -> None:
        """Check that a schedule which a user sets does not run too often. Raises InvalidInput."""
        least = self._limits.least_interval
        shortest = None if schedule.is_one_time or not least else schedule.find_shortest_interval(now)
        if shortest is not None and shortest < least:
            hint = f"Leave at least {to_words(least)} between two runs."
            raise InvalidInput("schedule", f"would run every {to_words(shortest)}", hint)

    def check_revival(self, before: Task, after: Task, by: Authority) -> LinkedWrite | None:
        """Return what to commit with a change that a user asks for, if it revives a task that has ended.

        None where there is no limit, for servers, and for every other change: nothing is read then. Raises
        QuotaExceeded.
        """
        is_limited = by.has_quotas and is_revival(before, after)
        quota = self.check(after.owner) if is_limited else None
        if quota is None:
            return None
        if quota.refusal is not None:
            raise quota.refusal
        return quota.guard(after)

    def count_room(self, owner: str, wanted: int) -> int:
        """Return how many of the wanted tasks the owner has room for. Costs one count for each limit."""
        unfinished, created = self._limits.unfinished, self._limits.creations_a_minute
        room = wanted
        if unfinished is not None:
            room = min(room, unfinished - self._store.search.count_unfinished(owner, unfinished))
        if created is not None:
            since = self._clock.now() - _MINUTE
            room = min(room, created - self._store.search.count_created_since(owner, since, created))
        return max(0, room)

    def _find_refusal(self, owner: str) -> QuotaExceeded | None:
        unfinished, created = self._limits.unfinished, self._limits.creations_a_minute
        if unfinished is not None and self._store.search.count_unfinished(owner, unfinished) >= unfinished:
            return QuotaExceeded("tasks that have not ended", unfinished, "Cancel or delete some of them.")
        since = self._clock.now() - _MINUTE
        if created is not None and self._store.search.count_created_since(owner, since, created) >= created:
            return QuotaExceeded("creations a minute", created, "Try again in a minute.", 60)
        return None
