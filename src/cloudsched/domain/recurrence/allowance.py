"""The limits of searches: each request and each dispatch has one allowance, which all its calls spend.

The entry (the API, the executor, the sweep) makes it once. A search has limits of its own, but a request may
make many: 20 rules in each of 50 tasks, a preview of 1,000 occurrences, a list of the next runs of 1,000
tasks. They all spend from one allowance, and once that is used up, each further search ends at its first
step.

It is held by a context variable, and is no parameter. Schedules are searched while pydantic validates them,
within compiled recurrences that requests share, and by some thirty pure functions that plan tasks. Each of
them would have to hand it on, and one that forgot would be a hole. So a search needs nothing to be limited,
and code that is written later is limited, too. Outside of any entry, in your own scripts, there is no
allowance: only each search's own limit holds.

A step is one thing that a search looks at: a period, a day, an occurrence. It takes two to five microseconds.
A request has bytes beside its steps, which its lists of documents spend: when they are used up, each further
page ends at its first document. So a list may be shorter than asked, and has a token. Nothing is refused for
them.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Final

from cloudsched.errors import SearchLimitReached

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST_STEPS: Final = 30_000
"""The most steps that all searches of one request may take together: a fifth of a second, on a slow
machine."""
REQUEST_BYTES: Final = 4_000_000
"""The most bytes of documents that all lists of one request read: about a fifth of a second, on a slow
machine."""
DISPATCH_STEPS: Final = 500_000
"""The most steps that all searches for one dispatch may take. They are many more, since a process must be
able to plan an accepted task from nothing: the 100,000 occurrences that COUNT may have take 350,000 steps."""
TASK_STEPS: Final = 10_000
"""The steps of a request that a list of many tasks spends on one of them, so that it leaves some to the
others."""


class Allowance:
    """Steps and bytes that may still be spent. Threads that share one may together spend a few more."""

    __slots__ = ("_bytes", "_within", "remaining", "steps")

    def __init__(self, steps: int, within: Allowance | None = None, max_bytes: float = inf) -> None:
        """Take the number of steps and of bytes, and the allowance that they are a part of."""
        self.steps = self.remaining = steps
        self._bytes = max_bytes
        self._within = within

    @property
    def bytes_left(self) -> float:
        """The number of bytes that may still be read."""
        left = max(0.0, self._bytes)
        if self._within is None:
            return left
        return min(left, self._within.bytes_left)

    def spend_bytes(self, count: int) -> None:
        """Take bytes from this allowance, and from the one around it.

        They are read already: nothing is refused.
        """
        self._bytes -= count
        if self._within is not None:
            self._within.spend_bytes(count)

    @property
    def is_used_up(self) -> bool:
        """Return whether nothing more may be searched."""
        return self.remaining < 0 or (self._within is not None and self._within.is_used_up)

    def spend(self, steps: int) -> None:
        """Take steps from this allowance, and from the one that it is a part of.

        Raises SearchLimitReached.
        """
        self.remaining -= steps
        if self._within is not None:
            self._within.spend(steps)
        if self.remaining < 0:
            self.remaining = -1  # a refused search is not made
            raise SearchLimitReached(self.steps)


_current: ContextVar[Allowance | None] = ContextVar("search_allowance", default=None)


@contextmanager
def limit_search(steps: int = REQUEST_STEPS, max_bytes: float = inf) -> Iterator[Allowance]:
    """Limit the steps of all searches in the ``with`` block together, and the bytes that its lists read.

    A block within another one gets no more than what the outer one has left.
    """
    allowance = Allowance(steps, _current.get(), max_bytes)
    token = _current.set(allowance)
    try:
        yield allowance
    finally:
        _current.reset(token)


def take_part(steps: int) -> Allowance:
    """Return an allowance that is at most the rest of the current one."""
    return Allowance(steps, _current.get())


@contextmanager
def spend_from(allowance: Allowance) -> Iterator[Allowance]:
    """Charge the searches of the ``with`` block to an allowance."""
    token = _current.set(allowance)
    try:
        yield allowance
    finally:
        _current.reset(token)


def get_bytes_left() -> float:
    """Return how many bytes of documents may still be listed. Without an allowance, it is any number."""
    allowance = _current.get()
    return inf if allowance is None else allowance.bytes_left


def spend_bytes(count: int) -> None:
    """Take bytes that were read from the current allowance, if there is one."""
    allowance = _current.get()
    if allowance is not None:
        allowance.spend_bytes(count)


def spend_steps(steps: int = 1) -> None:
    """Take steps from the current allowance, if there is one. Raises SearchLimitReached."""
    allowance = _current.get()
    if allowance is not None:
        allowance.spend(steps)
