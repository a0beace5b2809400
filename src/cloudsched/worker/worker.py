"""The worker: it claims as much as it has free places for, runs that, and stops without losing anything.

One loop: look what there is, hand it to free places, wait until something has happened. What can happen comes as mail:
a place is free again, a listener rings, somebody wants it to stop. Where nothing rings it looks every few seconds, and
less often the longer there is nothing.
"""

from __future__ import annotations

import logging
import random
import time
from datetime import timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from cloudsched.errors import (
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    QuotaExceeded,
    Unauthenticated,
    Unavailable,
)
from cloudsched.worker.background import Errands
from cloudsched.worker.slot import Place
from cloudsched.worker.source import misfit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cloudsched.worker.slot import Ended
    from cloudsched.worker.source import Assignment, Desk

log = logging.getLogger(__name__)

POLL = timedelta(seconds=3)
"""How long to wait before looking again, where nothing rings. An empty look costs one read."""
GRACE = timedelta(seconds=25)
"""How long running attempts may take to end once the worker is to stop: Kubernetes kills after 30 seconds, and giving
back takes some. Cloud Run kills after 10; there 7 is better."""
TIME_LIMIT = timedelta(hours=24)
"""How long one attempt may take."""
GIVING_BACK = 4.0
"""How many seconds it may take to give back what has not ended within the grace."""

LONGEST_RETRY_AFTER = 300.0
"""How many seconds a worker stays away at the most because it is asked to."""

_REFUSALS = (Unauthenticated, Forbidden, Misconfigured)
"""What no new try will mend."""
_MISTAKES = (NotFound, InvalidInput)
"""The same, if it is the first thing that is heard: a wrong address, or a wrong queue."""


class Pace:
    """How many seconds to wait before looking again.

    Args:
        poll: The usual wait.
        listens: Whether something rings when there is work, so that looking is a precaution.
        chance: What spreads workers that began at the same time.
    """

    GROWTH = 1.5
    LAZIEST, LAZIEST_LISTENING = 5.0, 20.0
    """How many times the usual wait it may become while there is nothing."""
    FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
    """How many seconds pass while nobody answers, at first and at the most."""

    def __init__(self, poll: timedelta, *, listens: bool, chance: random.Random | None = None) -> None:
        self._poll = poll.total_seconds()
        self._longest = self._poll * (self.LAZIEST_LISTENING if listens else self.LAZIEST)
        self._chance = chance or random.Random()  # noqa: S311 - it guards nothing
        self._idle = self._poll
        self._pause = self.FIRST_PAUSE

    def after(self, found: int | None, asked_for: float = 0.0) -> float:
        """Return the wait after a look that found so much; None if nobody answered, or asked for a wait."""
        if found is None:
            pause, self._pause = self._pause, min(self._pause * 2, self.LONGEST_PAUSE)
            return max(asked_for, pause * self._chance.uniform(0.75, 1.25))
        self._pause = self.FIRST_PAUSE
        self._idle = self._poll if found else min(self._idle * self.GROWTH, self._longest)
        return self._idle * self._chance.uniform(0.75, 1.25)


