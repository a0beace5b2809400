"""Offer work to workers, so that exactly one of them claims each run.

A worker lists offers, which are small documents of their own, and reads the tasks of those that are for
it. It claims a run as the executor does: with one commit that gives the run its lease, on the version
that was read. So of any number of workers exactly one succeeds. A worker without competitors claims the
first offer in the queue. One that has recently lost races picks among the first few offers instead, about
as many as it seems to have competitors.

An offered run whose lock is taken moves from its queue to the lock's wait list. If it stayed in the queue
it would be ahead of work that can run, and every poll of every worker would read it again. Moving it
costs one commit, once. A poll asks for each lock only once: further runs with the same lock key are added
to the wait list together, with one read and one commit for all, and leave the queue with one commit each.
The wait list is written first, so after a crash a run may be in both: it is still offered, and keeps its
position when a worker claims it.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cloudsched.domain.documents.execution import lease_fingerprint
from cloudsched.domain.own_logger import own_logger
from cloudsched.domain.transitions.claim import make_lease, with_lease
from cloudsched.domain.transitions.commit import Commit, Committed, Effects, VersionedTask
from cloudsched.domain.transitions.lifecycle import with_changes
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.engine.handlers.user_access import may_user_claim
from cloudsched.engine.ports.procedure import run_procedure
from cloudsched.errors import (
    CloudschedError,
    Contended,
    NotAllowed,
    NotFound,
    QueueUnavailable,
    StoreUnavailable,
    VersionConflict,
)
from cloudsched.features.locks.lock import Grants
from cloudsched.features.locks.locks import Locks
from cloudsched.features.locks.option import on_lock_taken
from cloudsched.features.pull.fields import OfferEntry, queue_keys
from cloudsched.features.pull.offers import find_claimable_run

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from datetime import datetime

    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.engine_context import EngineContext
    from cloudsched.engine.handlers.registry import Registry


@dataclass(frozen=True, slots=True)
class ClaimCaller:
    """The one who claims runs, and renews, releases and ends claims. Trusted code must say `THIS_PROCESS`."""

    subject: str | None
    """The caller through the API, None for code in this process."""
    is_user: bool
    """True if a user claims, who gets only what a user asked for: they could forge the results of the rest."""
    authorize: Callable[[Task, str | None], None]
    """Called with each task before it is claimed or its claim is changed, and with the queue that it is
    claimed from. If there is no such claim, the queue is the task's own. Its errors are raised.
    """
    may_report: Callable[[Task], bool]
    """Returns True if it may report on a run that it holds, by its task as the run began it."""
    can_end_others: bool
    """True if it may end claims that other API callers made, if it has their tokens."""


THIS_PROCESS: Final = ClaimCaller(
    None, is_user=False, authorize=lambda *_: None, may_report=lambda _: True, can_end_others=False
)
"""A worker at the store, in this process: it may claim everything, and do everything with what it has claimed."""

log: Final = own_logger(__name__)

MAX_CLAIMS = 100
"""The most runs that one call may claim."""
MAX_SCANNED = 300
"""The number of offers that one call examines before it gives up, besides those that `MAX_OF_OTHERS` counts."""
MAX_OF_OTHERS = 3_000
"""The most offers that one call passes over for a user, who may not claim what servers and code asked for."""
MAX_CLAIM_SECONDS = 4.0
"""The seconds of real time after which a call starts no further claim.

