"""The invariants of work for workers, checked from outside.

W1  Work for workers is claimed only by a worker that matches it; work for executors is claimed by no worker.
W2  A worker receives what was offered: due, of an ACTIVE task, not expired, and the first of its task.
W3  A task's offer says exactly what waits for a worker: it is there as soon as that is due, and no longer.
W4  Without faults the most urgent work is claimed first, among equals what is due first, and nothing stays unclaimed.
W5  A lease that has not lapsed is renewed and ended by its holder, while that lives; its place at a lock ends with it.
W6  Released work costs no attempt, and the same commit offers it again.
W7  A result counts once, however often it is reported; a worker can rely on the answer, accepted or refused.
W8  Nothing that is offered waits for ever while workers poll, and nothing waits for a lock that is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tests.engine.harness import SECOND
from tests.simulation.invariants_runs import LATE, fail

from cloudsched import Execution, Task
from cloudsched.domain.documents.execution import ExecutionStatus, Run, WaitingFor, lease_fingerprint
from cloudsched.domain.documents.task import TaskStatus
from cloudsched.engine.execution.attempt import Attempt
from cloudsched.features.locks.lock import VersionedLock
from cloudsched.features.pull.fields import Offer
from cloudsched.features.pull.wiring import PullWiring
from cloudsched.features.pull.work_queue import WorkerFilter

if TYPE_CHECKING:
    from tests.simulation.world import World


_AT_ONCE = SECOND

Key = tuple[str, str, str]
"""A claim as a worker elsewhere knows it: the task's id, the execution's, and the lease's token."""


@dataclass(frozen=True)
class ClaimableRun:
    """A run that is offered now."""

    task: Task
    run: Run
    offer: Offer
    since: int
    """The number of the commit that offered it."""


