"""Keep a limit on what strangers make: who makes the most loses the oldest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

T = TypeVar("T")


def iterate_superfluous(places: Sequence[tuple[Hashable, T]], room: int) -> Iterator[T]:
    """Yield what is too much, given what takes each place, and whose it is, the oldest first.

    It is the oldest of those who have the most places: nobody takes another's by taking more and more.
    """
    left = list(places)
    counts = Counter(owner for owner, _ in left)
    while len(left) > room:
        largest = max(counts, key=counts.__getitem__)
        oldest = next(each for each in left if each[0] == largest)
        left.remove(oldest)
        counts[largest] -= 1
        yield oldest[1]
