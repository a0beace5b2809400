"""What is offered to workers, and how one of many claims it.

A claim is what it is for the executor: one commit that gives a run its lease, on the version that was read. So of any
number of workers one has it. Alone, a worker takes what is first in the queue. Those who race part ways: who has lost
lately takes any of the first few, about as many as there seem to be rivals.

What is offered and finds its lock taken leaves its queue for the line at the lock. Left in the queue it would lie in
front of what can be run, and every look of every worker would read it again; this way it costs one commit, once. A look
asks for a lock one time: the others of its key that it meets are put into the line together, by one read and one commit
for all of them, and leave the queue by one commit each. The line is written first: who is in both is offered still, and
keeps its place when a worker takes it. What finds no room in the line leaves the queue as well, and the sweep offers it
again, as it does with those in the line.
"""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cloudsched.domain.documents.execution import lease_fingerprint
from cloudsched.domain.documents.pull import queue_keys
from cloudsched.domain.transitions.claim import on_lock_taken, on_worker_claim
from cloudsched.engine.execution.claimed_run import MAX_CONFLICTS
from cloudsched.errors import CloudschedError, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, VersionedTask
    from cloudsched.engine.state.commits import TransitionCommitter
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)

MAX_CLAIMS = 100
"""How many runs may be claimed at once."""
MAX_SCANNED = 300
"""How many offers one claim looks at before it gives up."""
MAX_CLAIM_SECONDS = 4.0
"""After how many seconds of real time a claim begins nothing more. Who asks through the API waits for ten, and what is
claimed for somebody who has gone belongs to nobody, and costs an attempt."""
_NO_LEASE = ""
_MAX_COMPETITORS = 31
_MAX_PAGE_SIZE = 100
"""How many offers are read at a time at the most."""


@dataclass(frozen=True, slots=True)
class WorkerFilter:
    """What a worker can run."""

    queue: str
    skills: Sequence[str] = ()
    handlers: Container[str] | None = None
    """The handlers that it has; None if it takes any."""
    owner: str | None = None
    """Whose tasks it may run; None for everybody's."""
    worker: str = "worker"
    """What it calls itself, for the records."""
    claimed_by: str | None = None
    """The API caller that claims; None for a worker at the store."""
    includes_code_calls: bool = True
    """Whether it may run calls that a handler's code made; not if it is their owner, who could forge their results."""

    def matches(self, task: Task) -> bool:
        """Return whether the worker may run a task, as it is now."""
        if task.pull is None or task.pull.queue_key not in queue_keys(self.queue, self.skills):
            return False
        if task.is_made_by_code and not self.includes_code_calls:
            return False
        return (self.handlers is None or task.handler in self.handlers) and self.owner in {None, task.owner}


@dataclass(frozen=True, slots=True)
class WorkerClaim:
    """A run that is the worker's, as long as its lease lasts."""

    stored: VersionedTask
    run: Run
    lease_token: str = field(repr=False)
    """Proves that the claim is the worker's; only its hash is stored."""


@dataclass(slots=True)
class _ClaimAttempt:
    """One look at the queue, and what it has come to so far."""

    worker_filter: WorkerFilter
    limit: int
    deadline: float
    claims: list[WorkerClaim] = field(default_factory=list)
    skipped: int = 0
    """How many offers were not for this worker."""
    blocked_locks: dict[str, list[VersionedTask]] = field(default_factory=dict)
    """The lock keys that were found taken, with what else was met of each."""


class _ContentionEstimate:
    """How many others seem to claim at the same time: more with each race that is lost, fewer with each that is won."""

    def __init__(self) -> None:
        self.competitors = 0

    def record_loss(self) -> None:
        """Somebody else was quicker."""
        self.competitors = min(self.competitors + 2, _MAX_COMPETITORS)

    def record_win(self) -> None:
        """Nobody was."""
        self.competitors = max(0, self.competitors - 1)