class PullInvariants:
    """Watches the workers of a history and raises as soon as an invariant is violated."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lying: dict[str, ClaimableRun] = {}
        self._lying_before: dict[str, ClaimableRun] = {}
        self._offered_at: dict[tuple[str, str], datetime] = {}
        self._lock_changed_at: dict[str, datetime] = {}
        self._ended: dict[str, ExecutionStatus] = {}
        """How each counted attempt ended, by its claim."""
        self._let_go: set[str] = set()
        """The leases that their holders have released or finished."""
        self._counted: dict[str, datetime] = {}
        """The leases whose holders' results were counted as attempts, and when the tasks were created."""
        self._came: dict[str, int] = {}
        """The number of the last commit before each worker polled."""
        self._in_a_crowd: set[str] = set()
        """The workers that claim in random order among the first few, since they have lost races."""
        self._commits = 0

    def lock_free_since(self, key: str | None) -> datetime:
        """Return when a lock last changed; nothing that waits for it could have had it before that."""
        never = datetime.min.replace(tzinfo=UTC)
        if key is None or not self._world.fault_profile.has_workers:
            return never  # without workers and faults, no time passes while it is held
        return self._lock_changed_at.get(key, never)

    # ── The store ────────────────────────────────────────────────────────────────────────────────────────────────

    def on_commit(
        self, before: Task | None, after: Task, executions: Sequence[Execution], lock: VersionedLock | None
    ) -> None:
        self._commits += 1
        self._lying_before = dict(self._lying)
        self._check_offer(before, after)
        self._check_single_count(after, executions)
        for run in after.runs:
            old = before.find_run(run.execution_id) if before else None
            if run.lease and not (old and old.lease and old.lease.token_hash == run.lease.token_hash):
                self._check_claim(before, old, run)
        for run in before.runs if before else ():
            new = after.find_run(run.execution_id)
            if run.lease and new and new.lease and new.lease.token_hash == run.lease.token_hash:
                self._check_renewal(after, run, new)
            elif run.lease:
                self._check_finish(after, run, new, executions)
        if lock is not None:
            self.on_lock_change(lock)
        if after.offer and (before is None or before.offer != after.offer):
            self._world.workers.notify()

    def on_lock_change(self, lock: VersionedLock) -> None:
        self._lock_changed_at[lock.lock.key] = self._world.now

    def _check_offer(self, before: Task | None, after: Task) -> None:
        waiting = [run for run in after.runs if run.waiting_for is WaitingFor.WORKER]
        is_offered = after.pull is not None and after.status is TaskStatus.ACTIVE and after.deleted_at is None
        expected = None
        if is_offered and waiting and after.pull:
            first = min(waiting, key=lambda run: (run.due_at, run.execution_id))
            lane = after.pull.queue + (f"/{after.pull.skill}" if after.pull.skill else "")
            since = first.due_at.astimezone(UTC).isoformat(timespec="microseconds")
            expected = (lane, f"{after.priority.rank} {since}")
        if (after.offer and (after.offer.queue_key, after.offer.order)) != expected:
            fail(f"W3: {after.id} offers {after.offer}, and should offer {expected}")
        for run in after.runs:
            is_idle = is_offered and run.lease is None and run.waiting_for is None and run.due_at <= after.updated_at
            if is_idle or (run.waiting_for and (run.lease or after.pull is None)):
                fail(f"W3: {after.id} is {after.status}, for {after.pull}, and its run is {run}")
        self._note_offer(before, after, waiting)

    def _note_offer(self, before: Task | None, after: Task, waiting: list[Run]) -> None:
        known = self._lying.pop(after.id, None)
        if after.offer:
            first = min(waiting, key=lambda run: (run.due_at, run.execution_id))
            is_same = known and (known.offer, known.run.execution_id) == (after.offer, first.execution_id)
            since = known.since if known and is_same else self._commits
            self._lying[after.id] = ClaimableRun(after, first, after.offer, since)
        for run in after.runs:
            key = (after.id, run.execution_id)
            old = before and before.find_run(run.execution_id)
            if run.waiting_for is not WaitingFor.WORKER or after.offer is None:
                self._offered_at.pop(key, None)
            elif key not in self._offered_at or not (old and old.waiting_for is WaitingFor.WORKER):
                self._offered_at[key] = self._world.now
                if not (old and old.lease):
                    self._check_offer_time(before, after, run)

    def _check_offer_time(self, before: Task | None, after: Task, run: Run) -> None:
        """Without faults, work for workers is offered exactly when it is due."""
        if before is None or not self._world.fault_profile.is_fault_free:
            return
        since = max(run.due_at, before.updated_at, self.lock_free_since(after.lock_key))
        if before.jitter and before.wake_at is not None:
            # Occurrences come in their order: one waits for an earlier one whose start lies behind its own.
            since = max(since, before.wake_at)
        if self._world.now - since > _AT_ONCE:
            fail(f"W3: {after.id}'s {run.execution_id} was offered {self._world.now - since} late")

    def _check_claim(self, before: Task | None, old: Run | None, run: Run) -> None:
        process = self._world.current
        assert process
        assert before
        assert run.lease
        process.tokens.add(run.lease.token_hash)
        where = f"{before.id}'s {run.execution_id}"
        if process.wanted is None:
            if before.pull is not None or run.lease.worker is not None:
                fail(f"W1: an executor claims {where}, which is for {before.pull}")
            return
        wanted, now = process.wanted, run.lease.started_at
        if not _matches(wanted, before) or run.lease.worker != wanted.worker:
            fail(f"W1: {where} is for {before.pull}, and is claimed by {wanted}")
        lying = self._lying_before.get(before.id)
        if old is None or old.waiting_for is not WaitingFor.WORKER or before.offer is None or lying is None:
            fail(f"W2: {where} is claimed, and was not offered: {old}")
        waiting = [
            each
            for each in before.runs
            if each.waiting_for is WaitingFor.WORKER and not _has_expired(before, each, now)
        ]
        first = min(waiting, key=lambda each: (each.due_at, each.execution_id), default=None)
        if first is None or first.execution_id != run.execution_id or not before.is_active:
            fail(f"W2: {where} is claimed, and {before.id} offered {first}")
        if old.due_at > now + 2 * self._world.fault_profile.drift:
            fail(f"W2: {where} is claimed at {now}, and is due at {old.due_at}")
        if _has_expired(before, old, now) or run.attempt != old.attempt:
            fail(f"W2: {where} has expired, or jumps to attempt {run.attempt}: {old}")
        self._check_order(process.name, wanted, lying, now)

    def _check_order(self, name: str, wanted: WorkerFilter, taken: ClaimableRun, now: datetime) -> None:
        """Unless something fails, no work offered before the poll has precedence over what the worker claims."""
        if self._world.fault_profile.fault or self._world.fault_profile.kill or taken.since > self._came[name]:
            return
        for other in self._lying_before.values():
            is_known = other is not taken and other.since <= self._came[name]
            if not is_known or not _matches(wanted, other.task) or _has_expired(other.task, other.run, now):
                continue
            if self._is_lock_taken(other.task):  # the same poll makes it wait for the lock, after its claims
                continue
            ranks = (other.task.priority.rank, taken.task.priority.rank)
            is_before = ranks[0] < ranks[1] if name in self._in_a_crowd else other.offer.order < taken.offer.order
            if is_before:
                fail(f"W4: {taken.task.id} ({taken.offer}) is taken before {other.task.id} ({other.offer})")

    def _check_renewal(self, task: Task, old: Run, new: Run) -> None:
        process = self._world.current
        assert process
        assert old.lease
        assert new.lease
        if old.lease == new.lease:
            return
        is_lapsed = old.lease.until <= task.updated_at  # which is when it was decided
        if is_lapsed or old.lease.token_hash not in process.tokens:
            fail(f"W5: a lease of {task.id} until {old.lease.until} is renewed until {new.lease.until}")

    def _check_finish(self, task: Task, old: Run, new: Run | None, executions: Sequence[Execution]) -> None:
        process = self._world.current
        assert process
        assert old.lease
        if self._world.rules.current_verb() == "cancel run":
            return  # somebody revokes the lease, and the lock stays until it would have ended
        where = f"{task.id}'s {old.execution_id}"
        if old.lease.token_hash in process.tokens:
            self._let_go.add(old.lease.token_hash)
            attempts = (new or next(each for each in executions if each.id == old.execution_id)).attempts
            if len(attempts) > len(old.attempts) and attempts[-1].status is not ExecutionStatus.TIMED_OUT:
                self._counted[old.lease.token_hash] = task.created_at
        elif old.lease.until > self._world.latest_time(process) and not (
            self._world.restarts.has_ended(old.lease) or self._world.restarts.is_lost(old.lease)
        ):
            fail(f"W5: the lease of {where} lasts until {old.lease.until}, and is ended by another")
        if old.lock_key is not None and not (new and new.lease):
            holders = self._world.real_store.locks.load(old.lock_key).lock.holders
            if any((one.task_id, one.execution_id) == (task.id, old.execution_id) for one in holders):
                fail(f"W5: {where} has let go, and still holds {old.lock_key!r}")
        if self._world.rules.current_verb() == "give back":
            self._check_release(task, old, new)

    def _check_release(self, task: Task, old: Run, new: Run | None) -> None:
        where = f"{task.id}'s {old.execution_id}"
        if new is None and task.status not in {TaskStatus.ACTIVE, TaskStatus.PAUSED}:
            return
        due_at = new.due_at if new and new.losses else old.due_at  # one that was lost is offered a moment later
        if new is None or (new.attempt, new.attempts, new.due_at) != (old.attempt, old.attempts, due_at):
            fail(f"W6: {where} is given back, and becomes {new}")
        is_due = new.due_at <= task.updated_at  # by the clock of the process that releases it
        if is_due and task.is_active and task.pull and new.waiting_for is not WaitingFor.WORKER:
            fail(f"W6: {where} is given back, and is not offered: {new}")

    def _check_single_count(self, after: Task, executions: Sequence[Execution]) -> None:
        for attempts in (*(run.attempts for run in after.runs), *(each.attempts for each in executions)):
            marks = [each.claim for each in attempts if each.claim]
            numbers = [each.number for each in attempts]
            if len(marks) != len(set(marks)) or len(numbers) != len(set(numbers)):
                fail(f"W7: {after.id} counts a result twice: {attempts}")
            for each in attempts:
                if each.claim and self._ended.setdefault(each.claim, each.status) is not each.status:
                    fail(f"W7: {after.id} counts {each}, and had counted it as {self._ended[each.claim]}")

    # ── What workers see ────────────────────────────────────────────────────────────────────────────────────────

    def on_worker_visit(self) -> None:
        assert self._world.current
        self._came[self._world.current.name] = self._commits

    def on_claim_request(self) -> None:
        """Note that a worker reads the queue, and whether it will follow the queue's order."""
        process = self._world.current
        assert process
        if PullWiring.of(process.app.container).work_queue.competitors:
            self._in_a_crowd.add(process.name)

    def on_claimed(self, wanted: WorkerFilter, limit: int, claims: Sequence[Attempt]) -> None:
        """Check the response to a worker that requested up to `limit` claims."""
        process = self._world.current
        assert process
        if len(claims) > limit:
            fail(f"W4: {len(claims)} are claimed, and {limit} were asked for")
        for claim in claims:
            if claim.run.lease is None or claim.run.lease.token_hash not in process.tokens:
                fail(f"W1: {claim.task.id} is given to one that has not claimed it")
        if len(claims) == limit or self._world.fault_profile.fault or self._world.fault_profile.kill:
            return
        for each in self._lying.values():
            is_known = each.since <= self._came[process.name] and _matches(wanted, each.task)
            if is_known and not _has_expired(each.task, each.run, self._world.latest_time(process)):
                fail(f"W4: {len(claims)} of {limit} are claimed, and {each.task.id} is left lying: {each.offer}")

    def on_result_accepted(self, key: Key) -> None:
        """Check an answer that accepted a worker's result or release."""
        if lease_fingerprint(key[2]) not in self._let_go:
            fail(f"W7: somebody is told that {key} has ended, and it has not")

    def on_result_refused(self, key: Key, *, is_told_twice: bool = False) -> None:
        """Check a response that reports a lost lease; `is_told_twice` if the worker may have reported before."""
        process, found = self._world.current, self._world.real_store.load(key[0])
        assert process
        run = found and found.task.find_run(key[1])
        lease = run.lease if run else None
        margin = self._world.latest_time(process) + 4 * self._world.fault_profile.drift
        if (
            found
            and lease
            and lease.token_hash == lease_fingerprint(key[2])
            and lease.until > margin
            and not found.task.deleted_at
        ):
            fail(f"W7: {key} is refused, and its lease lasts until {lease.until}")
        is_there = (
            found
            and not found.task.deleted_at
            and found.task.created_at == self._counted.get(lease_fingerprint(key[2]))
        )
        if is_told_twice and is_there:
            fail(f"W7: {key} is refused, and its result counts")

    def on_task_missing(self, key: Key) -> None:
        """Check a response that reports a missing task."""
        found = self._world.real_store.load(key[0])
        run = found.task.find_run(key[1]) if found and not found.task.deleted_at else None
        if run and run.lease and run.lease.token_hash == lease_fingerprint(key[2]):
            fail(f"W7: {key} is not found, and is there: {run}")

    # ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def check_end_state(self) -> None:
        now = self._world.now
        for task in self._world.tasks():
            for run in task.runs if task.is_active else ():
                where = f"{task.id}'s {run.execution_id}"
                since = self._offered_at.get((task.id, run.execution_id))
                if run.waiting_for is WaitingFor.WORKER and (since is None or since < now - LATE):
                    fail(f"W8: {where} has been offered since {since}: {task.offer}")
                if run.waiting_for is WaitingFor.LOCK:
                    self._check_lock_wait(task, where)

    def _check_lock_wait(self, task: Task, where: str) -> None:
        if not self._is_lock_taken(task) and self.lock_free_since(task.lock_key) < self._world.now - LATE:
            fail(f"W8: {where} waits for {task.lock_key!r}, which is free")

    def _is_lock_taken(self, task: Task) -> bool:
        lock = self._world.real_store.locks.load(task.lock_key).lock if task.lock_key else None
        holders = [one for one in lock.holders if one.until > self._world.now] if lock else []
        return len(holders) >= task.lock_limit


def _matches(wanted: WorkerFilter, task: Task) -> bool:
    pull = task.pull
    if pull is None or pull.queue != wanted.queue or (pull.skill is not None and pull.skill not in wanted.skills):
        return False
    return (wanted.handlers is None or task.handler in wanted.handlers) and wanted.owner in {None, task.owner}


def _has_expired(task: Task, run: Run, now: datetime) -> bool:
    return bool(task.expiration and run.started_at is None and run.due_at + task.expiration <= now)