class Worker:
    """Takes work from a desk and runs it.

    Args:
        desk: Where the work comes from. What it wants is what the worker may run.
        concurrency: How many attempts run at once; no more than that are ever claimed.
        poll: How long to wait before looking again, where nothing rings.
        grace: How long running attempts may take to end once it is to stop; then they are given back.
        time_limit: How long one attempt may take; then its lease is left to lapse.
        tell: Called with what became of each attempt.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        concurrency: int = 1,
        poll: timedelta = POLL,
        grace: timedelta = GRACE,
        time_limit: timedelta = TIME_LIMIT,
        tell: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        self._desk = desk
        self._poll = poll
        self._grace = grace.total_seconds()
        self._mail: SimpleQueue[Place | None] = SimpleQueue()  # whose `put` a signal's handler may call
        self._free = [Place(n, time_limit=time_limit, free=self._mail.put, tell=tell) for n in range(concurrency)]
        self._busy: set[Place] = set()
        self._errands: Errands[Sequence[Assignment]] = Errands()
        self._stops = 0
        self._stopped_at: float | None = None
        self._asked_wait = 0.0
        self._has_been_answered = False
        self._out_since: float | None = None
        self.leaves_handlers_running = False
        """Whether handlers go on whose attempts were given back: no thread can be ended from outside."""

    @property
    def was_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stops > 0

    def stop(self) -> None:
        """Claim nothing more, and end when what runs has ended; called again, give that back now. Any thread may.

        So may a signal's handler.
        """
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
        self._stops += 1
        self._errands.stop()
        self._mail.put(None)

    def run(self, *, once: bool = False) -> None:
        """Work until `stop` is called; or, `once`, until there is nothing and nothing runs any more.

        Raises:
            Unauthenticated: It could not prove who it is.
            Forbidden: It may not work there.
            Misconfigured: Something is set wrong.
            Unavailable: Nobody answered, and it was to work `once`.
        """
        with self._desk.listening(lambda: self._mail.put(None)):
            try:
                self._work(Pace(self._poll, listens=self._desk.listens), once=once)
            finally:
                self._end()

    def _work(self, pace: Pace, *, once: bool) -> None:
        while not self._stops:
            free = len(self._free)
            found = self._looked(free, once=once) if free else ()
            if self._stops and found:
                self._errands.send(partial(self._given_back, found))
                return
            for assignment in found or ():
                place = self._free.pop()
                self._busy.add(place)
                place.take(assignment)
            if once and not found and not self._busy:
                return
            if not self._free or (once and self._busy):
                self._wait(None)
            elif not once:
                self._wait(pace.after(None if found is None else len(found), self._asked_wait))

    def _looked(self, free: int, *, once: bool) -> Sequence[Assignment] | None:
        """Return what was claimed; None if nobody answered, which is said once."""
        self._asked_wait = 0.0
        try:
            found = self._errands.send(partial(self._claimed, free))
        except _REFUSALS as error:
            if not self._busy:
                raise
            self._note_outage(error)  # it ends by that when what runs has ended, which takes the proof that is refused
            return None
        except Exception as error:
            if once or (isinstance(error, _MISTAKES) and not self._has_been_answered):
                raise
            self._note_outage(error)
            return None
        if found is None:
            log.warning("stops before it was answered: what it may have claimed is offered again when its lease ends")
            return None
        self._has_been_answered = True
        if self._out_since is not None:
            log.warning("there are answers again after %.0f s", time.monotonic() - self._out_since)
            self._out_since = None
        return found

    def _claimed(self, free: int) -> Sequence[Assignment]:
        """Return what was claimed and may run here. What comes when the worker is to stop is given back."""
        found = self._desk.claim(free)
        if self._stops:
            return self._given_back(found)
        return [assignment for n, assignment in enumerate(found) if self._is_fit(assignment, n < free)]

    def _given_back(self, found: Sequence[Assignment]) -> Sequence[Assignment]:
        for assignment in found:
            _release(assignment, "The worker stops.")
        return ()

    def _note_outage(self, error: Exception) -> None:
        if isinstance(error, QuotaExceeded) and error.retry_after is not None:
            self._asked_wait = min(float(error.retry_after), LONGEST_RETRY_AFTER)
        if self._out_since is not None:
            return
        self._out_since = time.monotonic()
        is_news = not isinstance(error, (Unavailable, QuotaExceeded, *_REFUSALS))
        log.warning("nothing can be claimed at present, tries again: %s", error, exc_info=error if is_news else None)

    def _is_fit(self, assignment: Assignment, is_asked_for: bool) -> bool:  # noqa: FBT001 - of the one call above
        why = misfit(self._desk.wanted, assignment.task) if is_asked_for else "it is more than was asked for"
        if why is None:
            return True
        log.error("given back: %s", why, extra={"action": "misfit", "taskId": assignment.task.id})
        _release(assignment, f"Given to the wrong worker: {why}.")
        return False

    def _end(self) -> None:
        """Let what runs end, and give back the rest."""
        if self._busy and self._grace and self._stops <= 1:
            count, grace = len(self._busy), self._grace
            log.warning("stopping: %d may go on for %g s; another signal gives back what has not ended", count, grace)
        until = (self._stopped_at or time.monotonic()) + self._grace
        while self._busy and self._stops <= 1 and time.monotonic() < until:
            self._wait(until - time.monotonic())
        for place in self._busy:
            self.leaves_handlers_running = True
            place.give_up()
        until = time.monotonic() + GIVING_BACK
        while self._busy and time.monotonic() < until:
            self._wait(until - time.monotonic())

    def _wait(self, seconds: float | None) -> None:
        """Wait for mail, so long at most, and take all that there is."""
        try:
            while True:
                place = self._mail.get(timeout=None if seconds is None else max(0.0, seconds))
                seconds = 0.0
                if place is not None:
                    self._busy.discard(place)
                    self._free.append(place)
        except Empty:
            return


def _release(assignment: Assignment, reason: str) -> None:
    try:
        assignment.release(reason)
    except Exception as error:  # noqa: BLE001 - whatever it is, the worker has other work
        about = {"action": "not released", "taskId": assignment.task.id}
        log.warning("it could not be given back, its lease will lapse: %s", error, extra=about)
