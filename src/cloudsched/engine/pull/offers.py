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

from cloudsched.domain.documents.pull import lanes_of
from cloudsched.domain.transitions.claim import on_lock_taken, on_pull
from cloudsched.engine.execution.claimed_run import MAX_CONFLICTS
from cloudsched.errors import CloudschedError, QueueUnavailable, StoreUnavailable, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence
    from random import Random

    from cloudsched.domain.documents.execution import Run
    from cloudsched.domain.documents.task import Task
    from cloudsched.engine.ports.clock import Clock
    from cloudsched.engine.ports.store import Store, Stored
    from cloudsched.engine.state.commits import Committer
    from cloudsched.engine.state.locks import Locks

log = logging.getLogger(__name__)

MAX_CLAIMS = 100
"""How many runs may be claimed at once."""
MAX_LOOKED_AT = 300
"""How many offers one claim looks at before it gives up."""
MAX_SECONDS = 4.0
"""After how many seconds of real time a claim begins nothing more. Who asks through the API waits for ten, and what is
claimed for somebody who has gone belongs to nobody, and costs an attempt."""
_NOBODY = ""
_MOST_RIVALS = 31
_WIDEST = 100
"""How many offers are read at a time at the most."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a worker can run."""

    queue: str
    skills: Sequence[str] = ()
    handlers: Container[str] | None = None
    """The handlers that it has; None if it takes any."""
    owner: str | None = None
    """Whose tasks it may run; None for everybody's."""
    worker: str = "worker"
    """What it calls itself, for the records."""

    def fits(self, task: Task) -> bool:
        """Return whether the worker may run a task, as it is now."""
        if task.pull is None or task.pull.lane not in lanes_of(self.queue, self.skills):
            return False
        return (self.handlers is None or task.handler in self.handlers) and self.owner in {None, task.owner}


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that is the worker's, as long as its lease lasts."""

    stored: Stored
    run: Run


@dataclass(slots=True)
class _Look:
    """One look at the queue, and what it has come to so far."""

    wanted: Wanted
    limit: int
    ends_at: float
    claims: list[Claim] = field(default_factory=list)
    others: int = 0
    """How many offers were not for this worker."""
    taken: dict[str, list[Stored]] = field(default_factory=dict)
    """The lock keys that were found taken, with what else was met of each."""


class _Crowd:
    """How many others seem to claim at the same time: more with each race that is lost, fewer with each that is won."""

    def __init__(self) -> None:
        self.rivals = 0

    def lost(self) -> None:
        """Somebody else was quicker."""
        self.rivals = min(self.rivals + 2, _MOST_RIVALS)

    def won(self) -> None:
        """Nobody was."""
        self.rivals = max(0, self.rivals - 1)