class WorkQueue:
    """Hands out what is offered."""

    def __init__(
        self,
        *,
        store: Store,
        committer: TransitionCommitter,
        locks: Locks,
        clock: Clock,
        random: Random,
        monotonic: Callable[[], float],
    ) -> None:
        self._store = store
        self._committer = committer
        self._locks = locks
        self._clock = clock
        self._random = random
        self._monotonic = monotonic
        """Seconds of real time, from anywhere: a clock that can be moved or stands still tells nothing of a caller's
        patience."""
        self._contention = _ContentionEstimate()

    def claim(self, worker_filter: WorkerFilter, limit: int = 1) -> list[WorkerClaim]:
        """Claim up to so many runs, at least one: the most urgent first, and of those what came due first.

        One read for each offer that is looked at, and one commit for each claim. Among workers who claim at the same
        time the order is that of the queue, give or take as many places as there are workers. What cannot be claimed,
        whatever is wrong with it, holds up nothing behind it; and after `MAX_CLAIM_SECONDS` no more is begun.

        Raises:
            StoreUnavailable: The store did not answer, and nothing was claimed; what was claimed before is returned.
        """
        look = _ClaimAttempt(worker_filter, limit, self._monotonic() + MAX_CLAIM_SECONDS)
        try:
            self._scan(look)
            while look.blocked_locks and self._monotonic() < look.deadline:
                self._enqueue_blocked(look, *look.blocked_locks.popitem())
        except Exception as error:
            if not look.claims:
                raise
            log.warning("%d claimed, and then: %s", len(look.claims), error, extra={"action": "claim_incomplete"})
        if look.skipped >= MAX_SCANNED:
            log.warning(
                "what comes first in queue %r is not for this worker; give what other workers run a queue of its own",
                worker_filter.queue,
                extra={"action": "queue_blocked_by_other_work", "queue": worker_filter.queue},
            )
        return look.claims

    def _scan(self, claim_attempt: _ClaimAttempt) -> None:
        for stored in self._iter_candidates(claim_attempt.worker_filter, claim_attempt.limit):
            if self._monotonic() >= claim_attempt.deadline:
                return
            claim_attempt.skipped += not claim_attempt.worker_filter.matches(stored.task)
            self._try_claim(claim_attempt, stored)
            if len(claim_attempt.claims) >= claim_attempt.limit:
                return

    def _try_claim(self, claim_attempt: _ClaimAttempt, stored: VersionedTask) -> None:
        """Claim a run if that can be; one with which something is wrong is passed over."""
        try:
            if claim := self._claim_with_retries(stored, claim_attempt):
                claim_attempt.claims.append(claim)
        except StoreUnavailable:
            raise
        except CloudschedError as error:
            ids = {"action": "claim_failed", "taskId": stored.task.id}
            log.warning("passed over, since it cannot be claimed: %s", error, extra=ids)

    def _enqueue_blocked(self, claim_attempt: _ClaimAttempt, key: str, blocked: list[VersionedTask]) -> None:
        """Take off the queue what has met a lock that others hold; what has changed meanwhile is looked at anew."""
        now = self._clock.now()
        asking = [
            (stored, *found) for stored in blocked if (found := on_worker_claim(stored.task, now, _NO_LEASE, _NO_LEASE))
        ]
        waiting = set[tuple[str, str]]()
        if asking:
            with suppress(QueueUnavailable, VersionConflict):  # the sweep wakes them; or each asks by itself
                waiting = self._locks.enqueue_many(key, [(step.task, run) for _, step, run in asking], now)
        for stored, _, run in asking:
            if self._monotonic() >= claim_attempt.deadline:
                return
            offered = stored.task.find_run(run.execution_id)
            if offered is not None and (stored.task.id, run.execution_id) in waiting:
                with suppress(VersionConflict):
                    self._committer.commit(on_lock_taken(stored.task, offered, now), stored)
                    continue
            if len(claim_attempt.claims) < claim_attempt.limit:
                self._try_claim(claim_attempt, stored)

    def _iter_candidates(self, worker_filter: WorkerFilter, limit: int) -> Iterator[VersionedTask]:
        """Yield offers in their order; where there are rivals, those of one priority in any order."""
        lanes = queue_keys(worker_filter.queue, worker_filter.skills)
        after: tuple[str, str] | None = None
        width, looked_at = limit + self._contention.competitors, 0
        while looked_at < MAX_SCANNED:
            found = list(self._store.list_claimable(lanes, worker_filter.owner, limit=width, after=after))
            if not found:
                return
            last = found[-1].task
            after = (last.offer.order, last.id) if last.offer else None
            if self._contention.competitors:
                spread = {each.task.id: self._random.random() for each in found}
                found.sort(key=lambda each: (each.task.priority.rank, spread[each.task.id]))
            yield from found
            looked_at += len(found)
            if len(found) < width:
                return
            width = min(2 * width, _MAX_PAGE_SIZE)

    def _claim_with_retries(self, stored: VersionedTask, claim_attempt: _ClaimAttempt) -> WorkerClaim | None:
        lease_token = secrets.token_hex(16)
        token_hash = lease_fingerprint(lease_token)
        current: VersionedTask | None = stored
        for _ in range(MAX_CONFLICTS):
            if current is None:
                return None
            mine = next((run for run in current.task.runs if run.lease and run.lease.token_hash == token_hash), None)
            if mine is not None:  # a commit that took effect and then failed
                return WorkerClaim(current, mine, lease_token)
            if not claim_attempt.worker_filter.matches(current.task):  # its owner may have made it another's meanwhile
                return None
            try:
                taken = self._claim_or_wait(current, lease_token, claim_attempt)
            except VersionConflict:
                self._contention.record_loss()
                current = self._store.load(stored.task.id)
            else:
                if taken is not None:
                    self._contention.record_win()
                return taken
        return None  # it changes all the time; others may be had

    def _claim_or_wait(
        self, stored: VersionedTask, lease_token: str, claim_attempt: _ClaimAttempt
    ) -> WorkerClaim | None:
        """Commit a claim, or that the run waits for its lock; if that was found taken before, it is only noted.

        Raises:
            VersionConflict: Somebody else was quicker.
        """
        now = self._clock.now()
        worker = claim_attempt.worker_filter
        claimed = on_worker_claim(stored.task, now, lease_fingerprint(lease_token), worker.worker, worker.claimed_by)
        if claimed is None:
            return None
        step, run = claimed
        if run.lock_key is None:
            return WorkerClaim(self._committer.commit(step, stored), run, lease_token)
        if run.lock_key in claim_attempt.blocked_locks:
            claim_attempt.blocked_locks[run.lock_key].append(stored)
            return None
        answer = self._locks.acquire_for_worker(step.task, run, now)
        if answer.is_acquired:
            return WorkerClaim(self._committer.commit(step, stored, answer.lock), run, lease_token)
        offered = stored.task.find_run(run.execution_id)
        if offered is not None:
            self._committer.commit(on_lock_taken(stored.task, offered, now), stored, answer.lock)
        claim_attempt.blocked_locks[run.lock_key] = []
        with suppress(QueueUnavailable):  # the sweep wakes them
            self._locks.notify(answer.grants, now)
        return None
