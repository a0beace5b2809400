"""Work on several things side by side, each in a thread: for calls that mostly wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

S = TypeVar("S")
T = TypeVar("T")


def map_in_threads(work: Callable[[S], T], items: Sequence[S], threads: int) -> Iterator[T]:
    """Yield the results in the order of the items; one after the other with one thread.

    An error is raised in its item's turn, once everything that was begun has ended.
    """
    if threads == 1 or len(items) < 2:  # noqa: PLR2004 - nothing to do at the same time
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only where much is overdue

    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, items)
