"""What a handler may ask and say while it runs."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from cloudsched.domain.execution import ProgressStep
from cloudsched.domain.finishing import Notice
from cloudsched.domain.storable import MAX_CONTENT, require_storable, storable_text
from cloudsched.domain.task import MAX_COUNT
from cloudsched.errors import InvalidInput, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from cloudsched.domain.execution import Run
    from cloudsched.domain.task import Task
    from cloudsched.engine.ports import Clock

log = logging.getLogger(__name__)

MAX_STEPS = 50
"""How many progress steps a record keeps; the oldest go first."""
MAX_NOTICES = 20
"""How many messages one attempt may put into the inbox: they are written in the commit that ends it."""
MAX_TEXT = 200
"""How many characters of a progress step or a notice's title are kept."""


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What a renewal found: the lease's new end, or that the run is no longer the caller's."""

    until: datetime | None
    is_cancelled: bool


class Context:
    """One attempt at one occurrence, as its handler sees it.

    Attributes:
        task: The task as it was when the attempt began.
        execution_id: The same on every retry of the occurrence: use it as an idempotency key towards others.
        scheduled_for: The occurrence's instant, in UTC.
        attempt: Which attempt this is, counted from 1.
    """

    def __init__(
        self, task: Task, run: Run, clock: Clock, renew: Callable[[Sequence[ProgressStep]], LeaseState]
    ) -> None:
        self.task = task
        self.execution_id = run.execution_id
        self.scheduled_for = run.scheduled_for
        self.attempt = run.attempt
        self._clock = clock
        self._renew = renew
        self._lease_until = run.wakes_at
        self._steps = list(run.progress)
        self._notices: list[Notice] = []
        self._queries = 0
        self._tokens = 0

    def now(self) -> datetime:
        """Return the present instant by the scheduler's clock, which a test can move."""
        return self._clock.now()

    def time_left(self) -> timedelta:
        """Return how long the lease lasts: past it, another executor may begin the next attempt."""
        return self._lease_until - self._clock.now()

    def progress(self, text: str) -> None:
        """Say how far the work is. It is stored at once (one commit), and renews the lease."""
        self._steps.append(ProgressStep(at=self._clock.now(), text=storable_text(text[:MAX_TEXT])))
        del self._steps[:-MAX_STEPS]
        self.heartbeat()

    def heartbeat(self) -> bool:
        """Renew the lease (one commit); return False if the task was cancelled or the run is no longer this one's.

        A store that does not answer is no reason to stop, as long as the lease lasts.
        A lease that has ended is not renewed: others may be at it already. A task that is paused lets its runs finish.
        """
        try:
            state = self._renew(self._steps)
        except StoreUnavailable as error:  # the lease still stands; the handler need not fail for this
            log.warning("not renewed: %s", error, extra={"action": "not renewed", "taskId": self.task.id})
            return self.time_left() > timedelta(0)
        if state.until is not None:
            self._lease_until = state.until
        return not state.is_cancelled

    def notify(self, title: str, body: str) -> None:
        """Put a message into the owner's web inbox, in the same commit as the success of this attempt.

        So it is there exactly once if the occurrence succeeds, and not at all if it does not.

        Raises:
            InvalidInput: It is larger than a store keeps, or there are too many of them.
        """
        if len(self._notices) == MAX_NOTICES:
            raise InvalidInput("notices", f"are more than {MAX_NOTICES}", "Put several things into one message.")
        body = storable_text(body)
        require_storable("body", body, MAX_CONTENT)
        self._notices.append(Notice(storable_text(title[:MAX_TEXT]), body))

    def used(self, *, queries: int = 0, tokens: int = 0) -> None:
        """Add to what the record says this attempt has cost."""
        for number in (queries, tokens):
            if type(number) is not int or not 0 <= number <= MAX_COUNT:
                raise ValueError(f"What was used is a whole number from 0 to {MAX_COUNT}; {number!r} is not.")
        self._queries += queries
        self._tokens += tokens

    @property
    def said(self) -> Said:
        """What the handler has said so far."""
        return Said(tuple(self._notices), tuple(self._steps), self._queries, self._tokens)


@dataclass(frozen=True, slots=True)
class Said:
    """What a handler has said besides its result."""

    notices: tuple[Notice, ...]
    progress: tuple[ProgressStep, ...]
    queries: int
    tokens: int