class Offers:
    """Hands out what is offered."""

    def __init__(
        self,
        *,
        store: Store,
        committer: Committer,
        locks: Locks,
        clock: Clock,
        random: Random,
        seconds: Callable[[], float],
    ) -> None:
        self._store = store
        self._committer = committer
        self._locks = locks
        self._clock = clock
        self._random = random
        self._seconds = seconds
        """Seconds of real time, from anywhere: a clock that can be moved or stands still tells nothing of a caller's
        patience."""
        self._crowd = _Crowd()

    def claim(self, wanted: Wanted, limit: int = 1) -> list[Claim]:
        """Claim up to so many runs, at least one: the most urgent first, and of those what came due first.

        One read for each offer that is looked at, and one commit for each claim. Among workers who claim at the same
        time the order is that of the queue, give or take as many places as there are workers. What cannot be claimed,
        whatever is wrong with it, holds up nothing behind it; and after `MAX_SECONDS` no more is begun.

        Raises:
            StoreUnavailable: The store did not answer, and nothing was claimed; what was claimed before is returned.
        """
        look = _Look(wanted, limit, self._seconds() + MAX_SECONDS)
        try:
            self._look(look)
            while look.taken and self._seconds() < look.ends_at:
                self._line_up(look, *look.taken.popitem())
        except Exception as error:
            if not look.claims:
                raise
            log.warning("%d claimed, and then: %s", len(look.claims), error, extra={"action": "claimed less"})
        if look.others >= MAX_LOOKED_AT:
            log.warning(
                "what comes first in queue %r is not for this worker; give what other workers run a queue of its own",
                wanted.queue,
                extra={"action": "crowded", "queue": wanted.queue},
            )
        return look.claims

    def _look(self, look: _Look) -> None:
        for stored in self._candidates(look.wanted, look.limit):
            if self._seconds() >= look.ends_at:
                return
            look.others += not look.wanted.fits(stored.task)
            self._try(look, stored)
            if len(look.claims) >= look.limit:
                return

    def _try(self, look: _Look, stored: Stored) -> None:
        """Claim a run if that can be; one with which something is wrong is passed over."""
        try:
            if claim := self._claimed(stored, look):
                look.claims.append(claim)
        except StoreUnavailable:
            raise
        except CloudschedError as error:
            ids = {"action": "not claimed", "taskId": stored.task.id}
            log.warning("passed over, since it cannot be claimed: %s", error, extra=ids)

    def _line_up(self, look: _Look, key: str, held_up: list[Stored]) -> None:
        """Take off the queue what has met a lock that others hold; what has changed meanwhile is looked at anew."""
        now = self._clock.now()
        asking = [(stored, *found) for stored in held_up if (found := on_pull(stored.task, now, _NOBODY, _NOBODY))]
        waiting = set[tuple[str, str]]()
        if asking:
            with suppress(QueueUnavailable, VersionConflict):  # the sweep wakes them; or each asks by itself
                waiting = self._locks.line_up(key, [(step.task, run) for _, step, run in asking], now)
        for stored, _, run in asking:
            if self._seconds() >= look.ends_at:
                return
            offered = stored.task.run(run.execution_id)
            if offered is not None and (stored.task.id, run.execution_id) in waiting:
                with suppress(VersionConflict):
                    self._committer.commit(on_lock_taken(stored.task, offered, now), stored)
                    continue
            if len(look.claims) < look.limit:
                self._try(look, stored)

    def _candidates(self, wanted: Wanted, limit: int) -> Iterator[Stored]:
        """Yield offers in their order; where there are rivals, those of one priority in any order."""
        lanes = lanes_of(wanted.queue, wanted.skills)
        after: tuple[str, str] | None = None
        width, looked_at = limit + self._crowd.rivals, 0
        while looked_at < MAX_LOOKED_AT:
            found = list(self._store.offered(lanes, wanted.owner, limit=width, after=after))
            if not found:
                return
            last = found[-1].task
            after = (last.offer.order, last.id) if last.offer else None
            if self._crowd.rivals:
                spread = {each.task.id: self._random.random() for each in found}
                found.sort(key=lambda each: (each.task.priority.rank, spread[each.task.id]))
            yield from found
            looked_at += len(found)
            if len(found) < width:
                return
            width = min(2 * width, _WIDEST)

    def _claimed(self, stored: Stored, look: _Look) -> Claim | None:
        lease_token = secrets.token_hex(16)
        current: Stored | None = stored
        for _ in range(MAX_CONFLICTS):
            if current is None:
                return None
            mine = next((run for run in current.task.runs if run.lease and run.lease.token == lease_token), None)
            if mine is not None:  # a commit that took effect and then failed
                return Claim(current, mine)
            if not look.wanted.fits(current.task):  # its owner may have made it another's meanwhile
                return None
            try:
                taken = self._taken(current, lease_token, look)
            except VersionConflict:
                self._crowd.lost()
                current = self._store.load(stored.task.id)
            else:
                if taken is not None:
                    self._crowd.won()
                return taken
        return None  # it changes all the time; others may be had

    def _taken(self, stored: Stored, lease_token: str, look: _Look) -> Claim | None:
        """Commit a claim, or that the run waits for its lock; if that was found taken before, it is only noted.

        Raises:
            VersionConflict: Somebody else was quicker.
        """
        now = self._clock.now()
        claimed = on_pull(stored.task, now, lease_token, look.wanted.worker)
        if claimed is None:
            return None
        step, run = claimed
        if run.lock_key is None:
            return Claim(self._committer.commit(step, stored), run)
        if run.lock_key in look.taken:
            look.taken[run.lock_key].append(stored)
            return None
        answer = self._locks.asked(step.task, run, now)
        if answer.has_it:
            return Claim(self._committer.commit(step, stored, answer.lock), run)
        offered = stored.task.run(run.execution_id)
        if offered is not None:
            self._committer.commit(on_lock_taken(stored.task, offered, now), stored, answer.lock)
        look.taken[run.lock_key] = []
        with suppress(QueueUnavailable):  # the sweep wakes them
            self._locks.wake(answer.turns, now)
        return None