API clients wait for ten seconds. A run that is claimed for a client that has given up does not run, and
loses an attempt.
"""
_NO_LEASE = ""
_MAX_COMPETITORS = 31
_MAX_PAGE_SIZE = 100
"""The most offers that are read at a time."""


@dataclass(frozen=True, slots=True)
class WorkerFilter:
    """The filters of the work that a worker can run."""

    queue: str
    skills: Sequence[str] = ()
    handlers: Container[str] | None = None
    """The handlers that it has, None if it can run any."""
    owner: str | None = None
    """The only owner whose tasks it may run, None for all owners."""
    worker: str = "worker"
    """Its name, for the records."""
    task_id: str | None = None
    """The only task that it runs, which was chosen, or None for any."""

    def includes(self, handler: str, owner: str) -> bool:
        """Return whether the worker has a handler, and serves an owner."""
        return (self.handlers is None or handler in self.handlers) and self.owner in {None, owner}

    def explain_mismatch(self, task: Task) -> str | None:
        """Return why the worker must not run a task, as its run began it. None if it may.

        The source asks this of what it assigns, and the worker again, because it runs code on its own
        machine.
        """
        if task.pull is None or task.pull.queue != self.queue:
            where = f"is in queue {task.pull.queue!r}" if task.pull else "does not wait for a worker"
            return f"it {where}, and this worker serves queue {self.queue!r}"
        if task.pull.skill is not None and task.pull.skill not in self.skills:
            return f"it needs the skill {task.pull.skill!r}, which this worker does not have"
        if self.handlers is not None and task.handler not in self.handlers:
            return f"this worker has no handler {task.handler!r}"
        if self.owner not in {None, task.owner}:
            return f"its owner is {task.owner!r}, and this worker serves only {self.owner!r}"
        return None


@dataclass(slots=True)
class _ClaimAttempt:
    worker_filter: WorkerFilter
    by: ClaimCaller
    for_users: Registry
    """The handlers that users may name."""
    limit: int
    deadline: float
    claims: list[Attempt] = field(default_factory=list)
    skipped: int = 0
    """The number of offers that were not for this worker."""
    blocked_locks: dict[str, list[VersionedTask]] = field(default_factory=dict)
    """The lock keys found to be taken, each with the further runs of that key, for which no lock was asked."""

    def matches_offer(self, offer: OfferEntry) -> bool:
        """Return whether the worker may run the task of an offer under one of its queue keys, as far as that says."""
        return self.worker_filter.includes(offer.handler, offer.owner) and not self.is_kept_from(offer)

    def is_kept_from(self, offer: OfferEntry) -> bool:
        """Return whether an offer is of what servers or code asked for, and a user claims."""
        if not self.by.is_user:
            return False
        return offer.is_code_call or bool(offer.is_for_servers) or offer.handler not in self.for_users


class WorkQueue:
    """Hands out offered runs to workers."""

    def __init__(self, engine: EngineContext, monotonic: Callable[[], float]) -> None:
        self._engine = engine
        self._locks = Locks(engine.store, engine.sender)
        self._monotonic = monotonic
        """Seconds of real time, from any starting point.

        The engine's clock may be moved or stand still, and so cannot measure how long the caller has been
        waiting.
        """
        self.competitors: int = 0
        """An estimate of how many others claim at the same time: more with each race lost, fewer with each won."""

    def claim(self, worker_filter: WorkerFilter, by: ClaimCaller, limit: int = 1) -> list[Attempt]:
        """Claim up to `limit` runs (at least 1), for whoever asks: by priority, then by due time.

        This costs one read for each offer examined, and one read and one commit for each claim. If
        several workers claim at the same time, the order may deviate from the queue's by about as many
        positions as there are workers. An offer that cannot be claimed, for whatever reason, does not
        block those behind it. No claim is started after `MAX_CLAIM_SECONDS`. If the store fails after the
        first claim, this returns the claims made until then.

        Of a task that was chosen, at most one run is claimed. If none can be, this raises NotFound, Forbidden or
        NotAllowed.
        """
        for_users = self._engine.registry.for_users()
        deadline = self._monotonic() + MAX_CLAIM_SECONDS
        claim_attempt = _ClaimAttempt(worker_filter, by, for_users, limit, deadline)
        try:
            if worker_filter.task_id is None:
                self._scan(claim_attempt)
            elif chosen := self._engine.store.load(worker_filter.task_id):
                self._try_claim(claim_attempt, chosen)
            while claim_attempt.blocked_locks and self._monotonic() < claim_attempt.deadline:
                self._enqueue_blocked(claim_attempt, *claim_attempt.blocked_locks.popitem())
        except Exception as error:
            if not claim_attempt.claims:
                raise
            incomplete = {"action": "claim_incomplete"}
            log.warning(
                "claimed %d runs, then failed: %s",
                len(claim_attempt.claims),
                error,
                extra=incomplete,
            )
        if claim_attempt.skipped >= MAX_SCANNED:
            log.warning(
                "this worker can run none of the first offers in queue %r; use a separate queue for other workers",
                worker_filter.queue,
                extra={"action": "queue_blocked_by_other_work", "queue": worker_filter.queue},
            )
        if worker_filter.task_id is not None and not claim_attempt.claims:
            raise self._explain_refusal(worker_filter.task_id, worker_filter, by)
        return claim_attempt.claims

    def _explain_refusal(self, task_id: str, worker: WorkerFilter, by: ClaimCaller) -> CloudschedError:
        """Return why a chosen task cannot be claimed: NotFound if the caller may not work on it."""
        stored = self._engine.store.load(task_id)
        if stored is None or stored.task.deleted_at is not None:
            return NotFound("task", task_id)
        task = stored.task
        by.authorize(task, task.pull.queue if task.pull else None)
        status: str = task.status
        if by.is_user and not may_user_claim(task, self._engine.registry):
            status = "a server's: only servers' workers run it"
        elif why := worker.explain_mismatch(task):
            status = f"not for this worker: {why}"
        elif task.is_active:
            status = "taken by another worker" if any(each.lease for each in task.runs) else "not waiting for a worker"
        return NotAllowed("claim", status)

    def _scan(self, claim_attempt: _ClaimAttempt) -> None:
        batch_size = claim_attempt.limit
        for offers in self._iter_pages(claim_attempt):
            fitting = [each for each in offers if claim_attempt.matches_offer(each)]
            claim_attempt.skipped += len(offers) - len(fitting)
            if self._monotonic() >= claim_attempt.deadline:
                return
            while fitting:
                self._claim_offered(claim_attempt, fitting[:batch_size])
                if len(claim_attempt.claims) >= claim_attempt.limit or self._monotonic() >= claim_attempt.deadline:
                    return
                fitting = fitting[batch_size:]
                batch_size = min(2 * batch_size, _MAX_PAGE_SIZE)  # none of the first ones could be claimed

    def _claim_offered(self, claim_attempt: _ClaimAttempt, offers: Sequence[OfferEntry]) -> None:
        tasks = {each.task.id: each for each in self._engine.store.load_many([each.task_id for each in offers])}
        for offer in offers:
            if self._monotonic() >= claim_attempt.deadline or len(claim_attempt.claims) >= claim_attempt.limit:
                return
            stored = tasks.get(offer.task_id)
            if stored is None:
                continue  # it cannot be read, or was removed
            if stored.task.offer is None:
                self._record_loss()  # another worker claimed it after the offers were listed
                continue
            self._try_claim(claim_attempt, stored)

    def _try_claim(self, claim_attempt: _ClaimAttempt, stored: VersionedTask) -> None:
        """Claim a run if possible. Log and skip one that cannot be claimed because of an error."""
        try:
            if claim := self._claim_with_retries(stored, claim_attempt):
                claim_attempt.claims.append(claim)
        except StoreUnavailable:
            raise
        except CloudschedError as error:
            ids = {"action": "claim_failed", "taskId": stored.task.id}
            log.warning("skipped, since it cannot be claimed: %s", error, extra=ids)

    def _enqueue_blocked(self, claim_attempt: _ClaimAttempt, key: str, blocked: list[VersionedTask]) -> None:
        """Move runs whose lock is taken from the queue to its wait list.

        Try again to claim those that changed.
        """
        now = self._engine.clock.now()
        claimable = [
            (stored, claim.task, claim.effects.run)
            for stored in blocked
            if (claim := on_worker_claim(stored.task, now, _NO_LEASE, _NO_LEASE, None)) and claim.effects.run
        ]
        waiting = set[tuple[str, str]]()
        if claimable:
            # The sweep notifies those that the queue did not take. After a conflict each run asks for the
            # lock alone.
            with suppress(QueueUnavailable, VersionConflict):
                runs = [(task, run) for _, task, run in claimable]
                waiting = self._locks.enqueue_many(key, runs, now)
        for stored, _, run in claimable:
            if self._monotonic() >= claim_attempt.deadline:
                return
            offered = stored.task.find_run(run.execution_id)
            if offered is not None and (stored.task.id, run.execution_id) in waiting:
                with suppress(VersionConflict):
                    taken = on_lock_taken(stored.task, offered, now).having(base=stored)
                    run_procedure(self._engine.committer.commit(taken))
                    continue
            if len(claim_attempt.claims) < claim_attempt.limit:
                self._try_claim(claim_attempt, stored)

    def _iter_pages(self, claim_attempt: _ClaimAttempt) -> Iterator[Sequence[OfferEntry]]:
        """Yield pages of offers in order.

        If there seem to be competitors, shuffle each page within a priority.
        """
        worker_filter = claim_attempt.worker_filter
        keys = queue_keys(worker_filter.queue, worker_filter.skills)
        after: tuple[str, str] | None = None
        page_size = claim_attempt.limit + self.competitors
        examined = 0
        of_others = 0
        while examined < MAX_SCANNED and of_others < MAX_OF_OTHERS:
            offers = list(
                self._engine.store.list_offers(keys, worker_filter.owner, limit=page_size, after=after),
            )
            if not offers:
                return
            after = offers[-1].order, offers[-1].task_id
            if self.competitors:
                shuffled = {each.task_id: self._engine.random.random() for each in offers}
                offers.sort(key=lambda each: (each.rank, shuffled[each.task_id]))
            yield offers
            passed = sum(claim_attempt.is_kept_from(each) for each in offers)
            of_others += passed
            examined += len(offers) - passed
            if len(offers) < page_size:
                return
            page_size = min(2 * page_size, _MAX_PAGE_SIZE)

    def _record_loss(self) -> None:
        self.competitors = min(self.competitors + 2, _MAX_COMPETITORS)

    def _claim_with_retries(self, stored: VersionedTask, claim_attempt: _ClaimAttempt) -> Attempt | None:
        tokens: dict[str, str] = {}  # by their hashes, one for each try: no two attempts share one

        def reload() -> VersionedTask | None:
            self._record_loss()
            is_over = self._monotonic() >= claim_attempt.deadline
            return None if is_over else self._engine.store.load(stored.task.id)

        def decide(current: VersionedTask | None) -> Commit | Attempt | None:
            if current is None:
                return None
            for run in current.task.runs:
                if run.lease and run.lease.token_hash in tokens:  # the commit took effect, although its answer was lost
                    return Attempt(self._engine, current, run, tokens[run.lease.token_hash])
            lease_token = secrets.token_hex(16)
            token_hash = lease_fingerprint(lease_token)
            tokens[token_hash] = lease_token
            return self._decide_claim(current, token_hash, claim_attempt)

        try:
            found = self._engine.committer.apply(f"task {stored.task.id}", reload, decide, stored)
        except Contended:
            return None  # other offers may be free
        if not isinstance(found, Committed):
            return found
        run = found.commit.effects.run
        grants = found.commit.effects.sends
        if run is not None and run.lease is not None:
            self.competitors = max(0, self.competitors - 1)
            return Attempt(self._engine, found.stored, run, tokens[run.lease.token_hash])
        if not isinstance(grants, Grants):
            return None  # its task was paused
        claim_attempt.blocked_locks[grants.key] = []
        with suppress(QueueUnavailable):  # the sweep notifies them
            self._locks.notify(grants, self._engine.clock.now())
        return None

    def _decide_claim(
        self,
        stored: VersionedTask,
        token_hash: str,
        claim_attempt: _ClaimAttempt,
    ) -> Commit | None:
        """Return a claim, or what the options make of it.

        If its lock is known to be taken, only note the run.
        """
        now = self._engine.clock.now()
        worker = claim_attempt.worker_filter
        by = claim_attempt.by
        claim = on_worker_claim(stored.task, now, token_hash, worker.worker, by.subject)
        run = None if claim is None else claim.effects.run
        if claim is None or run is None:
            return None
        claim = claim.having(base=stored, effects=Effects(run, reads=2))
        begun = stored.task.as_begun(run)  # it may have been edited since it was offered
        by.authorize(begun, worker.queue)
        if worker.explain_mismatch(begun) is not None or (
            by.is_user and not may_user_claim(begun, self._engine.registry)
        ):
            return None
        key = stored.task.scoped_lock_key
        if key in claim_attempt.blocked_locks:
            claim_attempt.blocked_locks[key].append(stored)
            return None
        decided = self._engine.committer.options.adapt_claim(claim, None, now)
        return decided if isinstance(decided, Commit) else None


def on_worker_claim(
    task: Task,
    now: datetime,
    token_hash: str,
    worker: str,
    claimed_by: str | None,
) -> Commit | None:
    """Claim a run that a task offers to workers. Return None if it offers none, or only expired ones."""
    run = find_claimable_run(task, now)
    if run is None:
        return None
    lease = make_lease(task, now, token_hash, worker=worker, claimed_by=claimed_by)
    claimed = with_lease(run, lease, had_turn=bool(run.turn))
    return Commit(with_changes(task, now, runs=task.runs_with(claimed)), effects=Effects(claimed))
