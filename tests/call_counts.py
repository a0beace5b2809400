"""Count what code does, for tests of cost: seconds say more of the machine and its load than of the code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from dataclasses import dataclass


@dataclass(slots=True)
class Calls:
    """How many functions a block of code has called, Python's own included."""

    count: int = 0


@contextmanager
def count_calls() -> Iterator[Calls]:
    """Count the calls of this thread during a block; the count is there when the block has ended.

    The same code with the same arguments makes the same calls on every machine. A version of Python may make a few more
    or less than another, so leave a limit some room.
    """
    calls, profile = Calls(), Profile(subcalls=False)
    profile.enable()
    try:
        yield calls
    finally:
        profile.disable()
        calls.count = sum(entry.callcount for entry in profile.getstats())
